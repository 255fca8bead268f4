#include "comparison.h"

#include "results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of Tables 1 and 2 of the paper for DVBF-LL; NAN where it gives none. */
static const struct {
  const char *heading, *key;
  int decimals;
  double paper;
} columns[CLI_COLUMNS] = {
    [CLI_SIN_LIKELIHOOD] = {"sin loglik", "sin_log_likelihood", 1, 3990.8},
    [CLI_SIN_R2] = {"sin R^2", "sin_r2", 3, 0.961},
    [CLI_COS_LIKELIHOOD] = {"cos loglik", "cos_log_likelihood", 1, 7231.1},
    [CLI_COS_R2] = {"cos R^2", "cos_r2", 3, 0.982},
    [CLI_VELOCITY_LIKELIHOOD] = {"velo. loglik", "velocity_log_likelihood", 1, -11139},
    [CLI_VELOCITY_R2] = {"velo. R^2", "velocity_r2", 3, 0.916},
    [CLI_BOUND] = {"bound", "elbo", 2, 798.56},
    [CLI_RECONSTRUCTION] = {"reconstr.", "reconstruction", 2, 802.06},
    [CLI_KL] = {"KL", "kl", 2, 3.50},
    [CLI_ERROR_SHORT] = {"frames 6-15", "error_6_15", 4, NAN},
    [CLI_ERROR_LONG] = {"frames 6-45", "error_6_45", 4, NAN},
    [CLI_SECONDS] = {"seconds", "seconds", 1, NAN},
    [CLI_STARTS] = {"starts", "starts", 0, NAN},
};

/* ---- Filling ---- */

int cli_state_column(const dvbf_data *data, const char *prefix) {
  for (size_t i = 0; i < data->test.n_s; i++)
    if (!strncmp(data->state_names[i], prefix, strlen(prefix))) return (int)i;
  return -1;
}

/* Error along the mean path, averaged over the predicted frames, as a share of the pixel variance. */
static double mean_error(const dvbf_evaluation *e) {
  double sum = 0;
  for (size_t i = 0; i < e->horizon; i++) sum += e->mse_mean_path[i];
  return sum / (double)e->horizon / e->pixel_variance;
}

void cli_compare(cli_trial *trial, const dvbf_data *data, const dvbf_evaluation *test,
                 const dvbf_evaluation *lengthy) {
  static const char *const prefixes[] = {"sin", "cos", "vel"};
  for (int i = 0; i < 3; i++) {
    int column = cli_state_column(data, prefixes[i]);
    bool known = column >= 0 && (size_t)column < test->n_regressions;
    trial->values[CLI_SIN_LIKELIHOOD + 2 * i] = known ? test->regressions[column].log_likelihood : NAN;
    trial->values[CLI_SIN_R2 + 2 * i] = known ? test->regressions[column].r2 : NAN;
  }
  trial->values[CLI_BOUND] = test->elbo;
  trial->values[CLI_RECONSTRUCTION] = test->reconstruction;
  trial->values[CLI_KL] = test->kl_w + test->kl_v;
  trial->values[CLI_ERROR_SHORT] = mean_error(test);
  trial->values[CLI_ERROR_LONG] = mean_error(lengthy);
}

/* ---- Over the seeds ---- */

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

enum { SMALLEST, MEDIAN, LARGEST, STATISTICS };
static const char *const statistic_names[STATISTICS] = {"min", "median", "max"};

static void statistics(double out[STATISTICS], const cli_trial *trials, size_t count, int column) {
  double *sorted = malloc((count + 1) * sizeof *sorted);
  for (int s = 0; s < STATISTICS; s++) out[s] = NAN;
  if (!sorted) return;
  for (size_t i = 0; i < count; i++) sorted[i] = trials[i].values[column];
  qsort(sorted, count, sizeof *sorted, ascending);
  out[SMALLEST] = sorted[0];
  out[MEDIAN] = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
  out[LARGEST] = sorted[count - 1];
  free(sorted);
}

/* ---- Tables ---- */

static void print_cell(int column, double value) {
  if (isfinite(value))
    printf("%14.*f", columns[column].decimals, value);
  else
    printf("%14s", "-");
}

static void print_table(const char *title, int first, int last, const cli_trial *trials, size_t count) {
  printf("%s\n  %-10s", title, "");
  for (int c = first; c <= last; c++) printf("%14s", columns[c].heading);
  if (isfinite(columns[first].paper)) {
    printf("\n  %-10s", "paper");
    for (int c = first; c <= last; c++) print_cell(c, columns[c].paper);
  }
  for (size_t i = 0; i < count; i++) {
    printf("\n  seed %-5llu", (unsigned long long)trials[i].seed);
    for (int c = first; c <= last; c++) print_cell(c, trials[i].values[c]);
  }
  for (int s = 0; count > 1 && s < STATISTICS; s++) {
    printf("\n  %-10s", statistic_names[s]);
    for (int c = first; c <= last; c++) {
      double values[STATISTICS];
      statistics(values, trials, count, c);
      print_cell(c, values[s]);
    }
  }
  printf("\n\n");
}

void cli_print_comparison(const cli_trial *trials, size_t count) {
  print_table("Table 1: linear regression of the true state on z, 500 test sequences of 15 frames",
              CLI_SIN_LIKELIHOOD, CLI_VELOCITY_R2, trials, count);
  print_table("Table 2: bound = reconstruction - KL (of w and v), nats per frame", CLI_BOUND, CLI_KL, trials,
              count);
  print_table("Prediction from 5 frames along the mean path, squared error over pixel variance",
              CLI_ERROR_SHORT, CLI_ERROR_LONG, trials, count);
  print_table("Training", CLI_SECONDS, CLI_STARTS, trials, count);
}

/* ---- JSON ---- */

static json_t *row(const double values[CLI_COLUMNS]) {
  json_t *object = json_object();
  for (int c = 0; c < CLI_COLUMNS; c++) json_object_set_new(object, columns[c].key, cli_number(values[c]));
  return object;
}

static json_t *paper_row(void) {
  double values[CLI_COLUMNS];
  for (int c = 0; c < CLI_COLUMNS; c++) values[c] = columns[c].paper;
  return row(values);
}

json_t *cli_comparison_json(const cli_trial *trials, size_t count) {
  json_t *seeds = json_array(), *object = json_object();
  for (size_t i = 0; i < count; i++)
    json_array_append_new(seeds, json_pack("{s:I, s:o, s:O, s:O}", "seed", (json_int_t)trials[i].seed,
                                           "summary", row(trials[i].values), "test", trials[i].test, "long",
                                           trials[i].lengthy));
  json_object_set_new(object, "paper", paper_row());
  json_object_set_new(object, "seeds", seeds);
  for (int s = 0; s < STATISTICS; s++) {
    double values[CLI_COLUMNS], all[STATISTICS];
    for (int c = 0; c < CLI_COLUMNS; c++) {
      statistics(all, trials, count, c);
      values[c] = all[s];
    }
    json_object_set_new(object, statistic_names[s], row(values));
  }
  return object;
}
