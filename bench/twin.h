/* The twins of bench/peers: the same model in PyTorch and JAX, in processes that are asked line by line. */
#ifndef DV_BENCH_TWIN_H
#define DV_BENCH_TWIN_H

#include "process.h"
#include "progress.h"

enum { TWINS = 3, TWIN_THREADS = 2 };

typedef struct twin {
  const char *name;        /* for the report */
  const char *key;         /* for the JSON file */
  const char *filter_name; /* how it runs one step of the filter */
  const char *import;      /* module that it needs */
  const char *variant;     /* of the script, or NULL */
  const char *python;      /* who runs it; NULL: there is none */
  char script[512];
  char version[96];
  bool lost; /* did not start, or ended */
  process process;
} twin;

/* Fills twins [TWINS]; a python may be NULL. `peers` is the folder of the scripts, `what` the end of their
 * names: "twin", or "pictures". */
void twins_prepare(twin *twins, const char *peers, const char *what, const char *torch_python,
                   const char *jax_python);
void twins_end(twin *twins);
void twin_end(twin *t);

/* Whether it may be asked: it starts at the first question. */
static inline bool twin_there(const twin *t) {
  return t->python && !t->lost;
}

/* Its answer, valid until the next question; NULL when it is not there (any more), which is said once. */
char *twin_ask(twin *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Seconds per update, NaN when it is not there. */
double twin_update(twin *t, const char *initial, int batch, int threads, int updates);
/* The number of threads with which its updates take less time. */
int twin_best_threads(twin *t, const char *initial, int batch);

/* A command line for the script with its variant: room for `more`, which ends with NULL, and 6 words. */
enum { TWIN_WORDS = 32 };
void twin_command(const twin *t, char *words[TWIN_WORDS], char *const *more);

#endif
