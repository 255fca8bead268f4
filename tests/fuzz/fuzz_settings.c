/* Files of settings: what was read can be got and set again. */
#include "input.h"

#include <dvbf/dvbf.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const char *const tables[] = {"train", "data", "evaluate", "pendulum"};
  dvbf_error error = {.message = ""};
  const char *path = input_file(bytes, size);
  for (int i = 0; path && i < 4; i++) {
    dvbf_settings *settings = NULL;
    if (dvbf_settings_new(&settings, tables[i], &error)) abort();
    if (dvbf_settings_read(settings, path, &error) && !error.message[0]) abort();
    dvbf_setting_info info;
    for (size_t k = 0; dvbf_settings_table(tables[i], k, &info); k++) {
      char value[1024];
      if (dvbf_settings_get(settings, info.name, value, sizeof value, &error) ||
          dvbf_settings_set(settings, info.name, value, &error))
        abort();
    }
    dvbf_settings_free(settings);
  }
  return 0;
}
