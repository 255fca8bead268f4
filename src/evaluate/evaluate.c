/* The paper's tables for one set of sequences, and the error of prediction by horizon. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/text.h"
#include "data/dataset.h"
#include "evaluate/horizon.h"
#include "evaluate/likelihood.h"
#include "evaluate/paths.h"
#include "evaluate/regression.h"
#include "exec/alike.h"

#include <math.h>
#include <string.h>

void dvbf_evaluation_free(dvbf_evaluation *e) {
  if (!e) return;
  DV_FREE(e->regressions, e->mse, e->mse_mean_path, e->mse_repeat, e->distance, e->distance_repeat);
  dvbf_stability_free(e->stability);
  dvbf_verdict_free(e->verdict);
  dv_free(e);
}

/* What one evaluation works with. */
typedef struct evaluator {
  const dvbf_model *model;
  const dvbf_data *data;
  const dvbf_sequences *sequences;
  const dv_evaluate_settings *settings;
  dv_pool *pool;
  dv_paths *paths; /* drawn anew for each sample */
  double frames;   /* with a value that is seen */
  dvbf_evaluation *out;
} evaluator;

/* ---- Table 1: each column of the ground truth on latent samples ---- */

/* Copies latent samples and one column of the truth, of the frames where it is known; returns their number.
 */
static size_t gather_frames(const evaluator *v, size_t column, float *z, float *y) {
  const dvbf_sequences *s = v->sequences;
  size_t n = 0, n_z = v->paths->n_z;
  for (size_t i = 0; i < s->count; i++)
    for (size_t t = 0; t < dvbf_sequence_length(s, i); t++) {
      float truth = s->state[(dvbf_sequence_start(s, i) + t) * s->n_s + column];
      if (isnan(truth)) continue;
      memcpy(z + n * n_z, v->paths->z + (i * s->steps + t) * n_z, n_z * sizeof *z);
      y[n++] = truth;
    }
  return n;
}

static dvbf_status regress(evaluator *v, dvbf_error *error) {
  dvbf_evaluation *e = v->out;
  size_t n_s = v->sequences->n_s, frames = v->sequences->count * v->sequences->steps, n_z = v->paths->n_z;
  if (!n_s) return DVBF_OK;
  float *z = dv_calloc(frames, n_z * sizeof *z), *y = dv_calloc(frames, sizeof *y);
  e->regressions = dv_calloc(n_s, sizeof *e->regressions);
  dvbf_status status = z && y && e->regressions ? DVBF_OK : dv_fail_memory(error, "regressing");
  for (size_t i = 0; i < n_s && !status; i++) {
    dvbf_regression *r = &e->regressions[i];
    memcpy(r->name, v->data->state_names[i], sizeof r->name);
    size_t n = gather_frames(v, i, z, y);
    status = dv_regress(z, n, n_z, y, 1, &r->r2, &r->log_likelihood, NULL, error);
    e->n_regressions = i + 1;
  }
  if (!status)
    dv_names_tell_apart(e->regressions->name, n_s, sizeof *e->regressions, sizeof e->regressions->name);
  DV_FREE(z, y);
  return status;
}

/* ---- Table 2: the bound ---- */

static double total(const double *values, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += values[i];
  return sum;
}

/* Adds one sample's bound, in nats per frame. */
static double add_bound(evaluator *v, double kl_v) {
  dvbf_evaluation *e = v->out;
  size_t all = v->sequences->count * v->sequences->steps;
  double reconstruction = total(v->paths->log_likelihood, all) / v->frames;
  double kl_w = total(v->paths->kl, all) / v->frames;
  e->reconstruction += reconstruction;
  e->kl_w += kl_w;
  e->kl_v += kl_v;
  return reconstruction - kl_w - kl_v;
}

static void average_bound(dvbf_evaluation *e, const double *elbo, size_t samples) {
  double squares = 0;
  e->reconstruction /= (double)samples;
  e->kl_w /= (double)samples;
  e->kl_v /= (double)samples;
  e->elbo = e->reconstruction - e->kl_w - e->kl_v;
  for (size_t i = 0; i < samples; i++) squares += (elbo[i] - e->elbo) * (elbo[i] - e->elbo);
  e->elbo_deviation = samples > 1 ? sqrt(squares / (double)(samples - 1)) : 0;
}

