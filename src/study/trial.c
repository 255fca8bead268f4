/* One seed of an experiment: simulate, train, evaluate. */
#include "base/status.h"
#include "study/study.h"

#include <stdio.h>
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

static dvbf_status set_number(dvbf_settings *settings, const char *name, uint64_t value, dvbf_error *error) {
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  return dvbf_settings_set(settings, name, text, error);
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

void dv_trial_tell(dv_work *w, const dv_trial *t, dvbf_stage_kind kind, size_t model) {
  dv_path folder;
  dvbf_stage stage = {.kind = kind, .system = t->study->experiment->system, .seed = t->seed};
  if (model < DV_MODELS) {
    dv_trial_run_folder(folder, t, model);
    stage.model = dv_study_contender(t->study, model)->name;
    stage.folder = folder;
  }
  if (w->options->stage && !w->options->stage(&stage, w->options->user_data)) w->stopped = true;
}

/* ---- The steps of a trial ---- */

/* Simulates as the preset does, or sequences of `steps` frames for test only, and keeps them in a file. */
static dvbf_status simulate(dvbf_data **out, const dv_trial *t, const char *name, uint64_t seed,
                            unsigned steps, dvbf_error *error) {
  const dv_study *s = t->study;
  dvbf_settings *settings = NULL;
  dv_path path;
  dv_join(path, t->folder, name);
  dvbf_status status = dvbf_settings_new(&settings, s->experiment->system, error);
  if (!status) status = dvbf_settings_preset(settings, s->outcome[0].preset, error);
  if (!status) status = set_number(settings, "seed", seed, error);
  if (!status && steps) status = set_number(settings, "steps", steps, error);
  if (!status && steps) status = set_number(settings, "train", 1, error);
  if (!status && steps) status = set_number(settings, "valid", 1, error);
  if (!status) status = dvbf_simulate(out, settings, error);
  if (!status) status = dvbf_data_write(*out, path, error);
  dvbf_settings_free(settings);
  return status;
}

static dvbf_status prepare(dv_trial *t, dv_work *w, dvbf_error *error) {
  dv_trial_folder(t->folder, w, t->study, t->seed);
  dv_trial_tell(w, t, DVBF_SIMULATING, DV_MODELS);
  dvbf_status status = dvbf_folder_make(t->folder, error);
  if (!status) status = simulate(&t->data, t, "data.h5", t->seed, 0, error);
  if (!status) status = simulate(&t->long_data, t, "long.h5", LONG_SEED + t->seed, LONG_STEPS, error);
  if (!status) status = dvbf_settings_new(&t->evaluation, "evaluate", error);
  if (!status) status = dvbf_settings_set(t->evaluation, "verdict", "off", error);
  if (!status) status = set_number(t->evaluation, "seed", t->seed, error);
  if (!status)
    status = set_number(t->evaluation, "threads", dvbf_settings_threads(t->study->settings[0]), error);
  return status;
}

/* What is kept of training's progress. */
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
  dv_trial_tell(w, t, DVBF_TRAINING, m);
  dvbf_status status = dvbf_settings_copy(&settings, s->settings[m], error);
  if (!status) status = set_number(settings, "seed", t->seed, error);
  if (!status && !w->stopped) status = dvbf_train(&t->model[m], settings, t->data, &options, error);
  dvbf_settings_free(settings);
  set_value(result, s->experiment, DV_OF_SECONDS, own.seconds);
  set_value(result, s->experiment, DV_OF_STARTS, own.starts);
  if (!status && t->model[m]) dv_trial_tell(w, t, DVBF_TRAINED, m);
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
  dvbf_status status = set_number(t->evaluation, "particles", weigh ? PARTICLES : 0, error);
  if (!status) status = evaluate_one(&result->test, &result->test_json, t, model, t->data, error);
  if (!status) status = set_number(t->evaluation, "particles", 0, error);
  if (!status) status = evaluate_one(&result->far, &result->far_json, t, model, t->long_data, error);
  if (status) return status;
  dv_result_compare(result, t->study->experiment);
  dv_subject subject = dv_trial_subject(t, m, result);
  return dv_measure(result->values, t->study->experiment, &subject, error);
}

dvbf_status dv_trial_run(dv_trial *t, dv_study *s, dv_work *w, dvbf_error *error) {
  size_t index = s->outcome[0].count;
  dvbf_status status = prepare(t, w, error);
  for (size_t m = 0; !status && !w->stopped && m < s->n_models; m++) {
    dv_result *result = &s->outcome[m].results[index];
    result->seed = t->seed;
    status = train(t, m, result, w, error);
    if (!status && !w->stopped) dv_trial_tell(w, t, DVBF_EVALUATING, m);
    if (!status && !w->stopped) status = evaluate(t, m, result, error);
  }
  for (size_t m = 0; m < s->n_models; m++)
    if (status || w->stopped)
      dv_result_clear(&s->outcome[m].results[index]);
    else
      s->outcome[m].count++;
  return status;
}
