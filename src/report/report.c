/* The report of a model (dvbf_report_write): a page with one section about one model on one data set
 * (dv_section_add). Here are heading, settings, search table, evaluation tables, verdict, latent space and
 * video; report_errors.c has curves, residuals, signals and tracks. Parts without data are left out with a
 * note. */
#include "report/report.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "report/page.h"
#include "settings_tables.h"
#include "train/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Section ---- */

/* Most pixels in a row of the video, over all sequences: they keep the page small. */
enum { FILM_PIXELS = 200000 };

void dv_section_message(const dv_section *c, const char *text) {
  if (c->note) c->note(c->name, text, c->user_data);
}

static const char *step_name(const dv_section *c) {
  return c->data->image_height ? "frame" : "step";
}

static dvbf_status leave_out(dvbf_page *page, const dv_section *c, const char *text, dvbf_error *error) {
  dv_section_message(c, text);
  return dvbf_page_note(page, text, error);
}

const dvbf_evaluation *dv_section_far(const dv_section *c) {
  return c->long_evaluation ? c->long_evaluation : c->evaluation;
}

size_t dv_section_training_steps(const dv_section *c, const dv_shown *shown) {
  size_t steps = c->data->train.steps;
  return c->data->train.count && steps < shown->film.steps ? steps : 0;
}

/* ---- Search ---- */

static void put_row(dvbf_table *t, size_t row, const dv_candidate *c) {
  dv_table_put(t, row, 0, "%s%s", c->name, c->final ? ", all data" : "");
  dv_table_put(t, row, 1, "%s", c->changes);
  dv_table_put(t, row, 2, "%llu", (unsigned long long)c->updates);
  dv_table_number(t, row, 3, "%.3f", c->score.free_run);
  dv_table_number(t, row, 4, "%.3f", c->score.one_step);
  if (c->rank) dv_table_put(t, row, 5, "%d", c->rank);
}

dvbf_status dv_section_search(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                              dvbf_error *error) {
  static const char *const headings[] = {"candidate", "settings", "updates", "free run",
                                         "one step",  "member",   NULL};
  dv_path path;
  dv_candidates all = {0};
  if (!c->run) return DVBF_OK;
  dv_join(path, c->run, DVBF_RUN_SEARCH);
  if (!dv_exists(path)) return DVBF_OK;
  dvbf_status status = dv_candidates_read(&all, path, error);
  if (status) {
    dv_candidates_free(&all);
    return leave_out(page, c, error->message, error);
  }
  status = dvbf_page_heading(page, 2, "Search", error);
  if (!status) {
    size_t rows = all.count < 100 ? all.count : 100;
    dvbf_table t = dv_table_of(
        "Candidates of the search: errors over the whole recording, relative to those of the linear model",
        rows, headings);
    for (size_t i = 0; i < rows; i++) put_row(&t, i + 1, &all.list[i]);
    status = dv_table_end(page, &t, error);
  }
  dv_candidates_free(&all);
  return status;
}

/* ---- Evaluation tables ---- */

static dvbf_status add_bound(dvbf_page *page, const dv_section *c, dvbf_error *error) {
  const dvbf_evaluation *e = c->evaluation;
  const char *kl = dvbf_model_describe(c->model).n_w ? "KL of w" : "KL of z";
  char caption[160], bound[DV_RESULT], deviation[DV_RESULT];
  snprintf(
      caption, sizeof caption,
      "Lower bound in nats per %s: reconstruction minus the KLs; ± is the standard deviation over samples",
      step_name(c));
  dvbf_table t =
      dv_table_of(caption, 1, (const char *const[]){"bound", "reconstruction", kl, "KL of v", NULL});
  dv_table_put(&t, 1, 0, "%s ± %s", dv_result_text(bound, "%.2f", e->elbo),
               dv_result_text(deviation, "%.2f", e->elbo_deviation));
  dv_table_number(&t, 1, 1, "%.2f", e->reconstruction);
  dv_table_number(&t, 1, 2, "%.2f", e->kl_w);
  dv_table_number(&t, 1, 3, "%.2f", e->kl_v);
  return dv_table_end(page, &t, error);
}

