#include "estimates.h"

#include "files.h"
#include "progress.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ARRAYS = 12 };

typedef struct list {
  dvbf_array arrays[MOST_ARRAYS];
  size_t count;
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
static dvbf_array *add_x(list *l, const char *name, const float *values, const dvbf_estimates *e,
                         const dvbf_data *data) {
  dvbf_array *array = add(l, name, DVBF_FLOAT32, values, e->count, e->steps, e->n_x);
  if (data && data->image_height) {
    array->dims[2] = data->image_height;
    insert(array, 3, data->image_width);
  }
  return array;
}

/* With one sample per sequence, x has the shape of data files. */
static void list_samples(list *l, const dvbf_estimates *e, const dvbf_data *data) {
  add(l, "z", DVBF_FLOAT32, e->z, e->count, e->steps, e->n_z);
  add_x(l, "x", e->x_samples, e, data);
  add(l, "u", DVBF_FLOAT32, e->u, e->count, e->steps, e->n_u);
}

static void list_states(list *l, const dvbf_estimates *e, const dvbf_data *data) {
  insert(add(l, "z", DVBF_FLOAT32, e->z, e->count, e->steps, e->n_z), 1, e->samples);
  add(l, "z_mean", DVBF_FLOAT32, e->z_mean, e->count, e->steps, e->n_z);
  add(l, "z_std", DVBF_FLOAT32, e->z_std, e->count, e->steps, e->n_z);
  add_x(l, "x", e->x, e, data);
  add_x(l, "x_std", e->x_std, e, data);
  add(l, "length", DVBF_UINT32, e->length, e->count, 0, 0);
}

/* x of every sample, where it was asked for. */
static void list_x_samples(list *l, const dvbf_estimates *e, const dvbf_data *data) {
  insert(add_x(l, "x_samples", e->x_samples, e, data), 1, e->samples);
}

static void list_predictions(list *l, const dvbf_estimates *e, const dvbf_data *data) {
  list_states(l, e, data);
  insert(add_x(l, "x_quantiles", e->x_quantiles, e, data), 0, e->n_quantiles);
  add(l, "quantiles", DVBF_FLOAT64, e->quantiles, e->n_quantiles, 0, 0);
  list_x_samples(l, e, data);
  add(l, "u", DVBF_FLOAT32, e->u, e->count, e->steps, e->n_u);
}

static dvbf_status write(const dvbf_estimates *e, const cli_inputs *in, const cli_options *options,
                         const char *path, dvbf_error *error) {
  list l = {.count = 0};
  const char *name = options->command->name;
  if (!strcmp(name, "sample"))
    list_samples(&l, e, in->data);
  else if (!strcmp(name, "predict"))
    list_predictions(&l, e, in->data);
  else {
    list_states(&l, e, in->data);
    list_x_samples(&l, e, in->data);
  }
  dvbf_status status = dvbf_arrays_write(path, l.arrays, l.count, error);
  if (status || cli_option(options, "quiet")) return status;
  fprintf(stderr, "%s: %zu sequence%s of %zu steps\n", path, e->count, e->count == 1 ? "" : "s", e->steps);
  return DVBF_OK;
}

static dvbf_status estimate(const cli_inputs *in, dvbf_estimates **out, bool quiet, dvbf_error *error) {
  cli_share share = cli_share_new();
  dvbf_status status = dvbf_estimate_with(out, in->model, in->sequences, in->settings,
                                          quiet ? NULL : cli_share_show, &share, error);
  cli_share_end(&share);
  return status;
}

dvbf_status cli_estimate(cli_inputs *in, dvbf_estimates **out, const cli_options *options, bool needed,
                         dvbf_error *error) {
  const char *path = cli_option(options, "output");
  *in = (cli_inputs){0};
  dvbf_status status = needed ? cli_option_needed(&path, options, "output", error) : DVBF_OK;
  if (!status && path) status = dvbf_arrays_check_path(path, error);
  if (!status && path) status = cli_refuse_existing(path, cli_option(options, "force"), error);
  if (!status) status = cli_inputs_read(in, options, error);
  if (!status) status = estimate(in, out, cli_option(options, "quiet"), error);
  if (!status && path) status = write(*out, in, options, path, error);
  return status;
}

dvbf_status cli_estimate_only(const cli_options *options, dvbf_error *error) {
  cli_inputs in;
  dvbf_estimates *estimates = NULL;
  dvbf_status status = cli_estimate(&in, &estimates, options, true, error);
  dvbf_estimates_free(estimates);
  cli_inputs_free(&in);
  return status;
}
