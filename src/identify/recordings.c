#include "identify/recordings.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

#include <math.h>
#include <string.h>

void dv_recordings_clear(dv_recordings *r) {
  dv_free(r->x);
  dv_free(r->u);
  dv_free(r->x_mean);
  dv_free(r->u_mean);
  dv_free(r->varies);
  dv_free(r->whole);
  dv_free(r->block);
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

/* Takes mean and deviation out of a column of values [frames][n]; true where it varies. Two passes, because
 * the mean may be large beside the deviation. */
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

/* Many sequences are dealt out to the folds; few are each cut into as many blocks. */
static void cut(dv_recordings *r) {
  enum { MANY = 12, SHORT = 12 };
  for (size_t i = 0; i < r->count; i++) {
    dv_piece all = r->whole[i];
    bool whole = r->count >= MANY || all.steps < DV_FOLDS * SHORT;
    int blocks = whole ? 1 : DV_FOLDS;
    for (int b = 0; b < blocks; b++) {
      size_t first = all.steps * (size_t)b / (size_t)blocks,
             last = all.steps * (size_t)(b + 1) / (size_t)blocks;
      r->block[r->blocks++] =
          (dv_piece){all.first + first, last - first, first, whole ? (int)(i % DV_FOLDS) : b};
    }
  }
}

dvbf_status dv_recordings_new(dv_recordings *out, const dvbf_data *data, dvbf_error *error) {
  const dvbf_sequences *parts[] = {&data->train, &data->valid};
  dv_recordings r = {.n_x = (int)data->train.n_x, .n_u = (int)data->train.n_u};
  size_t number = 0, frame = 0;
  for (int i = 0; i < 2; i++) r.count += parts[i]->count, r.frames += dv_sequences_frames(parts[i]);
  dvbf_status status = allocate(&r, error);
  for (int i = 0; i < 2 && !status; i++)
    if (parts[i]->count) status = take(&r, parts[i], &number, &frame, error);
  if (status) {
    dv_recordings_clear(&r);
    return status;
  }
  for (int k = 0; k < r.n_x; k++)
    r.varies[k] = standardise(r.x + k, r.frames, (size_t)r.n_x, &r.x_mean[k], &r.x_deviation[k]);
  for (int k = 0; k < r.n_u; k++)
    standardise(r.u + k, r.frames, (size_t)r.n_u, &r.u_mean[k], &r.u_deviation[k]);
  cut(&r);
  *out = r;
  return DVBF_OK;
}
