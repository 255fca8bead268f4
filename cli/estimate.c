/* dvbf filter, smooth, predict and sample: from settings and files to estimates in a file
 * (estimate_and_write), with the errors of a prediction and its verdict. `filter --follow` is in follow.c. */
#include "follow.h"
#include "inputs.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Help on the contents of result files. */
#define CLI_HELP_FILE                                                                                        \
  "A .csv file has one row per step: sequence, name, split, step, time; for each column of x its mean\n"     \
  "(NAME), NAME_std, quantiles (NAME_q05, ...) and the value in the data (NAME_true); the inputs; after\n"   \
  "filter and smooth also the states (z0, z0_std, ...). Other files contain, for N sequences, S samples\n"   \
  "and T steps\n"                                                                                            \
  "  z        [N, S, T, n_z] samples of the state\n"                                                         \
  "  z_mean   [N, T, n_z]    their mean, and z_std their standard deviation\n"                               \
  "  x        [N, T, ...]    mean of the observation over the samples (images as images), and x_std\n"
#define CLI_HELP_ORIGIN                                                                                      \
  "  x_true   [N, T, ...]    x of the data, NaN if unknown\n"                                                \
  "  u        [N, T, n_u]    the inputs, if any\n"                                                           \
  "  sequence [N], name [N]  number (from 0) and name of each sequence in DATA, and its split\n"             \
  "  step     [N]            step (from 0) of the sequence at which the results begin\n"                     \
  "  time     [N, T]         if DATA contain times: seconds, or seconds since 1970 (time_unit)\n"            \
  "  x_names, x_units, u_names, u_units, sample_time, if known"

/* ---- Estimates ---- */

static dvbf_status write_file(const dvbf_estimates *e, const cli_inputs *in, const cli_options *options,
                              const char *path, dvbf_error *error) {
  dvbf_status status = dvbf_estimates_write(e, options->command->name, in->data, in->sequences, path, error);
  if (status || cli_option(options, "quiet")) return status;
  fprintf(stderr, "%s: %zu sequence%s of %zu steps\n", path, e->count, e->count == 1 ? "" : "s", e->steps);
  return DVBF_OK;
}

static dvbf_status estimate(const cli_inputs *in, dvbf_estimates **out, bool quiet, dvbf_error *error) {
  cli_share share = cli_share_new();
  dvbf_status status = dvbf_estimate_with(out, in->model, in->sequences, in->settings,
                                          quiet ? NULL : cli_share_show, &share, error);
  cli_share_end(&share);
  return status;
}

/* Reads the inputs, estimates, and writes the arrays if --output is given; `needed`: it must be. Free with
 * cli_inputs_free and dvbf_estimates_free, also after a failure. */
static dvbf_status estimate_and_write(cli_inputs *in, dvbf_estimates **out, const cli_options *options,
                                      bool needed, dvbf_error *error) {
  const char *path = cli_option(options, "output");
  *in = (cli_inputs){0};
  dvbf_status status = needed ? cli_option_needed(&path, options, "output", error) : DVBF_OK;
  if (!status && path) status = dvbf_estimates_check_path(path, error);
  if (!status && path) status = dv_refuse_existing(path, cli_option(options, "force"), error);
  if (!status) status = cli_inputs_read(in, options, error);
  if (!status) dvbf_settings_ranks(in->settings, cli_ranks());
  if (!status) status = estimate(in, out, cli_rank() || cli_option(options, "quiet"), error);
  if (!status && path && !cli_rank()) status = write_file(*out, in, options, path, error);
  return status;
}

/* The whole work of a command that prints no results. */
static dvbf_status run_estimate(const cli_options *options, dvbf_error *error) {
  cli_inputs in;
  dvbf_estimates *estimates = NULL;
  dvbf_status status = estimate_and_write(&in, &estimates, options, true, error);
  dvbf_estimates_free(estimates);
  cli_inputs_free(&in);
  return status;
}

