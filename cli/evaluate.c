/* dvbf evaluate: the numbers of the paper's tables for a trained model. */
#include "inputs.h"
#include "ranks.h"
#include "results.h"
#include "verdict.h"

#include <dvbf/report.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

static void print_regressions(const dvbf_evaluation *e) {
  if (!e->n_regressions) {
    printf("No ground truth in the data, so no regression on it.\n");
    return;
  }
  printf("Linear regression of the true state on z\n");
  printf("  %-20s %16s %10s\n", "", "log-likelihood", "R^2");
  for (size_t i = 0; i < e->n_regressions; i++)
    printf("  %-20s %16.1f %10.4f\n", e->regressions[i].name, e->regressions[i].log_likelihood,
           e->regressions[i].r2);
}

static void print_bound(const dvbf_evaluation *e, const dvbf_model_info *model) {
  printf("\nLower bound in nats per frame\n");
  printf("  %-20s %16s %10s %10s\n", "bound", "= reconstruction", model->n_w ? "- KL of w" : "- KL of z",
         "- KL of v");
  char bound[64];
  snprintf(bound, sizeof bound, "%.2f +- %.2f", e->elbo, e->elbo_deviation);
  printf("  %-20s %16.2f %10.2f %10.2f\n", bound, e->reconstruction, e->kl_w, e->kl_v);
  if (e->particles) printf("  %-20.2f by %zu weighted paths\n", e->importance_bound, e->particles);
  if (isfinite(e->particle_bound))
    printf("  %-20.2f by a particle filter of %zu\n", e->particle_bound, e->particles);
}

static void print_prediction(const dvbf_evaluation *e) {
  if (!e->horizon) {
    printf("\nThe sequences are not longer than the observed frames, so nothing is predicted.\n");
    return;
  }
  double unit = e->pixel_variance > 0 ? e->pixel_variance : 1;
  printf("\nSquared error of prediction from %zu frames, over the variance of x, %.4g\n", e->observed,
         e->pixel_variance);
  printf("  %-12s %12s %12s %12s%s\n", "steps ahead", "samples", "noise-free", "persistence",
         e->distance ? "       distance  persistence" : "");
  for (size_t i = 0; i < e->horizon; i++) {
    if (!cli_shown(i + 1, e->horizon)) continue;
    printf("  %-12zu %12.4f %12.4f %12.4f", i + 1, e->mse[i] / unit, e->mse_mean_path[i] / unit,
           e->mse_repeat[i] / unit);
    if (e->distance) printf("   %12.2f %12.2f", e->distance[i], e->distance_repeat[i]);
    printf("\n");
  }
  if (e->distance)
    printf("The distance is that of the object from its true place, in pixels. It stays below one for %.1f "
           "predicted frames.\n",
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

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  double began = seconds_now();
  cli_inputs in;
  dvbf_evaluation *evaluation = NULL;
  char *json = NULL;
  bool as_json = cli_option(options, "json"), first = !cli_rank();
  dvbf_status status = cli_inputs_read(&in, options, error);
  if (!status) dvbf_settings_ranks(in.settings, cli_ranks());
  if (!status) status = dvbf_evaluate(&evaluation, in.model, in.data, in.sequences, in.settings, error);
  if (!status && as_json && first)
    status = dvbf_evaluation_json(&json, evaluation, in.model, in.settings, seconds_now() - began, error);
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
    .help = "measure the prediction error of a model, its bound and the regression on the true state",
    .details = CLI_HELP_RUN_DATA
    "With --particles the likelihood is also estimated by paths from the recognition model,\n"
    "weighted by how much likelier they are under the model, and by a particle filter (where\n"
    "the model can filter). Both are bounds too, and closer with more of them.\n\n"
    "The verdict sets the model beside the mean of the training data, the last value and, where\n"
    "training found one, the best linear model: one step ahead at every step, and in free runs\n"
    "under the recorded controls, from the first steps of each sequence and from up to ten places\n"
    "of a long recording. Large data are judged in part.\n\n"
    "Stability says whether predictions can explode. A model of linear systems contracts if there\n"
    "is a norm in which no mixture of them stretches the difference of two states; --contraction\n"
    "of dvbf train makes it so. Otherwise --state-limit bounds its states, or nothing does.",
    .examples = {{"dvbf evaluate run pendulum.h5", "on the test sequences"},
                 {"dvbf evaluate run pendulum.h5 --particles 1000", "and closer bounds on the likelihood"},
                 {"dvbf evaluate run own.h5 --split all --observe 10 --json",
                  "all of a file without splits, for scripts"}},
    .arguments = {"RUN", "DATA"},
    .many = true,
    .flags = {CLI_FLAG_JSON, CLI_FLAG_RANKS, CLI_FLAG_QUIET},
    .shared = true,
    .tables = {"evaluate", "data"},
    .run = run,
};
