/* The evaluation as tables of a chapter. */
#include "base/locale.h"
#include "report/chapter.h"
#include "report/page.h"

/* Adds a table that was filled, or passes on why it was not, and frees it. */
static dvbf_status add(dvbf_page *page, dvbf_table *table, dvbf_status status, dvbf_error *error) {
  if (!status) status = dvbf_page_table(page, table, error);
  dv_table_clear(table);
  return status;
}

/* `headings` end with NULL. */
static void put_headings(dvbf_table *t, const char *const *headings) {
  for (size_t k = 0; headings[k]; k++) dv_table_put(t, 0, k, "%s", headings[k]);
}

static dvbf_status add_bound(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  const dvbf_evaluation *e = c->evaluation;
  const char *kl = dvbf_model_describe(c->model).n_w ? "KL of w" : "KL of z";
  dvbf_table t;
  dvbf_status status = dv_table_init(
      &t,
      "Lower bound in nats per frame: reconstruction less the KLs; ± is the standard deviation over samples",
      2, 4, error);
  if (!status) {
    put_headings(&t, (const char *const[]){"bound", "reconstruction", kl, "KL of v", NULL});
    dv_table_put(&t, 1, 0, "%.2f ± %.2f", e->elbo, e->elbo_deviation);
    dv_table_put(&t, 1, 1, "%.2f", e->reconstruction);
    dv_table_put(&t, 1, 2, "%.2f", e->kl_w);
    dv_table_put(&t, 1, 3, "%.2f", e->kl_v);
  }
  return add(page, &t, status, error);
}

static dvbf_status add_regressions(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  const dvbf_evaluation *e = c->evaluation;
  size_t count = e->n_regressions < 100 ? e->n_regressions : 100;
  dvbf_table t;
  if (!count)
    return dv_chapter_left_out(
        page, c,
        "The data hold no ground truth (`state`), so there is no regression on it, and "
        "the latent space is coloured by the frame alone.",
        error);
  dvbf_status status = dv_table_init(&t, "Linear regression of the true state on z", count + 1, 3, error);
  if (!status) put_headings(&t, (const char *const[]){"true state", "log-likelihood", "R²", NULL});
  for (size_t i = 0; !status && i < count; i++) {
    dv_table_put(&t, i + 1, 0, "%s", e->regressions[i].name);
    dv_table_put(&t, i + 1, 1, "%.1f", e->regressions[i].log_likelihood);
    dv_table_put(&t, i + 1, 2, "%.4f", e->regressions[i].r2);
  }
  return add(page, &t, status, error);
}

/* 1, 2, 5, 10, 20, 50, ... and the last. */
static bool round_horizon(size_t h, size_t last) {
  size_t unit = 1;
  while (unit * 10 <= h) unit *= 10;
  return h == last || h == unit || h == 2 * unit || h == 5 * unit;
}

static dvbf_status add_prediction(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  const dvbf_evaluation *e = dv_chapter_far(c);
  char caption[256];
  size_t rows = 1;
  dvbf_table t;
  if (!e->horizon)
    return dv_chapter_left_out(
        page, c, "The sequences are not longer than the observed frames, so nothing is predicted.", error);
  dv_print(caption, sizeof caption,
           "Squared error of prediction from %zu observed frames, over the variance %.4g of the data",
           e->observed, e->pixel_variance);
  for (size_t h = 1; h <= e->horizon; h++) rows += round_horizon(h, e->horizon);
  dvbf_status status = dv_table_init(&t, caption, rows, 5, error);
  if (status) return status;
  const char *mean = c->data->image_height ? "mean image" : "mean value";
  put_headings(&t, (const char *const[]){"steps ahead", "sampled", "noise-free", "persistence", mean, NULL});
  double unit = e->pixel_variance > 0 ? e->pixel_variance : 1;
  for (size_t h = 1, row = 1; h <= e->horizon; h++) {
    const double values[] = {e->mse[h - 1], e->mse_mean_path[h - 1], e->mse_repeat[h - 1], e->pixel_variance};
    if (!round_horizon(h, e->horizon)) continue;
    dv_table_put(&t, row, 0, "%zu", h);
    for (size_t k = 0; k < 4; k++) dv_table_put(&t, row, k + 1, "%.4f", values[k] / unit);
    row++;
  }
  return add(page, &t, DVBF_OK, error);
}

dvbf_status dv_chapter_tables(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  dvbf_status status = dvbf_page_heading(page, 2, "Summary", error);
  if (!status) status = add_bound(page, c, error);
  if (!status) status = add_regressions(page, c, error);
  if (!status) status = add_prediction(page, c, error);
  if (!status) status = dv_chapter_search(page, c, error);
  return status;
}
