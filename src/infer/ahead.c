/* What follows the belief of an online filter. Every member moves its samples on, step by step. The samples
 * of all members that take part in a step count alike: the next step is a forecast, those after it are
 * predictions. Nothing is allocated. */
#include "base/arithmetic.h"
#include "base/status.h"
#include "base/tiny.h"
#include "infer/draws.h"
#include "infer/filter.h"

#include <math.h>
#include <string.h>

static dvbf_status check(const dvbf_filter *f, const dvbf_ahead *ask, dvbf_error *error) {
  for (int i = 0; i < f->members; i++)
    if (!dv_online_ready(f->member[i]))
      return dv_fail(error, DVBF_ARGUMENT,
                     "there is no belief yet to predict from: the model needs %d frames and has seen %d; "
                     "predict once `ready` is true",
                     f->member[i]->frames, f->member[i]->seen);
  if (ask->steps < 1 || ask->steps > 1000000)
    return dv_fail(error, DVBF_ARGUMENT, "steps = %zu: must be in [1, 1000000]", ask->steps);
  if (f->model->n_u && !ask->u)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the model has %d controls, so predictions need u of all %zu steps; give zeros where "
                   "nothing acts",
                   f->model->n_u, ask->steps);
  for (size_t i = 0; i < ask->n_quantiles; i++)
    if (!(ask->quantiles[i] > 0 && ask->quantiles[i] < 1))
      return dv_fail(error, DVBF_ARGUMENT, "quantile %g: must be in (0, 1)", ask->quantiles[i]);
  return DVBF_OK;
}

/* Where a single model knows the distribution itself, no samples are needed. */
static bool knows_quantiles(const dvbf_filter *f) {
  return f->members == 1 && f->member[0]->exact;
}

/* Moves member i to step t and fills its mean, variance and samples of x. The control of a step is as
 * dvbf_filter_step takes it. */
static void expect(dvbf_filter *f, int i, const dvbf_ahead *ask, size_t t) {
  size_t n_x = (size_t)f->model->n_x, n_u = (size_t)f->model->n_u;
  const float *u = n_u ? ask->u + t * n_u : NULL;
  bool late = f->same_row && !dv_online_feeds_through(f->member[i]);
  bool wanted = ask->x_quantiles && ask->n_quantiles && !knows_quantiles(f);
  dv_expected_x out = {.noise = !ask->noise_free,
                       .mean = f->mean + (size_t)i * n_x,
                       .variance = f->variance + (size_t)i * n_x,
                       .samples = wanted ? f->x + (size_t)i * f->samples * n_x : NULL};
  if (late) u = t ? u - n_u : f->controlled ? f->last : NULL;
  dv_online_ahead(f->member[i], (uint32_t)t, u, &out);
}

/* Members that take part at step t. */
typedef struct pool {
  size_t which[DV_MOST_MEMBERS], count;
} pool;

static pool pool_at(const dvbf_filter *f, size_t t) {
  pool p = {.count = 0};
  for (int i = 0; i < f->members; i++)
    if (dv_model_takes_part(f->member[i]->model, t == 0)) p.which[p.count++] = (size_t)i;
  return p;
}

/* Those that take part in the forecast alone need not be moved further. z is that of the best. */
static bool is_needed(const dvbf_filter *f, int i, size_t t) {
  return i == 0 || t == 0 || dv_model_takes_part(f->member[i]->model, false);
}

/* The mean of the members' means, and the deviation of all their samples together. */
static void put_moments(const dvbf_filter *f, const pool *p, const dvbf_ahead *ask, size_t t) {
  size_t n_x = (size_t)f->model->n_x;
  double n = (double)p->count;
  for (size_t i = 0; i < n_x; i++) {
    double mean = 0, variance = 0;
    for (size_t k = 0; k < p->count; k++) mean += f->mean[p->which[k] * n_x + i] / n;
    for (size_t k = 0; k < p->count; k++) {
      double apart = f->mean[p->which[k] * n_x + i] - mean;
      variance += (apart * apart + f->variance[p->which[k] * n_x + i]) / n;
    }
    if (ask->x) ask->x[t * n_x + i] = (float)mean;
    if (ask->x_std) ask->x_std[t * n_x + i] = (float)sqrt(variance);
  }
}

static void put_quantiles(dvbf_filter *f, const pool *p, const dvbf_ahead *ask, size_t t) {
  size_t n_x = (size_t)f->model->n_x, apart = ask->steps * n_x, rows = p->count * f->samples;
  float *to = ask->x_quantiles + t * n_x;
  if (!knows_quantiles(f)) {
    for (size_t i = 0; i < rows; i++)
      f->rows[i] = f->x + (p->which[i / f->samples] * f->samples + i % f->samples) * n_x;
    dv_quantiles_of(to, apart, ask->quantiles, ask->n_quantiles, f->rows, rows, n_x, f->columns);
    return;
  }
  for (size_t k = 0; k < ask->n_quantiles; k++) {
    double away = dv_normal_quantile(ask->quantiles[k]);
    for (size_t i = 0; i < n_x; i++) to[k * apart + i] = (float)(f->mean[i] + away * sqrt(f->variance[i]));
  }
}

static void put_z(const dvbf_filter *f, const dvbf_ahead *ask, size_t t) {
  const dv_online *best = f->member[0];
  size_t n_z = (size_t)f->model->n_z;
  if (ask->z_mean) memcpy(ask->z_mean + t * n_z, best->mean, n_z * sizeof *best->mean);
  if (ask->z_std) memcpy(ask->z_std + t * n_z, best->deviation, n_z * sizeof *best->deviation);
}

dvbf_status dvbf_filter_predict(dvbf_filter *f, const dvbf_ahead *ask, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(f->model));
  dvbf_status status = check(f, ask, error);
  if (status) return status;
  unsigned before = dv_flush_tiny_numbers();
  for (int i = 0; i < f->members; i++) dv_online_ahead_begin(f->member[i]);
  for (size_t t = 0; t < ask->steps; t++) {
    for (int i = 0; i < f->members; i++)
      if (is_needed(f, i, t)) expect(f, i, ask, t);
    pool p = pool_at(f, t);
    put_moments(f, &p, ask, t);
    if (ask->x_quantiles && ask->n_quantiles) put_quantiles(f, &p, ask, t);
    put_z(f, ask, t);
  }
  for (int i = 0; i < f->members; i++) dv_online_ahead_end(f->member[i]);
  dv_restore_tiny_numbers(before);
  return DVBF_OK;
}
