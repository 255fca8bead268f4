#include "format/outcome.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"
#include "format/arrays.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- What is known ---- */

/* A path may stand for a sequence several times, as samples do. */
static size_t sequence_of(const dv_outcome *o, size_t i) {
  return i % o->sequences->count;
}

dvbf_origin dv_outcome_origin(const dv_outcome *o, size_t i) {
  const dvbf_sequences *s = o->sequences;
  size_t begin = dvbf_estimates_begin(o->e, i);
  if (!s) return (dvbf_origin){.sequence = i, .step = begin};
  size_t sequence = sequence_of(o, i);
  dvbf_origin out = s->origin ? s->origin[sequence] : (dvbf_origin){.sequence = sequence};
  out.step += begin;
  return out;
}

size_t dv_outcome_steps(const dv_outcome *o, size_t i) {
  return o->e->length && o->e->length[i] < o->e->steps ? o->e->length[i] : o->e->steps;
}

double dv_outcome_time(const dv_outcome *o, size_t i, size_t t) {
  const dvbf_sequences *s = o->sequences;
  if (!o->data || !s || !(o->data->sample_time > 0)) return NAN;
  double first = s->origin ? s->origin[sequence_of(o, i)].time : 0;
  return first + (double)(dvbf_estimates_begin(o->e, i) + t) * o->data->sample_time;
}

const char *dv_outcome_split(const dv_outcome *o) {
  const dvbf_data *d = o->data;
  if (!d || !o->sequences) return "";
  if (o->sequences == &d->valid) return "valid";
  if (o->sequences == &d->test) return "test";
  return d->valid.count || d->test.count ? "train" : "all";
}

void dv_outcome_truth(const dv_outcome *o, size_t i, float *out) {
  const dvbf_sequences *s = o->sequences;
  size_t n_x = o->e->n_x, first = dvbf_estimates_begin(o->e, i), sequence = s ? sequence_of(o, i) : 0;
  size_t length = s ? dvbf_sequence_length(s, sequence) : 0, known = length > first ? length - first : 0;
  if (known > o->e->steps) known = o->e->steps;
  if (known) memcpy(out, dv_sequence_x(s, sequence, first, known, o->buffer), known * n_x * sizeof *out);
  for (size_t k = known * n_x; k < o->e->steps * n_x; k++) out[k] = NAN;
}

void dv_outcome_name(const dv_outcome *o, char array, size_t k, char out[32]) {
  char(*names)[32] = !o->data ? NULL : array == 'x' ? o->data->x_names : o->data->u_names;
  if (names)
    memcpy(out, names[k], 32);
  else
    snprintf(out, 32, "%c%zu", array, k);
}

const char *dv_outcome_unit(const dv_outcome *o, char array, size_t k) {
  char(*units)[16] = !o->data ? NULL : array == 'x' ? o->data->x_units : o->data->u_units;
  return units ? units[k] : "";
}

/* ---- Arrays ---- */

enum { MOST_ARRAYS = 32 };

typedef struct list {
  const dv_outcome *o;
  dvbf_array arrays[MOST_ARRAYS];
  size_t count;
  void *made[MOST_ARRAYS]; /* to be freed */
  size_t n_made;
  bool failed; /* memory is short */
  double sample_time;
} list;

