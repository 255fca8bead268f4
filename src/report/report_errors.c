/* Parts of a report about errors: learning curves, error by number of steps ahead, residuals and coverage of
 * quantiles, signals, and tracks of what moves in a video. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "evaluate/evaluate.h"
#include "evaluate/rolling.h"
#include "evaluate/tracking.h"
#include "report/page.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>

/* ---- Learning curves ---- */

enum { SHOWN_STARTS = 8 }; /* that are shown, the last ones */

/* One curve of all runs; the last run is the one that counts. */
static size_t list_series(dv_series *out, const dvbf_metrics *m, size_t first, size_t curve,
                          const char *name) {
  size_t count = 0;
  for (size_t r = first; r < m->n_runs; r++) {
    const dvbf_learning_run *run = &m->runs[r];
    const double *const curves[] = {run->train_bound, run->valid_bound, run->prediction, run->kl};
    bool last = r + 1 == m->n_runs;
    out[count] = (dv_series){.name = last ? name : "earlier starts",
                             .kind = curve ? DV_SERIES_LINE : DV_SERIES_DASHED,
                             .colour = last ? DV_PLOT_LEARNED : DV_PLOT_BOUNDARY,
                             .count = run->count,
                             .x = run->update,
                             .y = curves[curve]};
    count++;
  }
  return count;
}

static void add_panels(dv_plot *plot, const dv_section *c, const dvbf_metrics *m) {
  dv_series series[2 * SHOWN_STARTS];
  size_t first = m->n_runs > SHOWN_STARTS ? m->n_runs - SHOWN_STARTS : 0;
  bool pictures = c->data->image_height;
  dv_plot_mark kept = {"update that was kept", (double)dvbf_model_describe(c->model).updates, false,
                       DV_PLOT_KEPT};
  const dv_panel panels[] = {
      {.up = pictures ? "bound (nats per frame)" : "bound (nats per step)", .robust = true},
      {.up = "squared error of prediction / variance", .logarithmic = true},
      {.up = pictures ? "KL (nats per frame)" : "KL (nats per step)", .zero = true, .robust = true}};
  for (size_t k = 0; k < sizeof panels / sizeof *panels; k++) {
    dv_panel panel = panels[k];
    panel.across = "updates";
    panel.series = series;
    panel.marks = &kept;
    panel.n_marks = kept.at > 0;
    if (!k) panel.n_series = list_series(series, m, m->n_runs - 1, 0, "training");
    panel.n_series += list_series(series + panel.n_series, m, first, k + 1, "validation");
    dv_plot_panel(plot, &panel);
  }
}

static dvbf_status show_curves(dvbf_page *page, const dv_section *c, const dvbf_metrics *m,
                               dvbf_error *error) {
  dv_path path;
  dvbf_figure_curves figure = {.runs = m->n_runs,
                               .run = m->runs,
                               .kept = (double)dvbf_model_describe(c->model).updates,
                               .signals = !c->data->image_height};
  dv_section_figure_path(path, c, "curves", "");
  dvbf_status status = dv_section_drawn(page, c, "curves", dvbf_draw_curves(&figure, path, error), error);
  if (!status) status = dvbf_page_heading(page, 2, "Learning curves", error);
  if (status) return status;
  dv_plot plot = dv_plot_begin(page, "against the number of updates", NULL, false);
  dv_plot_view(&plot, "all", NULL);
  add_panels(&plot, c, m);
  return dv_plot_end(&plot, "Training: the bound, the error of predictions on validation data, and the KL.",
                     error);
}

