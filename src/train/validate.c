/* Validation scores (dv_validator_run: bound, prediction error, error one step ahead), the range of the state
 * over the training data (dv_range_measure), and second moments of the innovation (dv_innovation_moments).
 * Each is a forward pass without gradients, shared by threads and ranks. */
#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "model/batches.h"
#include "model/density.h"
#include "train/trainer.h"

#include <math.h>
#include <string.h>

enum { VALIDATION_PARTICLES = 64 };

/* Units of the scores. */
static dvbf_status set_units(dv_validator *v, const dvbf_model *m, double log_jacobian, dvbf_error *error) {
  dv_statistics x;
  dvbf_status status = dv_statistics_together(&x, v->sequences, dv_threads_ranks(v->filter.pool), error);
  if (status) return status;
  v->variance = dv_calloc((size_t)m->n_x, sizeof *v->variance);
  for (int i = 0; v->variance && i < m->n_x; i++)
    v->variance[i] = x.variance[i] * (double)m->x.scale[i] * (double)m->x.scale[i];
  v->frames = (double)x.frames;
  v->jacobian = dv_model_log_jacobian_of(m, x.seen) + v->frames * log_jacobian;
  dv_statistics_free(&x);
  return v->variance ? DVBF_OK : dv_fail_memory(error, "measuring validation data");
}

dvbf_status dv_validator_init(dv_validator *v, dvbf_model *model, dv_threads *pool,
                              const dvbf_sequences *sequences, double log_jacobian, dvbf_error *error) {
  *v = (dv_validator){.sequences = sequences};
  int asked = dv_settings_predict_from(model->settings), needed = dv_model_frames_needed(model);
  int observe = asked > needed ? asked : needed;
  dvbf_status status = dv_pass_init(&v->filter, model, pool, sequences, 0, error);
  if (!status && observe < (int)sequences->steps && !model->type->timeless)
    status = dv_pass_init(&v->predict, model, pool, sequences, observe, error);
  if (!status && dv_program_resamples(model))
    status = dv_pass_init_particles(&v->particles, model, pool, sequences, VALIDATION_PARTICLES, error);
  if (!status) status = set_units(v, model, log_jacobian, error);
  if (!status) {
    size_t shards = dv_pass_shards(v->particles.workers ? &v->particles : &v->filter, sequences);
    v->terms = dv_calloc(shards, sizeof *v->terms);
    v->errors = dv_calloc(shards, sizeof *v->errors);
    if (!v->terms || !v->errors) status = dv_fail_memory(error, "preparing validation");
  }
  if (status) dv_validator_clear(v);
  return status;
}

void dv_validator_clear(dv_validator *v) {
  dv_pass_clear(&v->filter);
  dv_pass_clear(&v->predict);
  dv_pass_clear(&v->particles);
  DV_FREE(v->variance, v->terms, v->errors);
  *v = (dv_validator){0};
}

static void collect_terms(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  dv_validator *v = user;
  memcpy(v->terms[shard], w->run.terms, sizeof w->run.terms);
}

/* A term of the bound of one shard; 0 if the model has none of that name. */
static double term_of(const dv_validator *v, const dv_pass *pass, size_t shard, const char *name) {
  int term = dv_graph_term(pass->program.graph, name);
  return term < 0 ? 0 : v->terms[shard][term];
}

/* Adds the squared error of a frame over its observed values, and their unit, to sums. */
typedef void frame_fn(const dv_validator *v, const dvbf_model *m, const dvbf_real *output, const float *x,
                      double sums[2]);

/* Of predictions, in the variance of the values. */
static void add_prediction(const dv_validator *v, const dvbf_model *m, const dvbf_real *output,
                           const float *x, double sums[2]) {
  double sum = 0;
  for (int i = 0; i < m->n_x; i++) {
    if (isnan(x[i])) continue;
    double e = dv_density_mean(m->density, (double)output[i]) -
               (double)(x[i] - m->x.shift[i]) * (double)m->x.scale[i];
    sum += e * e;
    sums[1] += v->variance[i];
  }
  sums[0] += sum;
}

