/* Estimates of states: filtering, smoothing, prediction and samples through one function (dvbf_estimate, also
 * into arrays of the caller). They differ only in what is observed, which steps are reported and whether
 * samples are weighted. A committee's members are asked one after the other and their samples of x pooled.
 * Ranks share sequences, whose noise is keyed by their number. */
#include "infer/estimate.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "math/portable.h"
#include "model/batches.h"

#include <math.h>
#include <string.h>
#include <time.h>

void dvbf_estimates_free(dvbf_estimates *e) {
  if (!e) return;
  DV_FREE(e->begin, e->length, e->z, e->z_mean, e->z_std, e->x, e->x_std, e->x_quantiles, e->x_samples, e->u,
          e->quantiles, e);
}

/* ---- Memory ---- */

/* *out = zeroed [a][b][c][d], in the caller's array or its own memory; false if memory is short. */
static bool make_room(float **out, size_t a, size_t b, size_t c, size_t d) {
  size_t count;
  if (!dv_multiply(a, b, &count) || !dv_multiply(count, c, &count) || !dv_multiply(count, d, &count))
    return false;
  if (*out)
    memset(*out, 0, count * sizeof **out);
  else
    *out = dv_calloc(count, sizeof **out);
  return *out;
}

/* Frees all but the arrays of the caller; both may be NULL. */
static void release(dvbf_estimates *e, const dvbf_estimates *callers) {
  if (e && callers) {
    float **ours[] = {&e->z, &e->z_mean, &e->z_std, &e->x, &e->x_std, &e->x_quantiles, &e->x_samples, &e->u};
    const float *theirs[] = {callers->z,     callers->z_mean,      callers->z_std,     callers->x,
                             callers->x_std, callers->x_quantiles, callers->x_samples, callers->u};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
      if (*ours[i] == theirs[i]) *ours[i] = NULL;
  }
  dvbf_estimates_free(e);
}

static bool allocate(dvbf_estimates *e, const dv_request *q) {
  size_t n = e->count, s = e->samples, t = e->steps;
  return make_room(&e->z, n, s, t, e->n_z) && make_room(&e->z_mean, n, t, e->n_z, 1) &&
         make_room(&e->z_std, n, t, e->n_z, 1) && make_room(&e->x, n, t, e->n_x, 1) &&
         make_room(&e->x_std, n, t, e->n_x, 1) &&
         (!e->n_quantiles || make_room(&e->x_quantiles, e->n_quantiles, n, t, e->n_x)) &&
         (!e->n_quantiles || (e->quantiles = dv_calloc(e->n_quantiles, sizeof *e->quantiles))) &&
         (!q->ask.x_samples || make_room(&e->x_samples, n, s, t, e->n_x)) &&
         (!e->n_u || make_room(&e->u, n, t, e->n_u, 1)) &&
         (!q->begin || (e->begin = dv_calloc(n, sizeof *e->begin))) &&
         (!q->frames.length || (e->length = dv_calloc(n, sizeof *e->length)));
}

/* Controls and lengths are known before anything runs. */
static void copy_known(dvbf_estimates *e, const dv_request *q) {
  const dvbf_sequences *s = &q->frames;
  if (e->n_quantiles) memcpy(e->quantiles, q->ask.quantiles, e->n_quantiles * sizeof *e->quantiles);
  if (e->begin) memcpy(e->begin, q->begin, e->count * sizeof *e->begin);
  for (size_t i = 0; i < e->count; i++) {
    size_t length = dvbf_sequence_length(s, i), later = length > e->first ? length - e->first : 0;
    if (e->length) e->length[i] = (uint32_t)later;
    if (!e->u) continue;
    const float *from = s->u + (dvbf_sequence_start(s, i) + e->first) * e->n_u;
    memcpy(e->u + i * e->steps * e->n_u, from, (e->steps < later ? e->steps : later) * e->n_u * sizeof *from);
  }
}

