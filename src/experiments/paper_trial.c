/* One seed of one of the paper's experiments (dv_trial_run): simulate, train, evaluate and measure.
 * Measurements beyond an evaluation are regression away from bounces, regression by a network, walks of a
 * pendulum to rest, whole balls, and positions of objects in predictions. */
#include "base/error.h"
#include "base/memory.h"
#include "experiments/paper.h"
#include "experiments/system.h"
#include "math/portable.h"
#include "model/train_settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONG_STEPS = 45, TRIAL_PARTICLES = 64, REST = 10 };
enum { LONG_SEED = 1000000, WALK_SEED = 2000000 }; /* added to the seed: that of no training set */

void dv_result_clear(dv_result *r) {
  dvbf_evaluation_free(r->test);
  dvbf_evaluation_free(r->far);
  json_decref(r->test_json);
  json_decref(r->far_json);
  *r = (dv_result){0};
}

void dv_trial_clear(dv_trial *t) {
  for (int m = 0; m < DV_MODELS; m++) dvbf_model_free(t->model[m]);
  dvbf_data_free(t->long_data);
  dvbf_data_free(t->data);
  dvbf_settings_free(t->system);
  dvbf_settings_free(t->evaluation);
}

void dv_trial_folder(dv_path out, const dv_work *w, const dv_study *s, uint64_t seed) {
  char name[64];
  snprintf(name, sizeof name, "seed-%llu", (unsigned long long)seed);
  if (w->options.seeds > 1)
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
  if (w->options.stage && !w->options.stage(&stage, w->options.user_data)) w->out->stopped = true;
}

/* ---- Walks ---- */

dvbf_status dv_walks_take(dv_walks *out, const dv_trial *t, size_t m, dvbf_error *error) {
  dvbf_data *data = NULL;
  dv_path_options options = {.seed = t->seed, .threads = dvbf_settings_threads(t->evaluation)};
  dv_pendulum_settings *p = dv_settings_edit(t->system);
  *out = (dv_walks){0};
  p->seed = (int64_t)(t->seed + WALK_SEED);
  p->steps = 100;
  p->test = 20;
  p->torque = 0;
  dvbf_status status = dvbf_simulate(&data, t->system, error);
  if (!status) status = dv_paths_of(&out->filtering, t->model[m], &data->test, &options, error);
  options.observe = t->results[m].far->observed;
  if (!status) status = dv_paths_of(&out->generative, t->model[m], &data->test, &options, error);
  dvbf_data_free(data);
  return status;
}

void dv_walks_free(dv_walks *w) {
  dv_paths_free(w->generative);
  dv_paths_free(w->filtering);
}

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

static dvbf_status measure_walk(double *distance, const dv_trial *t, size_t m, const dv_paths *paths,
                                dvbf_error *error) {
  dv_walks walks;
  dvbf_status status = dv_walks_take(&walks, t, m, error);
  if (!status) *distance = walks_distance(&walks, paths);
  dv_walks_free(&walks);
  return status;
}