/* Of innovations, which are errors; each column in units of its own. */
static void add_innovation(const dv_validator *v, const dvbf_model *m, const dvbf_real *e, const float *x,
                           double sums[2]) {
  for (int i = 0; i < m->n_x; i++) {
    if (isnan(x[i]) || !(v->variance[i] > 0)) continue;
    sums[0] += (double)e[i] * (double)e[i] / v->variance[i];
    sums[1] += 1;
  }
}

/* Errors from frame `from` on; those of frame t are in step t - `late` of the output. */
static void add_frames(dv_validator *v, const dv_worker *w, size_t shard, size_t first, int count,
                       dvbf_value output, int from, int late, frame_fn *add) {
  size_t n_x = (size_t)w->model->n_x, rows = (size_t)w->program->rows;
  const dvbf_real *at = dvbf_at(&w->run, output);
  double *sums = v->errors[shard];
  sums[0] = sums[1] = 0;
  for (size_t r = 0; r < (size_t)count; r++) {
    int length = (int)dvbf_sequence_length(v->sequences, first + r);
    if (length <= from) continue;
    const float *x = dv_sequence_x(v->sequences, first + r, (size_t)from, (size_t)(length - from), w->frames);
    for (int t = from; t < length; t++, x += n_x)
      if (t >= late) add(v, w->model, at + ((size_t)(t - late) * rows + r) * n_x, x, sums);
  }
}

static void collect_errors(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  dv_validator *v = user;
  add_frames(v, w, shard, first, count, w->program->output, v->predict.observe, 0, add_prediction);
}

/* One step ahead, of frames that the initial network has not seen. */
static void collect_innovations(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  add_frames(user, w, shard, first, count, w->program->innovation, dv_model_start_frames(w->model), 1,
             add_innovation);
}

/* The relative error collected in a pass without noise; NaN if there is nothing. */
static dvbf_status measure_errors(double *out, dv_validator *v, dv_pass *pass, dv_conditions conditions,
                                  dv_pass_fn *collect, dvbf_error *error) {
  double sum = 0, units = 0;
  conditions.noise_free = true;
  dvbf_status status = dv_pass_run(pass, v->sequences, &conditions, collect, v, error);
  size_t shards = dv_pass_shards(&v->filter, v->sequences);
  dv_ranks_gather(dv_threads_ranks(pass->pool), v->errors, sizeof *v->errors, shards);
  for (size_t i = 0; i < shards; i++) sum += v->errors[i][0], units += v->errors[i][1];
  *out = units > 0 ? sum / units : NAN;
  return status;
}

/* The bound of a particle filter, in nats per frame. */
static dvbf_status weigh_particles(double *bound, dv_validator *v, const dv_conditions *conditions,
                                   dvbf_error *error) {
  size_t shards = dv_pass_shards(&v->particles, v->sequences);
  double sum = v->jacobian;
  dvbf_status status = dv_pass_run(&v->particles, v->sequences, conditions, collect_terms, v, error);
  dv_ranks_gather(dv_threads_ranks(v->particles.pool), v->terms, sizeof *v->terms, shards);
  for (size_t i = 0; i < shards; i++) sum += term_of(v, &v->particles, i, DVBF_IMPORTANCE);
  *bound = v->frames > 0 ? sum / v->frames : 0;
  return status;
}

