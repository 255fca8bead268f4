/* dvbf export: a trained filter or controller as code for a robot or a simulator. The ending of the file's
 * name selects the target (dvbf_export_target). */
#include "inputs.h"
#include "options.h"

#include <dvbf/export.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Settings of the controller. Here --samples belongs to the exported filter, not to the controller. */
static dvbf_status read_control(dvbf_settings **out, const cli_options *options, dvbf_error *error) {
  cli_options others = *options;
  others.pairs = calloc(options->n_pairs + 1, sizeof *others.pairs);
  if (!others.pairs) return dv_fail(error, DVBF_MEMORY, "out of memory while reading settings");
  others.n_pairs = 0;
  for (size_t i = 0; i < options->n_pairs; i++)
    if (strcmp(options->pairs[i].name, "samples") != 0) others.pairs[others.n_pairs++] = options->pairs[i];
  dvbf_status status = cli_options_settings(out, &others, "control", error);
  free(others.pairs);
  return status;
}

/* The goal and settings of a controller. A known state is regressed on the training sequences. */
static dvbf_status read_goal(cli_goal *out, dvbf_export_options *how, dvbf_settings **control,
                             const cli_inputs *in, const cli_options *options, dvbf_error *error) {
  const char *goal = cli_option(options, "goal");
  const dvbf_sequences *known = in->data && !cli_option(options, "split") ? &in->data->train : in->sequences;
  if (!goal) return DVBF_OK;
  dvbf_status status = read_control(control, options, error);
  if (!status) status = cli_goal_read(out, goal, in->model, *control, known, error);
  how->goal = &out->goal;
  how->control = *control;
  return status;
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  const char *path = NULL, *given = options->arguments[0];
  cli_inputs in = {0};
  cli_goal goal = {0};
  dvbf_settings *control = NULL;
  dvbf_export_result result = {.prefix = ""};
  bool check = cli_option(options, "check"), quiet = cli_option(options, "quiet");
  dvbf_status status = cli_option_needed(&path, options, "output", error);
  if (!status) status = cli_inputs_read(&in, options, error);
  dvbf_export_options how = {.run = cli_is_folder(given) ? given : NULL,
                             .data = in.data,
                             .sequences = in.sequences,
                             .data_path = cli_option(options, "data"),
                             .force = cli_option(options, "force")};
  if (!status) status = read_goal(&goal, &how, &control, &in, options, error);
  if (!status) status = dvbf_export(path, in.model, in.settings, &how, &result, error);
  if (!status && !quiet) fprintf(stderr, "%s: %s\n", path, result.summary);
  if (!status && check) status = dvbf_export_check(path, error);
  if (!status && check && !quiet)
    fprintf(stderr, "The test of %zu steps passes, to %.1g.\n", result.vectors, result.tolerance);
  cli_goal_free(&goal);
  dvbf_settings_free(control);
  cli_inputs_free(&in);
  return status;
}

const cli_command cli_export = {
    .name = "export",
    .synopsis = "RUN -o FILE [--data DATA] [--check] [--SETTING VALUE ...]",
    .help = "write a trained filter as plain C, or as FMU, CasADi or ONNX",
    .details =
        "\nRUN is a run folder or a model file. NAME.c is one C99 file that needs only <math.h>, allocates "
        "nothing\n"
        "and has no global state; NAME.h declares its functions, and NAME_test.c compares them with this "
        "library.\n"
        "Function names begin with NAME, or --prefix:\n"
        "\n"
        "  NAME_reset, NAME_step    the filter: mean and deviation of z, forecast of x\n"
        "  NAME_predict             forecasts under given controls\n"
        "  NAME_sampled_...         the same with samples of z, as in this library\n"
        "  NAME_transition          the next z and its derivatives by z and u\n"
        "  NAME_observe             x at z and its derivative\n"
        "\n"
        "With --goal, --low and --high, as in `dvbf control`, NAME_control.c is a controller on this "
        "filter:\n"
        "NAME_control_reset, NAME_control_step.\n"
        "\n"
        "The same run and settings give identical files. A model that cannot filter is refused.",
    .examples = {{"dvbf export run -o filter.c --check",
                  "filter.c, filter.h and filter_test.c; run the test"},
                 {"dvbf export run -o plant.fmu --as plant --sample-time 0.01",
                  "the learned system, for Simulink and other simulators"},
                 {"dvbf export run -o filter.c --weights int8 --data bench.csv",
                  "a quarter of the flash; print the loss of accuracy"},
                 {"dvbf export run -o swing.c --goal goal.npz --low -5 --high 5 --check",
                  "also the controller of `dvbf control`"}},
    .list = dvbf_export_target,
    .list_title = "Targets, by the ending of the file",
    .arguments = {"RUN"},
    .flags = {{'o', "output", "FILE", "file to write; its ending selects the target"},
              {0, "data", "DATA",
               "sequences for column names, inputs of the test, and the loss from rounded weights"},
              CLI_FLAG_GOAL,
              {0, "check", NULL, "compile and run the test of NAME.c with the C compiler (CC, or cc)"},
              CLI_FLAG_FORCE,
              CLI_FLAG_QUIET},
    .tables = {"export", "data", "control"},
    .run = run,
};
