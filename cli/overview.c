#include "overview.h"

#include "command.h"
#include "points.h"

#include <stdlib.h>

/* Everything that the picture borrows. */
typedef struct overview {
  dvbf_paths *reconstruction, *prediction;
  cli_points points;                        /* latent samples of the test set with their states */
  double *mse, *mse_mean_path, *mse_repeat; /* [horizon] over the pixel variance */
} overview;

static dvbf_status infer(overview *o, const dvbf_model *model, const dvbf_data *data,
                         const dvbf_data *lengthy, const dvbf_evaluation *evaluation, unsigned threads,
                         dvbf_error *error) {
  dvbf_sequences one = lengthy->test;
  one.count = 1;
  dvbf_infer_options sampled = {.seed = 1, .threads = threads},
                     mean = {.mean_path = true, .threads = threads};
  dvbf_paths *latent = NULL;
  dvbf_status status = dvbf_infer(&latent, model, &data->test, &sampled, error);
  if (!status) status = cli_points_gather(&o->points, data, &data->test, latent, error);
  dvbf_paths_free(latent);
  if (!status) status = dvbf_infer(&o->reconstruction, model, &one, &mean, error);
  mean.observe = evaluation->observed;
  if (!status) status = dvbf_infer(&o->prediction, model, &one, &mean, error);
  return status;
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
  const cli_column *angle = cli_points_column(&o->points, "angle"),
                   *velocity = cli_points_column(&o->points, "velocity");
  if (!angle || !velocity)
    return cli_fail(error, DVBF_FORMAT, "the picture needs states named sin, cos and velocity");
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
      .points = o->points.count,
      .n_z = o->points.n_z,
      .z = o->points.z,
      .angle = angle->values,
      .velocity = velocity->values,
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
  if (!status) status = fill_errors(&o, evaluation, error);
  if (!status) status = draw(&o, path, data, lengthy, evaluation, error);
  free(o.mse);
  free(o.mse_mean_path);
  free(o.mse_repeat);
  cli_points_free(&o.points);
  dvbf_paths_free(o.reconstruction);
  dvbf_paths_free(o.prediction);
  return status;
}
