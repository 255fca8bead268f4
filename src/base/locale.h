/* Numbers in text have a decimal point, whatever the locale of the program that uses the library. */
#ifndef DV_LOCALE_H
#define DV_LOCALE_H

#include <locale.h>
#include <stddef.h>

/* Switches this thread to the locale "C" and returns the previous one; 0 if that fails. */
locale_t dv_locale_enter(void);
void dv_locale_leave(const locale_t *before);

/* Until the end of the block this thread has the locale "C". Use it only around strtod and printf: functions
 * of the user must run in their own locale. */
#define DV_PLAIN_NUMBERS                                                                                     \
  __attribute__((unused, cleanup(dv_locale_leave))) const locale_t dv_locale_before = dv_locale_enter()

/* snprintf in the locale "C". */
void dv_print(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
