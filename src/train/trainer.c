/* The training loop (dv_train): checks, starts, validation, the best model, recovery from divergence, the
 * last phase that trains the filter alone, and checkpoints. All that the loop depends on is in a dv_training,
 * and updates run in chunks whose bounds depend on the update alone, so a resumed run ends like an
 * uninterrupted one. Files are written in the order model, metrics, checkpoint: whatever ends the process,
 * the others are as new as the checkpoint or newer. */
#include "train/trainer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "math/portable.h"
#include "model/batches.h"
#include "model/density.h"
#include "train/pca_training.h"
#include "train/run_folder.h"
#include "train/start.h"
#include "train/updater.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RESTART_AT 0.25     /* share of the updates after which a start is judged */
#define COARSE_DIRECTIONS 5 /* that images are blurred to */

typedef struct trainer {
  const dv_train_settings *s; /* of the model */
  dvbf_settings *base; /* those that the run began with: after divergence the model departs from them */
  const dvbf_train_options *options;
  const dvbf_data *data;       /* those of the user, or their components */
  dv_measured measured;        /* of what trains, before windows are cut and components found */
  dvbf_sequences train, valid; /* windows onto them */
  dvbf_model *model;           /* in training */
  dv_projection projection;    /* where the model is one of components */
  dv_coarse coarse;            /* where it sees them blurred at first */
  dv_image_moments places;     /* where a model of places comes first */
  dv_part alone;               /* what is trained alone at first, as the rest is known */
  dv_ranks *team;              /* NULL: one rank alone */
  bool first;                  /* of the ranks: it alone writes */
  dv_threads *pool;
  dv_updater *updater;
  dv_validator validator;
  dv_range range; /* of the state in the training data */
  dv_part part;   /* what the last phase trains */
  dv_training at;
  dvbf_progress report;
  double began, told, kept; /* seconds on the clock: beginning, last report, last checkpoint */
  dv_run_folder folder;     /* where options->folder is not NULL */
  uint64_t fingerprint;     /* of the data */
  bool unsaved;             /* the best model is not in its file yet */
  uint64_t pause;           /* update to end at; 0: none */
  const volatile int *interrupt;
  bool asked;   /* to stop, by the user of this rank */
  bool stopped; /* all ranks have heard of it */
  dvbf_error *error;
} trainer;

static uint64_t updates_of(const trainer *t) {
  return t->at.phase == DV_FINISHED ? dv_all_updates(t->s) : dv_updater_updates(t->updater);
}

/* In the last phase, which leaves the dynamics as they are. */
static bool filtering(const trainer *t) {
  return t->at.phase == DV_GAIN || t->at.phase == DV_SPREAD;
}

/* ---- Reporting ---- */

static void fill_report(trainer *t) {
  dvbf_progress *r = &t->report;
  r->update = updates_of(t);
  r->updates = dv_all_updates(t->s);
  r->phase = filtering(t) ? 2 : 1;
  r->start = (unsigned)t->at.start + 1;
  r->starts = (unsigned)t->s->starts;
  r->begun = (unsigned)t->at.begun;
  r->seconds = dv_clock() - t->began;
  double done = (double)r->update, spent = r->seconds - t->at.start_seconds;
  r->seconds_left = done > 0 ? spent / done * ((double)r->updates - done) : 0;
  r->bound = t->at.bound;
  r->valid_bound = t->at.scores.bound;
  r->valid_reconstruction = t->at.scores.reconstruction;
  r->valid_kl_w = t->at.scores.kl_w;
  r->valid_kl_v = t->at.scores.kl_v;
  r->valid_prediction = t->at.scores.prediction;
  r->valid_one_step = t->at.scores.one_step;
}

static void inform(trainer *t, const char *event) {
  const dvbf_train_options *o = t->options;
  fill_report(t);
  t->report.event = event;
  t->told = dv_clock();
  if (o->progress && !o->progress(&t->report, o->user_data)) t->asked = true;
  if (dv_interrupted(t->interrupt)) t->asked = true;
  t->report.event = NULL;
  t->report.validated = false;
}

/* The same with a text that is printed. */
__attribute__((format(printf, 2, 3))) static void announce(trainer *t, const char *format, ...) {
  char event[400];
  va_list values;
  va_start(values, format);
  {
    DV_PLAIN_NUMBERS; /* but not in the user's function */
    vsnprintf(event, sizeof event, format, values);
  }
  va_end(values);
  inform(t, event);
}

/* Agrees on what depends on clocks and users: whether any rank was asked to stop, and whether a checkpoint is
 * due. Returns the latter. */
static bool agree(trainer *t, bool due) {
  enum { STOP = 2, DUE = 1 };
  int all = dvbf_ranks_largest(t->team, t->asked ? STOP : due && t->first ? DUE : 0);
  t->stopped = t->stopped || all == STOP;
  return all == DUE;
}

/* ---- Checkpoints ---- */

static double floor_reached(const trainer *t) {
  uint64_t update = updates_of(t);
  dv_conditions then = dv_schedule_at(t->s, update ? update - 1 : 0, 0);
  return dv_conditions_get(&then, DVBF_LOG_SIGMA_FLOOR);
}

