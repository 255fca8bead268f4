/* A growing HTML text (dv_markup_*): escaped text, elements, base64, and JSON that cannot end its script. The
 * first failure is kept, and nothing is added after it. */
#include "report/markup.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void dv_markup_free(dv_markup *markup) {
  dv_free(markup->text);
  *markup = (dv_markup){0};
}

/* Memory for `count` more bytes, or NULL. */
static char *reserve(dv_markup *m, size_t count) {
  if (m->failed) return NULL;
  if (count > m->room - m->length) {
    size_t room = m->room < 4096 ? 4096 : m->room;
    while (room - m->length < count && room <= SIZE_MAX / 2) room *= 2;
    char *text = room - m->length < count ? NULL : dv_realloc(m->text, room, 1);
    m->failed = !text;
    if (!text) return NULL;
    m->text = text;
    m->room = room;
  }
  return m->text + m->length;
}

void dv_markup_bytes(dv_markup *m, const void *bytes, size_t count) {
  char *at = reserve(m, count);
  if (!at || !count) return;
  memcpy(at, bytes, count);
  m->length += count;
}

void dv_markup_raw(dv_markup *m, const char *text) {
  dv_markup_bytes(m, text, strlen(text));
}

void dv_markup_format(dv_markup *m, const char *format, ...) {
  DV_PLAIN_NUMBERS;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= sizeof text)
    m->failed = true;
  else
    dv_markup_bytes(m, text, (size_t)length);
}

static const char *entity(char c) {
  switch (c) {
  case '&': return "&amp;";
  case '<': return "&lt;";
  case '>': return "&gt;";
  case '"': return "&quot;";
  case '\'': return "&#39;";
  case '\n':
  case '\t': return NULL;
  default: return (unsigned char)c < 32 ? "" : NULL; /* what XML does not allow */
  }
}

void dv_markup_text(dv_markup *m, const char *text) {
  for (; text && *text; text++)
    if (entity(*text))
      dv_markup_raw(m, entity(*text));
    else
      dv_markup_bytes(m, text, 1);
}

void dv_markup_element(dv_markup *m, const char *tag, const char *text) {
  if (!text) return;
  dv_markup_format(m, "<%s>", tag);
  dv_markup_text(m, text);
  dv_markup_format(m, "</%s>\n", tag);
}

void dv_markup_base64(dv_markup *m, const void *bytes, size_t count) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *from = bytes;
  size_t groups = count / 3 + (count % 3 != 0);
  char *to = groups <= SIZE_MAX / 4 ? reserve(m, 4 * groups) : NULL;
  if (!to) {
    m->failed = true;
    return;
  }
  for (size_t i = 0; i < count; i += 3, to += 4) {
    size_t left = count - i;
    uint32_t three = (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
                     (left > 2 ? (uint32_t)from[i + 2] : 0);
    to[0] = digits[three >> 18];
    to[1] = digits[three >> 12 & 63];
    to[2] = digits[three >> 6 & 63];
    to[3] = digits[three & 63];
    if (left < 3) to[3] = '=';
    if (left < 2) to[2] = '=';
  }
  m->length += 4 * groups;
}

/* Letters that could end the script are written as \u00XX. JSON has them in strings only. */
static int receive(const char *text, size_t length, void *user) {
  dv_markup *m = user;
  size_t from = 0;
  for (size_t i = 0; i < length; i++) {
    if (!strchr("<>&'", text[i])) continue;
    dv_markup_bytes(m, text + from, i - from);
    dv_markup_format(m, "\\u%04x", (unsigned)text[i]);
    from = i + 1;
  }
  dv_markup_bytes(m, text + from, length - from);
  return m->failed ? -1 : 0;
}

void dv_markup_json(dv_markup *m, json_t *json) {
  if (!json || json_dump_callback(json, receive, m, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)))
    m->failed = true;
  json_decref(json);
}

json_t *dv_markup_json_text(const char *text) {
  json_t *json = json_string(text ? text : "");
  char *copy = json ? NULL : dv_strdup(text ? text : "");
  if (!copy) return json;
  for (char *c = copy; *c; c++)
    if ((unsigned char)*c > 127) *c = '?';
  json = json_string(copy);
  dv_free(copy);
  return json;
}

void dv_markup_string(dv_markup *m, const char *before, const char *text) {
  dv_markup_raw(m, before);
  dv_markup_json(m, dv_markup_json_text(text));
}

json_t *dv_markup_json_bytes(const void *bytes, size_t count) {
  dv_markup base64 = {0};
  dv_markup_base64(&base64, bytes, count);
  json_t *json = base64.failed ? NULL : json_stringn(base64.text, base64.length);
  dv_markup_free(&base64);
  return json;
}
