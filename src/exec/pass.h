/* A forward pass of a model over a set of sequences, shard by shard on all workers. */
#ifndef DV_PASS_H
#define DV_PASS_H

#include "exec/pool.h"
#include "exec/worker.h"

typedef struct dv_pass {
  const dvbf_model *model;
  dv_pool *pool;
  dvbf_program program;
  int observe;
  int samples;        /* rows of each sequence */
  dv_worker *workers; /* one for each of the pool */
} dv_pass;

/* Records for these sequences, of whose steps `observe` are seen (0: all). */
dvbf_status dv_pass_init(dv_pass *pass, const dvbf_model *model, dv_pool *pool,
                         const dvbf_sequences *sequences, int observe, dvbf_error *error);
/* The bound of a particle filter, whose particles are `samples` rows of each sequence, all of which is seen.
 */
dvbf_status dv_pass_init_particles(dv_pass *pass, const dvbf_model *model, dv_pool *pool,
                                   const dvbf_sequences *sequences, int samples, dvbf_error *error);
void dv_pass_clear(dv_pass *pass);

/* After the shard of sequences first .. first + count - 1 was run; called on any worker, each shard once. */
typedef void dv_pass_fn(void *user, const dv_worker *worker, size_t shard, size_t first, int count);

/* Runs over all sequences, or those of this rank where the pool has a team: shards shared out as by
 * dv_team_first, which the caller gathers. They are those it was recorded for or others like them, with the
 * parameters of the model. Fails where frames could not be read, as these look missing to the model, and
 * where the flag of the pool was set. Allocates nothing. */
dvbf_status dv_pass_run(dv_pass *pass, const dvbf_sequences *sequences, const dv_conditions *conditions,
                        dv_pass_fn *collect, void *user, dvbf_error *error);
size_t dv_pass_shards(const dv_pass *pass, const dvbf_sequences *sequences);
/* What was made of each sequence, `unit` bytes, is then known to all ranks. */
void dv_pass_gather(const dv_pass *pass, const dvbf_sequences *sequences, void *data, size_t unit);

#endif
