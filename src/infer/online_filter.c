/* The online filter (dvbf_filter_memsize, _init, _step, _predict): the members of a committee side by side,
 * each one a dv_online, in memory of the caller. Predictions move the members' samples on as if frames were
 * missing and pool them at each step; afterwards the belief is restored. Steps and predictions allocate
 * nothing. */
#include "infer/online.h"

#include "base/error.h"
#include "infer/estimate.h"
#include "math/portable.h"

#include <math.h>
#include <string.h>

/* ---- Memory ---- */

/* Counts bytes or places all parts. */
static dvbf_status lay_out(dvbf_filter **out, dv_workspace *room, const dvbf_model *model, size_t samples,
                           uint64_t seed, const dv_low_rank planes[], dvbf_error *error) {
  if (samples < 1 || samples > 65536)
    return dv_fail(error, DVBF_ARGUMENT, "samples = %zu: must be in [1, 65536]; 16 works well", samples);
  dvbf_filter *f = dv_workspace_take(room, 1, sizeof *f);
  size_t members = (size_t)dv_model_members(model), n_x = (size_t)model->n_x, rows = members * samples;
  dvbf_filter parts = {.model = model, .members = (int)members, .samples = samples};
  parts.member = dv_workspace_take(room, members, sizeof(dv_online *));
  parts.last = dv_workspace_take(room, (size_t)model->n_u, sizeof *parts.last);
  parts.mean = dv_workspace_take(room, members * n_x, sizeof *parts.mean);
  parts.variance = dv_workspace_take(room, members * n_x, sizeof *parts.variance);
  parts.x = dv_workspace_take(room, rows * n_x, sizeof *parts.x);
  parts.rows = dv_workspace_take(room, rows, sizeof(float *));
  parts.columns = dv_workspace_take(room, rows * DV_SORTED, sizeof *parts.columns);
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < parts.members && !status; i++) {
    dv_online *member = NULL;
    status = dv_online_lay_out(&member, room, dv_model_member(model, i), samples, seed + (uint64_t)i,
                               &planes[i], error);
    if (status || !f) continue;
    parts.member[i] = member;
    parts.same_row = parts.same_row || member->through;
  }
  if (f && !status) *f = parts;
  if (!status) *out = f;
  return status;
}

/* Counts the bytes of a filter and, if `out` is not NULL, makes it in memory of that size. */
static dvbf_status make(dvbf_filter **out, size_t *needed, void *memory, size_t size, const dvbf_model *model,
                        size_t samples, uint64_t seed, dvbf_error *error) {
  dv_low_rank planes[DV_MOST_MEMBERS] = {{0}};
  dv_workspace room = {0};
  dvbf_filter *none = NULL;
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < dv_model_members(model) && !status; i++)
    status = dv_low_rank_find(&planes[i], dv_model_member(model, i), error);
  if (!status) status = lay_out(&none, &room, model, samples, seed, planes, error);
  if (!status) *needed = room.used;
  if (!status && out && (!memory || (uintptr_t)memory % 64 || size < *needed))
    status = dv_fail(
        error, DVBF_ARGUMENT,
        "a filter of %zu samples needs %zu bytes at an address that is a multiple of 64, not %zu at %p",
        samples, *needed, size, memory);
  room = (dv_workspace){.at = memory};
  if (!status && out) status = lay_out(out, &room, model, samples, seed, planes, error);
  for (int i = 0; i < DV_MOST_MEMBERS; i++) dv_low_rank_free(&planes[i]);
  return status;
}

dvbf_status dvbf_filter_memsize(size_t *out, const dvbf_model *model, size_t samples, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(model));
  return make(NULL, out, NULL, 0, model, samples, 0, error);
}

dvbf_status dvbf_filter_init(dvbf_filter **out, void *memory, size_t size, const dvbf_model *model,
                             size_t samples, uint64_t seed, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(model));
  size_t needed;
  return make(out, &needed, memory, size, model, samples, seed, error);
}

void dvbf_filter_reset(dvbf_filter *f) {
  DV_COMPUTE(dv_model_portable(f->model));
  for (int i = 0; i < f->members; i++) dv_online_reset(f->member[i]);
  f->controlled = false;
}

void dvbf_filter_quiet(dvbf_filter *f, bool quiet) {
  for (int i = 0; i < f->members; i++) f->member[i]->conditions.noise_free = quiet;
}

/* ---- Stepping ---- */

/* A member without feedthrough takes the control since the step before, which came with that step if another
 * member has feedthrough: `before`, or the last one. */
