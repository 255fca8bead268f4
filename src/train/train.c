/* The training loop: starts, validation, the best model, the way back from divergence, and checkpoints. All
 * that the loop depends on stands in a dv_training, so that a run that goes on from its checkpoint is the run
 * that was never interrupted. */
#include "train/train.h"
#include "base/locale.h"
#include "base/memory.h"
#include "base/status.h"
#include "model/density.h"
#include "train/checkpoint.h"
#include "train/fitted.h"
#include "train/folder.h"
#include "train/projection.h"
#include "train/range.h"
#include "train/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct trainer {
  const dv_train_settings *s;
  const dvbf_train_options *options;
  const dvbf_data *data;       /* those of the user, or their components */
  dvbf_sequences train, valid; /* windows onto them */
  dvbf_model *model;           /* in training */
  dv_projection projection;    /* where the model is one of components */
  dv_pool *pool;
  dv_updater *updater;
  dv_validator validator;
  dv_range range; /* of the state in the training data */
  dv_training at;
  dvbf_progress report;
  double began, told, kept; /* seconds on the clock: beginning, last report, last checkpoint */
  dv_folder folder;         /* where options->folder is not NULL */
  uint64_t fingerprint;     /* of the data */
  bool unsaved;             /* the best model is not in its file yet */
  uint64_t pause;           /* update to end at; 0: none */
  bool stopped;
  dvbf_error *error;
} trainer;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t updates_of(const trainer *t) {
  return t->at.phase == DV_FINISHED ? (uint64_t)t->s->updates : dv_updater_updates(t->updater);
}

/* ---- Telling ---- */

static void fill_report(trainer *t) {
  dvbf_progress *r = &t->report;
  r->update = updates_of(t);
  r->updates = (uint64_t)t->s->updates;
  r->start = (unsigned)t->at.start + 1;
  r->starts = (unsigned)t->s->starts;
  r->begun = (unsigned)t->at.begun;
  r->seconds = now() - t->began;
  double done = (double)r->update, spent = r->seconds - t->at.start_seconds;
  r->seconds_left = done > 0 ? spent / done * ((double)r->updates - done) : 0;
  r->bound = t->at.bound;
  r->valid_bound = t->at.scores.bound;
  r->valid_reconstruction = t->at.scores.reconstruction;
  r->valid_kl_w = t->at.scores.kl_w;
  r->valid_kl_v = t->at.scores.kl_v;
  r->valid_prediction = t->at.scores.prediction;
}

static void tell(trainer *t, const char *event) {
  const dvbf_train_options *o = t->options;
  fill_report(t);
  t->report.event = event;
  t->told = now();
  if (o->progress && !o->progress(&t->report, o->user_data)) t->stopped = true;
  t->report.event = NULL;
  t->report.validated = false;
}

/* ---- Checkpoints ---- */

/* The floor of sigma that training has reached. */
static double floor_reached(const trainer *t) {
  uint64_t update = updates_of(t);
  dv_conditions then = dv_schedule_at(t->s, update ? update - 1 : 0, 0);
  return dv_conditions_get(&then, DVBF_LOG_SIGMA_FLOOR);
}

/* What the model tells besides its parameters: of the best or, where there is none yet, of what there is. */
static void describe_model(const trainer *t, dvbf_model *m) {
  bool best = t->at.best_update;
  m->updates = best ? t->at.best_update : updates_of(t);
  if (m->updates) m->log_sigma_floor = best ? t->at.best_floor : floor_reached(t);
}

static dvbf_status save_model(trainer *t) {
  dvbf_real *values = t->model->parameters.values;
  if (t->at.best_update) t->model->parameters.values = t->at.best;
  dvbf_model *m = dv_projection_fold(&t->projection, t->model);
  describe_model(t, m);
  dvbf_status status = dvbf_model_save(m, t->folder.model, t->error);
  t->model->parameters.values = values;
  if (!status) t->unsaved = false;
  return status;
}

/* Model, metrics, checkpoint: whenever the process ends between two of them, the checkpoint finds the others
 * as new as itself or newer. */
