/* dvbf info: the contents of data files (columns, ranges, gaps, chosen settings) or of a model (sizes,
 * settings, history of its run), as text or as JSON. */
#include "follow.h"
#include "inputs.h"
#include "options.h"
#include "output.h"
#include "progress.h"

#include <dvbf/report.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLI_INFO_FEW = 12 }; /* up to this many columns are listed one by one */

static bool has_mark(const cli_options *options) {
  const char *missing = cli_option(options, "missing");
  return (missing && strcmp(missing, "nan") != 0 && strcmp(missing, "refuse") != 0) ||
         cli_option(options, "missing-value");
}

/* ---- Data ---- */

enum { SPLITS = 3, ARRAYS = 3, NAMES_SHOWN = 8, MOST_CHOICES = 64 };
static const char *const split_names[SPLITS] = {"train", "valid", "test"};
static const char *const array_names[ARRAYS] = {"x", "u", "state"};

/* A chosen setting. */
typedef struct choice {
  char name[64], value[64], was[64], why[128];
} choice;

typedef struct data_view {
  const char *path;
  const dvbf_data *data;
  const dvbf_sequences *sequences[SPLITS];
  dvbf_sequences_info *info[SPLITS]; /* NULL: the split is empty */
  choice choices[MOST_CHOICES];
  size_t n_choices;
  json_t *remarks; /* an array of sentences about all of the data */
  bool marked;     /* read with missing = nan, so NaN may mark missing values */
  bool lost;       /* something was not added to JSON: out of memory, or a name is not UTF-8 */
} data_view;

static const dvbf_columns *array_of(const dvbf_sequences_info *info, int array) {
  const dvbf_columns *arrays[ARRAYS] = {&info->x, &info->u, &info->state};
  return arrays[array];
}

/* Names of the columns of an array; NULL: none. */
static char (*names_of(const data_view *v, int array))[32] {
  char(*names[ARRAYS])[32] = {v->data->x_names, v->data->u_names, v->data->state_names};
  return names[array];
}

/* "" if it is unknown. */
static const char *unit_of(const data_view *v, int array, size_t k) {
  char(*units)[16] = array == 0 ? v->data->x_units : array == 1 ? v->data->u_units : NULL;
  return units ? units[k] : "";
}

static void column_name(char out[32], const data_view *v, int array, size_t k) {
  if (names_of(v, array))
    snprintf(out, 32, "%s", names_of(v, array)[k]);
  else
    snprintf(out, 32, "%s%zu", array_names[array], k);
}

/* Share of `values` that is missing. */
static double missing(const dvbf_column *c, double values) {
  return values > 0 ? 1 - (double)c->seen / values : 0;
}

static bool constant(const dvbf_column *c) {
  return c->seen && c->low == c->high;
}

/* ---- Text ---- */

static void print_column(const char *name, const dvbf_column *c, double values) {
  printf("  %-20s", name);
  if (c->seen)
    printf(" %11.5g %11.5g %11.5g %11.5g", c->low, c->high, c->mean, c->deviation);
  else
    printf(" %11s %11s %11s %11s", "-", "-", "-", "-");
  printf(" %8.3g%%\n", 100 * missing(c, values));
}

static void print_constant(const data_view *v, int array, const dvbf_columns *a) {
  size_t count = 0;
  for (size_t k = 0; k < a->width; k++) {
    char name[32];
    if (!constant(&a->column[k])) continue;
    column_name(name, v, array, k);
    if (!count) printf("  constant in %s:", array_names[array]);
    if (count < NAMES_SHOWN) printf(" %s", name);
    count++;
  }
  if (count > NAMES_SHOWN) printf(" ... (%zu of %zu columns)", count, a->width);
  if (count) printf("\n");
}

/* A name and its unit in brackets. */
static void labelled(char *out, size_t size, const char *before, const char *name, const char *unit) {
  snprintf(out, size, *unit ? "%s%s [%s]" : "%s%s", before, name, unit);
}

