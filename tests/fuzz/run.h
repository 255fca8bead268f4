/* A small run in a folder in memory, which is removed at the end. */
#ifndef RUN_H
#define RUN_H

#include <dvbf/dvbf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char run_folder[] = "/dev/shm/dvbf-fuzz-XXXXXX";

static inline void remove_run(void) {
  char line[128];
  snprintf(line, sizeof line, "rm -rf %s", run_folder);
  if (system(line)) perror("rm");
}

static inline const char *run_file(char path[128], const char *name) {
  snprintf(path, 128, "%s/%s", run_folder, name);
  return path;
}

static inline void make_run_folder(void) {
  if (!mkdtemp(run_folder)) abort();
  atexit(remove_run);
}

/* The whole file; the caller frees. */
static inline uint8_t *read_all(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  uint8_t *bytes = malloc(1 << 20);
  *size = file && bytes ? fread(bytes, 1, 1 << 20, file) : 0;
  if (file) fclose(file);
  return bytes;
}

/* Trains for two updates on a few numbers. Its checkpoints may come from another machine: the corpus has
 * some. */
static inline void make_run(void) {
  static const char *const values[][2] = {
      {"updates", "2"},    {"latent", "2"},         {"hidden", "2"},       {"initial-frames", "2"},
      {"batch-size", "2"}, {"validate-every", "1"}, {"gain-updates", "0"}, {"threads", "1"},
      {"systems", "2"},    {"other-machine", "on"}};
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  dvbf_model *model = NULL;
  dvbf_error error = {.message = ""};
  char path[128];
  make_run_folder();
  FILE *file = fopen(run_file(path, "x.csv"), "w");
  for (int i = 0; file && i < 60; i++) fprintf(file, i ? "%d,%d\n" : "x,u\n", i * i % 7, i % 3);
  if (!file || fclose(file) || dvbf_settings_new(&settings, "train", &error)) abort();
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    dvbf_settings_set(settings, values[i][0], values[i][1], NULL);
  if (dvbf_data_read(&data, path, settings, &error) ||
      dvbf_train(&model, settings, data, &(dvbf_train_options){.folder = run_folder, .force = true},
                 &error)) {
    fprintf(stderr, "%s\n", error.message);
    abort();
  }
  dvbf_model_free(model);
  dvbf_data_free(data);
  dvbf_settings_free(settings);
}

#endif
