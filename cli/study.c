#include "study.h"

#include "chapter.h"
#include "command.h"
#include "exhibits.h"
#include "measure.h"
#include "overview.h"
#include "results.h"
#include "training.h"

#include <stdio.h>
#include <stdlib.h>

enum { LONG_STEPS = 45, LONG_SEED = 1000000 }; /* the long sequences are of no training set's seed */

/* What one seed of one experiment holds while it runs. */
typedef struct trial {
  const cli_study *study;
  uint64_t seed;
  cli_path folder;
  dvbf_settings *evaluation;
  dvbf_data *data, *lengthy;
  dvbf_model *model[CLI_MODELS];
} trial;

static void free_trial(trial *t) {
  for (int m = 0; m < CLI_MODELS; m++) dvbf_model_free(t->model[m]);
  dvbf_data_free(t->lengthy);
  dvbf_data_free(t->data);
  dvbf_settings_free(t->evaluation);
}

static const cli_contender *contender(const cli_study *s, size_t model) {
  return &s->experiment->contender[s->outcome[model].contender];
}

static dvbf_status set_number(dvbf_settings *settings, const char *name, uint64_t value, dvbf_error *error) {
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  return dvbf_settings_set(settings, name, text, error);
}

static void say(const cli_work *w, const trial *t, const char *what, const char *name) {
  if (!w->quiet)
    fprintf(stderr, "%s, seed %llu: %s%s\n", t->study->experiment->system, (unsigned long long)t->seed, what,
            name);
}

/* ---- The steps of a trial ---- */

void cli_study_folder(cli_path out, const cli_work *w, const cli_study *s, uint64_t seed) {
  char name[64];
  snprintf(name, sizeof name, "seed-%llu", (unsigned long long)seed);
  if (w->n_seeds > 1)
    cli_join(out, s->folder, name);
  else
    snprintf(out, sizeof(cli_path), "%s", s->folder);
}

/* Simulates as the preset does, or sequences of `steps` frames for test only, and keeps them in a file. */
static dvbf_status simulate(dvbf_data **out, const trial *t, const char *name, uint64_t seed, unsigned steps,
                            dvbf_error *error) {
  const cli_study *s = t->study;
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  cli_path path;
  cli_join(path, t->folder, name);
  dvbf_status status = dvbf_settings_new(&settings, s->experiment->system, error);
  if (!status) status = dvbf_settings_preset(settings, s->outcome[0].preset, error);
  if (!status) status = set_number(settings, "seed", seed, error);
  if (!status && steps) status = set_number(settings, "steps", steps, error);
  if (!status && steps) status = set_number(settings, "train", 1, error);
  if (!status && steps) status = set_number(settings, "valid", 1, error);
  if (!status) status = dvbf_simulate(&data, settings, error);
  if (!status) status = dvbf_data_write(data, path, error);
  dvbf_settings_free(settings);
  if (status)
    dvbf_data_free(data);
  else
    *out = data;
  return status;
}

static size_t quantity_of(const cli_experiment *e, cli_kind kind) {
  size_t i = 0;
  while (i < CLI_QUANTITIES && e->quantity[i].kind != kind) i++;
  return i;
}

static void set_value(cli_trial *result, const cli_experiment *e, cli_kind kind, double value) {
  size_t i = quantity_of(e, kind);
  if (i < CLI_QUANTITIES) result->values[i] = value;
}

static dvbf_status train(trial *t, size_t m, cli_trial *result, const cli_work *w, dvbf_error *error) {
  const cli_study *s = t->study;
  cli_path run;
  cli_summary summary = {0};
  dvbf_settings *settings = NULL;
  cli_join(run, t->folder, contender(s, m)->run);
  dvbf_status status = cli_make_folder(run, error);
  if (!status) status = dvbf_settings_copy(&settings, s->settings[m], error);
  if (!status) status = set_number(settings, "seed", t->seed, error);
  cli_run how = {.folder = run, .force = w->force, .quiet = w->quiet};
  if (!status) status = cli_training(&t->model[m], &summary, &how, settings, t->data, error);
  dvbf_settings_free(settings);
  set_value(result, s->experiment, CLI_SECONDS, summary.seconds);
  set_value(result, s->experiment, CLI_STARTS, summary.starts);
  return status;
}

