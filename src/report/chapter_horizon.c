/* The error of prediction by the number of steps ahead, as a diagram and a table. */
#include "base/locale.h"
#include "base/memory.h"
#include "base/status.h"
#include "evaluate/ahead.h"
#include "report/chapter.h"
#include "report/page_plot.h"

#include <stdio.h>

bool dv_chapter_round_horizon(size_t h, size_t last) {
  size_t unit = 1;
  while (unit * 10 <= h) unit *= 10;
  return h == last || h == unit || h == 2 * unit || h == 5 * unit;
}

static size_t rows_of(size_t horizon) {
  size_t rows = 1;
  for (size_t h = 1; h <= horizon; h++) rows += dv_chapter_round_horizon(h, horizon);
  return rows;
}

/* ---- Signals: from rolling origins ---- */

static const char *const ways[DVBF_WAYS] = {"mean", "last value", "best linear model", "learned"};
static const int colours[DVBF_WAYS] = {DV_PLOT_MEAN, DV_PLOT_LAST, DV_PLOT_LINEAR, DV_PLOT_LEARNED};

static void add_view(dv_plot *plot, const dv_chapter *c, const dv_ahead *a, size_t curve, const char *name,
                     const char *up) {
  dv_series series[DVBF_WAYS];
  double time = c->data->sample_time;
  dv_panel panel = {.up = up,
                    .across = time > 0 ? "time ahead" : "steps ahead",
                    .seconds = time > 0,
                    .zero = true,
                    .series = series};
  for (int way = 0; way < DVBF_WAYS; way++)
    if (a->rmse[way])
      series[panel.n_series++] = (dv_series){.name = ways[way],
                                             .kind = way < DVBF_BY_LINEAR ? DV_SERIES_DASHED : DV_SERIES_LINE,
                                             .colour = colours[way],
                                             .count = a->horizon,
                                             .y = a->rmse[way] + curve * a->horizon,
                                             .first = time > 0 ? time : 1,
                                             .step = time > 0 ? time : 1};
  dv_plot_view(plot, name, NULL);
  dv_plot_panel(plot, &panel);
}

static dvbf_status add_plot(dvbf_page *page, const dv_chapter *c, const dv_ahead *a, dvbf_error *error) {
  char label[64], up[96], caption[256];
  dv_plot plot = dv_plot_begin(page, "against the number of steps ahead", "Column", true);
  if (a->columns != 1) add_view(&plot, c, a, 0, "all", "RMSE / standard deviation");
  for (size_t k = 0; k < a->columns; k++) {
    dv_signal_label(label, c->data, false, k);
    snprintf(up, sizeof up, "RMSE of %s", label);
    add_view(&plot, c, a, k + 1, label, up);
  }
  snprintf(caption, sizeof caption,
           "Root mean square error of free runs by the number of steps ahead, over %zu origin%s.", a->origins,
           a->origins == 1 ? "" : "s");
  return dv_plot_end(&plot, caption, error);
}

static dvbf_status add_table(dvbf_page *page, const dv_ahead *a, dvbf_error *error) {
  dvbf_table t;
  size_t columns = 1;
  for (int way = 0; way < DVBF_WAYS; way++) columns += a->rmse[way] != NULL;
  dvbf_status status =
      dv_table_init(&t, "Root mean square error by the number of steps ahead, in standard deviations",
                    rows_of(a->horizon), columns, error);
  if (status) return status;
  dv_table_put(&t, 0, 0, "steps ahead");
  for (int way = 0, column = 1; way < DVBF_WAYS; way++)
    if (a->rmse[way]) dv_table_put(&t, 0, (size_t)column++, "%s", ways[way]);
  for (size_t h = 1, row = 1; h <= a->horizon; h++) {
    if (!dv_chapter_round_horizon(h, a->horizon)) continue;
    dv_table_put(&t, row, 0, "%zu", h);
    for (int way = 0, column = 1; way < DVBF_WAYS; way++)
      if (a->rmse[way]) dv_table_put(&t, row, (size_t)column++, "%.3f", a->rmse[way][h - 1]);
    row++;
  }
  status = dvbf_page_table(page, &t, error);
  dv_table_clear(&t);
  return status;
}

static dvbf_status add_signals(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  dv_ahead a;
  dvbf_status status = dv_ahead_of(&a, c->model, c->data, c->sequences, c->settings, error);
  if (!status && a.horizon) {
    status = dvbf_page_heading(page, 2, "Error by horizon", error);
    if (!status) status = add_plot(page, c, &a, error);
    if (!status) status = add_table(page, &a, error);
  }
  dv_ahead_clear(&a);
  return status;
}

/* ---- Pictures: from the first frames ---- */