static dvbf_status keep(trainer *t) {
  t->kept = now();
  if (!t->options->folder) return DVBF_OK;
  bool last = t->stopped || t->at.phase == DV_FINISHED; /* even a model that was never validated */
  bool worth = t->at.best_update ? t->unsaved : last;
  dvbf_status status = worth ? save_model(t) : DVBF_OK;
  if (!status) status = dv_folder_sync(&t->folder, t->error);
  dv_updater_save(t->updater, t->at.now);
  t->at.seconds = now() - t->began;
  if (status || !dv_training_sound(&t->at, t->model)) return status;
  return dv_checkpoint_write(&t->at, t->model, t->fingerprint, t->folder.checkpoint, t->error);
}

/* ---- Validation and the best model ---- */

/* Higher is better. Without anything to predict only the bound can tell. */
static double score(const trainer *t) {
  bool predicts = t->s->keep_by == DV_KEEP_PREDICTION && isfinite(t->at.scores.prediction);
  return predicts ? -t->at.scores.prediction : t->at.scores.bound;
}

static void keep_if_best(trainer *t, double floor) {
  if (t->at.best_update && score(t) <= t->at.best_score) return;
  t->at.best_score = score(t);
  t->at.best_floor = floor;
  t->at.best_update = dv_updater_updates(t->updater);
  memcpy(t->at.best, t->model->parameters.values, t->model->parameters.size * sizeof *t->at.best);
  t->unsaved = true;
}

/* *finite tells whether the scores are; if not, nothing is changed. */
static dvbf_status validate(trainer *t, bool *finite) {
  uint64_t last = dv_updater_updates(t->updater) - 1;
  dv_conditions conditions = dv_schedule_at(t->s, last, 0);
  double floor = dv_conditions_get(&conditions, DVBF_LOG_SIGMA_FLOOR);
  dv_scores scores;
  dvbf_status status = dv_range_measure(&t->range, t->model, t->error);
  if (!status) status = dv_validator_run(&scores, &t->validator, floor, t->error);
  if (status) return status;
  *finite = isfinite(scores.bound);
  if (!*finite) return DVBF_OK;
  t->at.scores = scores;
  t->at.validations++;
  keep_if_best(t, floor);
  dv_range_widen(t->model);
  dv_updater_save(t->updater, t->at.good);
  t->report.validated = true;
  t->report.learning_rate = dv_updater_rate(t->updater, last);
  t->report.temperature = dv_conditions_get(&conditions, DVBF_TEMPERATURE);
  t->report.sigma_floor = exp(floor);
  fill_report(t);
  status = t->options->folder ? dv_folder_add(&t->folder, &t->report, t->error) : DVBF_OK;
  tell(t, NULL);
  return status;
}

/* Goes back to the last good state; the k-th time with 1/2^k of the rate. */
static dvbf_status recover(trainer *t) {
  char event[160];
  unsigned long long bad = dv_updater_updates(t->updater);
  if (!t->at.retries_left)
    return dv_fail(
        t->error, DVBF_NUMERIC,
        "training diverged at update %llu and again after %lld retries with smaller steps; try a smaller "
        "learning-rate or clip-norm = 1",
        bad, (long long)t->s->retries);
  t->at.retries_left--;
  double factor = pow(0.5, (double)t->s->retries - (double)t->at.retries_left);
  dv_updater_restore(t->updater, t->at.good);
  dv_updater_slow_down(t->updater, factor);
  dv_print(event, sizeof event,
           "update %llu was not finite: back to update %llu with %g of the learning rate", bad,
           (unsigned long long)dv_updater_updates(t->updater), factor);
  tell(t, event);
  return DVBF_OK;
}

