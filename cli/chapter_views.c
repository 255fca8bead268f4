/* What a reader of a chapter moves: latent space and film. */
#include "chapter_parts.h"
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dvbf_status add_space(dvbf_page *page, const cli_points *p, dvbf_error *error) {
  dvbf_space_column *columns = calloc(p->n_columns + 1, sizeof *columns);
  if (!columns) return cli_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
  for (size_t i = 0; i < p->n_columns; i++)
    columns[i] = (dvbf_space_column){p->columns[i].name, p->columns[i].values, 1, p->columns[i].cyclic};
  dvbf_space space = {.caption = "One sample of z for every frame, all of which are observed.",
                      .points = p->count,
                      .n_z = p->n_z,
                      .z = p->z,
                      .columns = p->n_columns,
                      .column = columns};
  dvbf_status status = dvbf_page_space(page, &space, error);
  free(columns);
  return status;
}

static dvbf_status add_film(dvbf_page *page, const cli_chapter *c, const cli_shown *shown,
                            dvbf_error *error) {
  const dvbf_film_row rows[] = {
      {"ground truth", shown->film.x, 0},
      {"reconstruction", shown->reconstruction->x, 0},
      {"prediction", shown->prediction ? shown->prediction->x : NULL, shown->observed}};
  const char *caption =
      "Reconstruction: every frame is observed. Prediction: only the first ones are; the rest "
      "follows from them, along the mean path.";
  dvbf_film film = {.caption = caption,
                    .sequences = shown->film.count,
                    .frames = shown->film.steps,
                    .height = shown->data->image_height,
                    .width = shown->data->image_width,
                    .rows = shown->prediction ? 3 : 2,
                    .row = rows,
                    .length = shown->film.length,
                    .training_steps = cli_chapter_training_steps(c, shown)};
  dvbf_status status = dvbf_page_film(page, &film, error);
  if (status != DVBF_ARGUMENT) return status;
  char text[sizeof error->message];
  memcpy(text, error->message, sizeof text);
  return cli_chapter_left_out(page, c, text, error);
}

dvbf_status cli_chapter_views(dvbf_page *page, const cli_chapter *c, const cli_shown *shown,
                              dvbf_error *error) {
  dvbf_status status = dvbf_page_heading(page, 2, "Latent space", error);
  if (!status) status = add_space(page, &shown->points, error);
  if (!status) status = dvbf_page_heading(page, 2, "Film", error);
  if (status) return status;
  if (!shown->data->image_height)
    return cli_chapter_left_out(page, c, "The data are not images, so there is no film.", error);
  return add_film(page, c, shown, error);
}
