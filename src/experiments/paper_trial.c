/* One seed of one of the paper's experiments (dv_trial_run): simulate, train, evaluate and measure
 * (dv_measure). Measurements beyond an evaluation are regression away from bounces, regression by a network,
 * walks of a pendulum to rest, whole balls, and positions of objects in predictions. */
#include "base/error.h"
#include "base/memory.h"
#include "experiments/paper.h"
#include "experiments/system.h"
#include "math/portable.h"
#include "model/train_settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
  LONG_STEPS = 45,
  LONG_SEED = 1000000,
  PARTICLES = 64
}; /* the long sequences are of no training set's seed */

void dv_trial_clear(dv_trial *t) {
  for (int m = 0; m < DV_MODELS; m++) dvbf_model_free(t->model[m]);
  dvbf_data_free(t->long_data);
  dvbf_data_free(t->data);
  dvbf_settings_free(t->evaluation);
}

void dv_trial_folder(dv_path out, const dv_work *w, const dv_study *s, uint64_t seed) {
  char name[64];
  snprintf(name, sizeof name, "seed-%llu", (unsigned long long)seed);
  if (w->n_seeds > 1)
    dv_join(out, s->folder, name);
  else
    snprintf(out, sizeof(dv_path), "%s", s->folder);
}

void dv_trial_run_folder(dv_path out, const dv_trial *t, size_t model) {
  dv_join(out, t->folder, dv_study_contender(t->study, model)->run);
}

void dv_trial_report(dv_work *w, const dv_trial *t, dvbf_stage_kind kind, size_t model) {
  dv_path folder;
  dvbf_stage stage = {.kind = kind, .system = t->study->experiment->system, .seed = t->seed};
  if (model < DV_MODELS) {
    dv_trial_run_folder(folder, t, model);
    stage.model = dv_study_contender(t->study, model)->name;
    stage.folder = folder;
  }
  if (w->options->stage && !w->options->stage(&stage, w->options->user_data)) w->stopped = true;
}

enum { REST = 10, WALK_SEED = 2000000 };

/* Sum over columns of the variance of v [rows][n]. */
static double total_variance(const float *v, size_t rows, size_t n) {
  double total = 0, count = (double)rows;
  for (size_t i = 0; i < n; i++) {
    double sum = 0, squares = 0;
    for (size_t k = i; k < rows * n; k += n) {
      sum += (double)v[k];
      squares += (double)v[k] * (double)v[k];
    }
    total += squares / count - sum / count * (sum / count);
  }
  return total;
}

static double rest_of(const dv_paths *p, size_t sequence, size_t i) {
  double sum = 0;
  for (size_t t = p->steps - REST; t < p->steps; t++) sum += p->z[(sequence * p->steps + t) * p->n_z + i];
  return sum / REST;
}

/* Distance between the points where both walks of a sequence rest, averaged over the sequences, over the
 * spread of the samples: the root of their mean squared distance from their mean. */
static double walks_distance(const dv_walks *w, const dv_paths *samples) {
  double sum = 0;
  for (size_t s = 0; s < w->filtering->count; s++) {
    double squares = 0;
    for (size_t i = 0; i < w->filtering->n_z; i++) {
      double apart = rest_of(w->filtering, s, i) - rest_of(w->generative, s, i);
      squares += apart * apart;
    }
    sum += sqrt(squares);
  }
  return sum / (double)w->filtering->count /
         sqrt(total_variance(samples->z, samples->count * samples->steps, samples->n_z));
}

/* ---- Regression away from bounces ---- */

static dvbf_status control_of(double *gain, const char *preset, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_status status = dvbf_settings_new(&settings, "ball", error);
  if (!status) status = dvbf_settings_preset(settings, preset, error);
  if (!status) *gain = ((const dv_ball_settings *)dv_settings_edit(settings))->control;
  dvbf_settings_free(settings);
  return status;
}

/* A wall is met between frames t and t + 1: a velocity, the last states, changes by more than its control. */
static bool bounces(const dvbf_sequences *s, size_t sequence, size_t t, double gain) {
  const float *now = s->state + (dvbf_sequence_start(s, sequence) + t) * s->n_s, *next = now + s->n_s;
  const float *u = s->u + (dvbf_sequence_start(s, sequence) + t) * s->n_u;
  for (size_t a = 0; a < s->n_u; a++) {
    size_t i = s->n_s - s->n_u + a;
    if (fabs((double)next[i] - (double)now[i] - gain * (double)u[a]) > 1e-4) return true;
  }
  return false;
}

