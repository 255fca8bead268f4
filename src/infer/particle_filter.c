/* The particle filter (dv_particles_run): recognition proposes w, weights correct it, and the particles of a
 * sequence are the rows of one program. It resamples when 1 / sum W^2 falls below half of their number. The
 * product of the mean weights is an unbiased estimate of p(x). Also importance weights of whole paths
 * (dv_importance_run), for every model. */
#include "base/error.h"
#include "base/memory.h"
#include "base/settings.h"
#include "data/dataset.h"
#include "infer/particles.h"
#include "math/portable.h"
#include "math/random.h"

#include <math.h>
#include <string.h>

/* ---- Densities ---- */

/* sum_k ln N(eps_k; 0, 1) - ln sigma_k, less n/2 ln 2 pi: ln q of what eps gave. head = (mu, ln sigma). */
static double log_q(const dvbf_real *head, const dvbf_real *eps, int n) {
  double sum = 0;
  for (int k = 0; k < n; k++)
    sum -= 0.5 * (double)eps[k] * (double)eps[k] +
           (double)dv_clamp(head[n + k], DV_LOG_SIGMA_MIN, DV_LOG_SIGMA_MAX);
  return sum;
}

/* ln N(x; 0, I), less n/2 ln 2 pi. */
static double log_standard(const dvbf_real *x, int n) {
  double sum = 0;
  for (int k = 0; k < n; k++) sum -= 0.5 * (double)x[k] * (double)x[k];
  return sum;
}

/* ln N(z; mu, sigma^2) with head = (mu, ln sigma), less n/2 ln 2 pi. */
static double log_state(const dvbf_real *z, const dvbf_real *head, int n) {
  double sum = 0;
  for (int k = 0; k < n; k++) {
    double ls = (double)dv_clamp(head[n + k], DV_LOG_SIGMA_MIN, DV_LOG_SIGMA_MAX);
    double apart = ((double)z[k] - (double)head[k]) * dv_exp(-ls);
    sum -= 0.5 * apart * apart + ls;
  }
  return sum;
}

/* Row r of step t of a value. */
static const dvbf_real *row_of(const dvbf_run *run, dvbf_value value, int t, int r) {
  return dvbf_at(run, dvbf_steps(value, t, 1)) + (size_t)r * (size_t)value.cols;
}

/* ln prior - ln q of row r of step t of a draw, the first one (w_1, or z_1 if there is no w) or a later one
 * (w_t, or z_{t+1} given z_t); 0 if it comes from the prior. */
static double log_ratio(const dvbf_drawn *d, const dv_worker *w, int t, int r) {
  const dvbf_run *run = &w->run;
  int n = d->value.cols;
  bool from_q =
      d->head.buffer >= 0 && t < d->head.steps && (d->use.buffer < 0 || *row_of(run, d->use, t, r) > 0);
  if (!from_q) return 0;
  const dvbf_real *value = row_of(run, d->value, t, r);
  double prior =
      d->prior.buffer < 0 ? log_standard(value, n) : log_state(value, row_of(run, d->prior, t, r), n);
  return prior - log_q(row_of(run, d->head, t, r), row_of(run, d->noise, t, r), n);
}

double dv_frame_jacobian(const dv_worker *w, double whole, int t, int r) {
  const dvbf_program *p = w->program;
  const dvbf_model *m = w->model;
  size_t n = (size_t)m->n_x, frame = (size_t)t * (size_t)p->rows + (size_t)r;
  if (!(dvbf_at(&w->run, p->mask)[frame] > 0)) return 0;
  if (!p->gaps || n == 1) return whole;
  const dvbf_real *seen = dvbf_at(&w->run, p->seen) + frame * n;
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    if (seen[i] > 0) sum += dv_log((double)m->x.scale[i]);
  return sum;
}

/* ---- Weights ---- */

/* ln sum exp x [n], without overflow; NaN counts as -inf. */
static double log_sum_exp(const double *x, size_t n) {
  double most = -INFINITY, sum = 0;
  for (size_t i = 0; i < n; i++)
    if (x[i] > most) most = x[i];
  if (!isfinite(most)) return most;
  for (size_t i = 0; i < n; i++)
    if (!isnan(x[i])) sum += dv_exp(x[i] - most);
  return most + dv_log(sum);
}

/* weight [n] = exp(x - ln sum exp x), which may be x itself; all equal if every x is -inf. Returns ln sum exp
 * x. */
static double normalise(const double *x, double *weight, size_t n) {
  double all = log_sum_exp(x, n);
  for (size_t i = 0; i < n; i++)
    weight[i] = !isfinite(all) ? 1 / (double)n : isnan(x[i]) ? 0 : dv_exp(x[i] - all);
  return all;
}

