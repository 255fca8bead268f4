/* A growing text of HTML. Text is escaped; data are embedded as JSON. */
#pragma once

#include <jansson.h>
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

/* Adds JSON that is safe inside <script>, and releases it. NULL, as jansson returns when memory is short,
 * fails. */
void dv_markup_json(dv_markup *markup, json_t *json);
/* Adds `before` as it is, then text as JSON. */
void dv_markup_string(dv_markup *markup, const char *before, const char *text);
/* Text (NULL: none) as JSON; bytes above 127 that are not UTF-8 become ?. */
json_t *dv_markup_json_text(const char *text);
/* A string of base64. */
json_t *dv_markup_json_bytes(const void *bytes, size_t count);