static dvbf_status add_regression_table(dvbf_page *page, const dv_section *c, dvbf_error *error) {
  const dvbf_evaluation *e = c->evaluation;
  size_t count = e->n_regressions < 100 ? e->n_regressions : 100;
  if (!count) return DVBF_OK;
  dvbf_table t = dv_table_of("Linear regression of the true state on z", count,
                             (const char *const[]){"true state", "log-likelihood", "R²", NULL});
  for (size_t i = 0; i < count; i++) {
    dv_table_put(&t, i + 1, 0, "%s", e->regressions[i].name);
    dv_table_number(&t, i + 1, 1, "%.1f", e->regressions[i].log_likelihood);
    dv_table_number(&t, i + 1, 2, "%.4f", e->regressions[i].r2);
  }
  return dv_table_end(page, &t, error);
}

static dvbf_status add_tables(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                              dvbf_error *error) {
  dvbf_status status =
      dvbf_page_heading(page, 2, c->evaluation->n_regressions ? "Likelihood and state" : "Likelihood", error);
  if (!status) status = add_bound(page, c, error);
  if (!status) status = add_regression_table(page, c, error);
  return status;
}

/* ---- Error tables ---- */

enum { UNFOLDED = 12, DETAILED = 64 }; /* columns that have a row of their own, folded away beyond UNFOLDED */

static bool has_linear(const dvbf_verdict *v) {
  return !isnan(v->one_step.score[DVBF_BY_LINEAR].rmse) || !isnan(v->free_run.score[DVBF_BY_LINEAR].rmse);
}

static dvbf_status add_errors(dvbf_page *page, const dv_section *c, const dvbf_verdict *v,
                              dvbf_error *error) {
  static const char *const ways[DVBF_WAYS] = {"mean", "last value", "best linear model", "learned"};
  size_t row = 1;
  char caption[320];
  snprintf(
      caption, sizeof caption,
      "RMSE over the deviation of each %s in training, and fit: 100 %% (1 − RMSE / RMSE of the mean). One "
      "step ahead at every %s; free runs from %zu origin%s, of up to %zu %ss",
      c->data->image_height ? "pixel" : "column", step_name(c), v->free_run.origins,
      v->free_run.origins == 1 ? "" : "s", v->free_run.steps, step_name(c));
  dvbf_table t = dv_table_of(caption, DVBF_WAYS - 1 + has_linear(v),
                             (const char *const[]){"", "one step", "fit", "free run", "fit", NULL});
  t.emphasis = "learned";
  for (int way = 0; way < DVBF_WAYS; way++) {
    const dvbf_score *one = &v->one_step.score[way], *far = &v->free_run.score[way];
    if (way == DVBF_BY_LINEAR && !has_linear(v)) continue;
    dv_table_put(&t, row, 0, "%s",
                 c->data->image_height && way < 2 ? (way ? "persistence" : "mean image") : ways[way]);
    dv_table_number(&t, row, 1, "%.3f", one->rmse);
    dv_table_number(&t, row, 2, "%.1f %%", one->fit);
    dv_table_number(&t, row, 3, "%.3f", far->rmse);
    dv_table_number(&t, row++, 4, "%.1f %%", far->fit);
  }
  return dv_table_end(page, &t, error);
}

/* One row by column: errors in its own unit, with those of the linear model. */
static void put_column(dvbf_table *t, size_t row, const dv_section *c, const dvbf_verdict *v, size_t k) {
  const dvbf_rolling *uses[] = {&v->one_step, &v->free_run};
  char label[64];
  size_t at = 1;
  dv_signal_label(label, c->data, false, k);
  dv_table_put(t, row, 0, "%.39s", label);
  for (size_t i = 0; i < 2; i++) {
    dv_table_number(t, row, at++, "%.4g", uses[i]->score[DVBF_BY_LEARNED].rmse_by_column[k]);
    dv_table_number(t, row, at++, "%.1f %%", uses[i]->score[DVBF_BY_LEARNED].fit_by_column[k]);
    if (has_linear(v))
      dv_table_number(t, row, at++, "%.4g", uses[i]->score[DVBF_BY_LINEAR].rmse_by_column[k]);
  }
}

