/* The learning curves of a chapter. */
#include "base/memory.h"
#include "base/status.h"
#include "report/chapter.h"
#include "report/page_plot.h"

#include <stdio.h>

enum { STARTS = 8 }; /* that are shown, the last ones */

/* One curve of all runs; the last run is the one that counts. */
static size_t list_series(dv_series *out, const dvbf_metrics *m, size_t first, size_t curve,
                          const char *name) {
  size_t count = 0;
  for (size_t r = first; r < m->n_runs; r++) {
    const dvbf_learning_run *run = &m->runs[r];
    const double *const curves[] = {run->train_bound, run->valid_bound, run->prediction, run->kl};
    bool last = r + 1 == m->n_runs;
    dv_series one = {.name = last ? name : "earlier starts",
                     .kind = curve ? DV_SERIES_LINE : DV_SERIES_DASHED,
                     .colour = last ? DV_PLOT_LEARNED : DV_PLOT_BOUNDARY,
                     .count = run->count,
                     .x = run->update,
                     .y = curves[curve]};
    out[count++] = one;
  }
  return count;
}

static void add_panels(dv_plot *plot, const dv_chapter *c, const dvbf_metrics *m) {
  dv_series series[2 * STARTS];
  size_t first = m->n_runs > STARTS ? m->n_runs - STARTS : 0;
  bool pictures = c->data->image_height;
  dv_plot_mark kept = {"update that was kept", (double)dvbf_model_describe(c->model).updates, false,
                       DV_PLOT_KEPT};
  dv_panel panel = {
      .across = "updates", .robust = true, .series = series, .n_marks = kept.at > 0, .marks = &kept};
  panel.up = pictures ? "bound (nats per frame)" : "bound (nats per step)";
  panel.n_series = list_series(series, m, m->n_runs - 1, 0, "training");
  panel.n_series += list_series(series + panel.n_series, m, first, 1, "validation");
  dv_plot_panel(plot, &panel);
  panel.up = "squared error of prediction / variance";
  panel.logarithmic = true;
  panel.robust = false;
  panel.n_series = list_series(series, m, first, 2, "validation");
  dv_plot_panel(plot, &panel);
  panel.up = pictures ? "KL (nats per frame)" : "KL (nats per step)";
  panel.logarithmic = false;
  panel.zero = panel.robust = true;
  panel.n_series = list_series(series, m, first, 3, "validation");
  dv_plot_panel(plot, &panel);
}

dvbf_status dv_chapter_curves(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  dv_path path;
  dvbf_metrics *metrics = NULL;
  dvbf_error reason;
  if (!c->run) {
    dv_chapter_tell(c, "A model file alone has no metrics.csv beside it to draw.");
    return DVBF_OK;
  }
  dv_join(path, c->run, DVBF_RUN_METRICS);
  if (!dv_exists(path)) return DVBF_OK; /* as after a search, which has a table instead */
  dvbf_status status = dvbf_metrics_read(&metrics, path, &reason);
  if (status == DVBF_FORMAT) { /* damaged: the report has no curves and says why */
    dv_chapter_tell(c, reason.message);
    return DVBF_OK;
  }
  if (status) return dv_fail(error, status, "%s", reason.message);
  if (metrics->n_runs == 1 && metrics->runs[0].count < 2) { /* one point is no curve */
    dvbf_metrics_free(metrics);
    return DVBF_OK;
  }
  dvbf_figure_curves figure = {.runs = metrics->n_runs,
                               .run = metrics->runs,
                               .kept = (double)dvbf_model_describe(c->model).updates,
                               .signals = !c->data->image_height};
  dv_chapter_figure_path(path, c, "curves", "");
  status = dv_chapter_drawn(page, c, "curves", dvbf_draw_curves(&figure, path, error), error);
  if (!status) status = dvbf_page_heading(page, 2, "Learning curves", error);
  if (!status) {
    dv_plot plot = dv_plot_begin(page, "against the number of updates", NULL, false);
    dv_plot_view(&plot, "all", NULL);
    add_panels(&plot, c, metrics);
    status = dv_plot_end(
        &plot, "Training: the bound, the error of predictions on validation data, and the KL.", error);
  }
  dvbf_metrics_free(metrics);
  return status;
}
