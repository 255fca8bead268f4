/* Ways of reading, given as text: lines `name = value` of the settings of data, an empty line, then the file.
 */
#include "input.h"
#include "mutate.h"

#include <stdlib.h>
#include <string.h>

/* Where the file begins; 0: nowhere. */
static size_t find_file(const uint8_t *bytes, size_t size) {
  for (size_t i = 0; i + 1 < size && i < 512; i++)
    if (bytes[i] == '\n' && (i == 0 || bytes[i + 1] == '\n')) return i == 0 ? 1 : i + 2;
  return 0;
}

static void set_line(dvbf_settings *how, char *line) {
  char *value = strchr(line, '=');
  if (!value) return;
  *value++ = 0;
  dvbf_error error;
  dvbf_settings_set(how, line, value, &error); /* wrong ones are refused and change nothing */
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  char text[513];
  size_t from = find_file(bytes, size);
  static dvbf_settings *first;
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  /* HDF5 and MATLAB files are read by other libraries, which have their own fuzzers. */
  if (!from || size - from < 4 || !memcmp(bytes + from, "\x89HDF", 4) || !memcmp(bytes + from, "MATL", 4))
    return 0;
  dvbf_settings *how = new_settings(&first, "data");
  memcpy(text, bytes, from < 512 ? from : 512);
  text[from < 512 ? from : 512] = 0;
  for (char *rest = text, *line; (line = strsep(&rest, "\n"));) set_line(how, line);
  dvbf_settings_set(how, "memory", "64", NULL);
  dvbf_settings_set(how, "sandbox", "off", NULL);
  const char *path = input_file(bytes + from, size - from);
  if (path && dvbf_data_read(&data, path, how, &error) && !error.message[0]) abort();
  dvbf_sequences copy = {0};
  if (data && !dvbf_sequences_copy(&copy, &data->train, 0, data->train.count, NULL))
    dvbf_sequences_free(&copy);
  dvbf_data_free(data);
  dvbf_settings_free(how);
  return 0;
}

#ifdef FUZZING
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
  size_t from = find_file(bytes, size);
  if (!from || seed % 16 == 0) return LLVMFuzzerMutate(bytes, size, most);
  if (seed % 2) { /* the file */
    mutate_fn *mutate = from < size && bytes[from] == 'P' ? mutate_npz
                        : bytes[from] == 0x93             ? mutate_npy
                                                          : mutate_csv;
    return from + (from < size ? mutate(bytes + from, size - from, most - from, seed / 2) : 0);
  }
  uint8_t part[512];
  size_t length = from - 1, room = most - size < 64 ? most - size : 64;
  if (length + room > sizeof part) return size;
  memcpy(part, bytes, length);
  size_t now = LLVMFuzzerMutate(part, length, length + room);
  memmove(bytes + now, bytes + length, size - length);
  memcpy(bytes, part, now);
  return size - length + now;
}
#endif