static dvbf_status evaluate_one(dvbf_evaluation **out, json_t **json, const trial *t, const dvbf_model *model,
                                const dvbf_data *data, dvbf_error *error) {
  double began = cli_clock();
  dvbf_model_info info = dvbf_model_describe(model);
  dvbf_status status = dvbf_evaluate(out, model, data, &data->test, t->evaluation, error);
  if (status) return status;
  *json = cli_evaluation_json(*out, &info, cli_clock() - began, cli_threads(t->evaluation));
  return *json ? DVBF_OK : cli_fail(error, DVBF_MEMORY, "out of memory while writing the results");
}

static cli_source source_of(const trial *t, size_t m, const cli_trial *result) {
  return (cli_source){.model = t->model[m],
                      .data = t->data,
                      .lengthy = t->lengthy,
                      .preset = t->study->outcome[0].preset,
                      .observed = result->far ? result->far->observed : 0,
                      .seed = t->seed,
                      .threads = cli_threads(t->evaluation)};
}

static dvbf_status evaluate(trial *t, size_t m, cli_trial *result, dvbf_error *error) {
  const dvbf_model *model = t->model[m];
  dvbf_status status = evaluate_one(&result->test, &result->test_json, t, model, t->data, error);
  if (!status) status = evaluate_one(&result->far, &result->far_json, t, model, t->lengthy, error);
  if (!status) cli_compare(result, t->study->experiment);
  cli_source from = source_of(t, m, result);
  return status ? status : cli_measure(result->values, t->study->experiment, &from, error);
}

static dvbf_status prepare(trial *t, const cli_work *w, dvbf_error *error) {
  cli_study_folder(t->folder, w, t->study, t->seed);
  say(w, t, "simulating", "");
  dvbf_status status = cli_make_folder(t->folder, error);
  if (!status) status = simulate(&t->data, t, "data.h5", t->seed, 0, error);
  if (!status) status = simulate(&t->lengthy, t, "long.h5", LONG_SEED + t->seed, LONG_STEPS, error);
  if (!status) status = dvbf_settings_new(&t->evaluation, "evaluate", error);
  if (!status) status = set_number(t->evaluation, "seed", t->seed, error);
  if (!status) status = set_number(t->evaluation, "threads", cli_threads(t->study->settings[0]), error);
  return status;
}

/* ---- The report: pictures and chapters are of the first seed ---- */

static dvbf_status add_chapter(const trial *t, size_t m, const cli_trial *result, const cli_work *w,
                               dvbf_error *error) {
  const cli_study *s = t->study;
  char name[128], key[128];
  cli_path run;
  cli_join(run, t->folder, contender(s, m)->run);
  snprintf(name, sizeof name, "%s: %s", s->experiment->title, contender(s, m)->name);
  snprintf(key, sizeof key, "%s-%s", s->experiment->system, contender(s, m)->run);
  cli_chapter chapter = {.name = name,
                         .key = key,
                         .model = t->model[m],
                         .data = t->data,
                         .sequences = &t->data->test,
                         .split = "test",
                         .evaluation = result->test,
                         .long_data = t->lengthy,
                         .long_sequences = &t->lengthy->test,
                         .long_evaluation = result->far,
                         .run = run,
                         .figures = w->figures,
                         .threads = cli_threads(t->evaluation),
                         .quiet = w->quiet};
  return cli_chapter_add(w->page, &chapter, error);
}

