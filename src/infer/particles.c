#include "infer/particles.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"
#include "data/dataset.h"
#include "infer/weights.h"

#include <string.h>

/* ---- Making ---- */

static dvbf_status allocate(dv_particles *p, dvbf_error *error) {
  size_t n_z = (size_t)p->model->n_z;
  p->zeros = dv_calloc(p->count, sizeof *p->zeros);
  p->key = dv_calloc(p->count, sizeof *p->key);
  p->log_weight = dv_calloc(p->count, sizeof *p->log_weight);
  p->v = p->n_v ? dv_calloc(p->n_v, sizeof *p->v) : NULL;
  size_t all;
  if (dv_multiply(p->most, p->count, &all)) {
    p->z = dv_calloc(all, n_z * sizeof *p->z);
    p->weight = dv_calloc(all, sizeof *p->weight);
    p->parent = dv_calloc(all, sizeof *p->parent);
  }
  if (p->zeros && p->key && p->log_weight && (p->v || !p->n_v) && p->z && p->weight && p->parent)
    return DVBF_OK;
  return dv_fail(error, DVBF_MEMORY, "out of memory for %zu particles over %zu steps; fewer need less",
                 p->count, p->most);
}

dvbf_status dv_particles_init(dv_particles *p, const dvbf_model *model, const dvbf_sequences *s, size_t count,
                              int initial, dvbf_error *error) {
  int asked = dv_model_start_frames(model);
  int frames = asked && asked < initial ? asked : initial, flags = DV_PARTICLES | dv_gaps_of(s);
  *p = (dv_particles){.model = model, .count = count, .most = s->steps};
  p->jacobian = dv_model_log_jacobian(model);
  dvbf_status status = dv_program_record_start(&p->start_program, model, (int)count, frames, flags, error);
  if (!status) status = dv_program_record_step(&p->step_program, model, (int)count, 0, flags, error);
  if (!status) status = dv_worker_init(&p->start, model, &p->start_program, s, error);
  if (!status) status = dv_worker_init(&p->step, model, &p->step_program, NULL, error);
  p->n_v = p->step_program.v.buffer >= 0 ? (size_t)p->step_program.v.cols : 0;
  if (!status) status = allocate(p, error);
  if (status) return status;
  for (size_t i = 0; i < count; i++) p->key[i] = (uint32_t)i;
  p->start.run.conditions = p->step.run.conditions = &p->conditions;
  p->start.run.sequence = p->step.run.sequence = p->key;
  return DVBF_OK;
}

void dv_particles_clear(dv_particles *p) {
  dv_worker_clear(&p->start);
  dv_worker_clear(&p->step);
  dv_program_clear(&p->start_program);
  dv_program_clear(&p->step_program);
  dv_free(p->zeros);
  dv_free(p->key);
  dv_free(p->v);
  dv_free(p->log_weight);
  dv_free(p->z);
  dv_free(p->weight);
  dv_free(p->parent);
  *p = (dv_particles){0};
}

/* ---- Running ---- */

uint64_t dv_sequence_seed(uint64_t seed, size_t sequence) {
  dv_block b =
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

static void begin(dv_particles *p, const dvbf_sequences *s, size_t i, uint64_t seed) {
  p->sequence = dv_sequence_alone(s, i, p->start.frames);
  p->steps = p->sequence.steps;
  p->seed = dv_sequence_seed(seed, i);
  p->conditions = dv_model_conditions(p->model, p->seed);
  p->log_likelihood = 0;
  if (p->v) dv_universal_draw(p->model, p->seed, 0, p->v, p->n_v);
}

void dv_particles_universal(dv_particles *p, size_t t) {
  if (p->v && dv_universal_each_step(p->model))
    dv_universal_draw(p->model, p->seed, (uint32_t)t, p->v, p->n_v);
}

/* Turns log weights of step t into weights; their sum is p(x_t | past). */
static void weigh(dv_particles *p, size_t t) {
  p->log_likelihood += dv_normalise(p->log_weight, p->weight + t * p->count, p->count);
}

/* z_1 ~ q(w_1), weight p(w_1) p(x_1 | z_1) / q(w_1). */
static void start(dv_particles *p) {
  const dvbf_program *g = &p->start_program;
  dvbf_sequences view = dv_view(&p->sequence, 0, p->steps);
  p->conditions.update = 0;
  dv_worker_load(&p->start, &view, p->zeros, g->rows, g->steps);
  dv_run_forward(&p->start.run);
  double jacobian = dv_frame_jacobian(&p->start, p->jacobian, 0, 0);
  const dvbf_real *ln_p = dvbf_at(&p->start.run, g->ln_p);
  memcpy(p->z, dvbf_at(&p->start.run, g->z), p->count * (size_t)p->model->n_z * sizeof *p->z);
  for (size_t r = 0; r < p->count; r++) {
    p->log_weight[r] =
        dv_log_ratio_first(&p->start, (int)r) + (double)ln_p[r] + jacobian - dv_log((double)p->count);
    p->parent[r] = (uint32_t)r;
  }
  weigh(p, 0);
}

/* Chooses the parents of step t: those of the step before as they are or, where their weights have become
 * uneven, drawn by weight. log_weight becomes that of the parents. */
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
static void advance(dv_particles *p, size_t t) {
  const dvbf_program *g = &p->step_program;
  size_t n_z = (size_t)p->model->n_z;
  dvbf_sequences view = dv_view(&p->sequence, t - 1, 2);
  dvbf_real *z = dvbf_at(&p->step.run, g->z);
  const dvbf_real *before = p->z + (t - 1) * p->count * n_z;
  choose_parents(p, t);
  for (size_t r = 0; r < p->count; r++)
    memcpy(z + r * n_z, before + p->parent[t * p->count + r] * n_z, n_z * sizeof *z);
  dv_particles_universal(p, t - 1);
  if (p->v) memcpy(dvbf_at(&p->step.run, g->v), p->v, p->n_v * sizeof *p->v);
  p->conditions.update = (uint32_t)t;
  dv_conditions_set(&p->conditions, DVBF_FILTER_WAIT, (int)t < dv_model_recognises_from(p->model));
  dv_worker_load(&p->step, &view, p->zeros, g->rows, 2);
  dv_run_forward(&p->step.run);
  double jacobian = dv_frame_jacobian(&p->step, p->jacobian, 1, 0);
  const dvbf_real *ln_p = dvbf_at(&p->step.run, g->ln_p);
  memcpy(p->z + t * p->count * n_z, dvbf_at(&p->step.run, dvbf_steps(g->z, 1, 1)),
         p->count * n_z * sizeof *z);
  for (size_t r = 0; r < p->count; r++)
    p->log_weight[r] += dv_log_ratio(&p->step, 0, (int)r) + (double)ln_p[r] + jacobian;
  weigh(p, t);
}

void dv_particles_run(dv_particles *p, const dvbf_sequences *s, size_t i, uint64_t seed) {
  begin(p, s, i, seed);
  start(p);
  for (size_t t = 1; t < p->steps && !dv_interrupted(p->interrupt); t++) {
    advance(p, t);
    dv_watch_add(p->watch, DV_WATCH_FORTH);
  }
}
