/* The paper's tables for one set of sequences (dvbf_evaluate): known states regressed on latent samples, the
 * bound, and error of prediction by horizon. Also closer bounds from weighted paths and particles
 * (dv_likelihoods_of), and one latent path per sequence for evaluation and figures (dv_paths_of). */
#include "evaluate/evaluate.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/dataset.h"
#include "infer/particles.h"
#include "math/portable.h"
#include "model/batches.h"
#include "settings_tables.h"

#include <math.h>
#include <string.h>

/* ---- Paths ---- */

/* Makes room for paths through these sequences, and for their x if it is wanted; to be freed also after a
 * failure. */
static dvbf_status new_paths(dv_paths **out, const dvbf_model *m, const dvbf_sequences *s, bool x,
                             dvbf_error *error) {
  dv_paths *p = *out = dv_calloc(1, sizeof *p);
  size_t frames = s->count * s->steps, n_z = (size_t)m->n_z;
  if (!p) return dv_fail_memory(error, "making room for paths");
  *p = (dv_paths){.count = s->count,
                  .steps = s->steps,
                  .n_z = n_z,
                  .n_x = s->n_x,
                  .z = dv_calloc(frames, n_z * sizeof *p->z),
                  .x = x ? dv_calloc(frames, s->n_x * sizeof *p->x) : NULL,
                  .log_likelihood = dv_calloc(frames, sizeof *p->log_likelihood),
                  .kl = dv_calloc(frames, sizeof *p->kl)};
  bool room = p->z && (p->x || !x) && p->log_likelihood && p->kl;
  return room ? DVBF_OK : dv_fail_memory(error, "making room for paths");
}

void dv_paths_free(dv_paths *p) {
  if (!p) return;
  DV_FREE(p->z, p->x, p->log_likelihood, p->kl, p);
}

typedef struct collection {
  dv_paths *paths;
  double jacobian; /* of a whole frame */
} collection;

static void collect(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  const dvbf_program *p = w->program;
  const dvbf_run *run = &w->run;
  collection *c = user;
  dv_paths *out = c->paths;
  const dvbf_real *z = dvbf_at(run, p->z), *output = dvbf_at(run, p->output), *ln_p = dvbf_at(run, p->ln_p);
  const dvbf_real *kl = dvbf_at(run, p->kl);
  for (int r = 0; r < count; r++)
    for (int t = 0; t < p->steps; t++) {
      size_t to = (first + (size_t)r) * out->steps + (size_t)t, from = (size_t)t * p->rows + r;
      for (size_t i = 0; i < out->n_z; i++) out->z[to * out->n_z + i] = (float)z[from * out->n_z + i];
      if (out->x) dv_model_unscale(w->model, output + from * out->n_x, out->x + to * out->n_x);
      out->log_likelihood[to] = (double)ln_p[from] + dv_frame_jacobian(w, c->jacobian, t, r);
      out->kl[to] = (double)kl[from];
    }
}

/* Fills them by one run of a pass over the sequences. Allocates nothing. */
static dvbf_status draw_paths(dv_paths *paths, dv_pass *pass, const dvbf_sequences *s, uint64_t seed,
                              bool noise_free, dvbf_error *error) {
  collection c = {paths, dv_model_log_jacobian(pass->model)};
  dv_conditions conditions = dv_model_conditions(pass->model, seed);
  conditions.noise_free = noise_free;
  dvbf_status status = dv_pass_run(pass, s, &conditions, collect, &c, error);
  if (status) return status;
  dv_pass_gather(pass, s, paths->z, paths->steps * paths->n_z * sizeof *paths->z);
  dv_pass_gather(pass, s, paths->x, paths->steps * paths->n_x * sizeof *paths->x);
  dv_pass_gather(pass, s, paths->log_likelihood, paths->steps * sizeof *paths->log_likelihood);
  dv_pass_gather(pass, s, paths->kl, paths->steps * sizeof *paths->kl);
  return DVBF_OK;
}

dvbf_status dv_paths_of(dv_paths **out, const dvbf_model *model, const dvbf_sequences *s,
                        const dv_path_options *options, dvbf_error *error) {
  dv_threads *pool = NULL;
  dv_pass pass = {0};
  dv_paths *paths = NULL;
  dvbf_status status = dv_model_takes(model, s, error);
  if (!status) status = dv_threads_new(&pool, options->threads, error);
  if (!status) dv_threads_stop_by(pool, options->interrupt);
  if (!status) status = dv_pass_init(&pass, model, pool, s, (int)options->observe, error);
  if (!status) status = new_paths(&paths, model, s, true, error);
  if (!status) status = draw_paths(paths, &pass, s, options->seed, options->noise_free, error);
  dv_pass_clear(&pass);
  dv_threads_free(pool);
  if (status)
    dv_paths_free(paths);
  else
    *out = paths;
  return status;
}

/* ---- Evaluation ---- */

