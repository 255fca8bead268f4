/* The sum of the gradients of all shards over threads and ranks (dv_sums_*), as a binary tree over the
 * numbers of the shards (updater.h). MPI's own reductions may add in any order, so messages only copy. */
#include "train/updater.h"

#include "base/error.h"
#include "base/memory.h"

#include <string.h>

static int first_shard(const dv_sums *s, int rank) {
  return (int)dv_ranks_first(s->team, (size_t)s->shards, rank);
}

static size_t first_block(const dv_sums *s, int rank) {
  return dv_ranks_first(s->team, s->blocks, rank);
}

/* Whether a rank has all shards of the sum that is added to shard `to` with step `step`. */
static bool within(const dv_sums *s, int rank, int to, int step) {
  int end = to + 2 * step < s->shards ? to + 2 * step : s->shards;
  return to >= first_shard(s, rank) && end <= first_shard(s, rank + 1);
}

/* Whether the sum in a shard goes to other ranks as it is. A shard is added once to another: to that whose
 * number lacks its lowest bit. */
static bool sent(const dv_sums *s, int rank, int shard) {
  int step = shard & -shard;
  return !shard || !within(s, rank, shard - step, step);
}

/* ---- Memory and parcels ---- */

/* In the order of the tree. */
static void list_additions(dv_sums *s) {
  int rank = dv_ranks_rank(s->team), size = dv_ranks_size(s->team);
  for (int step = 1; step < s->shards; step *= 2)
    for (int to = 0; to + step < s->shards; to += 2 * step) {
      bool done = false; /* before anything is sent, by whoever has both */
      for (int r = 0; r < size && !done; r++) done = within(s, r, to, step);
      if (!done) s->after[s->n_after++] = (dv_addition){to, to + step};
      if (within(s, rank, to, step)) s->before[s->n_before++] = (dv_addition){to, to + step};
    }
}

static size_t own_count(const dv_sums *s, int rank) {
  return s->first_parameter[rank + 1] - s->first_parameter[rank];
}

/* Parcels for every other rank, and from it. */
static bool list_parcels(dv_sums *s) {
  int rank = dv_ranks_rank(s->team), size = dv_ranks_size(s->team);
  size_t mine = own_count(s, rank);
  for (int r = 0; r < size; r++) {
    if (r == rank) continue;
    for (int i = s->first_shard; i < s->last_shard && own_count(s, r); i++)
      if (sent(s, rank, i))
        s->out[s->n_out++] =
            (dv_parcel){r, s->gradients[i] + s->first_parameter[r], own_count(s, r) * sizeof **s->gradients};
    for (int i = first_shard(s, r); i < first_shard(s, r + 1) && mine; i++) {
      if (!sent(s, r, i)) continue;
      s->own[i] = dv_calloc_aligned(mine, sizeof **s->own);
      if (!s->own[i]) return false;
      s->in[s->n_in++] = (dv_parcel){r, s->own[i], mine * sizeof **s->own};
    }
  }
  return true;
}

static void share_out(dv_sums *s) {
  int rank = dv_ranks_rank(s->team), size = dv_ranks_size(s->team);
  s->first_shard = first_shard(s, rank);
  s->last_shard = first_shard(s, rank + 1);
  s->first_block = first_block(s, rank);
  s->last_block = first_block(s, rank + 1);
  for (int r = 0; r <= size; r++) {
    size_t first = first_block(s, r) * DV_BLOCK;
    s->first_parameter[r] = first < s->parameters ? first : s->parameters;
    s->first_told[r] = first_block(s, r) + (size_t)first_shard(s, r) * DV_MOST_TERMS;
  }
}

static bool allocate(dv_sums *s) {
  size_t shards = (size_t)s->shards, ranks = (size_t)dv_ranks_size(s->team);
  s->first_parameter = dv_calloc(ranks + 1, sizeof *s->first_parameter);
  s->first_told = dv_calloc(ranks + 1, sizeof *s->first_told);
  s->gradients = dv_calloc(shards, sizeof *s->gradients);
  s->own = dv_calloc(shards, sizeof *s->own);
  s->squares = dv_calloc(s->blocks, sizeof *s->squares);
  s->terms = dv_calloc(shards, sizeof *s->terms);
  s->before = dv_calloc(shards, sizeof *s->before);
  s->after = dv_calloc(shards, sizeof *s->after);
  s->out = dv_calloc(shards, ranks * sizeof *s->out);
  s->in = dv_calloc(shards, sizeof *s->in);
  s->told = dv_calloc(s->blocks + shards * DV_MOST_TERMS, sizeof *s->told);
  return s->first_parameter && s->first_told && s->gradients && s->own && s->squares && s->terms &&
         s->before && s->after && s->out && s->in && s->told;
}

