/* dvbf reproduce: the paper's experiments from data to report. */
#include "chapter.h"
#include "comparison.h"
#include "exhibits.h"
#include "files.h"
#include "measure.h"
#include "options.h"
#include "overview.h"
#include "results.h"
#include "training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const tables[] = {"train", NULL};
static const char *const arguments[] = {"SYSTEM", NULL};
static const cli_flag flags[] = {
    {'o', "output", "FOLDER", "folder to write: data, runs, results.json, report.html, figures"},
    {0, "seeds", "COUNT", "repeat with this many seeds, from --seed on; 1 to 1000, default 1"},
    CLI_FLAG_PRESET,
    CLI_FLAG_CONFIG,
    CLI_FLAG_JSON,
    CLI_FLAG_FORCE,
    CLI_FLAG_QUIET,
    {0},
};

enum { LONG_STEPS = 45, LONG_SEED = 1000000 }; /* the long sequences are of no training set's seed */

/* One experiment of the paper with the models that are to be trained on it. */
typedef struct study {
  const cli_experiment *experiment;
  cli_path folder;
  const char *preset; /* the user's, which decides on data as well; NULL: ours */
  size_t n_models;
  dvbf_settings *settings[CLI_MODELS]; /* of training; every trial sets its own seed */
  cli_outcome outcome[CLI_MODELS];
} study;

/* All that was asked for. */
typedef struct work {
  const char *folder;
  size_t n_studies, n_seeds;
  study *studies;
  uint64_t first_seed;
  bool force, quiet;
  dvbf_page *page;
  cli_path figures;
} work;