/* Some updates, and the validation that is due after them. */
static dvbf_status run_chunk(trainer *t, uint64_t until, bool *validated) {
  uint64_t at = dv_updater_updates(t->updater), every = (uint64_t)t->s->validate_every;
  uint64_t next = at / every * every + every, chunk = (next < until ? next : until) - at;
  if (chunk > 10) chunk = 10; /* so that an interrupt is heard soon */
  bool finite = dv_updater_run(t->updater, chunk) == chunk;
  dvbf_status status = dv_sequences_intact(&t->train, t->error);
  if (status) return status;
  t->at.bound = dv_updater_bound(t->updater) + dv_model_log_jacobian(t->model) +
                dv_projection_log_jacobian(&t->projection);
  uint64_t update = at + chunk;
  *validated = finite && (update % every == 0 || update == until);
  if (*validated) status = validate(t, &finite);
  return status || finite ? status : recover(t);
}

/* Runs until `until`, where it validates. The caller makes the checkpoint there. */
static dvbf_status run_until(trainer *t, uint64_t until) {
  dvbf_status status = DVBF_OK;
  while (!status && !t->stopped && dv_updater_updates(t->updater) < until) {
    bool due = false;
    status = run_chunk(t, until, &due);
    due = due || now() - t->kept >= t->s->checkpoint_every;
    if (!status && due && !t->stopped && dv_updater_updates(t->updater) < until) status = keep(t);
    if (!status && now() - t->told > 0.2) tell(t, NULL);
  }
  return status;
}

/* ---- Starts ---- */

/* The update at which starts are judged; 0: they are not. */
static uint64_t judgement(const trainer *t) {
  bool judging = t->s->starts > 1 && t->validator.predict.workers;
  return judging ? (uint64_t)(t->s->restart_at * (double)t->s->updates) : 0;
}

/* A model like that in training, with first values of that seed. */
static dvbf_status fresh_model(const trainer *t, dvbf_model **out, uint64_t seed) {
  if (t->projection.whole) return dv_projection_model(out, &t->projection, t->train.steps, seed, t->error);
  dv_own own = dv_model_own(t->model);
  return dv_model_new(out, t->model->settings_object, &own, &t->train, seed, t->error);
}

/* Fresh first values in place: a new model of the same shapes is made and its values are taken. */
static dvbf_status begin_start(trainer *t, unsigned k) {
  uint64_t seed = dv_seed_of_start(t->s, k);
  if (k > 0) {
    dvbf_model *fresh = NULL;
    dvbf_status status = fresh_model(t, &fresh, seed);
    if (status) return status;
    memcpy(t->model->parameters.values, fresh->parameters.values,
           fresh->parameters.size * sizeof *fresh->parameters.values);
    dvbf_model_free(fresh);
  }
  dv_updater_reset(t->updater, seed);
  dv_updater_save(t->updater, t->at.good);
  t->at.best_update = 0;
  t->at.retries_left = (uint64_t)t->s->retries;
  t->at.start_seconds = now() - t->began;
  t->at.start = k;
  t->at.begun = k + 1;
  t->at.phase = judgement(t) ? DV_JUDGING : DV_TRAINING;
  return DVBF_OK;
}

/* Keeps this start if it predicts better than those before. */
static void compare_start(trainer *t) {
  double p = t->at.scores.prediction;
  if (t->at.start > 0 && p >= t->at.judged_prediction) return;
  dv_updater_save(t->updater, t->at.judged);
  t->at.judged_prediction = p;
  t->at.judged_start = t->at.start;
  t->at.judged_retries = t->at.retries_left;
}

/* Goes on with the best of the starts, from its judgement. */
static void take_judged(trainer *t) {
  dv_updater_restore(t->updater, t->at.judged);
  dv_updater_save(t->updater, t->at.good);
  t->at.best_update = 0;
  t->at.start = t->at.judged_start;
  t->at.retries_left = t->at.judged_retries;
  t->at.phase = DV_TRAINING;
  tell(t, "no start predicts well: going on with the best of them; more starts or updates may help");
}

/* A start is good when it predicts: in the bad optimum, w encodes every frame and the transition knows
 * nothing. */