static dvbf_status filter(evaluator *v, dvbf_error *error) {
  size_t samples = (size_t)v->settings->samples;
  double *elbo = dv_calloc(samples, sizeof *elbo);
  double kl_v = dv_universal_kl(v->model) * (double)v->sequences->count / v->frames;
  dv_pass pass = {0};
  dvbf_status status = elbo ? dv_pass_init(&pass, v->model, v->pool, v->sequences, 0, error)
                            : dv_fail_memory(error, "evaluating");
  for (size_t i = 0; i < samples && !status; i++) {
    status = dv_paths_draw(v->paths, &pass, v->sequences, (uint64_t)v->settings->seed + i, false, error);
    if (!status) elbo[i] = add_bound(v, kl_v);
    if (!status && i == 0) status = regress(v, error);
  }
  if (!status) average_bound(v->out, elbo, samples);
  dv_pass_clear(&pass);
  dv_free(elbo);
  return status;
}

/* Closer bounds, by weighted paths and particles. */
static dvbf_status tighten(evaluator *v, dvbf_error *error) {
  dvbf_evaluation *e = v->out;
  size_t count = v->sequences->count;
  dv_likelihoods l = {0};
  e->importance_bound = e->particle_bound = NAN;
  e->particles = (size_t)v->settings->particles;
  if (!e->particles) return DVBF_OK;
  if (v->model->type->exact) { /* the bound is the likelihood itself */
    e->importance_bound = e->particle_bound = e->elbo;
    return DVBF_OK;
  }
  dvbf_status status = dv_likelihoods_of(&l, v->model, v->sequences, e->particles, true,
                                         (uint64_t)v->settings->seed, v->pool, error);
  if (!status) e->importance_bound = total(l.importance, count) / v->frames - e->kl_v;
  if (!status && l.particle) e->particle_bound = total(l.particle, count) / v->frames - e->kl_v;
  dv_likelihoods_free(&l);
  return status;
}

/* ---- All of it ---- */

static dvbf_status measure_data(evaluator *v, dvbf_error *error) {
  dv_statistics x = {0};
  dvbf_status status = dv_statistics_of_x(&x, v->sequences, error);
  if (status) return status;
  v->frames = (double)x.frames;
  v->out->pixel_variance = total(x.variance, v->sequences->n_x) / (double)v->sequences->n_x;
  dv_statistics_free(&x);
  return v->frames > 0 ? DVBF_OK
                       : dv_fail(error, DVBF_FORMAT,
                                 "nothing is seen of the sequences to evaluate: all of x is missing");
}

dvbf_status dvbf_evaluate(dvbf_evaluation **out, const dvbf_model *m, const dvbf_data *data,
                          const dvbf_sequences *s, const dvbf_settings *settings, dvbf_error *error) {
  evaluator v = {.model = m, .data = data, .sequences = s, .settings = dv_settings_evaluate(settings, error)};
  if (!v.settings) return DVBF_ARGUMENT;
  if (!s->count) return dv_fail(error, DVBF_FORMAT, "there are no sequences to evaluate in this split");
  if (s->n_s && !data->state_names)
    return dv_fail(error, DVBF_FORMAT, "the columns of state have no names; fill state_names");
  DV_COMPUTE(dv_model_portable(m));
  v.out = dv_calloc(1, sizeof *v.out);
  dvbf_status status = v.out ? dv_model_takes(m, s, error) : dv_fail_memory(error, "evaluating");
  if (!status) status = measure_data(&v, error);
  if (!status) status = dv_pool_new(&v.pool, (unsigned)v.settings->threads, error);
  if (!status) dv_pool_stop_by(v.pool, dv_settings_interrupt(settings));
  if (!status) dv_pool_join(v.pool, dv_settings_ranks(settings));
  if (!status) status = dv_ranks_use_alike(dv_settings_ranks(settings), settings, m, s, error);
  if (!status) status = dv_paths_new(&v.paths, m, s, false, error);
  if (!status) status = filter(&v, error);
  if (!status) status = tighten(&v, error);
  if (!status) status = dv_horizon_errors(v.out, m, s, data, v.settings, v.pool, error);
  if (!status) status = dvbf_stability_of(&v.out->stability, m, error);
  if (!status && v.settings->verdict) status = dvbf_judge(&v.out->verdict, m, data, s, settings, error);
  dv_paths_free(v.paths);
  dv_pool_free(v.pool);
  if (status)
    dvbf_evaluation_free(v.out);
  else
    *out = v.out;
  return status;
}
