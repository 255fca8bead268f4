/* The paper's tables for one set of sequences, and the error of prediction by horizon. */
#include "base/memory.h"
#include "base/settings.h"
#include "base/status.h"
#include "data/dataset.h"
#include "evaluate/likelihood.h"
#include "evaluate/regression.h"
#include "infer/infer.h"
#include "infer/universal.h"

#include <math.h>
#include <string.h>

void dvbf_evaluation_free(dvbf_evaluation *e) {
  if (!e) return;
  dv_free(e->regressions);
  dv_free(e->mse);
  dv_free(e->mse_mean_path);
  dv_free(e->mse_repeat);
  dv_free(e);
}

/* ---- Table 1: each column of the ground truth on latent samples ---- */

/* Copies latent samples and one column of the truth, of the frames where it is known; returns their number.
 */
static size_t gather_frames(const dvbf_sequences *s, const dvbf_paths *paths, size_t column, float *z,
                            float *y) {
  size_t n = 0;
  for (size_t i = 0; i < s->count; i++)
    for (size_t t = 0; t < dvbf_sequence_length(s, i); t++) {
      float truth = s->state[(dvbf_sequence_start(s, i) + t) * s->n_s + column];
      if (isnan(truth)) continue;
      memcpy(z + n * paths->n_z, paths->z + (i * paths->steps + t) * paths->n_z, paths->n_z * sizeof *z);
      y[n++] = truth;
    }
  return n;
}

static dvbf_status regress(dvbf_evaluation *e, const dvbf_data *data, const dvbf_sequences *s,
                           const dvbf_paths *paths, dvbf_error *error) {
  if (!s->n_s) return DVBF_OK;
  size_t frames = s->count * s->steps;
  float *z = dv_calloc(frames, paths->n_z * sizeof *z), *y = dv_calloc(frames, sizeof *y);
  e->regressions = dv_calloc(s->n_s, sizeof *e->regressions);
  dvbf_status status = z && y && e->regressions ? DVBF_OK : dv_fail_memory(error, "regressing");
  for (size_t i = 0; i < s->n_s && !status; i++) {
    dvbf_regression *r = &e->regressions[i];
    memcpy(r->name, data->state_names[i], sizeof r->name);
    size_t n = gather_frames(s, paths, i, z, y);
    status = dv_regress(z, n, paths->n_z, y, 1, &r->r2, &r->log_likelihood, NULL, error);
    e->n_regressions = i + 1;
  }
  dv_free(z);
  dv_free(y);
  return status;
}

/* ---- Table 2: the bound ---- */

static double total(const double *values, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += values[i];
  return sum;
}

