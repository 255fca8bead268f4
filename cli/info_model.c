/* dvbf info of a model. */
#include "files.h"
#include "info.h"
#include "inputs.h"
#include "results.h"
#include "training.h"

#include <dvbf/report.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct view {
  const char *path;
  const dvbf_model *model;
  dvbf_model_info info;
  dvbf_settings *defaults;
  dvbf_metrics *metrics; /* NULL: none */
} view;

/* ---- Settings ---- */

enum { VALUE = 512 };

typedef struct setting {
  dvbf_setting_info info;
  char value[VALUE], initial[VALUE]; /* both as the settings write them */
  bool changed;
} setting;

/* The next setting from `*next` on that belongs to a model; running settings do not. */
static bool next_setting(const view *v, size_t *next, setting *out) {
  while (dvbf_settings_table("train", (*next)++, &out->info)) {
    if (!strcmp(out->info.group, "Running")) continue;
    out->value[0] = out->initial[0] = 0;
    dvbf_settings_get(dvbf_model_settings(v->model), out->info.name, out->value, VALUE, NULL);
    dvbf_settings_get(v->defaults, out->info.name, out->initial, VALUE, NULL);
    out->changed = strcmp(out->value, out->initial) != 0;
    return true;
  }
  return false;
}

/* ---- The validations of a run ---- */

enum { UPDATE, START, BOUND, VALID_BOUND, PREDICTION, KL, FIELDS };
static const char *const field_names[FIELDS] = {"update",           "start",   "bound", "valid_bound",
                                                "valid_prediction", "valid_kl"};
enum { FIRST, BEST, LAST, ROWS };
static const char *const row_names[ROWS] = {"first", "best", "last"};

typedef double row[FIELDS];

static void fill_row(row out, const dvbf_learning_run *r, size_t i) {
  out[UPDATE] = r->update[i];
  out[START] = strtod(r->name + strcspn(r->name, "0123456789"), NULL); /* "start 1" */
  out[BOUND] = r->train_bound[i];
  out[VALID_BOUND] = r->valid_bound[i];
  out[PREDICTION] = r->prediction[i];
  out[KL] = r->kl[i];
}

/* The score by which training kept the best model; higher is better. */
static double score(const row r, bool by_prediction) {
  return by_prediction && isfinite(r[PREDICTION]) ? -r[PREDICTION] : r[VALID_BOUND];
}

static bool kept_by_prediction(const dvbf_model *model) {
  char by[32] = "";
  return !dvbf_settings_get(dvbf_model_settings(model), "keep-by", by, sizeof by, NULL) &&
         !strcmp(by, "prediction");
}