void dv_resample(const double *weight, size_t n, double uniform, uint32_t *index, size_t m) {
  double sum = 0, total = 0;
  size_t at = 0;
  for (size_t i = 0; i < n; i++) total += weight[i];
  sum = weight[0];
  for (size_t i = 0; i < m; i++) {
    double place = ((double)i + uniform) / (double)m * total;
    while (place > sum && at + 1 < n) sum += weight[++at];
    index[i] = (uint32_t)at;
  }
}

/* ---- Memory ---- */

dvbf_status dv_stepper_init(dv_stepper *b, const dvbf_model *m, const dvbf_sequences *s, size_t rows,
                            int initial, dvbf_error *error) {
  int flags = DV_PARTICLES | dv_gaps_of(s);
  *b = (dv_stepper){.zeros = dv_calloc(rows, sizeof *b->zeros), .key = dv_calloc(rows, sizeof *b->key)};
  if (!b->zeros || !b->key) return dv_fail_memory(error, "preparing samples");
  for (size_t i = 0; i < rows; i++) b->key[i] = (uint32_t)i;
  dvbf_status status = dv_program_record_start(&b->start_program, m, (int)rows, initial, flags, error);
  if (!status) status = dv_program_record_step(&b->step_program, m, (int)rows, 0, flags, error);
  if (!status) status = dv_worker_init(&b->start, m, &b->start_program, s, error);
  if (!status) status = dv_worker_init(&b->step, m, &b->step_program, NULL, error);
  b->start.run.conditions = b->step.run.conditions = &b->conditions;
  b->start.run.sequence = b->step.run.sequence = b->key;
  return status;
}

void dv_stepper_clear(dv_stepper *b) {
  dv_worker_clear(&b->start);
  dv_worker_clear(&b->step);
  dv_program_clear(&b->start_program);
  dv_program_clear(&b->step_program);
  DV_FREE(b->zeros, b->key);
}

const dvbf_real *dv_stepper_start(dv_stepper *b, const dvbf_sequences *s) {
  b->conditions.update = 0;
  dv_worker_load(&b->start, s, b->zeros, b->start_program.rows, b->start_program.steps);
  dv_run_forward(&b->start.run);
  return dvbf_at(&b->start.run, b->start_program.z);
}

const dvbf_real *dv_stepper_move(dv_stepper *b, const dvbf_sequences *s, size_t t, bool seen,
                                 uint32_t update) {
  dvbf_sequences view = dv_view(s, t - 1, 2);
  b->conditions.update = update;
  dv_conditions_set(&b->conditions, DVBF_FILTER_WAIT, (int)t < dv_model_recognises_from(b->step.model));
  dv_worker_load(&b->step, &view, b->zeros, b->step_program.rows, seen ? 2 : 1);
  dv_run_forward(&b->step.run);
  return dvbf_at(&b->step.run, dvbf_steps(b->step_program.z, 1, 1));
}

dvbf_status dv_particles_init(dv_particles *p, const dvbf_model *model, const dvbf_sequences *s, size_t count,
                              int initial, dvbf_error *error) {
  int asked = dv_model_start_frames(model);
  *p = (dv_particles){.model = model, .count = count, .most = s->steps};
  p->jacobian = dv_model_log_jacobian(model);
  dvbf_status status =
      dv_stepper_init(&p->by, model, s, count, asked && asked < initial ? asked : initial, error);
  if (status) return status;
  p->n_v = p->by.step_program.v.buffer >= 0 ? (size_t)p->by.step_program.v.cols : 0;
  p->v = p->n_v ? dv_calloc(p->n_v, sizeof *p->v) : NULL;
  p->log_weight = dv_calloc(count, sizeof *p->log_weight);
  size_t all;
  if (dv_multiply(p->most, count, &all)) {
    p->z = dv_calloc(all, (size_t)model->n_z * sizeof *p->z);
    p->weight = dv_calloc(all, sizeof *p->weight);
    p->parent = dv_calloc(all, sizeof *p->parent);
  }
  if (p->log_weight && (p->v || !p->n_v) && p->z && p->weight && p->parent) return DVBF_OK;
  return dv_fail(error, DVBF_MEMORY, "out of memory for %zu particles over %zu steps; use fewer", count,
                 p->most);
}

void dv_particles_clear(dv_particles *p) {
  dv_stepper_clear(&p->by);
  DV_FREE(p->v, p->log_weight, p->z, p->weight, p->parent);
  *p = (dv_particles){0};
}

/* ---- Running ---- */

