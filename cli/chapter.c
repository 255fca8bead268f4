#include "chapter.h"

#include "chapter_parts.h"
#include "command.h"
#include "training.h"

#include <stdio.h>

/* Most pixels in a row of the film, over all sequences, and most sequences: they keep the page small. */
enum { FILM_PIXELS = 200000, FILM_SEQUENCES = 8 };

dvbf_status cli_chapter_left_out(dvbf_page *page, const cli_chapter *c, const char *text, dvbf_error *error) {
  if (!c->quiet) fprintf(stderr, "%s: %s\n", c->name, text);
  return dvbf_page_note(page, text, error);
}

const dvbf_evaluation *cli_chapter_far(const cli_chapter *c) {
  return c->long_evaluation ? c->long_evaluation : c->evaluation;
}

size_t cli_chapter_training_steps(const cli_chapter *c, const cli_shown *shown) {
  size_t steps = c->data->train.steps;
  return c->data->train.count && steps < shown->film.steps ? steps : 0;
}

/* ---- What is shown ---- */

static dvbf_status choose_film(cli_shown *shown, const cli_chapter *c, dvbf_error *error) {
  const dvbf_sequences *all = c->long_sequences ? c->long_sequences : c->sequences;
  shown->data = c->long_sequences ? c->long_data : c->data;
  size_t each = all->steps * all->n_x, most = each ? FILM_PIXELS / each : 1;
  if (most < 1) most = 1;
  if (most > FILM_SEQUENCES) most = FILM_SEQUENCES;
  return dvbf_sequences_copy(&shown->film, all, 0, all->count < most ? all->count : most, error);
}

static dvbf_status infer(cli_shown *shown, const cli_chapter *c, dvbf_error *error) {
  dvbf_paths *latent = NULL;
  dvbf_infer_options sampled = {.seed = 1, .threads = c->threads},
                     mean = {.mean_path = true, .threads = c->threads};
  dvbf_status status = dvbf_infer(&latent, c->model, c->sequences, &sampled, error);
  if (!status) status = cli_points_gather(&shown->points, c->data, c->sequences, latent, error);
  dvbf_paths_free(latent);
  if (!status) status = choose_film(shown, c, error);
  if (!status) status = dvbf_infer(&shown->reconstruction, c->model, &shown->film, &mean, error);
  if (!cli_chapter_far(c)->horizon) return status;
  shown->observed = mean.observe = cli_chapter_far(c)->observed;
  if (!status) status = dvbf_infer(&shown->prediction, c->model, &shown->film, &mean, error);
  return status;
}

static void free_shown(cli_shown *shown) {
  cli_points_free(&shown->points);
  dvbf_sequences_free(&shown->film);
  dvbf_paths_free(shown->reconstruction);
  dvbf_paths_free(shown->prediction);
}

/* ---- Words ---- */

static dvbf_status add_opening(dvbf_page *page, const cli_chapter *c, dvbf_error *error) {
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

static dvbf_status add_settings(dvbf_page *page, const cli_chapter *c, dvbf_error *error) {
  cli_path path;
  dvbf_settings *settings = NULL;
  dvbf_error reason;
  dvbf_status status = dvbf_page_heading(page, 2, "Settings", error);
  if (status) return status;
  if (!c->run)
    return cli_chapter_left_out(page, c, "A model file alone has no settings.txt beside it to show.", error);
  cli_join(path, c->run, CLI_SETTINGS);
  status = dvbf_settings_new(&settings, "train", error);
  if (status) return status;
  if (dvbf_settings_read(settings, path, &reason))
    status = cli_chapter_left_out(page, c, reason.message, error);
  else
    status = dvbf_page_settings(page, "All settings of training", settings, error);
  dvbf_settings_free(settings);
  return status;
}

dvbf_status cli_chapter_add(dvbf_page *page, const cli_chapter *c, dvbf_error *error) {
  cli_shown shown = {0};
  dvbf_status status = infer(&shown, c, error);
  if (!status) status = add_opening(page, c, error);
  if (!status) status = cli_chapter_tables(page, c, error);
  if (!status) status = cli_chapter_views(page, c, &shown, error);
  if (!status) status = cli_chapter_figures(page, c, &shown, error);
  if (!status) status = add_settings(page, c, error);
  free_shown(&shown);
  return status;
}
