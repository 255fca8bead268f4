/* Estimates to files (dvbf_estimates_write): as named arrays, or as a CSV table with a row for each step,
 * together with names, units, times and origins of the data. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/dataset.h"
#include "io/write_arrays.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct estimate_file {
  const dvbf_estimates *e;
  const dvbf_data *data;           /* NULL: nothing is known about them */
  const dvbf_sequences *sequences; /* the same */
  bool samples;                    /* of one path each, whose x is in x_samples */
  bool states;                     /* z is what was asked for */
  float *buffer;                   /* [steps][n_x] for the truth if x is read from a file */
} estimate_file;

/* ---- Names, times and origins ---- */

/* A path may stand for a sequence several times, as samples do. */
static size_t sequence_of(const estimate_file *o, size_t i) {
  return i % o->sequences->count;
}

/* Origin of entry 0 of estimate i in the data. */
static dvbf_origin origin_of(const estimate_file *o, size_t i) {
  const dvbf_sequences *s = o->sequences;
  size_t begin = dvbf_estimates_begin(o->e, i);
  if (!s) return (dvbf_origin){.sequence = i, .step = begin};
  size_t sequence = sequence_of(o, i);
  dvbf_origin out = s->origin ? s->origin[sequence] : (dvbf_origin){.sequence = sequence};
  out.step += begin;
  return out;
}

/* Seconds at entry t of estimate i. NaN: unknown. */
static double time_of(const estimate_file *o, size_t i, size_t t) {
  const dvbf_sequences *s = o->sequences;
  if (!o->data || !s || !(o->data->sample_time > 0)) return NAN;
  double first = s->origin ? s->origin[sequence_of(o, i)].time : 0;
  return first + (double)(dvbf_estimates_begin(o->e, i) + t) * o->data->sample_time;
}

static const char *split_of(const estimate_file *o) {
  const dvbf_data *d = o->data;
  if (!d || !o->sequences) return "";
  if (o->sequences == &d->valid) return "valid";
  if (o->sequences == &d->test) return "test";
  return d->valid.count || d->test.count ? "train" : "all";
}

/* x of the data at the steps of estimate i into out [steps][n_x], NaN if it is not known. */
static void copy_truth(const estimate_file *o, size_t i, float *out) {
  const dvbf_sequences *s = o->sequences;
  size_t n_x = o->e->n_x, first = dvbf_estimates_begin(o->e, i), sequence = s ? sequence_of(o, i) : 0;
  size_t length = s ? dvbf_sequence_length(s, sequence) : 0, known = length > first ? length - first : 0;
  if (known > o->e->steps) known = o->e->steps;
  if (known) memcpy(out, dv_sequence_x(s, sequence, first, known, o->buffer), known * n_x * sizeof *out);
  for (size_t k = known * n_x; k < o->e->steps * n_x; k++) out[k] = NAN;
}

static void column_name(const estimate_file *o, char array, size_t k, char out[32]) {
  char(*names)[32] = !o->data       ? NULL
                     : array == 'x' ? o->data->x_names
                     : array == 'u' ? o->data->u_names
                                    : NULL;
  if (names)
    memcpy(out, names[k], 32);
  else
    snprintf(out, 32, "%c%zu", array, k);
}

static const char *unit_of(const estimate_file *o, char array, size_t k) {
  char(*units)[16] = !o->data       ? NULL
                     : array == 'x' ? o->data->x_units
                     : array == 'u' ? o->data->u_units
                                    : NULL;
  return units ? units[k] : "";
}

/* ---- Arrays ---- */

enum { MOST_ARRAYS = 32 };

typedef struct array_list {
  const estimate_file *o;
  dvbf_array arrays[MOST_ARRAYS];
  size_t count;
  void *made[MOST_ARRAYS]; /* to be freed */
  size_t n_made;
  bool failed; /* memory is short */
  double sample_time;
} array_list;

