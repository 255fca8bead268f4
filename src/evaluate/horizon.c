/* Error of prediction by the number of steps ahead (dv_horizon_errors): from the first frames of each
 * sequence and, of signals in a few long sequences, from later places too. Predictions are not kept, so data
 * may be larger than memory. Images that show an object also have its distance from the true place. */
#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "evaluate/evaluate.h"
#include "evaluate/rolling.h"
#include "evaluate/tracking.h"

#include <math.h>
#include <string.h>

/* ORIGINS are wanted, for smooth curves; those behind the first of a sequence predict HORIZON steps. */
enum { ORIGINS = 200, HORIZON = 100 };
/* Columns have curves of their own if there are no more than these, of so many predicted frames. */
enum { MOST_CURVES = 64, FRAMES = 1 << 17 };

/* What is known of each predicted value: squared errors of the model, of the last known value and of the
 * mean, and whether it is there. */
enum { OF_MODEL, OF_LAST, OF_MEAN, ARE_THERE, KINDS };

/* One set of origins. */
typedef struct origin_set {
  const dvbf_sequences *sequences;
  dvbf_sequences later; /* views of them with other origins, for a second set */
  dvbf_evaluation *out;
  const dv_baseline *baseline;
  size_t observed, horizon; /* of these sequences */
  size_t wide;              /* 1 for all columns together, then each of the evaluation's columns */
  bool baselines;           /* the pass that runs now scores them too */
  double *frames[KINDS];    /* [count][horizon][wide] */
  double *count;            /* [wide][horizon of all] values that are there, over all sets */
  dv_tracker tracker;       /* where images show an object */
  size_t pixels;            /* of such an image; else 0 */
  double *moved, *stayed;   /* [count][horizon] distance of its centre in both, NaN if it is unknown */
  float *guess;             /* [shards][3 n_x + 2 pixels] */
} origin_set;

static void score(const origin_set *c, int kind, size_t frame, const float *x, const float *guess) {
  double *to = c->frames[kind] + frame * c->wide;
  to[0] = 0;
  for (size_t k = 0; k < c->sequences->n_x; k++) {
    if (isnan(x[k])) continue;
    double apart = isfinite(guess[k]) ? (double)(x[k] - guess[k]) : INFINITY;
    to[0] += apart * apart;
    if (c->wide > 1) to[1 + k] = apart * apart;
  }
}

static void count_values(const origin_set *c, size_t frame, const float *x) {
  double *seen = c->frames[ARE_THERE] + frame * c->wide;
  for (size_t k = 0; k < c->sequences->n_x; k++) {
    if (isnan(x[k])) continue;
    seen[0] += 1;
    if (c->wide > 1) seen[1 + k] = 1;
  }
}

/* The last known value of each column before the prediction, else the mean. */
static void find_last(float *last, const origin_set *c, const float *x) {
  size_t n = c->sequences->n_x;
  for (size_t k = 0; k < n; k++) {
    size_t t = c->observed;
    while (t && isnan(x[(t - 1) * n + k])) t--;
    last[k] = t ? x[(t - 1) * n + k] : (float)c->baseline->mean[k];
  }
}

static void score_baselines(const origin_set *c, size_t frame, const float *x, const float *guess,
                            const float *last, const float *mean, float *room) {
  count_values(c, frame, x);
  score(c, OF_LAST, frame, x, last);
  score(c, OF_MEAN, frame, x, mean);
  if (!c->pixels) return;
  c->moved[frame] = dv_tracker_distance(&c->tracker, x, guess, room);
  c->stayed[frame] = dv_tracker_distance(&c->tracker, x, last, room);
}

static void collect(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  const origin_set *c = user;
  const dvbf_sequences *s = c->sequences;
  const dvbf_real *output = dvbf_at(&w->run, w->program->output);
  size_t n = s->n_x, rows = (size_t)w->program->rows;
  float *guess = c->guess + shard * (3 * n + 2 * c->pixels), *last = guess + n, *mean = last + n;
  for (size_t k = 0; k < n; k++) mean[k] = (float)c->baseline->mean[k];
  for (size_t r = 0; r < (size_t)count; r++) {
    size_t length = dvbf_sequence_length(s, first + r);
    if (length <= c->observed) continue;
    const float *x = dv_sequence_x(s, first + r, 0, length, w->frames);
    if (c->baselines) find_last(last, c, x);
    for (size_t t = c->observed; t < length; t++) {
      size_t frame = (first + r) * c->horizon + t - c->observed;
      dv_model_unscale(w->model, output + (t * rows + r) * n, guess);
      score(c, OF_MODEL, frame, x + t * n, guess);
      if (c->baselines) score_baselines(c, frame, x + t * n, guess, last, mean, mean + n);
    }
  }
}