/* R^2 of state `column` over the frames that no bounce precedes or follows. */
static dvbf_status regress_away(double *r2, const dv_subject *from, const dv_paths *paths, size_t column,
                                dvbf_error *error) {
  const dvbf_sequences *s = &from->data->test;
  size_t points = 0, n_z = paths->n_z;
  /* [frames][n_z] and [frames] in one block */
  float *z = dv_calloc(s->count * s->steps, (n_z + 1) * sizeof *z), *y;
  dvbf_regression regression = {0};
  double gain = 0;
  if (!z) return dv_fail(error, DVBF_MEMORY, "out of memory for a regression");
  y = z + s->count * s->steps * n_z;
  dvbf_status status = control_of(&gain, from->preset, error);
  for (size_t i = 0; !status && i < s->count; i++)
    for (size_t t = 0; t < s->steps; t++) {
      if ((t && bounces(s, i, t - 1, gain)) || (t + 1 < s->steps && bounces(s, i, t, gain))) continue;
      memcpy(z + points * n_z, paths->z + (i * s->steps + t) * n_z, n_z * sizeof *z);
      y[points++] = s->state[(dvbf_sequence_start(s, i) + t) * s->n_s + column];
    }
  if (!status) status = dvbf_regress(&regression, z, points, n_z, y, 1, error);
  *r2 = regression.r2;
  dv_free(z);
  return status;
}

static dvbf_status measure_away(double *r2, const char *state, const dv_subject *from, const dv_paths *paths,
                                dvbf_error *error) {
  const dvbf_data *data = from->data;
  *r2 = NAN;
  for (size_t i = 0; i < data->test.n_s; i++)
    if (!strcmp(data->state_names[i], state)) return regress_away(r2, from, paths, i, error);
  return DVBF_OK;
}

/* ---- Walks ---- */

static dvbf_status measure_walk(double *distance, const dv_subject *from, const dv_paths *paths,
                                dvbf_error *error) {
  dv_walks walks;
  dvbf_status status = dv_walks_take(&walks, from, error);
  if (!status) *distance = walks_distance(&walks, paths);
  dv_walks_free(&walks);
  return status;
}

/* ---- Whole balls ---- */

/* Darkens the bright pixels connected with that one. */
static void darken(float *image, size_t height, size_t width, size_t row, size_t column) {
  if (row >= height || column >= width || image[row * width + column] <= 0.5f) return;
  image[row * width + column] = 0;
  darken(image, height, width, row + 1, column);
  darken(image, height, width, row - 1, column); /* from 0 to far beyond the height */
  darken(image, height, width, row, column + 1);
  darken(image, height, width, row, column - 1);
}

/* Regions of pixels above one half; a blurred or faded ball has none. */
static size_t bright_regions(const float *image, size_t height, size_t width, float *scratch) {
  size_t regions = 0;
  memcpy(scratch, image, height * width * sizeof *scratch);
  for (size_t i = 0; i < height; i++)
    for (size_t j = 0; j < width; j++)
      if (scratch[i * width + j] > 0.5f) {
        darken(scratch, height, width, i, j);
        regions++;
      }
  return regions;
}

/* Share of the sequences whose last image in x [count][steps][n_x] has that many regions. */
static dvbf_status measure_whole(double *share, const dvbf_data *long_data, const float *x, size_t balls,
                                 dvbf_error *error) {
  const dvbf_sequences *s = &long_data->test;
  float *scratch = dv_calloc(s->n_x, sizeof *scratch);
  double whole = 0;
  if (!scratch) return dv_fail(error, DVBF_MEMORY, "out of memory for counting balls");
  for (size_t i = 0; i < s->count; i++)
    whole += bright_regions(x + ((i + 1) * s->steps - 1) * s->n_x, long_data->image_height,
                            long_data->image_width, scratch) == balls;
  *share = whole / (double)s->count;
  dv_free(scratch);
  return DVBF_OK;
}

static dvbf_status measure_generated(double *share, const dv_subject *from, size_t balls, dvbf_error *error) {
  dv_paths *paths = NULL;
  dv_path_options options = {.observe = from->observed, .noise_free = true, .threads = from->threads};
  dvbf_status status = dv_paths_of(&paths, from->model, &from->long_data->test, &options, error);
  if (!status) status = measure_whole(share, from->long_data, paths->x, balls, error);
  dv_paths_free(paths);
  return status;
}

/* ---- Regression by a network ---- */

