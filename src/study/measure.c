#include "study/measure.h"

#include "base/locale.h"
#include "base/memory.h"
#include "base/status.h"
#include "evaluate/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Regression away from bounces ---- */

/* The velocity that the ball gains by a unit of u. */
static dvbf_status control_of(double *gain, const char *preset, dvbf_error *error) {
  DV_PLAIN_NUMBERS;
  dvbf_settings *settings = NULL;
  char text[64] = "";
  dvbf_status status = dvbf_settings_new(&settings, "ball", error);
  if (!status) status = dvbf_settings_preset(settings, preset, error);
  if (!status) status = dvbf_settings_get(settings, "control", text, sizeof text, error);
  *gain = strtod(text, NULL);
  dvbf_settings_free(settings);
  return status;
}

/* A wall is met between frames t and t + 1: a velocity, the last states, changes by more than its control. */
static bool bounces(const dvbf_sequences *s, size_t sequence, size_t t, double gain) {
  const float *now = s->state + (dvbf_sequence_start(s, sequence) + t) * s->n_s, *next = now + s->n_s;
  const float *u = s->u + (dvbf_sequence_start(s, sequence) + t) * s->n_u;
  for (size_t a = 0; a < s->n_u; a++) {
    size_t i = s->n_s - s->n_u + a;
    if (fabs((double)next[i] - (double)now[i] - gain * (double)u[a]) > 1e-4) return true;
  }
  return false;
}

/* R^2 of state `column` over the frames that no bounce precedes or follows. */
static dvbf_status regress_away(double *r2, const dv_subject *from, const dv_paths *paths, size_t column,
                                dvbf_error *error) {
  const dvbf_sequences *s = &from->data->test;
  size_t points = 0, n_z = paths->n_z;
  /* [frames][n_z] and [frames] in one block */
  float *z = dv_calloc(s->count * s->steps, (n_z + 1) * sizeof *z), *y;
  dvbf_regression regression = {0};
  double gain = 0;
  if (!z) return dv_fail(error, DVBF_MEMORY, "out of memory for a regression");
  y = z + s->count * s->steps * n_z;
  dvbf_status status = control_of(&gain, from->preset, error);
  for (size_t i = 0; !status && i < s->count; i++)
    for (size_t t = 0; t < s->steps; t++) {
      if ((t && bounces(s, i, t - 1, gain)) || (t + 1 < s->steps && bounces(s, i, t, gain))) continue;
      memcpy(z + points * n_z, paths->z + (i * s->steps + t) * n_z, n_z * sizeof *z);
      y[points++] = s->state[(dvbf_sequence_start(s, i) + t) * s->n_s + column];
    }
  if (!status) status = dvbf_regress(&regression, z, points, n_z, y, 1, error);
  *r2 = regression.r2;
  dv_free(z);
  return status;
}

static dvbf_status measure_away(double *r2, const char *state, const dv_subject *from, const dv_paths *paths,
                                dvbf_error *error) {
  const dvbf_data *data = from->data;
  *r2 = NAN;
  for (size_t i = 0; i < data->test.n_s; i++)
    if (!strcmp(data->state_names[i], state)) return regress_away(r2, from, paths, i, error);
  return DVBF_OK;
}

/* ---- Walks ---- */

static dvbf_status measure_walk(double *distance, const dv_subject *from, const dv_paths *paths,
                                dvbf_error *error) {
  dv_walks walks;
  dvbf_status status = dv_walks_take(&walks, from, error);
  if (!status) *distance = dv_walks_distance(&walks, paths);
  dv_walks_free(&walks);
  return status;
}

/* ---- Whole balls ---- */

/* Darkens the bright pixels that hang together with that one. */
static void darken(float *image, size_t height, size_t width, size_t row, size_t column) {
  if (row >= height || column >= width || image[row * width + column] <= 0.5f) return;
  image[row * width + column] = 0;
  darken(image, height, width, row + 1, column);
  darken(image, height, width, row - 1, column); /* from 0 to far beyond the height */
  darken(image, height, width, row, column + 1);
  darken(image, height, width, row, column - 1);
}

/* Regions of pixels above one half; a blurred or faded ball has none. */
static size_t bright_regions(const float *image, size_t height, size_t width, float *scratch) {
  size_t regions = 0;
  memcpy(scratch, image, height * width * sizeof *scratch);
  for (size_t i = 0; i < height; i++)
    for (size_t j = 0; j < width; j++)
      if (scratch[i * width + j] > 0.5f) {
        darken(scratch, height, width, i, j);
        regions++;
      }
  return regions;
}