/* Describes the model besides its parameters: the best one or, without one yet, the present one. */
static void describe_model(const trainer *t, dvbf_model *m) {
  bool best = t->at.best_update;
  m->updates = best ? t->at.best_update : updates_of(t);
  if (m->updates) m->log_sigma_floor = best ? t->at.best_floor : floor_reached(t);
}

/* Brings the model (the best or, without one, that of the last update) to the last level, so that it reads x
 * as it is. */
static dvbf_status sharpen(trainer *t) {
  uint64_t update = t->at.best_update ? t->at.best_update : updates_of(t);
  return update ? dv_coarse_refocus(&t->coarse, t->model, dv_coarse_level(t->s, update - 1), 0, t->error)
                : DVBF_OK;
}

static dvbf_status save_model(trainer *t) {
  dvbf_real *values = t->model->parameters.values;
  size_t size = t->model->parameters.size * sizeof *values;
  dvbf_real *copy = dv_calloc_aligned(size, 1);
  if (!copy) return dv_fail_memory(t->error, "saving a model");
  memcpy(copy, t->at.best_update ? t->at.best : values, size);
  t->model->parameters.values = copy;
  dvbf_status status = sharpen(t);
  dvbf_model *m = dv_projection_fold(&t->projection, t->model);
  describe_model(t, m);
  if (!status) status = dvbf_model_save(m, t->folder.model, t->error);
  t->model->parameters.values = values;
  dv_free(copy);
  if (!status) t->unsaved = false;
  return status;
}

/* Writes model, metrics and checkpoint, in this order. */
static dvbf_status save_training(trainer *t) {
  t->kept = dv_clock();
  if (!t->options->folder) return DVBF_OK;
  dv_updater_save(t->updater, t->at.now);
  if (!t->first) return DVBF_OK;
  bool last = t->stopped || t->at.phase == DV_FINISHED; /* even a model that was never validated */
  bool worth = t->at.best_update ? t->unsaved : last;
  dvbf_status status = dv_run_folder_ours(&t->folder, t->error);
  if (!status && worth) status = save_model(t);
  if (!status) status = dv_run_folder_sync(&t->folder, t->error);
  t->at.seconds = dv_clock() - t->began;
  if (status || !dv_training_sound(&t->at, t->model)) return status;
  return dv_checkpoint_write(&t->at, t->model, t->base, t->fingerprint, t->folder.checkpoint, t->error);
}

/* ---- Validation and the best model ---- */

/* The last phase leaves free runs unchanged: what counts is one step ahead. It has too few parameters to
 * overfit, and validation data are often short, so both count: ln p of a frame in training, and in validation
 * with the sigma that fits there. */
static double filter_score(const trainer *t) {
  double one_step = t->at.scores.one_step, valid = t->at.scores.bound;
  if (t->at.phase == DV_GAIN && one_step > 0) valid = -0.5 * t->model->n_x * dv_log(one_step);
  return t->at.bound + valid;
}

/* Higher is better. Without anything to predict only the bound counts. */
static double model_score(const trainer *t) {
  if (filtering(t)) return filter_score(t);
  bool predicts = t->s->keep_by == DV_KEEP_PREDICTION && isfinite(t->at.scores.prediction);
  return predicts ? -t->at.scores.prediction : t->at.scores.bound;
}

static void keep_if_best(trainer *t, double floor) {
  if (t->at.best_update && model_score(t) <= t->at.best_score) return;
  t->at.best_score = model_score(t);
  t->at.best_floor = floor;
  t->at.best_update = dv_updater_updates(t->updater);
  memcpy(t->at.best, t->model->parameters.values, t->model->parameters.size * sizeof *t->at.best);
  t->unsaved = true;
}

/* Squared errors of prediction, in variances of x: of a model that may become a good one, and of one whose
 * predictions explode. */
static const double NEAR = 2, FAR = 100;

/* Predictions that were near the data are now far beyond: training does better from where it was before. */
static bool exploded(const trainer *t, const dv_scores *scores) {
  bool before = t->at.best_update && t->at.scores.prediction < NEAR;
  return before && !filtering(t) && !(scores->prediction < FAR);
}

/* *finite: whether the scores are; if not, nothing is changed. The last phase must not move the range of the
 * state, on which free runs depend. */
static dvbf_status validate(trainer *t, bool *finite) {
  uint64_t last = dv_updater_updates(t->updater) - 1;
  bool frozen = filtering(t);
  dv_conditions conditions = dv_schedule_at(t->s, last, 0);
  double floor = dv_conditions_get(&conditions, DVBF_LOG_SIGMA_FLOOR);
  dv_scores scores;
  dvbf_status status = frozen ? DVBF_OK : dv_range_measure(&t->range, t->model, t->error);
  if (!status) status = dv_validator_run(&scores, &t->validator, floor, t->error);
  if (status) return status;
  *finite = isfinite(scores.bound) && !exploded(t, &scores);
  if (!*finite) return DVBF_OK;
  t->at.scores = scores;
  t->at.validations++;
  keep_if_best(t, floor);
  if (!frozen) dv_range_widen(t->model);
  dv_updater_save(t->updater, t->at.good);
  t->report.validated = true;
  t->report.learning_rate = dv_updater_rate(t->updater, last);
  t->report.temperature = dv_conditions_get(&conditions, DVBF_TEMPERATURE);
  t->report.sigma_floor = dv_exp(floor);
  fill_report(t);
  status = t->options->folder && t->first ? dv_run_folder_add(&t->folder, &t->report, t->error) : DVBF_OK;
  inform(t, NULL);
  return status;
}

