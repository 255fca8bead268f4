/* The verdict of a chapter: its sentence, the table of errors, and how far the model can be trusted about its
 * own uncertainty. */
#include "base/locale.h"
#include "report/chapter.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>

enum { SHOWN = 16 }; /* columns that have a row of their own */

static void put(dvbf_table *t, size_t row, size_t column, const char *format, double value) {
  char text[32] = "–";
  if (!isnan(value)) dv_print(text, sizeof text, format, value);
  dv_table_put(t, row, column, "%s", text);
}

static void put_row(dvbf_table *t, size_t row, const char *name, const double values[4]) {
  dv_table_put(t, row, 0, "%.32s", name);
  for (size_t i = 0; i < 4; i++) put(t, row, i + 1, i % 2 ? "%.1f %%" : "%.4g", values[i]);
}

static dvbf_status add_errors(dvbf_page *page, const dvbf_verdict *v, dvbf_error *error) {
  static const char *const ways[DVBF_WAYS] = {"mean", "last value", "best linear model", "learned"};
  static const char *const head[] = {"", "one step", "fit", "free run", "fit"};
  size_t columns = v->n_x <= SHOWN ? v->n_x : 0, row = 1;
  bool linear =
      !isnan(v->one_step.score[DVBF_BY_LINEAR].rmse) || !isnan(v->free_run.score[DVBF_BY_LINEAR].rmse);
  char caption[320];
  dvbf_table t;
  dv_print(
      caption, sizeof caption,
      "Error over the deviation of each column in training, and fit over the mean%s. One step ahead at every "
      "step; free runs from %zu origin%s, of up to %zu steps",
      columns ? "; then each column by the learned model, in its own units" : "", v->free_run.origins,
      v->free_run.origins == 1 ? "" : "s", v->free_run.steps);
  dvbf_status status = dv_table_init(&t, caption, DVBF_WAYS + linear + columns, 5, error);
  for (size_t i = 0; i < 5 && !status; i++) dv_table_put(&t, 0, i, "%s", head[i]);
  for (int way = 0; way < DVBF_WAYS && !status; way++) {
    const dvbf_score *one = &v->one_step.score[way], *far = &v->free_run.score[way];
    if (way == DVBF_BY_LINEAR && !linear) continue;
    put_row(&t, row++, ways[way], (double[]){one->rmse, one->fit, far->rmse, far->fit});
  }
  const dvbf_score *one = &v->one_step.score[DVBF_BY_LEARNED], *far = &v->free_run.score[DVBF_BY_LEARNED];
  for (size_t k = 0; k < columns && !status; k++)
    put_row(&t, row++, v->names[k],
            (double[]){one->rmse_by_column[k], one->fit_by_column[k], far->rmse_by_column[k],
                       far->fit_by_column[k]});
  if (!status) status = dvbf_page_table(page, &t, error);
  dv_table_clear(&t);
  return status;
}

static dvbf_status add_calibration(dvbf_page *page, const dvbf_verdict *v, dvbf_error *error) {
  const dvbf_rolling *uses[] = {&v->one_step, &v->free_run};
  static const char *const names[] = {"one step", "free run"};
  dvbf_table t;
  if (isnan(v->one_step.coverage_90) && isnan(v->free_run.coverage_90)) return DVBF_OK;
  dvbf_status status = dv_table_init(
      &t, "Calibration: how much of the data is inside the central part of what the learned model expects", 3,
      3, error);
  if (!status) {
    dv_table_put(&t, 0, 1, "central 50 %%");
    dv_table_put(&t, 0, 2, "central 90 %%");
  }
  for (size_t i = 0; i < 2 && !status; i++) {
    dv_table_put(&t, i + 1, 0, "%s", names[i]);
    put(&t, i + 1, 1, "%.1f %%", 100 * uses[i]->coverage_50);
    put(&t, i + 1, 2, "%.1f %%", 100 * uses[i]->coverage_90);
  }
  if (!status) status = dvbf_page_table(page, &t, error);
  dv_table_clear(&t);
  return status;
}

static dvbf_status add_whiteness(dvbf_page *page, const dvbf_verdict *v, dvbf_error *error) {
  char text[320];
  if (isnan(v->whiteness.outside)) return DVBF_OK;
  dv_print(text, sizeof text,
           "Of the autocorrelations of its errors one step ahead, up to lag %d, %.0f %% are outside the band "
           "±%.2g "
           "that holds 95 %% of those of white noise: the more, the more of the past is left unused.",
           DVBF_LAGS, 100 * v->whiteness.outside, v->whiteness.band);
  return dvbf_page_text(page, text, error);
}

static dvbf_status add_stability(dvbf_page *page, const dvbf_stability *s, dvbf_error *error) {
  char text[640];
  snprintf(text, sizeof text, "Stability: %s.", s->sentence);
  return dvbf_page_text(page, text, error);
}

static dvbf_status add_nats(dvbf_page *page, const dvbf_verdict *v, dvbf_error *error) {
  static const char *const names[] = {"independent columns", "a Markov chain for each column",
                                      "learned, at most"};
  const double values[] = {v->nats.mean, v->nats.last, v->nats.learned};
  dvbf_table t;
  if (isnan(v->nats.learned)) return DVBF_OK;
  dvbf_status status = dv_table_init(&t, "What a frame takes: −ln p", 4, 2, error);
  if (!status) dv_table_put(&t, 0, 1, "nats per frame");
  for (size_t i = 0; i < 3 && !status; i++) {
    dv_table_put(&t, i + 1, 0, "%s", names[i]);
    put(&t, i + 1, 1, "%.4g", values[i]);
  }
  if (!status) status = dvbf_page_table(page, &t, error);
  dv_table_clear(&t);
  return status;
}

dvbf_status dv_chapter_verdict(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  const dvbf_verdict *v = c->evaluation->verdict;
  char text[600];
  if (!v) return DVBF_OK;
  dvbf_status status = dvbf_page_heading(page, 2, "Verdict", error);
  snprintf(text, sizeof text, "%c%s.", v->sentence[0] - (v->sentence[0] >= 'a' ? 'a' - 'A' : 0),
           v->sentence + 1);
  if (!status) status = dvbf_page_text(page, text, error);
  if (!status) status = add_nats(page, v, error);
  if (status || !(v->one_step.origins + v->free_run.origins)) return status;
  status = add_errors(page, v, error);
  if (!status) status = add_calibration(page, v, error);
  if (!status) status = add_whiteness(page, v, error);
  if (!status && c->evaluation->stability) status = add_stability(page, c->evaluation->stability, error);
  return status;
}
