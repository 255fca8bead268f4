/* Reads text from its beginning to its end. No function passes the end, whatever the text holds, so parsers
 * need no checks of their own. */
#ifndef DV_CURSOR_H
#define DV_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct dv_cursor {
  const char *at, *end; /* what is left */
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

/* Passes `character` if it comes next, and says whether it did. */
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
static inline bool dv_cursor_item(dv_cursor *list, dv_cursor *out) {
  if (list->at == list->end) return false;
  *out = dv_cursor_trim(dv_cursor_until(list, ','), " ");
  dv_cursor_take(list, ',');
  return true;
}

static inline bool dv_cursor_equals(dv_cursor c, const char *text) {
  return dv_cursor_left(&c) == strlen(text) && !memcmp(c.at, text, dv_cursor_left(&c));
}

/* Copies the text as a string that ends with a zero; false if it does not fit into `size` bytes or contains a
 * zero. */
static inline bool dv_cursor_copy(dv_cursor c, char *out, size_t size) {
  size_t length = dv_cursor_left(&c);
  if (length >= size || memchr(c.at, 0, length)) return false;
  memcpy(out, c.at, length);
  out[length] = 0;
  return true;
}

#endif