dvbf_status dv_section_curves(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                              dvbf_error *error) {
  dv_path path;
  dvbf_metrics *m = NULL;
  if (!c->run) {
    dv_section_message(c, "There is no metrics.csv beside the model file.");
    return DVBF_OK;
  }
  dv_join(path, c->run, DVBF_RUN_METRICS);
  dvbf_model_info info = dvbf_model_describe(c->model);
  bool fitted = !info.updates && !info.n_w;       /* such as a linear model, which no validation follows */
  if (fitted || !dv_exists(path)) return DVBF_OK; /* a search has a table instead */
  dvbf_status status = dvbf_metrics_read(&m, path, error);
  if (status == DVBF_FORMAT) { /* damaged: the report has no curves and says why */
    dv_section_message(c, error->message);
    return DVBF_OK;
  }
  if (!status && (m->n_runs > 1 || m->runs[0].count > 1)) /* one point is no curve */
    status = show_curves(page, c, m, error);
  dvbf_metrics_free(m);
  return status;
}

/* ---- Error by number of steps ahead ---- */

/* 1, 2, 5, 10, 20, 50, ... and the last. */
static bool is_round(size_t h, size_t last) {
  size_t unit = 1;
  while (unit * 10 <= h) unit *= 10;
  return h == last || h == unit || h == 2 * unit || h == 5 * unit;
}

enum { WAYS = 5 };

typedef struct horizon_way {
  const char *name;
  dv_series_kind kind;
  int colour;
  const double *mse; /* of the evaluation */
  double *shown;     /* [1 + columns][horizon] */
} horizon_way;

typedef struct horizon_errors {
  const dvbf_evaluation *evaluation;
  bool pictures; /* squared errors over the variance, else root mean squares */
  size_t n_ways;
  horizon_way way[WAYS];
} horizon_errors;

static horizon_errors list_ways(const dvbf_evaluation *e, bool pictures) {
  const horizon_way all[WAYS] = {
      {pictures ? "mean image" : "mean", DV_SERIES_DASHED, DV_PLOT_MEAN, e->mse_mean, NULL},
      {pictures ? "persistence" : "last value", DV_SERIES_DASHED, DV_PLOT_LAST, e->mse_repeat, NULL},
      {"best linear model", DV_SERIES_LINE, DV_PLOT_LINEAR, e->mse_linear, NULL},
      {pictures ? "without noise" : "learned", pictures ? DV_SERIES_DASHED : DV_SERIES_LINE, DV_PLOT_LEARNED,
       e->mse_mean_path, NULL},
      {"sampled", DV_SERIES_LINE, DV_PLOT_LEARNED, pictures ? e->mse : NULL, NULL}};
  horizon_errors out = {.evaluation = e, .pictures = pictures};
  for (size_t i = 0; i < WAYS; i++)
    if (all[i].mse) out.way[out.n_ways++] = all[i];
  return out;
}

/* The root mean square over the columns that vary, in their deviations. */
static double in_deviations(const dvbf_evaluation *e, const double *mse, const double *unit, size_t h) {
  double sum = 0, columns = 0;
  for (size_t k = 0; k < e->columns; k++)
    if (unit[k] > 0) sum += mse[(1 + k) * e->horizon + h] / (unit[k] * unit[k]), columns += 1;
  return sqrt(e->columns ? sum / columns : mse[h] / e->pixel_variance);
}

static dvbf_status fill_ways(horizon_errors *all, const dv_section *c, dvbf_error *error) {
  const dvbf_evaluation *e = all->evaluation;
  dv_baseline baseline;
  dvbf_status status = dv_baseline_of(&baseline, c->model, c->data, c->sequences, error);
  for (size_t i = 0; i < all->n_ways && !status; i++) {
    horizon_way *w = &all->way[i];
    w->shown = dv_calloc((1 + e->columns) * e->horizon, sizeof *w->shown);
    if (!w->shown) status = dv_fail_memory(error, "drawing errors");
    for (size_t h = 0; h < e->horizon && !status; h++)
      w->shown[h] = all->pictures ? w->mse[h] / (e->pixel_variance > 0 ? e->pixel_variance : 1)
                                  : in_deviations(e, w->mse, baseline.unit, h);
    for (size_t j = e->horizon; j < (1 + e->columns) * e->horizon && !status; j++)
      w->shown[j] = sqrt(w->mse[j]);
  }
  dv_baseline_clear(&baseline);
  return status;
}

