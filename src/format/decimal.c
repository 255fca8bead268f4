#include "format/decimal.h"

#include "base/locale.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* By the C library, for what is rare: many digits next to the middle of two floats, large exponents. */
static bool read_slowly(dv_cursor from, float *out) {
  DV_PLAIN_NUMBERS;
  char text[256], *stop;
  if (!dv_cursor_copy(from, text, sizeof text)) return false;
  char *comma = strchr(text, ',');
  if (comma) *comma = '.';
  *out = strtof(text, &stop);
  return !*stop;
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

/* Whether the text is the word, in small or capital letters. */
static bool is_word(dv_cursor text, const char *word) {
  return dv_cursor_left(&text) == strlen(word) && !strncasecmp(text.at, word, strlen(word));
}

static bool read_missing(dv_cursor text, float *out) {
  static const char *const words[] = {"", "nan", "na", "n/a", "null", "none", "-", "?"};
  *out = NAN;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (is_word(text, words[i])) return true;
  bool negative = dv_cursor_take(&text, '-');
  if (!negative) dv_cursor_take(&text, '+');
  *out = negative ? -INFINITY : INFINITY;
  return is_word(text, "inf") || is_word(text, "infinity");
}

/* The number behind e, kept small enough to add to; false where there is none. */
static bool read_exponent(dv_cursor *text, int *exponent) {
  bool negative = dv_cursor_take(text, '-');
  if (!negative) dv_cursor_take(text, '+');
  if (!dv_cursor_left(text)) return false;
  int value = 0;
  for (; dv_cursor_at_digit(text); text->at++)
    if (value < 100000) value = value * 10 + (*text->at - '0');
  *exponent += negative ? -value : value;
  return true;
}

/* The number is digits * 10^exponent, but for digits beyond the 19th. */
bool dv_decimal(dv_cursor text, bool comma, float *out) {
  static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const dv_cursor whole = text;
  bool negative = dv_cursor_take(&text, '-'), point = false, any = false;
  uint64_t digits = 0;
  int exponent = 0, used = 0;
  if (!negative) dv_cursor_take(&text, '+');
  for (; text.at < text.end; text.at++) {
    if (*text.at >= '0' && *text.at <= '9') {
      any = true;
      if (used < 19) {
        digits = digits * 10 + (uint64_t)(*text.at - '0');
        used += digits != 0;
        exponent -= point;
      } else {
        exponent += !point;
      }
    } else if (!point && (*text.at == '.' || (comma && *text.at == ','))) {
      point = true;
    } else {
      break;
    }
  }
  if (!any) return read_missing(whole, out);
  if ((dv_cursor_take(&text, 'e') || dv_cursor_take(&text, 'E')) && !read_exponent(&text, &exponent))
    return false;
  if (dv_cursor_left(&text)) return false;
  if (digits && (exponent < -22 || exponent > 22)) return read_slowly(whole, out);
  double d = exponent < 0 ? (double)digits / powers[digits ? -exponent : 0]
                          : (double)digits * powers[digits ? exponent : 0];
  if (digits && !settles(d)) return read_slowly(whole, out);
  *out = negative ? -(float)d : (float)d;
  return true;
}
