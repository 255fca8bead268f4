/* What is left in the errors one step ahead, and whether quantiles hold what they promise. */
#include "base/locale.h"
#include "evaluate/rolling.h"
#include "report/chapter.h"
#include "report/page_plot.h"

#include <math.h>
#include <stdio.h>

enum { COLUMNS = 64, SHARES = 19 }; /* central shares of 5 %, 10 %, ... 95 % */

/* ---- Panels ---- */

static void add_autocorrelation(dv_plot *plot, const dv_chapter *c, const dvbf_whiteness *w, size_t k) {
  double time = c->data->sample_time > 0 ? c->data->sample_time : 1;
  const dv_series series = {.kind = DV_SERIES_STEMS,
                            .colour = DV_PLOT_LEARNED,
                            .count = DVBF_LAGS,
                            .y = w->autocorrelation[k],
                            .first = time,
                            .step = time};
  const dv_plot_mark marks[] = {{"95 % band of white noise", w->band, true, DV_PLOT_BOUNDARY},
                                {"95 % band of white noise", -w->band, true, DV_PLOT_BOUNDARY}};
  dv_panel panel = {.up = "autocorrelation of the innovations",
                    .across = "lag",
                    .seconds = c->data->sample_time > 0,
                    .series = &series,
                    .n_series = 1,
                    .marks = marks,
                    .n_marks = 2};
  if (c->data->sample_time <= 0) panel.across = "lag (steps)";
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
                                  .across = "innovation / its expected deviation",
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
  double one[SHARES], far[SHARES], ideal[] = {0, 100};
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
  dv_series line = {.count = SHARES, .first = 5, .step = 5};
  if (coverage(one, &v->one_step, from, to)) {
    line.name = "one step ahead", line.y = one, line.colour = DV_PLOT_LEARNED;
    series[panel.n_series++] = line;
  }
  if (coverage(far, &v->free_run, from, to)) {
    line.name = "free run", line.y = far, line.colour = DV_PLOT_LINEAR;
    series[panel.n_series++] = line;
  }
  if (panel.n_series > 1) dv_plot_panel(plot, &panel);
}

/* ---- All of it ---- */

static void add_view(dv_plot *plot, const dv_chapter *c, const dvbf_verdict *v, size_t k) {
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

static dvbf_status add_plot(dvbf_page *page, const dv_chapter *c, const dvbf_verdict *v, dvbf_error *error) {
  char caption[640];
  bool white = !isnan(v->whiteness.outside) && !c->data->image_height;
  dv_plot plot = dv_plot_begin(page, "", c->data->image_height ? "Pixels" : "Column", false);
  if (v->n_x != 1) {
    dv_plot_view(&plot, "all", NULL);
    add_histogram(&plot, v, 0, v->n_x);
    add_coverage(&plot, v, 0, v->n_x);
  }
  for (size_t k = 0; white && k < v->n_x && v->n_x <= COLUMNS; k++) add_view(&plot, c, v, k);
  int n =
      snprintf(caption, sizeof caption,
               "Innovations are the errors one step ahead. Those of a perfect filter are white and, over the "
               "deviation that it expects, normal; and a central interval of p %% holds p %% of the values.");
  if (white)
    dv_print(
        caption + n, sizeof caption - (size_t)n,
        " Of the autocorrelations up to lag %d, %.0f %% are outside the band that holds 95 %% of those of "
        "white noise: the more, the more of the past is left unused.",
        DVBF_LAGS, 100 * v->whiteness.outside);
  return dv_plot_end(&plot, caption, error);
}

dvbf_status dv_chapter_residuals(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  const dvbf_verdict *v = c->evaluation->verdict;
  if (!v || !(v->one_step.ranks || v->free_run.ranks) || !(v->one_step.origins + v->free_run.origins))
    return DVBF_OK;
  dvbf_status status = dvbf_page_heading(page, 2, "Innovations and calibration", error);
  return status ? status : add_plot(page, c, v, error);
}
