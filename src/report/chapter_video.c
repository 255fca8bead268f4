/* The video of a chapter, and its strips as a figure. */
#include "base/status.h"
#include "report/chapter.h"

static dvbf_status draw_strips(dvbf_page *page, const dv_chapter *c, const dv_shown *shown,
                               dvbf_error *error) {
  dv_path path;
  const dvbf_strip_row rows[] = {
      {"ground truth", shown->film.x, 0},
      {"reconstruction", shown->reconstruction->x, 0},
      {"prediction", shown->prediction ? shown->prediction->x : NULL, shown->observed}};
  dvbf_figure_strips figure = {.frames = shown->film.length ? shown->film.length[0] : shown->film.steps,
                               .height = shown->data->image_height,
                               .width = shown->data->image_width,
                               .channels = shown->data->image_channels,
                               .rows = shown->prediction ? 3 : 2,
                               .row = rows,
                               .training_steps = dv_chapter_training_steps(c, shown)};
  dv_chapter_figure_path(path, c, "strips", "");
  return dv_chapter_drawn(page, c, "strips", dvbf_draw_strips(&figure, path, error), error);
}

dvbf_status dv_chapter_video(dvbf_page *page, const dv_chapter *c, const dv_shown *shown, dvbf_error *error) {
  if (!c->data->image_height) return DVBF_OK;
  const dvbf_film_row rows[] = {
      {"ground truth", shown->film.x, 0},
      {"reconstruction", shown->reconstruction->x, 0},
      {"prediction", shown->prediction ? shown->prediction->x : NULL, shown->observed}};
  const char *names[DV_FILM_SEQUENCES];
  for (size_t i = 0; i < shown->film.count; i++) names[i] = shown->names[i];
  dvbf_film film = {.caption =
                        "Reconstruction: every frame is observed. Prediction: only the first ones are; "
                        "the rest is predicted without noise.",
                    .sequences = shown->film.count,
                    .frames = shown->film.steps,
                    .height = shown->data->image_height,
                    .width = shown->data->image_width,
                    .channels = shown->data->image_channels,
                    .rows = shown->prediction ? 3 : 2,
                    .row = rows,
                    .length = shown->film.length,
                    .training_steps = dv_chapter_training_steps(c, shown),
                    .names = names};
  dvbf_status status = dvbf_page_heading(page, 2, "Video", error);
  if (!status) status = dvbf_page_film(page, &film, error);
  if (status == DVBF_ARGUMENT) status = dv_chapter_left_out(page, c, error->message, error);
  return status ? status : draw_strips(page, c, shown, error);
}
