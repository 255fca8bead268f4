/* Gradient updates: shards of the minibatch on all workers, gradients summed in a fixed order, one optimiser
 * step. The same bytes come out whatever the number of workers. */
#ifndef DV_UPDATER_H
#define DV_UPDATER_H

#include "exec/pool.h"
#include "model/model.h"

typedef struct dv_updater dv_updater;

/* Trains `model` on `train`. Both and the pool must outlive it. */
dvbf_status dv_updater_new(dv_updater **out, dvbf_model *model, dv_pool *pool, const dvbf_sequences *train,
                           dvbf_error *error);
void dv_updater_free(dv_updater *u);

/* Begins at update 0 with noise and order of `seed` and an empty optimiser state. */
void dv_updater_reset(dv_updater *u, uint64_t seed);

/* Runs up to `count` updates; allocates nothing. Returns how many were done: fewer when a gradient was not
 * finite, in which case the parameters are those before that update. */
uint64_t dv_updater_run(dv_updater *u, uint64_t count);

uint64_t dv_updater_updates(const dv_updater *u);
/* Bound of the minibatches of the last run, nats per frame, without temperature. */
double dv_updater_bound(const dv_updater *u);
/* Sets the factor on the learning rate, 1 at first; a diverged run goes on with less. */
void dv_updater_slow_down(dv_updater *u, double factor);
/* Learning rate of an update, with that factor. */
double dv_updater_rate(const dv_updater *u, uint64_t update);
/* Matrix products of one update, in floating-point operations. */
double dv_updater_flops(const dv_updater *u);

/* Parameters, optimiser state and counters, to go back to. size in bytes; save and restore copy. */
size_t dv_updater_snapshot_size(const dv_updater *u);
void dv_updater_save(const dv_updater *u, void *snapshot);
void dv_updater_restore(dv_updater *u, const void *snapshot);

/* What a snapshot holds, for files. */
typedef struct dv_counters {
  uint64_t update, seed;
  double rate_factor;
  double usual_norm; /* running average of the gradient's norm, 0 before the first */
} dv_counters;

typedef struct dv_snapshot_parts {
  dv_counters *at;
  dvbf_real *arrays[3]; /* [parameters] each: parameters, optimiser's m and v */
} dv_snapshot_parts;

dv_snapshot_parts dv_snapshot_open(void *snapshot, size_t parameters);

#endif