static dvbf_status recover(trainer *t);

/* Updates between validations. The last phase is short, and may be best early. */
static uint64_t validations_apart(const trainer *t) {
  uint64_t every = (uint64_t)t->s->validate_every, often = (uint64_t)t->s->gain_updates / 20;
  if (!filtering(t) || every < often) return every;
  return often ? often : 1;
}

/* Scores of another kind cannot be compared with those before: the first is the best so far. */
static const double LOWEST_SCORE = -1e300;

static dvbf_status focus(trainer *t, uint64_t at) {
  unsigned level = dv_coarse_level(t->s, at);
  if (!(t->coarse.power > 0)) return DVBF_OK;
  unsigned before = at ? dv_coarse_level(t->s, at - 1) : level;
  dvbf_status status = dv_coarse_refocus(&t->coarse, t->model, before, level, t->error);
  if (before != level) dv_updater_forget(t->updater);
  if (before != level) t->at.best_score = LOWEST_SCORE;
  return status ? status : dv_coarse_set(&t->coarse, level, t->error);
}

/* At first only the emission is trained if the rest comes from moments, and only the motion if x is the
 * state. Returns how many updates that still lasts. */
static uint64_t narrow(trainer *t, uint64_t at) {
  bool state = t->s->start == DV_START_STATE;
  uint64_t end = state ? (uint64_t)t->s->updates : (uint64_t)t->s->emission_updates;
  if (filtering(t) || !t->alone.count) return 0;
  dv_updater_train_only(t->updater, at < end ? &t->alone : NULL);
  if (at == end) dv_updater_forget(t->updater);
  return at < end ? end - at : 0;
}

/* Some updates, and the validation that is due after them. */
static dvbf_status run_chunk(trainer *t, uint64_t until, bool *validated) {
  uint64_t at = dv_updater_updates(t->updater), every = validations_apart(t);
  dvbf_status status = focus(t, at);
  if (status) return status;
  uint64_t alone = narrow(t, at);
  uint64_t next = at / every * every + every, chunk = (next < until ? next : until) - at;
  if (chunk > 10) chunk = 10; /* so that an interrupt is heard soon */
  if (chunk > alone && alone) chunk = alone;
  bool finite = dv_updater_run(t->updater, chunk) == chunk;
  status = dv_sequences_intact(&t->train, t->error);
  if (status) return status;
  t->at.bound = dv_updater_bound(t->updater) + dv_model_log_jacobian(t->model) +
                dv_projection_log_jacobian(&t->projection);
  uint64_t update = at + chunk;
  *validated = finite && (update % every == 0 || update == until);
  if (*validated) status = validate(t, &finite);
  return status || finite ? status : recover(t);
}

/* Runs until `until`, where it validates, or until divergence has led to another start or phase. The caller
 * makes the checkpoint there. */
static dvbf_status run_until(trainer *t, uint64_t until) {
  dvbf_status status = DVBF_OK;
  uint64_t begun = t->at.begun, phase = t->at.phase;
  while (!status && !t->stopped && dv_updater_updates(t->updater) < until && t->at.begun == begun &&
         t->at.phase == phase) {
    bool due = false;
    status = run_chunk(t, until, &due);
    if (status) break;
    if (dv_clock() - t->told > 0.2 || dv_interrupted(t->interrupt)) inform(t, NULL);
    due = agree(t, due || dv_clock() - t->kept >= t->s->checkpoint_every);
    bool same = t->at.begun == begun && t->at.phase == phase;
    if (same && due && dv_updater_updates(t->updater) < until) status = save_training(t);
  }
  return status;
}

/* ---- Windows and tools ---- */

/* Validation uses this many windows in a row: long predictions are more informative. */
enum { VALID_WINDOWS = 4 };

/* The windows of training and validation. Recovery may have shortened those of training. */
static dvbf_status cut_windows(trainer *t) {
  const dv_train_settings *s = t->s;
  const dvbf_sequences *valid = t->data->valid.count ? &t->data->valid : &t->data->train;
  size_t window = s->window ? (size_t)s->window : SIZE_MAX / 8, stride = (size_t)s->stride;
  size_t shorter = t->at.window && t->at.window < window ? (size_t)t->at.window : window;
  if (s->window == 1) return dv_fail(t->error, DVBF_ARGUMENT, "window = 1: must be 0 or at least 2 steps");
  if (!stride || stride > shorter) stride = shorter < 4 ? 1 : shorter / 4;
  dvbf_sequences all = {0};
  dvbf_status status = dv_windows_cut(&t->train, &t->data->train, shorter, stride, t->error);
  if (!status) status = dv_windows_cut(&all, valid, VALID_WINDOWS * window, VALID_WINDOWS * window, t->error);
  if (status) return status;
  enum { VALIDATED_PART = 32 }; /* of large data so much is enough to validate by */
  status = dv_sequences_some(&t->valid, &all, VALIDATED_PART, t->error);
  dv_windows_free(&all);
  return status;
}

