/* The training loop: starts, validation, the best model, and the way back from divergence. */
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"
#include "train/schedule.h"
#include "train/updater.h"
#include "train/validate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* What is worth keeping of a start: everything to go on with it, and how well it predicts. */
typedef struct candidate {
  void *snapshot;
  double prediction;
  unsigned start;
} candidate;

typedef struct trainer {
  const dv_train_settings *s;
  dvbf_sequences train, valid; /* windows onto the data */
  dvbf_model *model;
  dv_pool *pool;
  dv_updater *updater;
  dv_validator validator;
  dvbf_progress_fn *progress;
  void *user_data;
  dvbf_progress report;
  double began, start_began, told; /* seconds */
  dvbf_real *best;                 /* [parameters] best by validation */
  double best_bound, best_floor;
  uint64_t best_update;
  void *good;       /* snapshot of the last finite validation */
  candidate judged; /* the best start so far, at its judgement */
  int64_t retries_left;
  bool stopped;
} trainer;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Telling ---- */

static void tell(trainer *t, const char *event) {
  uint64_t update = dv_updater_updates(t->updater);
  dvbf_progress *r = &t->report;
  r->update = update;
  r->updates = (uint64_t)t->s->updates;
  r->seconds = now() - t->began;
  double done = (double)update, spent = now() - t->start_began;
  r->seconds_left = done > 0 ? spent / done * ((double)r->updates - done) : 0;
  r->event = event;
  t->told = now();
  if (t->progress && !t->progress(r, t->user_data)) t->stopped = true;
  r->event = NULL;
  r->validated = false;
}

/* ---- Validation and the best model ---- */

static void keep_if_best(trainer *t, const dv_scores *scores, double floor) {
  if (t->best_update && scores->bound <= t->best_bound) return;
  t->best_bound = scores->bound;
  t->best_floor = floor;
  t->best_update = dv_updater_updates(t->updater);
  memcpy(t->best, t->model->parameters.values, t->model->parameters.size * sizeof *t->best);
}

/* False when the scores are not finite. */
static bool validate(trainer *t) {
  uint64_t update = dv_updater_updates(t->updater);
  dv_schedule schedule = dv_schedule_at(t->s, update ? update - 1 : 0, 0);
  dv_scores scores = dv_validator_run(&t->validator, schedule.log_sigma_floor);
  if (!isfinite(scores.bound)) return false;
  keep_if_best(t, &scores, schedule.log_sigma_floor);
  dv_updater_save(t->updater, t->good);
  dvbf_progress *r = &t->report;
  r->validated = true;
  r->valid_bound = scores.bound;
  r->valid_reconstruction = scores.reconstruction;
  r->valid_kl_w = scores.kl_w;
  r->valid_kl_v = scores.kl_v;
  r->valid_prediction = scores.prediction;
  r->learning_rate = dv_learning_rate_at(t->s, update ? update - 1 : 0);
  r->temperature = schedule.temperature;
  r->sigma_floor = exp(schedule.log_sigma_floor);
  tell(t, NULL);
  return true;
}

/* Goes back to the last good state with half the rate. False when that was tried often enough. */
static bool recover(trainer *t) {
  char event[160];
  if (t->retries_left-- <= 0) return false;
  uint64_t bad = dv_updater_updates(t->updater);
  double factor = pow(0.5, (double)(t->s->retries - t->retries_left));
  dv_updater_restore(t->updater, t->good);
  dv_updater_slow_down(t->updater, factor);
  snprintf(event, sizeof event,
           "update %llu was not finite: back to update %llu with %g of the learning rate",
           (unsigned long long)bad, (unsigned long long)dv_updater_updates(t->updater), factor);
  tell(t, event);
  return true;
}

/* Runs until `until`, validating on the way. False when training diverged for good. */
static bool run_until(trainer *t, uint64_t until) {
  while (dv_updater_updates(t->updater) < until && !t->stopped) {
    uint64_t at = dv_updater_updates(t->updater), every = (uint64_t)t->s->validate_every;
    uint64_t next = at / every * every + every, chunk = (next < until ? next : until) - at;
    if (chunk > 10) chunk = 10; /* so that an interrupt is heard soon */
    uint64_t done = dv_updater_run(t->updater, chunk);
    t->report.bound = dv_updater_bound(t->updater) + dv_model_log_jacobian(t->model);
    uint64_t update = dv_updater_updates(t->updater);
    if (dv_sequences_intact(&t->train, NULL)) return false;
    bool finite = done == chunk, due = update % every == 0 || update == (uint64_t)t->s->updates;
    if (finite && due) finite = validate(t);
    if (!finite && !recover(t)) return false;
    if (now() - t->told > 0.2) tell(t, NULL);
  }
  return true;
}

/* ---- Starts ---- */

/* First values, order and noise of start k; the first start is the seed itself. */
static uint64_t seed_of_start(const trainer *t, unsigned k) {
  return (uint64_t)t->s->seed + ((uint64_t)k << 56);
}

/* Fresh first values in place: a new model of the same shapes is made and its values are taken. */
static dvbf_status begin_start(trainer *t, unsigned k, dvbf_error *error) {
  if (k > 0) {
    dvbf_model *fresh = NULL;
    dvbf_status status = dv_model_new(&fresh, t->model->settings_object, t->model->transition, &t->train,
                                      seed_of_start(t, k), error);
    if (status) return status;
    memcpy(t->model->parameters.values, fresh->parameters.values,
           fresh->parameters.size * sizeof *fresh->parameters.values);
    dvbf_model_free(fresh);
  }
  dv_updater_reset(t->updater, seed_of_start(t, k));
  dv_updater_save(t->updater, t->good);
  t->best_update = 0;
  t->retries_left = t->s->retries;
  t->start_began = now();
  t->report.start = k + 1;
  return DVBF_OK;
}

