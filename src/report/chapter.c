#include "report/chapter.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>

/* Most pixels in a row of the video, over all sequences, and most sequences: they keep the page small. */
enum { FILM_PIXELS = 200000, FILM_SEQUENCES = 8 };

dvbf_status dv_chapter_left_out(dvbf_page *page, const dv_chapter *c, const char *text, dvbf_error *error) {
  if (c->note) c->note(c->name, text, c->user_data);
  return dvbf_page_note(page, text, error);
}

const dvbf_evaluation *dv_chapter_far(const dv_chapter *c) {
  return c->long_evaluation ? c->long_evaluation : c->evaluation;
}

size_t dv_chapter_training_steps(const dv_chapter *c, const dv_shown *shown) {
  size_t steps = c->data->train.steps;
  return c->data->train.count && steps < shown->film.steps ? steps : 0;
}

/* ---- What is shown ---- */

static dvbf_status choose_film(dv_shown *shown, const dv_chapter *c, dvbf_error *error) {
  const dvbf_sequences *all = c->long_sequences ? c->long_sequences : c->sequences;
  shown->data = c->long_sequences ? c->long_data : c->data;
  size_t each = all->steps * all->n_x, most = each ? FILM_PIXELS / each : 1;
  if (most < 1) most = 1;
  if (most > FILM_SEQUENCES) most = FILM_SEQUENCES;
  return dvbf_sequences_copy(&shown->film, all, 0, all->count < most ? all->count : most, error);
}

static dvbf_status infer(dv_shown *shown, const dv_chapter *c, dvbf_error *error) {
  dv_path_options mean = {.noise_free = true, .threads = c->threads, .interrupt = c->interrupt};
  dv_path_options sample = {.seed = 1, .threads = c->threads, .interrupt = c->interrupt};
  dvbf_status status = dv_points_sample(&shown->points, c->model, c->data, c->sequences, &sample, error);
  if (!status) status = choose_film(shown, c, error);
  if (!status) status = dv_paths_of(&shown->reconstruction, c->model, &shown->film, &mean, error);
  if (!dv_chapter_far(c)->horizon) return status;
  shown->observed = mean.observe = dv_chapter_far(c)->observed;
  if (!status) status = dv_paths_of(&shown->prediction, c->model, &shown->film, &mean, error);
  return status;
}

static void free_shown(dv_shown *shown) {
  dv_points_free(&shown->points);
  dvbf_sequences_free(&shown->film);
  dv_paths_free(shown->reconstruction);
  dv_paths_free(shown->prediction);
}

/* ---- Interactive parts: latent space and video ---- */

static dvbf_status add_space(dvbf_page *page, const dv_points *p, dvbf_error *error) {
  dvbf_space_column *columns = dv_calloc(p->n_columns, sizeof *columns);
  if (!columns) return dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
  for (size_t i = 0; i < p->n_columns; i++)
    columns[i] = (dvbf_space_column){p->columns[i].name, p->columns[i].values, 1, p->columns[i].cyclic};
  dvbf_space space = {.caption = "One sample of z for every frame, all of which are observed.",
                      .points = p->count,
                      .n_z = p->n_z,
                      .z = p->z,
                      .columns = p->n_columns,
                      .column = columns};
  dvbf_status status = dvbf_page_space(page, &space, error);
  dv_free(columns);
  return status;
}

static dvbf_status add_film(dvbf_page *page, const dv_chapter *c, const dv_shown *shown, dvbf_error *error) {
  const dvbf_film_row rows[] = {
      {"ground truth", shown->film.x, 0},
      {"reconstruction", shown->reconstruction->x, 0},
      {"prediction", shown->prediction ? shown->prediction->x : NULL, shown->observed}};
  const char *caption =
      "Reconstruction: every frame is observed. Prediction: only the first ones are; the rest "
      "is the noise-free prediction.";
  dvbf_film film = {.caption = caption,
                    .sequences = shown->film.count,
                    .frames = shown->film.steps,
                    .height = shown->data->image_height,
                    .width = shown->data->image_width,
                    .rows = shown->prediction ? 3 : 2,
                    .row = rows,
                    .length = shown->film.length,
                    .training_steps = dv_chapter_training_steps(c, shown)};
  dvbf_status status = dvbf_page_film(page, &film, error);
  if (status != DVBF_ARGUMENT) return status;
  return dv_chapter_left_out(page, c, error->message, error);
}

static dvbf_status add_views(dvbf_page *page, const dv_chapter *c, const dv_shown *shown, dvbf_error *error) {
  dvbf_status status = dvbf_page_heading(page, 2, "Latent space", error);
  if (!status) status = add_space(page, &shown->points, error);
  if (!status) status = dvbf_page_heading(page, 2, "Video", error);
  if (status) return status;
  if (!shown->data->image_height)
    return dv_chapter_left_out(page, c, "The data are not images, so there is no video.", error);
  return add_film(page, c, shown, error);
}

/* ---- Words ---- */

static dvbf_status add_opening(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  char text[512];
  dvbf_model_info info = dvbf_model_describe(c->model);
  int n =
      snprintf(text, sizeof text,
               "A model with %zu latent dimension%s and %zu parameters after %llu updates, on %zu sequence%s "
               "(%s) of %zu frames",
               info.n_z, info.n_z == 1 ? "" : "s", info.parameters, (unsigned long long)info.updates,
               c->sequences->count, c->sequences->count == 1 ? "" : "s", c->split, c->sequences->steps);
  if (c->data->image_height)
    n += snprintf(text + n, sizeof text - (size_t)n, " of %zu × %zu pixels", c->data->image_height,
                  c->data->image_width);
  else
    n += snprintf(text + n, sizeof text - (size_t)n, " of %zu value%s", c->sequences->n_x,
                  c->sequences->n_x == 1 ? "" : "s");
  snprintf(text + n, sizeof text - (size_t)n,
           info.n_u == 1 ? ", with %zu control input."
           : info.n_u    ? ", with %zu control inputs."
                         : ".",
           info.n_u);
  dvbf_status status = dvbf_page_heading(page, 1, c->name, error);
  return status ? status : dvbf_page_text(page, text, error);
}

static dvbf_status add_settings(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  dv_path path;
  dvbf_settings *settings = NULL;
  dvbf_error reason;
  dvbf_status status = dvbf_page_heading(page, 2, "Settings", error);
  if (status) return status;
  if (!c->run)
    return dv_chapter_left_out(page, c, "A model file alone has no settings.txt beside it to show.", error);
  dv_join(path, c->run, DVBF_RUN_SETTINGS);
  status = dvbf_settings_new(&settings, "train", error);
  if (status) return status;
  if (dvbf_settings_read(settings, path, &reason))
    status = dv_chapter_left_out(page, c, reason.message, error);
  else
    status = dvbf_page_settings(page, "All settings of training", settings, error);
  dvbf_settings_free(settings);
  return status;
}

dvbf_status dv_chapter_add(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  dv_shown shown = {0};
  dvbf_status status = infer(&shown, c, error);
  if (!status) status = add_opening(page, c, error);
  bool signals = !c->data->image_height; /* there nothing matters more */
  if (!status && signals) status = dv_chapter_verdict(page, c, error);
  if (!status) status = dv_chapter_tables(page, c, error);
  if (!status && !signals) status = dv_chapter_verdict(page, c, error);
  if (!status) status = add_views(page, c, &shown, error);
  if (!status) status = dv_chapter_figures(page, c, &shown, error);
  if (!status) status = add_settings(page, c, error);
  free_shown(&shown);
  return status;
}