/* N. Overlapping windows show nothing new: it counts sequences of that length. */
static double count_sequences(const trainer *t) {
  return fmax(1, (double)dv_sequences_frames(&t->data->train) / (double)dv_sequences_frames(&t->train) *
                     (double)t->train.count);
}

static dvbf_status make_tools(trainer *t) {
  dvbf_status status = dv_updater_new(&t->updater, t->model, t->pool, &t->train, false, t->error);
  if (!status)
    status = dv_validator_init(&t->validator, t->model, t->pool, &t->valid,
                               dv_projection_log_jacobian(&t->projection), t->error);
  t->validator.one_step = t->s->gain_updates > 0;
  if (!status)
    status = dv_range_init(&t->range, t->model, t->pool, &t->data->train, t->train.steps, t->error);
  return status;
}

/* Remakes what depends on windows and settings that recovery has changed. */
static dvbf_status adapt(trainer *t) {
  dvbf_model *models[] = {t->model, t->projection.whole};
  dvbf_status status = dv_coarse_set(&t->coarse, 0, t->error); /* scores are relative to x as it is */
  dv_validator_clear(&t->validator);
  dv_range_clear(&t->range);
  dv_updater_free(t->updater);
  t->updater = NULL;
  dv_windows_free(&t->train);
  dv_windows_free(&t->valid);
  if (!status) status = cut_windows(t);
  for (int i = 0; i < 2 && models[i] && !status; i++) {
    status = dv_recovery_settings(models[i], t->base, t->at.eased, t->error);
    models[i]->sequences = count_sequences(t);
  }
  return status ? status : make_tools(t);
}

/* ---- Starts ---- */

/* The update at which starts are judged; 0: they are not. */
static uint64_t judgement(const trainer *t) {
  bool judging = t->s->starts > 1 && t->validator.predict.workers;
  return judging ? (uint64_t)(RESTART_AT * (double)t->s->updates) : 0;
}

/* Not learned if a checkpoint will replace them; with ranks all do the same. */
static dvbf_status start_from_places(const trainer *t, dvbf_model *m, uint64_t seed) {
  bool fresh = !t->at.begun, there = fresh && t->options->folder && t->options->resume && !t->team &&
                                     dv_exists(t->folder.checkpoint);
  if (there) return DVBF_OK;
  return dv_start_moments(m, &t->places, &t->data->train, seed, fresh ? t->interrupt : NULL,
                          fresh ? t->options : NULL, t->error);
}

/* First values that do not come from the seed alone. An interrupt ends this only while there is no model to
 * lose. */
static dvbf_status start_model(const trainer *t, dvbf_model *m, uint64_t seed) {
  const volatile int *interrupt = t->at.begun ? NULL : t->interrupt;
  switch (m->settings->start) {
  case DV_START_LINEAR: return dv_start_linear(m, t->data, interrupt, t->error);
  case DV_START_MOMENTS: return start_from_places(t, m, seed);
  case DV_START_STATE: return dv_start_state(m, &t->data->train, t->error);
  default: return DVBF_OK;
  }
}

/* A model like that in training, with first values of that seed. */
static dvbf_status fresh_model(const trainer *t, dvbf_model **out, uint64_t seed) {
  dvbf_model *m = NULL;
  dv_own own = dv_model_own(t->projection.whole ? t->projection.whole : t->model);
  dvbf_status status =
      t->projection.whole
          ? dv_projection_model(&m, &t->projection, t->train.steps, seed, t->error)
          : dv_model_of(&m, t->model->settings_object, &own, &t->measured, &t->train, seed, t->error);
  if (!status) status = start_model(t, m, seed);
  return dv_model_give(out, m, status);
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
  dv_updater_slow_down(t->updater, dv_recovery_rate(t->at.eased));
  dv_updater_save(t->updater, t->at.good);
  t->at.best_update = 0;
  t->at.retries_left = (uint64_t)t->s->retries;
  t->at.start_seconds = dv_clock() - t->began;
  t->at.start = k;
  t->at.begun = k + 1;
  t->at.phase = judgement(t) ? DV_JUDGING : DV_TRAINING;
  return DVBF_OK;
}

/* Keeps this start if it predicts better than those before. */
static void compare_start(trainer *t) {
  double p = t->at.scores.prediction;
  if (t->at.start > 0 && !t->at.unjudged && p >= t->at.judged_prediction) return;
  dv_updater_save(t->updater, t->at.judged);
  t->at.judged_prediction = p;
  t->at.judged_start = t->at.start;
  t->at.judged_retries = t->at.retries_left;
  t->at.judged_window = t->at.window;
  t->at.judged_eased = t->at.eased;
  t->at.unjudged = 0;
}

