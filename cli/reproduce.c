/* dvbf reproduce: the paper's experiment from data to tables. */
#include "comparison.h"
#include "files.h"
#include "options.h"
#include "overview.h"
#include "results.h"
#include "training.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const systems[] = {"pendulum", NULL};
static const char *const tables[] = {"train", NULL};
static const char *const arguments[] = {"SYSTEM", NULL};
static const cli_flag flags[] = {
    {'o', "output", "FOLDER", "folder to write: data, run, results.json, overview.png"},
    {0, "seeds", "COUNT", "repeat with this many seeds, from --seed on; 1 to 1000, default 1"},
    CLI_FLAG_PRESET,
    CLI_FLAG_CONFIG,
    CLI_FLAG_JSON,
    CLI_FLAG_FORCE,
    CLI_FLAG_QUIET,
    {0},
};

enum { LONG_STEPS = 45, LONG_SEED = 1000000 }; /* the long sequences are of no training set's seed */

typedef struct study {
  const char *system, *folder;
  const dvbf_settings *settings; /* of training; every trial sets its own seed */
  size_t n_trials;
  uint64_t first_seed;
  bool force, quiet;
} study;

/* What a trial holds while it runs. */
typedef struct work {
  cli_path folder;
  dvbf_settings *settings, *evaluation;
  dvbf_data *data, *lengthy;
  dvbf_model *model;
  dvbf_evaluation *test, *far;
} work;

static void free_work(work *w) {
  dvbf_evaluation_free(w->far);
  dvbf_evaluation_free(w->test);
  dvbf_model_free(w->model);
  dvbf_data_free(w->lengthy);
  dvbf_data_free(w->data);
  dvbf_settings_free(w->evaluation);
  dvbf_settings_free(w->settings);
}

static dvbf_status set_number(dvbf_settings *settings, const char *name, uint64_t value, dvbf_error *error) {
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  return dvbf_settings_set(settings, name, text, error);
}

/* ---- The steps of a trial ---- */

static void trial_folder(cli_path out, const study *s, uint64_t seed) {
  char name[64];
  snprintf(name, sizeof name, "seed-%llu", (unsigned long long)seed);
  if (s->n_trials > 1)
    cli_join(out, s->folder, name);
  else
    snprintf(out, sizeof(cli_path), "%s", s->folder);
}

/* Simulates as the paper does, or sequences of `steps` frames for test only, and keeps them in a file. */
static dvbf_status simulate(dvbf_data **out, const study *s, const char *folder, const char *name,
                            uint64_t seed, unsigned steps, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  cli_path path;
  cli_join(path, folder, name);
  dvbf_status status = dvbf_settings_new(&settings, s->system, error);
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

static dvbf_status train(work *w, cli_trial *trial, const study *s, dvbf_error *error) {
  cli_path run;
  cli_summary summary = {0};
  cli_join(run, w->folder, "run");
  dvbf_status status = cli_make_folder(run, error);
  if (!status) status = dvbf_settings_copy(&w->settings, s->settings, error);
  if (!status) status = set_number(w->settings, "seed", trial->seed, error);
  if (!status) status = cli_training(&w->model, &summary, run, w->settings, w->data, s->quiet, error);
  trial->values[CLI_SECONDS] = summary.seconds;
  trial->values[CLI_STARTS] = summary.starts;
  return status;
}

static dvbf_status evaluate_one(dvbf_evaluation **out, json_t **json, const work *w, const dvbf_data *data,
                                dvbf_error *error) {
  double began = cli_clock();
  dvbf_model_info info = dvbf_model_describe(w->model);
  dvbf_status status = dvbf_evaluate(out, w->model, data, &data->test, w->evaluation, error);
  if (status) return status;
  *json = cli_evaluation_json(*out, &info, cli_clock() - began, cli_threads(w->evaluation));
  return *json ? DVBF_OK : cli_fail(error, DVBF_MEMORY, "out of memory while writing the results");
}

static dvbf_status evaluate(work *w, cli_trial *trial, dvbf_error *error) {
  dvbf_status status = dvbf_settings_new(&w->evaluation, "evaluate", error);
  if (!status) status = set_number(w->evaluation, "seed", trial->seed, error);
  if (!status) status = set_number(w->evaluation, "threads", cli_threads(w->settings), error);
  if (!status) status = evaluate_one(&w->test, &trial->test, w, w->data, error);
  if (!status) status = evaluate_one(&w->far, &trial->lengthy, w, w->lengthy, error);
  if (!status) cli_compare(trial, w->data, w->test, w->far);
  return status;
}

static void say(const study *s, uint64_t seed, const char *what) {
  if (!s->quiet) fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, what);
}

