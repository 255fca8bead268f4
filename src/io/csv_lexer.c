/* Lines and fields of a text table (dv_lines_next, dv_fields_next), exact decimal numbers that do not depend
 * on the locale (dv_decimal), and dates and times (dv_read_date). Reading goes through a cursor that never
 * passes the end. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/csv.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD_BLANKS " \t"

/* ---- Encoding ---- */

/* Excel writes "Unicode text" as UTF-16, with a mark in front; some loggers leave the mark out. */
static void recognise_code(dv_lines *in) {
  unsigned char first[4] = {0};
  if (in->offset || pread(in->descriptor, first, sizeof first, 0) < (ssize_t)sizeof first) return;
  bool little = (first[0] == 0xff && first[1] == 0xfe) || (first[0] && !first[1] && first[2] && !first[3]);
  bool big = (first[0] == 0xfe && first[1] == 0xff) || (!first[0] && first[1] && !first[2] && first[3]);
  in->code = little ? DV_UTF16_LITTLE : big ? DV_UTF16_BIG : DV_BYTES;
}

/* One unit of UTF-16 as UTF-8; returns the bytes written, at most 3. Halves of pairs become '?'. */
static size_t put_unit(unsigned unit, char *out) {
  if (unit == 0xfeff) return 0;
  if (unit >= 0xd800 && unit < 0xe000) unit = '?';
  if (unit < 0x80) {
    out[0] = (char)unit;
    return 1;
  }
  size_t n = unit < 0x800 ? 2 : 3;
  out[0] = (char)(n == 2 ? 0xc0 | unit >> 6 : 0xe0 | unit >> 12);
  if (n == 3) out[1] = (char)(0x80 | (unit >> 6 & 63));
  out[n - 1] = (char)(0x80 | (unit & 63));
  return n;
}

/* Reads UTF-16 into `room` bytes of UTF-8; returns what was read of the file, and *made. */
static ssize_t read_unicode(dv_lines *in, char *out, size_t room, size_t *made) {
  unsigned char raw[1 << 14];
  size_t most = room / 3 * 2 < sizeof raw ? room / 3 * 2 : sizeof raw;
  ssize_t got = pread(in->descriptor, raw, most, in->offset);
  *made = 0;
  for (ssize_t i = 0; i + 1 < got; i += 2) {
    unsigned low = raw[in->code == DV_UTF16_LITTLE ? i : i + 1],
             high = raw[in->code == DV_UTF16_LITTLE ? i + 1 : i];
    *made += put_unit(low | high << 8, out + *made);
  }
  return got > 1 ? got & ~(ssize_t)1 : got < 0 ? got : 0;
}

dvbf_status dv_lines_fill(dv_lines *in, dvbf_error *error) {
  enum { FIRST_ROOM = 1 << 18, LONGEST_LINE = 1 << 26, LEAST_ROOM = 64 };
  recognise_code(in);
  if (in->begin) memmove(in->buffer, in->buffer + in->begin, in->end - in->begin);
  in->end -= in->begin;
  in->begin = 0;
  if (in->room - in->end < LEAST_ROOM) {
    size_t room = in->room ? 2 * in->room : FIRST_ROOM;
    char *larger = room > LONGEST_LINE ? NULL : dv_realloc(in->buffer, room, 1);
    if (!larger)
      return dv_fail(error, DVBF_FORMAT, "%.200s, line %zu: is longer than %d bytes, so this is not a table",
                     in->path, in->number + 1, LONGEST_LINE);
    in->buffer = larger;
    in->room = room;
  }
  size_t left = in->room - in->end, made = 0;
  char *to = in->buffer + in->end;
  ssize_t got = in->code ? read_unicode(in, to, left, &made) : pread(in->descriptor, to, left, in->offset);
  if (got < 0) return dv_fail(error, DVBF_IO, "%.200s: cannot be read: %s", in->path, strerror(errno));
  in->ended = got == 0;
  in->end += in->code ? made : (size_t)got;
  in->offset += got;
  return DVBF_OK;
}

/* ---- Lines ---- */

/* The buffer up to the next end of line, which is passed; false: no end is there. */
static bool take_line(dv_lines *in, size_t searched, dv_cursor *line) {
  const char *from = in->buffer + in->begin;
  size_t left = in->end - in->begin;
  const char *stop = left > searched ? memchr(from + searched, '\n', left - searched) : NULL;
  if (!stop && (!in->ended || !left)) return false;
  *line = (dv_cursor){from, stop ? stop : from + left};
  in->begin += dv_cursor_left(line) + (stop != NULL);
  in->number++;
  return true;
}

