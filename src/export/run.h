/* Running the C compiler and what it makes. */
#ifndef DV_RUN_H
#define DV_RUN_H

#include <dvbf/core.h>

/* A folder of its own under TMPDIR or /tmp; remove it and the files in it with dv_scratch_remove. */
typedef struct dv_scratch {
  char path[1024];
} dv_scratch;
dvbf_status dv_scratch_make(dv_scratch *scratch, dvbf_error *error);
void dv_scratch_remove(const dv_scratch *scratch);

enum { DV_NO_PROGRAM = 127 };
/* Runs a program, found by PATH, with its output going to the file `log`; words end with NULL. *code is its
 * exit status; where it could not be started DV_NO_PROGRAM if there is none, else -1 as where it was killed.
 */
dvbf_status dv_run_program(const char *const *words, const char *log, int *code, dvbf_error *error);
/* Whether there is a C compiler; that it cannot be started now is a failure. */
dvbf_status dv_compiler_exists(bool *exists, dvbf_error *error);
/* Runs the C compiler: the words of the variable CC, or cc, and then these. Fails with the beginning of what
 * it prints. */
dvbf_status dv_run_compiler(const char *const *words, const dv_scratch *scratch, dvbf_error *error);
/* The first line of a file, without what is not printable. */
void dv_first_line(char *out, size_t size, const char *path);

#endif