/* Runs one seed. A signal during training ends it without an evaluation. */
static dvbf_status run_trial(cli_trial *trial, const study *s, bool draw, dvbf_error *error) {
  work w = {0};
  cli_path picture;
  cli_join(picture, s->folder, "overview.png");
  trial_folder(w.folder, s, trial->seed);
  say(s, trial->seed, "simulating");
  dvbf_status status = cli_make_folder(w.folder, error);
  if (!status) status = simulate(&w.data, s, w.folder, "data.h5", trial->seed, 0, error);
  if (!status)
    status = simulate(&w.lengthy, s, w.folder, "long.h5", LONG_SEED + trial->seed, LONG_STEPS, error);
  if (!status) say(s, trial->seed, "training");
  if (!status) status = train(&w, trial, s, error);
  if (!status && !cli_stop_signal()) {
    say(s, trial->seed, "evaluating");
    status = evaluate(&w, trial, error);
    if (!status && draw)
      status = cli_overview(picture, w.model, w.data, w.lengthy, w.far, cli_threads(w.settings), error);
  }
  free_work(&w);
  return status;
}

/* ---- All trials ---- */

/* Looks before anything is written, so that a refusal leaves all as it was. */
static dvbf_status refuse_former(const study *s, dvbf_error *error) {
  static const char *const names[] = {"data.h5", "long.h5", ("run/" CLI_MODEL)};
  cli_path folder, path;
  cli_join(path, s->folder, "results.json");
  dvbf_status status = cli_refuse_existing(path, s->force, error);
  for (size_t i = 0; !status && i < s->n_trials; i++)
    for (size_t j = 0; !status && j < sizeof names / sizeof *names; j++) {
      trial_folder(folder, s, s->first_seed + i);
      cli_join(path, folder, names[j]);
      status = cli_refuse_existing(path, s->force, error);
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

static dvbf_status finish(const cli_trial *trials, const study *s, bool as_json, dvbf_error *error) {
  json_t *json = cli_comparison_json(trials, s->n_trials);
  dvbf_status status = write_results(json, s->folder, error);
  if (!status && as_json)
    cli_print_json(json);
  else if (!status)
    cli_print_comparison(trials, s->n_trials);
  if (!status && !s->quiet) fprintf(stderr, "%s: data, run, results.json and overview.png\n", s->folder);
  json_decref(json);
  return status;
}

static dvbf_status run_study(const study *s, bool as_json, dvbf_error *error) {
  cli_trial *trials = calloc(s->n_trials, sizeof *trials);
  if (!trials) return cli_fail(error, DVBF_MEMORY, "out of memory for %zu seeds", s->n_trials);
  dvbf_status status = refuse_former(s, error);
  if (!status) status = cli_make_folder(s->folder, error);
  for (size_t i = 0; !status && !cli_stop_signal() && i < s->n_trials; i++) {
    trials[i].seed = s->first_seed + i;
    status = run_trial(&trials[i], s, i == 0, error);
  }
  if (!status && !cli_stop_signal()) status = finish(trials, s, as_json, error);
  for (size_t i = 0; i < s->n_trials; i++) json_decref(trials[i].test), json_decref(trials[i].lengthy);
  free(trials);
  return status;
}

/* ---- The command ---- */

static dvbf_status read_seeds(study *s, const cli_options *options, dvbf_error *error) {
  char seed[32], *end;
  const char *text = cli_option(options, "seeds");
  unsigned long count = text ? strtoul(text, &end, 10) : 1;
  if (text && (end == text || *end || count < 1 || count > 1000))
    return cli_fail(error, DVBF_ARGUMENT,
                    "seeds = %.60s: must be a whole number in [1, 1000]; the default is 1", text);
  dvbf_status status = dvbf_settings_get(s->settings, "seed", seed, sizeof seed, error);
  s->n_trials = count;
  s->first_seed = strtoull(seed, NULL, 10);
  return status;
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  study s = {.system = options->arguments[0],
             .force = cli_option(options, "force"),
             .quiet = cli_option(options, "quiet")};
  dvbf_status status = cli_check_system(s.system, systems, error);
  if (!status) status = cli_option_needed(&s.folder, options, "output", error);
  if (!status) status = cli_options_settings(&settings, options, "train", error);
  s.settings = settings;
  if (!status) status = read_seeds(&s, options, error);
  if (!status) status = run_study(&s, cli_option(options, "json"), error);
  dvbf_settings_free(settings);
  return status;
}

const cli_command cli_reproduce = {
    .name = "reproduce",
    .synopsis = "pendulum -o FOLDER [--seeds COUNT] [--seed FIRST] [--SETTING VALUE ...]",
    .help = "simulate, train and evaluate the paper's experiment, and print our numbers beside the paper's",
    .details = "\nFOLDER receives data.h5, long.h5 (test sequences of 45 frames), run/, results.json and "
               "overview.png.\n"
               "With several seeds each has its own folder seed-N in it; the picture is of the first.",
    .arguments = arguments,
    .flags = flags,
    .tables = tables,
    .presets = true,
    .run = run,
};
