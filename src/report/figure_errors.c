/* Figure of the prediction error by number of steps ahead (dvbf_draw_errors), for models and baselines.
 * Logarithmic if the errors spread over more than a factor of ten. */
#include "base/error.h"
#include "report/drawing.h"
#include "report/figure.h"

#include <math.h>
#include <stdio.h>

static const double page_width = 800, box_height = 330;
enum { MOST_NAMED = 8 };

static const dv_stroke repeat_stroke = {{0.45, 0.45, 0.47}, 2.5, 0},
                       mean_stroke = {{0.13, 0.13, 0.15}, 1.5, 8}, bar_stroke = {{0.84, 0.10, 0.12}, 3, 0};

static bool shown(const dvbf_error_curve *m) {
  return m->horizon && (m->mse || m->mse_mean_path);
}

/* Calls dv_scale_include for every value, the mean image's 1 too. */
static void include_all(const dvbf_figure_errors *f, dv_scale *up) {
  for (size_t k = 0; k < f->models; k++)
    for (size_t i = 0; i < f->model[k].horizon; i++) {
      if (f->model[k].mse) dv_scale_include(up, f->model[k].mse[i]);
      if (f->model[k].mse_mean_path) dv_scale_include(up, f->model[k].mse_mean_path[i]);
    }
  for (size_t i = 0; f->repeat && i < f->repeat_horizon; i++) dv_scale_include(up, f->repeat[i]);
  dv_scale_include(up, 1);
}

/* Logarithmic when the values, which are positive, spread over more than a factor of ten; else from 0. */
static dv_scale scale_up(const dvbf_figure_errors *f) {
  dv_scale up = dv_scale_empty(true);
  include_all(f, &up);
  if (up.high > 10 * up.low) {
    dv_scale_finish(&up, 0.04);
    return up;
  }
  dv_scale linear = dv_scale_empty(false);
  include_all(f, &linear);
  dv_scale_include(&linear, 0);
  bool from_zero = linear.low == 0;
  dv_scale_finish(&linear, 0.04);
  if (from_zero) linear.low = 0;
  return linear;
}

static size_t longest_horizon(const dvbf_figure_errors *f) {
  size_t longest = f->repeat ? f->repeat_horizon : 0;
  for (size_t k = 0; k < f->models; k++)
    if (shown(&f->model[k]) && f->model[k].horizon > longest) longest = f->model[k].horizon;
  return longest;
}

/* The last step inside the training length; 0 when that is not on the page. */
static size_t bar_of(const dvbf_figure_errors *f) {
  bool inside = f->training_steps > f->observed && f->training_steps - f->observed <= longest_horizon(f);
  return inside ? f->training_steps - f->observed : 0;
}

static dv_stroke stroke_of(size_t k, bool mean_path) {
  dv_stroke stroke = dv_figure_stroke(k);
  if (mean_path) stroke.dash = 4, stroke.width = 1.8;
  return stroke;
}

/* Lists only the curves that are drawn. */
static size_t list_entries(const dvbf_figure_errors *f, dv_legend_entry out[]) {
  size_t count = 0;
  bool sampled = false, mean_path = false;
  for (size_t k = 0; k < f->models; k++) {
    if (!shown(&f->model[k])) continue;
    sampled |= f->model[k].mse != NULL;
    mean_path |= f->model[k].mse_mean_path != NULL;
    if (f->model[k].name && count < MOST_NAMED)
      out[count++] = (dv_legend_entry){f->model[k].name, stroke_of(k, !f->model[k].mse), false};
  }
  if (sampled && mean_path) out[count++] = (dv_legend_entry){"without noise", {dv_colour_ink, 1.8, 4}, false};
  if (f->repeat && f->repeat_horizon) out[count++] = (dv_legend_entry){"persistence", repeat_stroke, false};
  out[count++] = (dv_legend_entry){f->signals ? "mean" : "mean image", mean_stroke, false};
  if (bar_of(f)) out[count++] = (dv_legend_entry){"end of the training length", bar_stroke, true};
  return count;
}

static double box_width(void) {
  return page_width - 2 * DV_FIGURE_MARGIN - DV_AXES_LEFT - 8;
}

static double legend_height(const dvbf_figure_errors *f) {
  dv_legend_entry entries[MOST_NAMED + 4];
  return dv_figure_legend_height(entries, list_entries(f, entries), box_width());
}

static void draw_lines(cairo_t *cr, const dvbf_figure_errors *f, const dv_axes *axes) {
  dv_curve_level(cr, axes, 1, mean_stroke);
  if (bar_of(f)) dv_curve_bar(cr, axes, (double)bar_of(f) + 0.5, bar_stroke);
  if (f->repeat) dv_curve_draw(cr, axes, NULL, f->repeat, f->repeat_horizon, repeat_stroke);
  for (size_t k = f->models; k-- > 0;) { /* the first model on top */
    const dvbf_error_curve *m = &f->model[k];
    if (m->mse_mean_path) dv_curve_draw(cr, axes, NULL, m->mse_mean_path, m->horizon, stroke_of(k, true));
    if (m->mse) dv_curve_draw(cr, axes, NULL, m->mse, m->horizon, stroke_of(k, false));
  }
}

static void draw(cairo_t *cr, const void *figure) {
  const dvbf_figure_errors *f = figure;
  dv_legend_entry entries[MOST_NAMED + 4];
  size_t count = list_entries(f, entries);
  char label[80] = "predicted steps";
  if (f->observed)
    snprintf(label, sizeof label, "predicted %ss after %zu observed %ss", f->signals ? "step" : "frame",
             f->observed, f->signals ? "step" : "frame");
  double top = DV_FIGURE_MARGIN + dv_figure_title_height(f->title);
  dv_axes axes = {.x = DV_FIGURE_MARGIN + DV_AXES_LEFT,
                  .y = top + legend_height(f),
                  .width = box_width(),
                  .height = box_height,
                  .across = dv_scale_empty(false),
                  .up = scale_up(f),
                  .across_label = label,
                  .up_label = f->signals ? "squared error / variance" : "squared error / pixel variance"};
  dv_scale_include(&axes.across, 1);
  dv_scale_include(&axes.across, (double)longest_horizon(f));
  dv_scale_finish(&axes.across, 0.01);
  axes.across.whole = true;
  dv_figure_title(cr, page_width, f->title);
  dv_legend_draw(cr, axes.x, top + 10, axes.x + axes.width, entries, count);
  dv_axes_draw_back(cr, &axes);
  draw_lines(cr, f, &axes);
  dv_axes_draw_frame(cr, &axes);
}

dvbf_status dvbf_draw_errors(const dvbf_figure_errors *figure, const char *path, dvbf_error *error) {
  if (!longest_horizon(figure))
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: there is no prediction error to draw; give a model or the repeated frame with a "
                   "horizon of at least 1",
                   path);
  double height = 2 * DV_FIGURE_MARGIN + dv_figure_title_height(figure->title) + legend_height(figure) +
                  box_height + DV_AXES_BELOW;
  return dv_figure_write(path, page_width, height, draw, figure, error);
}
