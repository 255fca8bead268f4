/* Text from outside made printable and distinct (dv_text_plain, dv_names_tell_apart), printing in the locale
 * "C" whatever the locale of the calling program (dv_locale_enter, dv_print), the sentence of a failure
 * (dv_report; error.h) and the version of the library. */
#include "base/text.h"

#include "base/error.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

size_t dv_character(const char *text, size_t left) {
  const unsigned char *at = (const unsigned char *)text;
  if (!left) return 0;
  size_t n = at[0] < 0x80                    ? 1
             : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
             : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
             : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                             : 0;
  if (n > left) return 0;
  for (size_t i = 1; i < n; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  bool surrogate = n == 3 && at[0] == 0xed && at[1] >= 0xa0;
  bool longer = (n == 3 && at[0] == 0xe0 && at[1] < 0xa0) || (n == 4 && at[0] == 0xf0 && at[1] < 0x90);
  bool beyond = n == 4 && at[0] == 0xf4 && at[1] >= 0x90;
  return surrogate || longer || beyond ? 0 : n;
}

/* Whether a character is cut after `left` bytes. */
static bool is_cut(const char *at, size_t left) {
  unsigned char first = (unsigned char)*at;
  size_t needed = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
  if (needed <= left) return false;
  for (size_t i = 1; i < left; i++)
    if (((unsigned char)at[i] & 0xc0) != 0x80) return false;
  return true;
}

void dv_text_plain(char *text) {
  size_t left = strlen(text);
  for (char *at = text; left;) {
    unsigned char c = (unsigned char)*at;
    size_t n = dv_character(at, left);
    if (!n && is_cut(at, left)) {
      *at = 0;
      return;
    }
    if (c == '\n' || c == '\t' || c == '\r')
      *at = ' ';
    else if (!n || c < ' ' || c == 127)
      *at = '?';
    else if (n == 2 && c == 0xc2 && (unsigned char)at[1] < 0xa0) /* control characters of two bytes */
      at[0] = at[1] = '?';
    at += n ? n : 1;
    left -= n ? n : 1;
  }
}

static bool is_taken(const char *names, size_t before, size_t apart, const char *name) {
  for (size_t i = 0; i < before; i++)
    if (!strcmp(names + i * apart, name)) return true;
  return false;
}

void dv_names_tell_apart(char *names, size_t count, size_t apart, size_t size) {
  enum { NAMES_COMPARED = 2000, LONGEST = 256 };
  char base[LONGEST], end[16], next[LONGEST + 16];
  for (size_t i = 0; i < count; i++) dv_text_plain(names + i * apart);
  for (size_t i = 1; i < count && count <= NAMES_COMPARED && size <= LONGEST; i++) {
    char *name = names + i * apart;
    snprintf(base, sizeof base, "%s", name);
    for (int k = 2; is_taken(names, i, apart, name); k++) {
      snprintf(end, sizeof end, " (%d)", k);
      size_t room = size - 1 - strlen(end);
      if (strlen(base) > room) base[room] = 0;
      dv_text_plain(base); /* the cut may have gone through a character */
      snprintf(next, sizeof next, "%s%s", base, end);
      memcpy(name, next, strlen(next) + 1);
    }
  }
}

bool dv_text_ends_in(const char *name, const char *endings) {
  size_t length = strlen(name);
  for (const char *at = endings; *at; at += strspn(at, " ")) {
    size_t n = strcspn(at, " ");
    if (length > n && !strncasecmp(name + length - n, at, n)) return true;
    at += n;
  }
  return false;
}

const char *dv_text_alternatives(char *text, size_t size) {
  for (char *last = strrchr(text, ' '), *blank = last; blank && strlen(text) + 4 <= size;) {
    bool is_last = blank == last;
    memmove(blank + (is_last ? 4 : 2), blank + 1, strlen(blank));
    memcpy(blank, is_last ? " or " : ", ", is_last ? 4 : 2);
    while (blank > text && *--blank != ' ') {}
    if (*blank != ' ') break;
  }
  return text;
}

/* ---- Locale ---- */

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

void dv_append(char *out, size_t size, const char *format, ...) {
  DV_PLAIN_NUMBERS;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(out + strlen(out), size - strlen(out), format, arguments);
  va_end(arguments);
}

const char *dv_result_text(char out[DV_RESULT], const char *format, double value) {
  if (isfinite(value) && fabs(value) >= 1e9) format = strstr(format, "%%") ? "%.3g %%" : "%.3g";
  if (!isfinite(value)) format = isnan(value) ? "unknown" : "diverged";
  dv_print(out, DV_RESULT, format, value);
  return out;
}

/* ---- Failures ---- */

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
