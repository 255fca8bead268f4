/* What a run folder holds besides models and settings: metrics.csv, search.csv, data.json. The first byte
 * says which. */
#include "input.h"
#include "mutate.h"
#include "run.h"
#include "train/search.h"

#include <dvbf/report.h>
#include <fcntl.h>

static void read_metrics(const char *path, dvbf_error *error) {
  dvbf_metrics *metrics = NULL;
  if (dvbf_metrics_read(&metrics, path, error) && !error->message[0]) abort();
  dvbf_metrics_free(metrics);
}

static const char *in_run(char path[128], const char *name) {
  static bool made;
  if (!made) make_run_folder();
  made = true;
  return run_file(path, name);
}

/* What was read can be written and is the same then. */
static void write_search(const dv_candidates *all) {
  char path[128];
  dvbf_error error = {.message = ""};
  dv_candidates again = {0};
  bool failed = dv_candidates_write(all, in_run(path, DVBF_RUN_SEARCH), &error) ||
                dv_candidates_read(&again, path, &error);
  if (failed ? !may_fail() || !error.message[0] : again.count != all->count) abort();
  for (size_t i = 0; i < again.count; i++)
    if (strcmp(again.list[i].changes, all->list[i].changes) || again.list[i].rank != all->list[i].rank)
      abort();
  dv_candidates_free(&again);
}

/* Settings are made of what the file says. */
static void read_search(const char *path, dvbf_error *error) {
  static dvbf_settings *base;
  dv_candidates all = {0};
  if (!base && dvbf_settings_new(&base, "train", NULL)) abort();
  bool failed = dv_candidates_read(&all, path, error);
  if (!failed) write_search(&all);
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
  if (file < 0) file = open(in_run(path, "data.json"), O_RDWR | O_CREAT, 0600);
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
