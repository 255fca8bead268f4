#include "report/chapter.h"

#include "base/file.h"
#include "base/status.h"

#include <stdio.h>

/* Most pixels in a row of the video, over all sequences: they keep the page small. */
enum { FILM_PIXELS = 200000 };

void dv_chapter_tell(const dv_chapter *c, const char *text) {
  if (c->note) c->note(c->name, text, c->user_data);
}

const char *dv_chapter_column(const dv_chapter *c) {
  return c->data->image_height ? "pixel" : "column";
}

const char *dv_chapter_step(const dv_chapter *c) {
  return c->data->image_height ? "frame" : "step";
}

dvbf_status dv_chapter_left_out(dvbf_page *page, const dv_chapter *c, const char *text, dvbf_error *error) {
  dv_chapter_tell(c, text);
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
  if (most > DV_FILM_SEQUENCES) most = DV_FILM_SEQUENCES;
  if (most > all->count) most = all->count;
  for (size_t i = 0; i < most; i++) dv_signal_sequence(shown->names[i], all, i);
  return dvbf_sequences_copy(&shown->film, all, 0, most, error);
}

/* What a video shows: paths without noise. */
static dvbf_status infer_film(dv_shown *shown, const dv_chapter *c, dvbf_error *error) {
  dv_path_options mean = {.noise_free = true, .threads = c->threads, .interrupt = c->interrupt};
  dvbf_status status = choose_film(shown, c, error);
  if (!status) status = dv_paths_of(&shown->reconstruction, c->model, &shown->film, &mean, error);
  if (!shown->observed) return status;
  mean.observe = shown->observed;
  if (!status) status = dv_paths_of(&shown->prediction, c->model, &shown->film, &mean, error);
  return status;
}

static dvbf_status infer(dv_shown *shown, const dv_chapter *c, dvbf_error *error) {
  dv_path_options sample = {.seed = 1, .threads = c->threads, .interrupt = c->interrupt};
  dvbf_status status = dv_points_sample(&shown->points, c->model, c->data, c->sequences, &sample, error);
  shown->observed = dv_chapter_far(c)->horizon ? dv_chapter_far(c)->observed : 0;
  if (status) return status;
  if (c->data->image_height) return infer_film(shown, c, error);
  return dv_signals_of(&shown->signals, c->model, c->data, c->sequences, shown->observed, c->settings, error);
}

static void free_shown(dv_shown *shown) {
  dv_points_free(&shown->points);
  dv_signals_clear(&shown->signals);
  dvbf_sequences_free(&shown->film);
  dv_paths_free(shown->reconstruction);
  dv_paths_free(shown->prediction);
}

/* ---- Words ---- */

static dvbf_status add_opening(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  char text[512];
  dvbf_model_info info = dvbf_model_describe(c->model);
  const dvbf_sequences *s = c->sequences;
  int n = snprintf(text, sizeof text,
                   "A model with %zu latent dimension%s and %zu parameters after %llu updates, on %zu "
                   "sequence%s (%s) of %s%zu %ss",
                   info.n_z, info.n_z == 1 ? "" : "s", info.parameters, (unsigned long long)info.updates,
                   s->count, s->count == 1 ? "" : "s", c->split, s->length ? "up to " : "", s->steps,
                   dv_chapter_step(c));
  if (c->data->image_height)
    n += snprintf(text + n, sizeof text - (size_t)n, " of %zu × %zu pixels%s", c->data->image_height,
                  c->data->image_width, c->data->image_channels == 3 ? " in colour" : "");
  else
    n += snprintf(text + n, sizeof text - (size_t)n, " of %zu column%s", s->n_x, s->n_x == 1 ? "" : "s");
  snprintf(text + n, sizeof text - (size_t)n,
           info.n_u == 1 ? ", with %zu input."
           : info.n_u    ? ", with %zu inputs."
                         : ".",
           info.n_u);
  return dvbf_page_text(page, text, error);
}

static dvbf_status add_settings(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  dv_path path;
  dvbf_settings *settings = NULL;
  dvbf_error reason;
  if (!c->run) {
    dv_chapter_tell(c, "A model file alone has no settings.txt beside it to show.");
    return DVBF_OK;
  }
  dv_join(path, c->run, DVBF_RUN_SETTINGS);
  dvbf_status status = dvbf_settings_new(&settings, "train", error);
  if (status) return status;
  bool there = dv_exists(path);
  status = dvbf_settings_read(settings, path, &reason);
  if (status == DVBF_FORMAT || status == DVBF_ARGUMENT || (status && !there)) {
    dv_chapter_tell(c, reason.message);
    status = DVBF_OK;
  } else if (status) { /* another time it can be read */
    status = dv_fail(error, status, "%s", reason.message);
  } else {
    status = dvbf_page_heading(page, 2, "Settings", error);
    if (!status) status = dvbf_page_settings(page, "All settings of training", settings, error);
  }
  dvbf_settings_free(settings);
  return status;
}

dvbf_status dv_chapter_add(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  dv_shown shown = {0};
  dvbf_status status = infer(&shown, c, error);
  if (!status) status = dvbf_page_heading(page, 1, c->name, error);
  if (!status) status = dv_chapter_verdict(page, c, error);
  if (!status) status = add_opening(page, c, error);
  if (!status) status = dv_chapter_signals(page, c, &shown, error);
  if (!status) status = dv_chapter_video(page, c, &shown, error);
  if (!status) status = dv_chapter_tracks(page, c, &shown, error);
  if (!status) status = dv_chapter_scores(page, c, error);
  if (!status) status = dv_chapter_horizon(page, c, &shown, error);
  if (!status) status = dv_chapter_residuals(page, c, error);
  if (!status) status = dv_chapter_latent(page, c, &shown, error);
  if (!status) status = dv_chapter_curves(page, c, error);
  if (!status) status = dv_chapter_tables(page, c, error);
  if (!status) status = dv_chapter_search(page, c, error);
  if (!status) status = add_settings(page, c, error);
  free_shown(&shown);
  return status;
}