/* A start is good when it predicts: in the bad optimum, w encodes every frame and the transition knows
 * nothing. */
static bool judge(trainer *t, unsigned k) {
  double p = t->report.valid_prediction;
  if (k == 0 || !(p >= t->judged.prediction)) {
    dv_updater_save(t->updater, t->judged.snapshot);
    t->judged.prediction = p;
    t->judged.start = k;
  }
  return !(p > t->s->restart_above);
}

static dvbf_status give_up(trainer *t, dvbf_error *error) {
  dvbf_status status = dv_sequences_intact(&t->train, error);
  if (!status) status = dv_sequences_intact(&t->valid, error);
  if (status) return status;
  return dv_fail(
      error, DVBF_NUMERIC,
      "training diverged at update %llu and again after %lld retries with smaller steps; try a smaller "
      "learning-rate or clip-norm = 1",
      (unsigned long long)dv_updater_updates(t->updater), (long long)t->s->retries);
}

static dvbf_status run_starts(trainer *t, dvbf_error *error) {
  unsigned starts = (unsigned)t->s->starts;
  uint64_t updates = (uint64_t)t->s->updates, judgement = (uint64_t)(t->s->restart_at * (double)updates);
  bool judging = starts > 1 && t->validator.predict.runs && judgement > 0;
  t->report.starts = starts;
  for (unsigned k = 0;; k++) {
    dvbf_status status = begin_start(t, k, error);
    if (status) return status;
    if (!judging) break;
    if (!run_until(t, judgement)) return give_up(t, error);
    if (t->stopped) return DVBF_OK;
    if (!validate(t)) return give_up(t, error);
    if (t->stopped || judge(t, k)) break;
    if (k + 1 == starts) {
      dv_updater_restore(t->updater, t->judged.snapshot);
      t->best_update = 0;
      t->report.start = t->judged.start + 1;
      tell(t, "no start predicts well: going on with the best of them; more starts or updates may help");
      break;
    }
    char event[160];
    snprintf(event, sizeof event,
             "start %u predicts badly (%.2f of the pixel variance, restart-above = %g): starting anew", k + 1,
             t->report.valid_prediction, t->s->restart_above);
    tell(t, event);
  }
  return t->stopped || run_until(t, updates) ? DVBF_OK : give_up(t, error);
}

/* ---- The public functions ---- */

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

static dvbf_status prepare(trainer *t, dvbf_error *error) {
  dvbf_status status = dv_pool_new(&t->pool, (unsigned)t->s->threads, error);
  if (!status) status = dv_updater_new(&t->updater, t->model, t->pool, &t->train, error);
  if (!status) status = dv_validator_init(&t->validator, t->model, t->pool, &t->valid, error);
  if (status) return status;
  size_t size = dv_updater_snapshot_size(t->updater);
  t->best = dv_calloc(t->model->parameters.size, sizeof *t->best);
  t->good = dv_calloc(size, 1);
  t->judged.snapshot = dv_calloc(size, 1);
  return t->best && t->good && t->judged.snapshot ? DVBF_OK : dv_fail_memory(error, "preparing training");
}

static void finish(trainer *t) {
  dvbf_model *m = t->model;
  if (!t->best_update && t->stopped) validate(t);
  if (t->best_update) {
    memcpy(m->parameters.values, t->best, m->parameters.size * sizeof *t->best);
    m->log_sigma_floor = t->best_floor;
  }
  m->updates = t->best_update;
  m->seconds = now() - t->began;
}

static void clear(trainer *t) {
  if (t->pool) dv_validator_clear(&t->validator);
  dv_updater_free(t->updater);
  dv_pool_free(t->pool);
  dv_free(t->best);
  dv_free(t->good);
  dv_free(t->judged.snapshot);
  dv_windows_free(&t->train);
  dv_windows_free(&t->valid);
}

dvbf_status dvbf_train_with(dvbf_model **out, const dvbf_transition *transition,
                            const dvbf_settings *settings, const dvbf_data *data, dvbf_progress_fn *progress,
                            void *user_data, dvbf_error *error) {
  trainer t = {.progress = progress, .user_data = user_data, .began = now()};
  if (!dv_settings_train(settings, error)) return DVBF_ARGUMENT;
  dvbf_status status = dv_data_validate(data, "data", error);
  if (status) return status;
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  status = cut(&t, s, data, error);
  if (!status) status = dv_model_new(&t.model, settings, transition, &t.train, (uint64_t)s->seed, error);
  if (status) {
    clear(&t);
    return status;
  }
  t.s = t.model->settings;
  /* Overlapping windows show nothing new: N counts sequences of that length. */
  t.model->sequences = fmax(1, (double)dv_sequences_frames(&data->train) /
                                   (double)dv_sequences_frames(&t.train) * (double)t.train.count);
  t.report.bound = NAN;
  status = prepare(&t, error);
  if (!status) status = run_starts(&t, error);
  if (!status) finish(&t);
  clear(&t);
  if (status) {
    dvbf_model_free(t.model);
    return status;
  }
  *out = t.model;
  return DVBF_OK;
}

dvbf_status dvbf_train(dvbf_model **out, const dvbf_settings *settings, const dvbf_data *data,
                       dvbf_progress_fn *progress, void *user_data, dvbf_error *error) {
  return dvbf_train_with(out, NULL, settings, data, progress, user_data, error);
}