/* Adds one sample's bound, in nats per frame. */
static double add_bound(dvbf_evaluation *e, const dvbf_sequences *s, const dvbf_paths *paths, double frames,
                        double kl_v) {
  size_t all = s->count * s->steps;
  double reconstruction = total(paths->log_likelihood, all) / frames;
  double kl_w = total(paths->kl, all) / frames;
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

/* Closer bounds, by weighted paths and particles. */
static dvbf_status tighten(dvbf_evaluation *e, const dvbf_model *m, const dvbf_sequences *s,
                           const dv_evaluate_settings *o, double frames, dvbf_error *error) {
  dv_likelihoods l = {0};
  e->importance_bound = e->particle_bound = NAN;
  if (!o->particles) return DVBF_OK;
  e->particles = (size_t)o->particles;
  dvbf_status status =
      dv_likelihoods_of(&l, m, s, e->particles, (uint64_t)o->seed, (unsigned)o->threads, error);
  if (!status) e->importance_bound = total(l.importance, s->count) / frames - e->kl_v;
  if (!status && l.particle) e->particle_bound = total(l.particle, s->count) / frames - e->kl_v;
  dv_likelihoods_free(&l);
  return status;
}

/* ---- Prediction by horizon ---- */

/* Squared error of a frame over the values of `x` that are there, which are counted. */
static double frame_error(const float *x, const float *guess, size_t n, double *count) {
  double sum = 0;
  for (size_t k = 0; k < n; k++) {
    double e = (double)(x[k] - guess[k]);
    if (isnan(e)) continue;
    sum += e * e;
    *count += 1;
  }
  return sum;
}

/* error[h] += mean over sequences of the squared error per pixel of frame observed + h, times `share`; the
 * guess is [count][steps][n_x], NULL: the last frame that was observed. */
static dvbf_status add_errors(double *out, const dvbf_sequences *s, const float *guess, size_t observed,
                              size_t horizon, double share, dvbf_error *error) {
  float *buffer = NULL;
  double *sum = dv_calloc(horizon, 2 * sizeof *sum), *count = sum ? sum + horizon : NULL;
  dvbf_status status =
      sum ? dv_sequence_buffer(&buffer, s, s->steps, error) : dv_fail_memory(error, "scoring predictions");
  for (size_t i = 0; i < s->count && !status; i++) {
    size_t length = dvbf_sequence_length(s, i);
    if (length <= observed) continue;
    const float *x = dv_sequence_x(s, i, 0, length, buffer);
    for (size_t h = 0; h < length - observed; h++) {
      const float *g = guess ? guess + (i * s->steps + observed + h) * s->n_x : x + (observed - 1) * s->n_x;
      sum[h] += frame_error(x + (observed + h) * s->n_x, g, s->n_x, &count[h]);
    }
  }
  if (!status) status = dv_sequences_intact(s, error);
  for (size_t h = 0; h < horizon && !status; h++)
    if (count[h] > 0) out[h] += share * sum[h] / count[h];
  dv_free(buffer);
  dv_free(sum);
  return status;
}

static dvbf_status predict(dvbf_evaluation *e, const dvbf_model *m, const dvbf_sequences *s,
                           const dv_evaluate_settings *o, dvbf_error *error) {
  size_t needed = (size_t)dv_model_frames_needed(m), asked = (size_t)o->observe;
  dvbf_infer_options options = {.observe = asked > needed ? asked : needed, .threads = (unsigned)o->threads};
  if (options.observe >= s->steps) return DVBF_OK; /* nothing is left to predict: horizon stays 0 */
  e->observed = options.observe;
  e->horizon = s->steps - options.observe;
  e->mse = dv_calloc(e->horizon, sizeof *e->mse);
  e->mse_mean_path = dv_calloc(e->horizon, sizeof *e->mse_mean_path);
  e->mse_repeat = dv_calloc(e->horizon, sizeof *e->mse_repeat);
  if (!e->mse || !e->mse_mean_path || !e->mse_repeat) return dv_fail_memory(error, "scoring predictions");
  dvbf_status status = add_errors(e->mse_repeat, s, NULL, e->observed, e->horizon, 1, error);
  for (int64_t i = 0; i <= o->samples && !status; i++) { /* the last pass is the mean path */
    dvbf_paths *paths = NULL;
    options.mean_path = i == o->samples;
    options.seed = (uint64_t)(o->seed + i);
    status = dvbf_infer(&paths, m, s, &options, error);
    if (status) break;
    status = add_errors(options.mean_path ? e->mse_mean_path : e->mse, s, paths->x, e->observed, e->horizon,
                        options.mean_path ? 1 : 1 / (double)o->samples, error);
    dvbf_paths_free(paths);
  }
  return status;
}

/* ---- All of it ---- */

static dvbf_status filter(dvbf_evaluation *e, const dvbf_model *m, const dvbf_data *data,
                          const dvbf_sequences *s, const dv_evaluate_settings *o, double frames,
                          dvbf_error *error) {
  size_t samples = (size_t)o->samples;
  double *elbo = dv_calloc(samples, sizeof *elbo), kl_v = dv_universal_kl(m) * (double)s->count / frames;
  dvbf_status status = elbo ? DVBF_OK : dv_fail_memory(error, "evaluating");
  for (size_t i = 0; i < samples && !status; i++) {
    dvbf_infer_options options = {.seed = (uint64_t)o->seed + i, .threads = (unsigned)o->threads};
    dvbf_paths *paths = NULL;
    status = dvbf_infer(&paths, m, s, &options, error);
    if (status) break;
    elbo[i] = add_bound(e, s, paths, frames, kl_v);
    if (i == 0) status = regress(e, data, s, paths, error);
    dvbf_paths_free(paths);
  }
  if (!status) average_bound(e, elbo, samples);
  dv_free(elbo);
  return status;
}

dvbf_status dvbf_evaluate(dvbf_evaluation **out, const dvbf_model *m, const dvbf_data *data,
                          const dvbf_sequences *s, const dvbf_settings *settings, dvbf_error *error) {
  const dv_evaluate_settings *o = dv_settings_evaluate(settings, error);
  if (!o) return DVBF_ARGUMENT;
  if (!s->count) return dv_fail(error, DVBF_FORMAT, "there are no sequences to evaluate in this split");
  dvbf_evaluation *e = dv_calloc(1, sizeof *e);
  if (!e) return dv_fail_memory(error, "evaluating");
  dv_statistics x = {0};
  dvbf_status status = dv_statistics_of_x(&x, s, error);
  if (!status && !x.frames)
    status = dv_fail(error, DVBF_FORMAT, "nothing is seen of the sequences to evaluate: all of x is missing");
  if (!status) {
    e->pixel_variance = total(x.variance, s->n_x) / (double)s->n_x;
    status = filter(e, m, data, s, o, (double)x.frames, error);
    if (!status) status = tighten(e, m, s, o, (double)x.frames, error);
  }
  dv_statistics_free(&x);
  if (!status) status = predict(e, m, s, o, error);
  if (status) {
    dvbf_evaluation_free(e);
    return status;
  }
  *out = e;
  return DVBF_OK;
}
