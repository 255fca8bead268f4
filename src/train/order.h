/* The order in which sequences are trained on: shuffled, by the seed alone.
 *
 * Each for itself, every sequence is drawn from all others. In runs, data that are read from a file are read
 * in long pieces: sequences are sorted by where they begin in the file, and each shard of a minibatch has a
 * part of them of its own (so that a rank reads no more than the parts of its shards). A part is cut into
 * runs of neighbours, the runs are shuffled, and so are the sequences of a few runs that follow each other,
 * whose frames are held in memory meanwhile. Every sequence still comes once in an epoch. */
#ifndef DV_ORDER_H
#define DV_ORDER_H

#include "data/dataset.h"
#include "model/settings.h"

typedef struct dv_order dv_order;

/* Of minibatches of `batch` sequences in shards of `rows`, of which this process computes those from
 * first_shard to the one before last_shard. The sequences must outlive it. */
dvbf_status dv_order_new(dv_order **out, const dvbf_sequences *train, const dv_train_settings *settings,
                         int rows, int first_shard, int last_shard, dvbf_error *error);
void dv_order_free(dv_order *order);

/* Draws the minibatch of an update. */
void dv_order_draw(dv_order *order, uint64_t seed, uint64_t update);
/* The sequences of a shard of it, [rows]; behind the last of the minibatch stands the first again. */
const uint32_t *dv_order_shard(const dv_order *order, int shard);
/* All sequences, for reading those of this shard: where they are in runs, what was read before is at hand.
 * Several threads may ask for different shards. */
const dvbf_sequences *dv_order_sequences(dv_order *order, int shard);

#endif