static void print_array(const data_view *v, int array, const dvbf_columns *a, double frames) {
  char name[80], column[32];
  if (a->width == 1 && names_of(v, array)) {
    snprintf(column, sizeof column, "%s: ", array_names[array]);
    labelled(name, sizeof name, column, names_of(v, array)[0], unit_of(v, array, 0));
  } else {
    snprintf(name, sizeof name, "%s, %zu column%s", array_names[array], a->width, a->width == 1 ? "" : "s");
  }
  print_column(name, &a->all, frames * (double)a->width);
  for (size_t k = 0; k < a->width && a->width > 1 && a->width <= CLI_INFO_FEW; k++) {
    column_name(column, v, array, k);
    labelled(name, sizeof name, "  ", column, unit_of(v, array, k));
    print_column(name, &a->column[k], frames);
  }
}

static void print_facts(const data_view *v, int split) {
  const dvbf_sequences_info *info = v->info[split];
  for (int i = 0; i < ARRAYS; i++) print_constant(v, i, array_of(info, i));
  if (info->x.binary) printf("  x is binary: every value is 0 or 1\n");
  if (info->x.all.seen < info->frames * info->x.width)
    printf("  %s%s\n",
           info->x.whole ? "where x is missing, it is missing for the whole step"
                         : "single values of x are missing within a step",
           v->marked ? "; if NaN marks missing values, train with --missing nan" : "");
  if (v->sequences[split]->source) printf("  x exceeds --memory and is read from the file piece by piece\n");
}

static void print_split(const data_view *v, int split) {
  const dvbf_sequences_info *info = v->info[split];
  printf("\n%s: %zu sequence%s of ", split_names[split], v->sequences[split]->count,
         v->sequences[split]->count == 1 ? "" : "s");
  if (info->shortest == info->longest)
    printf("%zu steps, %llu in all\n", info->longest, (unsigned long long)info->frames);
  else
    printf("%zu to %zu steps, median %g, %llu in all\n", info->shortest, info->longest, info->median,
           (unsigned long long)info->frames);
  printf("  %-20s %11s %11s %11s %11s %9s\n", "", "min", "max", "mean", "deviation", "missing");
  for (int i = 0; i < ARRAYS; i++)
    if (array_of(info, i)->width) print_array(v, i, array_of(info, i), (double)info->frames);
  print_facts(v, split);
}

static void print_remarks(const data_view *v) {
  if (json_array_size(v->remarks)) printf("\nWarnings\n");
  for (size_t i = 0; i < json_array_size(v->remarks); i++)
    printf("  %s\n", json_string_value(json_array_get(v->remarks, i)));
}

static void print_choices(const data_view *v) {
  if (!v->n_choices) return;
  printf("\nSettings that `dvbf train` chooses from these data\n");
  for (size_t i = 0; i < v->n_choices; i++)
    printf("  %s = %s (%s; default %s)\n", v->choices[i].name, v->choices[i].value, v->choices[i].why,
           v->choices[i].was);
}

/* Sample time, and the use of each part of the file. */
static void print_parts(const dvbf_data *d) {
  if (d->sample_time > 0) printf("sample time %g s\n", d->sample_time);
  if (d->n_uses) printf("\nUse of each part of the file\n");
  for (size_t i = 0; i < d->n_uses; i++) printf("  %-20s %s\n", d->uses[i].name, d->uses[i].role);
}

static void print_data_text(const data_view *v) {
  const dvbf_data *d = v->data;
  printf("%s: data", v->path);
  if (d->image_height)
    printf(", images of %zu x %zu%s", d->image_height, d->image_width,
           d->image_channels == 3 ? " in colour" : "");
  printf("\n");
  print_parts(d);
  for (int i = 0; i < SPLITS; i++) {
    if (v->info[i])
      print_split(v, i);
    else
      printf("\n%s: empty\n", split_names[i]);
  }
  print_remarks(v);
  print_choices(v);
}

/* ---- JSON ---- */

static json_t *column_json(const dvbf_column *c, double values) {
  return json_pack("{s:o, s:o, s:o, s:o, s:o}", "least", cli_number(c->low), "most", cli_number(c->high),
                   "mean", cli_number(c->mean), "deviation", cli_number(c->deviation), "missing",
                   cli_number(missing(c, values)));
}

/* Adds `value`, which is NULL when memory is short or a name in it is not UTF-8. */
static void set(data_view *v, json_t *object, const char *name, json_t *value) {
  v->lost = json_object_set_new(object, name, value) || v->lost;
}

