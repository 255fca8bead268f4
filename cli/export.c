/* dvbf export: a trained filter or controller as code for a robot or a simulator. The ending of the file's
 * name selects the format. */
#include "inputs.h"
#include "options.h"

#include <dvbf/export.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell_c(const char *path, const dvbf_export_result *r) {
  fprintf(stderr, "%s: %zu bytes of constants, %zu of state, %zu of intermediate results", path,
          r->constant_bytes, r->state_bytes, r->stack_bytes);
  if (r->multiplications > 0) fprintf(stderr, ", %.0f multiplications for a step", r->multiplications);
  fprintf(stderr, "\n");
  if (isfinite(r->rmse_rounded) && r->rmse > 0)
    fprintf(stderr, "Rounded weights: one-step error %.4g standard deviations, unrounded %.4g (%+.2f %%)\n",
            r->rmse_rounded, r->rmse, 100 * (r->rmse_rounded / r->rmse - 1));
}

static void tell_fmu(const char *path, const dvbf_export_result *r) {
  fprintf(stderr, "%s: FMI 2.0, Co-Simulation, a sample every %g s, %s\n", path, r->sample_time,
          r->binary ? "sources and a binary for this machine"
                    : "only sources, as no C compiler was found (CC, or cc)");
}

static void tell_path(const char *path, const dvbf_export_result *r) {
  (void)r;
  fprintf(stderr, "%s: written\n", path);
}

typedef dvbf_status export_fn(const char *path, const dvbf_model *model, const dvbf_settings *settings,
                              const dvbf_export_options *options, dvbf_export_result *result,
                              dvbf_error *error);

/* The format selected by a file's ending. */
typedef struct format {
  const char *ending;
  export_fn *write;
  void (*tell)(const char *path, const dvbf_export_result *result);
} format;

static const format formats[] = {{".c", dvbf_export_c, tell_c},
                                 {".fmu", dvbf_export_fmu, tell_fmu},
                                 {".py", dvbf_export_casadi, tell_path},
                                 {".onnx", dvbf_export_onnx, tell_path}};
enum { FORMATS = sizeof formats / sizeof *formats };

static const format *format_of(const char *path, dvbf_error *error) {
  const char *dot = strrchr(path, '.');
  for (size_t i = 0; dot && i < FORMATS; i++)
    if (!strcmp(dot, formats[i].ending)) return &formats[i];
  dv_report(error, DVBF_ARGUMENT, "%.200s: the name of the file must end in .c, .fmu, .py or .onnx", path);
  return NULL;
}

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

/* The filter and, with a goal, a controller on it. A known state is regressed on the training sequences. */
static dvbf_status write(const format *of, const char *path, const cli_inputs *in, const cli_options *options,
                         const dvbf_export_options *how, dvbf_export_result *result, dvbf_error *error) {
  const char *goal = cli_option(options, "goal");
  dvbf_settings *control = NULL;
  cli_goal wanted = {0};
  if (!goal) return of->write(path, in->model, in->settings, how, result, error);
  if (of->write != dvbf_export_c)
    return dv_fail(error, DVBF_ARGUMENT, "a controller (--goal) is exported as C: %.200s must end in .c",
                   path);
  const dvbf_sequences *known = in->data && !cli_option(options, "split") ? &in->data->train : in->sequences;
  dvbf_status status = read_control(&control, options, error);
  if (!status) status = cli_goal_read(&wanted, goal, in->model, control, known, error);
  if (!status)
    status = dvbf_export_controller(path, in->model, &wanted.goal, control, in->settings, how, result, error);
  cli_goal_free(&wanted);
  dvbf_settings_free(control);
  return status;
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  const char *path = NULL, *given = options->arguments[0];
  cli_inputs in = {0};
  dvbf_export_result result;
  bool check = cli_option(options, "check"), quiet = cli_option(options, "quiet");
  const format *of = NULL;
  dvbf_status status = cli_option_needed(&path, options, "output", error);
  if (!status && !(of = format_of(path, error))) status = DVBF_ARGUMENT;
  if (!status) status = cli_inputs_read(&in, options, error);
  dvbf_export_options how = {.run = cli_is_folder(given) ? given : NULL,
                             .data = in.data,
                             .sequences = in.sequences,
                             .data_path = cli_option(options, "data"),
                             .force = cli_option(options, "force")};
  if (!status) status = write(of, path, &in, options, &how, &result, error);
  if (!status && !quiet) of->tell(path, &result);
  if (!status && check) status = dvbf_export_check(path, error);
  if (!status && check && !quiet)
    fprintf(stderr, "The test of %zu steps passes, to %.1g.\n", result.vectors, result.tolerance);
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
        "NAME.fmu is an FMU of FMI 2.0 for Co-Simulation: the filter, or the system itself (--as). NAME.py\n"
        "contains transition and observation as CasADi functions. NAME.onnx is a step of the filter.\n"
        "The same run and settings give identical files. A model that cannot filter is refused.",
    .examples = {{"dvbf export run -o filter.c --check",
                  "filter.c, filter.h and filter_test.c; run the test"},
                 {"dvbf export run -o plant.fmu --as plant --sample-time 0.01",
                  "the learned system, for Simulink and other simulators"},
                 {"dvbf export run -o filter.c --weights int8 --data bench.csv",
                  "a quarter of the flash; print the loss of accuracy"},
                 {"dvbf export run -o swing.c --goal goal.npz --low -5 --high 5 --check",
                  "also the controller of `dvbf control`"}},
    .arguments = {"RUN"},
    .flags = {{'o', "output", "FILE",
               "file to write: NAME.c, with its header and its test, or NAME.fmu, NAME.py, NAME.onnx"},
              {0, "data", "DATA",
               "sequences for column names, inputs of the test, and the loss from rounded weights"},
              CLI_FLAG_GOAL,
              {0, "check", NULL, "compile and run the test of NAME.c with the C compiler (CC, or cc)"},
              CLI_FLAG_FORCE,
              CLI_FLAG_QUIET},
    .tables = {"export", "data", "control"},
    .run = run,
};
