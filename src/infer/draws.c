#include "infer/draws.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/status.h"
#include "model/density.h"

#include <math.h>
#include <string.h>

enum { CHUNK = DV_SORTED };

static size_t frame_values(const dv_request *q) {
  return (size_t)q->window * (size_t)q->model->n_x;
}

/* Noise is drawn where single samples of x are looked at. */
static bool draws_noise(const dv_request *q) {
  return q->noise && (q->n_quantiles || q->keep_x);
}

dvbf_status dv_draws_init(dv_draws *d, const dv_request *q, dvbf_error *error) {
  *d = (dv_draws){0};
  d->x = dv_calloc(q->samples, frame_values(q) * sizeof *d->x);
  d->noisy = draws_noise(q) ? dv_calloc(q->samples, frame_values(q) * sizeof *d->noisy) : d->x;
  d->variance = dv_calloc(frame_values(q), sizeof *d->variance);
  d->columns = dv_calloc(q->samples, CHUNK * sizeof *d->columns);
  d->rows = dv_calloc(q->samples, sizeof *d->rows);
  for (size_t s = 0; d->noisy && d->rows && s < q->samples; s++) d->rows[s] = d->noisy + s * frame_values(q);
  if (d->x && d->noisy && d->variance && d->columns && d->rows) return DVBF_OK;
  return dv_fail(error, DVBF_MEMORY, "out of memory for %zu samples of %d steps; fewer need less", q->samples,
                 q->window);
}

void dv_draws_clear(dv_draws *d) {
  if (d->noisy != d->x) dv_free(d->noisy);
  dv_free(d->x);
  dv_free(d->variance);
  dv_free(d->columns);
  dv_free(d->rows);
  *d = (dv_draws){0};
}

void dv_draws_begin(dv_draws *d, const dv_request *q, size_t sequence) {
  size_t length = dvbf_sequence_length(&q->frames, sequence), first = (size_t)q->first;
  size_t later = length > first ? length - first : 0;
  d->steps = later < (size_t)q->window ? later : (size_t)q->window;
  memset(d->variance, 0, frame_values(q) * sizeof *d->variance);
}

/* ---- One frame ---- */

/* The noise of one frame: its variance, and a sample where one is wanted. */
static void put_noise(dv_draws *d, const dv_request *q, const dv_draw *w, const float *x, float *noisy) {
  const dv_density *density = q->model->density;
  dv_density_frame frame = {.model = q->model,
                            .program = w->program,
                            .run = w->run,
                            .step = w->step,
                            .row = w->row,
                            .mean = x,
                            .seed = q->seed,
                            .sequence = (uint32_t)w->sequence,
                            .sample = (uint32_t)w->sample,
                            .t = (uint32_t)w->t};
  density->add_variance(&frame, d->variance + w->t * (size_t)q->model->n_x);
  if (noisy != x) density->draw(&frame, noisy);
}

void dv_draws_put(dv_draws *d, const dv_request *q, dvbf_estimates *out, const dv_draw *w) {
  size_t n_x = (size_t)q->model->n_x, n_z = (size_t)q->model->n_z;
  size_t at = w->sample * (size_t)q->window + w->t;
  float *z = out->z + (w->sequence * q->samples * (size_t)q->window + at) * n_z, *x = d->x + at * n_x;
  const dvbf_real *output = dvbf_at(w->run, dvbf_steps(w->program->output, w->step, 1));
  for (size_t i = 0; i < n_z; i++) z[i] = (float)w->z[i];
  dv_model_unscale(q->model, output + (size_t)w->row * n_x, x);
  if (q->noise) put_noise(d, q, w, x, d->noisy + at * n_x);
}

/* ---- What is reported ---- */

/* Mean and standard deviation over samples of the first entries of values [samples][stride]; `variance`
 * [entries], a sum over samples too, is added. */
