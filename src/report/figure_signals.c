/* Measured and predicted signals over time. */
#include "base/memory.h"
#include "base/status.h"
#include "report/curve.h"
#include "report/figure.h"

#include <math.h>
#include <stdio.h>

enum { MOST_PANELS = 4 };
static const double box_height = 150, between = 14, right_room = 16;

/* The figure with its columns as curves. */
typedef struct signals {
  const dvbf_figure_signals *figure;
  size_t panels;
  double *truth, *prediction; /* [panels][steps] */
} signals;

static dv_legend_entry entries_of(int i) {
  static const char *const labels[] = {"measured", "predicted", "end of observation"};
  dv_stroke strokes[] = {{dv_colour_ink, 1.6, 0}, dv_figure_stroke(1), {dv_colour_observe, 2, 0}};
  return (dv_legend_entry){labels[i], strokes[i], i == 2};
}

static size_t list_entries(const dvbf_figure_signals *f, dv_legend_entry out[3]) {
  size_t count = f->observed ? 3 : 2;
  for (size_t i = 0; i < count; i++) out[i] = entries_of((int)i);
  return count;
}

static void draw_panel(cairo_t *cr, const signals *s, size_t k, dv_axes axes) {
  const dvbf_figure_signals *f = s->figure;
  const double *truth = s->truth + k * f->steps, *prediction = s->prediction + k * f->steps;
  char name[32];
  snprintf(name, sizeof name, "x%zu", k);
  axes.across = dv_scale_empty(false);
  axes.up = dv_scale_empty(false);
  axes.across_label = k + 1 == s->panels ? "step" : NULL;
  axes.up_label = f->names ? f->names[k] : name;
  dv_scale_include(&axes.across, 1);
  dv_scale_include(&axes.across, (double)f->steps);
  for (size_t t = 0; t < f->steps; t++) { /* a diverging prediction must not flatten the measured signal */
    if (isfinite(truth[t])) dv_scale_include(&axes.up, truth[t]);
  }
  dv_scale_finish(&axes.across, 0);
  axes.across.whole = true;
  dv_scale_finish(&axes.up, 0.1);
  dv_axes_draw_back(cr, &axes);
  dv_curve_draw(cr, &axes, NULL, truth, f->steps, entries_of(0).stroke);
  dv_curve_draw(cr, &axes, NULL, prediction, f->steps, entries_of(1).stroke);
  if (f->observed) dv_curve_bar(cr, &axes, (double)f->observed, entries_of(2).stroke);
  dv_axes_draw_frame(cr, &axes);
}

static double top_of(const dvbf_figure_signals *f) {
  dv_legend_entry entries[3];
  size_t count = list_entries(f, entries);
  return DV_FIGURE_MARGIN + dv_figure_title_height(f->title) +
         dv_figure_legend_height(entries, count, DV_FIGURE_WIDTH - 2 * DV_FIGURE_MARGIN - DV_AXES_LEFT);
}

static void draw(cairo_t *cr, const void *figure) {
  const signals *s = figure;
  dv_legend_entry entries[3];
  size_t count = list_entries(s->figure, entries);
  double right = DV_FIGURE_WIDTH - DV_FIGURE_MARGIN, left = DV_FIGURE_MARGIN + DV_AXES_LEFT;
  dv_figure_title(cr, DV_FIGURE_WIDTH, s->figure->title);
  dv_legend_draw(cr, left, DV_FIGURE_MARGIN + dv_figure_title_height(s->figure->title) + 10, right, entries,
                 count);
  for (size_t k = 0; k < s->panels; k++) {
    dv_axes axes = {.x = left,
                    .y = top_of(s->figure) + (double)k * (box_height + between + DV_AXES_BELOW / 2.0),
                    .width = right - right_room - left,
                    .height = box_height};
    draw_panel(cr, s, k, axes);
  }
}

/* One curve for each panel. */
static bool spread(signals *s) {
  const dvbf_figure_signals *f = s->figure;
  s->truth = dv_calloc(f->steps, s->panels * sizeof *s->truth);
  s->prediction = dv_calloc(f->steps, s->panels * sizeof *s->prediction);
  if (!s->truth || !s->prediction) return false;
  for (size_t k = 0; k < s->panels; k++)
    for (size_t t = 0; t < f->steps; t++) {
      s->truth[k * f->steps + t] = (double)f->truth[t * f->columns + k];
      s->prediction[k * f->steps + t] = (double)f->prediction[t * f->columns + k];
    }
  return true;
}

dvbf_status dvbf_draw_signals(const dvbf_figure_signals *figure, const char *path, dvbf_error *error) {
  if (figure->steps < 2 || !figure->columns || !figure->truth || !figure->prediction)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: there is no signal to draw; give two steps of a column or more, measured and "
                   "predicted",
                   path);
  signals s = {.figure = figure, .panels = figure->columns < MOST_PANELS ? figure->columns : MOST_PANELS};
  double height = top_of(figure) + (double)s.panels * (box_height + between + DV_AXES_BELOW / 2.0) +
                  DV_AXES_BELOW / 2.0 + DV_FIGURE_MARGIN;
  dvbf_status status = spread(&s) ? dv_figure_write(path, DV_FIGURE_WIDTH, height, draw, &s, error)
                                  : dv_fail_memory(error, "drawing signals");
  DV_FREE(s.truth, s.prediction);
  return status;
}