static dvbf_status measure_network(double *values, const dv_experiment *e, const dv_subject *from,
                                   const dv_paths *paths, dvbf_error *error) {
  const dvbf_sequences *s = &from->data->test;
  if (dv_quantity_of(e, DV_OF_R2_NETWORK) == DV_QUANTITIES || !s->n_s) return DVBF_OK;
  double *r2 = dv_calloc(s->n_s, sizeof *r2);
  dvbf_status status =
      r2 ? dv_network_regress(r2, paths->z, s->count * s->steps, paths->n_z, s->state, s->n_s, error)
         : dv_fail_memory(error, "a regression by a network");
  for (size_t i = 0; !status && i < dv_quantities(e); i++)
    for (size_t k = 0; e->quantity[i].kind == DV_OF_R2_NETWORK && k < s->n_s; k++)
      if (!strcmp(from->data->state_names[k], e->quantity[i].state)) values[i] = r2[k];
  dv_free(r2);
  return status;
}

/* ---- Positions of objects ---- */

static dvbf_status measure_centres(double *values, const dv_experiment *e, const dv_subject *from,
                                   dvbf_error *error) {
  if (dv_quantity_of(e, DV_OF_VALID) == DV_QUANTITIES) return DVBF_OK;
  dv_paths *paths = NULL;
  dv_centres c = {0};
  dv_path_options options = {.observe = from->observed, .noise_free = true, .threads = from->threads};
  dvbf_status status = dv_paths_of(&paths, from->model, &from->long_data->test, &options, error);
  if (!status) dv_centres_measure(&c, from->long_data, paths->x, from->observed);
  for (size_t i = 0; !status && i < dv_quantities(e); i++) {
    dv_quantity_kind kind = e->quantity[i].kind;
    if (kind == DV_OF_VALID) values[i] = c.valid;
    if (kind == DV_OF_CLOSE) values[i] = c.close;
    if (kind == DV_OF_DISTANCE) values[i] = c.near;
    if (kind == DV_OF_DISTANCE_FAR) values[i] = c.far;
  }
  dv_paths_free(paths);
  return status;
}

/* Regressions away from bounces, distances of walks, and, from the long sequences, shares of whole images and
 * positions of objects. */
static dvbf_status measure(double *values, const dv_experiment *e, const dv_subject *from,
                           dvbf_error *error) {
  dv_paths *paths = NULL;
  dv_path_options options = {.seed = from->seed, .threads = from->threads};
  dvbf_status status = dv_paths_of(&paths, from->model, &from->data->test, &options, error);
  for (size_t i = 0; !status && i < dv_quantities(e); i++) {
    const dv_quantity *q = &e->quantity[i];
    if (q->kind == DV_OF_R2_AWAY) status = measure_away(&values[i], q->state, from, paths, error);
    if (q->kind == DV_OF_WALK) status = measure_walk(&values[i], from, paths, error);
    if (q->kind == DV_OF_WHOLE) status = measure_generated(&values[i], from, q->first, error);
    if (q->kind == DV_OF_WHOLE_TRUTH)
      status = measure_whole(&values[i], from->long_data, from->long_data->test.x, q->first, error);
  }
  if (!status) status = measure_network(values, e, from, paths, error);
  if (!status) status = measure_centres(values, e, from, error);
  dv_paths_free(paths);
  return status;
}

/* ---- Centres ---- */

/* How long a prediction stays valid, and how far its object is off, from images of noise-free predictions of
 * the long sequences. */

/* Centre of brightness of an image, in pixels; false if it is dark. */
static bool centre_of(double out[2], const float *image, size_t height, size_t width) {
  double sum = 0;
  out[0] = out[1] = 0;
  for (size_t i = 0; i < height; i++)
    for (size_t j = 0; j < width; j++) {
      double value = (double)image[i * width + j];
      if (!(value > 0)) continue;
      sum += value;
      out[0] += value * (double)i;
      out[1] += value * (double)j;
    }
  out[0] /= sum;
  out[1] /= sum;
  return sum > 1e-6;
}

/* Distance of the centres of two images; that of an image without one is the height of the image. */
static double distance_of(const dvbf_data *data, const float *a, const float *b) {
  double p[2] = {0}, q[2] = {0};
  size_t height = data->image_height, width = data->image_width;
  bool seen = centre_of(p, a, height, width) && centre_of(q, b, height, width);
  double apart = dv_hypot(p[0] - q[0], p[1] - q[1]);
  return seen && isfinite(apart) ? apart : (double)height;
}

static double squared_error(const float *a, const float *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
  return sum;
}