static const float *control_for(const dvbf_filter *f, const dv_online *member, const float *u,
                                const float *before) {
  if (!f->same_row || member->through) return u;
  return before || !f->controlled ? before : f->last;
}

void dvbf_filter_step(dvbf_filter *f, const float *x, const float *u, dvbf_belief *belief) {
  DV_COMPUTE(dv_model_portable(f->model));
  const dv_online *best = f->member[0];
  bool ready = true;
  unsigned before = dv_flush_denormals();
  for (int i = 0; i < f->members; i++) {
    dv_online_step(f->member[i], x, control_for(f, f->member[i], u, NULL));
    ready = ready && f->member[i]->seen == f->member[i]->frames;
  }
  dv_restore_denormals(before);
  f->controlled = f->same_row && u;
  if (f->controlled) memcpy(f->last, u, (size_t)f->model->n_u * sizeof *u);
  *belief = (dvbf_belief){.ready = ready,
                          .samples = f->samples,
                          .n_z = (size_t)f->model->n_z,
                          .mean = best->mean,
                          .deviation = best->deviation,
                          .z = best->z};
}

/* ---- Predictions ---- */

/* The first step is a forecast, those after it are predictions; the members that take part in a step count
 * alike. */

static dvbf_status check(const dvbf_filter *f, const dvbf_forecast_request *ask, dvbf_error *error) {
  for (int i = 0; i < f->members; i++)
    if (f->member[i]->seen < f->member[i]->frames)
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

/* A single model with exact distributions needs no samples. */
static bool knows_quantiles(const dvbf_filter *f) {
  return f->members == 1 && f->member[0]->exact;
}

/* Moves member i to step t and fills its mean, variance and samples of x. The control of a step is as
 * dvbf_filter_step takes it. */
static void expect(dvbf_filter *f, int i, const dvbf_forecast_request *ask, size_t t) {
  size_t n_x = (size_t)f->model->n_x, n_u = (size_t)f->model->n_u;
  const float *u = n_u ? ask->u + t * n_u : NULL;
  bool wanted = ask->x_quantiles && ask->n_quantiles && !knows_quantiles(f);
  dv_expected_x out = {.noise = !ask->noise_free,
                       .mean = f->mean + (size_t)i * n_x,
                       .variance = f->variance + (size_t)i * n_x,
                       .samples = wanted ? f->x + (size_t)i * f->samples * n_x : NULL};
  u = control_for(f, f->member[i], u, t && u ? u - n_u : NULL);
  dv_online_forecast(f->member[i], (uint32_t)t, u, &out);
}

/* Members that take part at step t. */
typedef struct pool {
  size_t which[DV_MOST_MEMBERS], count;
} pool;

/* The mean of the members' means, and the deviation of all their samples together. */
static void put_moments(const dvbf_filter *f, const pool *p, const dvbf_forecast_request *ask, size_t t) {
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

static void put_pool_quantiles(dvbf_filter *f, const pool *p, const dvbf_forecast_request *ask, size_t t) {
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

dvbf_status dvbf_filter_predict(dvbf_filter *f, const dvbf_forecast_request *ask, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(f->model));
  dvbf_status status = check(f, ask, error);
  if (status) return status;
  const dv_online *best = f->member[0];
  size_t n_z = (size_t)f->model->n_z;
  unsigned before = dv_flush_denormals();
  for (int i = 0; i < f->members; i++) dv_online_forecast_begin(f->member[i]);
  for (size_t t = 0; t < ask->steps; t++) {
    pool p = {.count = 0};
    for (int i = 0; i < f->members; i++) {
      bool part = dv_model_takes_part(f->member[i]->model, t == 0);
      if (part) p.which[p.count++] = (size_t)i;
      /* The best member gives z. One that takes part in the forecast alone need not be moved further. */
      if (part || i == 0 || t == 0) expect(f, i, ask, t);
    }
    put_moments(f, &p, ask, t);
    if (ask->x_quantiles && ask->n_quantiles) put_pool_quantiles(f, &p, ask, t);
    if (ask->z_mean) memcpy(ask->z_mean + t * n_z, best->mean, n_z * sizeof *best->mean);
    if (ask->z_std) memcpy(ask->z_std + t * n_z, best->deviation, n_z * sizeof *best->deviation);
  }
  for (int i = 0; i < f->members; i++) dv_online_forecast_end(f->member[i]);
  dv_restore_denormals(before);
  return DVBF_OK;
}
