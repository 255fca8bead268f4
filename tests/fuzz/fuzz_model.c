/* Model files, and what is exported of those that can be read. */
#include "base/text.h"
#include "input.h"
#include "mutate.h"

#include <dvbf/export.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#ifdef FUZZING
enum { EVERY = 4096 }; /* exports of which one is compiled */
#else
enum { EVERY = 4 };
#endif

static char folder[] = "/dev/shm/dvbf-fuzz-XXXXXX", file[64];
static dvbf_settings *settings;

static void clear(void) {
  char line[128];
  snprintf(line, sizeof line, "rm -rf %s", folder);
  if (system(line)) perror("rm");
}

static void begin(void) {
  const char *const values[][2] = {{"samples", "2"}, {"vectors", "5"}};
  if (settings) return;
  if (!mkdtemp(folder) || dvbf_settings_new(&settings, "export", NULL)) abort();
  for (int i = 0; i < 2; i++)
    if (dvbf_settings_set(settings, values[i][0], values[i][1], NULL)) abort();
  snprintf(file, sizeof file, "%s/model.c", folder);
  atexit(clear);
}

/* The first bytes of a file that was written, and 0 behind them; read by calls that are not let fail. */
static const char *content(const char *name, size_t *size) {
  static char bytes[1 << 20], path[96];
  ssize_t n;
  *size = 0;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  int descriptor = open64(path, O_RDONLY);
  while ((n = read(descriptor, bytes + *size, sizeof bytes - 1 - *size)) > 0) *size += (size_t)n;
  close(descriptor);
  bytes[*size] = 0;
  return bytes;
}

#ifndef FUZZING
/* Of the code and its header. */
static uint64_t hash_files(void) {
  static const char *const names[] = {"model.c", "model.h"};
  uint64_t hash = dv_hash_start;
  for (int i = 0; i < 2; i++) {
    size_t size;
    const char *bytes = content(names[i], &size);
    hash = dv_hash(hash, bytes, size);
  }
  return hash;
}
#endif

/* C has no numbers that are not finite. Looking for their words takes less time than compiling; comments
 * have them only behind other characters. */
static void check_numbers(const char *name) {
  static const char *const words[] = {"inf", "nan"};
  size_t size;
  const char *bytes = content(name, &size);
  for (int i = 0; i < 2; i++)
    for (const char *at = bytes; (at = strstr(at, words[i])); at += 3)
      if (at > bytes && strchr(" -{", at[-1]) && strchr(",.}", at[3])) abort();
}

/* What is written must be C, whatever the numbers are. On a machine that fails it must be the same, or be
 * refused. */
static void export(const dvbf_model *model) {
  static unsigned exports;
  char line[256];
  dvbf_error error = {.message = ""};
  dvbf_export_options options = {.force = true};
  begin();
  if (dvbf_export(file, model, settings, &options, NULL, &error)) {
    if (!error.message[0]) abort();
    return;
  }
#ifndef FUZZING
  static uint64_t whole;
  if (!may_fail()) whole = hash_files();
  if (may_fail() && hash_files() != whole) abort();
#endif
  check_numbers("model.c");
  check_numbers("model_test.c");
  snprintf(line, sizeof line,
           "cd %s && cc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only model.c model_test.c", folder);
  if (!may_fail() && exports++ % EVERY == 0 && system(line)) abort();
}

/* A model that was read makes the same bytes again and again. */
static void turn(const dvbf_model *model) {
  dvbf_model *copy = NULL;
  void *bytes = NULL, *again = NULL;
  size_t size = 0, more = 0;
  dvbf_error error = {.message = ""};
  bool failed = dvbf_model_to_bytes(&bytes, &size, model, &error) ||
                dvbf_model_from_bytes(&copy, bytes, size, &error) ||
                dvbf_model_to_bytes(&again, &more, copy, &error);
  if (failed ? !may_fail() || !error.message[0] : size != more || memcmp(bytes, again, size)) abort();
  dvbf_model_free(copy);
  dvbf_bytes_free(bytes);
  dvbf_bytes_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  dvbf_model *model = NULL;
  dvbf_error error = {.message = ""};
  const char *path = input_file(bytes, size);
  if (path && dvbf_model_load(&model, path, &error) && !error.message[0]) abort();
  if (model) turn(model);
  if (model) export(model);
  dvbf_model_free(model);
  return 0;
}

#ifdef FUZZING
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
  return mutate_safetensors(bytes, size, most, seed);
}
#endif