static json_t *array_json(data_view *v, int array, const dvbf_columns *a, double frames) {
  json_t *json = column_json(&a->all, frames * (double)a->width), *columns = json_array();
  set(v, json, "width", json_integer((json_int_t)a->width));
  set(v, json, "binary", json_boolean(a->binary));
  set(v, json, "missing_whole_steps", json_boolean(a->whole));
  for (size_t k = 0; k < a->width; k++) {
    char name[32];
    json_t *column = column_json(&a->column[k], frames);
    column_name(name, v, array, k);
    set(v, column, "name", json_string(name));
    set(v, column, "constant", json_boolean(constant(&a->column[k])));
    set(v, column, "unit", json_string(unit_of(v, array, k)));
    v->lost = json_array_append_new(columns, column) || v->lost;
  }
  set(v, json, "columns", columns);
  return json;
}

static json_t *split_json(data_view *v, int split) {
  const dvbf_sequences_info *info = v->info[split];
  if (!info) return json_pack("{s:i}", "sequences", 0);
  json_t *arrays = json_object();
  for (int i = 0; i < ARRAYS; i++)
    if (array_of(info, i)->width)
      set(v, arrays, array_names[i], array_json(v, i, array_of(info, i), (double)info->frames));
  return json_pack("{s:I, s:{s:I, s:I, s:f, s:I}, s:b, s:o}", "sequences",
                   (json_int_t)v->sequences[split]->count, "steps", "all", (json_int_t)info->frames,
                   "shortest", (json_int_t)info->shortest, "median", info->median, "longest",
                   (json_int_t)info->longest, "piece_by_piece", v->sequences[split]->source != NULL, "arrays",
                   arrays);
}

static json_t *parts_json(const dvbf_data *d) {
  json_t *json = json_object();
  for (size_t i = 0; i < d->n_uses; i++)
    json_object_set_new(json, d->uses[i].name, json_string(d->uses[i].role));
  return json;
}

static json_t *choices_json(const data_view *v) {
  json_t *json = json_object();
  for (size_t i = 0; i < v->n_choices; i++) {
    const choice *c = &v->choices[i];
    json_object_set_new(json, c->name,
                        json_pack("{s:s, s:s, s:s}", "value", c->value, "default", c->was, "why", c->why));
  }
  return json;
}

static dvbf_status print_data_json(data_view *v, dvbf_error *error) {
  const dvbf_data *d = v->data;
  json_t *json = json_pack("{s:s, s:s}", "kind", "data", "file", v->path), *splits = json_object();
  json_t *image = d->image_height
                      ? json_pack("[I, I]", (json_int_t)d->image_height, (json_int_t)d->image_width)
                      : json_null();
  if (d->image_channels == 3) json_array_append_new(image, json_integer(3));
  for (int i = 0; i < SPLITS; i++) set(v, splits, split_names[i], split_json(v, i));
  set(v, json, "image", image);
  set(v, json, "splits", splits);
  set(v, json, "remarks", json_incref(v->remarks));
  set(v, json, "parts", parts_json(d));
  set(v, json, "sample_time", d->sample_time > 0 ? json_real(d->sample_time) : json_null());
  set(v, json, "dates", json_boolean(d->dates));
  set(v, json, "chosen", choices_json(v));
  if (!v->lost) {
    cli_print_json(json);
    return DVBF_OK;
  }
  json_decref(json);
  return dv_fail(error, DVBF_FORMAT, "%.300s: cannot be written as JSON: a name in it is not UTF-8", v->path);
}

/* ---- Both ---- */

/* NaN is accepted, since gaps are reported, unless the user refuses it. */
static dvbf_status read_data(dvbf_data **out, const char *path, const cli_options *options,
                             dvbf_error *error) {
  dvbf_settings *how = NULL;
  dvbf_status status = cli_options_settings(&how, options, "data", error);
  if (!status && !cli_option(options, "missing") && !cli_option(options, "missing-value"))
    status = dvbf_settings_set(how, "missing", "nan", error);
  dvbf_error inner = {0};
  if (!status && (status = cli_data_read(out, path, options, how, &inner))) {
    static const char *const others[] = {"is in an unknown format", "is a text file",
                                         "is a folder without data"};
    bool unknown = false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
      unknown = unknown || strstr(inner.message, others[i]);
    dv_report(error, status, unknown ? "%.400s; it is neither a model nor a run folder" : "%s",
              inner.message);
  }
  dvbf_settings_free(how);
  return status;
}