static dvbf_status judge(trainer *t) {
  char event[160];
  double p = t->at.scores.prediction;
  compare_start(t);
  if (!(p > t->s->restart_above)) {
    t->at.phase = DV_TRAINING;
    return DVBF_OK;
  }
  if (t->at.begun == (uint64_t)t->s->starts) {
    take_judged(t);
    return DVBF_OK;
  }
  dv_print(event, sizeof event,
           "start %u predicts badly (error %.2f of the variance of x, restart-above = %g): starting anew",
           (unsigned)t->at.begun, p, t->s->restart_above);
  tell(t, event);
  return begin_start(t, (unsigned)t->at.begun);
}

/* From wherever the state is to the end, or to a stop. */
static dvbf_status run(trainer *t) {
  dvbf_status status = DVBF_OK;
  while (!status && !t->stopped && t->at.phase != DV_FINISHED) {
    bool judging = t->at.phase == DV_JUDGING;
    uint64_t until = judging ? judgement(t) : (uint64_t)t->s->updates;
    bool pausing = t->pause && t->pause < until;
    status = run_until(t, pausing ? t->pause : until);
    bool arrived = !status && dv_updater_updates(t->updater) >= (pausing ? t->pause : until);
    if (arrived && pausing)
      t->stopped = true;
    else if (arrived && judging)
      status = judge(t);
    else if (arrived)
      t->at.phase = DV_FINISHED;
    if (!status) status = keep(t);
  }
  return status;
}

/* ---- All of it ---- */

/* Validation looks further than training, at this many windows in a row: long predictions tell more. */
enum { VALID_WINDOWS = 4 };

/* What training and validation see of the data. */
static dvbf_status cut(trainer *t, const dv_train_settings *s, const dvbf_data *data, dvbf_error *error) {
  const dvbf_sequences *valid = data->valid.count ? &data->valid : &data->train;
  size_t window = s->window ? (size_t)s->window : SIZE_MAX / 8, stride = (size_t)s->stride;
  if (s->window == 1) return dv_fail(error, DVBF_ARGUMENT, "window = 1: must be 0 or at least 2 steps");
  if (!stride) stride = window < 4 ? 1 : window / 4;
  dvbf_status status = dv_windows_cut(&t->train, &data->train, window, stride, error);
  return status ? status
                : dv_windows_cut(&t->valid, valid, VALID_WINDOWS * window, VALID_WINDOWS * window, error);
}

/* Puts components in the place of x, and a model of them in the place of the model. */
static dvbf_status project(trainer *t, const dv_train_settings *s, const dvbf_data *data, dvbf_error *error) {
  dvbf_status status = dv_projection_init(&t->projection, t->model, data, error);
  t->model = NULL;
  if (status) return status;
  dv_windows_free(&t->train);
  dv_windows_free(&t->valid);
  t->data = &t->projection.data;
  status = cut(t, s, t->data, error);
  return status ? status : fresh_model(t, &t->model, (uint64_t)s->seed);
}

static void tell_projection(trainer *t) {
  const dv_components *c = &t->projection.components;
  char event[160];
  dv_print(event, sizeof event,
           "training on %d components of the %d dimensions of x, which leave out about %.1g of its variance",
           c->count, c->n_x, fmax(1e-7, c->left_out / t->projection.whole->x_spread));
  tell(t, event);
}

static dvbf_status prepare(trainer *t) {
  dvbf_status status = dv_pool_new(&t->pool, (unsigned)t->s->threads, t->error);
  if (!status) status = dv_updater_new(&t->updater, t->model, t->pool, &t->train, t->error);
  if (!status)
    status = dv_validator_init(&t->validator, t->model, t->pool, &t->valid,
                               dv_projection_log_jacobian(&t->projection), t->error);
  if (!status)
    status = dv_range_init(&t->range, t->model, t->pool, &t->data->train, t->train.steps, t->error);
  if (status) return status;
  return dv_training_init(&t->at, t->model->parameters.size, dv_updater_snapshot_size(t->updater), t->error);
}

