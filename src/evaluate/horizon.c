/* Error of prediction by number of steps ahead: from the first frames of each sequence (dv_horizon_errors,
 * also for data larger than memory, and with distances of objects in images), and from many origins compared
 * with baselines (dv_horizon_origins_of). */
#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "evaluate/evaluate.h"
#include "evaluate/rolling.h"
#include "evaluate/tracking.h"

#include <math.h>
#include <string.h>

/* Squared errors of all predicted frames of one method. */
typedef struct frame_errors {
  double *square; /* [count][horizon] summed over the values of a frame that are there */
  double *values; /* [count][horizon] number of these */
} frame_errors;

typedef struct scoring {
  const dvbf_sequences *sequences;
  size_t observed, horizon;
  bool noise_free;                 /* the pass that runs now; it also scores the last observed frame */
  frame_errors model, persistence; /* of what the model predicts, and of the last observed frame */
  dv_tracker tracker;              /* where images show an object */
  frame_errors moved, stayed;      /* distance of its centre in both from the true one */
  size_t pixels;                   /* of such an image; else 0 */
  float *guess;                    /* [shards][n_x + 2 pixels] */
} scoring;

static bool make_room(frame_errors *e, size_t frames) {
  e->square = dv_calloc(frames, sizeof *e->square);
  e->values = dv_calloc(frames, sizeof *e->values);
  return e->square && e->values;
}

static void free_room(frame_errors *e) {
  DV_FREE(e->square, e->values);
}

static void score(const frame_errors *e, size_t frame, const float *x, const float *guess, size_t n) {
  double sum = 0, values = 0;
  for (size_t k = 0; k < n; k++) {
    if (isnan(x[k])) continue;
    double apart = isfinite(guess[k]) ? (double)(x[k] - guess[k]) : INFINITY;
    sum += apart * apart;
    values += 1;
  }
  e->square[frame] = sum;
  e->values[frame] = values;
}

static void follow(const scoring *c, const frame_errors *e, size_t frame, const float *x, const float *guess,
                   float *room) {
  double distance = dv_tracker_distance(&c->tracker, x, guess, room);
  e->values[frame] = isfinite(distance);
  e->square[frame] = isfinite(distance) ? distance : 0;
}

static void collect(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  const scoring *c = user;
  const dvbf_sequences *s = c->sequences;
  const dvbf_real *output = dvbf_at(&w->run, w->program->output);
  size_t n = s->n_x, rows = (size_t)w->program->rows;
  float *guess = c->guess + shard * (n + 2 * c->pixels), *room = guess + n;
  for (size_t r = 0; r < (size_t)count; r++) {
    size_t length = dvbf_sequence_length(s, first + r),
           steps = length > c->observed ? length - c->observed : 0;
    if (!steps) continue;
    const float *last = dv_sequence_x(s, first + r, c->observed - 1, steps + 1, w->frames), *x = last + n;
    for (size_t h = 0; h < steps; h++, x += n) {
      size_t frame = (first + r) * c->horizon + h;
      dv_model_unscale(w->model, output + ((c->observed + h) * rows + r) * n, guess);
      score(&c->model, frame, x, guess, n);
      if (!c->noise_free) continue;
      score(&c->persistence, frame, x, last, n);
      if (c->pixels) follow(c, &c->moved, frame, x, guess, room);
      if (c->pixels) follow(c, &c->stayed, frame, x, last, room);
    }
  }
}

static void gather(const scoring *c, const dv_pass *pass, const frame_errors *e) {
  dv_pass_gather(pass, c->sequences, e->square, c->horizon * sizeof *e->square);
  dv_pass_gather(pass, c->sequences, e->values, c->horizon * sizeof *e->values);
}

/* out[h] += share * mean over all sequences of the squared error per value. */
static void add_up(double *out, const frame_errors *e, size_t count, size_t horizon, double share) {
  for (size_t h = 0; h < horizon; h++) {
    double sum = 0, values = 0;
    for (size_t i = 0; i < count; i++) {
      sum += e->square[i * horizon + h];
      values += e->values[i * horizon + h];
    }
    if (values > 0) out[h] += share * sum / values;
  }
}

/* Mean number of predicted frames before the first whose object is more than a pixel away. */
static double steps_near(const scoring *c) {
  double sum = 0;
  for (size_t i = 0; i < c->sequences->count; i++)
    for (size_t h = 0; h < c->horizon; h++) {
      size_t frame = i * c->horizon + h;
      if (!(c->moved.values[frame] > 0) || c->moved.square[frame] > 1) break;
      sum += 1;
    }
  return sum / (double)c->sequences->count;
}

static dvbf_status run(dvbf_evaluation *out, scoring *c, dv_pass *pass, const dv_evaluate_settings *o,
                       dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  size_t count = c->sequences->count;
  for (int64_t i = 0; i <= o->samples && !status; i++) {
    dv_conditions conditions = dv_model_conditions(pass->model, (uint64_t)(o->seed + i));
    conditions.noise_free = c->noise_free = i == o->samples; /* the last one */
    status = dv_pass_run(pass, c->sequences, &conditions, collect, c, error);
    if (!status) gather(c, pass, &c->model);
    add_up(c->noise_free ? out->mse_mean_path : out->mse, &c->model, count, c->horizon,
           c->noise_free ? 1 : 1 / (double)o->samples);
  }
  if (status) return status;
  gather(c, pass, &c->persistence);
  add_up(out->mse_repeat, &c->persistence, count, c->horizon, 1);
  if (!c->pixels) return DVBF_OK;
  gather(c, pass, &c->moved);
  gather(c, pass, &c->stayed);
  add_up(out->distance, &c->moved, count, c->horizon, 1);
  add_up(out->distance_repeat, &c->stayed, count, c->horizon, 1);
  out->steps_near = steps_near(c);
  return DVBF_OK;
}