/* ---- predict ---- */

enum { SHOWN = 16 }; /* columns that are printed one by one */

typedef struct errors {
  double all, *by_column, *by_step; /* root mean squares, NaN if nothing is known */
} errors;

static dvbf_status measure(errors *r, const dvbf_estimates *e, const dvbf_sequences *s, dvbf_error *error) {
  r->by_column = calloc(e->n_x, sizeof *r->by_column);
  r->by_step = calloc(e->steps, sizeof *r->by_step);
  if (!r->by_column || !r->by_step)
    return dv_fail(error, DVBF_MEMORY, "out of memory while comparing with the data");
  return dvbf_estimates_rmse(&r->all, r->by_column, r->by_step, e, s, error);
}

/* `names` of the columns of x; NULL: they have none. */
static void print_errors(const errors *r, const dvbf_estimates *e, char (*names)[32]) {
  char text[CLI_RESULT];
  if (isnan(r->all)) {
    printf("The data end with the observed steps, so there is nothing to compare with.\n");
    return;
  }
  printf("Root mean square error of x, %zu sequence%s predicted from %zu steps\n", e->count,
         e->count == 1 ? "" : "s", e->first);
  for (size_t k = 0; k < e->n_x && e->n_x > 1 && e->n_x <= SHOWN; k++) {
    char name[32];
    snprintf(name, sizeof name, "x%zu", k);
    printf("  %-20s %12s\n", names ? names[k] : name, cli_result(text, "%.6g", r->by_column[k]));
  }
  printf("  %-20s %12s\n\n  %-20s %12s\n", "all", cli_result(text, "%.6g", r->all), "steps ahead", "error");
  size_t known = e->steps;
  while (known && isnan(r->by_step[known - 1])) known--;
  for (size_t t = 0; t < known; t++)
    if (!isnan(r->by_step[t]) && cli_shown(t + 1, known))
      printf("  %-20zu %12s\n", t + 1, cli_result(text, "%.6g", r->by_step[t]));
}

static dvbf_status print_json(const errors *r, const dvbf_estimates *e, const dvbf_verdict *v,
                              dvbf_error *error) {
  json_t *json =
      json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "sequences", (json_int_t)e->count, "samples",
                (json_int_t)e->samples, "observed", (json_int_t)e->first, "steps", (json_int_t)e->steps,
                "rmse", cli_number(r->all), "rmse_by_column", cli_numbers(r->by_column, e->n_x),
                "rmse_by_step", cli_numbers(r->by_step, e->steps));
  return cli_print_results(json, v, error);
}

static dvbf_status run_predict(const cli_options *options, dvbf_error *error) {
  cli_inputs in;
  dvbf_estimates *estimates = NULL;
  dvbf_verdict *verdict = NULL;
  errors r = {0};
  const char *from = cli_option(options, "from");
  /* Past the end of the recordings there are no errors: the file is the only result. */
  bool as_json = cli_option(options, "json"), ahead = from && !strcmp(from, "end");
  if (ahead && cli_option(options, "verdict"))
    return dv_fail(error, DVBF_ARGUMENT,
                   "--verdict compares with known values, but there are none after the end; leave out "
                   "--verdict or --from end");
  dvbf_status status = estimate_and_write(&in, &estimates, options, ahead, error);
  if (!status) status = measure(&r, estimates, in.sequences, error);
  if (!status && cli_option(options, "verdict"))
    status = cli_judge(&verdict, in.model, in.data, in.sequences, in.settings, error);
  bool first = !cli_rank();
  if (!status && first && as_json) status = print_json(&r, estimates, verdict, error);
  if (!status && first && !as_json && !ahead) {
    print_errors(&r, estimates, in.data->x_names);
    if (verdict) {
      printf("\n");
      cli_print_verdict(verdict);
    }
  }
  dvbf_verdict_free(verdict);
  free(r.by_column);
  free(r.by_step);
  dvbf_estimates_free(estimates);
  cli_inputs_free(&in);
  return status;
}

