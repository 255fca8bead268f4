/* Numbers in text have a point, whatever the language of the program that uses the library. */
#ifndef DV_LOCALE_H
#define DV_LOCALE_H

#include <locale.h>
#include <stddef.h>

/* Puts this thread into the locale "C" and returns the one before, 0 where that fails. */
locale_t dv_locale_enter(void);
void dv_locale_leave(const locale_t *before);

/* Until the end of the block this thread reads and writes numbers as C does. It stands where strtod or printf
 * meet a number, not around calls of the user's functions, which keep their locale. */
#define DV_PLAIN_NUMBERS                                                                                     \
  __attribute__((cleanup(dv_locale_leave))) const locale_t dv_locale_before = dv_locale_enter()

/* snprintf with such numbers. */
void dv_print(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
