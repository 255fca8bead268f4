/* dvbf evaluate: regressions on known states, bounds, errors of prediction, stability and verdict of a
 * trained model, as text or JSON. */
#include "inputs.h"
#include "output.h"
#include "progress.h"
#include "ranks.h"

#include <dvbf/report.h>
#include <math.h>
#include <stdio.h>

static void print_regressions(const dvbf_evaluation *e) {
  if (!e->n_regressions) {
    printf("No ground truth in the data, so no regression on the true state.\n");
    return;
  }
  printf("Linear regression of the true state on z\n");
  printf("  %-20s %16s %10s\n", "", "log-likelihood", "R^2");
  for (size_t i = 0; i < e->n_regressions; i++) {
    const dvbf_regression *r = &e->regressions[i];
    char likelihood[CLI_RESULT], r2[CLI_RESULT];
    printf("  %-20s %16s %10s\n", r->name, cli_result(likelihood, "%.1f", r->log_likelihood),
           cli_result(r2, "%.4f", r->r2));
  }
}

static void print_bound(const dvbf_evaluation *e, const dvbf_model_info *model) {
  printf("\nLower bound in nats per frame\n");
  printf("  %-20s %16s %10s %10s\n", "bound", "= reconstruction", model->n_w ? "- KL of w" : "- KL of z",
         "- KL of v");
  const double values[] = {e->elbo, e->elbo_deviation, e->reconstruction,
                           e->kl_w, e->kl_v,           e->importance_bound};
  char text[6][CLI_RESULT], bound[2 * CLI_RESULT + 8];
  for (int i = 0; i < 6; i++) cli_result(text[i], "%.2f", values[i]);
  snprintf(bound, sizeof bound, "%s +- %s", text[0], text[1]);
  printf("  %-20s %16s %10s %10s\n", bound, text[2], text[3], text[4]);
  if (e->particles) printf("  %-20s by %zu weighted paths\n", text[5], e->particles);
  if (isfinite(e->particle_bound))
    printf("  %-20.2f by a particle filter of %zu\n", e->particle_bound, e->particles);
}

static void print_prediction(const dvbf_evaluation *e) {
  if (!e->horizon) {
    printf("\nNo predictions: the sequences have no frames after the observed ones.\n");
    return;
  }
  const struct {
    const char *name, *format;
    const double *values;
    double unit;
  } columns[] = {{"samples", "%.4f", e->mse, e->pixel_variance},
                 {"noise-free", "%.4f", e->mse_mean_path, e->pixel_variance},
                 {"persistence", "%.4f", e->mse_repeat, e->pixel_variance},
                 {"linear", "%.4f", e->mse_linear, e->pixel_variance},
                 {"distance", "%.2f", e->distance, 1},
                 {"persistence", "%.2f", e->distance_repeat, 1}};
  size_t count = sizeof columns / sizeof *columns;
  char text[CLI_RESULT];
  printf("\nSquared error of prediction from %zu frames, over the variance of x, %s\n  %-12s %8s",
         e->observed, cli_result(text, "%.4g", e->pixel_variance), "steps ahead", "origins");
  for (size_t k = 0; k < count; k++)
    if (columns[k].values) printf(" %12s", columns[k].name);
  for (size_t i = 0; i < e->horizon; i++) {
    if (!cli_shown(i + 1, e->horizon)) continue;
    printf("\n  %-12zu %8zu", i + 1, e->origins[i]);
    for (size_t k = 0; k < count; k++)
      if (columns[k].values)
        printf(" %12s", cli_result(text, columns[k].format,
                                   columns[k].values[i] / (columns[k].unit > 0 ? columns[k].unit : 1)));
  }
  printf("\n");
  if (e->distance)
    printf("Distance of the object from its true position, in pixels: below one for %.1f predicted frames.\n",
           e->steps_near);
}

static void print_stability(const dvbf_stability *s) {
  printf("\nStability: %s\n", s->sentence);
  for (size_t i = 0; s->n_members > 1 && i < s->n_members; i++)
    printf("  member %zu: %s\n", i + 1, s->members[i].sentence);
}

static void print_text(const dvbf_evaluation *evaluation, const dvbf_model_info *model) {
  print_regressions(evaluation);
  print_bound(evaluation, model);
  print_prediction(evaluation);
  if (evaluation->stability) print_stability(evaluation->stability);
  if (!evaluation->verdict) return;
  printf("\n");
  cli_print_verdict(evaluation->verdict);
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  double began = cli_seconds();
  cli_inputs in;
  dvbf_evaluation *evaluation = NULL;
  char *json = NULL;
  bool as_json = cli_option(options, "json"), first = !cli_rank();
  dvbf_status status = cli_inputs_read(&in, options, error);
  if (!status) dvbf_settings_ranks(in.settings, cli_ranks());
  if (!status) status = dvbf_evaluate(&evaluation, in.model, in.data, in.sequences, in.settings, error);
  if (!status && as_json && first)
    status = dvbf_evaluation_json(&json, evaluation, in.model, in.settings, cli_seconds() - began, error);
  if (!status && first && as_json)
    puts(json);
  else if (!status && first)
    print_text(evaluation, &in.info);
  dvbf_text_free(json);
  dvbf_evaluation_free(evaluation);
  cli_inputs_free(&in);
  return status;
}

const cli_command cli_evaluate = {
    .name = "evaluate",
    .synopsis = "RUN DATA ... [--json] [--SETTING VALUE ...]",
    .help = "measure a model: prediction errors, likelihood bounds, regression on the true state",
    .details = CLI_HELP_RUN_DATA
    "With --particles the likelihood is also estimated from weighted paths of the recognition model and,\n"
    "if the model can filter, by a particle filter. Both are lower bounds too, tighter with more particles.\n"
    "\n"
    "The verdict compares the model with the mean of the training data, the last value and, if training\n"
    "found one, the best linear model: one step ahead at every step, and in free runs under the recorded\n"
    "controls, from the first steps of each sequence and from up to ten origins in a long recording. Of\n"
    "large data only a part is used.\n"
    "\n"
    "Stability: can predictions explode? A model of linear systems contracts if in some norm no mixture\n"
    "of them increases the difference of two states, which --contraction of dvbf train ensures. Otherwise\n"
    "its states are bounded by --state-limit, or not at all.",
    .examples = {{"dvbf evaluate run pendulum.h5", "evaluate on the test sequences"},
                 {"dvbf evaluate run pendulum.h5 --particles 1000", "add tighter bounds on the likelihood"},
                 {"dvbf evaluate run own.h5 --split all --observe 10 --json",
                  "all of a file without splits, as JSON"}},
    .arguments = {"RUN", "DATA"},
    .many = true,
    .flags = {CLI_FLAG_JSON, CLI_FLAG_RANKS, CLI_FLAG_QUIET},
    .shared = true,
    .tables = {"evaluate", "data"},
    .run = run,
};