/* The overview picture shows a pendulum. */
static dvbf_status draw_overview(const trial *t, const cli_trial *result, dvbf_error *error) {
  cli_path picture;
  cli_join(picture, t->study->folder, "overview.png");
  if (quantity_of(t->study->experiment, CLI_WALK) == CLI_QUANTITIES) return DVBF_OK;
  return cli_overview(picture, t->model[0], t->data, t->lengthy, result->far, cli_threads(t->evaluation),
                      error);
}

static dvbf_status show(const trial *t, const cli_work *w, dvbf_error *error) {
  const cli_study *s = t->study;
  cli_exhibits exhibits = {
      .experiment = s->experiment, .folder = w->figures, .models = s->n_models, .quiet = w->quiet};
  for (size_t m = 0; m < s->n_models; m++) {
    exhibits.name[m] = contender(s, m)->name;
    exhibits.source[m] = source_of(t, m, &s->outcome[m].trials[0]);
  }
  say(w, t, "drawing", "");
  dvbf_status status = dvbf_page_heading(w->page, 1, s->experiment->title, error);
  if (!status) status = dvbf_page_text(w->page, s->experiment->remark, error);
  if (!status) status = cli_page_outcomes(w->page, s->outcome, s->n_models, error);
  if (!status) status = cli_exhibits_add(w->page, &exhibits, error);
  if (!status) status = draw_overview(t, &s->outcome[0].trials[0], error);
  for (size_t m = 0; !status && m < s->n_models; m++)
    status = add_chapter(t, m, &s->outcome[m].trials[0], w, error);
  return status;
}

/* ---- All trials of an experiment ---- */

/* Runs one seed, which counts when all its models are evaluated. A signal ends it before that. */
static dvbf_status run_trial(trial *t, cli_study *s, const cli_work *w, dvbf_error *error) {
  size_t index = s->outcome[0].count;
  dvbf_status status = prepare(t, w, error);
  for (size_t m = 0; !status && !cli_stop_signal() && m < s->n_models && s->outcome[m].trials; m++) {
    cli_trial *result = &s->outcome[m].trials[index];
    result->seed = t->seed;
    say(w, t, "training ", contender(s, m)->name);
    status = train(t, m, result, w, error);
    if (status || cli_stop_signal()) break;
    say(w, t, "evaluating ", contender(s, m)->name);
    status = evaluate(t, m, result, error);
  }
  for (size_t m = 0; m < s->n_models; m++)
    if (status || cli_stop_signal())
      cli_trial_clear(&s->outcome[m].trials[index]);
    else
      s->outcome[m].count++;
  return status;
}

/* The first seed is kept until all are done, because the report shows it below the tables of all. */
dvbf_status cli_study_run(cli_study *s, const cli_work *w, dvbf_error *error) {
  trial first = {.study = s, .seed = w->first_seed};
  dvbf_status status = cli_make_folder(s->folder, error);
  for (size_t m = 0; !status && m < s->n_models; m++) {
    s->outcome[m].trials = calloc(w->n_seeds, sizeof *s->outcome[m].trials);
    if (!s->outcome[m].trials)
      status = cli_fail(error, DVBF_MEMORY, "out of memory for %zu seeds", w->n_seeds);
  }
  if (!status) status = run_trial(&first, s, w, error);
  for (size_t i = 1; !status && !cli_stop_signal() && i < w->n_seeds; i++) {
    trial next = {.study = s, .seed = w->first_seed + i};
    status = run_trial(&next, s, w, error);
    free_trial(&next);
  }
  if (!status && !cli_stop_signal()) status = show(&first, w, error);
  free_trial(&first);
  return status;
}

void cli_study_free(cli_study *s) {
  for (size_t m = 0; m < s->n_models; m++) {
    for (size_t i = 0; s->outcome[m].trials && i < s->outcome[m].count; i++)
      cli_trial_clear(&s->outcome[m].trials[i]);
    free(s->outcome[m].trials);
    dvbf_settings_free(s->settings[m]);
  }
}