static dvbf_status add_column_errors(dvbf_page *page, const dv_section *c, const dvbf_verdict *v,
                                     dvbf_error *error) {
  static const char *const heads[2][8] = {
      {"column", "one step", "fit", "free run", "fit", NULL},
      {"column", "one step", "fit", "linear", "free run", "fit", "linear", NULL}};
  bool fold = v->n_x > UNFOLDED;
  if (c->data->image_height || v->n_x > DETAILED) return DVBF_OK;
  dvbf_status status = fold ? dv_page_fold(page, "RMSE of each column", error) : DVBF_OK;
  if (status) return status;
  dvbf_table t = dv_table_of("RMSE of each column in its own unit, and fit, of the learned model", v->n_x,
                             heads[has_linear(v)]);
  for (size_t k = 0; k < v->n_x; k++) put_column(&t, k + 1, c, v, k);
  status = dv_table_end(page, &t, error);
  return !status && fold ? dv_page_unfold(page, error) : status;
}

static dvbf_status add_calibration(dvbf_page *page, const dvbf_verdict *v, dvbf_error *error) {
  const dvbf_rolling *uses[] = {&v->one_step, &v->free_run};
  static const char *const names[] = {"one step", "free run"};
  if (isnan(v->one_step.coverage_90) && isnan(v->free_run.coverage_90)) return DVBF_OK;
  dvbf_table t =
      dv_table_of("Calibration: share of the data inside the central intervals of the learned model", 2,
                  (const char *const[]){"", "central 50 %", "central 90 %", NULL});
  for (size_t i = 0; i < 2; i++) {
    dv_table_put(&t, i + 1, 0, "%s", names[i]);
    dv_table_number(&t, i + 1, 1, "%.1f %%", 100 * uses[i]->coverage_50);
    dv_table_number(&t, i + 1, 2, "%.1f %%", 100 * uses[i]->coverage_90);
  }
  return dv_table_end(page, &t, error);
}

static dvbf_status add_nats(dvbf_page *page, const dvbf_verdict *v, dvbf_error *error) {
  static const char *const names[] = {"independent columns", "a Markov chain for each column",
                                      "learned, at most"};
  const double values[] = {v->nats.mean, v->nats.last, v->nats.learned};
  if (isnan(v->nats.learned)) return DVBF_OK;
  dvbf_table t =
      dv_table_of("Negative log-likelihood, −ln p", 3, (const char *const[]){"", "nats per frame", NULL});
  for (size_t i = 0; i < 3; i++) {
    dv_table_put(&t, i + 1, 0, "%s", names[i]);
    dv_table_number(&t, i + 1, 1, "%.4g", values[i]);
  }
  return dv_table_end(page, &t, error);
}

/* ---- Sentence of the verdict ---- */

/* A model that the linear one beats in free runs should not be used. */
static const char *kind_of(const dvbf_verdict *v) {
  const dvbf_score *score = v->free_run.score;
  bool beaten = score[DVBF_BY_LEARNED].rmse > 1.05 * score[DVBF_BY_LINEAR].rmse; /* false if one is NaN */
  return !v->useful ? "verdict bad" : beaten ? "verdict fair" : "verdict good";
}

static dvbf_status add_sentence(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                                dvbf_error *error) {
  const dvbf_verdict *v = c->evaluation->verdict;
  char text[600];
  if (!v) return DVBF_OK;
  snprintf(text, sizeof text, "%c%s.", v->sentence[0] - (v->sentence[0] >= 'a' ? 'a' - 'A' : 0),
           v->sentence + 1);
  return dv_page_paragraph(page, kind_of(v), text, error);
}

