/* Estimates of a model with exact distributions (the linear Gaussian one): one request to it per sequence,
 * shared by threads. Entry point dv_estimate_exact. */
#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "infer/estimate.h"

#include <string.h>

typedef struct exact_job {
  const dv_request *request;
  dvbf_estimates *out;
  dvbf_status status; /* of the first failure */
  dvbf_error error;
} exact_job;

static void put_quantiles(const exact_job *j, size_t sequence, size_t steps) {
  dvbf_estimates *e = j->out;
  size_t values = e->steps * e->n_x, from = sequence * values;
  for (size_t k = 0; k < e->n_quantiles; k++) {
    double apart = dv_normal_quantile(e->quantiles[k]);
    for (size_t i = 0; i < steps * e->n_x; i++)
      e->x_quantiles[k * e->count * values + from + i] =
          (float)((double)e->x[from + i] + apart * (double)e->x_std[from + i]);
  }
}

/* If each path is reported by itself, its means are its own. */
static void put_path(dvbf_estimates *e, size_t sequence, size_t steps) {
  size_t z = sequence * e->steps * e->n_z, x = sequence * e->steps * e->n_x;
  memcpy(e->z_mean + z, e->z + z, steps * e->n_z * sizeof *e->z);
  memset(e->z_std + z, 0, steps * e->n_z * sizeof *e->z_std);
  if (e->x_samples) memcpy(e->x + x, e->x_samples + x, steps * e->n_x * sizeof *e->x);
  memset(e->x_std + x, 0, steps * e->n_x * sizeof *e->x_std);
}

static dvbf_status estimate_one(const exact_job *j, size_t i, float *frames, dvbf_error *error) {
  const dv_request *q = j->request;
  const dvbf_sequences *s = &q->frames;
  dvbf_estimates *e = j->out;
  size_t length = dvbf_sequence_length(s, i), last = (size_t)q->first + (size_t)q->window,
         z = e->steps * e->n_z, x = e->steps * e->n_x;
  size_t steps = length < last ? length : last,
         seen = steps < (size_t)q->observe ? steps : (size_t)q->observe;
  if (steps <= (size_t)q->first) return DVBF_OK;
  dvbf_exact ask = {.x = seen ? dv_sequence_x(s, i, 0, seen, frames) : NULL,
                    .u = s->n_u ? s->u + dvbf_sequence_start(s, i) * s->n_u : NULL,
                    .steps = (int)steps,
                    .observe = (int)seen,
                    .first = q->first,
                    .given = q->ask.kind == DV_SMOOTH ? DVBF_GIVEN_ALL
                             : q->ask.forecast        ? DVBF_GIVEN_BEFORE
                                                      : DVBF_GIVEN_UP_TO,
                    .noise = q->ask.noise,
                    .samples = q->ask.samples,
                    .room = e->steps,
                    .seed = q->ask.seed,
                    .sequence = (uint32_t)i,
                    .z_mean = e->z_mean + i * z,
                    .z_deviation = e->z_std + i * z,
                    .x_mean = e->x + i * x,
                    .x_deviation = e->x_std + i * x,
                    .z = e->z + i * q->ask.samples * z,
                    .x_samples = e->x_samples ? e->x_samples + i * q->ask.samples * x : NULL};
  dvbf_status status = q->model->type->exact(q->model->type, q->model, &ask, error);
  if (status) return status;
  put_quantiles(j, i, steps - (size_t)q->first);
  if (q->ask.kind == DV_SAMPLE) put_path(e, i, steps - (size_t)q->first);
  return DVBF_OK;
}

/* A worker has room for x of one sequence, if it is read from a file. */
static dvbf_status init(void *own, void *user, dvbf_error *error) {
  const dvbf_sequences *s = &((const exact_job *)user)->request->frames;
  return dv_sequence_buffer(own, s, s->steps, error);
}

static void run(void *own, void *user, size_t i) {
  exact_job *j = user;
  dvbf_error error;
  dvbf_status none = DVBF_OK, status = estimate_one(j, i, *(float **)own, &error);
  if (status &&
      __atomic_compare_exchange_n(&j->status, &none, status, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    j->error = error;
}

static void clear(void *own) {
  dv_free(*(float **)own);
}

dvbf_status dv_estimate_exact(dvbf_estimates *out, const dv_request *q, dv_threads *pool, dvbf_error *error) {
  static const dv_each work = {sizeof(float *), init, run, clear};
  exact_job j = {.request = q, .out = out};
  dvbf_status status = dv_threads_each(pool, &work, q->frames.count, &j, error);
  return !status && j.status ? dv_fail(error, j.status, "%s", j.error.message) : status;
}
