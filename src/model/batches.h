/* Running a model over many sequences, and the check that ranks may do so together. */
#pragma once

#include "base/ranks.h"
#include "engine/threads.h"
#include "model/model.h"

#include <dvbf/core.h>

/* ---- Workers ---- */

/* Memory of one thread for running a program over sequences. */

typedef struct dv_worker {
  const dvbf_model *model;
  const dvbf_program *program;
  dvbf_run run;  /* with the model's parameters; its conditions and the keys of its noise are the caller's */
  float *frames; /* [steps][n_x] room for x of one sequence if it is read from a file, else NULL */
} dv_worker;

/* For a program of `model` and sequences of the sizes of `s` (NULL: none are loaded). All must outlive it.
 * Clear it also after a failure. */
dvbf_status dv_worker_init(dv_worker *worker, const dvbf_model *model, const dvbf_program *program,
                           const dvbf_sequences *s, dvbf_error *error);
void dv_worker_clear(dv_worker *worker);

/* `count` of them in one array. */
dvbf_status dv_workers_new(dv_worker **out, int count, const dvbf_model *model, const dvbf_program *program,
                           const dvbf_sequences *s, dvbf_error *error);
void dv_workers_free(dv_worker *workers, int count);

/* Fills the inputs with sequences index[0 .. count-1], rows past `count` with weight 0. Steps from `observe`
 * on, and past a sequence's length, are masked, as is NaN; masked values are 0. */
void dv_worker_load(dv_worker *worker, const dvbf_sequences *from, const uint32_t *index, int count,
                    int observe);

/* ---- Passes ---- */

/* A forward pass of a model over a set of sequences, shard by shard on all workers. */

typedef struct dv_pass {
  const dvbf_model *model;
  dv_threads *pool;
  dvbf_program program;
  int observe;
  int samples;        /* rows of each sequence */
  dv_worker *workers; /* one for each of the pool */
} dv_pass;

/* Records for these sequences, of which `observe` steps are seen (0: all). */
dvbf_status dv_pass_init(dv_pass *pass, const dvbf_model *model, dv_threads *pool,
                         const dvbf_sequences *sequences, int observe, dvbf_error *error);
/* The bound of a particle filter with `samples` rows of each sequence as particles; all steps are seen. */
dvbf_status dv_pass_init_particles(dv_pass *pass, const dvbf_model *model, dv_threads *pool,
                                   const dvbf_sequences *sequences, int samples, dvbf_error *error);
void dv_pass_clear(dv_pass *pass);

/* After the shard of sequences first .. first + count - 1 was run; called on any worker, each shard once. */
typedef void dv_pass_fn(void *user, const dv_worker *worker, size_t shard, size_t first, int count);

/* Runs over all sequences, or those of this rank (divided as by dv_ranks_first; the caller gathers), which
 * are those it was recorded for or similar ones, with the model's parameters. Fails if frames could not be
 * read, since they would look missing, or if the flag was set. Allocates nothing. */
dvbf_status dv_pass_run(dv_pass *pass, const dvbf_sequences *sequences, const dv_conditions *conditions,
                        dv_pass_fn *collect, void *user, dvbf_error *error);
size_t dv_pass_shards(const dv_pass *pass, const dvbf_sequences *sequences);
/* Gathers the results of each sequence, `unit` bytes, on all ranks. */
void dv_pass_gather(const dv_pass *pass, const dvbf_sequences *sequences, void *data, size_t unit);

/* ---- Agreement of ranks ---- */

/* Refuses ranks whose settings, data (by fingerprint) or instruction set differ from the first rank's: their
 * results would differ, or they would wait for each other for ever. */
dvbf_status dv_ranks_alike(dv_ranks *team, const dvbf_settings *settings, uint64_t data, dvbf_error *error);
/* The same for ranks that use a model. */
dvbf_status dv_ranks_use_alike(dv_ranks *team, const dvbf_settings *settings, const dvbf_model *model,
                               const dvbf_sequences *sequences, dvbf_error *error);