void dv_centres_measure(dv_centres *out, const dvbf_data *data, const float *x, size_t observed) {
  const dvbf_sequences *s = &data->test;
  /* The mean image has the variance as its error. */
  double most = 0.5 * total_variance(s->x, s->count * s->steps, s->n_x), near = 0, far = 0;
  size_t steps = s->steps - observed, first = steps < 10 ? steps : 10;
  *out = (dv_centres){0};
  for (size_t i = 0; i < s->count; i++) {
    bool valid = true, close = true;
    for (size_t t = observed; t < s->steps; t++) {
      size_t at = (i * s->steps + t) * s->n_x;
      double apart = distance_of(data, x + at, s->x + at);
      valid = valid && squared_error(x + at, s->x + at, s->n_x) <= most;
      close = close && apart <= 1;
      out->valid += valid;
      out->close += close;
      far += apart;
      near += t - observed < first ? apart : 0;
    }
  }
  double count = (double)s->count;
  out->valid /= count;
  out->close /= count;
  out->near = near / count / (double)first;
  out->far = far / count / (double)steps;
}

/* ---- Walks ---- */

dvbf_status dv_walks_take(dv_walks *out, const dv_subject *from, dvbf_error *error) {
  dvbf_data *data = NULL;
  dv_path_options options = {.seed = from->seed, .threads = from->threads};
  *out = (dv_walks){0};
  dv_simulation still = {.system = "pendulum",
                         .preset = from->preset,
                         .seed = from->seed + WALK_SEED,
                         .steps = 100,
                         .train = 1,
                         .valid = 1,
                         .test = 20,
                         .undriven = true};
  dvbf_status status = dv_simulate(&data, &still, error);
  if (!status) status = dv_paths_of(&out->filtering, from->model, &data->test, &options, error);
  options.observe = from->observed;
  if (!status) status = dv_paths_of(&out->generative, from->model, &data->test, &options, error);
  dvbf_data_free(data);
  return status;
}

void dv_walks_free(dv_walks *w) {
  dv_paths_free(w->generative);
  dv_paths_free(w->filtering);
  *w = (dv_walks){0};
}

dvbf_status dv_walks_draw(const dv_walks *w, const dv_points *samples, const char *title, const char *path,
                          dvbf_error *error) {
  const dv_column *angle = dv_points_column(samples, "angle"),
                  *velocity = dv_points_column(samples, "velocity");
  dvbf_figure_walks figure = {.title = title,
                              .n_z = samples->n_z,
                              .walks = 2,
                              .walk = {{"generative", w->generative->steps, w->generative->z},
                                       {"filtering", w->filtering->steps, w->filtering->z}},
                              .points = samples->count,
                              .z = samples->z,
                              .angle = angle ? angle->values : NULL,
                              .velocity = velocity ? velocity->values : NULL};
  return dvbf_draw_walks(&figure, path, error);
}

/* ---- Steps of a trial ---- */

/* Simulates as the preset does, or sequences of `steps` frames for test only, and keeps them in a file. */
static dvbf_status simulate(dvbf_data **out, const dv_trial *t, const char *name, uint64_t seed,
                            int64_t steps, dvbf_error *error) {
  const dv_study *s = t->study;
  dv_path path;
  dv_simulation how = {.system = s->experiment->system,
                       .preset = s->outcome[0].preset,
                       .seed = seed,
                       .steps = steps,
                       .train = steps ? 1 : 0,
                       .valid = steps ? 1 : 0};
  dv_join(path, t->folder, name);
  dvbf_status status = dv_simulate(out, &how, error);
  return status ? status : dvbf_data_write(*out, path, error);
}

static dv_evaluate_settings *evaluation_of(dv_trial *t) {
  return dv_settings_edit(t->evaluation);
}

static dvbf_status prepare(dv_trial *t, dv_work *w, dvbf_error *error) {
  dv_trial_folder(t->folder, w, t->study, t->seed);
  dv_trial_report(w, t, DVBF_SIMULATING, DV_MODELS);
  dvbf_status status = dvbf_folder_make(t->folder, error);
  if (!status) status = simulate(&t->data, t, "data.h5", t->seed, 0, error);
  if (!status) status = simulate(&t->long_data, t, "long.h5", LONG_SEED + t->seed, LONG_STEPS, error);
  if (!status) status = dvbf_settings_new(&t->evaluation, "evaluate", error);
  if (status) return status;
  evaluation_of(t)->verdict = false;
  evaluation_of(t)->seed = (int64_t)t->seed;
  evaluation_of(t)->threads = dvbf_settings_threads(t->study->settings[0]);
  return DVBF_OK;
}