/* Steps with a tenth of the origins of the first: the rest of a curve would be noise. */
static size_t steps_shown(const dvbf_evaluation *e) {
  size_t steps = 1;
  while (steps < e->horizon && 10 * e->origins[steps] >= e->origins[0]) steps++;
  return steps;
}

/* Of all columns for curve 0, else of one. */
static void add_horizon_view(dv_plot *plot, const dv_section *c, const horizon_errors *all, size_t training,
                             size_t curve) {
  const dvbf_evaluation *e = all->evaluation;
  double time = c->data->sample_time > 0 && !all->pictures ? c->data->sample_time : 0;
  char label[64] = "all", up[96];
  dv_series series[WAYS];
  const dv_plot_mark mark = {"end of the training length", (double)training - (double)e->observed + 0.5,
                             false, DV_PLOT_BOUNDARY};
  dv_panel panel = {.up = up,
                    .across = time > 0        ? "time ahead"
                              : all->pictures ? "frames ahead"
                                              : "steps ahead",
                    .seconds = time > 0,
                    .zero = !all->pictures,
                    .logarithmic = all->pictures,
                    .series = series,
                    .n_series = all->n_ways,
                    .marks = &mark,
                    .n_marks = all->pictures && training > e->observed};
  if (curve) dv_signal_label(label, c->data, false, curve - 1);
  snprintf(up, sizeof up,
           all->pictures ? "squared error / pixel variance"
           : curve       ? "RMSE of %s"
                         : "RMSE / standard deviation",
           label);
  for (size_t i = 0; i < all->n_ways; i++)
    series[i] = (dv_series){.name = all->way[i].name,
                            .kind = all->way[i].kind,
                            .colour = all->way[i].colour,
                            .count = steps_shown(e),
                            .y = all->way[i].shown + curve * e->horizon,
                            .first = time > 0 ? time : 1,
                            .step = time > 0 ? time : 1};
  dv_plot_view(plot, label, NULL);
  dv_plot_panel(plot, &panel);
}

static dvbf_status add_horizon_plot(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                                    const horizon_errors *all, dvbf_error *error) {
  const dvbf_evaluation *e = all->evaluation;
  size_t training = dv_section_training_steps(c, shown);
  char caption[256];
  dv_plot plot = dv_plot_begin(
      page, all->pictures ? "against the number of frames ahead" : "against the number of steps ahead",
      e->columns > 1 ? "Column" : NULL, true);
  for (size_t curve = e->columns == 1; curve <= e->columns; curve++)
    add_horizon_view(&plot, c, all, training, curve);
  snprintf(caption, sizeof caption,
           all->pictures
               ? "Prediction error by horizon, after %zu observed frames, over the variance of the pixels."
               : "Root mean square error of free runs from %zu observed steps, by the number of steps ahead; "
                 "from %zu origin%s.",
           e->observed, e->origins[0], e->origins[0] == 1 ? "" : "s");
  return dv_plot_end(&plot, caption, error);
}

static dvbf_status add_horizon_table(dvbf_page *page, const horizon_errors *all, dvbf_error *error) {
  const dvbf_evaluation *e = all->evaluation;
  const char *heads[2 + WAYS + 1] = {all->pictures ? "frames ahead" : "steps ahead", "origins"};
  char caption[256];
  size_t rows = 0;
  dv_print(caption, sizeof caption,
           all->pictures
               ? "Squared error of prediction from %zu observed frames, over the variance %.4g of the pixels"
               : "Root mean square error by the number of steps ahead of %zu observed ones, in standard "
                 "deviations",
           e->observed, e->pixel_variance);
  for (size_t i = 0; i < all->n_ways; i++) heads[2 + i] = all->way[i].name;
  for (size_t h = 1; h <= e->horizon; h++) rows += is_round(h, e->horizon);
  dvbf_table t = dv_table_of(caption, rows, heads);
  for (size_t h = 1, row = 1; h <= e->horizon; h++) {
    if (!is_round(h, e->horizon)) continue;
    dv_table_put(&t, row, 0, "%zu", h);
    dv_table_put(&t, row, 1, "%zu", e->origins[h - 1]);
    for (size_t i = 0; i < all->n_ways; i++)
      dv_table_number(&t, row, 2 + i, all->pictures ? "%.4f" : "%.3f", all->way[i].shown[h - 1]);
    row++;
  }
  return dv_table_end(page, &t, error);
}