static void add_choice(const char *name, const char *value, const char *was, const char *why, void *user) {
  data_view *v = user;
  if (v->n_choices == MOST_CHOICES) return;
  choice *c = &v->choices[v->n_choices++];
  snprintf(c->name, sizeof c->name, "%s", name);
  snprintf(c->value, sizeof c->value, "%s", value);
  snprintf(c->was, sizeof c->was, "%s", was);
  snprintf(c->why, sizeof c->why, "%s", why);
}

static void add_remark(const char *sentence, void *user) {
  data_view *v = user;
  v->lost = json_array_append_new(v->remarks, json_string(sentence)) || v->lost;
}

static dvbf_status choose_settings(data_view *v, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_error inner = {0};
  dvbf_status status = dvbf_settings_new(&settings, "train", error);
  dvbf_status suits = status ? DVBF_OK : dvbf_settings_choose(settings, v->data, add_choice, v, &inner);
  dvbf_settings_free(settings);
  if (suits == DVBF_FORMAT || suits == DVBF_ARGUMENT)
    add_remark(inner.message, v); /* the rest is still worth showing */
  else if (suits && error)
    *error = inner, status = suits;
  return status;
}

/* Rows with times may have gaps. */
static bool has_time(const dvbf_data *data) {
  for (size_t i = 0; i < data->n_uses; i++)
    if (!strncmp(data->uses[i].role, "time", 4)) return true;
  return false;
}

static dvbf_status info_data(const char *path, const cli_options *options, dvbf_error *error) {
  dvbf_data *data = NULL;
  dvbf_status status = read_data(&data, path, options, error);
  if (status) return status;
  data_view v = {.path = path,
                 .data = data,
                 .sequences = {&data->train, &data->valid, &data->test},
                 .marked = !has_mark(options) && !has_time(data)};
  for (int i = 0; !status && i < SPLITS; i++)
    if (v.sequences[i]->count) status = dvbf_sequences_describe(&v.info[i], v.sequences[i], error);
  v.remarks = json_array();
  if (*data->question) add_remark(data->question, &v);
  if (!status) status = dvbf_data_warnings(data, add_remark, &v, error);
  if (!status) status = choose_settings(&v, error);
  if (!status && cli_option(options, "json"))
    status = print_data_json(&v, error);
  else if (!status)
    print_data_text(&v);
  json_decref(v.remarks);
  for (int i = 0; i < SPLITS; i++) dvbf_sequences_info_free(v.info[i]);
  dvbf_data_free(data);
  return status;
}

/* ---- Models ---- */

typedef struct model_view {
  const char *path;
  const dvbf_model *model;
  dvbf_model_info info;
  dvbf_settings *defaults;
  dvbf_metrics *metrics; /* NULL: none */
} model_view;

enum { VALUE = 512 };

typedef struct setting {
  dvbf_setting_info info;
  char value[VALUE], initial[VALUE]; /* both as the settings write them */
  bool changed;
} setting;

