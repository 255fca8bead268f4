/* Text: making text from files printable, numbers with a decimal point in any locale, a cursor for parsers,
 * and FNV-1a hashes. */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Length of the UTF-8 character at the beginning of `left` bytes; 0 if there is none. */
size_t dv_character(const char *at, size_t left);

/* Makes a text plain UTF-8 of one line: control characters and invalid bytes become '?', line ends and tabs
 * become blanks, and a character cut at the end is dropped. */
void dv_text_plain(char *text);
/* Whether a name has one of `endings`, such as ".h5 .hdf5", in small or capital letters, behind a stem. */
bool dv_text_ends_in(const char *name, const char *endings);
/* "A B C" becomes "A, B or C"; returns the text. */
const char *dv_text_alternatives(char *text, size_t size);

/* Makes `count` names of at most `size` bytes plain and different from each other: the second "a" becomes "a
 * (2)". The names are `apart` bytes from each other. Beyond 2000 equal names stay. */
void dv_names_tell_apart(char *names, size_t count, size_t apart, size_t size);

/* ---- Locale ---- */

/* Numbers in text have a decimal point, whatever the locale of the program that uses the library. */

/* Switches this thread to the locale "C" and returns the previous one; 0 if that fails. */
locale_t dv_locale_enter(void);
void dv_locale_leave(const locale_t *before);

/* Until the end of the block this thread has the locale "C". Use it only around strtod and printf: functions
 * of the user must run in their own locale. */
#define DV_PLAIN_NUMBERS                                                                                     \
  __attribute__((unused, cleanup(dv_locale_leave))) const locale_t dv_locale_before = dv_locale_enter()

/* snprintf in the locale "C". */
void dv_print(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same behind the text that is in `out`. */
void dv_append(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A result as text: nobody is shown inf or nan. What is infinite is "diverged", NaN is "unknown", and from
 * 1e9 on there are three digits. Returns `out`; `format` takes one double. */
enum { DV_RESULT = 32 };
const char *dv_result_text(char out[DV_RESULT], const char *format, double value);

/* ---- Cursor ---- */

/* Reads text from beginning to end. No function passes the end, so parsers need not check bounds. */
typedef struct dv_cursor {
  const char *at, *end; /* the rest */
} dv_cursor;

static inline dv_cursor dv_cursor_of(const char *text) {
  return (dv_cursor){text, text + strlen(text)};
}

static inline size_t dv_cursor_left(const dv_cursor *c) {
  return (size_t)(c->end - c->at);
}

/* The next character, -1 at the end. */
static inline int dv_cursor_peek(const dv_cursor *c) {
  return c->at < c->end ? (unsigned char)*c->at : -1;
}

static inline bool dv_cursor_at_digit(const dv_cursor *c) {
  int next = dv_cursor_peek(c);
  return next >= '0' && next <= '9';
}

static inline void dv_cursor_pass(dv_cursor *c, size_t count) {
  c->at += count < dv_cursor_left(c) ? count : dv_cursor_left(c);
}

/* Passes `character` if it comes next; returns whether it did. */
static inline bool dv_cursor_take(dv_cursor *c, char character) {
  bool next = c->at < c->end && *c->at == character;
  c->at += next;
  return next;
}

/* The same for a whole text. */
static inline bool dv_cursor_take_text(dv_cursor *c, const char *text) {
  size_t length = strlen(text);
  bool next = length <= dv_cursor_left(c) && !memcmp(c->at, text, length);
  if (next) c->at += length;
  return next;
}

/* Passes all characters of the set that come next. */
static inline void dv_cursor_skip(dv_cursor *c, const char *set) {
  while (c->at < c->end && *c->at && strchr(set, *c->at)) c->at++;
}

/* Reads up to the next `stop`, or to the end, and returns what was read. */
static inline dv_cursor dv_cursor_until(dv_cursor *c, char stop) {
  const char *found = c->at < c->end ? memchr(c->at, stop, dv_cursor_left(c)) : NULL;
  dv_cursor before = {c->at, found ? found : c->end};
  c->at = before.end;
  return before;
}

/* The same text without characters of the set at its beginning and its end. */
static inline dv_cursor dv_cursor_trim(dv_cursor c, const char *set) {
  dv_cursor_skip(&c, set);
  while (c.at < c.end && c.end[-1] && strchr(set, c.end[-1])) c.end--;
  return c;
}

/* The next item of a list with commas, without blanks around it; false after the last. */
static inline bool dv_cursor_item(dv_cursor *list, dv_cursor *to) {
  if (list->at == list->end) return false;
  *to = dv_cursor_trim(dv_cursor_until(list, ','), " ");
  dv_cursor_take(list, ',');
  return true;
}

static inline bool dv_cursor_equals(dv_cursor c, const char *text) {
  return dv_cursor_left(&c) == strlen(text) && !memcmp(c.at, text, dv_cursor_left(&c));
}

/* Copies the text as a string; false if it does not fit into `size` bytes or contains a zero. */
static inline bool dv_cursor_copy(dv_cursor c, char *to, size_t size) {
  size_t length = dv_cursor_left(&c);
  if (length >= size || memchr(c.at, 0, length)) return false;
  memcpy(to, c.at, length);
  to[length] = 0;
  return true;
}

/* ---- Hash: FNV-1a ---- */

static const uint64_t dv_hash_start = 0xcbf29ce484222325;

static inline uint64_t dv_hash_byte(uint64_t hash, unsigned char byte) {
  return (hash ^ byte) * 0x100000001b3;
}

static inline uint64_t dv_hash(uint64_t hash, const void *content, size_t size) {
  const unsigned char *at = content;
  for (size_t i = 0; i < size; i++) hash = dv_hash_byte(hash, at[i]);
  return hash;
}

/* A number, its lowest byte first. */
static inline uint64_t dv_hash_number(uint64_t hash, uint64_t number) {
  for (int i = 0; i < 64; i += 8) hash = dv_hash_byte(hash, (unsigned char)(number >> i));
  return hash;
}
