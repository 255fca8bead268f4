/* Figure of learning curves (dvbf_draw_curves): one panel per quantity, with the runs of a training in
 * each. */
#include "base/error.h"
#include "report/drawing.h"
#include "report/figure.h"

#include <math.h>
#include <string.h>

enum { PANELS = 3, LINES = 2 };

/* A panel shows up to two curves of each run, the first dashed when there is a second. */
typedef struct panel {
  const char *label, *of_signals;
  bool logarithmic;
  size_t lines;
  size_t offset[LINES]; /* of the array in dvbf_learning_run */
} panel;

static const panel panels[PANELS] = {
    {"bound (nats per frame)",
     "bound (nats per step)",
     false,
     2,
     {offsetof(dvbf_learning_run, train_bound), offsetof(dvbf_learning_run, valid_bound)}},
    {"prediction error / pixel variance",
     "prediction error / variance",
     true,
     1,
     {offsetof(dvbf_learning_run, prediction)}},
    {"KL (nats per frame)", "KL (nats per step)", false, 1, {offsetof(dvbf_learning_run, kl)}},
};

static const dv_stroke kept_stroke = {{0.12, 0.5, 0.24}, 2, 0};

static const double *values_of(const dvbf_learning_run *run, const panel *p, size_t line) {
  const double *values;
  memcpy(&values, (const char *)run + p->offset[line], sizeof values);
  return run->count && run->update ? values : NULL;
}

static bool has_line(const dvbf_figure_curves *f, const panel *p, size_t line) {
  for (size_t r = 0; r < f->runs; r++)
    if (values_of(&f->run[r], p, line)) return true;
  return false;
}

static size_t list_panels(const dvbf_figure_curves *f, const panel *out[PANELS]) {
  size_t count = 0;
  for (size_t k = 0; k < PANELS; k++)
    if (has_line(f, &panels[k], 0) || (panels[k].lines > 1 && has_line(f, &panels[k], 1)))
      out[count++] = &panels[k];
  return count;
}

/* The first tenth of a run does not count for a linear scale: its values are far from the others and would
 * flatten the curve. */
static void include_run(dv_axes *axes, const dvbf_learning_run *run, const double *values) {
  double last = -INFINITY;
  for (size_t i = 0; i < run->count; i++) last = fmax(last, run->update[i]);
  for (size_t i = 0; i < run->count; i++) {
    dv_scale_include(&axes->across, run->update[i]);
    if (axes->up.logarithmic || run->count < 10 || !(run->update[i] < 0.1 * last))
      dv_scale_include(&axes->up, values[i]);
  }
}

static void draw_panel(cairo_t *cr, const dvbf_figure_curves *f, const panel *p, dv_axes axes) {
  axes.across = dv_scale_empty(false);
  axes.up = dv_scale_empty(p->logarithmic);
  axes.across_label = "updates";
  axes.up_label = f->signals ? p->of_signals : p->label;
  dv_scale_include(&axes.across, 0);
  for (size_t line = 0; line < p->lines; line++)
    for (size_t r = 0; r < f->runs; r++)
      if (values_of(&f->run[r], p, line)) include_run(&axes, &f->run[r], values_of(&f->run[r], p, line));
  dv_scale_finish(&axes.across, 0.01);
  axes.across.low = 0;
  axes.across.whole = true;
  dv_scale_finish(&axes.up, 0.04);
  dv_axes_draw_back(cr, &axes);
  bool both = p->lines > 1 && has_line(f, p, 0) && has_line(f, p, 1);
  for (size_t line = 0; line < p->lines; line++)
    for (size_t r = 0; r < f->runs; r++) {
      const dvbf_learning_run *run = &f->run[r];
      dv_stroke stroke = dv_figure_stroke(r);
      if (both && line == 0) stroke.dash = 4, stroke.width = 1.8;
      const double *values = values_of(run, p, line);
      if (values) dv_curve_draw(cr, &axes, run->update, values, run->count, stroke);
    }
  if (f->kept > 0) dv_curve_bar(cr, &axes, f->kept, kept_stroke);
  dv_axes_draw_frame(cr, &axes);
}

/* One entry for each run that has a name, as many as fit a few rows, and the meaning of the dashes. */
static size_t list_entries(const dvbf_figure_curves *f, dv_legend_entry out[]) {
  size_t count = 0;
  for (size_t r = 0; r < f->runs && count < 2 * DV_COLOUR_LINES; r++)
    if (f->run[r].name) out[count++] = (dv_legend_entry){f->run[r].name, dv_figure_stroke(r), false};
  if (has_line(f, &panels[0], 0) && has_line(f, &panels[0], 1)) {
    out[count++] = (dv_legend_entry){"training", {dv_colour_ink, 1.8, 4}, false};
    out[count++] = (dv_legend_entry){"validation", {dv_colour_ink, 2.5, 0}, false};
  }
  if (f->kept > 0) out[count++] = (dv_legend_entry){"update that was kept", kept_stroke, true};
  return count;
}

static const double box_height = 260, between = 26, right_room = 16; /* half of the last tick's label */

static double legend_room(const dvbf_figure_curves *f) {
  dv_legend_entry entries[2 * DV_COLOUR_LINES + 3];
  size_t count = list_entries(f, entries);
  return dv_figure_legend_height(entries, count, DV_FIGURE_WIDTH - 2 * DV_FIGURE_MARGIN - DV_AXES_LEFT);
}

static void draw(cairo_t *cr, const void *figure) {
  const dvbf_figure_curves *f = figure;
  const panel *shown[PANELS];
  size_t count = list_panels(f, shown);
  dv_legend_entry entries[2 * DV_COLOUR_LINES + 3];
  size_t n_entries = list_entries(f, entries);
  double top = DV_FIGURE_MARGIN + dv_figure_title_height(f->title),
         right = DV_FIGURE_WIDTH - DV_FIGURE_MARGIN;
  dv_figure_title(cr, DV_FIGURE_WIDTH, f->title);
  dv_legend_draw(cr, DV_FIGURE_MARGIN + DV_AXES_LEFT, top + 10, right, entries, n_entries);
  double pitch = (right - right_room - DV_FIGURE_MARGIN + between) / (double)count;
  for (size_t k = 0; k < count; k++) {
    dv_axes axes = {.x = DV_FIGURE_MARGIN + (double)k * pitch + DV_AXES_LEFT,
                    .y = top + legend_room(f),
                    .width = pitch - DV_AXES_LEFT - between,
                    .height = box_height};
    draw_panel(cr, f, shown[k], axes);
  }
}

dvbf_status dvbf_draw_curves(const dvbf_figure_curves *figure, const char *path, dvbf_error *error) {
  const panel *shown[PANELS];
  if (!figure->runs || !figure->run || !list_panels(figure, shown))
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: there is no learning curve to draw; give runs with updates and a bound, a "
                   "prediction error or a KL",
                   path);
  double height = 2 * DV_FIGURE_MARGIN + dv_figure_title_height(figure->title) + legend_room(figure) +
                  box_height + DV_AXES_BELOW;
  return dv_figure_write(path, DV_FIGURE_WIDTH, height, draw, figure, error);
}