/* The next setting from `*next` on that belongs to a model, not to running it. */
static bool next_setting(const model_view *v, size_t *next, setting *out) {
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

/* ---- Validations of a run ---- */

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

/* The validation bounds of a start as a line of bars. The lowest tenth has the same height, since the first
 * updates are far below the others. */
static void print_spark(const dvbf_learning_run *r) {
  static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  enum { HEIGHTS = 8, SPARK_WIDTH = 60 };
  double *sorted = calloc(r->count + 1, sizeof *sorted);
  size_t n = 0, width = r->count < SPARK_WIDTH ? r->count : SPARK_WIDTH;
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

static void print_sizes(const model_view *v) {
  const dvbf_model_info *i = &v->info;
  char model[32] = "";
  dvbf_settings_get(dvbf_model_settings(v->model), "model", model, sizeof model, NULL);
  printf("%s: model %s after %llu updates\n\n", v->path, model, (unsigned long long)i->updates);
  printf("  %-24s %8zu\n  %-24s %8zu\n  %-24s %8zu\n", "x, columns observed", i->n_x, "u, controls", i->n_u,
         "z, latent state", i->n_z);
  if (i->n_w) printf("  %-24s %8zu\n", "w, innovation", i->n_w);
  printf("  %-24s %8zu\n  %-24s %8llu\n", "parameters", i->parameters, "seed", (unsigned long long)i->seed);
}

static void print_parameters(const model_view *v) {
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

static void print_settings(const model_view *v) {
  setting s;
  size_t changed = 0;
  char group[64] = "";
  printf("\nSettings that differ from their default\n");
  for (size_t i = 0; next_setting(v, &i, &s);)
    if (s.changed) printf("  %s = %s  (%s)\n", s.info.name, s.value, s.initial), changed++;
  if (!changed) printf("  none\n");
  for (size_t i = 0; next_setting(v, &i, &s);) {
    if (strcmp(group, s.info.group) != 0) printf("\n%s settings\n", s.info.group);
    snprintf(group, sizeof group, "%s", s.info.group);
    printf("  %s =%s%s\n", s.info.name, *s.value ? " " : "", s.value);
  }
}

static void print_history(const model_view *v) {
  row rows[ROWS];
  size_t count = find_rows(v->metrics, kept_by_prediction(v->model), rows);
  if (!count) return;
  printf("\nValidations: %zu; bounds in nats per frame, prediction error over the variance of x\n  %-6s",
         count, "");
  for (int k = 0; k < FIELDS; k++) printf(" %16s", field_names[k]);
  printf("\n");
  for (int i = 0; i < ROWS; i++) {
    char text[CLI_RESULT];
    printf("  %-6s", row_names[i]);
    for (int k = 0; k < FIELDS; k++) printf(" %16s", cli_result(text, "%.9g", rows[i][k]));
    printf("\n");
  }
  for (size_t k = 0; k < v->metrics->n_runs; k++) print_spark(&v->metrics->runs[k]);
}

static void print_model_text(const model_view *v) {
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
static json_t *settings_json(const model_view *v, bool changed) {
  json_t *json = json_object();
  setting s;
  for (size_t i = 0; json && next_setting(v, &i, &s);)
    if ((!changed || s.changed) && json_object_set_new(json, s.info.name, value_json(&s.info, s.value))) {
      json_decref(json);
      json = NULL;
    }
  return json;
}

static json_t *parameters_json(const model_view *v) {
  json_t *json = json_array();
  dvbf_parameter_info p;
  for (size_t i = 0; dvbf_model_parameter(v->model, i, &p); i++)
    json_array_append_new(json, json_pack("{s:s, s:[I, I], s:I, s:b}", "name", p.name, "shape",
                                          (json_int_t)p.rows, (json_int_t)p.columns, "count",
                                          (json_int_t)p.rows * (json_int_t)p.columns, "trained", p.trained));
  return json;
}

static json_t *scaling_json(const float *shift, const float *scale, size_t n) {
  return json_pack("{s:o, s:o}", "shift", cli_list(shift, n), "scale", cli_list(scale, n));
}

/* A count as an integer; a number of a damaged file that is no count stays a real number. */
static json_t *count_or_number(double value, bool count) {
  return count && fabs(value) < 9e15 ? json_integer((json_int_t)value) : cli_number(value);
}

static json_t *history_json(const model_view *v) {
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

static dvbf_status print_model_json(const model_view *v, dvbf_error *error) {
  const dvbf_model_info *i = &v->info;
  json_t *json = json_pack(
      "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:{s:o, s:o}, s:o, s:o, s:o}", "kind", "model",
      "file", v->path, "n_x", (json_int_t)i->n_x, "n_u", (json_int_t)i->n_u, "n_z", (json_int_t)i->n_z, "n_w",
      (json_int_t)i->n_w, "parameters", (json_int_t)i->parameters, "updates", (json_int_t)i->updates, "seed",
      (json_int_t)i->seed, "tensors", parameters_json(v), "scaling", "x",
      scaling_json(i->x_shift, i->x_scale, i->n_x), "u", scaling_json(i->u_shift, i->u_scale, i->n_u),
      "changed", settings_json(v, true), "settings", settings_json(v, false), "history", history_json(v));
  if (!json)
    return dv_fail(error, DVBF_FORMAT, "%.300s: cannot be written as JSON: a setting in it is not UTF-8",
                   v->path);
  cli_print_json(json);
  return DVBF_OK;
}

/* ---- Both ---- */

/* Damaged metrics are reported, and the model is described anyway. Metrics that exist but cannot be read are
 * a failure: a script would take the run for one without them. */
static dvbf_status read_metrics(model_view *v, dvbf_error *error) {
  dv_path path;
  bool fitted = !v->info.updates && !v->info.n_w; /* such as a linear model, which no validation follows */
  if (fitted || !cli_is_folder(v->path)) return DVBF_OK;
  dv_join(path, v->path, DVBF_RUN_METRICS);
  if (!dv_exists(path)) return DVBF_OK;
  dvbf_error reason = {0};
  dvbf_status status = dvbf_metrics_read(&v->metrics, path, &reason);
  if (status == DVBF_FORMAT) {
    fprintf(stderr, "dvbf: %s\n", reason.message);
    return DVBF_OK;
  }
  if (status && error) *error = reason;
  return status;
}

/* A run folder or a model file. */
static dvbf_status info_model(const char *path, const cli_options *options, dvbf_error *error) {
  dvbf_model *model = NULL;
  model_view v = {.path = path};
  dvbf_status status = cli_load_model(&model, path, error);
  if (!status) status = dvbf_settings_new(&v.defaults, "train", error);
  if (!status) {
    v.model = model;
    v.info = dvbf_model_describe(model);
    status = read_metrics(&v, error);
    if (!status && cli_option(options, "json"))
      status = print_model_json(&v, error);
    else if (!status)
      print_model_text(&v);
  }
  dvbf_metrics_free(v.metrics);
  dvbf_settings_free(v.defaults);
  dvbf_model_free(model);
  return status;
}

/* ---- Info ---- */

/* A safetensors file begins with the length of its header, eight bytes of which the last are 0, and a brace.
 */
static bool looks_like_model(const char *path) {
  unsigned char first[9] = {0};
  int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe would wait for a writer */
  if (file < 0) return false;
  ssize_t count = pread(file, first, sizeof first, 0);
  close(file);
  return count == sizeof first && !first[4] && !first[5] && !first[6] && !first[7] && first[8] == '{';
}

/* A folder without a run may contain data. */
static bool holds_data(const char *folder) {
  static const char *const names[] = {DVBF_RUN_MODEL, DVBF_RUN_CHECKPOINT, DVBF_RUN_SETTINGS,
                                      DVBF_RUN_METRICS};
  dv_path path;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    dv_join(path, folder, names[i]);
    if (dv_exists(path)) return false;
  }
  return true;
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  const char *path = options->arguments[0];
  bool model = looks_like_model(path) || (cli_is_folder(path) && (!options->n_more && !holds_data(path)));
  return model ? info_model(path, options, error) : info_data(path, options, error);
}

const cli_command cli_info = {
    .name = "info",
    .synopsis = "FILE ... [--json] [--SETTING VALUE ...]",
    .help = "describe a data file, a model file or a run folder",
    .details =
        "\nSeveral data files, a folder of them or a pattern in quotes form one data set.\n"
        "\n"
        "For data: sequences, steps and columns of each split, with range, mean, deviation, missing and\n"
        "constant values; then the settings that `dvbf train` would choose. A file without splits is shown "
        "as\n"
        "`dvbf train` would split it. NaN counts as missing, unless --missing refuse is given.\n"
        "\n"
        "For a model: sizes, parameters, scaling, settings (those that differ from their default first), "
        "and\n"
        "the validations of its run.",
    .examples = {{"dvbf info own.h5", "look at data before training"},
                 {"dvbf info run", "sizes, settings and learning curve of a trained model"},
                 {"dvbf info run/model.safetensors --json", "the same for a model file, as JSON"}},
    .arguments = {"FILE"},
    .many = true,
    .flags = {CLI_FLAG_JSON},
    .tables = {"data"},
    .run = run,
};