void dvbf_evaluation_free(dvbf_evaluation *e) {
  if (!e) return;
  DV_FREE(e->regressions, e->origins, e->mse, e->mse_mean_path, e->mse_repeat, e->mse_mean, e->mse_linear,
          e->distance, e->distance_repeat);
  dvbf_stability_free(e->stability);
  dvbf_verdict_free(e->verdict);
  dv_free(e);
}

/* Memory of one evaluation. */
typedef struct evaluator {
  const dvbf_model *model;
  const dvbf_data *data;
  const dvbf_sequences *sequences;
  const dv_evaluate_settings *settings;
  dv_threads *pool;
  dv_paths *paths; /* drawn anew for each sample */
  double frames;   /* with a value that is seen */
  dvbf_evaluation *out;
} evaluator;

/* ---- Table 1: regression of the true state on latent samples ---- */

/* Copies latent samples and one column of the true state, of the frames where it is known; returns their
 * number. */
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
    status = draw_paths(v->paths, &pass, v->sequences, (uint64_t)v->settings->seed + i, false, error);
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
                                 "the sequences to evaluate have no known values: all of x is missing");
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
  if (!status) status = dv_threads_new(&v.pool, (unsigned)v.settings->threads, error);
  if (!status) dv_threads_stop_by(v.pool, dv_settings_interrupt(settings));
  if (!status) dv_threads_join(v.pool, dv_settings_ranks(settings));
  if (!status) status = dv_ranks_use_alike(dv_settings_ranks(settings), settings, m, s, error);
  if (!status) status = new_paths(&v.paths, m, s, false, error);
  if (!status) status = filter(&v, error);
  if (!status) status = tighten(&v, error);
  if (!status) status = dv_horizon_errors(v.out, m, s, data, v.settings, v.pool, error);
  if (!status) status = dvbf_stability_of(&v.out->stability, m, error);
  if (!status && v.settings->verdict) status = dvbf_verdict_new(&v.out->verdict, m, data, s, settings, error);
  dv_paths_free(v.paths);
  dv_threads_free(v.pool);
  if (status)
    dvbf_evaluation_free(v.out);
  else
    *out = v.out;
  return status;
}

/* ---- Closer bounds ---- */

typedef struct estimator {
  dv_importance importance;
  dv_particles particles;
} estimator;

typedef struct job {
  const dvbf_model *model;
  const dvbf_sequences *sequences;
  dv_likelihoods *out;
  size_t particles;
  uint64_t seed;
  const volatile int *interrupt;
} job;

static dvbf_status init(void *own, void *user, dvbf_error *error) {
  estimator *w = own;
  const job *j = user;
  const dvbf_sequences *s = j->sequences;
  dvbf_status status = DVBF_OK;
  if (j->out->importance)
    status = dv_importance_init(&w->importance, j->model, s, j->particles, false, error);
  w->importance.worker.run.interrupt = j->interrupt;
  if (status || !j->out->particle) return status;
  status = dv_particles_init(&w->particles, j->model, s, j->particles, (int)s->steps, error);
  w->particles.interrupt = j->interrupt;
  return status;
}

static void run(void *own, void *user, size_t i) {
  estimator *w = own;
  const job *j = user;
  if (j->out->importance) j->out->importance[i] = dv_importance_run(&w->importance, j->sequences, i, j->seed);
  if (!j->out->particle) return;
  dv_particles_run(&w->particles, j->sequences, i, j->seed);
  j->out->particle[i] = w->particles.log_likelihood;
}

static void clear(void *own) {
  estimator *w = own;
  dv_importance_clear(&w->importance);
  dv_particles_clear(&w->particles);
}

dvbf_status dv_likelihoods_of(dv_likelihoods *out, const dvbf_model *m, const dvbf_sequences *s,
                              size_t particles, bool paths, uint64_t seed, dv_threads *pool,
                              dvbf_error *error) {
  static const dv_each work = {sizeof(estimator), init, run, clear};
  bool filter = dv_model_can_filter(m);
  *out = (dv_likelihoods){0};
  dvbf_status status = dv_model_needs_weights(m, error);
  if (status) return status;
  *out = (dv_likelihoods){paths ? dv_calloc(s->count, sizeof *out->importance) : NULL,
                          filter ? dv_calloc(s->count, sizeof *out->particle) : NULL};
  if ((paths && !out->importance) || (filter && !out->particle))
    return dv_fail_memory(error, "measuring likelihoods");
  job j = {m, s, out, particles, seed, dv_threads_interrupt(pool)};
  status = dv_threads_each(pool, &work, s->count, &j, error);
  if (!status) status = dv_sequences_intact(s, error);
  if (status) return status;
  dv_ranks_gather_blocks(dv_threads_ranks(pool), out->importance, sizeof *out->importance, s->count, 1);
  dv_ranks_gather_blocks(dv_threads_ranks(pool), out->particle, sizeof *out->particle, s->count, 1);
  return DVBF_OK;
}

void dv_likelihoods_free(dv_likelihoods *l) {
  DV_FREE(l->importance, l->particle);
  *l = (dv_likelihoods){0};
}
