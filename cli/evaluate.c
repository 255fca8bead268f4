/* dvbf evaluate: the numbers of the paper's tables for a trained model. */
#include "files.h"
#include "options.h"
#include "results.h"
#include "training.h"

#include <stdio.h>
#include <string.h>

static const char *const tables[] = {"evaluate", NULL};
static const char *const arguments[] = {"RUN", "DATA", NULL};
static const cli_flag flags[] = {CLI_FLAG_JSON, CLI_FLAG_QUIET, {0}};

/* RUN is a run folder or a model file. */
static dvbf_status load_model(dvbf_model **out, const char *run, dvbf_error *error) {
  cli_path path;
  if (!cli_is_folder(run)) return dvbf_model_load(out, run, error);
  cli_join(path, run, CLI_MODEL);
  return dvbf_model_load(out, path, error);
}

static const dvbf_sequences *choose_split(const dvbf_data *data, const dvbf_settings *settings) {
  char split[16] = "";
  dvbf_settings_get(settings, "split", split, sizeof split, NULL);
  return !strcmp(split, "train") ? &data->train : !strcmp(split, "valid") ? &data->valid : &data->test;
}

static dvbf_status print_json(const dvbf_evaluation *evaluation, const dvbf_model_info *info, double seconds,
                              unsigned threads, dvbf_error *error) {
  json_t *json = cli_evaluation_json(evaluation, info, seconds, threads);
  if (!json)
    return cli_fail(error, DVBF_FORMAT,
                    "the results cannot be written as JSON; is a state's name not UTF-8?");
  cli_print_json(json);
  json_decref(json);
  return DVBF_OK;
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  double began = cli_clock();
  dvbf_settings *settings = NULL;
  dvbf_model *model = NULL;
  dvbf_data *data = NULL;
  dvbf_evaluation *evaluation = NULL;
  dvbf_model_info info = {0};
  dvbf_status status = cli_options_settings(&settings, options, "evaluate", error);
  if (!status) status = load_model(&model, options->arguments[0], error);
  if (!status) {
    /* The seed of training splits a file without splits as it was split then: what was held out stays so. */
    info = dvbf_model_describe(model);
    status = dvbf_data_read(&data, options->arguments[1], info.seed, error);
  }
  if (!status)
    status = dvbf_evaluate(&evaluation, model, data, choose_split(data, settings), settings, error);
  if (!status && cli_option(options, "json"))
    status = print_json(evaluation, &info, cli_clock() - began, cli_threads(settings), error);
  else if (!status)
    cli_print_evaluation(evaluation, &info);
  dvbf_evaluation_free(evaluation);
  dvbf_data_free(data);
  dvbf_model_free(model);
  dvbf_settings_free(settings);
  return status;
}

const cli_command cli_evaluate = {
    .name = "evaluate",
    .synopsis = "RUN DATA [--json] [--SETTING VALUE ...]",
    .help = "measure the bound, the regression on the true state and the prediction error of a model",
    .details = "\nRUN is a run folder or a model file, DATA an HDF5 file.",
    .arguments = arguments,
    .flags = flags,
    .tables = tables,
    .run = run,
};