/* Of sampled predictions, of those without noise, and of persistence, over the variance. */
static dvbf_status draw_horizon(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                                dvbf_error *error) {
  const dvbf_evaluation *e = dv_section_far(c);
  const double *const curves[] = {e->mse, e->mse_mean_path, e->mse_repeat};
  double *over = dv_calloc(3 * e->horizon, sizeof *over),
         unit = e->pixel_variance > 0 ? e->pixel_variance : 1;
  dv_path path;
  if (!over) return dv_fail_memory(error, "drawing errors");
  for (size_t j = 0; j < 3 * e->horizon; j++) over[j] = curves[j / e->horizon][j % e->horizon] / unit;
  dvbf_error_curve curve = {c->name, e->horizon, over, over + e->horizon};
  dvbf_figure_errors figure = {.models = 1,
                               .model = &curve,
                               .repeat_horizon = e->horizon,
                               .repeat = over + 2 * e->horizon,
                               .observed = e->observed,
                               .training_steps = dv_section_training_steps(c, shown),
                               .signals = !c->data->image_height};
  dv_section_figure_path(path, c, "errors", "");
  dvbf_status status = dv_section_drawn(page, c, "errors", dvbf_draw_errors(&figure, path, error), error);
  dv_free(over);
  return status;
}

dvbf_status dv_section_horizon(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                               dvbf_error *error) {
  if (!dv_section_far(c)->horizon) return DVBF_OK;
  horizon_errors all = list_ways(dv_section_far(c), c->data->image_height > 0);
  dvbf_status status = fill_ways(&all, c, error);
  if (!status) status = dvbf_page_heading(page, 2, "Error by horizon", error);
  if (!status) status = add_horizon_plot(page, c, shown, &all, error);
  if (!status) status = add_horizon_table(page, &all, error);
  if (!status) status = draw_horizon(page, c, shown, error);
  for (size_t i = 0; i < all.n_ways; i++) dv_free(all.way[i].shown);
  return status;
}

/* ---- Residuals ---- */

enum { RESIDUALS = 64, SHARES = 19 }; /* central shares of 5 %, 10 %, ... 95 % */

static void add_autocorrelation(dv_plot *plot, const dv_section *c, const dvbf_whiteness *w, size_t k) {
  double time = c->data->sample_time > 0 ? c->data->sample_time : 1;
  const dv_series series = {.kind = DV_SERIES_STEMS,
                            .colour = DV_PLOT_LEARNED,
                            .count = DVBF_LAGS,
                            .y = w->autocorrelation[k],
                            .first = time,
                            .step = time};
  const dv_plot_mark marks[] = {{"95 % band of white noise", w->band, true, DV_PLOT_BOUNDARY},
                                {"95 % band of white noise", -w->band, true, DV_PLOT_BOUNDARY}};
  const dv_panel panel = {.up = "autocorrelation of the innovations",
                          .across = c->data->sample_time > 0 ? "lag" : "lag (steps)",
                          .seconds = c->data->sample_time > 0,
                          .series = &series,
                          .n_series = 1,
                          .marks = marks,
                          .n_marks = 2};
  dv_plot_panel(plot, &panel);
}