/* Goes on with the best of the starts, from its judgement. */
static dvbf_status take_judged(trainer *t) {
  bool same = t->at.window == t->at.judged_window && t->at.eased == t->at.judged_eased;
  t->at.window = t->at.judged_window;
  t->at.eased = t->at.judged_eased;
  dvbf_status status = same ? DVBF_OK : adapt(t);
  if (status) return status;
  dv_updater_restore(t->updater, t->at.judged);
  dv_updater_save(t->updater, t->at.good);
  t->at.best_update = 0;
  t->at.start = t->at.judged_start;
  t->at.retries_left = t->at.judged_retries;
  t->at.phase = DV_TRAINING;
  inform(t, "no start predicts well: continuing with the best of them; more starts or updates may help");
  return DVBF_OK;
}

/* ---- Divergence: smaller steps, shorter windows, then another start with other settings ---- */

static uint64_t end_of_phase(const trainer *t) {
  if (t->at.phase == DV_JUDGING) return judgement(t);
  if (t->at.phase == DV_TRAINING) return (uint64_t)t->s->updates;
  return t->at.phase == DV_GAIN ? dv_filter_gain_updates(t->s) : dv_all_updates(t->s);
}

/* Another start, with windows as long as those of the first. */
static dvbf_status start_anew(trainer *t, bool changed) {
  t->at.window = 0;
  dvbf_status status = changed ? adapt(t) : DVBF_OK;
  return status ? status : begin_start(t, (unsigned)t->at.begun);
}

/* Begins a new start with settings less likely to diverge. `why` begins the sentence. */
static dvbf_status start_tamer(trainer *t, const char *why) {
  char changes[160];
  t->at.eased++;
  dvbf_status status = start_anew(t, true);
  if (status) return status;
  dv_recovery_describe(t->model, t->base, t->at.eased, changes, sizeof changes);
  announce(t, "%s: starting again with %s", why, changes);
  return DVBF_OK;
}

static dvbf_status end_with_best(trainer *t, unsigned long long bad) {
  if (t->at.phase == DV_JUDGING) t->at.phase = DV_TRAINING;
  dv_updater_restore(t->updater, t->at.good);
  dv_updater_skip_to(t->updater, end_of_phase(t));
  announce(t, "update %llu diverged despite all retries: the best model, of update %llu, is kept", bad,
           (unsigned long long)t->at.best_update);
  return DVBF_OK;
}

/* All retries are used up. A start that came far has a model that is worth more than a new beginning. */
static dvbf_status give_up(trainer *t, unsigned long long bad) {
  char why[96];
  bool last = t->at.begun == (uint64_t)t->s->starts, best = t->at.best_update;
  bool far = filtering(t) || 2 * t->at.best_update >= (uint64_t)t->s->updates;
  if (best && far) return end_with_best(t, bad);
  if (!last) {
    if (t->at.phase == DV_JUDGING && t->at.start == 0) t->at.unjudged = 1;
    snprintf(why, sizeof why, "start %u diverged at update %llu despite all retries", (unsigned)t->at.begun,
             bad);
    return start_tamer(t, why);
  }
  if (t->at.phase == DV_JUDGING && t->at.start > 0 && !t->at.unjudged) return take_judged(t);
  if (best) return end_with_best(t, bad);
  return dv_fail(t->error, DVBF_NUMERIC,
                 "training diverged at update %llu and again after %lld retries with smaller steps and "
                 "shorter windows%s; try a smaller learning-rate or clip-norm = 1",
                 bad, (long long)t->s->retries, t->at.eased ? ", in every start" : "");
}

/* Numbers that are not finite may come from the data, which may have changed since they were checked. */
static dvbf_status blame_data(const trainer *t) {
  const dvbf_sequences *const parts[] = {&t->data->train, &t->data->valid};
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < 2 && !status; i++)
    if (parts[i]->count)
      status = dv_sequences_recheck(parts[i], "the data changed while the model was trained", t->error);
  return status;
}

/* Goes back to the last good state; the k-th time with 1/2^k of the rate, from the second time on with half
 * the window. */
static dvbf_status recover(trainer *t) {
  char windows[64] = "";
  unsigned long long bad = dv_updater_updates(t->updater);
  dvbf_status faulty = blame_data(t);
  if (faulty) return faulty;
  if (!t->at.retries_left) return give_up(t, bad);
  t->at.retries_left--;
  uint64_t used = (uint64_t)t->s->retries - t->at.retries_left;
  size_t steps = t->train.steps,
         shorter = used > 1 && !filtering(t) ? dv_recovery_window(t->model, steps) : steps;
  if (shorter < steps) {
    t->at.window = shorter;
    dvbf_status status = adapt(t);
    if (status) return status;
    snprintf(windows, sizeof windows, " and windows of %zu steps", shorter);
  }
  double factor = dv_recovery_rate(used + t->at.eased);
  dv_updater_restore(t->updater, t->at.good);
  dv_updater_slow_down(t->updater, factor);
  announce(t, "update %llu diverged: back to update %llu with %g of the learning rate%s", bad,
           (unsigned long long)dv_updater_updates(t->updater), factor, windows);
  return DVBF_OK;
}

