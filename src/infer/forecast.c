/* Forecasts one step ahead: at each step x is predicted from the belief of the step before, then observed
 * (dv_estimate_forecasts). The samples of a sequence are the rows of two programs, the start and one step; a
 * worker takes one sequence at a time. v is at its mean, as in the online filter. */
#include "base/error.h"
#include "base/memory.h"
#include "infer/estimate.h"
#include "infer/particles.h"

#include <string.h>

typedef struct forecaster {
  dv_stepper by;
  dv_draws draws;
  dvbf_real *z; /* [samples][n_z] the belief */
} forecaster;

typedef struct forecast_job {
  const dv_request *request;
  dvbf_estimates *out;
} forecast_job;

/* ---- Running ---- */

/* The step into t. */
static const dvbf_real *move_on(forecaster *w, const dvbf_sequences *s, size_t t, bool seen, size_t bytes) {
  memcpy(dvbf_at(&w->by.step.run, w->by.step_program.z), w->z, bytes);
  return dv_stepper_move(&w->by, s, t, seen, (uint32_t)(2 * t + seen));
}

static void collect(forecaster *w, const dv_request *q, dvbf_estimates *out, size_t sequence, size_t t,
                    const dvbf_real *z) {
  dv_draw draw = {.sequence = sequence, .t = t, .program = &w->by.step_program, .run = &w->by.step.run};
  for (draw.sample = 0; draw.sample < q->ask.samples; draw.sample++) {
    draw.row = (int)draw.sample;
    draw.z = z + draw.sample * (size_t)q->model->n_z;
    dv_draws_put(&w->draws, q, out, &draw);
  }
}

static void run_forecast(void *own, void *user, size_t i) {
  forecaster *w = own;
  const forecast_job *j = user;
  const dv_request *q = j->request;
  size_t bytes = q->ask.samples * (size_t)q->model->n_z * sizeof *w->z;
  dvbf_sequences alone = dv_sequence_alone(&q->frames, i, w->by.start.frames);
  size_t first = (size_t)q->first;
  dv_draws_begin(&w->draws, q, i);
  if (alone.steps <= first) return;
  w->by.conditions = dv_model_conditions(q->model, dv_sequence_seed(q->ask.seed, i));
  memcpy(w->z, dv_stepper_start(&w->by, &alone), bytes);
  for (size_t t = 1; t < alone.steps && !dv_interrupted(q->ask.interrupt); t++) {
    if (t >= first) collect(w, q, j->out, i, t - first, move_on(w, &alone, t, false, bytes));
    memcpy(w->z, move_on(w, &alone, t, true, bytes), bytes);
  }
  dv_draws_end(&w->draws, q, j->out, i);
}

/* ---- Memory ---- */

static dvbf_status init_forecaster(void *own, void *user, dvbf_error *error) {
  forecaster *w = own;
  const dv_request *q = ((const forecast_job *)user)->request;
  w->z = dv_calloc(q->ask.samples, (size_t)q->model->n_z * sizeof *w->z);
  if (!w->z) return dv_fail_memory(error, "starting to forecast");
  dvbf_status status = dv_stepper_init(&w->by, q->model, &q->frames, q->ask.samples, q->initial, error);
  if (!status) status = dv_draws_init(&w->draws, q, error);
  dvbf_value v = w->by.step_program.v;
  if (!status && v.buffer >= 0) dv_universal_mean(q->model, dvbf_at(&w->by.step.run, v), (size_t)v.cols);
  return status;
}

static void clear(void *own) {
  forecaster *w = own;
  dv_stepper_clear(&w->by);
  dv_draws_clear(&w->draws);
  dv_free(w->z);
}

dvbf_status dv_estimate_forecasts(dvbf_estimates *out, const dv_request *q, dv_threads *pool,
                                  dvbf_error *error) {
  static const dv_each work = {sizeof(forecaster), init_forecaster, run_forecast, clear};
  return dv_threads_each(pool, &work, q->frames.count, &(forecast_job){q, out}, error);
}