/* Of one column, or of all that vary. */
static void add_histogram(dv_plot *plot, const dvbf_verdict *v, size_t from, size_t to) {
  enum { FINE = 161 };
  double share[DVBF_BINS] = {0}, normal[FINE], sum = 0, wide = 8.0 / DVBF_BINS;
  for (size_t k = from; k < to; k++)
    for (size_t b = 0; b < DVBF_BINS; b++) share[b] += v->whiteness.histogram[k][b];
  for (size_t b = 0; b < DVBF_BINS; b++) sum += share[b];
  if (!(sum > 0)) return;
  for (size_t b = 0; b < DVBF_BINS; b++) share[b] /= sum * wide;
  for (size_t i = 0; i < FINE; i++) normal[i] = exp(-0.5 * pow(-4 + 0.05 * (double)i, 2)) / sqrt(2 * M_PI);
  const dv_series series[] = {{.name = "innovations",
                               .kind = DV_SERIES_BARS,
                               .colour = DV_PLOT_LEARNED,
                               .count = DVBF_BINS,
                               .y = share,
                               .first = -4 + wide / 2,
                               .step = wide},
                              {.name = "normal distribution",
                               .colour = DV_PLOT_MEASURED,
                               .count = FINE,
                               .y = normal,
                               .first = -4,
                               .step = 0.05}};
  dv_plot_panel(plot, &(dv_panel){.up = "density of the innovations",
                                  .across = "innovation / predicted deviation",
                                  .zero = true,
                                  .series = series,
                                  .n_series = 2});
}

/* Shares of the values inside central intervals, in %. */
static bool coverage(double out[SHARES], const dvbf_rolling *r, size_t from, size_t to) {
  double all = 0, inside[SHARES] = {0};
  for (size_t k = from; r->ranks && k < to; k++)
    for (size_t rank = 0; rank < r->n_ranks; rank++) {
      double count = r->ranks[k * r->n_ranks + rank], n = (double)r->n_ranks - 1;
      all += count;
      for (size_t i = 0; i < SHARES; i++)
        inside[i] += count * dv_rank_inside((double)rank, n, 0.05 * (double)(i + 1));
    }
  for (size_t i = 0; i < SHARES; i++) out[i] = 100 * inside[i] / all;
  return all > 0;
}

static void add_coverage(dv_plot *plot, const dvbf_verdict *v, size_t from, size_t to) {
  static const char *const names[] = {"one step ahead", "free run"};
  double ideal[] = {0, 100}, shares[2][SHARES];
  dv_series series[3] = {{.name = "ideal",
                          .kind = DV_SERIES_DASHED,
                          .colour = DV_PLOT_MEASURED,
                          .count = 2,
                          .y = ideal,
                          .step = 100}};
  dv_panel panel = {.up = "values inside the interval (%)",
                    .across = "central interval (%)",
                    .zero = true,
                    .series = series,
                    .n_series = 1};
  for (int i = 0; i < 2; i++)
    if (coverage(shares[i], i ? &v->free_run : &v->one_step, from, to))
      series[panel.n_series++] = (dv_series){.name = names[i],
                                             .colour = i ? DV_PLOT_LINEAR : DV_PLOT_LEARNED,
                                             .count = SHARES,
                                             .y = shares[i],
                                             .first = 5,
                                             .step = 5};
  if (panel.n_series > 1) dv_plot_panel(plot, &panel);
}

/* ---- Views of residuals ---- */

static void add_residual_view(dv_plot *plot, const dv_section *c, const dvbf_verdict *v, size_t k) {
  char label[64], text[128] = "";
  double p = v->whiteness.p[k];
  dv_signal_label(label, c->data, false, k);
  if (!isnan(p))
    dv_print(text, sizeof text,
             p < 0.001 ? "Ljung-Box test of %d lags: p < 0.001, not white"
                       : "Ljung-Box test of %d lags: p = %.2g",
             DVBF_LAGS, p);
  dv_plot_view(plot, label, text);
  add_autocorrelation(plot, c, &v->whiteness, k);
  add_histogram(plot, v, k, k + 1);
  add_coverage(plot, v, k, k + 1);
}

