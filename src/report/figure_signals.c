/* Figure of measured and predicted signals over time, with the band of the prediction (dvbf_draw_signals),
 * one panel for each column. */
#include "base/error.h"
#include "base/memory.h"
#include "report/drawing.h"
#include "report/figure.h"

#include <math.h>
#include <stdio.h>

enum { MOST_PANELS = 4 };
static const double box_height = 150, between = 14, right_room = 16;

/* The figure with its columns as curves. */
typedef struct signals {
  const dvbf_figure_signals *figure;
  size_t panels;
  double *truth, *prediction, *low, *high; /* [panels][steps], the last two NULL without an interval */
  double *at;                              /* [steps] of the axis */
} signals;

enum { ENTRIES = 4 };

static dv_legend_entry entry_of(int i) {
  static const char *const labels[] = {"measured", "predicted", "interval", "end of observation"};
  dv_stroke strokes[] = {
      {dv_colour_ink, 1.6, 0}, dv_figure_stroke(1), dv_figure_stroke(1), {dv_colour_observe, 2, 0}};
  strokes[2].width = 1, strokes[2].dash = 3;
  return (dv_legend_entry){labels[i], strokes[i], i == 3};
}

static size_t list_entries(const dvbf_figure_signals *f, dv_legend_entry out[ENTRIES]) {
  size_t count = 0;
  for (int i = 0; i < ENTRIES; i++)
    if (i < 2 || (i == 2 && f->low && f->high) || (i == 3 && f->observed)) out[count++] = entry_of(i);
  return count;
}

static void label_of(char out[64], const dvbf_figure_signals *f, size_t k) {
  char number[32];
  snprintf(number, sizeof number, "x%zu", k);
  const char *unit = f->units ? f->units[k] : "";
  snprintf(out, 64, *unit ? "%.32s (%.16s)" : "%.32s", f->names ? f->names[k] : number, unit);
}

static void draw_panel(cairo_t *cr, const signals *s, size_t k, dv_axes axes) {
  const dvbf_figure_signals *f = s->figure;
  const double *truth = s->truth + k * f->steps, *prediction = s->prediction + k * f->steps;
  double unit = f->sample_time > 0 ? f->sample_time : 1;
  char name[64];
  label_of(name, f, k);
  axes.across = dv_scale_empty(false);
  axes.up = dv_scale_empty(false);
  axes.across_label = k + 1 < s->panels ? NULL : f->sample_time > 0 ? "time (s)" : "step";
  axes.up_label = name;
  dv_scale_include(&axes.across, s->at[0]);
  dv_scale_include(&axes.across, s->at[f->steps - 1]);
  for (size_t t = 0; t < f->steps; t++) { /* a diverging prediction must not flatten the measured signal */
    if (isfinite(truth[t])) dv_scale_include(&axes.up, truth[t]);
  }
  dv_scale_finish(&axes.across, 0);
  axes.across.whole = f->sample_time <= 0;
  dv_scale_finish(&axes.up, 0.1);
  dv_axes_draw_back(cr, &axes);
  if (s->low) dv_curve_draw(cr, &axes, s->at, s->low + k * f->steps, f->steps, entry_of(2).stroke);
  if (s->high) dv_curve_draw(cr, &axes, s->at, s->high + k * f->steps, f->steps, entry_of(2).stroke);
  dv_curve_draw(cr, &axes, s->at, truth, f->steps, entry_of(0).stroke);
  dv_curve_draw(cr, &axes, s->at, prediction, f->steps, entry_of(1).stroke);
  if (f->observed) dv_curve_bar(cr, &axes, f->start + ((double)f->observed - 0.5) * unit, entry_of(3).stroke);
  dv_axes_draw_frame(cr, &axes);
}

static double top_of(const dvbf_figure_signals *f) {
  dv_legend_entry entries[ENTRIES];
  size_t count = list_entries(f, entries);
  return DV_FIGURE_MARGIN + dv_figure_title_height(f->title) +
         dv_figure_legend_height(entries, count, DV_FIGURE_WIDTH - 2 * DV_FIGURE_MARGIN - DV_AXES_LEFT);
}

static void draw(cairo_t *cr, const void *figure) {
  const signals *s = figure;
  dv_legend_entry entries[ENTRIES];
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

/* One curve for each panel; NULL without values or memory. */
static double *curves_of(const signals *s, const float *values) {
  const dvbf_figure_signals *f = s->figure;
  double *out = values ? dv_calloc(f->steps, s->panels * sizeof *out) : NULL;
  for (size_t k = 0; out && k < s->panels; k++)
    for (size_t t = 0; t < f->steps; t++) out[k * f->steps + t] = (double)values[t * f->columns + k];
  return out;
}

static bool spread(signals *s) {
  const dvbf_figure_signals *f = s->figure;
  bool interval = f->low && f->high;
  s->truth = curves_of(s, f->truth);
  s->prediction = curves_of(s, f->prediction);
  s->low = curves_of(s, interval ? f->low : NULL);
  s->high = curves_of(s, interval ? f->high : NULL);
  s->at = dv_calloc(f->steps, sizeof *s->at);
  for (size_t t = 0; s->at && t < f->steps; t++)
    s->at[t] = f->start + (double)t * (f->sample_time > 0 ? f->sample_time : 1);
  return s->truth && s->prediction && s->at && (!interval || (s->low && s->high));
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
  DV_FREE(s.truth, s.prediction, s.low, s.high, s.at);
  return status;
}
