/* Estimates from samples of the recurrence: w from q if x is observed, else from the prior
 * (dv_estimate_samples). The rows of a program are samples of several sequences, or one sample of each if
 * every sample has a v of its own, since rows share v. Also moments and quantiles of samples (dv_draws_*,
 * dv_quantiles_of). */
#include "base/error.h"
#include "base/memory.h"
#include "infer/estimate.h"
#include "math/portable.h"
#include "model/batches.h"
#include "model/density.h"

#include <math.h>
#include <string.h>

enum { BLOCK_ROWS = 50, BLOCKS = 8 };

typedef struct sampler {
  dv_worker worker;
  size_t block;    /* sequences that it deals with at once */
  dv_draws *draws; /* [block] */
  uint32_t index[BLOCK_ROWS], key[BLOCK_ROWS];
} sampler;

typedef struct sampling_job {
  const dv_request *request;
  dvbf_estimates *out;
  dvbf_program program;
  size_t block; /* sequences in a block */
} sampling_job;

/* ---- Running ---- */

/* Row r of run number `turn` is a sample of a sequence of the block; rows are in the order of samples. */
typedef struct path_place {
  size_t slot, sample; /* sequence within the block */
} path_place;

static path_place place_of(const sampling_job *j, size_t turn, int r) {
  size_t row = turn * (size_t)j->program.rows + (size_t)r;
  return (path_place){row % j->block, row / j->block};
}

static void run_turn(const sampling_job *j, sampler *w, size_t turn, size_t first, size_t count) {
  const dv_request *q = j->request;
  dv_conditions conditions = dv_model_conditions(q->model, q->ask.seed);
  conditions.update = (uint32_t)turn;
  for (int r = 0; r < j->program.rows; r++) {
    path_place at = place_of(j, turn, r);
    size_t sequence = first + (at.slot < count ? at.slot : 0);
    w->index[r] = (uint32_t)sequence;
    w->key[r] = (uint32_t)(sequence * q->ask.samples + at.sample);
  }
  w->worker.run.conditions = &conditions;
  w->worker.run.sequence = w->key;
  dv_worker_load(&w->worker, &q->frames, w->index, j->program.rows, q->observe);
  dv_run_forward(&w->worker.run);
}

static void collect_turn(const sampling_job *j, sampler *w, size_t turn, size_t first, size_t count) {
  const dv_request *q = j->request;
  const dvbf_program *p = &j->program;
  for (int r = 0; r < p->rows; r++) {
    path_place at = place_of(j, turn, r);
    if (at.slot >= count || at.sample >= q->ask.samples) continue;
    dv_draw draw = {
        .sequence = first + at.slot, .sample = at.sample, .program = p, .run = &w->worker.run, .row = r};
    for (draw.t = 0; draw.t < w->draws[at.slot].steps; draw.t++) {
      draw.step = q->first + (int)draw.t;
      draw.z = dvbf_at(&w->worker.run, dvbf_steps(p->z, draw.step, 1)) + (size_t)r * (size_t)q->model->n_z;
      dv_draws_put(&w->draws[at.slot], q, j->out, &draw);
    }
  }
}

static void run_block(void *own, void *user, size_t number) {
  sampler *w = own;
  const sampling_job *j = user;
  size_t rows = (size_t)j->program.rows, turns = (j->block * j->request->ask.samples + rows - 1) / rows;
  size_t first = number * j->block, left = j->request->frames.count - first;
  size_t count = left < j->block ? left : j->block;
  if (!count) return;
  for (size_t i = 0; i < count; i++) dv_draws_begin(&w->draws[i], j->request, first + i);
  for (size_t turn = 0; turn < turns && !dv_interrupted(j->request->ask.interrupt); turn++) {
    run_turn(j, w, turn, first, count);
    collect_turn(j, w, turn, first, count);
  }
  for (size_t i = 0; i < count; i++) dv_draws_end(&w->draws[i], j->request, j->out, first + i);
}

/* ---- Memory ---- */

/* Sequences of a block; they depend on the request alone, so that results do not depend on the threads. */
size_t dv_estimate_samples_block(const dv_request *q) {
  double share = (double)q->frames.count / BLOCKS, most = BLOCK_ROWS;
  double room = (1 << 22) / ((double)q->ask.samples * (double)q->window * (double)q->model->n_x);
  return (size_t)fmax(1, fmin(most, fmin(share, room)));
}

