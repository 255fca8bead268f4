/* The evaluation as tables of a chapter. */
#include "chapter_parts.h"
#include "command.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Cells of a table that is being filled, row after row. */
typedef struct grid {
  size_t columns, filled;
  char text[512][40];
  const char *cells[512];
} grid;

static void put(grid *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(grid *g, const char *format, ...) {
  if (g->filled == sizeof g->text / sizeof *g->text) return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(g->text[g->filled], sizeof *g->text, format, arguments);
  va_end(arguments);
  g->cells[g->filled] = g->text[g->filled];
  g->filled++;
}

static dvbf_status add_grid(dvbf_page *page, const grid *g, const char *caption, dvbf_error *error) {
  dvbf_table table = {
      .caption = caption, .rows = g->filled / g->columns, .columns = g->columns, .cells = g->cells};
  return dvbf_page_table(page, &table, error);
}

static dvbf_status add_bound(dvbf_page *page, grid *g, const cli_chapter *c, dvbf_error *error) {
  const dvbf_evaluation *e = c->evaluation;
  bool dkf = !dvbf_model_describe(c->model).n_w; /* which has neither w nor v */
  *g = (grid){.columns = 4};
  put(g, "bound"), put(g, "reconstruction"), put(g, dkf ? "KL of z" : "KL of w"), put(g, "KL of v");
  put(g, "%.2f ± %.2f", e->elbo, e->elbo_deviation);
  put(g, "%.2f", e->reconstruction), put(g, "%.2f", e->kl_w), put(g, "%.2f", e->kl_v);
  return add_grid(
      page, g,
      "Lower bound in nats per frame: reconstruction less the KLs; ± is the standard deviation over "
      "samples",
      error);
}

static dvbf_status add_regressions(dvbf_page *page, grid *g, const cli_chapter *c, dvbf_error *error) {
  const dvbf_evaluation *e = c->evaluation;
  if (!e->n_regressions)
    return cli_chapter_left_out(
        page, c,
        "The data hold no ground truth (`state`), so there is no regression on it, and "
        "the latent space is coloured by the frame alone.",
        error);
  *g = (grid){.columns = 3};
  put(g, "true state"), put(g, "log-likelihood"), put(g, "R²");
  for (size_t i = 0; i < e->n_regressions && i < 100; i++) {
    put(g, "%s", e->regressions[i].name);
    put(g, "%.1f", e->regressions[i].log_likelihood), put(g, "%.4f", e->regressions[i].r2);
  }
  return add_grid(page, g, "Linear regression of the true state on z", error);
}

/* 1, 2, 5, 10, 20, 50, ... and the last. */
static bool round_horizon(size_t h, size_t last) {
  size_t unit = 1;
  while (unit * 10 <= h) unit *= 10;
  return h == last || h == unit || h == 2 * unit || h == 5 * unit;
}

static dvbf_status add_prediction(dvbf_page *page, grid *g, const cli_chapter *c, dvbf_error *error) {
  const dvbf_evaluation *e = cli_chapter_far(c);
  char caption[256];
  if (!e->horizon)
    return cli_chapter_left_out(
        page, c, "The sequences are not longer than the observed frames, so nothing is predicted.", error);
  double unit = e->pixel_variance > 0 ? e->pixel_variance : 1;
  *g = (grid){.columns = 5};
  put(g, "steps ahead"), put(g, "sampled"), put(g, "mean path");
  put(g, "floor: last frame again"), put(g, "floor: mean %s", c->data->image_height ? "image" : "value");
  for (size_t h = 1; h <= e->horizon; h++) {
    if (!round_horizon(h, e->horizon)) continue;
    put(g, "%zu", h), put(g, "%.4f", e->mse[h - 1] / unit), put(g, "%.4f", e->mse_mean_path[h - 1] / unit);
    put(g, "%.4f", e->mse_repeat[h - 1] / unit), put(g, "%.4f", e->pixel_variance / unit);
  }
  snprintf(caption, sizeof caption,
           "Squared error of prediction from %zu observed frames, over the variance %.4g of the data",
           e->observed, e->pixel_variance);
  return add_grid(page, g, caption, error);
}

dvbf_status cli_chapter_tables(dvbf_page *page, const cli_chapter *c, dvbf_error *error) {
  grid *g = malloc(sizeof *g);
  if (!g) return cli_fail(error, DVBF_MEMORY, "out of memory for the tables of the report");
  dvbf_status status = dvbf_page_heading(page, 2, "Summary", error);
  if (!status) status = add_bound(page, g, c, error);
  if (!status) status = add_regressions(page, g, c, error);
  if (!status) status = add_prediction(page, g, c, error);
  free(g);
  return status;
}
