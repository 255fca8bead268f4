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

/* ---- Thousands ---- */

/* Passes what separates groups: a mark, a blank, an apostrophe or a blank that does not break; 0: none. */
static int take_group(dv_cursor *text, char decimal) {
  static const char others[] = " '.,";
  int next = dv_cursor_peek(text);
  if (dv_cursor_take_text(text, "\xc2\xa0") || dv_cursor_take(text, '\xa0')) return ' ';
  if (next <= 0 || next == decimal || !strchr(others, next)) return 0;
  text->at++;
  return next;
}

bool dv_decimal_grouped(dv_cursor text, char decimal, float *out) {
  char plain[64];
  size_t used = 0, digits = 0;
  int group = 0;
  if (dv_cursor_left(&text) >= sizeof plain) return false;
  if (dv_cursor_peek(&text) == '-' || dv_cursor_peek(&text) == '+') plain[used++] = *text.at++;
  for (bool first = true;; first = false, digits = 0) {
    for (; dv_cursor_at_digit(&text); digits++) plain[used++] = *text.at++;
    if (first ? digits < 1 || digits > 3 : digits != 3) return false;
    int mark = take_group(&text, decimal);
    if (!mark) break;
    if (group && mark != group) return false;
    group = mark;
  }
  if (!group || plain[strspn(plain, "+-")] == '0') return false;
  if (dv_cursor_take(&text, decimal)) plain[used++] = '.';
  while (dv_cursor_left(&text)) plain[used++] = *text.at++;
  return dv_decimal((dv_cursor){plain, plain + used}, false, out);
}

/* Whether a mark cannot separate groups, so that it is the decimal mark. */
static bool is_decimal(dv_cursor text, const char *mark) {
  size_t before = (size_t)(mark - text.at), after = (size_t)(text.end - mark) - 1;
  return before < 1 || before > 3 || after != 3 || *text.at == '0';
}

dv_marks dv_decimal_marks(dv_cursor text) {
  dv_marks marks = {0};
  float value;
  dv_cursor_skip(&text, "+-");
  const char *comma = memchr(text.at, ',', dv_cursor_left(&text));
  const char *dot = memchr(text.at, '.', dv_cursor_left(&text));
  if (!comma && !dot) return marks;
  bool plain_comma = comma && dv_decimal(text, true, &value),
       plain_dot = dot && dv_decimal(text, false, &value);
  bool groups_of_dots = dv_decimal_grouped(text, ',', &value),
       groups_of_commas = dv_decimal_grouped(text, '.', &value);
  if (!plain_comma && !plain_dot && !groups_of_dots && !groups_of_commas) return marks;
  marks.comma = comma;
  marks.dot = dot;
  if (comma && dot) { /* the last one is decimal */
    marks.decimal_comma = comma > dot;
    marks.decimal_dot = !marks.decimal_comma;
  } else if (comma) {
    marks.decimal_comma = plain_comma && is_decimal(text, comma);
  } else {
    marks.decimal_dot = plain_dot && is_decimal(text, dot);
  }
  return marks;
}