/* The errors over the variance: sampled, without noise, persistence. */
static double *relative_errors(const dvbf_evaluation *e) {
  double *over = dv_calloc(3 * e->horizon, sizeof *over),
         unit = e->pixel_variance > 0 ? e->pixel_variance : 1;
  for (size_t h = 0; over && h < e->horizon; h++) {
    over[h] = e->mse[h] / unit;
    over[e->horizon + h] = e->mse_mean_path[h] / unit;
    over[2 * e->horizon + h] = e->mse_repeat[h] / unit;
  }
  return over;
}

static dvbf_status draw(dvbf_page *page, const dv_chapter *c, const dv_shown *shown, const double *over,
                        dvbf_error *error) {
  const dvbf_evaluation *e = dv_chapter_far(c);
  dv_path path;
  dvbf_error_curve curve = {c->name, e->horizon, over, over + e->horizon};
  dvbf_figure_errors figure = {.models = 1,
                               .model = &curve,
                               .repeat_horizon = e->horizon,
                               .repeat = over + 2 * e->horizon,
                               .observed = e->observed,
                               .training_steps = dv_chapter_training_steps(c, shown),
                               .signals = !c->data->image_height};
  dv_chapter_figure_path(path, c, "errors", "");
  return dv_chapter_drawn(page, c, "errors", dvbf_draw_errors(&figure, path, error), error);
}

static dvbf_status add_picture_plot(dvbf_page *page, const dv_chapter *c, const dv_shown *shown,
                                    const double *over, dvbf_error *error) {
  const dvbf_evaluation *e = dv_chapter_far(c);
  size_t training = dv_chapter_training_steps(c, shown);
  char caption[256];
  const dv_series series[] = {
      {"persistence", DV_SERIES_DASHED, DV_PLOT_LAST, e->horizon, over + 2 * e->horizon, NULL, 1, 1},
      {"prediction without noise", DV_SERIES_DASHED, DV_PLOT_LEARNED, e->horizon, over + e->horizon, NULL, 1,
       1},
      {"sampled prediction", DV_SERIES_LINE, DV_PLOT_LEARNED, e->horizon, over, NULL, 1, 1}};
  const dv_plot_mark marks[] = {
      {"mean image", 1, true, DV_PLOT_MEAN},
      {"end of the training length", (double)training - (double)e->observed + 0.5, false, DV_PLOT_BOUNDARY}};
  dv_panel panel = {.up = "squared error / pixel variance",
                    .across = "frames ahead",
                    .logarithmic = true,
                    .series = series,
                    .n_series = 3,
                    .marks = marks,
                    .n_marks = training > e->observed ? 2 : 1};
  dv_plot plot = dv_plot_begin(page, "against the number of frames ahead", NULL, true);
  dv_plot_view(&plot, "all", NULL);
  dv_plot_panel(&plot, &panel);
  snprintf(caption, sizeof caption,
           "Prediction error by horizon, after %zu observed frames, over the variance of the pixels.",
           e->observed);
  return dv_plot_end(&plot, caption, error);
}

static dvbf_status add_picture_table(dvbf_page *page, const dvbf_evaluation *e, const double *over,
                                     dvbf_error *error) {
  static const char *const heads[] = {"frames ahead", "sampled", "without noise", "persistence",
                                      "mean image"};
  char caption[256];
  dvbf_table t;
  dv_print(caption, sizeof caption,
           "Squared error of prediction from %zu observed frames, over the variance %.4g of the pixels",
           e->observed, e->pixel_variance);
  dvbf_status status = dv_table_init(&t, caption, rows_of(e->horizon), 5, error);
  if (status) return status;
  for (size_t k = 0; k < 5; k++) dv_table_put(&t, 0, k, "%s", heads[k]);
  for (size_t h = 1, row = 1; h <= e->horizon; h++) {
    if (!dv_chapter_round_horizon(h, e->horizon)) continue;
    dv_table_put(&t, row, 0, "%zu", h);
    for (size_t k = 0; k < 3; k++) dv_table_put(&t, row, k + 1, "%.4f", over[k * e->horizon + h - 1]);
    dv_table_put(&t, row++, 4, "%.4f", 1.0);
  }
  status = dvbf_page_table(page, &t, error);
  dv_table_clear(&t);
  return status;
}

dvbf_status dv_chapter_horizon(dvbf_page *page, const dv_chapter *c, const dv_shown *shown,
                               dvbf_error *error) {
  const dvbf_evaluation *e = dv_chapter_far(c);
  dvbf_status status = DVBF_OK;
  if (!c->data->image_height) status = add_signals(page, c, error);
  if (status || !e->horizon) return status;
  double *over = relative_errors(e);
  if (!over) return dv_fail_memory(error, "drawing errors");
  if (c->data->image_height) {
    status = dvbf_page_heading(page, 2, "Error by horizon", error);
    if (!status) status = add_picture_plot(page, c, shown, over, error);
    if (!status) status = add_picture_table(page, e, over, error);
  }
  if (!status) status = draw(page, c, shown, over, error);
  dv_free(over);
  return status;
}