static dvbf_status add_scores(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                              dvbf_error *error) {
  const dvbf_verdict *v = c->evaluation->verdict;
  char text[640];
  if (!v || (!(v->one_step.origins + v->free_run.origins) && isnan(v->nats.learned))) return DVBF_OK;
  dvbf_status status = dvbf_page_heading(page, 2, "Compared with simple baselines", error);
  if (!status) status = add_nats(page, v, error);
  if (status || !(v->one_step.origins + v->free_run.origins)) return status;
  status = add_errors(page, c, v, error);
  if (!status) status = add_column_errors(page, c, v, error);
  if (!status) status = add_calibration(page, v, error);
  if (status || !c->evaluation->stability) return status;
  snprintf(text, sizeof text, "Stability: %s.", c->evaluation->stability->sentence);
  return dvbf_page_text(page, text, error);
}

/* ---- Figures ---- */

void dv_section_figure_path(dv_path out, const dv_section *c, const char *name, const char *extension) {
  char file[256];
  snprintf(file, sizeof file, "%.100s%s%s%s", c->key ? c->key : "", c->key ? "-" : "", name, extension);
  dv_join(out, c->figures, file);
}

/* Thousands of points make an SVG larger than this; then the PNG is embedded. */
enum { LARGE = 400000 };

static long long size_of(const char *path) {
  struct stat info;
  return stat(path, &info) ? 0 : (long long)info.st_size;
}

/* The SVG of a figure, or its PNG if that is smaller; false without such a figure. */
static bool choose_picture(dv_path out, const dv_section *c, const char *name) {
  dv_section_figure_path(out, c, name, ".svg");
  if (size_of(out) > LARGE) dv_section_figure_path(out, c, name, ".png");
  return size_of(out) > 0;
}

dvbf_status dv_section_embed(dvbf_page *page, const dv_section *c, const char *name, dvbf_status drawn,
                             bool narrow, const char *caption, const char *alternative, dvbf_error *error) {
  dv_path path, other;
  char narrow_name[64];
  if (drawn) return dv_section_drawn(page, c, name, drawn, error);
  choose_picture(path, c, name);
  snprintf(narrow_name, sizeof narrow_name, "%.50s-narrow", name);
  narrow = narrow && choose_picture(other, c, narrow_name);
  return dv_page_picture(page, path, narrow ? other : NULL, caption, alternative, error);
}

dvbf_status dv_section_drawn(dvbf_page *page, const dv_section *c, const char *name, dvbf_status drawn,
                             dvbf_error *error) {
  char text[600];
  if (!drawn || drawn == DVBF_IO || drawn == DVBF_MEMORY) return drawn;
  snprintf(text, sizeof text, "No figure \"%s\": %s", name, error->message);
  return leave_out(page, c, text, error);
}

/* ---- Latent space ---- */

static dvbf_status show_space(dvbf_page *page, const dv_section *c, const dv_points *p, dvbf_error *error) {
  dvbf_space_column *columns = dv_calloc(p->n_columns, sizeof *columns);
  if (!columns) return dv_fail_memory(error, "showing the latent space");
  for (size_t i = 0; i < p->n_columns; i++)
    columns[i] = (dvbf_space_column){p->columns[i].name, p->columns[i].values, 1, p->columns[i].cyclic,
                                     p->columns[i].group};
  char caption[80];
  snprintf(caption, sizeof caption, "One sample of z for every %s; all of them are observed.", step_name(c));
  dvbf_space space = {.caption = caption,
                      .points = p->count,
                      .n_z = p->n_z,
                      .z = p->z,
                      .columns = p->n_columns,
                      .column = columns};
  dvbf_status status = dvbf_page_space(page, &space, error);
  dv_free(columns);
  return status == DVBF_ARGUMENT ? leave_out(page, c, error->message, error) : status;
}