static int rows_of(const dv_request *q, size_t block) {
  const dvbf_model_class *type = q->model->type;
  bool share = type->rows_share && type->rows_share(type, q->model->settings_object);
  size_t rows = share ? block : block * q->ask.samples;
  return rows < BLOCK_ROWS ? (int)rows : BLOCK_ROWS;
}

static dvbf_status init_sampler(void *own, void *user, dvbf_error *error) {
  sampler *w = own;
  const sampling_job *j = user;
  w->draws = dv_calloc(j->block, sizeof *w->draws);
  if (!w->draws) return dv_fail_memory(error, "starting to sample");
  w->block = j->block;
  dvbf_status status = dv_worker_init(&w->worker, j->request->model, &j->program, &j->request->frames, error);
  w->worker.run.interrupt = j->request->ask.interrupt;
  for (size_t k = 0; k < j->block && !status; k++) status = dv_draws_init(&w->draws[k], j->request, error);
  return status;
}

static void clear(void *own) {
  sampler *w = own;
  dv_worker_clear(&w->worker);
  for (size_t k = 0; k < w->block; k++) dv_draws_clear(&w->draws[k]);
  dv_free(w->draws);
}

dvbf_status dv_estimate_samples(dvbf_estimates *out, const dv_request *q, dv_threads *pool,
                                dvbf_error *error) {
  static const dv_each work = {sizeof(sampler), init_sampler, run_block, clear};
  sampling_job j = {.request = q, .out = out, .block = dv_estimate_samples_block(q)};
  dvbf_status status = dv_program_record(&j.program, q->model, q->steps, rows_of(q, j.block), q->initial,
                                         dv_gaps_of(&q->frames), error);
  size_t blocks = (q->frames.count + j.block - 1) / j.block;
  if (!status) status = dv_threads_each(pool, &work, blocks, &j, error);
  dv_program_clear(&j.program);
  return status;
}

/* ---- Moments and quantiles of samples ---- */

static size_t frame_values(const dv_request *q) {
  return (size_t)q->window * (size_t)q->model->n_x;
}

dvbf_status dv_draws_init(dv_draws *d, const dv_request *q, dvbf_error *error) {
  bool noise = q->ask.noise && (q->ask.n_quantiles || q->ask.x_samples); /* of single samples of x */
  *d = (dv_draws){0};
  d->x = dv_calloc(q->ask.samples, frame_values(q) * sizeof *d->x);
  d->noisy = noise ? dv_calloc(q->ask.samples, frame_values(q) * sizeof *d->noisy) : d->x;
  d->variance = dv_calloc(frame_values(q), sizeof *d->variance);
  d->columns = dv_calloc(q->ask.samples, DV_SORTED * sizeof *d->columns);
  d->rows = dv_calloc(q->ask.samples, sizeof *d->rows);
  for (size_t s = 0; d->noisy && d->rows && s < q->ask.samples; s++)
    d->rows[s] = d->noisy + s * frame_values(q);
  if (d->x && d->noisy && d->variance && d->columns && d->rows) return DVBF_OK;
  return dv_fail(error, DVBF_MEMORY, "out of memory for %zu samples of %d steps; use fewer", q->ask.samples,
                 q->window);
}

void dv_draws_clear(dv_draws *d) {
  if (d->noisy != d->x) dv_free(d->noisy);
  DV_FREE(d->x, d->variance, d->columns, d->rows);
  *d = (dv_draws){0};
}

void dv_draws_begin(dv_draws *d, const dv_request *q, size_t sequence) {
  size_t length = dvbf_sequence_length(&q->frames, sequence), first = (size_t)q->first;
  size_t later = length > first ? length - first : 0;
  d->steps = later < (size_t)q->window ? later : (size_t)q->window;
  memset(d->variance, 0, frame_values(q) * sizeof *d->variance);
}

/* ---- One frame ---- */

/* The noise of one frame: its variance, and a sample if one is wanted. */
static void put_noise(dv_draws *d, const dv_request *q, const dv_draw *w, const float *x, float *noisy) {
  const dv_density *density = q->model->density;
  dv_density_frame frame = {.model = q->model,
                            .program = w->program,
                            .run = w->run,
                            .step = w->step,
                            .row = w->row,
                            .mean = x,
                            .seed = q->ask.seed,
                            .sequence = (uint32_t)w->sequence,
                            .sample = (uint32_t)w->sample,
                            .t = (uint32_t)w->t};
  density->add_variance(&frame, d->variance + w->t * (size_t)q->model->n_x);
  if (noisy != x) density->draw(&frame, noisy);
}