static dvbf_status add_residual_plot(dvbf_page *page, const dv_section *c, const dvbf_verdict *v,
                                     dvbf_error *error) {
  char caption[640];
  bool white = !isnan(v->whiteness.outside) && !c->data->image_height;
  dv_plot plot = dv_plot_begin(page, "", c->data->image_height ? "Pixels" : "Column", false);
  if (v->n_x != 1) {
    dv_plot_view(&plot, "all", NULL);
    add_histogram(&plot, v, 0, v->n_x);
    add_coverage(&plot, v, 0, v->n_x);
  }
  for (size_t k = 0; white && k < v->n_x && v->n_x <= RESIDUALS; k++) add_residual_view(&plot, c, v, k);
  snprintf(caption, sizeof caption,
           "Innovations are the errors one step ahead. Those of a perfect filter are white and, over the "
           "predicted deviation, standard normal; and a central interval of p %% holds p %% of the values.");
  if (white)
    dv_append(caption, sizeof caption,
              " Of the autocorrelations up to lag %d, %.0f %% are outside the band that holds 95 %% of those "
              "of white noise: the more there are, the more of the past the model leaves unused.",
              DVBF_LAGS, 100 * v->whiteness.outside);
  return dv_plot_end(&plot, caption, error);
}

dvbf_status dv_section_residuals(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                                 dvbf_error *error) {
  const dvbf_verdict *v = c->evaluation->verdict;
  if (!v || !(v->one_step.ranks || v->free_run.ranks) || !(v->one_step.origins + v->free_run.origins))
    return DVBF_OK;
  dvbf_status status = dvbf_page_heading(page, 2, "Innovations and calibration", error);
  return status ? status : add_residual_plot(page, c, v, error);
}

/* ---- Signals ---- */

/* The first sequence as a figure. */
static dvbf_status draw_signal_figure(dvbf_page *page, const dv_section *c, const dv_signals *s,
                                      dvbf_error *error) {
  const dv_signal_use *u = &s->use[0];
  dv_path path;
  size_t n = s->shown.n_x, steps = dvbf_sequence_length(&s->shown, 0), values = s->shown.steps * n;
  const float *const shown[] = {u->mean, u->low, u->high};
  float *room = dv_calloc(values, 3 * sizeof *room);
  if (!room) return dv_fail_memory(error, "drawing signals");
  for (size_t i = 0; i < 3 * steps * n; i++) {
    size_t at = i % (steps * n), k = i / (steps * n);
    room[k * values + at] = at < u->first * n ? NAN : shown[k][at - u->first * n];
  }
  dvbf_figure_signals figure = {.steps = steps,
                                .columns = n,
                                .truth = s->shown.x,
                                .prediction = room,
                                .names = c->data->x_names,
                                .observed = u->first,
                                .low = room + values,
                                .high = room + 2 * values,
                                .units = c->data->x_units,
                                .start = c->data->dates ? 0 : dv_signal_start(c->data, &s->shown, 0),
                                .sample_time = c->data->dates ? 0 : c->data->sample_time};
  dv_section_figure_path(path, c, "signals", "");
  dvbf_status drawn = dvbf_draw_signals(&figure, path, error);
  dv_free(room);
  return dv_section_drawn(page, c, "signals", drawn, error);
}

