/* dvbf info of data. */
#include "info.h"
#include "inputs.h"
#include "results.h"

#include <stdio.h>
#include <string.h>

enum { SPLITS = 3, ARRAYS = 3, NAMES_SHOWN = 8, MOST_CHOICES = 64 };
static const char *const split_names[SPLITS] = {"train", "valid", "test"};
static const char *const array_names[ARRAYS] = {"x", "u", "state"};

/* A setting that suits the data. */
typedef struct choice {
  char name[64], value[64], was[64], why[128];
} choice;

typedef struct view {
  const char *path;
  const dvbf_data *data;
  const dvbf_sequences *sequences[SPLITS];
  dvbf_sequences_info *info[SPLITS]; /* NULL: the split is empty */
  choice choices[MOST_CHOICES];
  size_t n_choices;
  json_t *remarks; /* an array of sentences about all of the data */
  bool marked;     /* NaN may mark what is missing, as this was read with missing = nan */
  bool lost;       /* one of them was not added, as memory was short or a name is not UTF-8 */
} view;

static const dvbf_columns *array_of(const dvbf_sequences_info *info, int array) {
  const dvbf_columns *arrays[ARRAYS] = {&info->x, &info->u, &info->state};
  return arrays[array];
}

/* Names of the columns of an array; NULL: they have none. */
static char (*names_of(const view *v, int array))[32] {
  char(*names[ARRAYS])[32] = {v->data->x_names, v->data->u_names, v->data->state_names};
  return names[array];
}

/* "" where it is unknown. */
static const char *unit_of(const view *v, int array, size_t k) {
  char(*units)[16] = array == 0 ? v->data->x_units : array == 1 ? v->data->u_units : NULL;
  return units ? units[k] : "";
}