static dvbf_estimates sizes_of(const dv_request *q) {
  return (dvbf_estimates){.count = q->frames.count,
                          .samples = q->ask.samples,
                          .steps = (size_t)q->window,
                          .n_z = (size_t)q->model->n_z,
                          .n_x = (size_t)q->model->n_x,
                          .n_u = (size_t)q->model->n_u,
                          .n_quantiles = q->ask.n_quantiles,
                          .first = (size_t)q->first};
}

/* In arrays of the caller, which have its sizes, if there are any; `callers` may be NULL. */
static dvbf_status new_estimates(dvbf_estimates **out, const dv_request *q, const dvbf_estimates *callers,
                                 dvbf_error *error) {
  dvbf_estimates *e = dv_calloc(1, sizeof *e);
  if (!e) return dv_fail_memory(error, "making room for estimates");
  *e = callers ? *callers : sizes_of(q);
  e->first = (size_t)q->first;
  e->begin = e->length = NULL;
  e->quantiles = NULL;
  *out = e;
  if (!allocate(e, q))
    return dv_fail(error, DVBF_MEMORY,
                   "out of memory for %zu sequences with %zu samples of %zu steps; use fewer", e->count,
                   e->samples, e->steps);
  copy_known(e, q);
  return DVBF_OK;
}

/* ---- Estimating ---- */

/* Noise is keyed by numbers of 32 bits. */
static dvbf_status check_count(const dv_request *q, dvbf_error *error) {
  size_t rows;
  if (dv_multiply(q->frames.count, q->ask.samples, &rows) && rows < UINT32_MAX) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "samples = %zu: for %zu sequences there may be at most %zu; ask for fewer", q->ask.samples,
                 q->frames.count, UINT32_MAX / q->frames.count);
}

