/* Likelihoods of binary, categorical and count data in nats per frame (dv_discrete_likelihood_of): of the
 * model by its particle filter, of independent columns, and of a Markov chain for each column, learned from
 * the training data. */
#include "evaluate/rolling.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "evaluate/evaluate.h"
#include "model/density.h"

#include <math.h>
#include <string.h>

/* PARTICLES of the model's filter; ROW_STEPS bounds its time, MOST_COUNTS the memory. Chains have a state for
 * each category of a group, or for each of VALUES ranges of the last value: 0, 1, 2 to 3, 4 to 7 and so on.
 */
enum { PARTICLES = 50, ROW_STEPS = 1 << 19, VALUES = 10, MOST_COUNTS = 1 << 24 };

/* ---- Columns ---- */

/* Statistics of the columns of x, from training. */
typedef struct columns {
  size_t n;
  const dv_density *density;
  int *first, *size;  /* [n] the group of each column */
  bool grouped;       /* states are categories of groups, else ranges of the last value */
  size_t states;      /* 0: chains would be too large */
  double *sum, *seen; /* [n][states + 1] of each column after each state; the last one is over all of them */
  float *before;      /* [n] the frame before */
  size_t next;        /* the step that would follow it */
} columns;

/* Where the sums of a column after a state are; -1: over all states. */
static size_t place_of(const columns *c, size_t k, int state) {
  return k * (c->states + 1) + (state < 0 ? c->states : (size_t)state);
}

/* The state of a column after the frame before; -1: unknown. */
static int state_of(const columns *c, size_t k) {
  float last = c->before[k];
  if (!c->states) return -1;
  if (!c->grouped) {
    if (isnan(last)) return -1;
    int range = last < 0.5f ? 0 : 1 + ilogb((double)last + 0.5);
    return range < VALUES ? range : VALUES - 1;
  }
  for (int i = 0; i < c->size[k]; i++)
    if (c->before[c->first[k] + i] == 1) return i;
  return -1;
}

static void remember(columns *c, size_t step, const float *row) {
  memcpy(c->before, row, c->n * sizeof *row);
  c->next = step + 1;
}

static void forget(columns *c) {
  for (size_t k = 0; k < c->n; k++) c->before[k] = NAN;
}

static dvbf_status learn_row(void *user, size_t sequence, size_t step, const float *row, dvbf_error *error) {
  columns *c = user;
  if (!step || step != c->next) forget(c);
  for (size_t k = 0; k < c->n; k++) {
    int state = state_of(c, k);
    if (isnan(row[k])) continue;
    size_t all = place_of(c, k, -1), after = place_of(c, k, state);
    c->sum[all] += (double)row[k], c->seen[all] += 1;
    if (state >= 0) c->sum[after] += (double)row[k], c->seen[after] += 1;
  }
  remember(c, step, row);
  return DVBF_OK;
}

/* One more frame is counted, with equal shares or the column's mean: what never occurred keeps a probability
 * above 0. */
static double mean_of(const columns *c, size_t k, int state) {
  size_t all = place_of(c, k, -1), after = place_of(c, k, state);
  double share = c->size[k] > 1 ? 1. / c->size[k] : 0.5, mean = (c->sum[all] + share) / (c->seen[all] + 1);
  return state < 0 ? mean : (c->sum[after] + mean) / (c->seen[after] + 1);
}

static dvbf_status learn(columns *c, const dvbf_model *m, const dvbf_sequences *train, dvbf_error *error) {
  size_t n = (size_t)m->n_x, largest = 1;
  *c = (columns){.n = n, .density = m->density, .grouped = m->density->groups};
  c->first = dv_calloc(n, sizeof *c->first);
  c->size = dv_calloc(n, sizeof *c->size);
  c->before = dv_calloc(n, sizeof *c->before);
  if (!c->first || !c->size || !c->before) return dv_fail_memory(error, "judging the model");
  for (size_t k = 0; k < n; k++) c->first[k] = (int)k;
  if (c->grouped) c->density->groups(m, c->first);
  for (size_t k = 0; k < n; k++)
    if ((size_t)++c->size[c->first[k]] > largest) largest++;
  for (size_t k = 0; k < n; k++) c->size[k] = c->size[c->first[k]];
  c->states = c->grouped ? largest : VALUES;
  if (c->states >= MOST_COUNTS / n) c->states = 0;
  c->sum = dv_calloc(n, (c->states + 1) * sizeof *c->sum);
  c->seen = dv_calloc(n, (c->states + 1) * sizeof *c->seen);
  if (!c->sum || !c->seen) return dv_fail_memory(error, "judging the model");
  dvbf_status status = dv_visit_rows(train, NULL, n, learn_row, c, error);
  return status ? status : dv_sequences_intact(train, error);
}

