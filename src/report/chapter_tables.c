/* The evaluation as tables of a chapter. */
#include "report/chapter.h"
#include "report/page.h"

#include <stdio.h>

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
  char caption[160];
  snprintf(
      caption, sizeof caption,
      "Lower bound in nats per %s: reconstruction less the KLs; ± is the standard deviation over samples",
      dv_chapter_step(c));
  dvbf_status status = dv_table_init(&t, caption, 2, 4, error);
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
  if (!count) return DVBF_OK;
  dvbf_status status = dv_table_init(&t, "Linear regression of the true state on z", count + 1, 3, error);
  if (!status) put_headings(&t, (const char *const[]){"true state", "log-likelihood", "R²", NULL});
  for (size_t i = 0; !status && i < count; i++) {
    dv_table_put(&t, i + 1, 0, "%s", e->regressions[i].name);
    dv_table_put(&t, i + 1, 1, "%.1f", e->regressions[i].log_likelihood);
    dv_table_put(&t, i + 1, 2, "%.4f", e->regressions[i].r2);
  }
  return add(page, &t, status, error);
}

dvbf_status dv_chapter_tables(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  dvbf_status status =
      dvbf_page_heading(page, 2, c->evaluation->n_regressions ? "Likelihood and state" : "Likelihood", error);
  if (!status) status = add_bound(page, c, error);
  if (!status) status = add_regressions(page, c, error);
  return status;
}
