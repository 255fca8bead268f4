/* Readers of data. BEGINNING is how files of the format begin that this program tries: others are not its
 * subject. */
#include "input.h"
#include "mutate.h"

#include <stdlib.h>
#include <string.h>

/* Data that were read can be used: every frame of a file is there. */
static void use(const dvbf_data *data) {
  const dvbf_sequences *splits[] = {&data->train, &data->valid, &data->test};
  for (int i = 0; i < 3; i++) {
    dvbf_sequences copy = {0};
    if (!dvbf_sequences_copy(&copy, splits[i], 0, splits[i]->count, NULL)) dvbf_sequences_free(&copy);
  }
}

/* What was read can be given as arrays in memory, as a program does, which are not copied. */
static void use_again(const dvbf_data *data, const dvbf_settings *how) {
  const dvbf_sequences *s = &data->train;
  const dvbf_array arrays[] = {{"x", DVBF_FLOAT32, 3, {s->count, s->steps, s->n_x}, s->x},
                               {"u", DVBF_FLOAT32, 3, {s->count, s->steps, s->n_u}, s->u}};
  dvbf_data *again = NULL;
  dvbf_error error = {.message = ""};
  if (!s->x || s->length || !s->count) return;
  if (dvbf_data_from(&again, arrays, s->n_u ? 2 : 1, how, &error) && !error.message[0]) abort();
  dvbf_data_free(again);
}

/* The last byte chooses between ways of reading. They are kept, as making them takes longer than reading most
 * files. */
static const dvbf_settings *settings_of(uint8_t choice) {
  static const char *const settings[][2] = {
      {"memory", "0"},      {"missing", "nan"},     {"split-by", "none"}, {"split-by", "time"},
      {"valid-share", "0"}, {"sample-time", "0.5"}, {"missing", "3"},     {"transpose", "on"}};
  static dvbf_settings *first, *made[256];
  if (made[choice]) return made[choice];
  dvbf_settings *how = new_settings(&first, "data");
  if (dvbf_settings_set(how, "sandbox", "off", NULL)) abort(); /* a process for each file takes too long */
  for (int i = 0; i < 8; i++)
    if (choice >> i & 1) dvbf_settings_set(how, settings[i][0], settings[i][1], NULL);
  return made[choice] = how;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const char beginning[] = BEGINNING;
  const size_t length = sizeof beginning - 1;
  if (size < 2 || size < length || memcmp(bytes, beginning, length)) return 0;
  if (length == 2 && (size < 4 || (memcmp(bytes + 2, "\3\4", 2) && memcmp(bytes + 2, "\5\6", 2)))) return 0;
  if (!length && (!memcmp(bytes, "PK", 2) || bytes[0] == 0x93 || bytes[0] == 0x89)) return 0;
  if (!length && size >= 6 && !memcmp(bytes, "MATLAB", 6)) return 0;
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  const dvbf_settings *how = settings_of(bytes[size - 1]);
  const char *path = input_file(bytes, size);
  if (path) {
    dvbf_status status = dvbf_data_read(&data, path, how, &error);
    if (!status) use(data);
    if (!status) use_again(data, how);
    if (status && (!error.message[0] || strlen(error.message) >= sizeof error.message)) abort();
  }
  dvbf_data_free(data);
  return 0;
}

#if defined FUZZING && defined MUTATE
/* The last byte says how to read. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
  if (size < 2 || seed % 32 == 0) return LLVMFuzzerMutate(bytes, size, most);
  uint8_t how = seed / 32 % 8 ? bytes[size - 1] : (uint8_t)(seed / 256);
  size_t now = MUTATE(bytes, size - 1, most - 1, seed / 65536);
  bytes[now] = how;
  return now + 1;
}
#endif
