/* The latent space of a chapter: to turn by hand, and as figures for pendulums and balls. */
#include "base/memory.h"
#include "base/status.h"
#include "report/chapter.h"

static dvbf_status add_space(dvbf_page *page, const dv_chapter *c, const dv_points *p, dvbf_error *error) {
  dvbf_space_column *columns = dv_calloc(p->n_columns, sizeof *columns);
  if (!columns) return dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
  for (size_t i = 0; i < p->n_columns; i++)
    columns[i] = (dvbf_space_column){p->columns[i].name, p->columns[i].values, 1, p->columns[i].cyclic,
                                     p->columns[i].group};
  dvbf_space space = {.caption = c->data->image_height
                                     ? "One sample of z for every frame, all of which are observed."
                                     : "One sample of z for every step, all of which are observed.",
                      .points = p->count,
                      .n_z = p->n_z,
                      .z = p->z,
                      .columns = p->n_columns,
                      .column = columns};
  dvbf_status status = dvbf_page_space(page, &space, error);
  dv_free(columns);
  return status == DVBF_ARGUMENT ? dv_chapter_left_out(page, c, error->message, error) : status;
}

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
  figure.narrow = true;
  dv_chapter_figure_path(path, c, "latent-narrow", "");
  if (!drawn) drawn = dvbf_draw_latent(&figure, path, error);
  return dv_chapter_embed(
      page, c, "latent", drawn, true,
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
  figure.narrow = true;
  dv_chapter_figure_path(path, c, "ball-narrow", "");
  if (!drawn) drawn = dvbf_draw_ball(&figure, path, error);
  DV_FREE(position, velocity);
  return dv_chapter_embed(page, c, "ball", drawn, true, "Position and velocity in the latent space.",
                          "Latent samples coloured by a checkerboard over the box and by velocity", error);
}

dvbf_status dv_chapter_latent(dvbf_page *page, const dv_chapter *c, const dv_shown *shown,
                              dvbf_error *error) {
  dvbf_status status = dvbf_page_heading(page, 2, "Latent space", error);
  if (!status) status = add_space(page, c, &shown->points, error);
  if (!status) status = add_latent(page, c, &shown->points, error);
  if (!status) status = add_ball(page, c, &shown->points, error);
  return status;
}