dvbf_status dv_section_signals(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                               dvbf_error *error) {
  const dv_signals *s = &shown->signals;
  char caption[720];
  if (c->data->image_height || !s->n_uses || !s->shown.count) return DVBF_OK;
  snprintf(caption, sizeof caption,
           "Measured and predicted, with the central 90 %% interval of the prediction. ");
  if (shown->observed)
    dv_append(caption, sizeof caption,
              "Free run: from the first %zu steps to the end, using the inputs alone. ", shown->observed);
  dv_append(caption, sizeof caption,
            "One step ahead: each step from those before it. Fit: 100 %% (1 − RMSE / RMSE of the mean).");
  if (s->shown.count > 1)
    dv_append(caption, sizeof caption, " Sequences without a name are numbered as in the data, from 0.");
  if (s->shown.count < c->sequences->count)
    dv_append(caption, sizeof caption, " Shown are %zu of %zu sequences.", s->shown.count,
              c->sequences->count);
  if (s->cut)
    dv_append(caption, sizeof caption, " Of long sequences the first %zu steps are shown.", s->shown.steps);
  if (s->shown.n_x > DV_SIGNAL_COLUMNS)
    dv_append(caption, sizeof caption, " Of %zu columns the first %d can be chosen.", s->shown.n_x,
              DV_SIGNAL_COLUMNS);
  dvbf_status status = dvbf_page_heading(page, 2, "Signals", error);
  if (!status) status = dv_page_signals(page, s, c->data, caption, error);
  return status ? status : draw_signal_figure(page, c, s, error);
}

/* ---- Tracks ---- */

enum { TRACK_ROWS = 3 }; /* ground truth, reconstruction, prediction */

/* Tracks of all rows: [TRACK_ROWS][2][sequences][frames]. */
typedef struct tracks {
  const dv_shown *shown;
  size_t rows, frames;
  double *at, *distance; /* distance: [sequences][frames] of the last row from the first */
} tracks;

static double *track_of(const tracks *t, size_t row, size_t axis, size_t sequence) {
  return t->at + ((row * 2 + axis) * t->shown->film.count + sequence) * t->frames;
}

/* Whether objects are dark in most frames of the video. room: [2][pixels]. */
static bool is_dark(const dv_shown *s, float *room) {
  size_t pixels = s->data->image_height * s->data->image_width, frames = s->film.count * s->film.steps;
  size_t dark = 0;
  for (size_t f = 0; f < frames; f++) {
    dv_track_grey(room + pixels, s->film.x + f * s->film.n_x, pixels, s->film.n_x / pixels);
    dark += dv_track_dark(room + pixels, pixels, room);
  }
  return 2 * dark > frames;
}

static dvbf_status follow(tracks *t, dvbf_error *error) {
  const dv_shown *s = t->shown;
  size_t height = s->data->image_height, width = s->data->image_width, count = s->film.count;
  const float *rows[TRACK_ROWS] = {s->film.x, s->reconstruction->x, s->prediction ? s->prediction->x : NULL};
  size_t pixels = height * width, channels = s->film.n_x / pixels;
  t->at = dv_calloc(TRACK_ROWS * 2 * count, t->frames * sizeof *t->at);
  t->distance = dv_calloc(count, t->frames * sizeof *t->distance);
  float *room = dv_calloc(2 * pixels, sizeof *room), *grey = room + pixels;
  dvbf_status status = t->at && t->distance && room ? DVBF_OK : dv_fail_memory(error, "following what moves");
  bool dark = !status && is_dark(s, room);
  for (size_t i = 0; i < count && !status; i++)
    for (size_t f = 0; f < t->frames; f++) {
      double across[TRACK_ROWS] = {0}, down[TRACK_ROWS] = {0};
      for (size_t r = 0; r < t->rows; r++) {
        across[r] = down[r] = NAN;
        if (f < dvbf_sequence_length(&s->film, i)) {
          dv_track_grey(grey, rows[r] + (i * t->frames + f) * pixels * channels, pixels, channels);
          dv_track_centre(grey, height, width, dark, room, &across[r], &down[r]);
        }
        track_of(t, r, 0, i)[f] = across[r];
        track_of(t, r, 1, i)[f] = down[r];
      }
      size_t last = t->rows - 1;
      t->distance[i * t->frames + f] = hypot(across[last] - across[0], down[last] - down[0]);
    }
  dv_free(room);
  return status;
}