uint64_t dv_sequence_seed(uint64_t seed, size_t sequence) {
  dv_random_words b =
      dv_random_block(seed, DV_STREAM_PARTICLES, (uint32_t)sequence, (uint32_t)((uint64_t)sequence >> 32), 0);
  return (uint64_t)b.word[0] << 32 | b.word[1];
}

dvbf_sequences dv_view(const dvbf_sequences *s, size_t t, size_t count) {
  dvbf_sequences view = *s;
  view.steps = count;
  view.x = s->x + t * s->n_x;
  view.u = s->n_u ? s->u + t * s->n_u : NULL;
  return view;
}

dvbf_sequences dv_sequence_alone(const dvbf_sequences *s, size_t i, float *buffer) {
  size_t steps = dvbf_sequence_length(s, i);
  const float *u = s->n_u ? s->u + dvbf_sequence_start(s, i) * s->n_u : NULL;
  return (dvbf_sequences){.count = 1,
                          .steps = steps,
                          .n_x = s->n_x,
                          .n_u = s->n_u,
                          .x = (float *)(uintptr_t)dv_sequence_x(s, i, 0, steps, buffer),
                          .u = (float *)(uintptr_t)u,
                          .gaps = s->gaps};
}

void dv_particles_universal(dv_particles *p, size_t t) {
  if (p->v && dv_universal_each_step(p->model))
    dv_universal_draw(p->model, p->seed, (uint32_t)t, p->v, p->n_v);
}

/* Turns log weights of step t into weights; their sum is p(x_t | past). */
static void weigh(dv_particles *p, size_t t) {
  p->log_likelihood += normalise(p->log_weight, p->weight + t * p->count, p->count);
}

/* z_1 ~ q(w_1), weight p(w_1) p(x_1 | z_1) / q(w_1). */
static void start(dv_particles *p) {
  const dvbf_program *g = &p->by.start_program;
  const dvbf_real *z = dv_stepper_start(&p->by, &p->sequence);
  double jacobian = dv_frame_jacobian(&p->by.start, p->jacobian, 0, 0);
  const dvbf_real *ln_p = dvbf_at(&p->by.start.run, g->ln_p);
  memcpy(p->z, z, p->count * (size_t)p->model->n_z * sizeof *z);
  for (size_t r = 0; r < p->count; r++) {
    p->log_weight[r] =
        log_ratio(&g->first, &p->by.start, 0, (int)r) + (double)ln_p[r] + jacobian - dv_log((double)p->count);
    p->parent[r] = (uint32_t)r;
  }
  weigh(p, 0);
}

/* Chooses the parents of step t: the particles of the step before or, if their weights have become uneven,
 * resampled ones. log_weight becomes that of the parents. */
static void choose_parents(dv_particles *p, size_t t) {
  const double *weight = p->weight + (t - 1) * p->count;
  uint32_t *parent = p->parent + t * p->count;
  double squares = 0, n = (double)p->count;
  for (size_t i = 0; i < p->count; i++) squares += weight[i] * weight[i];
  bool uneven = 1 / squares < n / 2; /* the effective number of particles */
  if (uneven) {
    dv_random random = dv_random_at(p->seed, DV_STREAM_PARTICLES, 2, (uint32_t)t);
    dv_resample(weight, p->count, dv_random_uniform(&random), parent, p->count);
  }
  for (size_t i = 0; i < p->count; i++) {
    if (!uneven) parent[i] = (uint32_t)i;
    p->log_weight[i] = uneven ? -dv_log(n) : dv_log(weight[i]);
  }
}

/* z_t ~ q(w_{t-1} | z_{t-1}, x_t, u_{t-1}), weight p(w_{t-1}) p(x_t | z_t) / q(w_{t-1}). */
static void advance_particles(dv_particles *p, size_t t) {
  const dvbf_program *g = &p->by.step_program;
  size_t n_z = (size_t)p->model->n_z;
  dvbf_real *z = dvbf_at(&p->by.step.run, g->z);
  const dvbf_real *before = p->z + (t - 1) * p->count * n_z;
  choose_parents(p, t);
  for (size_t r = 0; r < p->count; r++)
    memcpy(z + r * n_z, before + p->parent[t * p->count + r] * n_z, n_z * sizeof *z);
  dv_particles_universal(p, t - 1);
  if (p->v) memcpy(dvbf_at(&p->by.step.run, g->v), p->v, p->n_v * sizeof *p->v);
  const dvbf_real *moved = dv_stepper_move(&p->by, &p->sequence, t, true, (uint32_t)t);
  double jacobian = dv_frame_jacobian(&p->by.step, p->jacobian, 1, 0);
  const dvbf_real *ln_p = dvbf_at(&p->by.step.run, g->ln_p);
  memcpy(p->z + t * p->count * n_z, moved, p->count * n_z * sizeof *z);
  for (size_t r = 0; r < p->count; r++)
    p->log_weight[r] += log_ratio(&g->later, &p->by.step, 0, (int)r) + (double)ln_p[r] + jacobian;
  weigh(p, t);
}

