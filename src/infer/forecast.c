/* Forecasts one step ahead: at each step x is predicted from the belief of the step before, then observed
 * (dv_estimate_forecasts). The samples of a sequence are the rows of two programs, the start and one step; a
 * worker takes one sequence at a time. v is at its mean, as in the online filter. */
#include "base/error.h"
#include "base/memory.h"
#include "infer/estimate.h"
#include "infer/particles.h"

#include <string.h>

typedef struct forecaster {
  dvbf_program start_program, step_program;
  dv_worker start, step;
  dv_conditions conditions;
  dv_draws draws;
  uint32_t *zeros, *key; /* [samples] rows load the only sequence of a view, and have noise of their own */
  dvbf_real *z;          /* [samples][n_z] the belief */
} forecaster;

typedef struct job {
  const dv_request *request;
  dvbf_estimates *out;
} job;

/* ---- Running ---- */

static void run_start(forecaster *w, const dvbf_sequences *s, size_t bytes) {
  const dvbf_program *g = &w->start_program;
  w->conditions.update = 0;
  dv_worker_load(&w->start, s, w->zeros, g->rows, g->steps);
  dv_run_forward(&w->start.run);
  memcpy(w->z, dvbf_at(&w->start.run, g->z), bytes);
}

/* The step into t; if x_t is missing, w comes from the prior. */
static void run_step(forecaster *w, const dvbf_sequences *s, size_t t, bool seen, size_t bytes) {
  const dvbf_program *g = &w->step_program;
  dvbf_sequences view = dv_view(s, t - 1, 2);
  memcpy(dvbf_at(&w->step.run, g->z), w->z, bytes);
  w->conditions.update = (uint32_t)(2 * t + seen);
  dv_conditions_set(&w->conditions, DVBF_FILTER_WAIT, (int)t < dv_model_recognises_from(w->step.model));
  dv_worker_load(&w->step, &view, w->zeros, g->rows, seen ? 2 : 1);
  dv_run_forward(&w->step.run);
}

static const dvbf_real *moved(const forecaster *w) {
  return dvbf_at(&w->step.run, dvbf_steps(w->step_program.z, 1, 1));
}

static void collect(forecaster *w, const dv_request *q, dvbf_estimates *out, size_t sequence, size_t t) {
  dv_draw draw = {.sequence = sequence, .t = t, .program = &w->step_program, .run = &w->step.run};
  for (draw.sample = 0; draw.sample < q->samples; draw.sample++) {
    draw.row = (int)draw.sample;
    draw.z = moved(w) + draw.sample * (size_t)q->model->n_z;
    dv_draws_put(&w->draws, q, out, &draw);
  }
}

static void run(void *own, void *user, size_t i) {
  forecaster *w = own;
  const job *j = user;
  const dv_request *q = j->request;
  size_t bytes = q->samples * (size_t)q->model->n_z * sizeof *w->z;
  dvbf_sequences alone = dv_sequence_alone(&q->frames, i, w->start.frames);
  size_t first = (size_t)q->first;
  dv_draws_begin(&w->draws, q, i);
  if (alone.steps <= first) return;
  w->conditions = dv_model_conditions(q->model, dv_sequence_seed(q->seed, i));
  run_start(w, &alone, bytes);
  for (size_t t = 1; t < alone.steps && !dv_interrupted(q->interrupt); t++) {
    if (t >= first) {
      run_step(w, &alone, t, false, bytes);
      collect(w, q, j->out, i, t - first);
    }
    run_step(w, &alone, t, true, bytes);
    memcpy(w->z, moved(w), bytes);
  }
  dv_draws_end(&w->draws, q, j->out, i);
}

/* ---- Memory ---- */

static dvbf_status init(void *own, void *user, dvbf_error *error) {
  forecaster *w = own;
  const dv_request *q = ((const job *)user)->request;
  const dvbf_model *m = q->model;
  int rows = (int)q->samples, flags = DV_PARTICLES | dv_gaps_of(&q->frames);
  w->zeros = dv_calloc(q->samples, sizeof *w->zeros);
  w->key = dv_calloc(q->samples, sizeof *w->key);
  w->z = dv_calloc(q->samples, (size_t)m->n_z * sizeof *w->z);
  if (!w->zeros || !w->key || !w->z) return dv_fail_memory(error, "starting to forecast");
  for (size_t i = 0; i < q->samples; i++) w->key[i] = (uint32_t)i;
  dvbf_status status = dv_program_record_start(&w->start_program, m, rows, q->initial, flags, error);
  if (!status) status = dv_program_record_step(&w->step_program, m, rows, 0, flags, error);
  if (!status) status = dv_worker_init(&w->start, m, &w->start_program, &q->frames, error);
  if (!status) status = dv_worker_init(&w->step, m, &w->step_program, NULL, error);
  if (!status) status = dv_draws_init(&w->draws, q, error);
  if (status) return status;
  w->start.run.conditions = w->step.run.conditions = &w->conditions;
  w->start.run.sequence = w->step.run.sequence = w->key;
  if (w->step_program.v.buffer >= 0)
    dv_universal_mean(m, dvbf_at(&w->step.run, w->step_program.v), (size_t)w->step_program.v.cols);
  return DVBF_OK;
}

static void clear(void *own) {
  forecaster *w = own;
  dv_worker_clear(&w->start);
  dv_worker_clear(&w->step);
  dv_program_clear(&w->start_program);
  dv_program_clear(&w->step_program);
  dv_draws_clear(&w->draws);
  DV_FREE(w->zeros, w->key, w->z);
}

dvbf_status dv_estimate_forecasts(dvbf_estimates *out, const dv_request *q, dv_threads *pool,
                                  dvbf_error *error) {
  static const dv_each work = {sizeof(forecaster), init, run, clear};
  return dv_threads_each(pool, &work, q->frames.count, &(job){q, out}, error);
}
