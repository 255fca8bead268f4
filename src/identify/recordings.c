/* Recordings for identification (dv_recordings_new): training and validation sequences together, standardised
 * in double precision, with folds of blocks for cross-validation. If fewer than half of the frames are
 * complete together with a few before them, gaps of up to 30 frames are filled by straight lines, later by a
 * smoother; only observed values are scored. */
#include "identify/identify.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "math/kalman.h"

#include <math.h>
#include <string.h>

void dv_recordings_clear(dv_recordings *r) {
  DV_FREE(r->x, r->filled, r->u, r->x_mean, r->u_mean, r->varies, r->whole, r->block);
  *r = (dv_recordings){0};
}

static dvbf_status allocate(dv_recordings *r, dvbf_error *error) {
  size_t n_x = (size_t)r->n_x, n_u = (size_t)r->n_u;
  r->x = dv_calloc(r->frames, n_x * sizeof *r->x);
  r->u = dv_calloc(r->frames, n_u * sizeof *r->u);
  r->x_mean = dv_calloc(2 * n_x, sizeof *r->x_mean);
  r->u_mean = dv_calloc(2 * n_u, sizeof *r->u_mean);
  r->varies = dv_calloc(n_x, sizeof *r->varies);
  r->whole = dv_calloc(r->count, sizeof *r->whole);
  r->block = dv_calloc(r->count, DV_FOLDS * sizeof *r->block);
  if (!r->x || !r->u || !r->x_mean || !r->u_mean || !r->varies || !r->whole || !r->block)
    return dv_fail_memory(error, "looking for a linear model");
  r->x_deviation = r->x_mean + n_x;
  r->u_deviation = r->u_mean + n_u;
  return DVBF_OK;
}

/* Copies the sequences behind those that are there. */
static dvbf_status take(dv_recordings *r, const dvbf_sequences *s, size_t *number, size_t *frame,
                        dvbf_error *error) {
  size_t n_x = (size_t)r->n_x, n_u = (size_t)r->n_u;
  float *buffer = NULL;
  dvbf_status status = dv_sequence_buffer(&buffer, s, s->steps, error);
  for (size_t i = 0; i < s->count && !status; i++) {
    size_t steps = dvbf_sequence_length(s, i);
    const float *x = dv_sequence_x(s, i, 0, steps, buffer);
    const float *u = n_u ? s->u + dvbf_sequence_start(s, i) * n_u : NULL;
    for (size_t k = 0; k < steps * n_x; k++) r->x[*frame * n_x + k] = (double)x[k];
    for (size_t k = 0; k < steps * n_u; k++) r->u[*frame * n_u + k] = (double)u[k];
    r->whole[(*number)++] = (dv_piece){*frame, steps, 0, 0};
    *frame += steps;
  }
  dv_free(buffer);
  return status ? status : dv_sequences_intact(s, error);
}

/* Standardises a column of values [frames][n]; true if it varies. Two passes, because the mean may be large
 * compared with the deviation. */
static bool standardise(double *values, size_t frames, size_t n, double *mean, double *deviation) {
  double sum = 0, squares = 0, count = 0;
  for (size_t t = 0; t < frames; t++)
    if (!isnan(values[t * n])) sum += values[t * n], count++;
  *mean = count > 0 ? sum / count : 0;
  for (size_t t = 0; t < frames; t++)
    if (!isnan(values[t * n])) squares += (values[t * n] - *mean) * (values[t * n] - *mean);
  *deviation = count > 0 ? sqrt(squares / count) : 0;
  bool varies = dv_varies(*mean, *deviation * *deviation);
  if (!varies) *deviation = 1;
  for (size_t t = 0; t < frames; t++)
    values[t * n] = varies || isnan(values[t * n]) ? (values[t * n] - *mean) / *deviation : 0;
  return varies;
}

/* Many sequences are divided among the folds; few are each cut into as many blocks. */
static void cut(dv_recordings *r) {
  enum { MANY_SEQUENCES = 12, SHORTEST_BLOCK = 6 };
  for (size_t i = 0; i < r->count; i++) {
    dv_piece all = r->whole[i];
    bool whole = r->count >= MANY_SEQUENCES || all.steps < DV_FOLDS * SHORTEST_BLOCK;
    int blocks = whole ? 1 : DV_FOLDS;
    for (int b = 0; b < blocks; b++) {
      size_t first = all.steps * (size_t)b / (size_t)blocks,
             last = all.steps * (size_t)(b + 1) / (size_t)blocks;
      r->block[r->blocks++] =
          (dv_piece){all.first + first, last - first, first, whole ? (int)(i % DV_FOLDS) : b};
    }
  }
}

/* ---- Gaps ---- */

static bool is_complete(const dv_recordings *r, size_t frame) {
  const double *x = dv_frame(r, frame);
  for (int i = 0; i < r->n_x; i++)
    if (isnan(x[i])) return false;
  return true;
}

double dv_complete_rows(const dv_recordings *r, const dv_piece *pieces, size_t count, size_t past) {
  size_t rows = 0;
  for (size_t i = 0; i < count; i++)
    for (size_t t = 0, run = 0; t < pieces[i].steps; t++) {
      run = is_complete(r, pieces[i].first + t) ? run + 1 : 0;
      rows += run > past;
    }
  return (double)rows;
}