typedef struct scoring {
  columns *columns;
  dv_discrete_likelihood *out;
  size_t count; /* sequences */
} scoring;

static size_t block_of(size_t sequence, size_t count) {
  return sequence * DV_ROLLING_BLOCKS / count;
}

static dvbf_status score_row(void *user, size_t sequence, size_t step, const float *row, dvbf_error *error) {
  scoring *s = user;
  columns *c = s->columns;
  size_t block = block_of(sequence, s->count), seen = 0;
  if (!step || step != c->next) forget(c);
  for (size_t k = 0; k < c->n; k++) {
    double x = (double)row[k];
    if (isnan(row[k])) continue;
    seen++;
    s->out->mean[block] += c->density->ln_value(x, mean_of(c, k, -1));
    s->out->last[block] += c->density->ln_value(x, mean_of(c, k, state_of(c, k)));
  }
  s->out->per_frame.frames += seen > 0;
  remember(c, step, row);
  return DVBF_OK;
}

static dvbf_status score_columns(dv_discrete_likelihood *out, const dvbf_model *m,
                                 const dvbf_sequences *train, const dvbf_sequences *s, dvbf_error *error) {
  columns c = {0};
  scoring how = {&c, out, s->count};
  dvbf_status status = learn(&c, m, train, error);
  if (!status) status = dv_visit_rows(s, NULL, c.n, score_row, &how, error);
  if (!status) status = dv_sequences_intact(s, error);
  for (int b = 0; b < DV_ROLLING_BLOCKS && !c.states; b++) out->last[b] = NAN;
  DV_FREE(c.first, c.size, c.sum, c.seen, c.before);
  return status;
}

/* ---- The model ---- */

static dvbf_status score_model(dv_discrete_likelihood *out, const dvbf_model *m, const dvbf_sequences *s,
                               const dv_estimate_request *ask, dvbf_error *error) {
  dv_threads *pool = NULL;
  dv_likelihoods l = {0};
  dvbf_status status = dv_threads_new(&pool, ask->threads, error);
  if (!status) dv_threads_stop_by(pool, ask->interrupt);
  if (!status) dv_threads_join(pool, ask->ranks);
  if (!status)
    status = dv_likelihoods_of(&l, m, s, PARTICLES, !dv_model_can_filter(m), ask->seed, pool, error);
  double kl_v = dv_universal_kl(m);
  for (size_t i = 0; i < s->count && !status; i++) {
    double ln_p = l.particle ? l.particle[i] : l.importance[i];
    out->learned[block_of(i, s->count)] += isfinite(ln_p) ? ln_p - kl_v : -INFINITY;
  }
  dv_likelihoods_free(&l);
  dv_threads_free(pool);
  return status;
}

/* ---- Both together ---- */

static double per_frame(const double *blocks, size_t frames) {
  double sum = 0;
  for (int b = 0; b < DV_ROLLING_BLOCKS; b++) sum -= blocks[b];
  return frames ? sum / (double)frames : NAN;
}

dvbf_status dv_discrete_likelihood_of(dv_discrete_likelihood *out, const dvbf_model *m,
                                      const dvbf_sequences *train, const dvbf_sequences *s,
                                      const dv_estimate_request *ask, dvbf_error *error) {
  dvbf_sequences views = {0};
  *out = (dv_discrete_likelihood){.per_frame = {NAN, NAN, NAN, 0}};
  if (!m->density->ln_value || m->type->timeless || m->type->no_weights) return DVBF_OK;
  dvbf_status status = dv_views_choose(&views, s, 0, 1, 0, ROW_STEPS / PARTICLES, false, error);
  if (!status) status = score_columns(out, m, train, &views, error);
  if (!status) status = score_model(out, m, &views, ask, error);
  if (!status) {
    dvbf_discrete_likelihood *n = &out->per_frame;
    n->mean = per_frame(out->mean, n->frames);
    n->last = per_frame(out->last, n->frames);
    n->learned = per_frame(out->learned, n->frames);
  }
  dv_windows_free(&views);
  return status;
}
