/* dvbf evaluate: the numbers of the paper's tables for a trained model. */
#include "inputs.h"
#include "results.h"

static const char *const tables[] = {"evaluate", "data", NULL};
static const char *const arguments[] = {"RUN", "DATA", NULL};
static const cli_flag flags[] = {CLI_FLAG_JSON, CLI_FLAG_QUIET, {0}};

static const cli_example examples[] = {
    {"dvbf evaluate run pendulum.h5", "on the test sequences"},
    {"dvbf evaluate run pendulum.h5 --particles 1000", "and closer bounds on the likelihood"},
    {"dvbf evaluate run own.h5 --split all --observe 10 --json", "all of a file without splits, for scripts"},
    {0},
};

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
  cli_inputs in;
  dvbf_status status = cli_inputs_read(&in, options, error);
  if (!status) status = cli_inputs_evaluate(&in, error);
  if (!status && cli_option(options, "json"))
    status = print_json(in.evaluation, &in.info, cli_clock() - began, cli_threads(in.settings), error);
  else if (!status)
    cli_print_evaluation(in.evaluation, &in.info);
  cli_inputs_free(&in);
  return status;
}

const cli_command cli_evaluate = {
    .name = "evaluate",
    .synopsis = "RUN DATA [--json] [--SETTING VALUE ...]",
    .help = "measure the bound, the regression on the true state and the prediction error of a model",
    .details = CLI_HELP_RUN_DATA
    "With --particles the likelihood is also estimated by paths from the recognition model,\n"
    "weighted by how much likelier they are under the model, and by a particle filter (not for a\n"
    "dkf). Both are bounds too, and closer with more of them.",
    .examples = examples,
    .arguments = arguments,
    .flags = flags,
    .tables = tables,
    .run = run,
};