/* Finds the rows to print; returns the number of validations. */
static size_t find_rows(const dvbf_metrics *m, bool by_prediction, row out[ROWS]) {
  size_t count = 0;
  for (size_t k = 0; m && k < m->n_runs; k++)
    for (size_t i = 0; i < m->runs[k].count; i++) {
      row one;
      fill_row(one, &m->runs[k], i);
      if (!count++) memcpy(out[FIRST], one, sizeof one), memcpy(out[BEST], one, sizeof one);
      double best = score(out[BEST], by_prediction);
      if (score(one, by_prediction) > best || isnan(best)) memcpy(out[BEST], one, sizeof one);
      memcpy(out[LAST], one, sizeof one);
    }
  return count;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The bound of a start's validations as a line of bars. The first updates are far below the others, so the
 * lowest tenth has the same height. */
static void print_spark(const dvbf_learning_run *r) {
  static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  enum { HEIGHTS = 8, WIDTH = 60 };
  double *sorted = calloc(r->count + 1, sizeof *sorted);
  size_t n = 0, width = r->count < WIDTH ? r->count : WIDTH;
  for (size_t i = 0; sorted && i < r->count; i++)
    if (isfinite(r->valid_bound[i])) sorted[n++] = r->valid_bound[i];
  if (n > 1) {
    qsort(sorted, n, sizeof *sorted, compare);
    double low = sorted[n / 10], span = sorted[n - 1] - low;
    printf("  %s, bound of the validations from %.5g to %.5g\n  ", r->name, low, sorted[n - 1]);
    for (size_t i = 0; i < width; i++) {
      double at = r->valid_bound[(i + 1) * r->count / width - 1], height = (at - low) / span * HEIGHTS;
      printf("%s", !isfinite(at) ? " "
                                 : bars[!(height > 0)      ? 0
                                        : height < HEIGHTS ? (int)height
                                                           : HEIGHTS - 1]);
    }
    printf("\n");
  }
  free(sorted);
}

/* ---- Text ---- */

static void print_sizes(const view *v) {
  const dvbf_model_info *i = &v->info;
  char model[32] = "";
  dvbf_settings_get(dvbf_model_settings(v->model), "model", model, sizeof model, NULL);
  printf("%s: a %s model after %llu updates\n\n", v->path, model, (unsigned long long)i->updates);
  printf("  %-24s %8zu\n  %-24s %8zu\n  %-24s %8zu\n", "x, columns observed", i->n_x, "u, controls", i->n_u,
         "z, latent state", i->n_z);
  if (i->n_w) printf("  %-24s %8zu\n", "w, innovation", i->n_w);
  printf("  %-24s %8zu\n  %-24s %8llu\n", "parameters", i->parameters, "seed", (unsigned long long)i->seed);
}

static void print_parameters(const view *v) {
  dvbf_parameter_info p;
  printf("\nParameters\n");
  for (size_t i = 0; dvbf_model_parameter(v->model, i, &p); i++) {
    char shape[48];
    snprintf(shape, sizeof shape, "%zu x %zu", p.rows, p.columns);
    printf("  %-34s %14s %10zu%s\n", p.name, shape, p.rows * p.columns, p.trained ? "" : "  not trained");
  }
}

static void print_range(const char *name, const float *values, size_t n) {
  float low = values[0], high = values[0];
  for (size_t i = 0; i < n; i++) {
    if (values[i] < low) low = values[i];
    if (values[i] > high) high = values[i];
  }
  printf(low < high ? "  %s %.6g to %.6g" : "  %s %.6g", name, (double)low, (double)high);
}

/* x' = (x - shift) * scale */
static void print_scaling(char array, const float *shift, const float *scale, size_t n) {
  if (!n) return;
  printf("  %c' = (%c - shift) * scale ", array, array);
  print_range("shift", shift, n);
  print_range("scale", scale, n);
  printf("\n");
  for (size_t i = 0; i < n && n > 1 && n <= CLI_INFO_FEW; i++)
    printf("    %c%-4zu %14.6g %14.6g\n", array, i, (double)shift[i], (double)scale[i]);
}

static void print_settings(const view *v) {
  setting s;
  size_t changed = 0;
  char group[64] = "";
  printf("\nSettings that are not at their default\n");
  for (size_t i = 0; next_setting(v, &i, &s);)
    if (s.changed) printf("  %s = %s  (%s)\n", s.info.name, s.value, s.initial), changed++;
  if (!changed) printf("  none\n");
  for (size_t i = 0; next_setting(v, &i, &s);) {
    if (strcmp(group, s.info.group) != 0) printf("\n%s settings\n", s.info.group);
    snprintf(group, sizeof group, "%s", s.info.group);
    printf("  %s =%s%s\n", s.info.name, *s.value ? " " : "", s.value);
  }
}

static void print_history(const view *v) {
  row rows[ROWS];
  size_t count = find_rows(v->metrics, kept_by_prediction(v->model), rows);
  if (!count) return;
  printf("\nValidations: %zu, in nats per frame and as error over the variance of x\n  %-6s", count, "");
  for (int k = 0; k < FIELDS; k++) printf(" %16s", field_names[k]);
  printf("\n");
  for (int i = 0; i < ROWS; i++) {
    printf("  %-6s", row_names[i]);
    for (int k = 0; k < FIELDS; k++) printf(" %16.9g", rows[i][k]);
    printf("\n");
  }
  for (size_t k = 0; k < v->metrics->n_runs; k++) print_spark(&v->metrics->runs[k]);
}

static void print_text(const view *v) {
  print_sizes(v);
  print_history(v);
  print_parameters(v);
  printf("\nScaling\n");
  print_scaling('x', v->info.x_shift, v->info.x_scale, v->info.n_x);
  print_scaling('u', v->info.u_shift, v->info.u_scale, v->info.n_u);
  print_settings(v);
}

/* ---- JSON ---- */

/* A value as its kind: a number, true or false, or a string; NULL when it is not UTF-8. */
static json_t *value_json(const dvbf_setting_info *info, const char *value) {
  if (!strcmp(info->kind, "int")) return json_integer(strtoll(value, NULL, 10));
  if (!strcmp(info->kind, "real")) return cli_number(strtod(value, NULL));
  if (!strcmp(info->kind, "switch")) return json_boolean(!strcmp(value, "on"));
  return json_string(value);
}

/* All settings, or only those that differ from their default. */
static json_t *settings_json(const view *v, bool changed) {
  json_t *json = json_object();
  setting s;
  for (size_t i = 0; json && next_setting(v, &i, &s);)
    if ((!changed || s.changed) && json_object_set_new(json, s.info.name, value_json(&s.info, s.value))) {
      json_decref(json);
      json = NULL;
    }
  return json;
}

static json_t *parameters_json(const view *v) {
  json_t *json = json_array();
  dvbf_parameter_info p;
  for (size_t i = 0; dvbf_model_parameter(v->model, i, &p); i++)
    json_array_append_new(json, json_pack("{s:s, s:[I, I], s:I, s:b}", "name", p.name, "shape",
                                          (json_int_t)p.rows, (json_int_t)p.columns, "count",
                                          (json_int_t)p.rows * (json_int_t)p.columns, "trained", p.trained));
  return json;
}

static json_t *floats_json(const float *values, size_t n) {
  json_t *json = json_array();
  for (size_t i = 0; i < n; i++) json_array_append_new(json, cli_number((double)values[i]));
  return json;
}

static json_t *scaling_json(const float *shift, const float *scale, size_t n) {
  return json_pack("{s:o, s:o}", "shift", floats_json(shift, n), "scale", floats_json(scale, n));
}

/* A count as an integer; a number of a damaged file that is no count stays a real number. */
static json_t *count_or_number(double value, bool count) {
  return count && fabs(value) < 9e15 ? json_integer((json_int_t)value) : cli_number(value);
}

static json_t *history_json(const view *v) {
  row rows[ROWS];
  size_t count = find_rows(v->metrics, kept_by_prediction(v->model), rows);
  if (!count) return json_null();
  json_t *json = json_pack("{s:I}", "validations", (json_int_t)count);
  for (int i = 0; i < ROWS; i++) {
    json_t *one = json_object();
    for (int k = 0; k < FIELDS; k++)
      json_object_set_new(one, field_names[k], count_or_number(rows[i][k], k <= START));
    json_object_set_new(json, row_names[i], one);
  }
  return json;
}

static dvbf_status print_json(const view *v, dvbf_error *error) {
  const dvbf_model_info *i = &v->info;
  json_t *json = json_pack(
      "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:{s:o, s:o}, s:o, s:o, s:o}", "kind", "model",
      "file", v->path, "n_x", (json_int_t)i->n_x, "n_u", (json_int_t)i->n_u, "n_z", (json_int_t)i->n_z, "n_w",
      (json_int_t)i->n_w, "parameters", (json_int_t)i->parameters, "updates", (json_int_t)i->updates, "seed",
      (json_int_t)i->seed, "tensors", parameters_json(v), "scaling", "x",
      scaling_json(i->x_shift, i->x_scale, i->n_x), "u", scaling_json(i->u_shift, i->u_scale, i->n_u),
      "changed", settings_json(v, true), "settings", settings_json(v, false), "history", history_json(v));
  if (!json)
    return cli_fail(error, DVBF_FORMAT, "%.300s: cannot be told as JSON; is a setting in it not UTF-8?",
                    v->path);
  cli_print_json(json);
  return DVBF_OK;
}

/* ---- Both ---- */

/* If the metrics are damaged, a line says so; the model is described anyway. Metrics that are there and
 * cannot be read now are a failure: a script would take the run for one without. */
static dvbf_status read_metrics(view *v, dvbf_error *error) {
  cli_path path;
  if (!cli_is_folder(v->path)) return DVBF_OK;
  cli_join(path, v->path, CLI_METRICS);
  if (!cli_exists(path)) return DVBF_OK;
  dvbf_error reason = {0};
  dvbf_status status = dvbf_metrics_read(&v->metrics, path, &reason);
  if (status == DVBF_FORMAT) {
    fprintf(stderr, "dvbf: %s\n", reason.message);
    return DVBF_OK;
  }
  if (status && error) *error = reason;
  return status;
}

dvbf_status cli_info_model(const char *path, const cli_options *options, dvbf_error *error) {
  dvbf_model *model = NULL;
  view v = {.path = path};
  dvbf_status status = cli_load_model(&model, path, error);
  if (!status) status = dvbf_settings_new(&v.defaults, "train", error);
  if (!status) {
    v.model = model;
    v.info = dvbf_model_describe(model);
    status = read_metrics(&v, error);
    if (!status && cli_option(options, "json"))
      status = print_json(&v, error);
    else if (!status)
      print_text(&v);
  }
  dvbf_metrics_free(v.metrics);
  dvbf_settings_free(v.defaults);
  dvbf_model_free(model);
  return status;
}