dvbf_status dv_validator_run(dv_scores *out, dv_validator *v, double log_sigma_floor, dvbf_error *error) {
  const dvbf_model *m = v->filter.model;
  dv_conditions conditions = dv_model_conditions(m, (uint64_t)m->settings->seed);
  dv_conditions_set(&conditions, DVBF_LOG_SIGMA_FLOOR, log_sigma_floor);
  dv_scores s = {.prediction = NAN, .one_step = NAN};
  double per_frame = v->frames > 0 ? 1 / v->frames : 0;
  size_t shards = dv_pass_shards(&v->filter, v->sequences);
  dvbf_status status = dv_pass_run(&v->filter, v->sequences, &conditions, collect_terms, v, error);
  dv_ranks_gather(dv_threads_ranks(v->filter.pool), v->terms, sizeof *v->terms, shards);
  for (size_t i = 0; i < shards; i++) {
    s.reconstruction += term_of(v, &v->filter, i, DVBF_RECONSTRUCTION) * per_frame;
    s.kl_w += term_of(v, &v->filter, i, DVBF_KL_W) * per_frame;
    s.kl_v += term_of(v, &v->filter, i, DVBF_KL_V) * per_frame;
  }
  s.reconstruction += v->jacobian * per_frame;
  s.bound = s.reconstruction - s.kl_w - s.kl_v;
  if (!status && v->particles.workers) status = weigh_particles(&s.bound, v, &conditions, error);
  if (!status && v->predict.workers)
    status = measure_errors(&s.prediction, v, &v->predict, conditions, collect_errors, error);
  if (!status && v->one_step && v->filter.program.innovation.buffer >= 0)
    status = measure_errors(&s.one_step, v, &v->filter, conditions, collect_innovations, error);
  if (!status) *out = s;
  return status;
}

/* ---- State range ---- */

enum {
  MOST_WINDOWS = 256, /* are filtered: enough to see the range, and little work beside the updates */
  PASSES = 4,         /* over these windows, each with noise of its own */
  RANGE_FACTOR = 10   /* while training, limits are this many times wider */
};

dvbf_status dv_range_init(dv_range *r, const dvbf_model *model, dv_threads *pool, const dvbf_sequences *train,
                          size_t window, dvbf_error *error) {
  *r = (dv_range){0};
  if (!dv_model_range(model)) return DVBF_OK;
  dvbf_status status = dv_windows_cut(&r->sequences, train, window, window, error);
  if (status) return status;
  size_t every = (r->sequences.count + MOST_WINDOWS - 1) / MOST_WINDOWS, kept = 0;
  for (size_t i = 0; i < r->sequences.count; i += every, kept++) {
    r->sequences.start[kept] = r->sequences.start[i];
    if (r->sequences.length) r->sequences.length[kept] = r->sequences.length[i];
  }
  r->sequences.count = kept;
  status = dv_pass_init(&r->pass, model, pool, &r->sequences, 0, error);
  if (status) return status;
  size_t n = dv_pass_shards(&r->pass, &r->sequences) * (size_t)model->n_z;
  r->low = dv_calloc(n, sizeof *r->low);
  r->high = dv_calloc(n, sizeof *r->high);
  return r->low && r->high ? DVBF_OK : dv_fail_memory(error, "preparing to measure states");
}

void dv_range_clear(dv_range *r) {
  dv_pass_clear(&r->pass);
  dv_windows_free(&r->sequences);
  DV_FREE(r->low, r->high);
  *r = (dv_range){0};
}

static void collect_range(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  dv_range *r = user;
  int n = w->model->n_z;
  dvbf_real *low = r->low + shard * (size_t)n, *high = r->high + shard * (size_t)n;
  for (int i = 0; i < count; i++)
    for (size_t t = 0; t < dvbf_sequence_length(&r->sequences, first + (size_t)i); t++)
      dv_model_widen_range(low, high,
                           dvbf_at(&w->run, dvbf_steps(w->program->z, (int)t, 1)) + (size_t)i * (size_t)n, n);
}

