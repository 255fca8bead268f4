/* Growing text (dv_text_put), templates with words and conditional lines (dv_text_template), and safe
 * identifiers and comments from any text (dv_identifier, dv_text_comment). */
#include "export/export.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool make_room(dv_text *t, size_t more) {
  if (t->failed) return false;
  if (t->used + more + 1 <= t->room) return true;
  size_t room = 2 * t->room > t->used + more + 1 ? 2 * t->room : t->used + more + 1024;
  char *longer = dv_realloc(t->at, room, 1);
  if (!longer) {
    t->failed = true;
    return false;
  }
  t->at = longer;
  t->room = room;
  return true;
}

void dv_text_append(dv_text *t, const char *piece, size_t length) {
  if (!make_room(t, length)) return;
  if (length) memcpy(t->at + t->used, piece, length); /* a piece for which memory was short is NULL */
  t->used += length;
  t->at[t->used] = 0;
}

void dv_text_put(dv_text *t, const char *format, ...) {
  DV_PLAIN_NUMBERS;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length < 0 || !make_room(t, (size_t)length)) return;
  va_start(arguments, format);
  vsnprintf(t->at + t->used, (size_t)length + 1, format, arguments);
  va_end(arguments);
  t->used += (size_t)length;
}

void dv_text_join(dv_text *t, const dv_text *more) {
  dv_text_append(t, more->at, more->used);
  t->failed |= more->failed;
}

void dv_text_free(dv_text *t) {
  dv_free(t->at);
  *t = (dv_text){0};
}

dvbf_status dv_text_write(const dv_text *t, const char *path, dvbf_error *error) {
  dv_atomic_file file;
  if (t->failed) return dv_fail_memory(error, "exporting a model");
  dvbf_status status = dv_atomic_open(&file, path, error);
  if (status) return status;
  if (t->used) fwrite(t->at, 1, t->used, file.stream);
  return dv_atomic_commit(&file, error);
}

static void put_number(dv_text *t, dv_array from, size_t i, int digits, const char *suffix) {
  char text[40];
  if (from.bytes || from.ints) {
    dv_text_put(t, "%d", from.bytes ? from.bytes[i] : from.ints[i]);
    return;
  }
  double x = from.reals ? from.reals[i] : (double)from.floats[i];
  dv_print(text, sizeof text, "%.*g", digits, fmax(-DBL_MAX, fmin(DBL_MAX, x)));
  dv_text_put(t, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", suffix);
}

void dv_text_array(dv_text *t, const char *type, const char *name, dv_array from, size_t n, int digits) {
  size_t width = from.bytes || from.ints ? 32 : 6;
  dv_text_put(t, "static const %s %s[%zu] = {", type, name, n ? n : 1);
  for (size_t i = 0; i < n; i++) {
    dv_text_put(t, i % width ? ", " : i ? ",\n    " : "\n    ");
    put_number(t, from, i, digits, strcmp(type, "float") ? "" : "f");
  }
  dv_text_put(t, n ? "};\n" : "0};\n");
}

/* ---- Templates ---- */

static dv_word *find(const dv_words *w, const char *name, size_t length) {
  for (int i = 0; i < w->count; i++)
    if (strlen(w->list[i].name) == length && !strncmp(w->list[i].name, name, length))
      return (dv_word *)&w->list[i];
  return NULL;
}

/* The word of that name, which is added if there is none. */
static dv_word *word_of(dv_words *w, const char *name) {
  dv_word *word = find(w, name, strlen(name));
  if (!word && w->count < DV_MOST_WORDS) *(word = &w->list[w->count++]) = (dv_word){.name = name};
  return word;
}

void dv_words_set(dv_words *w, const char *name, const char *text) {
  dv_word *word = word_of(w, name);
  if (word) word->text = text ? text : "";
}

void dv_words_print(dv_words *w, const char *name, const char *format, ...) {
  DV_PLAIN_NUMBERS;
  dv_word *word = word_of(w, name);
  va_list arguments;
  va_start(arguments, format);
  if (word) vsnprintf(word->own, sizeof word->own, format, arguments);
  if (word) word->text = word->own;
  va_end(arguments);
}

const char *dv_words_get(const dv_words *w, const char *name) {
  const dv_word *word = find(w, name, strlen(name));
  return word ? word->text : NULL;
}

static void put_line(dv_text *t, const char *line, size_t length, const dv_words *w) {
  for (size_t i = 0; i < length;) {
    size_t plain = i;
    while (plain < length && line[plain] != '@' && line[plain] != '$') plain++;
    dv_text_append(t, line + i, plain - i);
    if (plain == length) return;
    if (line[plain] == '@') {
      dv_text_append(t, w->prefix, strlen(w->prefix));
      i = plain + 1;
      continue;
    }
    const char *name = line + plain + 1, *end = memchr(name, '$', length - plain - 1);
    if (!end) return;
    const dv_word *word = find(w, name, (size_t)(end - name));
    if (word) put_line(t, word->text, strlen(word->text), w);
    i = (size_t)(end + 1 - line);
  }
}

/* Whether the line begins with the word, behind which a name follows. */
static bool begins(const char *line, size_t length, const char *word, const char **name, size_t *size) {
  size_t n = strlen(word);
  if (length <= n || strncmp(line, word, n) != 0) return false;
  *name = line + n;
  *size = length - n;
  return true;
}

void dv_text_template(dv_text *t, const unsigned char *piece, size_t size, const dv_words *w) {
  const char *at = (const char *)piece, *end = at + size, *name;
  int depth = 0, hidden = 0; /* conditions that are open; those that hide, counted from the first */
  while (at < end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t length = (size_t)((stop ? stop : end) - at), n;
    bool plain = false;
    if (begins(at, length, "%if ", &name, &n)) {
      depth++;
      if (!hidden && !find(w, name, n)) hidden = depth;
    } else if (begins(at, length, "%unless ", &name, &n)) {
      depth++;
      if (!hidden && find(w, name, n)) hidden = depth;
    } else if (length == 4 && !strncmp(at, "%end", 4)) {
      if (hidden == depth) hidden = 0;
      depth--;
    } else {
      plain = true;
    }
    if (plain && !hidden) {
      put_line(t, at, length, w);
      dv_text_append(t, "\n", 1);
    }
    at += length + 1;
  }
}

/* ---- Names ---- */

void dv_identifier(char *out, size_t size, const char *text) {
  size_t n = 0;
  if (size > 1 && !(isalpha((unsigned char)*text) || *text == '_')) out[n++] = '_';
  for (; *text && n + 1 < size; text++)
    out[n++] = (unsigned char)*text < 128 && isalnum((unsigned char)*text) ? *text : '_';
  if (size) out[n] = 0;
}

void dv_text_comment(dv_text *t, const char *from) {
  for (; *from; from++) {
    unsigned char c = (unsigned char)*from;
    char one = c >= 32 && c < 127 && c != '*' && c != '\\' && c != '?' ? *from : '.';
    dv_text_append(t, &one, 1);
  }
}
