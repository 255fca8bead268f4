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

static void put_list(dv_text *t, const char *format, va_list arguments) {
  DV_PLAIN_NUMBERS;
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (length < 0 || !make_room(t, (size_t)length)) return;
  vsnprintf(t->at + t->used, (size_t)length + 1, format, arguments);
  t->used += (size_t)length;
}

void dv_text_put(dv_text *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put_list(t, format, arguments);
  va_end(arguments);
}

void dv_text_join(dv_text *t, const dv_text *more) {
  dv_text_append(t, more->at, more->used);
  t->failed |= more->failed;
}

void dv_text_free(dv_text *t) {
  dv_free(t->at);
  *t = (dv_text){0};
}

void dv_texts_free(dv_text *const *list, size_t count) {
  for (size_t i = 0; i < count; i++) dv_text_free(list[i]);
}

dvbf_status dv_text_write(const dv_text *t, const char *path, dvbf_error *error) {
  dv_atomic_file file;
  if (t->failed) return dv_fail_memory(error, "exporting a model");
  dvbf_status status = dv_atomic_open(&file, path, error);
  if (status) return status;
  if (t->used) fwrite(t->at, 1, t->used, file.stream);
  return dv_atomic_commit(&file, error);
}

static void put_entry(dv_text *t, dv_array from, size_t i, int digits, const char *suffix) {
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
    put_entry(t, from, i, digits, strcmp(type, "float") ? "" : "f");
  }
  dv_text_put(t, n ? "};\n" : "0};\n");
}

/* ---- Templates ---- */

static dv_word *find(const dv_words *w, dv_cursor name) {
  for (int i = 0; i < w->count; i++)
    if (dv_cursor_equals(name, w->list[i].name)) return (dv_word *)&w->list[i];
  return NULL;
}

static bool is_set(const dv_words *w, dv_cursor name) {
  const dv_word *word = find(w, name);
  return word && word->set;
}

/* The word of that name, which is added if there is none. */
static dv_word *word_named(dv_words *w, const char *name) {
  dv_word *word = find(w, dv_cursor_of(name));
  if (word) return word;
  if (w->count < DV_MOST_WORDS) w->count++;
  word = &w->list[w->count - 1];
  word->name = name;
  return word;
}

void dv_words_turn(dv_words *w, const char *name, bool on) {
  word_named(w, name)->set = on;
}

dv_text *dv_words_text(dv_words *w, const char *name) {
  dv_word *word = word_named(w, name);
  dv_text_free(&word->text);
  word->set = true;
  return &word->text;
}

void dv_words_set(dv_words *w, const char *name, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put_list(dv_words_text(w, name), format, arguments);
  va_end(arguments);
}

void dv_words_clear(dv_words *w) {
  for (int i = 0; i < w->count; i++) dv_text_free(&w->list[i].text);
  w->count = 0;
}

static void put_line(dv_text *t, dv_cursor line, const dv_words *w);

/* $name$, $name|where it is set$ or $name|where it is set|where it is not$ */
static void put_named(dv_text *t, dv_cursor word, const dv_words *w) {
  dv_cursor name = dv_cursor_until(&word, '|'), text;
  const dv_word *found = find(w, name);
  if (dv_cursor_take(&word, '|')) {
    text = dv_cursor_until(&word, '|');
    dv_cursor_take(&word, '|');
    put_line(t, is_set(w, name) ? text : word, w);
  } else if (found) {
    t->failed |= found->text.failed;
    if (found->text.used) put_line(t, dv_cursor_of(found->text.at), w);
  }
}

static void put_line(dv_text *t, dv_cursor line, const dv_words *w) {
  while (dv_cursor_left(&line)) {
    const char *begin = line.at;
    while (line.at < line.end && *line.at != '@' && *line.at != '$') line.at++;
    dv_text_append(t, begin, (size_t)(line.at - begin));
    if (dv_cursor_take(&line, '@')) dv_text_append(t, w->prefix, strlen(w->prefix));
    if (!dv_cursor_take(&line, '$')) continue;
    put_named(t, dv_cursor_until(&line, '$'), w);
    dv_cursor_take(&line, '$');
  }
}

void dv_text_template(dv_text *t, const unsigned char *piece, size_t size, const dv_words *w) {
  dv_cursor rest = {(const char *)piece, (const char *)piece + size};
  int depth = 0, hidden = 0; /* conditions that are open; those that hide, counted from the first */
  while (dv_cursor_left(&rest)) {
    dv_cursor line = dv_cursor_until(&rest, '\n');
    dv_cursor_take(&rest, '\n');
    bool unless = dv_cursor_take_text(&line, "%unless "), single = false, holds = true;
    if (unless || dv_cursor_take_text(&line, "%if ")) {
      holds = is_set(w, dv_cursor_until(&line, ':')) != unless;
      single = dv_cursor_take(&line, ':');
      depth += !single;
      if (!single && !hidden && !holds) hidden = depth;
    } else if (dv_cursor_equals(line, "%else")) {
      hidden = hidden == depth ? 0 : hidden ? hidden : depth;
    } else if (dv_cursor_equals(line, "%end")) {
      if (hidden == depth) hidden = 0;
      depth--;
    } else {
      single = true;
    }
    if (!single || !holds || hidden) continue;
    put_line(t, line, w);
    dv_text_append(t, "\n", 1);
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
