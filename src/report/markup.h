/* A growing text of HTML. Text is escaped; data are embedded as JSON. */
#ifndef DV_MARKUP_H
#define DV_MARKUP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dv_markup {
  char *text; /* [length], not terminated */
  size_t length, room;
  bool failed; /* out of memory; everything added later is dropped */
} dv_markup;

void dv_markup_free(dv_markup *markup);

/* Adds it as it is. */
void dv_markup_bytes(dv_markup *markup, const void *bytes, size_t count);
void dv_markup_raw(dv_markup *markup, const char *text);
void dv_markup_format(dv_markup *markup, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds text (NULL: none) with & < > " ' as entities, for content and for quoted attributes. */
void dv_markup_text(dv_markup *markup, const char *text);
/* <tag>text</tag>; nothing when text is NULL. */
void dv_markup_element(dv_markup *markup, const char *tag, const char *text);

/* RFC 4648, with padding. */
void dv_markup_base64(dv_markup *markup, const void *bytes, size_t count);

/* JSON that is safe inside <script>: a quoted string, a number (null if not finite), bytes as base64. */
void dv_markup_json_string(dv_markup *markup, const char *text);
void dv_markup_json_number(dv_markup *markup, double value);
void dv_markup_json_base64(dv_markup *markup, const void *bytes, size_t count);

#endif
