#include "measure.h"

#include "command.h"
#include "walks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Regression away from bounces ---- */

/* The velocity that the ball gains by a unit of u. */
static dvbf_status control_of(double *gain, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  char text[64] = "";
  dvbf_status status = dvbf_settings_new(&settings, "ball", error);
  if (!status) status = dvbf_settings_get(settings, "control", text, sizeof text, error);
  *gain = strtod(text, NULL);
  dvbf_settings_free(settings);
  return status;
}

/* A wall is met between frames t and t + 1: a velocity, the last states, changes by more than its control. */
static bool bounces(const dvbf_sequences *s, size_t sequence, size_t t, double gain) {
  const float *now = s->state + (sequence * s->steps + t) * s->n_s, *next = now + s->n_s;
  const float *u = s->u + (sequence * s->steps + t) * s->n_u;
  for (size_t a = 0; a < s->n_u; a++) {
    size_t i = s->n_s - s->n_u + a;
    if (fabs((double)next[i] - (double)now[i] - gain * (double)u[a]) > 1e-4) return true;
  }
  return false;
}

/* R^2 of state `column` over the frames that no bounce precedes or follows. */
static dvbf_status regress_away(double *r2, const dvbf_data *data, const dvbf_paths *paths, size_t column,
                                dvbf_error *error) {
  const dvbf_sequences *s = &data->test;
  size_t points = 0, n_z = paths->n_z;
  float *z = malloc((s->count * s->steps * n_z + 1) * sizeof *z),
        *y = malloc((s->count * s->steps + 1) * sizeof *y);
  dvbf_regression regression = {0};
  double gain = 0;
  dvbf_status status =
      z && y ? control_of(&gain, error) : cli_fail(error, DVBF_MEMORY, "out of memory for a regression");
  for (size_t i = 0; !status && i < s->count; i++)
    for (size_t t = 0; t < s->steps; t++) {
      if ((t && bounces(s, i, t - 1, gain)) || (t + 1 < s->steps && bounces(s, i, t, gain))) continue;
      memcpy(z + points * n_z, paths->z + (i * s->steps + t) * n_z, n_z * sizeof *z);
      y[points++] = s->state[(i * s->steps + t) * s->n_s + column];
    }
  if (!status) status = dvbf_regress(&regression, z, points, n_z, y, 1, error);
  *r2 = regression.r2;
  free(z);
  free(y);
  return status;
}

static dvbf_status measure_away(double *r2, const char *state, const dvbf_data *data, const dvbf_paths *paths,
                                dvbf_error *error) {
  *r2 = NAN;
  for (size_t i = 0; i < data->test.n_s; i++)
    if (!strcmp(data->state_names[i], state)) return regress_away(r2, data, paths, i, error);
  return DVBF_OK;
}

/* ---- Walks ---- */

static dvbf_status measure_walk(double *distance, const dvbf_model *model, const dvbf_paths *paths,
                                uint64_t seed, unsigned threads, dvbf_error *error) {
  cli_walks walks;
  dvbf_status status = cli_walks_take(&walks, model, seed, threads, error);
  if (!status) *distance = cli_walks_distance(&walks, paths);
  cli_walks_free(&walks);
  return status;
}

dvbf_status cli_measure(double *values, const cli_experiment *e, const dvbf_model *model,
                        const dvbf_data *data, uint64_t seed, unsigned threads, dvbf_error *error) {
  dvbf_paths *paths = NULL;
  dvbf_infer_options options = {.seed = seed, .threads = threads};
  dvbf_status status = dvbf_infer(&paths, model, &data->test, &options, error);
  for (size_t i = 0; !status && i < cli_quantities(e); i++) {
    const cli_quantity *q = &e->quantity[i];
    if (q->kind == CLI_R2_AWAY) status = measure_away(&values[i], q->state, data, paths, error);
    if (q->kind == CLI_WALK) status = measure_walk(&values[i], model, paths, seed, threads, error);
  }
  dvbf_paths_free(paths);
  return status;
}