/* A start is good if it predicts. In the bad optimum w encodes every frame and the transition is ignored, and
 * another seed may do better. If predictions explode, other settings may. */
static dvbf_status judge_start(trainer *t) {
  char why[200], error[DV_RESULT];
  double p = t->at.scores.prediction;
  compare_start(t);
  if (!(p > t->s->restart_above)) {
    t->at.phase = DV_TRAINING;
    return DVBF_OK;
  }
  if (t->at.begun == (uint64_t)t->s->starts) return take_judged(t);
  if (!(p < FAR)) {
    snprintf(why, sizeof why, "start %u explodes (error over the variance of x: %s)", (unsigned)t->at.begun,
             dv_result_text(error, "%.3g", p));
    return start_tamer(t, why);
  }
  announce(t, "start %u predicts badly (error %.2f of the variance of x, restart-above = %g): starting again",
           (unsigned)t->at.begun, p, t->s->restart_above);
  return start_anew(t, t->at.window > 0);
}

/* ---- The last phase: gain, then spread ---- */

static dvbf_status prepare_filtering(trainer *t) {
  bool gain = t->at.phase == DV_GAIN;
  dv_updater_free(t->updater);
  t->updater = NULL;
  dv_part_clear(&t->part);
  dvbf_status status = dv_filter_gain_part(&t->part, t->model, !gain, t->error);
  if (!status) status = dv_updater_new(&t->updater, t->model, t->pool, &t->train, gain, t->error);
  if (!status) dv_updater_train_only(t->updater, &t->part);
  return status;
}

/* Goes on with the best model so far, by updates of another kind. */
static dvbf_status change_phase(trainer *t, uint64_t phase) {
  dv_parameters *p = &t->model->parameters;
  dv_updater_save(t->updater, t->at.now); /* for the counters */
  t->at.phase = phase;
  t->at.retries_left = (uint64_t)t->s->retries;
  dvbf_status status = prepare_filtering(t);
  if (status) return status;
  dv_updater_restore(t->updater, t->at.now);
  dv_updater_forget(t->updater);
  dv_updater_slow_down(t->updater, 1);
  if (t->at.best_update) memcpy(p->values, t->at.best, p->size * sizeof *t->at.best);
  t->at.best_score = LOWEST_SCORE;
  return DVBF_OK;
}

static dvbf_status begin_gain(trainer *t) {
  dvbf_status status = change_phase(t, DV_GAIN);
  if (status) return status;
  dv_filter_gain_begin(t->model);
  dv_updater_save(t->updater, t->at.good);
  inform(t, "the dynamics are learned: training the gain of the filter");
  return DVBF_OK;
}

static dvbf_status begin_spread(trainer *t) {
  dvbf_status status = change_phase(t, DV_SPREAD);
  double *e = status ? NULL : dv_calloc((size_t)t->model->n_x, (size_t)t->model->n_x * sizeof *e);
  if (!status && !e) status = dv_fail_memory(t->error, "training the filter");
  if (!status) status = dv_innovation_moments(e, t->model, t->pool, &t->train, t->error);
  if (!status) {
    dv_filter_gain_normalise(t->model, e);
    dv_updater_save(t->updater, t->at.good);
  }
  dv_free(e);
  return status;
}

/* ---- From wherever the state is to the end, or to a stop ---- */

static dvbf_status next_phase(trainer *t) {
  if (t->at.phase == DV_JUDGING) return judge_start(t);
  if (t->at.phase == DV_TRAINING) { /* from here more updates could go on */
    dv_updater_save(t->updater, t->at.judged);
    t->at.extendable = true;
  }
  if (t->at.phase == DV_TRAINING && t->s->gain_updates) return begin_gain(t);
  if (t->at.phase == DV_GAIN) return begin_spread(t);
  t->at.phase = DV_FINISHED;
  return DVBF_OK;
}

/* A pause at the end of the first phase or later is none: the last one is part of a training to the end. */
static dvbf_status run_phases(trainer *t) {
  dvbf_status status = DVBF_OK;
  agree(t, false);
  while (!status && !t->stopped && t->at.phase != DV_FINISHED) {
    uint64_t until = end_of_phase(t);
    bool pausing = t->pause && t->pause < until && t->pause < (uint64_t)t->s->updates;
    status = run_until(t, pausing ? t->pause : until);
    bool arrived = !status && dv_updater_updates(t->updater) >= (pausing ? t->pause : until);
    if (arrived && pausing)
      t->stopped = true;
    else if (arrived)
      status = next_phase(t);
    if (!status) agree(t, false);
    if (!status) status = save_training(t);
  }
  return status;
}

/* ---- All of it ---- */

