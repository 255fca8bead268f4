/* Gradient updates: the updater, schedules, sums of gradients over threads and ranks, and the order of
 * minibatches. */
#pragma once

#include "base/ranks.h"
#include "data/dataset.h"
#include "engine/engine.h"
#include "engine/threads.h"
#include "model/model.h"
#include "model/train_settings.h"

/* Workers process shards of the minibatch, gradients are summed in a fixed order, and one optimiser step
 * follows. The result has the same bits for any number of workers and of ranks, which must call these
 * functions in the same order. */

typedef struct dv_updater dv_updater;

/* Trains `model` on `train`, by the bound or, with `one_step`, by the noise-free filter's predictions one
 * step ahead. Model, sequences and pool must outlive it. */
dvbf_status dv_updater_new(dv_updater **out, dvbf_model *model, dv_threads *pool, const dvbf_sequences *train,
                           bool one_step, dvbf_error *error);
void dv_updater_free(dv_updater *u);

/* From now on trains these parameters alone; NULL: all of them. They must outlive the updater. */
void dv_updater_train_only(dv_updater *u, const dv_part *part);
/* Empties the optimiser's state, for another objective or other parameters. */
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

/* ---- Schedules ---- */

/* The conditions of update i (from 0) for noise of `seed`; `scale` and `noise_free` are the caller's. */
dv_conditions dv_schedule_at(const dv_train_settings *s, uint64_t i, uint64_t seed);
/* The update at which the last phase changes from the gain to the spread. */
uint64_t dv_filter_gain_updates(const dv_train_settings *s);
/* Updates of both phases. */
uint64_t dv_all_updates(const dv_train_settings *s);

/* ---- Sums of gradients ---- */

/* Shards are added in pairs, as a binary tree over their numbers (dv_kernels.reduce), wherever they were
 * computed. Each rank has a contiguous part of the shards and owns a contiguous part of the parameters: it
 * adds the part of the tree within its shards, sends every other rank the parameters which that one owns, and
 * completes the tree for its own. So each sum is made once, in one order, and of P parameters a rank sends
 * about P (N - 1) / N values for each of a few parts of the tree. */

enum { DV_BLOCK = 4096 }; /* parameters that are summed and updated at once; fixes the order of the norm */

typedef struct dv_addition {
  int to, from; /* shards */
} dv_addition;

typedef struct dv_sums {
  dv_ranks *team;
  size_t parameters, blocks; /* of all ranks */
  int shards;
  int first_shard, last_shard;    /* of this rank; the last is before the first of the next */
  size_t first_block, last_block; /* the same of blocks */
  size_t *first_parameter;        /* [ranks + 1] */
  dvbf_real **gradients;          /* [shards][parameters] of this rank, NULL for those of others */
  dvbf_real **own; /* [shards] the same, but where the parameters begin that this rank owns; of others what
                      they send, NULL if they send nothing */
  double *squares; /* [blocks] of the sum */
  double (*terms)[DV_MOST_TERMS]; /* [shards] */
  /* Additions before others have sent, and after that. */
  dv_addition *before, *after;
  size_t n_before, n_after;
  dv_parcel *out, *in;
  size_t n_out, n_in;
  double *told;       /* squares and terms, rank by rank */
  size_t *first_told; /* [ranks + 1] */
} dv_sums;

/* Call clear also after a failure. */
dvbf_status dv_sums_init(dv_sums *s, dv_ranks *team, int shards, size_t parameters, dvbf_error *error);
void dv_sums_clear(dv_sums *s);

/* The sum of the parameters from `first` on, which this rank must own. */
dvbf_real *dv_sums_at(const dv_sums *s, size_t first);

/* In this order, with all workers at the same stage: */
/* For each span of parameters: adds what lies within the shards of this rank. Alone it does nothing. */
void dv_sums_add(const dv_sums *s, const dv_kernels *k, dv_span part);
/* One worker: sends and receives. */
void dv_sums_exchange(const dv_sums *s);
/* For each span that this rank owns: the sum, and the sum of its squares. */
double dv_sums_complete(const dv_sums *s, const dv_kernels *k, dv_span part);
/* One worker: shares squares and terms with all. */
void dv_sums_tell(const dv_sums *s);

/* One worker: completes an array of all parameters of which every rank has its own part. */
void dv_sums_gather(const dv_sums *s, dvbf_real *values);
/* Bytes that this rank sends in one update. */
double dv_sums_bytes(const dv_sums *s);

/* ---- Order of minibatches ---- */

/* Shuffled, by the seed alone. Single: every sequence is drawn from all others. In runs, for data read from a
 * file: sequences are sorted by their place in the file, and each shard has a part of them (so that a rank
 * reads only its own). A part is cut into runs of neighbours, which are shuffled, and so are the sequences of
 * a few successive runs, whose frames are held in memory meanwhile. Every sequence still comes once in an
 * epoch. */

typedef struct dv_order dv_order;

/* Of minibatches of `batch` sequences in shards of `rows`, of which this process computes those from
 * first_shard to the one before last_shard. The sequences must outlive it. */
dvbf_status dv_order_new(dv_order **out, const dvbf_sequences *train, const dv_train_settings *settings,
                         int rows, int first_shard, int last_shard, dvbf_error *error);
void dv_order_free(dv_order *order);

/* Draws the minibatch of an update. */
void dv_order_draw(dv_order *order, uint64_t seed, uint64_t update);
/* The sequences of a shard of it, [rows]; past the end of the minibatch the first one is repeated. */
const uint32_t *dv_order_shard(const dv_order *order, int shard);
/* All sequences, for reading those of this shard: in runs, frames read before are in memory. Several threads
 * may ask for different shards. */
const dvbf_sequences *dv_order_sequences(dv_order *order, int shard);