/* Share of the sequences whose last image in x [count][steps][n_x] has that many regions. */
static dvbf_status measure_whole(double *share, const dvbf_data *long_data, const float *x, size_t balls,
                                 dvbf_error *error) {
  const dvbf_sequences *s = &long_data->test;
  float *scratch = dv_calloc(s->n_x, sizeof *scratch);
  double whole = 0;
  if (!scratch) return dv_fail(error, DVBF_MEMORY, "out of memory while counting balls");
  for (size_t i = 0; i < s->count; i++)
    whole += bright_regions(x + ((i + 1) * s->steps - 1) * s->n_x, long_data->image_height,
                            long_data->image_width, scratch) == balls;
  *share = whole / (double)s->count;
  dv_free(scratch);
  return DVBF_OK;
}

static dvbf_status measure_generated(double *share, const dv_subject *from, size_t balls, dvbf_error *error) {
  dv_paths *paths = NULL;
  dv_path_options options = {.observe = from->observed, .noise_free = true, .threads = from->threads};
  dvbf_status status = dv_paths_of(&paths, from->model, &from->long_data->test, &options, error);
  if (!status) status = measure_whole(share, from->long_data, paths->x, balls, error);
  dv_paths_free(paths);
  return status;
}

/* ---- Regression by a network ---- */

/* Of all states at once; fills the quantities that name one of them. */
static dvbf_status measure_network(double *values, const dv_experiment *e, const dv_subject *from,
                                   const dv_paths *paths, dvbf_error *error) {
  const dvbf_sequences *s = &from->data->test;
  if (dv_quantity_of(e, DV_OF_R2_NETWORK) == DV_QUANTITIES || !s->n_s) return DVBF_OK;
  double *r2 = dv_calloc(s->n_s, sizeof *r2);
  dvbf_status status =
      r2 ? dv_network_regress(r2, paths->z, s->count * s->steps, paths->n_z, s->state, s->n_s, error)
         : dv_fail_memory(error, "a regression by a network");
  for (size_t i = 0; !status && i < dv_quantities(e); i++)
    for (size_t k = 0; e->quantity[i].kind == DV_OF_R2_NETWORK && k < s->n_s; k++)
      if (!strcmp(from->data->state_names[k], e->quantity[i].state)) values[i] = r2[k];
  dv_free(r2);
  return status;
}

/* ---- Centres ---- */

static dvbf_status measure_centres(double *values, const dv_experiment *e, const dv_subject *from,
                                   dvbf_error *error) {
  if (dv_quantity_of(e, DV_OF_VALID) == DV_QUANTITIES) return DVBF_OK;
  dv_paths *paths = NULL;
  dv_centres c = {0};
  dv_path_options options = {.observe = from->observed, .noise_free = true, .threads = from->threads};
  dvbf_status status = dv_paths_of(&paths, from->model, &from->long_data->test, &options, error);
  if (!status) dv_centres_measure(&c, from->long_data, paths->x, from->observed);
  for (size_t i = 0; !status && i < dv_quantities(e); i++) {
    dv_quantity_kind kind = e->quantity[i].kind;
    if (kind == DV_OF_VALID) values[i] = c.valid;
    if (kind == DV_OF_CLOSE) values[i] = c.close;
    if (kind == DV_OF_DISTANCE) values[i] = c.near;
    if (kind == DV_OF_DISTANCE_FAR) values[i] = c.far;
  }
  dv_paths_free(paths);
  return status;
}

dvbf_status dv_measure(double *values, const dv_experiment *e, const dv_subject *from, dvbf_error *error) {
  dv_paths *paths = NULL;
  dv_path_options options = {.seed = from->seed, .threads = from->threads};
  dvbf_status status = dv_paths_of(&paths, from->model, &from->data->test, &options, error);
  for (size_t i = 0; !status && i < dv_quantities(e); i++) {
    const dv_quantity *q = &e->quantity[i];
    if (q->kind == DV_OF_R2_AWAY) status = measure_away(&values[i], q->state, from, paths, error);
    if (q->kind == DV_OF_WALK) status = measure_walk(&values[i], from, paths, error);
    if (q->kind == DV_OF_WHOLE) status = measure_generated(&values[i], from, q->first, error);
    if (q->kind == DV_OF_WHOLE_TRUTH)
      status = measure_whole(&values[i], from->long_data, from->long_data->test.x, q->first, error);
  }
  if (!status) status = measure_network(values, e, from, paths, error);
  if (!status) status = measure_centres(values, e, from, error);
  dv_paths_free(paths);
  return status;
}