dvbf_status dv_sums_init(dv_sums *s, dv_ranks *team, int shards, size_t parameters, dvbf_error *error) {
  *s = (dv_sums){.team = team,
                 .shards = shards,
                 .parameters = parameters,
                 .blocks = (parameters + DV_BLOCK - 1) / DV_BLOCK};
  bool made = allocate(s);
  if (made) share_out(s);
  for (int i = s->first_shard; made && i < s->last_shard; i++) {
    made = (s->gradients[i] = dv_calloc_aligned(parameters, sizeof **s->gradients));
    if (made) s->own[i] = s->gradients[i] + s->first_parameter[dv_ranks_rank(team)];
  }
  if (made) list_additions(s);
  if (made && dv_ranks_size(team) > 1) made = list_parcels(s);
  return made ? DVBF_OK : dv_fail_memory(error, "preparing training");
}

void dv_sums_clear(dv_sums *s) {
  for (int i = 0; s->gradients && s->own && i < s->shards; i++)
    dv_free(s->gradients[i] ? s->gradients[i] : s->own[i]);
  DV_FREE(s->first_parameter, s->first_told, s->gradients, s->own, s->squares, s->terms, s->before, s->after,
          s->out, s->in, s->told);
  *s = (dv_sums){0};
}

dvbf_real *dv_sums_at(const dv_sums *s, size_t first) {
  return s->own[0] + (first - s->first_parameter[dv_ranks_rank(s->team)]);
}

/* ---- Summing ---- */

void dv_sums_add(const dv_sums *s, const dv_kernels *k, dv_span part) {
  if (dv_ranks_size(s->team) == 1) return; /* all is added when the sum is completed */
  for (size_t i = 0; i < s->n_before; i++)
    k->add(s->gradients[s->before[i].to] + part.first, s->gradients[s->before[i].from] + part.first,
           part.count);
}

void dv_sums_exchange(const dv_sums *s) {
  dv_ranks_exchange(s->team, s->out, s->n_out, s->in, s->n_in);
}

double dv_sums_complete(const dv_sums *s, const dv_kernels *k, dv_span part) {
  if (dv_ranks_size(s->team) == 1) return k->reduce(s->gradients, part.first, part.count, s->shards);
  size_t at = part.first - s->first_parameter[dv_ranks_rank(s->team)];
  for (size_t i = 0; i < s->n_after; i++)
    k->add(s->own[s->after[i].to] + at, s->own[s->after[i].from] + at, part.count);
  return k->reduce(s->own, at, part.count, 1);
}

/* Copies between the arrays and the messages: rank by rank, its squares and then its terms. */
static void copy_told(const dv_sums *s, int rank, bool pack) {
  size_t blocks = first_block(s, rank + 1) - first_block(s, rank);
  size_t shards = (size_t)(first_shard(s, rank + 1) - first_shard(s, rank));
  double *told = s->told + s->first_told[rank], *squares = s->squares + first_block(s, rank);
  double *terms = s->terms[first_shard(s, rank)];
  size_t n = shards * DV_MOST_TERMS;
  memcpy(pack ? told : squares, pack ? squares : told, blocks * sizeof *told);
  if (n) memcpy(pack ? told + blocks : terms, pack ? terms : told + blocks, n * sizeof *told);
}

void dv_sums_tell(const dv_sums *s) {
  copy_told(s, dv_ranks_rank(s->team), true);
  dv_ranks_gather_parts(s->team, s->told, sizeof *s->told, s->first_told);
  for (int r = 0; r < dv_ranks_size(s->team); r++) copy_told(s, r, false);
}

void dv_sums_gather(const dv_sums *s, dvbf_real *values) {
  dv_ranks_gather_parts(s->team, values, sizeof *values, s->first_parameter);
}

double dv_sums_bytes(const dv_sums *s) {
  int rank = dv_ranks_rank(s->team), others = dv_ranks_size(s->team) - 1;
  double bytes = 0;
  for (size_t i = 0; i < s->n_out; i++) bytes += (double)s->out[i].bytes;
  if (others)
    bytes += others * ((double)own_count(s, rank) * sizeof(dvbf_real) +
                       (double)(s->first_told[rank + 1] - s->first_told[rank]) * sizeof(double));
  return bytes;
}
