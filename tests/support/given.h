/* Settings from a line of text. */
#ifndef GIVEN_H
#define GIVEN_H

#include <dvbf/dvbf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Sets each "name=value" of the text. */
static inline void set_all(dvbf_settings *settings, const char *text) {
  char line[512], *rest = line;
  dvbf_error error;
  snprintf(line, sizeof line, "%s", text);
  for (char *word; (word = strsep(&rest, " "));) {
    char *value = strchr(word, '=');
    if (!value) continue;
    *value++ = 0;
    if (dvbf_settings_set(settings, word, value, &error)) fail_msg("%s", error.message);
  }
}

static inline dvbf_settings *settings_of(const char *table, const char *text) {
  dvbf_settings *settings = NULL;
  assert_int_equal(dvbf_settings_new(&settings, table, NULL), DVBF_OK);
  set_all(settings, text);
  return settings;
}

#endif
