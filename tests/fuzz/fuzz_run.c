/* What a run folder holds besides models and settings: metrics.csv, search.csv, data.json. The first byte
 * says which. */
#include "input.h"
#include "mutate.h"
#include "run.h"
#include "search/candidates.h"

#include <dvbf/report.h>
#include <fcntl.h>

static void read_metrics(const char *path, dvbf_error *error) {
  dvbf_metrics *metrics = NULL;
  if (dvbf_metrics_read(&metrics, path, error) && !error->message[0]) abort();
  dvbf_metrics_free(metrics);
}

/* Settings are made of what the file says. */
static void read_search(const char *path, dvbf_error *error) {
  static dvbf_settings *base;
  dv_candidates all = {0};
  if (!base && dvbf_settings_new(&base, "train", NULL)) abort();
  bool failed = dv_candidates_read(&all, path, error);
  if (failed && !error->message[0]) abort();
  for (size_t i = 0; !failed && i < all.count; i++) {
    dvbf_settings *settings = NULL;
    if (!dv_candidate_settings(&settings, &all.list[i], base, error)) dvbf_settings_free(settings);
  }
  dv_candidates_free(&all);
}

static void read_data(const uint8_t *bytes, size_t size, dvbf_error *error) {
  static int file = -1;
  char path[128];
  dvbf_data *data = NULL;
  if (file < 0) {
    make_run_folder();
    file = open(run_file(path, "data.json"), O_RDWR | O_CREAT, 0600);
  }
  if (file < 0 || ftruncate(file, 0) || pwrite(file, bytes, size, 0) != (ssize_t)size) abort();
  begin_faults();
  if (dvbf_run_data(&data, run_folder, error) && !error->message[0]) abort();
  dvbf_data_free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  dvbf_error error = {.message = ""};
  if (size < 2) return 0;
  if (bytes[0] % 3 == 2) {
    read_data(bytes + 1, size - 1, &error);
    return 0;
  }
  const char *path = input_file(bytes + 1, size - 1);
  if (path && bytes[0] % 3 == 0) read_metrics(path, &error);
  if (path && bytes[0] % 3 == 1) read_search(path, &error);
  return 0;
}

#ifdef FUZZING
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
  if (size < 2 || seed % 16 == 0) return LLVMFuzzerMutate(bytes, size, most);
  mutate_fn *mutate = bytes[0] % 3 == 2 ? mutate_json : mutate_csv;
  return 1 + mutate(bytes + 1, size - 1, most - 1, seed / 16);
}
#endif