/* Adds an array unless it has no values. `last` is the number of entries of the last dimension, 0: none. */
static dvbf_array *list_array(array_list *l, const char *name, dvbf_type type, const void *values, size_t a,
                              size_t b, size_t last) {
  dvbf_array *array = &l->arrays[l->count];
  *array = (dvbf_array){.name = name, .type = type, .values = values};
  size_t dims[] = {a, b, last};
  for (int i = 0; i < 3; i++)
    if (dims[i]) array->dims[array->rank++] = dims[i];
  if (values) l->count++;
  return array;
}

/* Inserts a dimension of `size` at position `at`. */
static void insert(dvbf_array *array, int at, size_t size) {
  for (int i = array->rank++; i > at; i--) array->dims[i] = array->dims[i - 1];
  array->dims[at] = size;
}

/* Observations keep the shape of images. */
static dvbf_array *add_x(array_list *l, const char *name, const float *values) {
  const dvbf_data *data = l->o->data;
  dvbf_array *array = list_array(l, name, DVBF_FLOAT32, values, l->o->e->count, l->o->e->steps, l->o->e->n_x);
  if (data && data->image_height) {
    array->dims[2] = data->image_height;
    insert(array, 3, data->image_width);
    if (dv_image_channels(data) > 1) insert(array, 4, dv_image_channels(data));
  }
  return array;
}

/* Zeroed room for a [count][size] that lives as long as the list; NULL: memory is short. */
static void *make(array_list *l, size_t count, size_t size) {
  void *room = dv_calloc(count ? count : 1, size);
  if (room) l->made[l->n_made++] = room;
  l->failed = l->failed || !room;
  return room;
}

static void add_estimates(array_list *l) {
  const dvbf_estimates *e = l->o->e;
  size_t n = e->count, t = e->steps;
  if (l->o->samples) { /* with one sample for each sequence x has the shape of data files */
    list_array(l, "z", DVBF_FLOAT32, e->z, n, t, e->n_z);
    add_x(l, "x", e->x_samples);
    return;
  }
  insert(list_array(l, "z", DVBF_FLOAT32, e->z, n, t, e->n_z), 1, e->samples);
  list_array(l, "z_mean", DVBF_FLOAT32, e->z_mean, n, t, e->n_z);
  list_array(l, "z_std", DVBF_FLOAT32, e->z_std, n, t, e->n_z);
  add_x(l, "x", e->x);
  add_x(l, "x_std", e->x_std);
  insert(add_x(l, "x_quantiles", e->x_quantiles), 0, e->n_quantiles);
  list_array(l, "quantiles", DVBF_FLOAT64, e->quantiles, e->n_quantiles, 0, 0);
  insert(add_x(l, "x_samples", e->x_samples), 1, e->samples);
  list_array(l, "length", DVBF_UINT32, e->length, n, 0, 0);
}

static void add_truth(array_list *l) {
  const dvbf_estimates *e = l->o->e;
  size_t size, each = e->steps * e->n_x;
  float *truth = dv_multiply(e->count, each, &size) ? make(l, size, sizeof *truth) : NULL;
  l->failed = l->failed || !truth;
  for (size_t i = 0; truth && i < e->count; i++) copy_truth(l->o, i, truth + i * each);
  add_x(l, "x_true", truth);
}

static void add_origins(array_list *l) {
  const dvbf_estimates *e = l->o->e;
  int64_t *sequence = make(l, e->count, sizeof *sequence), *step = make(l, e->count, sizeof *step);
  char(*name)[32] = make(l, e->count, sizeof *name);
  bool named = false;
  if (!sequence || !step || !name) return;
  for (size_t i = 0; i < e->count; i++) {
    dvbf_origin origin = origin_of(l->o, i);
    sequence[i] = (int64_t)origin.sequence;
    step[i] = (int64_t)origin.step;
    memcpy(name[i], origin.name, sizeof name[i]);
    named = named || *origin.name;
  }
  list_array(l, "sequence", DVBF_INT64, sequence, e->count, 0, 0);
  list_array(l, "step", DVBF_INT64, step, e->count, 0, 0);
  if (named) list_array(l, "name", DVBF_TEXT, name, e->count, sizeof *name, 0);
  const char *split = split_of(l->o);
  list_array(l, "split", DVBF_TEXT, split, strlen(split), 0, 0);
}

