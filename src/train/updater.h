/* Gradient updates: workers process shards of the minibatch, gradients are summed in a fixed order, and one
 * optimiser step follows. The result is the same, bit for bit, for any number of workers, and of ranks where
 * the pool has a team: then all ranks call these functions in the same order. */
#ifndef DV_UPDATER_H
#define DV_UPDATER_H

#include "exec/pool.h"
#include "model/model.h"

typedef struct dv_updater dv_updater;

/* Trains `model` on `train`, by the bound or, where `one_step` says so, by what the filter without noise
 * predicts one step ahead. Model, sequences and pool must outlive it. */
dvbf_status dv_updater_new(dv_updater **out, dvbf_model *model, dv_pool *pool, const dvbf_sequences *train,
                           bool one_step, dvbf_error *error);
void dv_updater_free(dv_updater *u);

/* From now on trains these parameters alone; NULL: all of them. They must outlive the updater. */
void dv_updater_train_only(dv_updater *u, const dv_part *part);
/* Empties the optimiser's state, where what is trained, or the objective, becomes another. */
void dv_updater_forget(dv_updater *u);

/* Starts at update 0 with an empty optimiser state; `seed` determines noise and order. */
void dv_updater_reset(dv_updater *u, uint64_t seed);

/* Runs up to `count` updates; allocates nothing. Returns how many were done. These are fewer if a gradient
 * was not finite; the parameters are then those before that update. */
uint64_t dv_updater_run(dv_updater *u, uint64_t count);

uint64_t dv_updater_updates(const dv_updater *u);
/* Bound of the minibatches of the last run, nats per frame, without temperature. */
double dv_updater_bound(const dv_updater *u);
/* Sets a factor on the learning rate, initially 1. After divergence training continues with a smaller one. */
void dv_updater_slow_down(dv_updater *u, double factor);
/* Counts the updates before `update` as done. */
void dv_updater_skip_to(dv_updater *u, uint64_t update);
/* Learning rate of an update, with that factor. */
double dv_updater_rate(const dv_updater *u, uint64_t update);
/* Matrix products of one update, in floating-point operations. */
double dv_updater_flops(const dv_updater *u);
/* What this rank sends to others in one update. */
double dv_updater_bytes(const dv_updater *u);

/* A snapshot holds parameters, optimiser state and counters. Its size is in bytes; save and restore copy. All
 * ranks save together. */
size_t dv_updater_snapshot_size(const dv_updater *u);
void dv_updater_save(const dv_updater *u, void *snapshot);
void dv_updater_restore(dv_updater *u, const void *snapshot);

/* The parts of a snapshot, for writing it to a file. */
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