/* ---- Regression away from bounces ---- */

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
static dvbf_status regress_away(double *r2, const dv_trial *t, const dv_paths *paths, size_t column,
                                dvbf_error *error) {
  const dvbf_sequences *s = &t->data->test;
  const dv_ball_settings *ball = dv_settings_edit(t->system);
  size_t points = 0, n_z = paths->n_z;
  /* [frames][n_z] and [frames] in one block */
  float *z = dv_calloc(s->count * s->steps, (n_z + 1) * sizeof *z), *y;
  dvbf_regression regression = {0};
  if (!z) return dv_fail(error, DVBF_MEMORY, "out of memory for a regression");
  y = z + s->count * s->steps * n_z;
  for (size_t i = 0; i < s->count; i++)
    for (size_t k = 0; k < s->steps; k++) {
      if ((k && bounces(s, i, k - 1, ball->control)) || (k + 1 < s->steps && bounces(s, i, k, ball->control)))
        continue;
      memcpy(z + points * n_z, paths->z + (i * s->steps + k) * n_z, n_z * sizeof *z);
      y[points++] = s->state[(dvbf_sequence_start(s, i) + k) * s->n_s + column];
    }
  dvbf_status status = dvbf_regress(&regression, z, points, n_z, y, 1, error);
  *r2 = regression.r2;
  dv_free(z);
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
static dvbf_status measure_whole(double *share, const dvbf_data *data, const float *x, size_t balls,
                                 dvbf_error *error) {
  const dvbf_sequences *s = &data->test;
  float *scratch = dv_calloc(s->n_x, sizeof *scratch);
  double whole = 0;
  if (!scratch) return dv_fail(error, DVBF_MEMORY, "out of memory for counting balls");
  for (size_t i = 0; i < s->count; i++)
    whole += bright_regions(x + ((i + 1) * s->steps - 1) * s->n_x, data->image_height, data->image_width,
                            scratch) == balls;
  *share = whole / (double)s->count;
  dv_free(scratch);
  return DVBF_OK;
}

/* ---- Positions of objects ---- */

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

/* ---- Quantities ---- */

/* What several quantities are taken from. */
typedef struct sources {
  dv_paths *paths, *ahead; /* of the test set, and of long sequences without noise; NULL: not needed */
  dv_centres centres;
  double network[DV_MOST_TRUTHS]; /* R^2 of each state */
} sources;

static dvbf_status find_sources(sources *out, const dv_trial *t, size_t m, dvbf_error *error) {
  const dv_experiment *e = t->study->experiment;
  const dvbf_sequences *s = &t->data->test;
  bool follow = dv_measures(e, DV_OF_VALID), network = dv_measures(e, DV_OF_R2_NETWORK);
  size_t observed = t->results[m].far->observed;
  unsigned threads = dvbf_settings_threads(t->evaluation);
  dv_path_options sampled = {.seed = t->seed, .threads = threads};
  dv_path_options certain = {.observe = observed, .noise_free = true, .threads = threads};
  dvbf_status status = dv_paths_of(&out->paths, t->model[m], s, &sampled, error);
  if (!status && (follow || dv_measures(e, DV_OF_WHOLE)))
    status = dv_paths_of(&out->ahead, t->model[m], &t->long_data->test, &certain, error);
  if (!status && follow) dv_centres_measure(&out->centres, t->long_data, out->ahead->x, observed);
  if (!status && network)
    status = dv_network_regress(out->network, out->paths->z, s->count * s->steps, out->paths->n_z, s->state,
                                s->n_s, error);
  return status;
}

static dvbf_regression regression_of(const dvbf_evaluation *e, const char *state) {
  for (size_t i = 0; i < e->n_regressions; i++)
    if (!strcmp(e->regressions[i].name, state)) return e->regressions[i];
  return (dvbf_regression){.r2 = NAN, .log_likelihood = NAN};
}

static size_t column_of(const dvbf_data *data, const char *state) {
  size_t i = 0;
  while (i + 1 < data->test.n_s && strcmp(data->state_names[i], state) != 0) i++;
  return i;
}

/* Mean over frames first to last, which are counted from 1. */
static double error_of(const dv_result *r, size_t first, size_t last) {
  const dvbf_evaluation *e = last <= r->test->observed + r->test->horizon ? r->test : r->far;
  double sum = 0;
  if (last > e->observed + e->horizon || first <= e->observed) return NAN;
  for (size_t frame = first; frame <= last; frame++) sum += e->mse_mean_path[frame - e->observed - 1];
  return sum / (double)(last - first + 1) / e->pixel_variance;
}

static double steps_ahead(const dvbf_evaluation *e) {
  size_t steps = 0;
  while (steps < e->horizon && e->mse_mean_path[steps] < e->pixel_variance) steps++;
  return (double)steps;
}

static dvbf_status measure_one(double *out, const dv_quantity *q, const dv_trial *t, size_t m,
                               const sources *from, dvbf_error *error) {
  const dv_result *r = &t->results[m];
  const dvbf_data *far = t->long_data;
  switch (q->kind) {
  case DV_OF_LIKELIHOOD: *out = regression_of(r->test, q->state).log_likelihood; break;
  case DV_OF_R2: *out = regression_of(r->test, q->state).r2; break;
  case DV_OF_R2_AWAY: return regress_away(out, t, from->paths, column_of(t->data, q->state), error);
  case DV_OF_BOUND: *out = r->test->elbo; break;
  case DV_OF_RECONSTRUCTION: *out = r->test->reconstruction; break;
  case DV_OF_KL: *out = r->test->kl_w + r->test->kl_v; break;
  case DV_OF_ERROR: *out = error_of(r, q->first, q->last); break;
  case DV_OF_STEPS_AHEAD: *out = steps_ahead(r->far); break;
  case DV_OF_WHOLE: return measure_whole(out, far, from->ahead->x, q->first, error);
  case DV_OF_WHOLE_TRUTH: return measure_whole(out, far, far->test.x, q->first, error);
  case DV_OF_WALK: return measure_walk(out, t, m, from->paths, error);
  case DV_OF_R2_NETWORK: *out = from->network[column_of(t->data, q->state)]; break;
  case DV_OF_PARTICLES: *out = fmax(r->test->importance_bound, r->test->particle_bound); break;
  case DV_OF_VALID: *out = from->centres.valid; break;
  case DV_OF_CLOSE: *out = from->centres.close; break;
  case DV_OF_DISTANCE: *out = from->centres.near; break;
  case DV_OF_DISTANCE_FAR: *out = from->centres.far; break;
  case DV_OF_SECONDS: *out = r->seconds; break;
  case DV_OF_STARTS: *out = r->starts; break;
  }
  return DVBF_OK;
}

static dvbf_status measure(const dv_trial *t, size_t m, dvbf_error *error) {
  const dv_quantities *const *table = t->study->experiment->table;
  sources from = {0};
  dvbf_status status = find_sources(&from, t, m, error);
  for (size_t k = 0; table[k]; k++)
    for (size_t c = 0; !status && table[k]->quantity[c].heading; c++)
      status = measure_one(&t->results[m].values[k][c], &table[k]->quantity[c], t, m, &from, error);
  dv_paths_free(from.paths);
  dv_paths_free(from.ahead);
  return status;
}

/* ---- Steps of a trial ---- */

/* Simulates with the system's settings as they are now, and keeps the data in a file. */
static dvbf_status keep_simulation(dvbf_data **out, const dv_trial *t, const char *name, dvbf_error *error) {
  dv_path path;
  dv_join(path, t->folder, name);
  dvbf_status status = dvbf_simulate(out, t->system, error);
  return status ? status : dvbf_data_write(*out, path, error);
}

static dvbf_status prepare_trial(dv_trial *t, dv_work *w, dvbf_error *error) {
  const dv_study *s = t->study;
  dv_trial_folder(t->folder, w, s, t->seed);
  dv_trial_report(w, t, DVBF_SIMULATING, DV_MODELS);
  dvbf_status status = dvbf_folder_make(t->folder, error);
  if (!status) status = dvbf_settings_new(&t->system, s->experiment->system, error);
  if (!status) status = dvbf_settings_preset(t->system, s->model[0].preset, error);
  if (status) return status;
  dv_system_data *d = dv_settings_edit(t->system);
  d->seed = (int64_t)t->seed;
  status = keep_simulation(&t->data, t, "data.h5", error);
  d->seed = (int64_t)(t->seed + LONG_SEED);
  d->steps = LONG_STEPS;
  d->train = d->valid = 1;
  if (!status) status = keep_simulation(&t->long_data, t, "long.h5", error);
  if (!status) status = dvbf_settings_new(&t->evaluation, "evaluate", error);
  if (status) return status;
  dv_evaluate_settings *e = dv_settings_edit(t->evaluation);
  e->verdict = false;
  e->seed = (int64_t)t->seed;
  e->threads = dvbf_settings_threads(s->model[0].settings);
  return DVBF_OK;
}

typedef struct watch {
  dv_work *work;
  dv_result *result;
} watch;

static bool on_progress(const dvbf_progress *p, void *user_data) {
  watch *own = user_data;
  const dvbf_reproduce_options *o = &own->work->options;
  own->result->seconds = p->seconds;
  own->result->starts = p->begun;
  if (o->progress && !o->progress(p, o->user_data)) own->work->out->stopped = true;
  return !own->work->out->stopped;
}

static dvbf_status train_contender(dv_trial *t, size_t m, dv_work *w, dvbf_error *error) {
  dv_path run;
  dvbf_settings *settings = NULL;
  watch own = {.work = w, .result = &t->results[m]};
  dvbf_train_options options = {
      .progress = on_progress, .user_data = &own, .folder = run, .force = w->options.force};
  dv_trial_run_folder(run, t, m);
  dv_trial_report(w, t, DVBF_TRAINING, m);
  dvbf_status status = dvbf_settings_copy(&settings, t->study->model[m].settings, error);
  if (!status) ((dv_train_settings *)dv_settings_edit(settings))->seed = (int64_t)t->seed;
  if (!status && !w->out->stopped) status = dvbf_train(&t->model[m], settings, t->data, &options, error);
  dvbf_settings_free(settings);
  if (!status && t->model[m]) dv_trial_report(w, t, DVBF_TRAINED, m);
  return status;
}

static dvbf_status evaluate_one(dvbf_evaluation **out, json_t **json, const dv_trial *t, size_t m,
                                const dvbf_data *data, dvbf_error *error) {
  double began = dv_seconds_now();
  dvbf_status status = dvbf_evaluate(out, t->model[m], data, &data->test, t->evaluation, error);
  if (status) return status;
  *json =
      dv_json_evaluation(*out, t->model[m], dv_seconds_now() - began, dvbf_settings_threads(t->evaluation));
  return *json ? DVBF_OK : dv_fail(error, DVBF_MEMORY, "out of memory while writing the results");
}

static dvbf_status evaluate_contender(dv_trial *t, size_t m, dvbf_error *error) {
  dv_result *r = &t->results[m];
  dv_evaluate_settings *e = dv_settings_edit(t->evaluation);
  bool weigh = dv_measures(t->study->experiment, DV_OF_PARTICLES);
  e->particles = weigh && !dv_study_contender(t->study, m)->no_particles ? TRIAL_PARTICLES : 0;
  dvbf_status status = evaluate_one(&r->test, &r->test_json, t, m, t->data, error);
  e->particles = 0;
  if (!status) status = evaluate_one(&r->far, &r->far_json, t, m, t->long_data, error);
  return status ? status : measure(t, m, error);
}

dvbf_status dv_trial_run(dv_trial *t, dv_work *w, dvbf_error *error) {
  dv_study *s = t->study;
  t->results = dv_study_result(s, s->count, 0);
  dvbf_status status = prepare_trial(t, w, error);
  for (size_t m = 0; !status && !w->out->stopped && m < s->n_models; m++) {
    t->results[m].seed = t->seed;
    status = train_contender(t, m, w, error);
    if (!status && !w->out->stopped) dv_trial_report(w, t, DVBF_EVALUATING, m);
    if (!status && !w->out->stopped) status = evaluate_contender(t, m, error);
  }
  if (!status && !w->out->stopped)
    s->count++;
  else
    for (size_t m = 0; m < s->n_models; m++) dv_result_clear(&t->results[m]);
  return status;
}