/* Gathers on all ranks the results of each for its sequences. u is known to all. */
static void gather(dvbf_estimates *e, dv_ranks *team, size_t block) {
  size_t z = e->steps * e->n_z * sizeof *e->z, x = e->steps * e->n_x * sizeof *e->x;
  const struct {
    float *values;
    size_t unit;
  } all[] = {{e->z, e->samples * z},        {e->z_mean, z}, {e->z_std, z}, {e->x, x}, {e->x_std, x},
             {e->x_samples, e->samples * x}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    dv_ranks_gather_blocks(team, all[i].values, all[i].unit, e->count, block);
  for (size_t k = 0; k < e->n_quantiles; k++)
    dv_ranks_gather_blocks(team, e->x_quantiles + k * e->count * e->steps * e->n_x, x, e->count, block);
}

/* *out is to be released, also after a failure. */
static dvbf_status estimate(dvbf_estimates **out, const dv_request *q, const dvbf_estimates *callers,
                            dvbf_error *error) {
  dv_threads *pool = NULL;
  dvbf_status status = check_count(q, error);
  if (!status) status = dv_threads_new(&pool, q->ask.threads, error);
  if (!status) dv_threads_stop_by(pool, q->ask.interrupt);
  if (!status) dv_threads_join(pool, q->ask.ranks);
  if (!status) status = new_estimates(out, q, callers, error);
  if (!status)
    status = (q->model->type->exact ? dv_estimate_exact
              : q->ask.forecast     ? dv_estimate_forecasts
              : q->ask.particles    ? dv_estimate_particles
                                    : dv_estimate_samples)(*out, q, pool, error);
  if (!status) status = dv_sequences_intact(&q->frames, error);
  if (!status && dv_interrupted(q->ask.interrupt)) status = dv_fail_stopped(error);
  bool blocks = !q->model->type->exact && !q->ask.forecast && !q->ask.particles;
  if (!status) gather(*out, q->ask.ranks, blocks ? dv_estimate_samples_block(q) : 1);
  dv_threads_free(pool);
  return status;
}

/* ---- Committee ---- */

/* The mean of the members' means, and the deviation of all their samples together:
 * variance = mean of (deviation^2 + mean^2) - (mean of means)^2, without the loss of digits. */
static void pool_moments(dvbf_estimates *out, dvbf_estimates *const *members, size_t n) {
  for (size_t i = 0; i < out->count * out->steps * out->n_x; i++) {
    double mean = 0, variance = 0;
    for (size_t k = 0; k < n; k++) mean += (double)members[k]->x[i] / (double)n;
    for (size_t k = 0; k < n; k++) {
      double apart = (double)members[k]->x[i] - mean, deviation = (double)members[k]->x_std[i];
      variance += (apart * apart + deviation * deviation) / (double)n;
    }
    out->x[i] = (float)mean;
    out->x_std[i] = (float)sqrt(variance);
  }
}

static dvbf_status pool_quantiles(dvbf_estimates *out, dvbf_estimates *const *members, size_t n,
                                  dvbf_error *error) {
  size_t samples = out->samples, values = out->steps * out->n_x;
  const float **rows = dv_calloc(n * samples, sizeof *rows);
  float *columns = dv_calloc(n * samples, DV_SORTED * sizeof *columns);
  for (size_t i = 0; rows && columns && i < out->count; i++) {
    for (size_t r = 0; r < n * samples; r++)
      rows[r] = members[r / samples]->x_samples + (i * samples + r % samples) * values;
    dv_quantiles_of(out->x_quantiles + i * values, out->count * values, out->quantiles, out->n_quantiles,
                    rows, n * samples, values, columns);
  }
  dvbf_status status = rows && columns ? DVBF_OK : dv_fail_memory(error, "pooling quantiles");
  DV_FREE(rows, columns);
  return status;
}

/* Members take turns, sequence by sequence and sample by sample. */
static void pool_samples(dvbf_estimates *out, dvbf_estimates *const *members, size_t n) {
  size_t values = out->steps * out->n_x;
  for (size_t s = 0; n && s < out->count * out->samples; s++)
    if (members[s % n] != out)
      memcpy(out->x_samples + s * values, members[s % n]->x_samples + s * values, values * sizeof(float));
}

/* Pools the estimates of the members [n] in `out`, which may be one of them: means, deviations and quantiles
 * of x over all samples. z stays as it is. Paths of samples stand for themselves. */
static dvbf_status pool(dvbf_estimates *out, dvbf_estimates *const *members, size_t n,
                        const dv_estimate_request *ask, dvbf_error *error) {
  bool single = ask->kind == DV_SAMPLE;
  dvbf_status status = out->n_quantiles ? pool_quantiles(out, members, n, error) : DVBF_OK;
  if (!single) pool_moments(out, members, n);
  if (ask->x_samples) pool_samples(out, members, n);
  if (single) memcpy(out->x, out->x_samples, out->count * out->steps * out->n_x * sizeof *out->x);
  if (!ask->x_samples) {
    dv_free(out->x_samples);
    out->x_samples = NULL;
  }
  return status;
}

/* ---- All members ---- */

/* Refuses arrays of other sizes, and drops those that are not requested. */
static dvbf_status check_sizes(dvbf_estimates *callers, const dv_request *q, dvbf_error *error) {
  dvbf_estimates needed = sizes_of(q);
  if (callers->count != needed.count || callers->samples != needed.samples ||
      callers->steps != needed.steps || callers->n_z != needed.n_z || callers->n_x != needed.n_x ||
      callers->n_u != needed.n_u || callers->n_quantiles != needed.n_quantiles)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the estimates are of %zu sequences, %zu samples, %zu steps and %zu quantiles, and the "
                   "arrays for %zu, %zu, %zu and %zu; use the sizes from dvbf_estimates_sizes",
                   needed.count, needed.samples, needed.steps, needed.n_quantiles, callers->count,
                   callers->samples, callers->steps, callers->n_quantiles);
  if (!q->ask.x_samples) callers->x_samples = NULL;
  if (!needed.n_quantiles) callers->x_quantiles = NULL;
  return DVBF_OK;
}

static dvbf_status estimate_member(dvbf_estimates **out, const dvbf_model *model, int member,
                                   const dvbf_sequences *sequences, const dv_estimate_request *ask,
                                   dvbf_estimates *callers, dvbf_error *error) {
  dv_request q;
  dvbf_status status = dv_request_make(&q, model, member, sequences, ask, error);
  if (!status && callers) status = check_sizes(callers, &q, error);
  q.ask.x_samples = q.ask.x_samples || (model->n_others && q.ask.n_quantiles); /* to pool quantiles */
  if (!status) status = estimate(out, &q, callers, error);
  dv_request_clear(&q);
  return status;
}