static void add_times(array_list *l) {
  const dvbf_estimates *e = l->o->e;
  size_t size;
  double *time = dv_multiply(e->count, e->steps, &size) ? make(l, size, sizeof *time) : NULL;
  const char *unit = l->o->data->dates ? "s since 1970-01-01" : "s";
  if (!time) return;
  for (size_t k = 0; k < size; k++) time[k] = time_of(l->o, k / e->steps, k % e->steps);
  l->sample_time = l->o->data->sample_time;
  list_array(l, "time", DVBF_FLOAT64, time, e->count, e->steps, 0);
  list_array(l, "time_unit", DVBF_TEXT, unit, strlen(unit), 0, 0);
  list_array(l, "sample_time", DVBF_FLOAT64, &l->sample_time, 0, 0, 0);
}

static void add_columns(array_list *l) {
  const dvbf_data *d = l->o->data;
  const dvbf_estimates *e = l->o->e;
  list_array(l, "x_names", DVBF_TEXT, d->x_names, e->n_x, sizeof *d->x_names, 0);
  list_array(l, "x_units", DVBF_TEXT, d->x_units, e->n_x, sizeof *d->x_units, 0);
  if (!e->n_u) return;
  list_array(l, "u_names", DVBF_TEXT, d->u_names, e->n_u, sizeof *d->u_names, 0);
  list_array(l, "u_units", DVBF_TEXT, d->u_units, e->n_u, sizeof *d->u_units, 0);
}

static dvbf_status write_arrays(const estimate_file *o, const char *path, dvbf_error *error) {
  array_list l = {.o = o};
  const dvbf_estimates *e = o->e;
  add_estimates(&l);
  list_array(&l, "u", DVBF_FLOAT32, e->u, e->count, e->steps, e->n_u);
  if (o->sequences && !o->samples) add_truth(&l);
  if (o->sequences) add_origins(&l);
  if (o->sequences && o->data && o->data->sample_time > 0) add_times(&l);
  if (o->data) add_columns(&l);
  dvbf_status status = l.failed ? dv_fail_memory(error, "writing estimates")
                                : dvbf_arrays_write(path, l.arrays, l.count, error);
  for (size_t i = 0; i < l.n_made; i++) dv_free(l.made[i]);
  return status;
}

/* ---- CSV ---- */

/* Spreadsheets take a text that begins with = for a formula, so such names get an apostrophe. */

static void put_field(FILE *out, const char *text) {
  bool formula = *text && strchr("=+-@", *text), quotes = strpbrk(text, ",\"") || *text == ' ';
  if (quotes) putc('"', out);
  if (formula) putc('\'', out);
  for (; *text; text++) {
    if (*text == '"') putc('"', out);
    putc((unsigned char)*text < ' ' || *text == 127 ? '?' : *text, out);
  }
  if (quotes) putc('"', out);
}

/* As few digits as identify the number, so that 0.1 stays 0.1. A value that is not known is an empty field.
 */
static void put_float(FILE *out, float value) {
  char text[32] = "";
  for (int digits = 6; digits <= 9 && !isnan(value); digits++) {
    snprintf(text, sizeof text, "%.*g", digits, (double)value);
    if (strtof(text, NULL) == value) break;
  }
  fprintf(out, ",%s", text);
}

/* Digits of the fraction of a second that all times need. */
static int fraction_of(const estimate_file *o) {
  int digits = 0;
  for (size_t i = 0; i < o->e->count && i < 1000; i++)
    for (size_t t = 0; t < 2; t++) {
      double time = time_of(o, i, t);
      while (digits < 6 && fabs(time * pow(10, digits) - nearbyint(time * pow(10, digits))) > 1e-3)
        digits += 3;
    }
  return digits;
}