/* Puts components in the place of x, and a model of them in the place of the model. */
static dvbf_status project(trainer *t) {
  dv_projection *p = &t->projection;
  const dvbf_data *pictures = t->data;
  dvbf_status status = dv_projection_init(p, t->model, t->data, t->error);
  t->model = NULL;
  if (status) return status;
  dv_windows_free(&t->train);
  dv_windows_free(&t->valid);
  t->data = &p->data;
  if (t->s->coarse) status = dv_coarse_init(&t->coarse, p, COARSE_DIRECTIONS, t->error);
  if (!status && t->s->start == DV_START_MOMENTS)
    status = dv_image_moments_init(&t->places, p, pictures, (int)t->s->moments, t->error);
  if (!status) status = cut_windows(t);
  return status ? status : fresh_model(t, &t->model, (uint64_t)t->s->seed);
}

static void tell_projection(trainer *t) {
  const dv_components *c = &t->projection.components;
  announce(t,
           "training on %d components of the %d dimensions of x, which leave out about %.1g of its variance",
           c->count, c->n_x, fmax(1e-7, c->left_out / t->projection.whole->x_spread));
  if (!t->places.order) return;
  announce(t, "it began by learning how %d moments of the images move: powers of the coordinates up to %d",
           t->places.ramps.count, t->places.order);
}

static dvbf_status prepare(trainer *t) {
  dvbf_status status = dv_threads_new(&t->pool, (unsigned)t->s->threads, t->error);
  if (!status) dv_threads_join(t->pool, t->team);
  if (!status) status = dvbf_settings_copy(&t->base, t->model->settings_object, t->error);
  if (!status && t->s->gain_updates) status = dv_filter_gain_check(t->model, t->error);
  static const char *const emission[] = {"emission.", NULL}, *const motion[] = {"universal.", "transition.",
                                                                                "emission.log_", NULL};
  if (!status && t->places.order) status = dv_part_named(&t->alone, t->model, emission, t->error);
  if (!status && t->s->start == DV_START_STATE) status = dv_part_named(&t->alone, t->model, motion, t->error);
  if (!status) status = make_tools(t);
  if (status) return status;
  return dv_training_init(&t->at, t->model->parameters.size, dv_updater_snapshot_size(t->updater), t->error);
}

/* A finished run with more updates than it was begun with: from here on it is as if it always had them. The
 * settings are written first, so that the run knows that it is not finished wherever it is interrupted. */
static dvbf_status go_beyond(trainer *t, const dvbf_settings *settings) {
  dvbf_status status =
      t->first ? dv_settings_write(settings, t->folder.settings, dv_recovery_names, t->error) : DVBF_OK;
  if (!status && t->first) status = dv_run_folder_go_on(&t->folder, t->at.validations, t->error);
  if (status) return status;
  t->at.phase = DV_TRAINING;
  t->at.retries_left = (uint64_t)t->s->retries;
  t->unsaved = true;
  if (t->s->gain_updates) t->at.best_update = 0; /* its score is of the last phase, which comes anew */
  t->at.extendable = false;
  dv_updater_restore(t->updater, t->at.judged);
  dv_updater_save(t->updater, t->at.good);
  announce(t, "this run was finished at update %llu: continuing to update %lld",
           (unsigned long long)t->at.planned, (long long)t->s->updates);
  return DVBF_OK;
}

/* A finished run is resumed only for more updates. */
static dvbf_status go_on_finished(trainer *t, const dvbf_settings *settings) {
  bool more = t->at.planned < (uint64_t)t->s->updates;
  if (more && t->at.extendable) return go_beyond(t, settings);
  if (more)
    return dv_fail(t->error, DVBF_ARGUMENT,
                   "updates = %lld: the checkpoint in %.200s does not hold what more updates need, as an "
                   "older version wrote it; start again in another folder or with --force",
                   (long long)t->s->updates, t->folder.path);
  inform(t, "this run is finished: nothing is left to do; more updates would extend it");
  return t->unsaved && t->first ? save_model(t) : DVBF_OK;
}

/* Takes the state of the checkpoint, which the first rank reads, as others may not see the folder. */
static dvbf_status go_on(trainer *t, const dvbf_settings *settings) {
  dv_training *at = &t->at;
  dvbf_status status =
      t->first ? dv_checkpoint_read(at, t->model, t->fingerprint, t->folder.checkpoint, t->error) : DVBF_OK;
  if (status) return status;
  dv_training_share(at, t->team, t->model->parameters.size, dv_updater_snapshot_size(t->updater));
  if (t->at.window || t->at.eased) status = adapt(t);
  if (status) return status;
  t->began = dv_clock() - t->at.seconds;
  t->unsaved = t->first && !dv_exists(t->folder.model);
  if (t->first) dv_run_folder_tidy(&t->folder);
  if (t->at.phase == DV_FINISHED) return go_on_finished(t, settings);
  if (filtering(t)) status = prepare_filtering(t);
  if (status) return status;
  dv_updater_restore(t->updater, t->at.now);
  if (t->first) status = dv_run_folder_go_on(&t->folder, t->at.validations, t->error);
  if (status) return status;
  announce(t, "continuing from update %llu of start %u%s", (unsigned long long)updates_of(t),
           (unsigned)t->at.start + 1,
           t->at.moved
               ? ", made with another instruction set or compiler: the model will not be bit-identical"
               : "");
  return DVBF_OK;
}

