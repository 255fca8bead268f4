/* Estimates from weighted samples; a worker takes a sequence at a time. Where there are fewer sequences than
 * workers, all of them go back through one sequence together. Either way gives the same.
 *
 *   filter   at each step, samples of the particles by weight: each step's samples stand for themselves
 *   smooth   paths drawn backwards from the particles; where the model cannot filter, whole paths by weight
 */
#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"
#include "base/tiny.h"
#include "data/dataset.h"
#include "infer/backward.h"
#include "infer/draws.h"
#include "infer/estimate.h"
#include "infer/importance.h"
#include "infer/weights.h"

#include <string.h>

typedef struct sampler {
  dv_particles particles;
  dv_backward backward;
  dv_importance importance; /* instead of both, where the model cannot filter */
  double *weight;           /* [particles] of it */
  dvbf_program program;     /* the emission, for one step of all samples */
  dv_worker emission;
  dv_draws draws;
  uint32_t *index; /* [samples] */
  dvbf_real *z;    /* [samples][steps][n_z] */
} sampler;

typedef struct job {
  const dv_request *request;
  dvbf_estimates *out;
  dv_conditions conditions;
  dv_pool *team; /* workers that help with each sequence; NULL: each has sequences of its own */
} job;

/* A model that cannot filter has whole paths weighed instead. */
static bool whole_paths(const dv_request *q) {
  return !dv_model_can_filter(q->model);
}

/* ---- Samples of one sequence, into w->z ---- */

static void filter(sampler *w, const dv_request *q) {
  const dv_particles *p = &w->particles;
  size_t n = (size_t)q->model->n_z;
  for (size_t t = 0; t < p->steps; t++) {
    dv_random random = dv_random_at(p->seed, DV_STREAM_PARTICLES, 4, (uint32_t)t);
    dv_resample(p->weight + t * p->count, p->count, dv_random_uniform(&random), w->index, q->samples);
    for (size_t s = 0; s < q->samples; s++)
      memcpy(w->z + (s * p->most + t) * n, p->z + (t * p->count + w->index[s]) * n, n * sizeof *w->z);
  }
}

static void choose_paths(sampler *w, const dv_request *q, uint64_t seed) {
  const dv_importance *m = &w->importance;
  size_t path = m->most * (size_t)q->model->n_z;
  dv_random random = dv_random_at(seed, DV_STREAM_PARTICLES, 4, 0);
  dv_normalise(m->log_weight, w->weight, m->paths);
  dv_resample(w->weight, m->paths, dv_random_uniform(&random), w->index, q->samples);
  for (size_t s = 0; s < q->samples; s++)
    memcpy(w->z + s * path, m->z + w->index[s] * path, path * sizeof *w->z);
}

static void sample(sampler *w, const dv_request *q, size_t i) {
  if (whole_paths(q)) {
    dv_importance_run(&w->importance, &q->frames, i, q->seed);
    choose_paths(w, q, dv_sequence_seed(q->seed, i));
    return;
  }
  dv_particles_run(&w->particles, &q->frames, i, q->seed);
  if (dv_interrupted(q->interrupt)) return;
  if (q->smooth)
    dv_backward_draw(&w->backward, w->z);
  else
    filter(w, q);
}

/* ---- What they mean for x ---- */

/* The control of a step, for all rows. */
static void set_control(sampler *w, const dv_request *q, size_t sequence, size_t t) {
  const dvbf_model *m = q->model;
  size_t n = (size_t)m->n_u, start = n ? dvbf_sequence_start(&q->frames, sequence) : 0;
  dvbf_real *u = n ? dvbf_at(&w->emission.run, w->program.u) : NULL;
  for (size_t s = 0; u && s < q->samples; s++)
    w->emission.run.k->standardise(u + s * n, q->frames.u + (start + t) * n, m->u.shift, m->u.scale, m->n_u);
}

static void emit(sampler *w, const dv_request *q, dvbf_estimates *out, size_t sequence) {
  size_t n = (size_t)q->model->n_z, most = q->frames.steps;
  dvbf_real *z = dvbf_at(&w->emission.run, w->program.z);
  dv_draw draw = {.sequence = sequence, .program = &w->program, .run = &w->emission.run};
  dv_draws_begin(&w->draws, q, sequence);
  for (draw.t = 0; draw.t < w->draws.steps; draw.t++) {
    for (size_t s = 0; s < q->samples; s++) memcpy(z + s * n, w->z + (s * most + draw.t) * n, n * sizeof *z);
    set_control(w, q, sequence, draw.t);
    dv_run_forward(&w->emission.run);
    for (draw.sample = 0; draw.sample < q->samples; draw.sample++) {
      draw.row = (int)draw.sample;
      draw.z = w->z + (draw.sample * most + draw.t) * n;
      dv_draws_put(&w->draws, q, out, &draw);
    }
  }
  dv_draws_end(&w->draws, q, out, sequence);
}