static dvbf_status draw_latent(dvbf_page *page, const dv_section *c, const dv_points *p, dvbf_error *error) {
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
  dvbf_status drawn = DVBF_OK;
  for (int narrow = 0; narrow < 2 && !drawn; narrow++) {
    dv_section_figure_path(path, c, narrow ? "latent-narrow" : "latent", "");
    figure.narrow = narrow;
    drawn = dvbf_draw_latent(&figure, path, error);
  }
  return dv_section_embed(
      page, c, "latent", drawn, true,
      "The latent space along the directions that predict the state, and how well they predict it.",
      "Latent samples coloured by angle and velocity, and predicted against true values", error);
}

/* out[i][0..1] from two columns; NULL without them or memory. */
static float *pairs(const dv_column *x, const dv_column *y, size_t count) {
  float *out = x && y ? dv_calloc(count, 2 * sizeof *out) : NULL;
  for (size_t i = 0; out && i < count; i++) out[2 * i] = x->values[i], out[2 * i + 1] = y->values[i];
  return out;
}

static dvbf_status add_ball(dvbf_page *page, const dv_section *c, const dv_points *p, dvbf_error *error) {
  const dv_column *x = dv_points_named(p, "x"), *y = dv_points_named(p, "y");
  const dv_column *across = dv_points_named(p, "velocity x"), *up = dv_points_named(p, "velocity y");
  dv_path path;
  if (!x || !y) return DVBF_OK;
  float *position = pairs(x, y, p->count), *velocity = pairs(across, up, p->count);
  dvbf_figure_ball figure = {
      .points = p->count, .n_z = p->n_z, .z = p->z, .position = position, .velocity = velocity};
  dvbf_status drawn = position ? DVBF_OK : dv_fail_memory(error, "drawing");
  for (int narrow = 0; narrow < 2 && !drawn; narrow++) {
    dv_section_figure_path(path, c, narrow ? "ball-narrow" : "ball", "");
    figure.narrow = narrow;
    drawn = dvbf_draw_ball(&figure, path, error);
  }
  DV_FREE(position, velocity);
  return dv_section_embed(page, c, "ball", drawn, true, "Position and velocity in the latent space.",
                          "Latent samples coloured by a checkerboard over the box and by velocity", error);
}

static dvbf_status add_latent_space(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                                    dvbf_error *error) {
  dvbf_status status = dvbf_page_heading(page, 2, "Latent space", error);
  if (!status) status = show_space(page, c, &shown->points, error);
  if (!status) status = draw_latent(page, c, &shown->points, error);
  if (!status) status = add_ball(page, c, &shown->points, error);
  return status;
}

/* ---- Video ---- */

static dvbf_status add_video(dvbf_page *page, const dv_section *c, const dv_shown *shown, dvbf_error *error) {
  if (!c->data->image_height) return DVBF_OK;
  const dvbf_strip_row rows[3] = {
      {"ground truth", shown->film.x, 0},
      {"reconstruction", shown->reconstruction->x, 0},
      {"prediction", shown->prediction ? shown->prediction->x : NULL, shown->observed}};
  dvbf_film_row films[3];
  const char *names[DV_FILM_SEQUENCES];
  dv_path path;
  for (size_t i = 0; i < 3; i++) films[i] = (dvbf_film_row){rows[i].label, rows[i].images, rows[i].observed};
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
                    .row = films,
                    .length = shown->film.length,
                    .training_steps = dv_section_training_steps(c, shown),
                    .names = names};
  dvbf_figure_strips strips = {.frames = film.length ? film.length[0] : film.frames,
                               .height = film.height,
                               .width = film.width,
                               .channels = film.channels,
                               .rows = film.rows,
                               .row = rows,
                               .training_steps = film.training_steps};
  dvbf_status status = dvbf_page_heading(page, 2, "Video", error);
  if (!status) status = dvbf_page_film(page, &film, error);
  if (status == DVBF_ARGUMENT) status = leave_out(page, c, error->message, error);
  if (status) return status;
  dv_section_figure_path(path, c, "strips", "");
  return dv_section_drawn(page, c, "strips", dvbf_draw_strips(&strips, path, error), error);
}