void dv_draws_put(dv_draws *d, const dv_request *q, dvbf_estimates *out, const dv_draw *w) {
  size_t n_x = (size_t)q->model->n_x, n_z = (size_t)q->model->n_z;
  size_t at = w->sample * (size_t)q->window + w->t;
  float *z = out->z + (w->sequence * q->ask.samples * (size_t)q->window + at) * n_z, *x = d->x + at * n_x;
  const dvbf_real *output = dvbf_at(w->run, dvbf_steps(w->program->output, w->step, 1));
  for (size_t i = 0; i < n_z; i++) z[i] = (float)w->z[i];
  dv_model_unscale(q->model, output + (size_t)w->row * n_x, x);
  if (q->ask.noise) put_noise(d, q, w, x, d->noisy + at * n_x);
}

/* ---- Reported values ---- */

/* Mean and standard deviation over samples of the first entries of values [samples][stride]; `variance`
 * [entries], a sum over samples too, is added. */
static void moments(const float *values, size_t samples, size_t stride, size_t entries,
                    const double *variance, float *mean, float *deviation) {
  double n = (double)samples;
  for (size_t first = 0; first < entries; first += DV_SORTED) {
    size_t count = entries - first < DV_SORTED ? entries - first : DV_SORTED;
    double sum[DV_SORTED] = {0}, squares[DV_SORTED] = {0};
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

/* Sorts each of the DV_SORTED columns of values [count][DV_SORTED], all at once: which rows are compared does
 * not depend on the values, so that a comparison is a minimum and a maximum of two vectors (Batcher's merge
 * exchange, Knuth's algorithm 5.2.2M). */
static void sort_columns(float *values, size_t count) {
  size_t half = 1;
  while (2 * half < count) half *= 2;
  for (size_t p = half; p > 0; p /= 2)
    for (size_t q = half, r = 0, d = p;; d = q - p, q /= 2, r = p) {
      for (size_t i = 0; i + d < count; i++) {
        float *low = values + i * DV_SORTED, *high = low + d * DV_SORTED;
        for (size_t k = 0; (i & p) == r && k < DV_SORTED; k++) {
          float a = low[k], b = high[k];
          low[k] = a < b ? a : b;
          high[k] = a > b ? a : b;
        }
      }
      if (q == p) break;
    }
}

/* Between neighbours of the sorted samples, which are DV_SORTED apart; the smallest is quantile 0, the
 * largest 1.
 */
static float quantile(const float *sorted, size_t count, double share) {
  double place = share * (double)(count - 1);
  size_t below = (size_t)place, above = below + 1 < count ? below + 1 : below;
  double rest = place - (double)below;
  return (float)((1 - rest) * (double)sorted[below * DV_SORTED] + rest * (double)sorted[above * DV_SORTED]);
}

void dv_quantiles_of(float *out, size_t apart, const double *shares, size_t n_shares,
                     const float *const *rows, size_t samples, size_t entries, float *columns) {
  for (size_t first = 0; first < entries; first += DV_SORTED) {
    size_t n = entries - first < DV_SORTED ? entries - first : DV_SORTED;
    for (size_t s = 0; s < samples; s++)
      memcpy(columns + s * DV_SORTED, rows[s] + first, n * sizeof *columns);
    sort_columns(columns, samples);
    for (size_t k = 0; k < n_shares; k++)
      for (size_t i = 0; i < n; i++) out[k * apart + first + i] = quantile(columns + i, samples, shares[k]);
  }
}

/* By bisection, since only a few numbers are needed. */
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
  moments(out->z + sequence * q->ask.samples * states, q->ask.samples, states, d->steps * n_z, NULL,
          out->z_mean + sequence * states, out->z_std + sequence * states);
  moments(d->x, q->ask.samples, values, d->steps * n_x, q->ask.noise ? d->variance : NULL,
          out->x + sequence * values, out->x_std + sequence * values);
  if (q->ask.n_quantiles)
    dv_quantiles_of(out->x_quantiles + sequence * values, out->count * values, q->ask.quantiles,
                    q->ask.n_quantiles, d->rows, q->ask.samples, d->steps * n_x, d->columns);
  for (size_t s = 0; out->x_samples && s < q->ask.samples; s++)
    memcpy(out->x_samples + (sequence * q->ask.samples + s) * values, d->noisy + s * values,
           d->steps * n_x * sizeof *d->noisy);
}
