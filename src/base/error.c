/* Fills a dvbf_error with one sentence (dv_report; dv_fail of error.h also returns the status), and the
 * version of the library. Entry points: error.h. */
#include "base/error.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void dv_report(dvbf_error *error, dvbf_status status, const char *format, ...) {
  if (!error) return;
  DV_PLAIN_NUMBERS;
  error->status = status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  dv_text_plain(error->message); /* it may quote a file */
}

const char *dvbf_version(void) {
  return DVBF_VERSION;
}
