/* Checkpoints of one small run, read as that run would when it goes on. */
#include "input.h"
#include "mutate.h"
#include "run.h"
#include "train/run_folder.h"

#include <stdlib.h>
#include <string.h>

static dvbf_model *model;
static dv_training state;
static uint64_t data; /* fingerprint */
static uint8_t *own;  /* the run's checkpoint */
static size_t own_size;

/* Times are of the clock: each becomes one second, so that the same seed changes the same file. */
static void set_times(void) {
  static const char key[] = "seconds\":\"", one[] = "3ff0000000000000";
  const size_t length = sizeof key - 1;
  for (uint8_t *at = own, *end = own + own_size;
       (at = memmem(at, (size_t)(end - at), key, length)) && end - at > 32; at += length)
    memcpy(at + length, one, sizeof one - 1);
}

static void begin(void) {
  static const char key[] = "\"data\":\"";
  char path[128];
  make_run();
  own = read_all(run_file(path, DVBF_RUN_CHECKPOINT), &own_size);
  uint8_t *found = own ? memmem(own, own_size, key, sizeof key - 1) : NULL;
  if (!found || dvbf_model_load(&model, run_file(path, DVBF_RUN_MODEL), NULL)) abort();
  set_times();
  data = strtoull((char *)found + sizeof key - 1, NULL, 16);
  size_t count = model->parameters.size;
  if (dv_training_init(&state, count, sizeof(dv_counters) + 3 * count * sizeof(dvbf_real), NULL)) abort();
  dvbf_error error = {.message = ""};
  if (dv_checkpoint_read(&state, model, data, run_file(path, DVBF_RUN_CHECKPOINT), &error)) {
    fprintf(stderr, "%s\n", error.message);
    abort();
  }
#ifndef FUZZING
  free(own); /* which only the mutator needs */
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  dvbf_error error = {.message = ""};
  if (!model) begin();
  const char *path = input_file(bytes, size);
  if (path && dv_checkpoint_read(&state, model, data, path, &error) && !error.message[0]) abort();
  return 0;
}

#ifdef FUZZING
/* Now and then it begins with the run's own file, which no corpus can hold: it tells the machine. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
  if (!model) begin();
  if ((size < 16 || seed % 512 == 0) && own_size <= most) {
    memcpy(bytes, own, own_size);
    return own_size;
  }
  return mutate_safetensors(bytes, size, most, seed);
}
#endif