void dv_particles_run(dv_particles *p, const dvbf_sequences *s, size_t i, uint64_t seed) {
  p->sequence = dv_sequence_alone(s, i, p->by.start.frames);
  p->steps = p->sequence.steps;
  p->seed = dv_sequence_seed(seed, i);
  p->by.conditions = dv_model_conditions(p->model, p->seed);
  p->log_likelihood = 0;
  if (p->v) dv_universal_draw(p->model, p->seed, 0, p->v, p->n_v);
  start(p);
  for (size_t t = 1; t < p->steps && !dv_interrupted(p->interrupt); t++) {
    advance_particles(p, t);
    dv_estimate_progress_add(p->watch, DV_WATCH_FORTH);
  }
}

/* ---- Importance weighting ---- */

enum { PATH_ROWS = 64 };

dvbf_status dv_importance_init(dv_importance *m, const dvbf_model *model, const dvbf_sequences *s,
                               size_t paths, bool keep_z, dvbf_error *error) {
  int rows = paths < PATH_ROWS ? (int)paths : PATH_ROWS, steps = (int)s->steps;
  size_t all;
  *m = (dv_importance){.model = model, .paths = paths, .most = s->steps};
  m->jacobian = dv_model_log_jacobian(model);
  m->index = dv_calloc((size_t)rows, sizeof *m->index);
  m->key = dv_calloc((size_t)rows, sizeof *m->key);
  m->weight = dv_calloc(paths, sizeof *m->weight);
  if (keep_z && dv_multiply(paths, m->most, &all)) m->z = dv_calloc(all, (size_t)model->n_z * sizeof *m->z);
  if (!m->index || !m->key || !m->weight || (keep_z && !m->z))
    return dv_fail(error, DVBF_MEMORY, "out of memory for %zu weighted paths; use fewer", paths);
  dvbf_status status = dv_program_record(&m->program, model, steps, rows, steps, dv_gaps_of(s), error);
  if (!status) status = dv_worker_init(&m->worker, model, &m->program, s, error);
  m->worker.run.conditions = &m->conditions;
  m->worker.run.sequence = m->key;
  return status;
}

void dv_importance_clear(dv_importance *m) {
  dv_worker_clear(&m->worker);
  dv_program_clear(&m->program);
  DV_FREE(m->index, m->key, m->weight, m->z);
  *m = (dv_importance){0};
}

/* ln p(x, w) - ln q(w) of row r. */
static double log_weight_of(const dv_importance *m, int r) {
  const dvbf_program *p = &m->program;
  const dvbf_real *ln_p = dvbf_at(&m->worker.run, p->ln_p);
  double sum = log_ratio(&p->first, &m->worker, 0, r);
  for (int t = 0; t < p->steps; t++) {
    sum += (double)ln_p[(size_t)t * (size_t)p->rows + (size_t)r] +
           dv_frame_jacobian(&m->worker, m->jacobian, t, r);
    if (t + 1 < p->steps) sum += log_ratio(&p->later, &m->worker, t, r);
  }
  return sum;
}

static void copy_path(const dv_importance *m, int r, dvbf_real *z /* [most][n_z] */) {
  size_t n = (size_t)m->model->n_z;
  for (int t = 0; t < m->program.steps; t++)
    memcpy(z + (size_t)t * n, dvbf_at(&m->worker.run, dvbf_steps(m->program.z, t, 1)) + (size_t)r * n,
           n * sizeof *z);
}

double dv_importance_run(dv_importance *m, const dvbf_sequences *s, size_t i, uint64_t seed) {
  size_t rows = (size_t)m->program.rows;
  m->conditions = dv_model_conditions(m->model, dv_sequence_seed(seed, i));
  for (size_t r = 0; r < rows; r++) m->index[r] = (uint32_t)i;
  dv_worker_load(&m->worker, s, m->index, (int)rows, m->program.steps);
  for (size_t first = 0; first < m->paths && !dv_interrupted(m->worker.run.interrupt); first += rows) {
    for (size_t r = 0; r < rows; r++) m->key[r] = (uint32_t)(first + r);
    dv_run_forward(&m->worker.run);
    for (size_t r = 0; r < rows && first + r < m->paths; r++) {
      m->weight[first + r] = log_weight_of(m, (int)r);
      if (m->z) copy_path(m, (int)r, m->z + (first + r) * m->most * (size_t)m->model->n_z);
    }
  }
  return normalise(m->weight, m->weight, m->paths) - dv_log((double)m->paths);
}
