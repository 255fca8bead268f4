/* Estimates of a model with exact distributions (the linear Gaussian one): one request to it per sequence,
 * shared by threads. Entry point dv_estimate_exact. */
#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "infer/estimate.h"

#include <math.h>
#include <string.h>

typedef struct job {
  const dv_request *request;
  dvbf_estimates *out;
  int workers;
  size_t first, last;  /* sequences of this rank */
  float **frames;      /* [workers] room for x of one sequence, if it is read from a file */
  dvbf_status *status; /* [workers] */
  dvbf_error *errors;  /* [workers] */
} job;

static void put_quantiles(const job *j, size_t sequence, size_t steps) {
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

static dvbf_status run_one(const job *j, size_t i, float *frames, dvbf_error *error) {
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
                    .given = q->smooth     ? DVBF_GIVEN_ALL
                             : q->forecast ? DVBF_GIVEN_BEFORE
                                           : DVBF_GIVEN_UP_TO,
                    .noise = q->noise,
                    .samples = q->samples,
                    .room = e->steps,
                    .seed = q->seed,
                    .sequence = (uint32_t)i,
                    .z_mean = e->z_mean + i * z,
                    .z_deviation = e->z_std + i * z,
                    .x_mean = e->x + i * x,
                    .x_deviation = e->x_std + i * x,
                    .z = e->z + i * q->samples * z,
                    .x_samples = e->x_samples ? e->x_samples + i * q->samples * x : NULL};
  dvbf_status status = q->model->type->exact(q->model->type, q->model, &ask, error);
  if (status) return status;
  put_quantiles(j, i, steps - (size_t)q->first);
  if (q->single) put_path(e, i, steps - (size_t)q->first);
  return DVBF_OK;
}

static void run_sequences(void *user, int number) {
  job *j = user;
  for (size_t i = j->first + (size_t)number;
       i < j->last && !j->status[number] && !dv_interrupted(j->request->interrupt); i += (size_t)j->workers)
    j->status[number] = run_one(j, i, j->frames[number], &j->errors[number]);
}

dvbf_status dv_estimate_exact(dvbf_estimates *out, const dv_request *q, dv_threads *pool, dvbf_error *error) {
  job j = {.request = q, .out = out, .workers = dv_threads_size(pool)};
  const dv_ranks *ranks = dv_threads_ranks(pool);
  size_t n = (size_t)j.workers;
  j.first = dv_ranks_first(ranks, out->count, dv_ranks_rank(ranks));
  j.last = dv_ranks_first(ranks, out->count, dv_ranks_rank(ranks) + 1);
  j.frames = dv_calloc(n, sizeof *j.frames);
  j.status = dv_calloc(n, sizeof *j.status);
  j.errors = dv_calloc(n, sizeof *j.errors);
  dvbf_status status =
      j.frames && j.status && j.errors ? DVBF_OK : dv_fail_memory(error, "estimating states");
  for (size_t i = 0; i < n && !status; i++)
    status = dv_sequence_buffer(&j.frames[i], &q->frames, q->frames.steps, error);
  if (!status) dv_threads_run(pool, run_sequences, &j);
  for (size_t i = 0; i < n && !status; i++)
    if (j.status[i]) status = dv_fail(error, j.status[i], "%s", j.errors[i].message);
  for (size_t i = 0; j.frames && i < n; i++) dv_free(j.frames[i]);
  dv_free(j.frames);
  dv_free(j.status);
  dv_free(j.errors);
  return status;
}