/* Divides the progress among the members that smooth. */
static void divide(dv_estimate_progress *watch, const dvbf_model *model) {
  int asked = 1;
  for (int i = 1; i < dv_model_members(model); i++)
    asked += dv_model_takes_part(dv_model_member(model, i), false);
  watch->part = 1 / (double)asked;
}

/* The best member is always asked, because z is its own, and uses the caller's arrays if there are any. x is
 * pooled over those that take part. */
static dvbf_status estimate_all(dvbf_estimates **out, dvbf_estimates *callers, const dvbf_model *model,
                                const dvbf_sequences *sequences, const dv_estimate_request *ask,
                                dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(model));
  dvbf_estimates *first = NULL, *members[DV_MOST_MEMBERS] = {0};
  if (ask->watch) divide(ask->watch, model);
  dvbf_status status = estimate_member(&first, model, 0, sequences, ask, callers, error);
  size_t n = 0;
  if (!status && dv_model_takes_part(model, ask->forecast)) members[n++] = first;
  for (int i = 1; i < dv_model_members(model) && !status; i++) {
    if (!dv_model_takes_part(dv_model_member(model, i), ask->forecast)) continue;
    if (ask->watch) ask->watch->first += ask->watch->part;
    status = estimate_member(&members[n++], model, i, sequences, ask, NULL, error);
  }
  if (!status && model->n_others) status = pool(first, members, n, ask, error);
  for (size_t i = 0; i < n; i++)
    if (members[i] != first) dvbf_estimates_free(members[i]);
  if (status)
    release(first, callers);
  else
    *out = first;
  return status;
}

dvbf_status dv_estimate(dvbf_estimates **out, const dvbf_model *model, const dvbf_sequences *sequences,
                        const dv_estimate_request *ask, dvbf_error *error) {
  return estimate_all(out, NULL, model, sequences, ask, error);
}

static dvbf_status estimate_by_settings(dvbf_estimates **out, dvbf_estimates *callers,
                                        const dvbf_model *model, const dvbf_sequences *sequences,
                                        const dvbf_settings *settings, dv_estimate_progress *watch,
                                        dvbf_error *error) {
  dv_estimate_request ask;
  dvbf_status status = dv_estimate_request_of(&ask, settings, error);
  if (status) return status;
  ask.watch = watch;
  status = dv_ranks_use_alike(ask.ranks, settings, model, sequences, error);
  return status ? status : estimate_all(out, callers, model, sequences, &ask, error);
}

dvbf_status dvbf_estimate(dvbf_estimates **out, const dvbf_model *model, const dvbf_sequences *sequences,
                          const dvbf_settings *settings, dvbf_error *error) {
  return estimate_by_settings(out, NULL, model, sequences, settings, NULL, error);
}

dvbf_status dvbf_estimate_with(dvbf_estimates **out, const dvbf_model *model, const dvbf_sequences *sequences,
                               const dvbf_settings *settings, dvbf_fraction_fn *tell, void *user_data,
                               dvbf_error *error) {
  dv_estimate_progress watch = {.tell = tell, .user = user_data};
  return estimate_by_settings(out, NULL, model, sequences, settings, tell ? &watch : NULL, error);
}

dvbf_status dvbf_estimates_sizes(dvbf_estimates *out, const dvbf_model *model,
                                 const dvbf_sequences *sequences, const dvbf_settings *settings,
                                 dvbf_error *error) {
  dv_estimate_request ask;
  dv_request q = {0};
  dvbf_status status = dv_estimate_request_of(&ask, settings, error);
  if (!status) status = dv_request_make(&q, model, 0, sequences, &ask, error);
  if (!status) *out = sizes_of(&q);
  dv_request_clear(&q);
  return status;
}

