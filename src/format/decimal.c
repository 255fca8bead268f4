#include "format/decimal.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static locale_t plain_locale;

static void make_locale(void) {
  plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* By the C library, for what is rare: many digits next to the middle of two floats, large exponents. */
static bool read_slowly(const char *at, const char *end, float *out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  char text[256], *stop;
  size_t length = (size_t)(end - at);
  if (length >= sizeof text) return false;
  memcpy(text, at, length);
  text[length] = 0;
  char *comma = strchr(text, ',');
  if (comma) *comma = '.';
  pthread_once(&once, make_locale);
  *out = plain_locale ? strtof_l(text, &stop, plain_locale) : strtof(text, &stop);
  return stop == text + length;
}

/* Whether the float nearest to d is also the nearest to all within 4 units in the last place of d: the middle
 * of two floats has the 29 bits that a float lacks at 1000... */
static bool settles(double d) {
  uint64_t bits;
  memcpy(&bits, &d, sizeof bits);
  int64_t apart = (int64_t)(bits & ((1U << 29) - 1)) - (1 << 28);
  double size = fabs(d);
  return (apart > 4 || apart < -4) && size > 1.2e-38 && size < 3.4e38;
}

static bool read_missing(const char *at, size_t length, float *out) {
  static const char *const words[] = {"nan", "na", "n/a", "null", "none", "-", "?"};
  *out = NAN;
  if (!length) return true;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == length && !strncasecmp(at, words[i], length)) return true;
  *out = at[0] == '-' ? -INFINITY : INFINITY;
  size_t sign = at[0] == '-' || at[0] == '+';
  return (length - sign == 3 && !strncasecmp(at + sign, "inf", 3)) ||
         (length - sign == 8 && !strncasecmp(at + sign, "infinity", 8));
}

/* The number behind e, kept small enough to add to. */
static const char *read_exponent(const char *at, const char *end, int *exponent) {
  bool negative = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+')) at++;
  if (at == end) return NULL;
  int value = 0;
  for (; at < end && *at >= '0' && *at <= '9'; at++)
    if (value < 100000) value = value * 10 + (*at - '0');
  *exponent += negative ? -value : value;
  return at;
}

/* The number is digits * 10^exponent, but for digits beyond the 19th. */
bool dv_decimal(const char *at, const char *end, bool comma, float *out) {
  static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const char *begin = at;
  bool negative = at < end && *at == '-', point = false, any = false;
  uint64_t digits = 0;
  int exponent = 0, used = 0;
  if (at < end && (*at == '-' || *at == '+')) at++;
  for (; at < end; at++) {
    if (*at >= '0' && *at <= '9') {
      any = true;
      if (used < 19) {
        digits = digits * 10 + (uint64_t)(*at - '0');
        used += digits != 0;
        exponent -= point;
      } else {
        exponent += !point;
      }
    } else if (!point && (*at == '.' || (comma && *at == ','))) {
      point = true;
    } else {
      break;
    }
  }
  if (!any) return read_missing(begin, (size_t)(end - begin), out);
  if (at < end && (*at == 'e' || *at == 'E')) at = read_exponent(at + 1, end, &exponent);
  if (at != end) return false;
  if (digits && (exponent < -22 || exponent > 22)) return read_slowly(begin, end, out);
  double d = exponent < 0 ? (double)digits / powers[digits ? -exponent : 0]
                          : (double)digits * powers[digits ? exponent : 0];
  if (digits && !settles(d)) return read_slowly(begin, end, out);
  *out = negative ? -(float)d : (float)d;
  return true;
}