static void moments(const float *values, size_t samples, size_t stride, size_t entries,
                    const double *variance, float *mean, float *deviation) {
  double n = (double)samples;
  for (size_t first = 0; first < entries; first += CHUNK) {
    size_t count = entries - first < CHUNK ? entries - first : CHUNK;
    double sum[CHUNK] = {0}, squares[CHUNK] = {0};
    for (size_t s = 0; s < samples; s++)
      for (size_t i = 0; i < count; i++) sum[i] += (double)values[s * stride + first + i];
    for (size_t s = 0; s < samples; s++)
      for (size_t i = 0; i < count; i++) {
        double apart = (double)values[s * stride + first + i] - sum[i] / n;
        squares[i] += apart * apart;
      }
    for (size_t i = 0; i < count; i++) {
      mean[first + i] = (float)(sum[i] / n);
      deviation[first + i] = (float)sqrt((squares[i] + (variance ? variance[first + i] : 0)) / n);
    }
  }
}

/* Sorts each of the CHUNK columns of values [count][CHUNK], all at once: which rows are compared does not
 * depend on the values, so that a comparison is a minimum and a maximum of two vectors (Batcher's merge
 * exchange, Knuth's algorithm 5.2.2M). */
static void sort_columns(float *values, size_t count) {
  size_t half = 1;
  while (2 * half < count) half *= 2;
  for (size_t p = half; p > 0; p /= 2)
    for (size_t q = half, r = 0, d = p;; d = q - p, q /= 2, r = p) {
      for (size_t i = 0; i + d < count; i++) {
        float *low = values + i * CHUNK, *high = low + d * CHUNK;
        for (size_t k = 0; (i & p) == r && k < CHUNK; k++) {
          float a = low[k], b = high[k];
          low[k] = a < b ? a : b;
          high[k] = a > b ? a : b;
        }
      }
      if (q == p) break;
    }
}

/* Between neighbours of the sorted samples, which are CHUNK apart; the smallest is quantile 0, the largest 1.
 */
static float quantile(const float *sorted, size_t count, double share) {
  double place = share * (double)(count - 1);
  size_t below = (size_t)place, above = below + 1 < count ? below + 1 : below;
  double rest = place - (double)below;
  return (float)((1 - rest) * (double)sorted[below * CHUNK] + rest * (double)sorted[above * CHUNK]);
}

void dv_quantiles_of(float *out, size_t apart, const double *shares, size_t n_shares,
                     const float *const *rows, size_t samples, size_t entries, float *columns) {
  for (size_t first = 0; first < entries; first += CHUNK) {
    size_t n = entries - first < CHUNK ? entries - first : CHUNK;
    for (size_t s = 0; s < samples; s++) memcpy(columns + s * CHUNK, rows[s] + first, n * sizeof *columns);
    sort_columns(columns, samples);
    for (size_t k = 0; k < n_shares; k++)
      for (size_t i = 0; i < n; i++) out[k * apart + first + i] = quantile(columns + i, samples, shares[k]);
  }
}

/* By halving, as it is needed for a few numbers only. */
double dv_normal_quantile(double share) {
  double low = -40, high = 40;
  for (int i = 0; i < 200 && low < high; i++) {
    double middle = (low + high) / 2;
    if (middle == low || middle == high) break;
    *(0.5 * dv_erfc(-middle / sqrt(2)) < share ? &low : &high) = middle;
  }
  return (low + high) / 2;
}

void dv_draws_end(dv_draws *d, const dv_request *q, dvbf_estimates *out, size_t sequence) {
  size_t n_z = (size_t)q->model->n_z, n_x = (size_t)q->model->n_x;
  size_t states = (size_t)q->window * n_z, values = frame_values(q);
  moments(out->z + sequence * q->samples * states, q->samples, states, d->steps * n_z, NULL,
          out->z_mean + sequence * states, out->z_std + sequence * states);
  moments(d->x, q->samples, values, d->steps * n_x, q->noise ? d->variance : NULL, out->x + sequence * values,
          out->x_std + sequence * values);
  if (q->n_quantiles)
    dv_quantiles_of(out->x_quantiles + sequence * values, out->count * values, q->quantiles, q->n_quantiles,
                    d->rows, q->samples, d->steps * n_x, d->columns);
  for (size_t s = 0; out->x_samples && s < q->samples; s++)
    memcpy(out->x_samples + (sequence * q->samples + s) * values, d->noisy + s * values,
           d->steps * n_x * sizeof *d->noisy);
}
