/* dvbf reproduce: the paper's experiments from data to report. */
#include "options.h"
#include "results.h"
#include "study.h"
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

static const char *const systems[] = {"pendulum", "ball", "two-balls", "all", NULL};
static const cli_example examples[] = {
    {"dvbf reproduce pendulum -o demo", "the paper's first experiment"},
    {"dvbf reproduce all -o paper --seeds 3", "all of them, three times each"},
    {0},
};

/* ---- All experiments ---- */

/* Looks before anything is written, so that a refusal leaves all as it was. */
static dvbf_status refuse_former(const cli_work *w, dvbf_error *error) {
  static const char *const results[] = {"results.json", "report.html", "figures"};
  static const char *const names[] = {"data.h5", "long.h5", "overview.png", ("run/" CLI_MODEL),
                                      ("run-dkf/" CLI_MODEL)};
  cli_path folder, path;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; !status && i < sizeof results / sizeof *results; i++) {
    cli_join(path, w->folder, results[i]);
    status = cli_refuse_existing(path, w->force, error);
  }
  for (size_t k = 0; !status && k < w->n_studies; k++)
    for (size_t i = 0; !status && i < w->n_seeds; i++)
      for (size_t j = 0; !status && j < sizeof names / sizeof *names; j++) {
        cli_study_folder(folder, w, &w->studies[k], w->first_seed + i);
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
static json_t *results_json(const cli_work *w) {
  json_t *all = json_object();
  for (size_t k = 0; k < w->n_studies; k++) {
    const cli_study *s = &w->studies[k];
    if (!s->outcome[0].count) continue;
    json_t *models = json_array();
    for (size_t m = 0; m < s->n_models; m++) json_array_append_new(models, cli_outcome_json(&s->outcome[m]));
    json_object_set_new(all, s->experiment->system, models);
  }
  return all;
}

/* Runs one experiment and keeps the numbers of all seeds that are done, whatever happens to the next. */
static dvbf_status run_study(cli_work *w, size_t index, dvbf_error *error) {
  dvbf_error second;
  dvbf_status status = cli_study_run(&w->studies[index], w, error);
  json_t *json = results_json(w);
  if (json_object_size(json) && write_results(json, w->folder, status ? &second : error) && !status)
    status = error->status;
  json_decref(json);
  return status;
}

static dvbf_status finish(const cli_work *w, bool as_json, dvbf_error *error) {
  cli_path report;
  json_t *json = results_json(w);
  cli_join(report, w->folder, "report.html");
  dvbf_status status = dvbf_page_write(w->page, report, error);
  if (!status && as_json) cli_print_json(json);
  for (size_t k = 0; !status && !as_json && k < w->n_studies; k++)
    cli_print_outcomes(w->studies[k].outcome, w->studies[k].n_models);
  if (!status && !w->quiet)
    fprintf(stderr, "%s: data, runs, results.json, report.html and figures\n", w->folder);
  json_decref(json);
  return status;
}

static dvbf_status run_work(cli_work *w, bool as_json, dvbf_error *error) {
  cli_join(w->figures, w->folder, "figures");
  dvbf_status status = refuse_former(w, error);
  if (!status) status = cli_make_folder(w->figures, error); /* and the folder above it */
  if (!status)
    status = dvbf_page_new(&w->page, "Deep Variational Bayes Filters: the paper's experiments", error);
  for (size_t k = 0; !status && !cli_stop_signal() && k < w->n_studies; k++) status = run_study(w, k, error);
  if (!status && !cli_stop_signal()) status = finish(w, as_json, error);
  dvbf_page_free(w->page);
  return status;
}

/* ---- The command ---- */

static dvbf_status read_seeds(cli_work *w, const cli_options *options, dvbf_error *error) {
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

/* A preset of the user's stands for its model alone; without one all models of the experiment have ours, and
 * settings on top of these must leave each the model that it is. */
static dvbf_status plan_model(cli_study *s, const cli_options *options, int which, const char *preset,
                              dvbf_error *error) {
  char model[16] = "";
  size_t m = s->n_models++;
  dvbf_status status = cli_options_settings_from(&s->settings[m], options, "train", preset, error);
  if (!status) status = dvbf_settings_get(s->settings[m], "model", model, sizeof model, error);
  if (status) return status;
  bool dkf = !strcmp(model, "dkf");
  if (dkf && !s->experiment->contender[1].name)
    return cli_fail(error, DVBF_ARGUMENT,
                    "model = dkf: the paper has none for %s; train and evaluate it instead",
                    s->experiment->system);
  if (!s->preset && dkf != (which == 1))
    return cli_fail(
        error, DVBF_ARGUMENT,
        "model = %s: %s is compared with its rival; choose one with --preset pendulum or dkf-pendulum", model,
        s->experiment->system);
  if (s->preset) which = dkf;
  s->outcome[m] = (cli_outcome){.experiment = s->experiment, .contender = which, .preset = preset};
  return DVBF_OK;
}

static dvbf_status plan_study(cli_study *s, const cli_work *w, const cli_options *options, bool all,
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

static dvbf_status plan(cli_work *w, const cli_options *options, dvbf_error *error) {
  const char *system = options->arguments[0];
  bool all = !strcmp(system, "all");
  dvbf_status status = cli_check_system(system, systems, error);
  if (!status) status = cli_option_needed(&w->folder, options, "output", error);
  for (int i = 0; !status && i < CLI_EXPERIMENTS; i++) {
    if (!all && strcmp(system, cli_experiments[i].system) != 0) continue;
    cli_study *s = &w->studies[w->n_studies++];
    s->experiment = &cli_experiments[i];
    status = plan_study(s, w, options, all, error);
  }
  return status ? status : read_seeds(w, options, error);
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  cli_work w = {.force = cli_option(options, "force"), .quiet = cli_option(options, "quiet")};
  dvbf_status status = plan(&w, options, error);
  if (!status) status = run_work(&w, cli_option(options, "json"), error);
  for (size_t k = 0; k < w.n_studies; k++) cli_study_free(&w.studies[k]);
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
    .examples = examples,
    .arguments = arguments,
    .choices = systems,
    .flags = flags,
    .tables = tables,
    .presets = true,
    .run = run,
};