typedef struct watch {
  dv_work *work;
  double seconds, starts;
} watch;

static bool on_progress(const dvbf_progress *p, void *user_data) {
  watch *own = user_data;
  const dvbf_reproduce_options *o = own->work->options;
  own->seconds = p->seconds;
  own->starts = p->begun;
  if (o->progress && !o->progress(p, o->user_data)) own->work->stopped = true;
  return !own->work->stopped;
}

static void set_value(dv_result *result, const dv_experiment *e, dv_quantity_kind kind, double value) {
  size_t i = dv_quantity_of(e, kind);
  if (i < DV_QUANTITIES) result->values[i] = value;
}

static dvbf_status train(dv_trial *t, size_t m, dv_result *result, dv_work *w, dvbf_error *error) {
  const dv_study *s = t->study;
  dv_path run;
  dvbf_settings *settings = NULL;
  watch own = {.work = w};
  dvbf_train_options options = {
      .progress = on_progress, .user_data = &own, .folder = run, .force = w->options->force};
  dv_trial_run_folder(run, t, m);
  dv_trial_report(w, t, DVBF_TRAINING, m);
  dvbf_status status = dvbf_settings_copy(&settings, s->settings[m], error);
  if (!status) ((dv_train_settings *)dv_settings_edit(settings))->seed = (int64_t)t->seed;
  if (!status && !w->stopped) status = dvbf_train(&t->model[m], settings, t->data, &options, error);
  dvbf_settings_free(settings);
  set_value(result, s->experiment, DV_OF_SECONDS, own.seconds);
  set_value(result, s->experiment, DV_OF_STARTS, own.starts);
  if (!status && t->model[m]) dv_trial_report(w, t, DVBF_TRAINED, m);
  return status;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static dvbf_status evaluate_one(dvbf_evaluation **out, json_t **json, const dv_trial *t,
                                const dvbf_model *model, const dvbf_data *data, dvbf_error *error) {
  double began = seconds_now();
  dvbf_status status = dvbf_evaluate(out, model, data, &data->test, t->evaluation, error);
  if (status) return status;
  *json = dv_json_evaluation(*out, model, seconds_now() - began, dvbf_settings_threads(t->evaluation));
  return *json ? DVBF_OK : dv_fail(error, DVBF_MEMORY, "out of memory while writing the results");
}

dv_subject dv_trial_subject(const dv_trial *t, size_t m, const dv_result *result) {
  return (dv_subject){.model = t->model[m],
                      .data = t->data,
                      .long_data = t->long_data,
                      .preset = t->study->outcome[0].preset,
                      .observed = result->far->observed,
                      .seed = t->seed,
                      .threads = dvbf_settings_threads(t->evaluation)};
}

static dvbf_status evaluate(dv_trial *t, size_t m, dv_result *result, dvbf_error *error) {
  const dvbf_model *model = t->model[m];
  bool weigh = dv_quantity_of(t->study->experiment, DV_OF_PARTICLES) < DV_QUANTITIES &&
               !dv_study_contender(t->study, m)->no_particles;
  evaluation_of(t)->particles = weigh ? PARTICLES : 0;
  dvbf_status status = evaluate_one(&result->test, &result->test_json, t, model, t->data, error);
  evaluation_of(t)->particles = 0;
  if (!status) status = evaluate_one(&result->far, &result->far_json, t, model, t->long_data, error);
  if (status) return status;
  dv_result_compare(result, t->study->experiment);
  dv_subject subject = dv_trial_subject(t, m, result);
  return measure(result->values, t->study->experiment, &subject, error);
}

dvbf_status dv_trial_run(dv_trial *t, dv_study *s, dv_work *w, dvbf_error *error) {
  size_t index = s->outcome[0].count;
  dvbf_status status = prepare(t, w, error);
  for (size_t m = 0; !status && !w->stopped && m < s->n_models; m++) {
    dv_result *result = &s->outcome[m].results[index];
    result->seed = t->seed;
    status = train(t, m, result, w, error);
    if (!status && !w->stopped) dv_trial_report(w, t, DVBF_EVALUATING, m);
    if (!status && !w->stopped) status = evaluate(t, m, result, error);
  }
  for (size_t m = 0; m < s->n_models; m++)
    if (status || w->stopped)
      dv_result_clear(&s->outcome[m].results[index]);
    else
      s->outcome[m].count++;
  return status;
}