static void column_name(char out[32], const view *v, int array, size_t k) {
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

static void print_constant(const view *v, int array, const dvbf_columns *a) {
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

/* A name and its unit in brackets, in not much more than 20 characters. */
static void labelled(char *out, size_t size, const char *before, const char *name, const char *unit) {
  snprintf(out, size, *unit ? "%s%s [%s]" : "%s%s", before, name, unit);
}

static void print_array(const view *v, int array, const dvbf_columns *a, double frames) {
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

static void print_facts(const view *v, int split) {
  const dvbf_sequences_info *info = v->info[split];
  for (int i = 0; i < ARRAYS; i++) print_constant(v, i, array_of(info, i));
  if (info->x.binary) printf("  x is binary: every value is 0 or 1\n");
  if (info->x.all.seen < info->frames * info->x.width)
    printf("  where x is missing, %s%s\n",
           info->x.whole ? "it is for whole steps" : "it may be so for single values of a step",
           v->marked ? "; where NaN marks it, training needs --missing nan" : "");
  if (v->sequences[split]->source)
    printf("  x is larger than --memory allows and is read from the file piece by piece\n");
}

static void print_split(const view *v, int split) {
  const dvbf_sequences_info *info = v->info[split];
  printf("\n%s: %zu sequence%s of ", split_names[split], v->sequences[split]->count,
         v->sequences[split]->count == 1 ? "" : "s");
  if (info->shortest == info->longest)
    printf("%zu steps, %llu in all\n", info->longest, (unsigned long long)info->frames);
  else
    printf("%zu to %zu steps, median %g, %llu in all\n", info->shortest, info->longest, info->median,
           (unsigned long long)info->frames);
  printf("  %-20s %11s %11s %11s %11s %9s\n", "", "least", "most", "mean", "deviation", "missing");
  for (int i = 0; i < ARRAYS; i++)
    if (array_of(info, i)->width) print_array(v, i, array_of(info, i), (double)info->frames);
  print_facts(v, split);
}

static void print_remarks(const view *v) {
  if (json_array_size(v->remarks)) printf("\nRemarks\n");
  for (size_t i = 0; i < json_array_size(v->remarks); i++)
    printf("  %s\n", json_string_value(json_array_get(v->remarks, i)));
}

static void print_choices(const view *v) {
  if (!v->n_choices) return;
  printf("\nWhat `dvbf train` chooses for these data, if not told otherwise\n");
  for (size_t i = 0; i < v->n_choices; i++)
    printf("  %s = %s (%s; default %s)\n", v->choices[i].name, v->choices[i].value, v->choices[i].why,
           v->choices[i].was);
}

/* Time, and what each part of the file was taken for. */
static void print_parts(const dvbf_data *d) {
  if (d->sample_time > 0) printf("sample time %g s\n", d->sample_time);
  if (d->n_uses) printf("\nWhat was taken for what\n");
  for (size_t i = 0; i < d->n_uses; i++) printf("  %-20s %s\n", d->uses[i].name, d->uses[i].role);
}

static void print_text(const view *v) {
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

/* NULL when memory is short or a name is not UTF-8. */
static json_t *array_json(const view *v, int array, const dvbf_columns *a, double frames) {
  json_t *json = column_json(&a->all, frames * (double)a->width), *columns = json_array();
  bool good = !json_object_set_new(json, "width", json_integer((json_int_t)a->width)) &&
              !json_object_set_new(json, "binary", json_boolean(a->binary)) &&
              !json_object_set_new(json, "missing_whole_steps", json_boolean(a->whole));
  for (size_t k = 0; good && k < a->width; k++) {
    char name[32];
    json_t *column = column_json(&a->column[k], frames);
    column_name(name, v, array, k);
    good = !json_object_set_new(column, "name", json_string(name)) &&
           !json_object_set_new(column, "constant", json_boolean(constant(&a->column[k]))) &&
           !json_object_set_new(column, "unit", json_string(unit_of(v, array, k))) &&
           !json_array_append(columns, column);
    json_decref(column);
  }
  good = !json_object_set_new(json, "columns", columns) && good;
  if (good) return json;
  json_decref(json);
  return NULL;
}

static json_t *split_json(const view *v, int split) {
  const dvbf_sequences_info *info = v->info[split];
  if (!info) return json_pack("{s:i}", "sequences", 0);
  json_t *arrays = json_object();
  bool good = arrays;
  for (int i = 0; good && i < ARRAYS; i++)
    if (array_of(info, i)->width)
      good = !json_object_set_new(arrays, array_names[i],
                                  array_json(v, i, array_of(info, i), (double)info->frames));
  if (!good) {
    json_decref(arrays);
    return NULL;
  }
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

static json_t *choices_json(const view *v) {
  json_t *json = json_object();
  for (size_t i = 0; i < v->n_choices; i++) {
    const choice *c = &v->choices[i];
    json_object_set_new(json, c->name,
                        json_pack("{s:s, s:s, s:s}", "value", c->value, "default", c->was, "why", c->why));
  }
  return json;
}

static dvbf_status print_json(const view *v, dvbf_error *error) {
  const dvbf_data *d = v->data;
  json_t *json = json_pack("{s:s, s:s}", "kind", "data", "file", v->path);
  json_t *image = d->image_height
                      ? json_pack("[I, I]", (json_int_t)d->image_height, (json_int_t)d->image_width)
                      : json_null();
  if (d->image_channels == 3) json_array_append_new(image, json_integer(3));
  json_t *splits = json_object();
  bool good = !json_object_set_new(json, "image", image);
  for (int i = 0; good && i < SPLITS; i++)
    good = !json_object_set_new(splits, split_names[i], split_json(v, i));
  good = !json_object_set_new(json, "splits", splits) && good;
  good = !json_object_set(json, "remarks", v->remarks) && good;
  good = !json_object_set_new(json, "parts", parts_json(d)) && good;
  good = !json_object_set_new(json, "sample_time",
                              d->sample_time > 0 ? json_real(d->sample_time) : json_null()) &&
         good;
  good = !json_object_set_new(json, "dates", json_boolean(d->dates)) && good;
  good = !json_object_set_new(json, "chosen", choices_json(v)) && good;
  if (good && !v->lost) {
    cli_print_json(json);
    return DVBF_OK;
  }
  json_decref(json);
  return cli_fail(error, DVBF_FORMAT, "%.300s: cannot be told as JSON; is a name in it not UTF-8?", v->path);
}

/* ---- Both ---- */

/* NaN is accepted, because gaps are to be shown, unless the user refuses it. */
static dvbf_status read_data(dvbf_data **out, const char *path, const cli_options *options,
                             dvbf_error *error) {
  dvbf_settings *how = NULL;
  dvbf_status status = cli_options_settings(&how, options, "data", error);
  if (!status && !cli_option(options, "missing")) status = dvbf_settings_set(how, "missing", "nan", error);
  dvbf_error inner = {0};
  if (!status && (status = cli_data_read(out, path, options, how, &inner))) {
    static const char *const others[] = {"is not an HDF5 file", "is a text file", "is a folder without data"};
    bool unknown = false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
      unknown = unknown || strstr(inner.message, others[i]);
    cli_fail(error, status, unknown ? "%.400s; nor is it a model or a run folder" : "%s", inner.message);
  }
  dvbf_settings_free(how);
  return status;
}

static void add_choice(const char *name, const char *value, const char *was, const char *why, void *user) {
  view *v = user;
  if (v->n_choices == MOST_CHOICES) return;
  choice *c = &v->choices[v->n_choices++];
  snprintf(c->name, sizeof c->name, "%s", name);
  snprintf(c->value, sizeof c->value, "%s", value);
  snprintf(c->was, sizeof c->was, "%s", was);
  snprintf(c->why, sizeof c->why, "%s", why);
}

static void add_remark(const char *sentence, void *user) {
  view *v = user;
  v->lost = json_array_append_new(v->remarks, json_string(sentence)) || v->lost;
}

static dvbf_status choose_settings(view *v, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_error inner = {0};
  dvbf_status status = dvbf_settings_new(&settings, "train", error);
  dvbf_status suits = status ? DVBF_OK : dvbf_settings_suit(settings, v->data, add_choice, v, &inner);
  dvbf_settings_free(settings);
  if (suits == DVBF_FORMAT || suits == DVBF_ARGUMENT)
    add_remark(inner.message, v); /* still worth a look */
  else if (suits && error)
    *error = inner, status = suits;
  return status;
}

/* Rows that have times may have gaps. */
static bool has_time(const dvbf_data *data) {
  for (size_t i = 0; i < data->n_uses; i++)
    if (!strncmp(data->uses[i].role, "time", 4)) return true;
  return false;
}

dvbf_status cli_info_data(const char *path, const cli_options *options, dvbf_error *error) {
  dvbf_data *data = NULL;
  dvbf_status status = read_data(&data, path, options, error);
  if (status) return status;
  view v = {.path = path,
            .data = data,
            .sequences = {&data->train, &data->valid, &data->test},
            .marked = !cli_option(options, "missing-value") && !has_time(data)};
  for (int i = 0; !status && i < SPLITS; i++)
    if (v.sequences[i]->count) status = dvbf_sequences_describe(&v.info[i], v.sequences[i], error);
  v.remarks = json_array();
  if (*data->question) add_remark(data->question, &v);
  if (!status) status = dvbf_data_remarks(data, add_remark, &v, error);
  if (!status) status = choose_settings(&v, error);
  if (!status && cli_option(options, "json"))
    status = print_json(&v, error);
  else if (!status)
    print_text(&v);
  json_decref(v.remarks);
  for (int i = 0; i < SPLITS; i++) dvbf_sequences_info_free(v.info[i]);
  dvbf_data_free(data);
  return status;
}
