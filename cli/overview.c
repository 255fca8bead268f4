#include "overview.h"

#include "command.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Everything that the picture borrows. */
typedef struct overview {
  dvbf_paths *reconstruction, *prediction, *latent;
  float *angle, *velocity;                  /* [points] */
  double *mse, *mse_mean_path, *mse_repeat; /* [horizon] over the pixel variance */
} overview;

static dvbf_status infer(overview *o, const dvbf_model *model, const dvbf_data *data,
                         const dvbf_data *lengthy, const dvbf_evaluation *evaluation, unsigned threads,
                         dvbf_error *error) {
  dvbf_sequences one = lengthy->test;
  one.count = 1;
  dvbf_infer_options sampled = {.seed = 1, .threads = threads},
                     mean = {.mean_path = true, .threads = threads};
  dvbf_status status = dvbf_infer(&o->latent, model, &data->test, &sampled, error);
  if (!status) status = dvbf_infer(&o->reconstruction, model, &one, &mean, error);
  mean.observe = evaluation->observed;
  if (!status) status = dvbf_infer(&o->prediction, model, &one, &mean, error);
  return status;
}

/* Column of the state whose name begins with `prefix`; -1 when there is none. */
static int state_column(const dvbf_data *data, const char *prefix) {
  for (size_t i = 0; i < data->test.n_s; i++)
    if (!strncmp(data->state_names[i], prefix, strlen(prefix))) return (int)i;
  return -1;
}

static dvbf_status fill_states(overview *o, const dvbf_data *data, dvbf_error *error) {
  const dvbf_sequences *test = &data->test;
  int sine = state_column(data, "sin"), cosine = state_column(data, "cos");
  int velocity = state_column(data, "vel");
  size_t points = test->count * test->steps;
  if (sine < 0 || cosine < 0 || velocity < 0)
    return cli_fail(error, DVBF_FORMAT, "the picture needs states named sin, cos and velocity");
  o->angle = malloc(points * sizeof *o->angle);
  o->velocity = malloc(points * sizeof *o->velocity);
  if (!o->angle || !o->velocity) return cli_fail(error, DVBF_MEMORY, "out of memory while drawing");
  for (size_t i = 0; i < points; i++) {
    const float *state = test->state + i * test->n_s;
    o->angle[i] = atan2f(state[sine], state[cosine]);
    o->velocity[i] = state[velocity];
  }
  return DVBF_OK;
}

static double *relative(const double *mse, const dvbf_evaluation *e) {
  double *out = malloc((e->horizon + 1) * sizeof *out);
  for (size_t i = 0; out && i < e->horizon; i++) out[i] = mse[i] / e->pixel_variance;
  return out;
}

static dvbf_status fill_errors(overview *o, const dvbf_evaluation *e, dvbf_error *error) {
  o->mse = relative(e->mse, e);
  o->mse_mean_path = relative(e->mse_mean_path, e);
  o->mse_repeat = relative(e->mse_repeat, e);
  if (!o->mse || !o->mse_mean_path || !o->mse_repeat)
    return cli_fail(error, DVBF_MEMORY, "out of memory while drawing");
  return DVBF_OK;
}

static dvbf_status draw(const overview *o, const char *path, const dvbf_data *data, const dvbf_data *lengthy,
                        const dvbf_evaluation *e, dvbf_error *error) {
  dvbf_picture picture = {
      .title = "Pendulum",
      .frames = lengthy->test.steps,
      .height = lengthy->image_height,
      .width = lengthy->image_width,
      .truth = lengthy->test.x,
      .reconstruction = o->reconstruction->x,
      .prediction = o->prediction->x,
      .observed = e->observed,
      .training_steps = data->train.steps,
      .points = data->test.count * data->test.steps,
      .n_z = o->latent->n_z,
      .z = o->latent->z,
      .angle = o->angle,
      .velocity = o->velocity,
      .angle_label = "angle",
      .velocity_label = "velocity",
      .horizon = e->horizon,
      .mse = o->mse,
      .mse_mean_path = o->mse_mean_path,
      .mse_repeat = o->mse_repeat,
  };
  return dvbf_draw(&picture, path, error);
}

dvbf_status cli_overview(const char *path, const dvbf_model *model, const dvbf_data *data,
                         const dvbf_data *lengthy, const dvbf_evaluation *evaluation, unsigned threads,
                         dvbf_error *error) {
  overview o = {0};
  dvbf_status status = infer(&o, model, data, lengthy, evaluation, threads, error);
  if (!status) status = fill_states(&o, data, error);
  if (!status) status = fill_errors(&o, evaluation, error);
  if (!status) status = draw(&o, path, data, lengthy, evaluation, error);
  free(o.mse);
  free(o.mse_mean_path);
  free(o.mse_repeat);
  free(o.angle);
  free(o.velocity);
  dvbf_paths_free(o.latent);
  dvbf_paths_free(o.reconstruction);
  dvbf_paths_free(o.prediction);
  return status;
}