/* Adds an array unless it has no values. `last` is the number of entries of the last dimension, 0: none. */
static dvbf_array *add(list *l, const char *name, dvbf_type type, const void *values, size_t a, size_t b,
                       size_t last) {
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
static dvbf_array *add_x(list *l, const char *name, const float *values) {
  const dvbf_data *data = l->o->data;
  dvbf_array *array = add(l, name, DVBF_FLOAT32, values, l->o->e->count, l->o->e->steps, l->o->e->n_x);
  if (data && data->image_height) {
    array->dims[2] = data->image_height;
    insert(array, 3, data->image_width);
    if (dv_image_channels(data) > 1) insert(array, 4, dv_image_channels(data));
  }
  return array;
}

/* Zeroed room for a [count][size] that lives as long as the list; NULL: memory is short. */
static void *make(list *l, size_t count, size_t size) {
  void *room = dv_calloc(count ? count : 1, size);
  if (room) l->made[l->n_made++] = room;
  l->failed = l->failed || !room;
  return room;
}

static void add_estimates(list *l) {
  const dvbf_estimates *e = l->o->e;
  size_t n = e->count, t = e->steps;
  if (l->o->samples) { /* with one sample for each sequence x has the shape of data files */
    add(l, "z", DVBF_FLOAT32, e->z, n, t, e->n_z);
    add_x(l, "x", e->x_samples);
    return;
  }
  insert(add(l, "z", DVBF_FLOAT32, e->z, n, t, e->n_z), 1, e->samples);
  add(l, "z_mean", DVBF_FLOAT32, e->z_mean, n, t, e->n_z);
  add(l, "z_std", DVBF_FLOAT32, e->z_std, n, t, e->n_z);
  add_x(l, "x", e->x);
  add_x(l, "x_std", e->x_std);
  insert(add_x(l, "x_quantiles", e->x_quantiles), 0, e->n_quantiles);
  add(l, "quantiles", DVBF_FLOAT64, e->quantiles, e->n_quantiles, 0, 0);
  insert(add_x(l, "x_samples", e->x_samples), 1, e->samples);
  add(l, "length", DVBF_UINT32, e->length, n, 0, 0);
}

static void add_truth(list *l) {
  const dvbf_estimates *e = l->o->e;
  size_t size, each = e->steps * e->n_x;
  float *truth = dv_multiply(e->count, each, &size) ? make(l, size, sizeof *truth) : NULL;
  l->failed = l->failed || !truth;
  for (size_t i = 0; truth && i < e->count; i++) dv_outcome_truth(l->o, i, truth + i * each);
  add_x(l, "x_true", truth);
}

/* Which sequences they are of, and when. */
static void add_origins(list *l) {
  const dvbf_estimates *e = l->o->e;
  int64_t *sequence = make(l, e->count, sizeof *sequence), *step = make(l, e->count, sizeof *step);
  char(*name)[32] = make(l, e->count, sizeof *name);
  bool named = false;
  if (!sequence || !step || !name) return;
  for (size_t i = 0; i < e->count; i++) {
    dvbf_origin origin = dv_outcome_origin(l->o, i);
    sequence[i] = (int64_t)origin.sequence;
    step[i] = (int64_t)origin.step;
    memcpy(name[i], origin.name, sizeof name[i]);
    named = named || *origin.name;
  }
  add(l, "sequence", DVBF_INT64, sequence, e->count, 0, 0);
  add(l, "step", DVBF_INT64, step, e->count, 0, 0);
  if (named) add(l, "name", DVBF_TEXT, name, e->count, sizeof *name, 0);
  const char *split = dv_outcome_split(l->o);
  add(l, "split", DVBF_TEXT, split, strlen(split), 0, 0);
}

static void add_times(list *l) {
  static const char seconds[] = "s", dates[] = "s since 1970-01-01";
  const dvbf_estimates *e = l->o->e;
  size_t size;
  double *time = dv_multiply(e->count, e->steps, &size) ? make(l, size, sizeof *time) : NULL;
  const char *unit = l->o->data->dates ? dates : seconds;
  if (!time) return;
  for (size_t k = 0; k < size; k++) time[k] = dv_outcome_time(l->o, k / e->steps, k % e->steps);
  l->sample_time = l->o->data->sample_time;
  add(l, "time", DVBF_FLOAT64, time, e->count, e->steps, 0);
  add(l, "time_unit", DVBF_TEXT, unit, strlen(unit), 0, 0);
  add(l, "sample_time", DVBF_FLOAT64, &l->sample_time, 0, 0, 0);
}

static void add_columns(list *l) {
  const dvbf_data *d = l->o->data;
  const dvbf_estimates *e = l->o->e;
  add(l, "x_names", DVBF_TEXT, d->x_names, e->n_x, sizeof *d->x_names, 0);
  add(l, "x_units", DVBF_TEXT, d->x_units, e->n_x, sizeof *d->x_units, 0);
  if (!e->n_u) return;
  add(l, "u_names", DVBF_TEXT, d->u_names, e->n_u, sizeof *d->u_names, 0);
  add(l, "u_units", DVBF_TEXT, d->u_units, e->n_u, sizeof *d->u_units, 0);
}

static dvbf_status write_arrays(const dv_outcome *o, const char *path, dvbf_error *error) {
  list l = {.o = o};
  const dvbf_estimates *e = o->e;
  add_estimates(&l);
  add(&l, "u", DVBF_FLOAT32, e->u, e->count, e->steps, e->n_u);
  if (o->sequences && !o->samples) add_truth(&l);
  if (o->sequences) add_origins(&l);
  if (o->sequences && o->data && o->data->sample_time > 0) add_times(&l);
  if (o->data) add_columns(&l);
  dvbf_status status = l.failed ? dv_fail_memory(error, "writing estimates")
                                : dvbf_arrays_write(path, l.arrays, l.count, error);
  for (size_t i = 0; i < l.n_made; i++) dv_free(l.made[i]);
  return status;
}

/* ---- Files ---- */

static bool is_csv(const char *path) {
  size_t length = strlen(path);
  return length > 4 && !strcasecmp(path + length - 4, ".csv");
}

dvbf_status dvbf_estimates_check_path(const char *path, dvbf_error *error) {
  if (is_csv(path) || !dvbf_arrays_check_path(path, NULL)) return DVBF_OK;
  return dv_fail(
      error, DVBF_ARGUMENT,
      "%.200s: its ending names no format; .csv makes it a table, .h5 or .hdf5 HDF5, .npz an archive "
      "for NumPy, .mat a file for MATLAB",
      path);
}

static dvbf_status check(const dv_outcome *o, const char *work, dvbf_error *error) {
  static const char *const known[] = {"filter", "smooth", "predict", "sample"};
  bool found = false;
  for (int i = 0; i < 4; i++) found = found || !strcmp(work, known[i]);
  if (!found)
    return dv_fail(
        error, DVBF_ARGUMENT,
        "estimates are of the work \"filter\", \"smooth\", \"predict\" or \"sample\", not \"%.40s\"", work);
  if (o->samples && !o->e->x_samples)
    return dv_fail(error, DVBF_ARGUMENT,
                   "samples need x_samples, as the table \"sample\" of settings makes them");
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
  dv_outcome o = {.e = estimates, .data = data, .sequences = sequences};
  o.samples = !strcmp(work, "sample");
  o.states = strcmp(work, "predict") != 0;
  dvbf_status status = check(&o, work, error);
  if (!status) status = dvbf_estimates_check_path(path, error);
  if (!status && sequences) status = dv_sequence_buffer(&o.buffer, sequences, estimates->steps, error);
  if (!status) status = (is_csv(path) ? dv_outcome_write_csv : write_arrays)(&o, path, error);
  if (!status && sequences) status = dv_sequences_intact(sequences, error);
  dv_free(o.buffer);
  return status;
}
