#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

dvbf_status dv_fail(dvbf_error *error, dvbf_status status, const char *format, ...) {
  if (error) {
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
  }
  return status;
}

dvbf_status dv_fail_memory(dvbf_error *error, const char *what) {
  return dv_fail(error, DVBF_MEMORY, "out of memory while %s; a smaller batch-size or data set needs less", what);
}
