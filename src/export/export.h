/* Shared by all targets: what an export is of, growing text and templates, the description of a model, and
 * running programs. */
#pragma once

#include "base/file.h"
#include "model/model.h"
#include "settings_tables.h"

#include <dvbf/core.h>
#include <dvbf/export.h>

#include <stddef.h>

/* ---- Targets ---- */

/* An export as its target gets it from dvbf_export. */
typedef struct dv_export {
  const char *path;
  dv_path folder;          /* of the path, with its slash */
  char name[64];           /* of the file, without its ending */
  const dvbf_model *given; /* the caller's model */
  const dvbf_model *model; /* what is exported of it: a member, with rounded weights */
  dvbf_model *rounded, alone;
  const dv_export_settings *settings;
  const dvbf_export_options *options;
  dvbf_export_result *result; /* has the prefix of all symbols */
} dv_export;

/* A target: `DV_TARGET(fmu) {...}` in its file, and a row in export.c. It refuses existing files, writes
 * e->path and fills *e->result. */
typedef dvbf_status dv_export_fn(const dv_export *e, dvbf_error *error);
#define DV_TARGET(name)                                                                                      \
  dv_export_fn dv_export_##name;                                                                             \
  dvbf_status dv_export_##name(const dv_export *e, dvbf_error *error)

/* The path of a further file, named like the first with another ending; refuses an existing one. */
dvbf_status dv_export_path(dv_path out, const dv_export *e, const char *ending, dvbf_error *error);

/* ---- Text ---- */

typedef struct dv_text {
  char *at; /* ends with 0; NULL while it is empty */
  size_t used, room;
  bool failed; /* memory was short: what follows is left out */
} dv_text;

/* Appends; numbers have a decimal point. */
void dv_text_put(dv_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void dv_text_append(dv_text *text, const char *piece, size_t length);
/* Appends a whole text; it fails with it. */
void dv_text_join(dv_text *text, const dv_text *more);
void dv_text_free(dv_text *text);
/* Frees all that are listed. */
#define DV_TEXT_FREE(...)                                                                                    \
  dv_texts_free((dv_text *[]){__VA_ARGS__}, sizeof((dv_text *[]){__VA_ARGS__}) / sizeof(dv_text *))
void dv_texts_free(dv_text *const *list, size_t count);
/* Writes the text as a file, atomically. */
dvbf_status dv_text_write(const dv_text *text, const char *path, dvbf_error *error);

/* static const TYPE NAME[n] = {...}; with the numbers of the array that is not NULL; reals have that many
 * digits. */
typedef struct dv_array {
  const double *reals;
  const float *floats;
  const unsigned char *bytes;
  const int *ints;
} dv_array;
void dv_text_array(dv_text *text, const char *type, const char *name, dv_array from, size_t n, int digits);

/* Words of a template: $name$ is replaced by a text, and lines between `%if name` or `%unless name`, `%else`
 * and `%end` are kept only if the name is set, or is not; `%if name:` and `%unless name:` are of the rest of
 * their line. $name|text$ and $name|text|other$ choose within a line. @ stands for the prefix of all symbols.
 */
typedef struct dv_word {
  const char *name;
  dv_text text;
  bool set;
} dv_word;
enum { DV_MOST_WORDS = 128 };
typedef struct dv_words {
  const char *prefix;
  dv_word list[DV_MOST_WORDS];
  int count;
} dv_words;

/* Sets a word without a text, or no longer. */
void dv_words_turn(dv_words *words, const char *name, bool on);
/* Sets a word whose text, empty at first, is then written. */
dv_text *dv_words_text(dv_words *words, const char *name);
/* Sets a word; numbers have a decimal point. */
void dv_words_set(dv_words *words, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void dv_words_clear(dv_words *words);
void dv_text_template(dv_text *text, const unsigned char *piece, size_t size, const dv_words *words);

/* A C identifier made from any text: other characters become _. `out` has room for `size`. */
void dv_identifier(char *out, size_t size, const char *text);
/* Text from a file or a user as part of a comment: one line of printable ASCII that cannot end the comment.
 */
void dv_text_comment(dv_text *text, const char *from);

/* ---- Description of a model ---- */

/* Lines about the model: its class, sizes, fingerprints and settings, without dates and paths. Each begins
 * with `begin`, which starts a comment. */
dvbf_status dv_file_header(dv_text *text, const dv_export *e, const char *begin, dvbf_error *error);

/* ---- Programs ---- */

/* A new folder under TMPDIR or /tmp; remove it and the files in it with dv_scratch_remove. */
typedef struct dv_scratch {
  char path[1024];
} dv_scratch;
dvbf_status dv_scratch_make(dv_scratch *scratch, dvbf_error *error);
void dv_scratch_remove(const dv_scratch *scratch);

/* Whether there is a C compiler; failure to start it now is an error. */
dvbf_status dv_compiler_exists(bool *exists, dvbf_error *error);
/* Runs the C compiler: the words of the variable CC, or cc, and then these. Fails with the beginning of what
 * it prints. */
dvbf_status dv_run_compiler(const char *const *words, const dv_scratch *scratch, dvbf_error *error);
