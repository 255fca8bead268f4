/* The sum of the gradients of all shards of a minibatch, over ranks and their threads.
 *
 * Shards are added in pairs, as a binary tree over their numbers (dv_kernels.reduce), wherever they were
 * computed. Each rank has a contiguous part of the shards, and owns a contiguous part of the parameters: it
 * adds what of the tree lies within its shards, sends every other rank the parameters that this one owns, and
 * completes the tree for its own. So each sum is made once, in the one order, and no rank sends more than it
 * must: of P parameters about P (N - 1) / N values for each part of the tree, of which there are few. */
#ifndef DV_SUMS_H
#define DV_SUMS_H

#include "base/team.h"
#include "model/model.h"

enum { DV_BLOCK = 4096 }; /* parameters that are summed and updated at once; fixes the order of the norm */

typedef struct dv_addition {
  int to, from; /* shards */
} dv_addition;

typedef struct dv_sums {
  dv_team *team;
  size_t parameters, blocks; /* of all ranks */
  int shards;
  int first_shard, last_shard;    /* of this rank; the last is before the first of the next */
  size_t first_block, last_block; /* the same of blocks */
  size_t *first_parameter;        /* [ranks + 1] */
  dvbf_real **gradients;          /* [shards][parameters] of this rank, NULL for those of others */
  dvbf_real **own; /* [shards] the same, but where the parameters begin that this rank owns; of others what
                      they send, NULL where they send nothing */
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
dvbf_status dv_sums_init(dv_sums *s, dv_team *team, int shards, size_t parameters, dvbf_error *error);
void dv_sums_clear(dv_sums *s);

/* Where the sum of the parameters from `first` on is, which this rank must own. */
dvbf_real *dv_sums_at(const dv_sums *s, size_t first);

/* In this order, with all workers at the same stage: */
/* For each span of parameters: adds what lies within the shards of this rank. Alone it does nothing. */
void dv_sums_add(const dv_sums *s, const dv_kernels *k, dv_span part);
/* One worker: sends and receives. */
void dv_sums_exchange(const dv_sums *s);
/* For each span that this rank owns: the sum, and the sum of its squares. */
double dv_sums_complete(const dv_sums *s, const dv_kernels *k, dv_span part);
/* One worker: from now on squares and terms are those of all. */
void dv_sums_tell(const dv_sums *s);

/* One worker: an array of all parameters, of which every rank has its own part right. */
void dv_sums_gather(const dv_sums *s, dvbf_real *values);
/* Bytes that this rank sends in one update. */
double dv_sums_bytes(const dv_sums *s);

#endif