/* out [wide][horizon of all] += share * sum over all sequences. */
static void add_up(double *out, const origin_set *c, const dv_pass *pass, int kind, double share) {
  double *frames = c->frames[kind];
  dv_pass_gather(pass, c->sequences, frames, c->horizon * c->wide * sizeof *frames);
  for (size_t h = 0; h < c->horizon; h++)
    for (size_t k = 0; k < c->wide; k++) {
      double sum = 0;
      for (size_t i = 0; i < c->sequences->count; i++) sum += frames[(i * c->horizon + h) * c->wide + k];
      out[k * c->out->horizon + h] += share * sum;
    }
}

/* ---- Distances ---- */

/* Mean over the frames where both are known. */
static void average_distance(double *out, const origin_set *c, const dv_pass *pass, double *frames) {
  dv_pass_gather(pass, c->sequences, frames, c->horizon * sizeof *frames);
  for (size_t h = 0; h < c->horizon; h++) {
    double sum = 0, count = 0;
    for (size_t i = 0; i < c->sequences->count; i++) {
      double distance = frames[i * c->horizon + h];
      if (!isnan(distance)) sum += distance, count += 1;
    }
    if (count > 0) out[h] = sum / count;
  }
}

/* Mean number of predicted frames before the first whose object is more than a pixel away. */
static double steps_near(const origin_set *c) {
  double sum = 0;
  for (size_t i = 0; i < c->sequences->count; i++)
    for (size_t h = 0; h < c->horizon && c->moved[i * c->horizon + h] <= 1; h++) sum += 1;
  return sum / (double)c->sequences->count;
}

/* ---- One set of origins ---- */

static dvbf_status make_room(origin_set *c, size_t shards, dvbf_error *error) {
  size_t frames, values;
  bool room = dv_multiply(c->sequences->count, c->horizon, &frames) && dv_multiply(frames, c->wide, &values);
  for (int kind = 0; kind < KINDS && room; kind++)
    room = (c->frames[kind] = dv_calloc(values, sizeof *c->frames[kind]));
  if (room && c->pixels)
    room = (c->moved = dv_calloc(frames, sizeof *c->moved)) &&
           (c->stayed = dv_calloc(frames, sizeof *c->stayed));
  if (room) c->guess = dv_calloc(shards, (3 * c->sequences->n_x + 2 * c->pixels) * sizeof *c->guess);
  return room && c->guess ? DVBF_OK : dv_fail_memory(error, "scoring predictions");
}

static void free_room(origin_set *c) {
  for (int kind = 0; kind < KINDS; kind++) dv_free(c->frames[kind]);
  DV_FREE(c->moved, c->stayed, c->guess);
  memset(c->frames, 0, sizeof c->frames);
  c->moved = c->stayed = NULL;
  c->guess = NULL;
}

/* Samples, and a prediction without noise, which comes last and scores the baselines too. */
static dvbf_status run_model(origin_set *c, dv_pass *pass, const dv_evaluate_settings *o, dvbf_error *error) {
  dvbf_evaluation *e = c->out;
  for (int64_t i = 0; i <= o->samples; i++) {
    dv_conditions conditions = dv_model_conditions(pass->model, (uint64_t)(o->seed + i));
    conditions.noise_free = c->baselines = i == o->samples;
    dvbf_status status = dv_pass_run(pass, c->sequences, &conditions, collect, c, error);
    if (status) return status;
    add_up(c->baselines ? e->mse_mean_path : e->mse, c, pass, OF_MODEL,
           c->baselines ? 1 : 1 / (double)o->samples);
  }
  add_up(e->mse_repeat, c, pass, OF_LAST, 1);
  add_up(e->mse_mean, c, pass, OF_MEAN, 1);
  add_up(c->count, c, pass, ARE_THERE, 1);
  for (size_t frame = 0; frame < c->sequences->count * c->horizon; frame++)
    e->origins[frame % c->horizon] += c->frames[ARE_THERE][frame * c->wide] > 0;
  if (!c->pixels) return DVBF_OK;
  average_distance(e->distance, c, pass, c->moved);
  average_distance(e->distance_repeat, c, pass, c->stayed);
  e->steps_near = steps_near(c);
  return DVBF_OK;
}