dvbf_status dvbf_estimate_into(dvbf_estimates *out, const dvbf_model *model, const dvbf_sequences *sequences,
                               const dvbf_settings *settings, dvbf_error *error) {
  dvbf_estimates *e = NULL, callers = *out;
  dvbf_status status = estimate_by_settings(&e, &callers, model, sequences, settings, NULL, error);
  if (status) return status;
  out->first = e->first;
  for (size_t i = 0; out->begin && i < e->count; i++) out->begin[i] = (uint32_t)dvbf_estimates_begin(e, i);
  for (size_t i = 0; out->length && i < e->count; i++)
    out->length[i] = e->length ? e->length[i] : (uint32_t)e->steps;
  if (out->quantiles && e->n_quantiles)
    memcpy(out->quantiles, e->quantiles, e->n_quantiles * sizeof *e->quantiles);
  release(e, &callers);
  return DVBF_OK;
}

/* ---- Errors ---- */

/* Adds the squared errors of sequence i, and their numbers, to sums [columns + steps] of each. */
static void add_squares(const dvbf_estimates *e, size_t i, const float *truth /* [known][n_x] */,
                        size_t known, double *squares, double *counts) {
  for (size_t t = 0; t < known; t++)
    for (size_t k = 0; k < e->n_x; k++) {
      float guess = e->x[(i * e->steps + t) * e->n_x + k], x = truth[t * e->n_x + k];
      if (isnan(x)) continue;
      double apart = isfinite(guess) ? (double)(guess - x) : INFINITY;
      squares[k] += apart * apart;
      squares[e->n_x + t] += apart * apart;
      counts[k] += 1;
      counts[e->n_x + t] += 1;
    }
}

static double root(double squares, double count) {
  return count > 0 ? sqrt(squares / count) : NAN;
}

dvbf_status dvbf_estimates_rmse(double *all, double *by_column, double *by_step, const dvbf_estimates *e,
                                const dvbf_sequences *s, dvbf_error *error) {
  if (s->n_x != e->n_x)
    return dv_fail(error, DVBF_ARGUMENT,
                   "x of the estimates has %zu columns, x of the truth %zu; they must be the same", e->n_x,
                   s->n_x);
  size_t n = e->n_x + e->steps;
  float *buffer = NULL;
  double *squares = dv_calloc(2 * n, sizeof *squares), *counts = squares ? squares + n : NULL, sum = 0,
         of = 0;
  dvbf_status status =
      squares ? dv_sequences_filled(s, "data", "", error) : dv_fail_memory(error, "comparing with the data");
  if (!status) status = dv_sequence_buffer(&buffer, s, e->steps, error);
  for (size_t i = 0; i < e->count && i < s->count && !status; i++) {
    size_t length = dvbf_sequence_length(s, i), first = dvbf_estimates_begin(e, i);
    size_t known = length > first ? length - first : 0;
    if (known > e->steps) known = e->steps;
    if (known) add_squares(e, i, dv_sequence_x(s, i, first, known, buffer), known, squares, counts);
  }
  if (!status) status = dv_sequences_intact(s, error);
  for (size_t i = 0; i < n && !status; i++) {
    *(i < e->n_x ? by_column + i : by_step + i - e->n_x) = root(squares[i], counts[i]);
    if (i < e->n_x) sum += squares[i], of += counts[i];
  }
  if (!status) *all = root(sum, of);
  dv_free(buffer);
  dv_free(squares);
  return status;
}

/* ---- Progress ---- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void dv_estimate_progress_begin(dv_estimate_progress *w, uint64_t all) {
  if (!w) return;
  w->all = all;
  w->done = 0;
  w->teller = pthread_self();
  w->told = now();
}

void dv_estimate_progress_add(dv_estimate_progress *w, uint64_t units) {
  const double pause = 0.1;
  if (!w) return;
  uint64_t done = __atomic_add_fetch(&w->done, units, __ATOMIC_RELAXED);
  if (!pthread_equal(pthread_self(), w->teller) || now() - w->told < pause) return;
  w->told = now();
  w->tell(w->first + w->part * (double)done / (double)w->all, w->user);
}
