/* The figures of a chapter: drawn into files, then embedded in the page. */
#include "base/memory.h"
#include "base/status.h"
#include "report/chapter.h"

#include <stdio.h>
#include <sys/stat.h>

static const char *const names[] = {"errors", "strips", "signals", "latent", "ball", "curves"};

void dv_chapter_figure_path(dv_path out, const dv_chapter *c, const char *name, const char *extension) {
  char file[256];
  snprintf(file, sizeof file, "%.100s%s%s%s", c->key ? c->key : "", c->key ? "-" : "", name, extension);
  dv_join(out, c->figures, file);
}

dvbf_status dv_chapter_refuse(const dv_chapter *c, bool force, dvbf_error *error) {
  dv_path path;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; !status && i < sizeof names / sizeof *names; i++) {
    dv_chapter_figure_path(path, c, names[i], ".png");
    status = dv_refuse_existing(path, force, error);
    dv_chapter_figure_path(path, c, names[i], ".svg");
    if (!status) status = dv_refuse_existing(path, force, error);
  }
  return status;
}

/* Thousands of points make an SVG larger than this; then the PNG is embedded. */
enum { LARGE = 400000 };

static long long size_of(const char *path) {
  struct stat info;
  return stat(path, &info) ? 0 : (long long)info.st_size;
}

dvbf_status dv_chapter_embed(dvbf_page *page, const dv_chapter *c, const char *name, dvbf_status drawn,
                             const char *caption, const char *alternative, dvbf_error *error) {
  dv_path path;
  char text[600];
  if (drawn == DVBF_IO || drawn == DVBF_MEMORY) return drawn;
  snprintf(text, sizeof text, "No figure \"%s\": %s", name, error->message);
  if (drawn) return dv_chapter_left_out(page, c, text, error);
  dv_chapter_figure_path(path, c, name, ".svg");
  if (size_of(path) > LARGE) dv_chapter_figure_path(path, c, name, ".png");
  return dvbf_page_picture(page, path, caption, alternative, error);
}

/* ---- Prediction error ---- */

static dvbf_status add_errors(dvbf_page *page, const dv_chapter *c, const dv_shown *shown,
                              dvbf_error *error) {
  const dvbf_evaluation *e = dv_chapter_far(c);
  dv_path path;
  if (!e->horizon) return DVBF_OK; /* the table says why */
  double *over = dv_calloc(3 * e->horizon, sizeof *over),
         unit = e->pixel_variance > 0 ? e->pixel_variance : 1;
  if (!over) return dv_fail(error, DVBF_MEMORY, "out of memory while drawing");
  for (size_t h = 0; h < e->horizon; h++) {
    over[h] = e->mse[h] / unit;
    over[e->horizon + h] = e->mse_mean_path[h] / unit;
    over[2 * e->horizon + h] = e->mse_repeat[h] / unit;
  }
  dvbf_error_curve curve = {c->name, e->horizon, over, over + e->horizon};
  dvbf_figure_errors figure = {.models = 1,
                               .model = &curve,
                               .repeat_horizon = e->horizon,
                               .repeat = over + 2 * e->horizon,
                               .observed = e->observed,
                               .training_steps = dv_chapter_training_steps(c, shown)};
  dv_chapter_figure_path(path, c, "errors", "");
  dvbf_status drawn = dvbf_draw_errors(&figure, path, error);
  dv_free(over);
  return dv_chapter_embed(
      page, c, "errors", drawn, "Prediction error by horizon, over the variance of the data.",
      "Curves of the prediction error against the number of steps ahead, with two baselines", error);
}

/* ---- Images ---- */

static dvbf_status add_strips(dvbf_page *page, const dv_chapter *c, const dv_shown *shown,
                              dvbf_error *error) {
  dv_path path;
  if (!shown->data->image_height) return DVBF_OK; /* the place of the video says why */
  const dvbf_strip_row rows[] = {
      {"ground truth", shown->film.x, 0},
      {"reconstruction", shown->reconstruction->x, 0},
      {"prediction", shown->prediction ? shown->prediction->x : NULL, shown->observed}};
  dvbf_figure_strips figure = {.frames = shown->film.length ? shown->film.length[0] : shown->film.steps,
                               .height = shown->data->image_height,
                               .width = shown->data->image_width,
                               .rows = shown->prediction ? 3 : 2,
                               .row = rows,
                               .training_steps = dv_chapter_training_steps(c, shown)};
  dv_chapter_figure_path(path, c, "strips", "");
  dvbf_status drawn = dvbf_draw_strips(&figure, path, error);
  return dv_chapter_embed(page, c, "strips", drawn, "The first sequence, frame by frame.",
                          "Rows of images: ground truth, reconstruction and prediction", error);
}

/* ---- Signals ---- */