/* What one seed of one experiment holds while it runs. */
typedef struct trial {
  const study *study;
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

static const cli_contender *contender(const study *s, size_t model) {
  return &s->experiment->contender[s->outcome[model].contender];
}

static dvbf_status set_number(dvbf_settings *settings, const char *name, uint64_t value, dvbf_error *error) {
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  return dvbf_settings_set(settings, name, text, error);
}

static void say(const work *w, const trial *t, const char *what, const char *name) {
  if (!w->quiet)
    fprintf(stderr, "%s, seed %llu: %s%s\n", t->study->experiment->system, (unsigned long long)t->seed, what,
            name);
}

/* ---- The steps of a trial ---- */

static void trial_folder(cli_path out, const work *w, const study *s, uint64_t seed) {
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
  const study *s = t->study;
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

static dvbf_status train(trial *t, size_t m, cli_trial *result, const work *w, dvbf_error *error) {
  const study *s = t->study;
  cli_path run;
  cli_summary summary = {0};
  dvbf_settings *settings = NULL;
  cli_join(run, t->folder, contender(s, m)->run);
  dvbf_status status = cli_make_folder(run, error);
  if (!status) status = dvbf_settings_copy(&settings, s->settings[m], error);
  if (!status) status = set_number(settings, "seed", t->seed, error);
  if (!status) status = cli_training(&t->model[m], &summary, run, settings, t->data, w->quiet, error);
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

static dvbf_status evaluate(trial *t, size_t m, cli_trial *result, dvbf_error *error) {
  const dvbf_model *model = t->model[m];
  dvbf_status status = evaluate_one(&result->test, &result->test_json, t, model, t->data, error);
  if (!status) status = evaluate_one(&result->far, &result->far_json, t, model, t->lengthy, error);
  if (!status) cli_compare(result, t->study->experiment);
  if (!status)
    status = cli_measure(result->values, t->study->experiment, model, t->data, t->seed,
                         cli_threads(t->evaluation), error);
  return status;
}

static dvbf_status prepare(trial *t, const work *w, dvbf_error *error) {
  trial_folder(t->folder, w, t->study, t->seed);
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

static dvbf_status add_chapter(const trial *t, size_t m, const cli_trial *result, const work *w,
                               dvbf_error *error) {
  const study *s = t->study;
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

static dvbf_status show(const trial *t, const work *w, dvbf_error *error) {
  const study *s = t->study;
  cli_exhibits exhibits = {.experiment = s->experiment,
                           .folder = w->figures,
                           .models = s->n_models,
                           .data = t->data,
                           .seed = t->seed,
                           .threads = cli_threads(t->evaluation)};
  for (size_t m = 0; m < s->n_models; m++) {
    exhibits.name[m] = contender(s, m)->name;
    exhibits.model[m] = t->model[m];
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

/* Runs one seed. A signal during training ends it without an evaluation. */
static dvbf_status run_trial(trial *t, size_t index, const work *w, dvbf_error *error) {
  const study *s = t->study;
  dvbf_status status = prepare(t, w, error);
  for (size_t m = 0; !status && !cli_stop_signal() && m < s->n_models; m++) {
    cli_trial *result = &s->outcome[m].trials[index];
    result->seed = t->seed;
    say(w, t, "training ", contender(s, m)->name);
    status = train(t, m, result, w, error);
    if (status || cli_stop_signal()) break;
    say(w, t, "evaluating ", contender(s, m)->name);
    status = evaluate(t, m, result, error);
  }
  return status;
}

/* The first seed is kept until all are done, because the report shows it below the tables of all. */
static dvbf_status run_study(study *s, const work *w, dvbf_error *error) {
  trial first = {.study = s, .seed = w->first_seed};
  dvbf_status status = cli_make_folder(s->folder, error);
  for (size_t m = 0; !status && m < s->n_models; m++) {
    s->outcome[m].count = w->n_seeds;
    s->outcome[m].trials = calloc(w->n_seeds, sizeof *s->outcome[m].trials);
    if (!s->outcome[m].trials)
      status = cli_fail(error, DVBF_MEMORY, "out of memory for %zu seeds", w->n_seeds);
  }
  if (!status) status = run_trial(&first, 0, w, error);
  for (size_t i = 1; !status && !cli_stop_signal() && i < w->n_seeds; i++) {
    trial next = {.study = s, .seed = w->first_seed + i};
    status = run_trial(&next, i, w, error);
    free_trial(&next);
  }
  if (!status && !cli_stop_signal()) status = show(&first, w, error);
  free_trial(&first);
  return status;
}

static void free_study(study *s) {
  for (size_t m = 0; m < s->n_models; m++) {
    for (size_t i = 0; s->outcome[m].trials && i < s->outcome[m].count; i++)
      cli_trial_clear(&s->outcome[m].trials[i]);
    free(s->outcome[m].trials);
    dvbf_settings_free(s->settings[m]);
  }
}

/* ---- All experiments ---- */

/* Looks before anything is written, so that a refusal leaves all as it was. */
static dvbf_status refuse_former(const work *w, dvbf_error *error) {
  static const char *const results[] = {"results.json", "report.html"};
  static const char *const names[] = {"data.h5", "long.h5", ("run/" CLI_MODEL), ("run-dkf/" CLI_MODEL)};
  cli_path folder, path;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; !status && i < sizeof results / sizeof *results; i++) {
    cli_join(path, w->folder, results[i]);
    status = cli_refuse_existing(path, w->force, error);
  }
  for (size_t k = 0; !status && k < w->n_studies; k++)
    for (size_t i = 0; !status && i < w->n_seeds; i++)
      for (size_t j = 0; !status && j < sizeof names / sizeof *names; j++) {
        trial_folder(folder, w, &w->studies[k], w->first_seed + i);
        cli_join(path, folder, names[j]);
        status = cli_refuse_existing(path, w->force, error);
      }
  return status;
}

static dvbf_status write_results(const json_t *json, const char *folder, dvbf_error *error) {
  cli_path path, temporary;
  cli_join(path, folder, "results.json");
  cli_join(temporary, folder, "results.json.new");
  if (!json_dump_file(json, temporary, JSON_INDENT(2) | JSON_REAL_PRECISION(10)) && !rename(temporary, path))
    return DVBF_OK;
  unlink(temporary);
  return cli_fail(error, DVBF_IO, "%.300s: cannot be written", path);
}

/* {"pendulum": [a model's outcome, ...], ...} */
static json_t *results_json(const work *w) {
  json_t *all = json_object();
  for (size_t k = 0; k < w->n_studies; k++) {
    const study *s = &w->studies[k];
    json_t *models = json_array();
    for (size_t m = 0; m < s->n_models; m++) json_array_append_new(models, cli_outcome_json(&s->outcome[m]));
    json_object_set_new(all, s->experiment->system, models);
  }
  return all;
}

static dvbf_status finish(const work *w, bool as_json, dvbf_error *error) {
  cli_path report;
  json_t *json = results_json(w);
  cli_join(report, w->folder, "report.html");
  dvbf_status status = write_results(json, w->folder, error);
  if (!status) status = dvbf_page_write(w->page, report, error);
  if (!status && as_json) cli_print_json(json);
  for (size_t k = 0; !status && !as_json && k < w->n_studies; k++)
    cli_print_outcomes(w->studies[k].outcome, w->studies[k].n_models);
  if (!status && !w->quiet)
    fprintf(stderr, "%s: data, runs, results.json, report.html and figures\n", w->folder);
  json_decref(json);
  return status;
}

static dvbf_status run_work(work *w, bool as_json, dvbf_error *error) {
  cli_join(w->figures, w->folder, "figures");
  dvbf_status status = refuse_former(w, error);
  if (!status) status = cli_make_folder(w->figures, error); /* and the folder above it */
  if (!status)
    status = dvbf_page_new(&w->page, "Deep Variational Bayes Filters: the paper's experiments", error);
  for (size_t k = 0; !status && !cli_stop_signal() && k < w->n_studies; k++)
    status = run_study(&w->studies[k], w, error);
  if (!status && !cli_stop_signal()) status = finish(w, as_json, error);
  dvbf_page_free(w->page);
  return status;
}

/* ---- The command ---- */

static dvbf_status read_seeds(work *w, const cli_options *options, dvbf_error *error) {
  char seed[32], *end;
  const char *text = cli_option(options, "seeds");
  unsigned long count = text ? strtoul(text, &end, 10) : 1;
  if (text && (end == text || *end || count < 1 || count > 1000))
    return cli_fail(error, DVBF_ARGUMENT,
                    "seeds = %.60s: must be a whole number in [1, 1000]; the default is 1", text);
  dvbf_status status = dvbf_settings_get(w->studies[0].settings[0], "seed", seed, sizeof seed, error);
  w->n_seeds = count;
  w->first_seed = strtoull(seed, NULL, 10);
  return status;
}

/* A preset of the user's stands for its model alone; without one all models of the experiment have ours. */
static dvbf_status plan_model(study *s, const cli_options *options, int which, const char *preset,
                              dvbf_error *error) {
  char model[16] = "";
  size_t m = s->n_models;
  dvbf_status status = cli_options_settings_from(&s->settings[m], options, "train", preset, error);
  if (!status) status = dvbf_settings_get(s->settings[m], "model", model, sizeof model, error);
  if (status) return status;
  if (s->preset) which = !strcmp(model, "dkf") && s->experiment->contender[1].name;
  s->outcome[m] = (cli_outcome){.experiment = s->experiment, .contender = which, .preset = preset};
  s->n_models++;
  return DVBF_OK;
}

static dvbf_status plan_study(study *s, const work *w, const cli_options *options, bool all,
                              dvbf_error *error) {
  const cli_contender *c = s->experiment->contender;
  const char *preset = cli_option(options, "preset"),
             *for_system = preset ? dvbf_preset_system(preset) : NULL;
  if (for_system && strcmp(for_system, s->experiment->system) != 0)
    return cli_fail(error, DVBF_ARGUMENT, "preset = %s: it is for %s; name that system to reproduce", preset,
                    for_system);
  s->preset = preset;
  if (all)
    cli_join(s->folder, w->folder, s->experiment->system);
  else
    snprintf(s->folder, sizeof s->folder, "%s", w->folder);
  if (preset) return plan_model(s, options, 0, preset, error);
  dvbf_status status = DVBF_OK;
  for (int i = 0; !status && i < CLI_MODELS && c[i].name; i++)
    status = plan_model(s, options, i, c[i].preset, error);
  return status;
}

static dvbf_status plan(work *w, const cli_options *options, dvbf_error *error) {
  const char *system = options->arguments[0];
  const char *known[8] = {0};
  size_t count = 0;
  bool all = !strcmp(system, "all");
  while (cli_experiment_at(count)) known[count] = cli_experiment_at(count)->system, count++;
  known[count] = "all";
  dvbf_status status = cli_check_system(system, known, error);
  if (!status) status = cli_option_needed(&w->folder, options, "output", error);
  if (!status && !(w->studies = calloc(count, sizeof *w->studies)))
    status = cli_fail(error, DVBF_MEMORY, "out of memory for %zu experiments", count);
  for (size_t i = 0; !status && i < count; i++) {
    if (!all && strcmp(system, known[i]) != 0) continue;
    study *s = &w->studies[w->n_studies++];
    s->experiment = cli_experiment_at(i);
    status = plan_study(s, w, options, all, error);
  }
  return status ? status : read_seeds(w, options, error);
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  work w = {.force = cli_option(options, "force"), .quiet = cli_option(options, "quiet")};
  dvbf_status status = plan(&w, options, error);
  if (!status) status = run_work(&w, cli_option(options, "json"), error);
  for (size_t k = 0; k < w.n_studies; k++) free_study(&w.studies[k]);
  free(w.studies);
  return status;
}

const cli_command cli_reproduce = {
    .name = "reproduce",
    .synopsis = "pendulum|ball|two-balls|all -o FOLDER [--seeds COUNT] [--seed FIRST] [--SETTING VALUE ...]",
    .help = "simulate, train and evaluate the paper's experiments, and set our numbers beside the paper's",
    .details =
        "\nFOLDER receives report.html, results.json and figures/; for each experiment data.h5, long.h5 "
        "(test\n"
        "sequences of 45 frames) and run/, and for the pendulum's Deep Kalman Filter run-dkf/. `all` gives\n"
        "each experiment a folder of its own. With several seeds each has its own folder seed-N; figures "
        "are\n"
        "of the first. Without --preset every model is trained with ours; settings are on top of these.",
    .arguments = arguments,
    .flags = flags,
    .tables = tables,
    .presets = true,
    .run = run,
};
