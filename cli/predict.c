/* dvbf predict: what follows the observed frames, and how far that is from what followed. */
#include "estimates.h"
#include "ranks.h"
#include "results.h"
#include "verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 16 }; /* columns that are printed one by one */

typedef struct errors {
  double all, *by_column, *by_step; /* root mean squares, NaN where nothing is known */
} errors;

static dvbf_status measure(errors *r, const dvbf_estimates *e, const dvbf_sequences *s, dvbf_error *error) {
  r->by_column = calloc(e->n_x, sizeof *r->by_column);
  r->by_step = calloc(e->steps, sizeof *r->by_step);
  if (!r->by_column || !r->by_step)
    return cli_fail(error, DVBF_MEMORY, "out of memory while comparing with the data");
  return dvbf_estimates_rmse(&r->all, r->by_column, r->by_step, e, s, error);
}

/* `names` of the columns of x; NULL: they have none. */
static void print_errors(const errors *r, const dvbf_estimates *e, char (*names)[32]) {
  if (!isfinite(r->all)) {
    printf("The data end with the observed steps, so there is nothing to compare with.\n");
    return;
  }
  printf("Root mean square error of x, %zu sequence%s predicted from %zu steps\n", e->count,
         e->count == 1 ? "" : "s", e->first);
  for (size_t k = 0; k < e->n_x && e->n_x > 1 && e->n_x <= SHOWN; k++) {
    char name[32];
    snprintf(name, sizeof name, "x%zu", k);
    printf("  %-20s %12.6g\n", names ? names[k] : name, r->by_column[k]);
  }
  printf("  %-20s %12.6g\n\n  %-20s %12s\n", "all", r->all, "steps ahead", "error");
  size_t known = e->steps;
  while (known && !isfinite(r->by_step[known - 1])) known--;
  for (size_t t = 0; t < known; t++)
    if (isfinite(r->by_step[t]) && cli_shown(t + 1, known)) printf("  %-20zu %12.6g\n", t + 1, r->by_step[t]);
}

static dvbf_status print_json(const errors *r, const dvbf_estimates *e, const dvbf_verdict *v,
                              dvbf_error *error) {
  json_t *json =
      json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "sequences", (json_int_t)e->count, "samples",
                (json_int_t)e->samples, "observed", (json_int_t)e->first, "steps", (json_int_t)e->steps,
                "rmse", cli_number(r->all), "rmse_by_column", cli_numbers(r->by_column, e->n_x),
                "rmse_by_step", cli_numbers(r->by_step, e->steps));
  dvbf_status status = v ? cli_add_verdict(json, v, error) : DVBF_OK;
  if (status)
    json_decref(json);
  else
    cli_print_json(json);
  return status;
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  cli_inputs in;
  dvbf_estimates *estimates = NULL;
  dvbf_verdict *verdict = NULL;
  errors r = {0};
  const char *from = cli_option(options, "from");
  /* Beyond the end of the recordings there is nothing to judge by: the file is all there is. */
  bool as_json = cli_option(options, "json"), ahead = from && !strcmp(from, "end");
  dvbf_status status = cli_estimate(&in, &estimates, options, ahead, error);
  if (!status) status = measure(&r, estimates, in.sequences, error);
  if (!status && !ahead) status = cli_judge(&verdict, in.model, in.data, in.sequences, in.settings, error);
  bool first = !cli_rank();
  if (!status && first && as_json) status = print_json(&r, estimates, verdict, error);
  if (!status && first && !as_json && !ahead) {
    print_errors(&r, estimates, in.data->x_names);
    printf("\n");
    cli_print_verdict(verdict);
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
    .help = "predict what follows the first steps of each sequence, or what follows a recording",
    .details = CLI_HELP_RUN_DATA
    "The first K steps are observed, then T are predicted under the inputs in the data. The error of\n"
    "the mean prediction against the data, in their units, goes to standard output, and then how the\n"
    "model does from many origins beside simpler ways to predict (see evaluate).\n\n"
    "With --from end the prediction begins behind the last known output of each recording: a forecast.\n"
    "The inputs of the steps to forecast are planned in DATA: rows of a CSV file whose output cells are\n"
    "empty, or an array u that is longer than x. Where DATA end with the outputs, say how far with\n"
    "--steps and what acts with --controls hold (the last input goes on) or --controls zero. The whole\n"
    "file is used, also what was held out in training.\n\n" CLI_HELP_FILE
    "  x_quantiles [Q, N, T, ...], quantiles [Q]\n"
    "  x_samples   [N, S, T, ...]  with --x-samples\n" CLI_HELP_ORIGIN,
    .examples = {{"dvbf predict run bench.csv --from end --steps 100 --controls hold -o forecast.csv",
                  "the next 100 steps after a recording, while the last input goes on"},
                 {"dvbf predict run planned.csv --from end -o forecast.csv",
                  "under the inputs that are planned in rows without outputs"},
                 {"dvbf predict run pendulum.h5 --observe 5 --steps 10", "how far off predictions are"},
                 {"dvbf predict run bench.csv --observe 50 --steps 200 -o future.npz",
                  "the predictions themselves, for NumPy"}},
    .arguments = {"RUN", "DATA"},
    .many = true,
    .flags = {CLI_FLAG_ARRAYS, CLI_FLAG_JSON, CLI_FLAG_FORCE, CLI_FLAG_RANKS, CLI_FLAG_QUIET},
    .tables = {"predict", "data"},
    .shared = true,
    .run = run,
};