const cli_command cli_predict = {
    .name = "predict",
    .synopsis = "RUN DATA ... [-o FILE] [--observe K] [--steps T] [--from end] [--SETTING VALUE ...]",
    .help = "predict the steps after the first ones of each sequence, or forecast after a recording",
    .details = CLI_HELP_RUN_DATA
    "The first K steps are observed and the next T predicted, under the inputs in the data. The error of\n"
    "the mean prediction, in units of the data, is printed. With --verdict, the model is also compared with\n"
    "the baselines (see evaluate).\n"
    "\n"
    "With --from end, predictions start after the last known output of each recording: a forecast. The\n"
    "inputs of the predicted steps are planned in DATA: rows of a CSV file with empty outputs, or an array "
    "u\n"
    "longer than x. If DATA end with the outputs, give the number of steps with --steps and the inputs with\n"
    "--controls: hold (the last input) or zero. All of the file is used, including held-out "
    "data.\n\n" CLI_HELP_FILE "  x_quantiles [Q, N, T, ...], quantiles [Q]\n"
    "  x_samples   [N, S, T, ...]  with --x-samples\n" CLI_HELP_ORIGIN,
    .examples = {{"dvbf predict run bench.csv --from end --steps 100 --controls hold -o forecast.csv",
                  "forecast 100 steps after a recording, holding the last input"},
                 {"dvbf predict run planned.csv --from end -o forecast.csv",
                  "forecast under the inputs planned in rows without outputs"},
                 {"dvbf predict run pendulum.h5 --observe 5 --steps 10", "print the error of predictions"},
                 {"dvbf predict run bench.csv --observe 50 --steps 200 -o future.npz",
                  "write predictions for NumPy"}},
    .arguments = {"RUN", "DATA"},
    .many = true,
    .flags = {CLI_FLAG_ARRAYS,
              {0, "verdict", NULL,
               "compare the model with the mean, the last value and the best linear model"},
              CLI_FLAG_JSON,
              CLI_FLAG_FORCE,
              CLI_FLAG_RANKS,
              CLI_FLAG_QUIET},
    .tables = {"predict", "data"},
    .shared = true,
    .run = run_predict,
};

/* ---- filter ---- */

/* Ranks cannot share a stream. */
static dvbf_status run_filter(const cli_options *options, dvbf_error *error) {
  if (!cli_option(options, "follow")) return run_estimate(options, error);
  return cli_rank() ? DVBF_OK : cli_follow(options, error);
}

const cli_command cli_filter = {
    .name = "filter",
    .synopsis =
        "RUN DATA ... -o FILE [--SETTING VALUE ...] | RUN --follow [--ahead STEPS] [--SETTING VALUE ...]",
    .help = "estimate the state at each step from the frames up to it",
    .details = CLI_HELP_RUN_DATA
    "The estimate at each step uses the frames up to it; the first one uses the frames that the initial\n"
    "network sees (initial-frames of the model). A model that needs later frames, such as the Deep Kalman\n"
    "Filter, cannot filter; see smooth. With --particles, the samples of each step are resampled and do not\n"
    "form paths. With --forecast, x and z are one-step forecasts from the previous frames, starting after\n"
    "the first frames.\n\n" CLI_HELP_FILE "  x_samples [N, S, T, ...] with --x-samples\n"
    "  length   [N]            steps of each sequence, if they differ\n" CLI_HELP_ORIGIN "\n\n"
    "With --follow, each line of standard input is a step: the observation and the control that acts from\n"
    "then on, as CSV fields (x first, or named by a header as in training) or as JSON:\n"
    "{\"x\": [0.5, null], \"u\": [1], \"future\": [[1], [0]]}. An empty field, nan or null is a missing "
    "value; a\n"
    "missing control keeps its previous value. For each line, the belief about z and the forecast of x are\n"
    "written and flushed in the same format. Controls not announced by `future` are held.",
    .examples = {{"dvbf filter run bench.csv -o states.csv",
                  "states of the held-out part of a recording, as a table"},
                 {"dvbf filter run bench.csv --forecast on -o ahead.npz", "one-step forecasts of x"},
                 {"sensor | dvbf filter run --follow --ahead 10",
                  "beliefs and forecasts for a stream of data"}},
    .arguments = {"RUN", "DATA"},
    .many = true,
    .instead = "follow",
    .flags = {CLI_FLAG_ARRAYS,
              {0, "follow", NULL, "read observations from standard input, line by line, instead of DATA"},
              {0, "ahead", "STEPS", "with --follow: steps to forecast after each line; default: 1"},
              {0, "quantiles", "LIST",
               "with --follow: quantiles of the forecast, or none; default: 0.05,0.5,0.95"},
              {0, "json", NULL, "with --follow: write JSON lines even if the input is CSV"},
              CLI_FLAG_FORCE,
              CLI_FLAG_RANKS,
              CLI_FLAG_QUIET},
    .tables = {"filter", "data"},
    .shared = true,
    .run = run_filter,
};