static dvbf_status add_signals(dvbf_page *page, const dv_chapter *c, const dv_shown *shown,
                               dvbf_error *error) {
  dv_path path;
  if (shown->data->image_height || !shown->prediction) return DVBF_OK;
  dvbf_figure_signals figure = {.steps = shown->film.length ? shown->film.length[0] : shown->film.steps,
                                .columns = shown->film.n_x,
                                .truth = shown->film.x,
                                .prediction = shown->prediction->x,
                                .names = shown->data->x_names,
                                .observed = shown->observed};
  dv_chapter_figure_path(path, c, "signals", "");
  dvbf_status drawn = dvbf_draw_signals(&figure, path, error);
  return dv_chapter_embed(page, c, "signals", drawn,
                          "The first sequence: what was measured, and what is predicted without noise.",
                          "Measured and predicted values over time", error);
}

/* ---- Latent space ---- */

static dvbf_status add_latent(dvbf_page *page, const dv_chapter *c, const dv_points *p, dvbf_error *error) {
  const dv_column *angle = dv_points_column(p, "angle"), *velocity = dv_points_column(p, "vel");
  dv_path path;
  if (!angle) return DVBF_OK;
  dvbf_figure_latent figure = {.models = 1,
                               .model = {{.title = c->name,
                                          .points = p->count,
                                          .n_z = p->n_z,
                                          .z = p->z,
                                          .angle = angle->values,
                                          .velocity = velocity ? velocity->values : NULL}}};
  dv_chapter_figure_path(path, c, "latent", "");
  dvbf_status drawn = dvbf_draw_latent(&figure, path, error);
  return dv_chapter_embed(
      page, c, "latent", drawn,
      "The latent space along the directions that predict the state, and how well they do.",
      "Latent samples coloured by angle and velocity, and predicted against true values", error);
}

/* out[i][0..1] from two columns; NULL without them or memory. */
static float *pairs(const dv_column *x, const dv_column *y, size_t count) {
  float *out = x && y ? dv_calloc(count, 2 * sizeof *out) : NULL;
  for (size_t i = 0; out && i < count; i++) out[2 * i] = x->values[i], out[2 * i + 1] = y->values[i];
  return out;
}

static dvbf_status add_ball(dvbf_page *page, const dv_chapter *c, const dv_points *p, dvbf_error *error) {
  const dv_column *x = dv_points_named(p, "x"), *y = dv_points_named(p, "y");
  const dv_column *across = dv_points_named(p, "velocity x"), *up = dv_points_named(p, "velocity y");
  dv_path path;
  if (!x || !y) return DVBF_OK;
  float *position = pairs(x, y, p->count), *velocity = pairs(across, up, p->count);
  dvbf_figure_ball figure = {
      .points = p->count, .n_z = p->n_z, .z = p->z, .position = position, .velocity = velocity};
  dv_chapter_figure_path(path, c, "ball", "");
  dvbf_status drawn = position ? dvbf_draw_ball(&figure, path, error)
                               : dv_fail(error, DVBF_MEMORY, "out of memory while drawing");
  DV_FREE(position, velocity);
  return dv_chapter_embed(page, c, "ball", drawn, "Position and velocity in the latent space.",
                          "Latent samples coloured by a checkerboard over the box and by velocity", error);
}

/* ---- Learning curves ---- */

static dvbf_status add_curves(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  dv_path path;
  dvbf_metrics *metrics = NULL;
  dvbf_status status = dvbf_page_heading(page, 2, "Learning curves", error);
  if (status) return status;
  if (!c->run)
    return dv_chapter_left_out(page, c, "A model file alone has no metrics.csv beside it to draw.", error);
  dv_join(path, c->run, DVBF_RUN_METRICS);
  if (dvbf_metrics_read(&metrics, path, error)) return dv_chapter_left_out(page, c, error->message, error);
  dvbf_figure_curves figure = {.runs = metrics->n_runs, .run = metrics->runs};
  dv_chapter_figure_path(path, c, "curves", "");
  dvbf_status drawn = dvbf_draw_curves(&figure, path, error);
  dvbf_metrics_free(metrics);
  return dv_chapter_embed(page, c, "curves", drawn,
                          "Training: bound, prediction error on validation data, and KL.",
                          "Curves of the bound, the prediction error and the KL against updates", error);
}

dvbf_status dv_chapter_figures(dvbf_page *page, const dv_chapter *c, const dv_shown *shown,
                               dvbf_error *error) {
  dvbf_status status = dvbf_page_heading(page, 2, "Figures", error);
  if (!status) status = add_errors(page, c, shown, error);
  if (!status) status = add_strips(page, c, shown, error);
  if (!status) status = add_signals(page, c, shown, error);
  if (!status) status = add_latent(page, c, &shown->points, error);
  if (!status) status = add_ball(page, c, &shown->points, error);
  if (!status) status = add_curves(page, c, error);
  return status;
}
