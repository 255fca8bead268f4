#include "command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

dvbf_status cli_fail(dvbf_error *error, dvbf_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  return error->status = status;
}

dvbf_status cli_check_system(const char *name, const char *const *known, dvbf_error *error) {
  char list[256] = "";
  for (size_t i = 0; known[i]; i++) {
    if (!strcmp(known[i], name)) return DVBF_OK;
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", known[i]);
  }
  return cli_fail(error, DVBF_ARGUMENT, "%.60s: no such system; the known ones are: %s", name, list);
}