/* ---- Shown results ---- */

static dvbf_status choose_film(dv_shown *shown, const dv_section *c, dvbf_error *error) {
  const dvbf_sequences *all = c->long_sequences ? c->long_sequences : c->sequences;
  shown->data = c->long_sequences ? c->long_data : c->data;
  size_t each = all->steps * all->n_x, most = each ? FILM_PIXELS / each : 1;
  if (most < 1) most = 1;
  if (most > DV_FILM_SEQUENCES) most = DV_FILM_SEQUENCES;
  if (most > all->count) most = all->count;
  for (size_t i = 0; i < most; i++) dv_signal_sequence(shown->names[i], all, i);
  return dvbf_sequences_copy(&shown->film, all, 0, most, error);
}

/* A video shows paths without noise. */
static dvbf_status infer_film(dv_shown *shown, const dv_section *c, dvbf_error *error) {
  dv_path_options mean = {.noise_free = true,
                          .threads = dvbf_settings_threads(c->settings),
                          .interrupt = dv_settings_interrupt(c->settings)};
  dvbf_status status = choose_film(shown, c, error);
  if (!status) status = dv_paths_of(&shown->reconstruction, c->model, &shown->film, &mean, error);
  if (!shown->observed) return status;
  mean.observe = shown->observed;
  if (!status) status = dv_paths_of(&shown->prediction, c->model, &shown->film, &mean, error);
  return status;
}

