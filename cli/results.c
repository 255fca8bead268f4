#include "results.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double cli_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

unsigned cli_threads(const dvbf_settings *settings) {
  char text[32] = "0";
  dvbf_settings_get(settings, "threads", text, sizeof text, NULL);
  unsigned threads = (unsigned)strtoul(text, NULL, 10);
  cpu_set_t cores;
  if (threads) return threads;
  return sched_getaffinity(0, sizeof cores, &cores) ? 1 : (unsigned)CPU_COUNT(&cores);
}

/* ---- Tables ---- */

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

bool cli_shown(size_t step, size_t count) {
  enum { SHORT = 25, FIRST = 10 };
  size_t digit = step;
  while (digit >= 10 && digit % 10 == 0) digit /= 10;
  return count <= SHORT || step <= FIRST || step == count || digit == 1 || digit == 2 || digit == 3 ||
         digit == 5;
}

static void print_prediction(const dvbf_evaluation *e) {
  if (!e->horizon) {
    printf("\nThe sequences are not longer than the observed frames, so nothing is predicted.\n");
    return;
  }
  double unit = e->pixel_variance > 0 ? e->pixel_variance : 1;
  printf("\nSquared error of prediction from %zu frames, over the variance of x, %.4g\n", e->observed,
         e->pixel_variance);
  printf("  %-12s %12s %12s %18s\n", "steps ahead", "samples", "mean path", "last frame again");
  for (size_t i = 0; i < e->horizon; i++) {
    if (!cli_shown(i + 1, e->horizon)) continue;
    printf("  %-12zu %12.4f %12.4f %18.4f\n", i + 1, e->mse[i] / unit, e->mse_mean_path[i] / unit,
           e->mse_repeat[i] / unit);
  }
}

void cli_print_evaluation(const dvbf_evaluation *evaluation, const dvbf_model_info *model) {
  print_regressions(evaluation);
  print_bound(evaluation, model);
  print_prediction(evaluation);
}

/* ---- JSON ---- */

json_t *cli_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_numbers(const double *values, size_t count) {
  json_t *array = json_array();
  for (size_t i = 0; i < count; i++) json_array_append_new(array, cli_number(values[i]));
  return array;
}

static json_t *regression_json(const dvbf_evaluation *e) {
  json_t *object = json_object();
  for (size_t i = 0; i < e->n_regressions; i++) {
    const dvbf_regression *r = &e->regressions[i];
    json_t *entry =
        json_pack("{s:o, s:o}", "r2", cli_number(r->r2), "log_likelihood", cli_number(r->log_likelihood));
    if (json_object_set_new(object, r->name, entry)) {
      json_decref(object);
      return NULL;
    }
  }
  return object;
}

static json_t *bound_json(const dvbf_evaluation *e) {
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "elbo", cli_number(e->elbo), "elbo_deviation",
                   cli_number(e->elbo_deviation), "reconstruction", cli_number(e->reconstruction), "kl_w",
                   cli_number(e->kl_w), "kl_v", cli_number(e->kl_v), "particles", (json_int_t)e->particles,
                   "importance", cli_number(e->importance_bound), "particle_filter",
                   cli_number(e->particle_bound));
}

static json_t *prediction_json(const dvbf_evaluation *e) {
  json_t *horizon = json_array();
  for (size_t i = 0; i < e->horizon; i++) json_array_append_new(horizon, json_integer((json_int_t)i + 1));
  return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "observed", (json_int_t)e->observed, "horizon", horizon,
                   "mse", cli_numbers(e->mse, e->horizon), "mse_mean_path",
                   cli_numbers(e->mse_mean_path, e->horizon), "mse_repeat",
                   cli_numbers(e->mse_repeat, e->horizon), "pixel_variance", cli_number(e->pixel_variance));
}

json_t *cli_evaluation_json(const dvbf_evaluation *evaluation, const dvbf_model_info *model, double seconds,
                            unsigned threads) {
  return json_pack("{s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:I}", "regression", regression_json(evaluation),
                   "bound", bound_json(evaluation), "prediction", prediction_json(evaluation), "updates",
                   (json_int_t)model->updates, "seconds", cli_number(seconds), "parameters",
                   (json_int_t)model->parameters, "seed", (json_int_t)model->seed, "threads",
                   (json_int_t)threads);
}

void cli_print_json(const json_t *json) {
  json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
  printf("\n");
}