static void add_track_view(dv_plot *plot, const tracks *t, size_t i) {
  static const char *const names[TRACK_ROWS] = {"measured", "reconstructed", "predicted"};
  static const int colours[TRACK_ROWS] = {DV_PLOT_MEASURED, DV_PLOT_LAST, DV_PLOT_LEARNED};
  static const char *const axes[] = {"centre, from the left (pixels)", "centre, from above (pixels)"};
  size_t observed = t->shown->observed;
  const dv_plot_mark mark = {"end of observation", (double)observed + 0.5, false, DV_PLOT_BOUNDARY};
  dv_series series[TRACK_ROWS];
  dv_panel panel = {.across = "frame", .series = series, .marks = &mark, .n_marks = t->rows == TRACK_ROWS};
  dv_plot_view(plot, t->shown->names[i], NULL);
  for (size_t axis = 0; axis < 2; axis++) {
    panel.up = axes[axis];
    panel.n_series = 0;
    for (size_t r = 0; r < t->rows; r++)
      series[panel.n_series++] = (dv_series){.name = names[r],
                                             .kind = r == 1 ? DV_SERIES_DASHED : DV_SERIES_LINE,
                                             .colour = colours[r],
                                             .count = t->frames,
                                             .y = track_of(t, r, axis, i),
                                             .first = 1};
    dv_plot_panel(plot, &panel);
  }
  panel.up = "distance of the centres (pixels)";
  panel.zero = true;
  panel.n_series = 1;
  series[0] = (dv_series){.name = t->rows == TRACK_ROWS ? "predicted" : "reconstructed",
                          .colour = t->rows == TRACK_ROWS ? DV_PLOT_LEARNED : DV_PLOT_LAST,
                          .count = t->frames,
                          .y = t->distance + i * t->frames,
                          .first = 1};
  dv_plot_panel(plot, &panel);
}

/* The mean distance over all that is predicted (DST), and the mean number of frames until it is above a pixel
 * (VPD). */
static void describe(char *out, size_t size, const tracks *t) {
  double sum = 0, count = 0, steps = 0;
  const dvbf_sequences *film = &t->shown->film;
  for (size_t i = 0; i < film->count; i++) {
    bool near = true;
    for (size_t f = t->shown->observed; f < dvbf_sequence_length(film, i); f++) {
      double d = t->distance[i * t->frames + f];
      if (isnan(d)) continue;
      sum += d, count += 1;
      near = near && d <= 1;
      steps += near;
    }
  }
  snprintf(
      out, size,
      "Centre of what is brighter than the background, or of what is darker if dark pixels are the rarer.");
  if (t->rows == TRACK_ROWS && count > 0 && isfinite(sum))
    dv_append(
        out, size,
        " Over the %zu sequence%s shown the predicted centre is on average %.2f pixels from the measured one "
        "(DST), and within one pixel for the first %.1f predicted frames (VPD).",
        film->count, film->count == 1 ? "" : "s", sum / count, steps / (double)film->count);
}

dvbf_status dv_section_tracks(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                              dvbf_error *error) {
  tracks t = {.shown = shown, .rows = shown->prediction ? TRACK_ROWS : 2, .frames = shown->film.steps};
  char caption[480];
  if (!c->data->image_height || !shown->film.count || shown->film.gaps) return DVBF_OK;
  dvbf_status status = follow(&t, error);
  if (!status) status = dvbf_page_heading(page, 2, "Tracks", error);
  if (!status) {
    dv_plot plot = dv_plot_begin(page, "by frame", "Sequence", false);
    for (size_t i = 0; i < shown->film.count; i++) add_track_view(&plot, &t, i);
    describe(caption, sizeof caption, &t);
    status = dv_plot_end(&plot, caption, error);
  }
  DV_FREE(t.at, t.distance);
  return status;
}