/* Whether fewer than half of the frames are complete together with a few before them, because sensors have
 * different rates or values are missing here and there: leaving such frames out would leave little. */
static bool gaps_matter(const dv_recordings *r) {
  enum { FRAMES_BEFORE = 4 };
  size_t all = 0;
  for (size_t i = 0; i < r->count; i++)
    all += r->whole[i].steps > FRAMES_BEFORE ? r->whole[i].steps - FRAMES_BEFORE : 0;
  return 2 * dv_complete_rows(r, r->whole, r->count, FRAMES_BEFORE) < (double)all;
}

/* A column x [steps], n apart, of one sequence: straight lines between known values, the nearest value at the
 * ends. Long gaps stay. */
static void fill_column(double *x, size_t steps, size_t n) {
  enum { LONGEST_FILLED = 30 };
  size_t from = 0; /* of a gap */
  for (size_t t = 0; t <= steps; t++) {
    if (t < steps && isnan(x[t * n])) continue;
    if (t > from && t - from <= LONGEST_FILLED && t - from < steps) {
      double after = t < steps ? x[t * n] : x[(from - 1) * n], before = from ? x[(from - 1) * n] : after;
      for (size_t k = from; k < t; k++)
        x[k * n] = before + (after - before) * (double)(k - from + 1) / (double)(t - from + 1);
    }
    from = t + 1;
  }
}

static dvbf_status fill(dv_recordings *r, dvbf_error *error) {
  size_t n = (size_t)r->n_x;
  r->filled = dv_calloc(r->frames, n * sizeof *r->filled);
  if (!r->filled) return dv_fail_memory(error, "looking for a linear model");
  memcpy(r->filled, r->x, r->frames * n * sizeof *r->x);
  for (size_t k = 0; k < n; k++) {
    bool any = false;
    for (size_t t = 0; t < r->frames && !any; t++) any = !isnan(r->x[t * n + k]);
    for (size_t t = 0; t < r->frames && !any; t++) r->filled[t * n + k] = 0;
    for (size_t i = 0; i < r->count && any; i++)
      fill_column(r->filled + r->whole[i].first * n + k, r->whole[i].steps, n);
  }
  return DVBF_OK;
}

dvbf_status dv_recordings_refill(dv_recordings *r, const dv_state_space *s, dvbf_error *error) {
  size_t longest = 0, n_x = (size_t)r->n_x, n_u = (size_t)r->n_u;
  dv_smoothed z = {0};
  double *guess = dv_calloc(n_x, sizeof *guess);
  for (size_t i = 0; i < r->count; i++)
    if (r->whole[i].steps > longest) longest = r->whole[i].steps;
  dvbf_status status = guess ? dv_smoothed_init(&z, s, (int)longest, error)
                             : dv_fail_memory(error, "looking for a linear model");
  for (size_t i = 0; i < r->count && !status; i++) {
    size_t first = r->whole[i].first, steps = r->whole[i].steps;
    if (!dv_smooth(&z, s, r->x + first * n_x, r->u + first * n_u, (int)steps)) continue;
    for (size_t t = 0; t < steps; t++) {
      const double *x = r->x + (first + t) * n_x;
      double *to = r->filled + (first + t) * n_x;
      dv_system_emit(s, z.mean + t * (size_t)s->n_z, r->u + (first + t) * n_u, guess);
      for (size_t k = 0; k < n_x; k++)
        if (isnan(x[k]) && !isnan(to[k]) && isfinite(guess[k])) to[k] = guess[k];
    }
  }
  dv_smoothed_clear(&z);
  dv_free(guess);
  return status;
}

dvbf_status dv_recordings_new(dv_recordings *out, const dvbf_data *data, dvbf_error *error) {
  enum { PART = 128 }; /* of large data so much is enough for a linear model */
  const dvbf_sequences *all[] = {&data->train, &data->valid};
  dvbf_sequences parts[2] = {0};
  dv_recordings r = {.n_x = (int)data->train.n_x, .n_u = (int)data->train.n_u};
  size_t number = 0, frame = 0;
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < 2 && !status; i++) {
    if (all[i]->count) status = dv_sequences_some(&parts[i], all[i], PART, error);
    r.count += parts[i].count, r.frames += dv_sequences_frames(&parts[i]);
  }
  if (!status) status = allocate(&r, error);
  for (int i = 0; i < 2 && !status; i++)
    if (parts[i].count) status = take(&r, &parts[i], &number, &frame, error);
  for (int i = 0; i < 2; i++) dv_windows_free(&parts[i]);
  if (status) {
    dv_recordings_clear(&r);
    return status;
  }
  for (int k = 0; k < r.n_x; k++)
    r.varies[k] = standardise(r.x + k, r.frames, (size_t)r.n_x, &r.x_mean[k], &r.x_deviation[k]);
  for (int k = 0; k < r.n_u; k++)
    standardise(r.u + k, r.frames, (size_t)r.n_u, &r.u_mean[k], &r.u_deviation[k]);
  cut(&r);
  if (gaps_matter(&r)) status = fill(&r, error);
  if (status)
    dv_recordings_clear(&r);
  else
    *out = r;
  return status;
}