static void put_date(FILE *out, double time, int digits) {
  double unit = pow(10, digits), ticks = nearbyint(time * unit), whole = floor(ticks / unit);
  time_t seconds = (time_t)whole;
  struct tm date;
  char text[40];
  if (!isfinite(time) || !gmtime_r(&seconds, &date) ||
      !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &date))
    return;
  fputs(text, out);
  if (digits) fprintf(out, ".%0*.0f", digits, ticks - whole * unit);
}

typedef struct csv_writer {
  const estimate_file *o;
  FILE *out;
  float *truth; /* [steps][n_x] of the sequence */
  int fraction; /* digits of times */
  bool heads;   /* the line to be written is the first, which names the columns */
} csv_writer;

/* A value or, in the first line, the head of its column: NAME, NAME_std and so on, its unit in brackets. */
static void put_cell(const csv_writer *w, char array, size_t k, const char *ending, const float *values,
                     size_t at) {
  char name[32], text[128];
  const char *unit = unit_of(w->o, array, k);
  if (!w->heads) {
    put_float(w->out, values[at]);
    return;
  }
  column_name(w->o, array, k, name);
  snprintf(text, sizeof text, "%s%s%s%s%s", name, ending, *unit ? " [" : "", unit, *unit ? "]" : "");
  putc(',', w->out);
  put_field(w->out, text);
}

static void put_quantile(const csv_writer *w, size_t k, size_t q, size_t at) {
  const dvbf_estimates *e = w->o->e;
  char ending[40] = "";
  double percent = 100 * e->quantiles[q];
  bool whole = fabs(percent - nearbyint(percent)) < 1e-9;
  if (w->heads) snprintf(ending, sizeof ending, whole ? "_q%02.0f" : "_q%g", percent);
  put_cell(w, 'x', k, ending, e->x_quantiles, q * e->count * e->steps * e->n_x + at);
}

/* The columns behind the time: step t of estimate i. */
static void put_columns(const csv_writer *w, size_t i, size_t t) {
  const dvbf_estimates *e = w->o->e;
  const bool samples = w->o->samples;
  size_t row = i * e->steps + t;
  for (size_t k = 0, at = row * e->n_x; k < e->n_x; k++, at++) {
    put_cell(w, 'x', k, "", samples ? e->x_samples : e->x, at);
    if (samples) continue;
    put_cell(w, 'x', k, "_std", e->x_std, at);
    for (size_t q = 0; q < e->n_quantiles; q++) put_quantile(w, k, q, at);
    if (w->o->sequences) put_cell(w, 'x', k, "_true", w->truth, t * e->n_x + k);
  }
  for (size_t k = 0; k < e->n_u; k++) put_cell(w, 'u', k, "", e->u, row * e->n_u + k);
  for (size_t k = 0, at = row * e->n_z; w->o->states && k < e->n_z; k++, at++) {
    put_cell(w, 'z', k, "", samples ? e->z : e->z_mean, at);
    if (!samples) put_cell(w, 'z', k, "_std", e->z_std, at);
  }
  putc('\n', w->out);
}

static void put_rows(const csv_writer *w, size_t i) {
  const estimate_file *o = w->o;
  dvbf_origin origin = origin_of(o, i);
  size_t steps = o->e->length && o->e->length[i] < o->e->steps ? o->e->length[i] : o->e->steps;
  if (o->sequences && !o->samples) copy_truth(o, i, w->truth);
  for (size_t t = 0; t < steps; t++) {
    double time = time_of(o, i, t);
    fprintf(w->out, "%llu,", (unsigned long long)origin.sequence);
    put_field(w->out, origin.name);
    fprintf(w->out, ",%s,%llu,", split_of(o), (unsigned long long)origin.step + t);
    if (o->data && o->data->dates)
      put_date(w->out, time, w->fraction);
    else if (!isnan(time))
      fprintf(w->out, "%.14g", time);
    put_columns(w, i, t);
  }
}