static dvbf_status infer(dv_shown *shown, const dv_section *c, dvbf_error *error) {
  dv_path_options sample = {.seed = 1,
                            .threads = dvbf_settings_threads(c->settings),
                            .interrupt = dv_settings_interrupt(c->settings)};
  dvbf_status status = dv_points_sample(&shown->points, c->model, c->data, c->sequences, &sample, error);
  shown->observed = dv_section_far(c)->horizon ? dv_section_far(c)->observed : 0;
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

/* ---- Heading and settings ---- */

static dvbf_status add_opening(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                               dvbf_error *error) {
  char text[512];
  dvbf_model_info info = dvbf_model_describe(c->model);
  const dvbf_sequences *s = c->sequences;
  snprintf(text, sizeof text,
           "A model with %zu latent dimension%s and %zu parameters after %llu updates, on %zu "
           "sequence%s (%s) of %s%zu %ss",
           info.n_z, info.n_z == 1 ? "" : "s", info.parameters, (unsigned long long)info.updates, s->count,
           s->count == 1 ? "" : "s", c->split, s->length ? "up to " : "", s->steps, step_name(c));
  if (c->data->image_height)
    dv_append(text, sizeof text, " of %zu × %zu pixels%s", c->data->image_height, c->data->image_width,
              c->data->image_channels == 3 ? " in colour" : "");
  else
    dv_append(text, sizeof text, " of %zu column%s", s->n_x, s->n_x == 1 ? "" : "s");
  dv_append(text, sizeof text,
            info.n_u == 1 ? ", with %zu input."
            : info.n_u    ? ", with %zu inputs."
                          : ".",
            info.n_u);
  return dvbf_page_text(page, text, error);
}

static dvbf_status add_settings(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                                dvbf_error *error) {
  dv_path path;
  dvbf_settings *settings = NULL;
  if (!c->run) {
    dv_section_message(c, "There is no settings.txt beside the model file.");
    return DVBF_OK;
  }
  dv_join(path, c->run, DVBF_RUN_SETTINGS);
  dvbf_status status = dvbf_settings_new(&settings, "train", error);
  if (status) return status;
  bool there = dv_exists(path);
  status = dvbf_settings_read(settings, path, error);
  if (!status) {
    status = dvbf_page_heading(page, 2, "Settings", error);
    if (!status) status = dvbf_page_settings(page, "All settings of training", settings, error);
  } else if (status == DVBF_FORMAT || status == DVBF_ARGUMENT ||
             !there) { /* else it can be read another time */
    dv_section_message(c, error->message);
    status = DVBF_OK;
  }
  dvbf_settings_free(settings);
  return status;
}

dvbf_status dv_section_add(dvbf_page *page, const dv_section *c, dvbf_error *error) {
  static dv_section_part *const parts[] = {
      add_sentence, add_opening,        dv_section_signals,   add_video,        dv_section_tracks,
      add_scores,   dv_section_horizon, dv_section_residuals, add_latent_space, dv_section_curves,
      add_tables,   dv_section_search,  add_settings};
  dv_shown shown = {0};
  dvbf_status status = infer(&shown, c, error);
  if (!status) status = dvbf_page_heading(page, 1, c->name, error);
  for (size_t i = 0; !status && i < sizeof parts / sizeof *parts; i++)
    status = parts[i](page, c, &shown, error);
  free_shown(&shown);
  return status;
}

/* ---- Report ---- */

static void folder_of(dv_path out, const char *path) {
  snprintf(out, sizeof(dv_path), "%s", path);
  char *slash = strrchr(out, '/');
  if (!slash)
    snprintf(out, sizeof(dv_path), ".");
  else
    slash[slash == out] = 0;
}

/* Refuses existing files before anything is written. */
static dvbf_status refuse_files(const dv_section *c, const char *path, bool force, dvbf_error *error) {
  static const char *const figures[] = {"errors", "strips",        "signals", "latent",
                                        "ball",   "latent-narrow", "curves",  "ball-narrow"};
  dv_path figure;
  struct stat info;
  if (!stat(path, &info) && S_ISDIR(info.st_mode))
    return dv_fail(error, DVBF_IO, "%.300s: is a folder; a report needs the name of a file", path);
  dvbf_status status = dv_refuse_existing(path, force, error);
  for (size_t i = 0; !status && i < 2 * (sizeof figures / sizeof *figures); i++) {
    dv_section_figure_path(figure, c, figures[i / 2], i % 2 ? ".svg" : ".png");
    status = dv_refuse_existing(figure, force, error);
  }
  return status;
}

dvbf_status dvbf_report_write(const char *path, const dvbf_model *model, const dvbf_data *data,
                              const dvbf_settings *settings, const dvbf_report_options *options,
                              dvbf_error *error) {
  static const dvbf_report_options none = {0};
  dvbf_error own; /* parts that fail are left out, and the report says why */
  const dvbf_report_options *o = options ? options : &none;
  dv_path folder, figures;
  char split[16] = "";
  dvbf_page *page = NULL;
  dvbf_evaluation *evaluation = NULL;
  dv_section chapter = {.name = o->name ? o->name : "Model",
                        .model = model,
                        .data = data,
                        .split = split,
                        .settings = settings,
                        .run = o->run,
                        .figures = figures,
                        .note = o->note,
                        .user_data = o->user_data};
  if (!error) error = &own;
  if (!dv_settings_evaluate(settings, error)) return error->status;
  folder_of(folder, path);
  dv_join(figures, folder, "figures");
  dvbf_status status = refuse_files(&chapter, path, o->force, error);
  if (!status) status = dvbf_data_split(&chapter.sequences, data, settings, error);
  if (!status) status = dvbf_settings_get(settings, "split", split, sizeof split, error);
  if (!status) status = dvbf_folder_make(folder, error); /* before the work begins */
  if (!status) status = dvbf_folder_make(figures, error);
  if (!status) status = dvbf_evaluate(&evaluation, model, data, chapter.sequences, settings, error);
  chapter.evaluation = evaluation;
  if (!status) status = dvbf_page_new(&page, o->title ? o->title : "Report", error);
  if (!status) status = dv_section_add(page, &chapter, error);
  if (!status) status = dvbf_page_write(page, path, error);
  dvbf_page_free(page);
  dvbf_evaluation_free(evaluation);
  return status;
}