/* Prepares distances if the images show an object. */
static dvbf_status prepare_distances(scoring *c, dvbf_evaluation *out, const dvbf_data *data,
                                     dvbf_error *error) {
  size_t frames = 0;
  dvbf_status status = dv_tracker_of(&c->tracker, data, c->sequences, error);
  c->pixels = c->tracker.height * c->tracker.width;
  if (status || !c->pixels) return status;
  out->distance = dv_calloc(c->horizon, sizeof *out->distance);
  out->distance_repeat = dv_calloc(c->horizon, sizeof *out->distance_repeat);
  bool room = out->distance && out->distance_repeat &&
              dv_multiply(c->sequences->count, c->horizon, &frames) && make_room(&c->moved, frames) &&
              make_room(&c->stayed, frames);
  return room ? DVBF_OK : dv_fail_memory(error, "scoring predictions");
}

dvbf_status dv_horizon_errors(dvbf_evaluation *out, const dvbf_model *model, const dvbf_sequences *s,
                              const dvbf_data *data, const dv_evaluate_settings *o, dv_threads *pool,
                              dvbf_error *error) {
  size_t needed = (size_t)dv_model_frames_needed(model), asked = (size_t)o->observe, frames;
  scoring c = {.sequences = s, .observed = asked > needed ? asked : needed};
  if (c.observed >= s->steps) return DVBF_OK;
  dv_pass pass = {0};
  out->observed = c.observed;
  out->horizon = c.horizon = s->steps - c.observed;
  out->mse = dv_calloc(c.horizon, sizeof *out->mse);
  out->mse_mean_path = dv_calloc(c.horizon, sizeof *out->mse_mean_path);
  out->mse_repeat = dv_calloc(c.horizon, sizeof *out->mse_repeat);
  dvbf_status status = dv_pass_init(&pass, model, pool, s, (int)c.observed, error);
  if (!status) status = prepare_distances(&c, out, data, error);
  if (!status) {
    c.guess = dv_calloc(dv_pass_shards(&pass, s), (s->n_x + 2 * c.pixels) * sizeof *c.guess);
    bool room = out->mse && out->mse_mean_path && out->mse_repeat && c.guess &&
                dv_multiply(s->count, c.horizon, &frames) && make_room(&c.model, frames) &&
                make_room(&c.persistence, frames);
    status = room ? run(out, &c, &pass, o, error) : dv_fail_memory(error, "scoring predictions");
  }
  dv_pass_clear(&pass);
  free_room(&c.model);
  free_room(&c.persistence);
  free_room(&c.moved);
  free_room(&c.stayed);
  dv_free(c.guess);
  return status;
}

/* ---- Many origins ---- */

/* Number of ORIGINS, for smooth curves, and the largest HORIZON. */
enum { ORIGINS = 200, HORIZON = 100 };

void dv_horizon_origins_clear(dv_horizon_origins *a) {
  for (int way = 0; way < DVBF_WAYS; way++) dv_free(a->rmse[way]);
  *a = (dv_horizon_origins){0};
}

/* Sums over the origins; the curves are filled with sums first, then with roots. */
typedef struct adding {
  dv_horizon_origins *out;
  const dv_rolling *r;
  const dv_baseline *yardstick;
  double *count; /* [1 + columns][horizon] */
  float *last;   /* [n_x] that were seen before the prediction */
} adding;

static dvbf_status make_curves(adding *a, dvbf_error *error) {
  dv_horizon_origins *out = a->out;
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
  dv_horizon_origins *out = a->out;
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

static dvbf_status add_origins(adding *a, dvbf_error *error) {
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

dvbf_status dv_horizon_origins_of(dv_horizon_origins *out, const dvbf_model *model, const dvbf_data *data,
                                  const dvbf_sequences *sequences, const dvbf_settings *settings,
                                  dvbf_error *error) {
  dv_rolling r = {0};
  dv_baseline yardstick = {0};
  *out = (dv_horizon_origins){0};
  dv_rolling_plan plan = {.free_run = true, .origins = ORIGINS, .horizon = HORIZON};
  dv_evaluate_request ask;
  dvbf_status status = dv_evaluate_request_of(&ask, settings, error);
  if (!status) status = dv_baseline_of(&yardstick, model, data, sequences, error);
  if (!status) status = dv_rolling_run(&r, model, sequences, plan, &yardstick, &ask, error);
  if (!status && r.views.count) {
    adding a = {.out = out, .r = &r, .yardstick = &yardstick};
    out->origins = r.views.count;
    out->horizon = r.views.steps - r.first;
    out->columns = r.views.n_x <= DV_AHEAD_COLUMNS ? r.views.n_x : 0;
    status = make_curves(&a, error);
    if (!status) status = add_origins(&a, error);
    DV_FREE(a.count, a.last);
  }
  dv_rolling_clear(&r);
  dv_baseline_clear(&yardstick);
  return status;
}