dvbf_status dv_range_measure(dv_range *r, dvbf_model *m, dvbf_error *error) {
  if (!r->low) return DVBF_OK;
  dvbf_status status = DVBF_OK;
  size_t shards = dv_pass_shards(&r->pass, &r->sequences), n = (size_t)m->n_z;
  for (size_t i = 0; i < shards * n; i++) r->low[i] = (dvbf_real)INFINITY, r->high[i] = (dvbf_real)-INFINITY;
  for (uint64_t k = 0; k < PASSES && !status; k++) {
    dv_conditions conditions = dv_model_conditions(m, (uint64_t)m->settings->seed + k);
    status = dv_pass_run(&r->pass, &r->sequences, &conditions, collect_range, r, error);
  }
  dv_ranks_gather(dv_threads_ranks(r->pass.pool), r->low, n * sizeof *r->low, shards);
  dv_ranks_gather(dv_threads_ranks(r->pass.pool), r->high, n * sizeof *r->high, shards);
  for (size_t i = 1; i < shards; i++) {
    dv_model_widen_range(r->low, r->high, r->low + i * n, m->n_z);
    dv_model_widen_range(r->low, r->high, r->high + i * n, m->n_z);
  }
  if (!status) dv_model_set_range(m, r->low, r->high, m->settings->state_limit);
  return status;
}

void dv_range_widen(dvbf_model *m) {
  dvbf_real *range = dv_model_range(m);
  for (int k = 0; range && k < m->n_z; k++) range[m->n_z + k] *= RANGE_FACTOR;
}

/* ---- Innovations ---- */

typedef struct innovation_sums {
  const dvbf_sequences *sequences;
  double *squares; /* [shards][n_x][n_x] */
  double *frames;  /* [shards] */
} innovation_sums;

static void collect_start_innovations(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  innovation_sums *s = user;
  dvbf_value e = w->program->innovation;
  size_t n = (size_t)e.cols;
  double *to = s->squares + shard * n * n;
  memset(to, 0, n * n * sizeof *to);
  s->frames[shard] = 0;
  for (int r = 0; r < count; r++) {
    int length = (int)dvbf_sequence_length(s->sequences, first + (size_t)r),
        from = dv_model_start_frames(w->model);
    for (int t = from > 1 ? from : 1; t < length; t++) {
      const dvbf_real *at = dvbf_at(&w->run, dvbf_steps(e, t - 1, 1)) + (size_t)r * n;
      for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) to[i * n + j] += (double)at[i] * (double)at[j];
      s->frames[shard] += 1;
    }
  }
}

dvbf_status dv_innovation_moments(double *e, const dvbf_model *m, dv_threads *pool,
                                  const dvbf_sequences *train, dvbf_error *error) {
  dv_pass pass = {0};
  size_t n = (size_t)m->n_x * (size_t)m->n_x;
  dvbf_status status = dv_pass_init(&pass, m, pool, train, 0, error);
  if (status) return status;
  size_t shards = dv_pass_shards(&pass, train);
  innovation_sums s = {train, dv_calloc(shards, n * sizeof *s.squares), dv_calloc(shards, sizeof *s.frames)};
  status = s.squares && s.frames ? DVBF_OK : dv_fail_memory(error, "measuring innovations");
  dv_conditions conditions = dv_model_conditions(m, (uint64_t)m->settings->seed);
  conditions.noise_free = true;
  if (!status) status = dv_pass_run(&pass, train, &conditions, collect_start_innovations, &s, error);
  if (!status) {
    dv_ranks_gather(dv_threads_ranks(pool), s.squares, n * sizeof *s.squares, shards);
    dv_ranks_gather(dv_threads_ranks(pool), s.frames, sizeof *s.frames, shards);
  }
  double frames = 0;
  memset(e, 0, n * sizeof *e);
  for (size_t i = 0; i < shards && !status; i++) {
    frames += s.frames[i];
    for (size_t k = 0; k < n; k++) e[k] += s.squares[i * n + k];
  }
  for (size_t k = 0; k < n && frames > 0; k++) e[k] /= frames;
  DV_FREE(s.squares, s.frames);
  dv_pass_clear(&pass);
  return status;
}
