/* Text that grows, and templates of it. */
#ifndef DV_EXPORT_TEXT_H
#define DV_EXPORT_TEXT_H

#include <dvbf/core.h>
#include <stddef.h>

typedef struct dv_text {
  char *at; /* ends with 0; NULL while it is empty */
  size_t used, room;
  bool failed; /* memory was short: what follows is left out */
} dv_text;

/* Appends; numbers have a decimal point. */
void dv_text_put(dv_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void dv_text_append(dv_text *text, const char *piece, size_t length);
void dv_text_free(dv_text *text);
/* Writes the text as a file, atomically. */
dvbf_status dv_text_write(const dv_text *text, const char *path, dvbf_error *error);

/* What a template knows: $name$ stands for a text, and lines between `%if name` or `%unless name` and `%end`
 * are there only where the name is known, or is not. @ stands for the prefix of all symbols. */
typedef struct dv_word {
  const char *name, *text;
} dv_word;
enum { DV_MOST_WORDS = 96 };
typedef struct dv_words {
  const char *prefix;
  dv_word list[DV_MOST_WORDS];
  int count;
} dv_words;

/* The texts must outlive the words. */
void dv_words_set(dv_words *words, const char *name, const char *text);
const char *dv_words_get(const dv_words *words, const char *name);
void dv_text_template(dv_text *text, const unsigned char *piece, size_t size, const dv_words *words);

/* A C identifier made from any text: other characters become _. `out` has room for `size`. */
void dv_identifier(char *out, size_t size, const char *text);
/* Text from a file or a user as part of a comment: one line of printable ASCII that cannot end the comment.
 */
void dv_text_comment(dv_text *text, const char *from);

#endif