static dvbf_status begin_training(trainer *t, const dvbf_settings *settings) {
  const dvbf_train_options *o = t->options;
  t->kept = dv_clock();
  if (!o->folder) return begin_start(t, 0);
  dvbf_status status = t->first ? dv_data_fingerprint(&t->fingerprint, t->data, t->error) : DVBF_OK;
  bool there = t->first && o->resume && dv_exists(t->folder.checkpoint);
  if (!status) dv_ranks_broadcast(t->team, &there, sizeof there);
  if (!status && there) return go_on(t, settings);
  if (!status && t->first) status = dv_run_folder_begin(&t->folder, settings, t->error);
  if (!status) status = begin_start(t, 0);
  if (!status && o->resume)
    inform(t, "there is no checkpoint to continue from: starting at the first update");
  return status;
}

/* Returns the best model, or the present one if training was stopped before there was one. */
static dvbf_status finish(trainer *t, dvbf_model **out) {
  dv_parameters *p = &t->model->parameters;
  if (t->at.best_update) memcpy(p->values, t->at.best, p->size * sizeof *t->at.best);
  dvbf_status status = sharpen(t);
  if (status) return status;
  dvbf_model *m = dv_projection_fold(&t->projection, t->model);
  describe_model(t, m);
  *(m == t->model ? &t->model : &t->projection.whole) = NULL; /* the caller owns it now */
  m->seconds = dv_clock() - t->began;
  *out = m;
  return DVBF_OK;
}

static void clear(trainer *t) {
  if (t->pool) dv_validator_clear(&t->validator);
  if (t->pool) dv_range_clear(&t->range);
  dv_updater_free(t->updater);
  dv_part_clear(&t->part);
  dv_threads_free(t->pool);
  dv_training_clear(&t->at);
  dv_windows_free(&t->train);
  dv_windows_free(&t->valid);
  dv_measured_free(&t->measured);
  dv_coarse_clear(&t->coarse);
  dv_image_moments_clear(&t->places);
  dv_part_clear(&t->alone);
  dv_projection_clear(&t->projection);
  dvbf_settings_free(t->base);
  dvbf_model_free(t->model);
  if (t->options->folder && t->first) dv_run_folder_close(&t->folder);
}

dvbf_status dv_train(dvbf_model **out, const dv_own *own, const dvbf_settings *settings,
                     const dvbf_data *data, const dvbf_train_options *options, uint64_t pause,
                     dvbf_error *error) {
  static const dvbf_train_options none;
  trainer t = {.options = options ? options : &none,
               .data = data,
               .began = dv_clock(),
               .pause = pause,
               .s = dv_settings_train(settings, error),
               .folder = DV_NO_RUN_FOLDER,
               .error = error};
  if (!t.s) return DVBF_ARGUMENT;
  t.team = dv_settings_ranks(settings);
  t.first = dv_ranks_rank(t.team) == 0;
  t.interrupt = dv_settings_interrupt(settings);
  uint64_t print = 0;
  dvbf_status status = dv_data_validate(data, "data", error);
  if (status) return status;
  uint64_t seed = (uint64_t)t.s->seed;
  const dvbf_model_class *type = own && own->type ? own->type : dv_model_class_of(t.s);
  dv_fit_fn *fit = dv_fit_of(type);
  if (fit) return dv_train_fitted(out, fit, settings, data, t.options, error);
  status = cut_windows(&t);
  if (!status) status = dv_measured_of(&t.measured, &data->train, error);
  if (!status && t.team) status = dv_data_fingerprint(&print, data, error);
  if (!status) status = dv_ranks_alike(t.team, settings, print, error);
  if (!status) status = dv_check_varies(&t.measured.x, data->train.n_x, error);
  if (!status) status = dv_check_length(type, settings, t.train.steps, "training", error);
  if (!status) status = dv_model_of(&t.model, settings, own, &t.measured, &t.train, seed, error);
  if (!status)
    status = dv_check_length(t.model->type, t.model->settings_object, t.valid.steps, "validation", error);
  if (!status) status = dv_density_check(t.model, &data->train, error);
  if (!status && data->valid.count) status = dv_density_check(t.model, &data->valid, error);
  if (!status) {
    t.model->sequences = count_sequences(&t);
    if (t.options->folder && t.first) status = dv_run_folder_open(&t.folder, t.options, settings, error);
  }
  if (!status) status = t.s->projection > 0 ? project(&t) : start_model(&t, t.model, seed);
  if (!status) t.s = t.model->settings;
  if (!status) status = prepare(&t);
  if (!status) status = begin_training(&t, settings);
  if (!status && t.projection.whole) tell_projection(&t);
  if (!status) status = run_phases(&t);
  if (!status) status = finish(&t, out);
  clear(&t);
  return status;
}
