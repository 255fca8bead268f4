/* Results as text or JSON, and the verdict printed by train, evaluate and predict (cli_judge,
 * cli_print_verdict). Lack of memory for JSON is recorded, since jansson silently leaves parts out. */
#include "output.h"

#include "command.h"
#include "ranks.h"

#include <dvbf/report.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON and tables ---- */

static bool json_short;

static void *json_memory(size_t size) {
  void *memory = malloc(size);
  if (!memory) __atomic_store_n(&json_short, true, __ATOMIC_RELAXED);
  return memory;
}

void cli_json_watch(void) {
  json_set_alloc_funcs(json_memory, free);
}

bool cli_json_short(void) {
  return __atomic_load_n(&json_short, __ATOMIC_RELAXED);
}

json_t *cli_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_numbers(const double *values, size_t count) {
  json_t *array = json_array();
  for (size_t i = 0; i < count; i++) json_array_append_new(array, cli_number(values[i]));
  return array;
}

void cli_print_json(json_t *json) {
  json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
  printf("\n");
  json_decref(json);
}

const char *cli_result(char out[CLI_RESULT], const char *format, double value) {
  if (isfinite(value) && fabs(value) >= 1e9) format = strstr(format, "%%") ? "%.3g %%" : "%.3g";
  if (!isfinite(value)) format = isnan(value) ? "-" : "diverged";
  snprintf(out, CLI_RESULT, format, value);
  return out;
}

bool cli_shown(size_t step, size_t count) {
  enum { SHORT = 25, FIRST_STEPS = 10 };
  size_t digit = step;
  while (digit >= 10 && digit % 10 == 0) digit /= 10;
  return count <= SHORT || step <= FIRST_STEPS || step == count || digit == 1 || digit == 2 || digit == 3 ||
         digit == 5;
}

/* ---- Verdict ---- */

enum { SHOWN = 16 }; /* columns that are printed one by one */

static void print_number(const char *format, double value) {
  char text[CLI_RESULT];
  printf(" %10s", cli_result(text, format, value));
}

static void print_line(const char *name, double one, double fit_one, double far, double fit_far) {
  printf("  %-22s", name);
  print_number("%.4g", one);
  print_number("%.1f %%", fit_one);
  printf("  ");
  print_number("%.4g", far);
  print_number("%.1f %%", fit_far);
  printf("\n");
}

static void print_ways(const dvbf_verdict *v) {
  static const char *const names[DVBF_WAYS] = {"mean", "last value", "best linear model", "learned"};
  for (int way = 0; way < DVBF_WAYS; way++) {
    const dvbf_score *one = &v->one_step.score[way], *far = &v->free_run.score[way];
    if (way == DVBF_BY_LINEAR && isnan(one->rmse) && isnan(far->rmse)) continue;
    print_line(names[way], one->rmse, one->fit, far->rmse, far->fit);
  }
}

/* Errors of the learned model, in units of the columns. */
static void print_columns(const dvbf_verdict *v) {
  const dvbf_score *one = &v->one_step.score[DVBF_BY_LEARNED], *far = &v->free_run.score[DVBF_BY_LEARNED];
  if (v->n_x > SHOWN) return;
  for (size_t k = 0; k < v->n_x; k++) {
    char name[48];
    snprintf(name, sizeof name, "  %s, learned", v->names[k]);
    print_line(name, one->rmse_by_column[k], one->fit_by_column[k], far->rmse_by_column[k],
               far->fit_by_column[k]);
  }
}

static void print_calibration(const dvbf_verdict *v) {
  const dvbf_rolling *one = &v->one_step, *far = &v->free_run;
  if (!isnan(one->coverage_90) || !isnan(far->coverage_90)) {
    printf("  inside 50 %% / 90 %%     ");
    for (int i = 0; i < 2; i++) {
      const dvbf_rolling *r = i ? far : one;
      char text[32] = "-";
      if (!isnan(r->coverage_90))
        snprintf(text, sizeof text, "%.0f %% / %.0f %%", 100 * r->coverage_50, 100 * r->coverage_90);
      printf("%21s%s", text, i ? "\n" : "  ");
    }
  }
  if (!isnan(v->whiteness.outside) && isfinite(one->score[DVBF_BY_LEARNED].rmse))
    printf("  Autocorrelations of the one-step errors up to lag %d: %.0f %% are outside +-%.2g, the 95 %% "
           "band of white\n"
           "  noise.\n",
           DVBF_LAGS, 100 * v->whiteness.outside, v->whiteness.band);
}

void cli_print_verdict(const dvbf_verdict *v) {
  if (v->one_step.origins || v->free_run.origins) {
    printf("Error in standard deviations of the training data, and fit relative to the mean\n");
    printf("  %-22s %21s   %21s\n  %-22s", "", "one step", "free run", "");
    printf(" %10s %10s   %10s %10s\n", "error", "fit", "error", "fit");
    print_ways(v);
    print_columns(v);
    print_calibration(v);
    if (v->free_run.origins)
      printf("  Free runs start at %zu origin%s and last up to %zu steps.\n", v->free_run.origins,
             v->free_run.origins == 1 ? "" : "s", v->free_run.steps);
  }
  if (!isnan(v->nats.learned)) {
    printf("Negative log-likelihood in nats per frame, over %zu frames\n", v->nats.frames);
    char text[CLI_RESULT];
    printf("  %-22s %10s\n", "independent columns", cli_result(text, "%.4g", v->nats.mean));
    if (!isnan(v->nats.last))
      printf("  %-22s %10s\n", "chains of columns", cli_result(text, "%.4g", v->nats.last));
    printf("  %-22s %10s at most\n", "learned", cli_result(text, "%.4g", v->nats.learned));
  }
  printf("Verdict: %s\n", v->sentence);
}

dvbf_status cli_print_results(json_t *json, const dvbf_verdict *verdict, dvbf_error *error) {
  char *text = NULL;
  dvbf_status status = verdict ? dvbf_verdict_json(&text, verdict, error) : DVBF_OK;
  json_t *more = text ? json_loads(text, 0, NULL) : NULL;
  if (text && (!more || json_object_update(json, more)))
    status = dv_fail(error, DVBF_MEMORY, "out of memory while writing the verdict");
  if (status)
    json_decref(json);
  else
    cli_print_json(json);
  json_decref(more);
  dvbf_text_free(text);
  return status;
}

dvbf_status cli_judge(dvbf_verdict **out, const dvbf_model *model, const dvbf_data *data,
                      const dvbf_sequences *sequences, const dvbf_settings *like, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  char threads[32];
  dvbf_status status = dvbf_settings_new(&settings, "evaluate", error);
  if (!status) status = dvbf_settings_get(like, "threads", threads, sizeof threads, error);
  if (!status) status = dvbf_settings_set(settings, "threads", threads, error);
  if (!status) dvbf_settings_ranks(settings, cli_ranks());
  if (!status) status = dvbf_verdict_new(out, model, data, sequences, settings, error);
  dvbf_settings_free(settings);
  return status;
}
