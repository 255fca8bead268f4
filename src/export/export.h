/* Shared by all exports: files and names, growing text and templates, the description of a model, and running
 * programs. */
#ifndef DV_EXPORT_EXPORT_H
#define DV_EXPORT_EXPORT_H

#include "base/file.h"
#include "model/model.h"
#include "settings_tables.h"

#include <dvbf/core.h>
#include <dvbf/export.h>

#include <stddef.h>

/* ---- Files ---- */

/* The folder of a path, with its slash, and its name without `ending`, in which it must end. */
dvbf_status dv_split_path(const char *path, const char *ending, dv_path folder, char name[64],
                          dvbf_error *error);
/* Symbols begin with the setting, or with the name of the file. */
dvbf_status dv_choose_prefix(char out[64], const dv_export_settings *s, const char *name, dvbf_error *error);

/* Refuses settings that mean nothing for files with this ending. */
dvbf_status dv_refuse_settings(const dvbf_settings *settings, const char *ending, dvbf_error *error);

/* The exported model: one member, or one with rounded weights. It must not outlive the model, which must not
 * move. */
typedef struct dv_subject {
  const dvbf_model *model;
  dvbf_model *rounded, alone;
} dv_subject;
dvbf_status dv_subject_choose(dv_subject *out, const dvbf_model *m, const dv_export_settings *s,
                              dvbf_error *error);
void dv_subject_clear(dv_subject *s);

/* ---- Text ---- */

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

/* Words of a template: $name$ is replaced by a text, and lines between `%if name` or `%unless name` and
 * `%end` are kept only if the name is set, or is not. @ stands for the prefix of all symbols. */
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

/* ---- Description of a model ---- */

/* Lines about a model: its class, sizes, fingerprints and settings, without dates and paths. Each begins with
 * `begin`, which starts a comment. */
dvbf_status dv_file_header(dv_text *text, const dvbf_model *model, const dvbf_export_options *options,
                           const char *begin, dvbf_error *error);

/* ---- Programs ---- */

/* A new folder under TMPDIR or /tmp; remove it and the files in it with dv_scratch_remove. */
typedef struct dv_scratch {
  char path[1024];
} dv_scratch;
dvbf_status dv_scratch_make(dv_scratch *scratch, dvbf_error *error);
void dv_scratch_remove(const dv_scratch *scratch);

enum { DV_NO_PROGRAM = 127 };
/* Runs a program, found by PATH, with its output in the file `log`; words end with NULL. *code is its exit
 * status: -1 if it was killed or could not start, DV_NO_PROGRAM if it does not exist. */
dvbf_status dv_run_program(const char *const *words, const char *log, int *code, dvbf_error *error);
/* Whether there is a C compiler; failure to start it now is an error. */
dvbf_status dv_compiler_exists(bool *exists, dvbf_error *error);
/* Runs the C compiler: the words of the variable CC, or cc, and then these. Fails with the beginning of what
 * it prints. */
dvbf_status dv_run_compiler(const char *const *words, const dv_scratch *scratch, dvbf_error *error);
/* The first line of a file, without unprintable characters. */
void dv_first_line(char *out, size_t size, const char *path);

#endif
