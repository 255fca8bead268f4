/* Model files. */
#include "input.h"

#include <dvbf/dvbf.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  dvbf_model *model = NULL;
  dvbf_error error = {.message = ""};
  const char *path = input_file(bytes, size);
  if (path && dvbf_model_load(&model, path, &error) && !error.message[0]) abort();
  dvbf_model_free(model);
  return 0;
}
