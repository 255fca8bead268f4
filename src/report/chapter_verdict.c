/* The verdict of a chapter: its sentence, the tables of errors, and how far the model can be trusted about
 * its own uncertainty. */
#include "base/locale.h"
#include "report/chapter.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>

enum { OPEN = 12, MOST = 64 }; /* columns that have a row of their own, folded away beyond OPEN */

static void put(dvbf_table *t, size_t row, size_t column, const char *format, double value) {
  char text[32] = "–";
  if (!isnan(value)) dv_print(text, sizeof text, format, value);
  dv_table_put(t, row, column, "%s", text);
}

static dvbf_status finish(dvbf_page *page, dvbf_table *t, dvbf_status status, dvbf_error *error) {
  if (!status) status = dvbf_page_table(page, t, error);
  dv_table_clear(t);
  return status;
}

/* ---- Errors ---- */

static bool has_linear(const dvbf_verdict *v) {
  return !isnan(v->one_step.score[DVBF_BY_LINEAR].rmse) || !isnan(v->free_run.score[DVBF_BY_LINEAR].rmse);
}

static dvbf_status add_errors(dvbf_page *page, const dv_chapter *c, const dvbf_verdict *v,
                              dvbf_error *error) {
  static const char *const ways[DVBF_WAYS] = {"mean", "last value", "best linear model", "learned"};
  static const char *const head[] = {"", "one step", "fit", "free run", "fit"};
  size_t row = 1;
  char caption[320];
  dvbf_table t;
  snprintf(
      caption, sizeof caption,
      "RMSE over the deviation of each %s in training, and fit: 100 %% (1 − RMSE / RMSE of the mean). One "
      "step ahead at every %s; free runs from %zu origin%s, of up to %zu %ss",
      dv_chapter_column(c), dv_chapter_step(c), v->free_run.origins, v->free_run.origins == 1 ? "" : "s",
      v->free_run.steps, dv_chapter_step(c));
  dvbf_status status = dv_table_init(&t, caption, DVBF_WAYS + has_linear(v), 5, error);
  t.emphasis = "learned";
  for (size_t i = 0; i < 5 && !status; i++) dv_table_put(&t, 0, i, "%s", head[i]);
  for (int way = 0; way < DVBF_WAYS && !status; way++) {
    const dvbf_score *one = &v->one_step.score[way], *far = &v->free_run.score[way];
    if (way == DVBF_BY_LINEAR && !has_linear(v)) continue;
    dv_table_put(&t, row, 0, "%s",
                 c->data->image_height && way < 2 ? (way ? "persistence" : "mean image") : ways[way]);
    put(&t, row, 1, "%.3f", one->rmse);
    put(&t, row, 2, "%.1f %%", one->fit);
    put(&t, row, 3, "%.3f", far->rmse);
    put(&t, row++, 4, "%.1f %%", far->fit);
  }
  return finish(page, &t, status, error);
}

/* One row by column: errors in its own unit, those of the linear model beside them. */
static void put_column(dvbf_table *t, size_t row, const dv_chapter *c, const dvbf_verdict *v, size_t k) {
  const dvbf_rolling *uses[] = {&v->one_step, &v->free_run};
  char label[64];
  size_t at = 1;
  dv_signal_label(label, c->data, false, k);
  dv_table_put(t, row, 0, "%.39s", label);
  for (size_t i = 0; i < 2; i++) {
    put(t, row, at++, "%.4g", uses[i]->score[DVBF_BY_LEARNED].rmse_by_column[k]);
    put(t, row, at++, "%.1f %%", uses[i]->score[DVBF_BY_LEARNED].fit_by_column[k]);
    if (has_linear(v)) put(t, row, at++, "%.4g", uses[i]->score[DVBF_BY_LINEAR].rmse_by_column[k]);
  }
}

static dvbf_status add_columns(dvbf_page *page, const dv_chapter *c, const dvbf_verdict *v,
                               dvbf_error *error) {
  static const char *const heads[] = {"column", "one step", "fit", "linear", "free run", "fit", "linear"};
  bool linear = has_linear(v), fold = v->n_x > OPEN;
  dvbf_table t;
  if (c->data->image_height || v->n_x > MOST) return DVBF_OK;
  dvbf_status status = fold ? dv_page_fold(page, "RMSE of each column", error) : DVBF_OK;
  if (status) return status;
  status = dv_table_init(&t, "RMSE of each column in its own unit, and fit, of the learned model", v->n_x + 1,
                         linear ? 7 : 5, error);
  for (size_t k = 0, at = 0; k < 7 && !status; k++)
    if (linear || k % 3 || !k) dv_table_put(&t, 0, at++, "%s", heads[k]);
  for (size_t k = 0; k < v->n_x && !status; k++) put_column(&t, k + 1, c, v, k);
  status = finish(page, &t, status, error);
  return !status && fold ? dv_page_unfold(page, error) : status;
}

/* ---- Uncertainty and stability ---- */

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
  return finish(page, &t, status, error);
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
  return finish(page, &t, status, error);
}

/* ---- All of it ---- */

/* A model that the linear one beats in free runs is not what one should use. */
static const char *kind_of(const dvbf_verdict *v) {
  const dvbf_score *score = v->free_run.score;
  bool beaten = score[DVBF_BY_LEARNED].rmse > 1.05 * score[DVBF_BY_LINEAR].rmse; /* false where one is NaN */
  return !v->useful ? "bad" : beaten ? "fair" : "good";
}

dvbf_status dv_chapter_verdict(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  const dvbf_verdict *v = c->evaluation->verdict;
  char text[600];
  if (!v) return DVBF_OK;
  snprintf(text, sizeof text, "%c%s.", v->sentence[0] - (v->sentence[0] >= 'a' ? 'a' - 'A' : 0),
           v->sentence + 1);
  return dv_page_verdict(page, kind_of(v), text, error);
}

dvbf_status dv_chapter_scores(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  const dvbf_verdict *v = c->evaluation->verdict;
  if (!v || (!(v->one_step.origins + v->free_run.origins) && isnan(v->nats.learned))) return DVBF_OK;
  dvbf_status status = dvbf_page_heading(page, 2, "Beside simpler ways to predict", error);
  if (!status) status = add_nats(page, v, error);
  if (status || !(v->one_step.origins + v->free_run.origins)) return status;
  status = add_errors(page, c, v, error);
  if (!status) status = add_columns(page, c, v, error);
  if (!status) status = add_calibration(page, v, error);
  if (!status && c->evaluation->stability) status = add_stability(page, c->evaluation->stability, error);
  return status;
}