/* Takes the state of the checkpoint. */
static dvbf_status go_on(trainer *t) {
  char event[160];
  dvbf_status status = dv_checkpoint_read(&t->at, t->model, t->fingerprint, t->folder.checkpoint, t->error);
  if (status) return status;
  t->began = now() - t->at.seconds;
  t->unsaved = !dv_exists(t->folder.model);
  if (t->at.phase == DV_FINISHED) {
    tell(t, "this run is finished: nothing is left to do");
    return t->unsaved ? save_model(t) : DVBF_OK;
  }
  dv_updater_restore(t->updater, t->at.now);
  status = dv_folder_go_on(&t->folder, t->at.validations, t->error);
  if (status) return status;
  dv_print(event, sizeof event, "going on from update %llu of start %u", (unsigned long long)updates_of(t),
           (unsigned)t->at.start + 1);
  tell(t, event);
  return DVBF_OK;
}

/* Begins, or goes on where that is asked for and possible. */
static dvbf_status begin(trainer *t, const dvbf_settings *settings) {
  const dvbf_train_options *o = t->options;
  t->kept = now();
  if (!o->folder) return begin_start(t, 0);
  dvbf_status status = dv_data_fingerprint(&t->fingerprint, t->data, t->error);
  if (!status && o->resume && dv_exists(t->folder.checkpoint)) return go_on(t);
  if (!status) status = dv_folder_begin(&t->folder, settings, t->error);
  if (!status) status = begin_start(t, 0);
  if (!status && o->resume) tell(t, "there is no checkpoint to go on from: beginning at the first update");
  return status;
}

/* Leaves the best model, or what there is when training was stopped before there was one. */
static dvbf_model *finish(trainer *t) {
  dv_parameters *p = &t->model->parameters;
  if (t->at.best_update) memcpy(p->values, t->at.best, p->size * sizeof *t->at.best);
  dvbf_model *m = dv_projection_fold(&t->projection, t->model);
  describe_model(t, m);
  *(m == t->model ? &t->model : &t->projection.whole) = NULL; /* the caller owns it now */
  m->seconds = now() - t->began;
  return m;
}

static void clear(trainer *t) {
  if (t->pool) dv_validator_clear(&t->validator);
  if (t->pool) dv_range_clear(&t->range);
  dv_updater_free(t->updater);
  dv_pool_free(t->pool);
  dv_training_clear(&t->at);
  dv_windows_free(&t->train);
  dv_windows_free(&t->valid);
  dv_projection_clear(&t->projection);
  dvbf_model_free(t->model);
  if (t->options->folder) dv_folder_close(&t->folder);
}

dvbf_status dv_train(dvbf_model **out, const dv_own *own, const dvbf_settings *settings,
                     const dvbf_data *data, const dvbf_train_options *options, uint64_t pause,
                     dvbf_error *error) {
  static const dvbf_train_options none;
  trainer t = {
      .options = options ? options : &none, .data = data, .began = now(), .pause = pause, .error = error};
  t.folder.lock = -1;
  if (!dv_settings_train(settings, error)) return DVBF_ARGUMENT;
  dvbf_status status = dv_data_validate(data, "data", error);
  if (status) return status;
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  dv_fit_fn *fit = dv_fit_of(own && own->type ? own->type : dv_model_class_of(s));
  if (fit) return dv_train_fitted(out, fit, settings, data, t.options, error);
  status = cut(&t, s, data, error);
  if (!status) status = dv_model_new(&t.model, settings, own, &t.train, (uint64_t)s->seed, error);
  if (!status) status = dv_density_check(t.model, &data->train, error);
  if (!status && data->valid.count) status = dv_density_check(t.model, &data->valid, error);
  if (!status) {
    /* Overlapping windows show nothing new: N counts sequences of that length. */
    t.model->sequences = fmax(1, (double)dv_sequences_frames(&data->train) /
                                     (double)dv_sequences_frames(&t.train) * (double)t.train.count);
    if (t.options->folder) status = dv_folder_open(&t.folder, t.options, settings, error);
  }
  if (!status && s->projection > 0) status = project(&t, s, data, error);
  if (!status) t.s = t.model->settings;
  if (!status) status = prepare(&t);
  if (!status) status = begin(&t, settings);
  if (!status && t.projection.whole) tell_projection(&t);
  if (!status) status = run(&t);
  if (!status) *out = finish(&t);
  clear(&t);
  return status;
}