static void run(void *own, void *user, size_t i) {
  const job *j = user;
  sample(own, j->request, i);
  if (!dv_interrupted(j->request->interrupt)) emit(own, j->request, j->out, i);
}

/* ---- Making ---- */

static dvbf_status init_sampling(sampler *w, const dv_request *q, dv_pool *team, dvbf_error *error) {
  size_t count = (size_t)q->particles;
  if (whole_paths(q)) return dv_importance_init(&w->importance, q->model, &q->frames, count, true, error);
  dvbf_status status = dv_particles_init(&w->particles, q->model, &q->frames, count, q->initial, error);
  w->particles.interrupt = q->interrupt;
  w->particles.watch = q->watch;
  if (!status && q->smooth) status = dv_backward_init(&w->backward, &w->particles, q->samples, team, error);
  return status;
}

static dvbf_status init(void *own, void *user, dvbf_error *error) {
  sampler *w = own;
  const job *j = user;
  const dv_request *q = j->request;
  size_t all;
  w->index = dv_calloc(q->samples, sizeof *w->index);
  w->weight = dv_calloc((size_t)q->particles, sizeof *w->weight);
  if (dv_multiply(q->samples, q->frames.steps, &all))
    w->z = dv_calloc(all, (size_t)q->model->n_z * sizeof *w->z);
  dvbf_status status =
      w->index && w->weight && w->z ? DVBF_OK : dv_fail_memory(error, "making room for samples");
  if (!status) status = init_sampling(w, q, j->team, error);
  if (!status) status = dv_program_record_emission(&w->program, q->model, (int)q->samples, 0, error);
  if (!status) status = dv_worker_init(&w->emission, q->model, &w->program, NULL, error);
  if (!status) status = dv_draws_init(&w->draws, q, error);
  w->emission.run.conditions = &j->conditions;
  w->emission.run.sequence = w->index;
  return status;
}

static void clear(void *own) {
  sampler *w = own;
  dv_backward_clear(&w->backward);
  dv_particles_clear(&w->particles);
  dv_importance_clear(&w->importance);
  dv_worker_clear(&w->emission);
  dv_program_clear(&w->program);
  dv_draws_clear(&w->draws);
  DV_FREE(w->weight, w->index, w->z);
}

/* Units of work of sequences first .. last - 1, which are those of this rank. */
static uint64_t work_of(const dv_request *q, size_t first, size_t last) {
  uint64_t steps = 0;
  for (size_t i = first; i < last; i++) steps += dvbf_sequence_length(&q->frames, i);
  return steps * (DV_WATCH_FORTH + (q->smooth ? DV_WATCH_BACK : 0));
}

/* One worker, which others help; it computes as they do. */
static dvbf_status run_with_team(job *j, size_t first, size_t last, dvbf_error *error) {
  sampler w = {0};
  unsigned before = dv_flush_tiny_numbers();
  dvbf_status status = init(&w, j, error);
  for (size_t i = first; i < last && !status; i++) run(&w, j, i);
  clear(&w);
  dv_restore_tiny_numbers(before);
  return status;
}

dvbf_status dv_estimate_particles(dvbf_estimates *out, const dv_request *q, dv_pool *pool,
                                  dvbf_error *error) {
  static const dv_each work = {sizeof(sampler), init, run, clear};
  job j = {.request = q, .out = out, .conditions = dv_model_conditions(q->model, q->seed)};
  const dv_team *ranks = dv_pool_team(pool);
  size_t first = dv_team_first(ranks, q->frames.count, dv_team_rank(ranks));
  size_t last = dv_team_first(ranks, q->frames.count, dv_team_rank(ranks) + 1);
  bool together = q->smooth && !whole_paths(q) && last - first < (size_t)dv_pool_size(pool);
  if (together) j.team = pool;
  dv_watch_begin(q->watch, work_of(q, first, last));
  return together ? run_with_team(&j, first, last, error)
                  : dv_pool_each(pool, &work, q->frames.count, &j, error);
}