/* ---- smooth ---- */

const cli_command cli_smooth = {
    .name = "smooth",
    .synopsis = "RUN DATA ... -o FILE [--SETTING VALUE ...]",
    .help = "estimate the state at each step from all frames of its sequence",
    .details = CLI_HELP_RUN_DATA
    "Paths are drawn backwards through a particle filter whose particles move by the recognition model, if\n"
    "the density of the transition is known. A model that cannot filter draws paths from q and weights them\n"
    "by their likelihood.\n\n" CLI_HELP_FILE
    "  length   [N]            steps of each sequence, if they differ\n" CLI_HELP_ORIGIN,
    .examples = {{"dvbf smooth run pendulum.h5 -o states.h5",
                  "states of the test sequences, given all frames"},
                 {"dvbf smooth run pendulum.h5 -o states.npz --particles 200 --samples 20",
                  "faster and less accurate"}},
    .arguments = {"RUN", "DATA"},
    .many = true,
    .flags = {CLI_FLAG_ARRAYS, CLI_FLAG_FORCE, CLI_FLAG_RANKS, CLI_FLAG_QUIET},
    .tables = {"smooth", "data"},
    .shared = true,
    .run = run_estimate,
};

/* ---- sample ---- */

const cli_command cli_sample = {
    .name = "sample",
    .synopsis = "RUN -o FILE [--from DATA] [--SETTING VALUE ...]",
    .help = "sample sequences from the model",
    .details = "\nRUN is a run folder or a model file. With --from, sample i continues sequence i of DATA "
               "(modulo their\n"
               "number) after its first frames, under its controls as far as they go.\n"
               "\n"
               "A .csv file has one row per step: sequence, name, split, step, time, x, u and z. Other files "
               "contain,\n"
               "for N samples of T steps\n"
               "  z        [N, T, n_z]    the states\n"
               "  x        [N, T, ...]    the observations, images as images (if RUN is a run folder, or "
               "with --from)\n"
               "  u        [N, T, n_u]    the inputs, if any\n"
               "  x_names, x_units, u_names, u_units, if known; with --from also the sequence of DATA that a "
               "sample\n"
               "  continues (sequence, name, split), its first step (step), and the time of each step",
    .examples = {{"dvbf sample run -o made-up.h5", "sequences from the prior"},
                 {"dvbf sample run -o made-up.h5 --from pendulum.h5", "continuations of given sequences"}},
    .arguments = {"RUN"},
    .flags = {CLI_FLAG_ARRAYS,
              {0, "from", "DATA", "continue sequences of this file instead of starting from the prior"},
              CLI_FLAG_FORCE,
              CLI_FLAG_RANKS,
              CLI_FLAG_QUIET},
    .tables = {"sample", "data"},
    .shared = true,
    .run = run_estimate,
};