static dvbf_status write_csv(const estimate_file *o, const char *path, dvbf_error *error) {
  DV_PLAIN_NUMBERS;
  dv_atomic_file file;
  size_t size = o->e->steps * o->e->n_x;
  if (o->e->x_samples && !o->samples)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: a table with one row for each step cannot hold x-samples; leave them out, or "
                   "write .h5, .npz or .mat",
                   path);
  csv_writer w = {.o = o, .truth = dv_calloc(size ? size : 1, sizeof *w.truth), .fraction = fraction_of(o)};
  dvbf_status status =
      w.truth ? dv_atomic_open(&file, path, error) : dv_fail_memory(error, "writing estimates");
  if (status) {
    dv_free(w.truth);
    return status;
  }
  w.out = file.stream;
  fputs("sequence,name,split,step,time", w.out);
  w.heads = true;
  put_columns(&w, 0, 0);
  w.heads = false;
  for (size_t i = 0; i < o->e->count && !ferror(w.out); i++) put_rows(&w, i);
  dv_free(w.truth);
  return dv_atomic_commit(&file, error);
}

/* ---- Writing ---- */

dvbf_status dvbf_estimates_check_path(const char *path, dvbf_error *error) {
  char endings[DVBF_FORMATS];
  if (dv_text_ends_in(path, ".csv") || !dvbf_arrays_check_path(path, NULL)) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT, "%.200s: its ending is not that of a known format; use %s", path,
                 dvbf_formats(true, endings));
}

static dvbf_status check_request(const estimate_file *o, const char *work, dvbf_error *error) {
  static const char *const known[] = {"filter", "smooth", "predict", "sample"};
  bool found = false;
  for (int i = 0; i < 4; i++) found = found || !strcmp(work, known[i]);
  if (!found)
    return dv_fail(error, DVBF_ARGUMENT,
                   "work must be \"filter\", \"smooth\", \"predict\" or \"sample\", not \"%.40s\"", work);
  if (o->samples && !o->e->x_samples)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the work \"sample\" needs x_samples; estimate with settings of the table \"sample\"");
  if (o->sequences && (!o->sequences->count || o->sequences->n_x != o->e->n_x))
    return dv_fail(error, DVBF_ARGUMENT,
                   "x of the estimates has %zu columns, x of the data %zu; they must be the same", o->e->n_x,
                   o->sequences->n_x);
  if (o->data && !o->sequences && o->data->train.n_x &&
      (o->data->train.n_x != o->e->n_x || o->data->train.n_u != o->e->n_u))
    return dv_fail(error, DVBF_ARGUMENT,
                   "the estimates have %zu columns of x and %zu of u, the data %zu and %zu", o->e->n_x,
                   o->e->n_u, o->data->train.n_x, o->data->train.n_u);
  size_t pixels = o->data ? o->data->image_height * o->data->image_width * dv_image_channels(o->data) : 0;
  if (pixels && pixels != o->e->n_x)
    return dv_fail(error, DVBF_ARGUMENT,
                   "x of the estimates has %zu columns, and an image of the data %zu x %zu", o->e->n_x,
                   o->data->image_height, o->data->image_width);
  return DVBF_OK;
}

dvbf_status dvbf_estimates_write(const dvbf_estimates *estimates, const char *work, const dvbf_data *data,
                                 const dvbf_sequences *sequences, const char *path, dvbf_error *error) {
  estimate_file o = {.e = estimates, .data = data, .sequences = sequences};
  o.samples = !strcmp(work, "sample");
  o.states = strcmp(work, "predict") != 0;
  dvbf_status status = check_request(&o, work, error);
  if (!status) status = dvbf_estimates_check_path(path, error);
  if (!status && sequences) status = dv_sequence_buffer(&o.buffer, sequences, estimates->steps, error);
  if (!status) status = (dv_text_ends_in(path, ".csv") ? write_csv : write_arrays)(&o, path, error);
  if (!status && sequences) status = dv_sequences_intact(sequences, error);
  dv_free(o.buffer);
  return status;
}
