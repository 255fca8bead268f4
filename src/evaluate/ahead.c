#include "evaluate/ahead.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"
#include "evaluate/rolling.h"

#include <math.h>

/* Origins make the curves smooth, HORIZON is as far as they go. */
enum { ORIGINS = 200, HORIZON = 100 };

void dv_ahead_clear(dv_ahead *a) {
  for (int way = 0; way < DVBF_WAYS; way++) dv_free(a->rmse[way]);
  *a = (dv_ahead){0};
}

/* Sums over the origins; the curves are filled with sums first, then with roots. */
typedef struct adding {
  dv_ahead *out;
  const dv_rolling *r;
  const dv_yardstick *yardstick;
  double *count; /* [1 + columns][horizon] */
  float *last;   /* [n_x] that were seen before the prediction */
} adding;

static dvbf_status make_room(adding *a, dvbf_error *error) {
  dv_ahead *out = a->out;
  size_t values = (1 + out->columns) * out->horizon;
  a->count = dv_calloc(values, sizeof *a->count);
  a->last = dv_calloc(a->r->views.n_x, sizeof *a->last);
  bool room = a->count && a->last;
  for (int way = 0; way < DVBF_WAYS; way++)
    if (way < DVBF_BY_LINEAR || a->r->by[way])
      room = (out->rmse[way] = dv_calloc(values, sizeof *out->rmse[way])) && room;
  return room ? DVBF_OK : dv_fail_memory(error, "adding up errors by horizon");
}

/* One value, h steps ahead of view i. */
static void add_value(adding *a, size_t i, size_t h, size_t k, double x) {
  const dv_rolling *r = a->r;
  dv_ahead *out = a->out;
  double mean = a->yardstick->mean[k], unit = a->yardstick->unit[k];
  for (int way = 0; way < DVBF_WAYS; way++) {
    const dvbf_estimates *e = r->by[way];
    if (!out->rmse[way]) continue;
    double guess = way == DVBF_BY_MEAN ? mean
                   : way == DVBF_BY_LAST
                       ? (isnan(a->last[k]) ? mean : (double)a->last[k])
                       : (double)e->x[(i * e->steps + r->first + h - e->first) * e->n_x + k];
    double error = isfinite(guess) ? x - guess : INFINITY;
    if (unit > 0) out->rmse[way][h] += error * error / (unit * unit);
    if (out->columns) out->rmse[way][(1 + k) * out->horizon + h] += error * error;
  }
  a->count[h] += unit > 0;
  if (out->columns) a->count[(1 + k) * out->horizon + h] += 1;
}

static void add_view(adding *a, size_t i, const float *x) {
  const dvbf_sequences *v = &a->r->views;
  size_t n = v->n_x, first = a->r->first;
  for (size_t k = 0; k < n; k++) a->last[k] = NAN;
  for (size_t t = 0; t < dvbf_sequence_length(v, i); t++)
    for (size_t k = 0; k < n; k++) {
      float value = x[t * n + k];
      if (isnan(value)) continue;
      if (t < first)
        a->last[k] = value;
      else
        add_value(a, i, t - first, k, (double)value);
    }
}

static dvbf_status add_up(adding *a, dvbf_error *error) {
  const dvbf_sequences *v = &a->r->views;
  float *buffer = NULL;
  dvbf_status status = dv_sequence_buffer(&buffer, v, v->steps, error);
  for (size_t i = 0; i < v->count && !status; i++)
    add_view(a, i, dv_sequence_x(v, i, 0, dvbf_sequence_length(v, i), buffer));
  dv_free(buffer);
  for (int way = 0; way < DVBF_WAYS && !status; way++)
    for (size_t j = 0; a->out->rmse[way] && j < (1 + a->out->columns) * a->out->horizon; j++)
      a->out->rmse[way][j] = sqrt(a->out->rmse[way][j] / a->count[j]); /* 0 / 0 is NaN: unknown */
  return status ? status : dv_sequences_intact(v, error);
}

dvbf_status dv_ahead_of(dv_ahead *out, const dvbf_model *model, const dvbf_data *data,
                        const dvbf_sequences *sequences, const dvbf_settings *settings, dvbf_error *error) {
  dv_rolling r = {0};
  dv_yardstick yardstick = {0};
  *out = (dv_ahead){0};
  dv_rolling_plan plan = {.free_run = true, .origins = ORIGINS, .horizon = HORIZON};
  dvbf_status status = dv_yardstick_of(&yardstick, model, data, sequences, error);
  if (!status) status = dv_rolling_run(&r, model, sequences, plan, &yardstick, settings, error);
  if (!status && r.views.count) {
    adding a = {.out = out, .r = &r, .yardstick = &yardstick};
    out->origins = r.views.count;
    out->horizon = r.views.steps - r.first;
    out->columns = r.views.n_x <= DV_AHEAD_COLUMNS ? r.views.n_x : 0;
    status = make_room(&a, error);
    if (!status) status = add_up(&a, error);
    DV_FREE(a.count, a.last);
  }
  dv_rolling_clear(&r);
  dv_yardstick_clear(&yardstick);
  return status;
}