dvbf_status dv_lines_next(dv_lines *in, dv_cursor *line, dvbf_error *error) {
  in->remark = (dv_cursor){NULL, NULL};
  for (size_t searched = 0;;) {
    if (!take_line(in, searched, line)) {
      *line = in->remark = (dv_cursor){NULL, NULL};
      if (in->ended) return DVBF_OK;
      searched = in->end - in->begin;
      dvbf_status status = dv_lines_fill(in, error);
      if (status) return status;
      continue;
    }
    searched = 0;
    if (memchr(line->at, 0, dv_cursor_left(line)))
      return dv_fail(error, DVBF_FORMAT,
                     "%.200s, line %zu: holds a zero byte, so this is not a table in text", in->path,
                     in->number);
    if (in->number == 1) dv_cursor_take_text(line, "\xef\xbb\xbf"); /* a mark of UTF-8 */
    while (line->end > line->at && (line->end[-1] == '\r' || line->end[-1] == ' ')) line->end--;
    dv_cursor first = *line;
    dv_cursor_skip(&first, FIELD_BLANKS);
    if (dv_cursor_left(&first) && dv_cursor_peek(&first) != '#') return DVBF_OK;
    dv_cursor_skip(&first, "# \t");
    if (dv_cursor_left(&first)) in->remark = first;
  }
}

/* ---- Fields ---- */

static bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

dv_fields dv_fields_of(dv_cursor line, char separator) {
  if (separator == ' ') dv_cursor_skip(&line, FIELD_BLANKS);
  return (dv_fields){line, separator, true, false, false};
}

static dv_cursor quoted_field(dv_fields *f) {
  dv_cursor *line = &f->line, out = *line;
  do {
    out.end = dv_cursor_until(line, '"').end;
    f->open = !dv_cursor_take(line, '"');
  } while (dv_cursor_take(line, '"'));
  if (f->separator != ' ') dv_cursor_skip(line, " ");
  int next = dv_cursor_peek(line);
  if (next >= 0 && next != f->separator && !(f->separator == ' ' && is_blank((char)next))) f->open = true;
  return out;
}

bool dv_fields_next(dv_fields *f, dv_cursor *out) {
  if (!f->more) return false;
  const char separator = f->separator;
  while (separator != ' ' && f->line.at < f->line.end && is_blank(*f->line.at) && *f->line.at != separator)
    f->line.at++;
  f->quoted = dv_cursor_take(&f->line, '"');
  if (f->quoted) {
    *out = quoted_field(f);
  } else {
    *out = f->line;
    if (separator == ' ')
      while (f->line.at < f->line.end && !is_blank(*f->line.at)) f->line.at++;
    else
      while (f->line.at < f->line.end && *f->line.at != separator) f->line.at++;
    out->end = f->line.at;
    while (out->end > out->at && is_blank(out->end[-1])) out->end--;
  }
  if (separator == ' ') dv_cursor_skip(&f->line, FIELD_BLANKS);
  f->more = dv_cursor_left(&f->line);
  if (separator != ' ') dv_cursor_pass(&f->line, 1);
  return true;
}

size_t dv_fields_count(dv_cursor line, char separator) {
  dv_fields f = dv_fields_of(line, separator);
  dv_cursor field = {NULL, NULL};
  size_t count = 0;
  while (dv_fields_next(&f, &field)) count++;
  return count > 1 && !dv_cursor_left(&field) ? count - 1 : count;
}

/* ---- Decimal numbers ---- */

/* By the C library, for rare cases: many digits next to the middle of two floats, large exponents. */
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

/* The number behind e, kept small enough to add to; false if there is none. */
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

bool dv_read_double(dv_cursor text, bool comma, double *out) {
  DV_PLAIN_NUMBERS;
  char copy[64], *stop;
  if (!dv_cursor_left(&text) || !dv_cursor_copy(text, copy, sizeof copy)) return false;
  if (copy[strspn(copy, "0123456789+-.,eE")]) return false;
  char *point = comma ? strchr(copy, ',') : NULL;
  if (point) *point = '.';
  *out = strtod(copy, &stop);
  return !*stop && *out >= -1e30 && *out <= 1e30;
}

/* ---- Grouped digits ---- */

/* Passes a separator of groups: a mark, a blank, an apostrophe or a non-breaking blank; 0: none. */
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

unsigned dv_decimal_marks(dv_cursor text) {
  float value;
  dv_cursor_skip(&text, "+-");
  const char *comma = memchr(text.at, ',', dv_cursor_left(&text));
  const char *dot = memchr(text.at, '.', dv_cursor_left(&text));
  bool plain_comma = comma && dv_decimal(text, true, &value),
       plain_dot = dot && dv_decimal(text, false, &value);
  if ((!comma && !dot) || (!plain_comma && !plain_dot && !dv_decimal_grouped(text, ',', &value) &&
                           !dv_decimal_grouped(text, '.', &value)))
    return 0;
  if (comma && dot) /* the last one is decimal */
    return DV_COMMA | DV_DOT | (comma > dot ? DV_DECIMAL_COMMA : DV_DECIMAL_DOT);
  if (comma) return DV_COMMA | (plain_comma && is_decimal(text, comma) ? DV_DECIMAL_COMMA : 0);
  return DV_DOT | (plain_dot && is_decimal(text, dot) ? DV_DECIMAL_DOT : 0);
}
