/* Files of settings: what was read can be got and set again. */
#include "input.h"

#include <stdlib.h>

enum { TABLES = 4, MOST = 512, SOME = 8 };
static const char *const tables[TABLES] = {"train", "data", "evaluate", "pendulum"};
static const char *names[TABLES][MOST];
static size_t counts[TABLES];
static dvbf_settings *first[TABLES];

/* Tables take longer to list than files to read. */
static void list_names(void) {
  dvbf_setting_info info;
  for (int i = 0; i < TABLES; i++)
    while (counts[i] < MOST && dvbf_settings_table(tables[i], counts[i], &info))
      names[i][counts[i]++] = info.name;
}

/* Some of the settings, beginning with one that depends on the file: all of them take too long. */
static void use(dvbf_settings *settings, size_t table, size_t from) {
  dvbf_error error;
  for (size_t k = from; k < from + SOME; k++) {
    char value[1024];
    const char *name = names[table][k % counts[table]];
    bool failed = dvbf_settings_get(settings, name, value, sizeof value, &error) ||
                  dvbf_settings_set(settings, name, value, &error);
    if (failed && !may_fail()) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  dvbf_error error = {.message = ""};
  size_t hash = size;
  if (!counts[0]) list_names();
  for (size_t i = 0; i < size; i++) hash = hash * 31 + bytes[i];
  dvbf_settings *settings = new_settings(&first[hash % TABLES], tables[hash % TABLES]);
  const char *path = input_file(bytes, size);
  if (!path) abort();
  if (dvbf_settings_read(settings, path, &error) && !error.message[0]) abort();
  use(settings, hash % TABLES, hash / TABLES % MOST);
  dvbf_settings_free(settings);
  return 0;
}
