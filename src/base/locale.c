#include "base/locale.h"

#include <stdarg.h>
#include <stdio.h>

locale_t dv_locale_enter(void) {
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* the C library keeps it ready: no allocation */
  return plain ? uselocale(plain) : (locale_t)0;
}

void dv_locale_leave(const locale_t *before) {
  if (*before) freelocale(uselocale(*before));
}

void dv_print(char *out, size_t size, const char *format, ...) {
  DV_PLAIN_NUMBERS;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(out, size, format, arguments);
  va_end(arguments);
}