static dvbf_status run_linear(origin_set *c, const dvbf_model *linear, dv_threads *pool, dvbf_error *error) {
  dv_pass pass = {0};
  dv_conditions conditions = dv_model_conditions(linear, 1);
  conditions.noise_free = true;
  c->baselines = false;
  dvbf_status status = dv_pass_init(&pass, linear, pool, c->sequences, (int)c->observed, error);
  if (!status) status = dv_pass_run(&pass, c->sequences, &conditions, collect, c, error);
  if (!status) add_up(c->out->mse_linear, c, &pass, OF_MODEL, 1);
  dv_pass_clear(&pass);
  return status;
}

static dvbf_status add_set(origin_set *c, const dvbf_model *model, const dv_evaluate_settings *o,
                           dv_threads *pool, dvbf_error *error) {
  const dvbf_model *linear = c->out->mse_linear ? model->linear : NULL;
  dv_pass pass = {0};
  c->horizon = c->sequences->steps - c->observed;
  dvbf_status status = dv_pass_init(&pass, model, pool, c->sequences, (int)c->observed, error);
  if (!status) status = make_room(c, dv_pass_shards(&pass, c->sequences), error);
  if (!status) status = run_model(c, &pass, o, error);
  if (!status && linear) status = run_linear(c, linear, pool, error);
  dv_pass_clear(&pass);
  free_room(c);
  return status;
}

/* ---- Evaluation ---- */

/* Prepares distances if the images show an object. */
static dvbf_status prepare_distances(origin_set *c, const dvbf_data *data, dvbf_error *error) {
  dvbf_evaluation *e = c->out;
  dvbf_status status = dv_tracker_of(&c->tracker, data, c->sequences, error);
  c->pixels = c->tracker.height * c->tracker.width;
  if (status || !c->pixels) return status;
  e->distance = dv_calloc(e->horizon, sizeof *e->distance);
  e->distance_repeat = dv_calloc(e->horizon, sizeof *e->distance_repeat);
  return e->distance && e->distance_repeat ? DVBF_OK : dv_fail_memory(error, "scoring predictions");
}

static dvbf_status add_sets(origin_set *c, const dvbf_model *model, const dvbf_data *data,
                            const dv_evaluate_settings *o, dv_threads *pool, dvbf_error *error) {
  const dvbf_sequences *s = c->sequences;
  dvbf_status status = prepare_distances(c, data, error);
  if (!status) status = add_set(c, model, o, pool, error);
  if (!status && !data->image_height && s->count < ORIGINS)
    status = dv_views_choose(&c->later, s, c->observed, ORIGINS, HORIZON, 2 * ORIGINS * HORIZON, true, error);
  c->sequences = &c->later;
  if (!status && c->later.count) status = add_set(c, model, o, pool, error);
  dv_windows_free(&c->later);
  return status;
}

dvbf_status dv_horizon_errors(dvbf_evaluation *e, const dvbf_model *model, const dvbf_sequences *s,
                              const dvbf_data *data, const dv_evaluate_settings *o, dv_threads *pool,
                              dvbf_error *error) {
  size_t needed = (size_t)dv_model_frames_needed(model), asked = (size_t)o->observe;
  dv_baseline baseline = {0};
  origin_set c = {
      .sequences = s, .out = e, .baseline = &baseline, .observed = asked > needed ? asked : needed};
  if (c.observed >= s->steps) return DVBF_OK;
  e->observed = c.observed;
  e->horizon = s->steps - c.observed;
  bool each = !data->image_height && s->n_x <= MOST_CURVES && s->count <= FRAMES / e->horizon;
  e->columns = each ? s->n_x : 0;
  c.wide = 1 + e->columns;
  size_t values = c.wide * e->horizon;
  bool linear = model->linear && (size_t)dv_model_frames_needed(model->linear) <= c.observed;
  double **const curves[] = {&c.count,       &e->mse,      &e->mse_mean_path,
                             &e->mse_repeat, &e->mse_mean, &e->mse_linear};
  bool room = (e->origins = dv_calloc(e->horizon, sizeof *e->origins));
  for (size_t i = 0; i < 5 + (size_t)linear; i++)
    room = (*curves[i] = dv_calloc(values, sizeof **curves[i])) && room;
  dvbf_status status =
      room ? dv_baseline_of(&baseline, model, data, s, error) : dv_fail_memory(error, "scoring predictions");
  if (!status) status = add_sets(&c, model, data, o, pool, error);
  for (size_t i = 1; i < 5 + (size_t)linear && !status; i++) /* to means; NaN where nothing is known */
    for (size_t j = 0; j < values; j++) (*curves[i])[j] /= c.count[j];
  dv_free(c.count);
  dv_baseline_clear(&baseline);
  return status;
}
