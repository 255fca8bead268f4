/* Figures of lines over steps or updates: learning curves (dvbf_draw_curves), the error of prediction by the
 * number of steps ahead (dvbf_draw_errors), and measured and predicted signals (dvbf_draw_signals). A page
 * has a title, a legend, and panels side by side or below each other. */
#include "base/error.h"
#include "base/memory.h"
#include "report/drawing.h"
#include "report/figure.h"

#include <math.h>
#include <stdio.h>

/* ---- Page ---- */

enum { LEGEND_ENTRIES = 2 * DV_COLOUR_LINES + 4 };

/* Draws one panel into the box of `axes`. */
typedef void panel_fn(cairo_t *cr, const void *figure, size_t panel, dv_axes axes);

typedef struct page {
  const char *title;
  double width, box_height, right, between; /* right: half of the last tick's label */
  bool stacked;                             /* panels below each other */
  size_t panels, n_entries;
  dv_legend_entry entries[LEGEND_ENTRIES];
  panel_fn *panel;
  const void *figure;
  double legend_room, top, down; /* top: of the first box; down: from a panel to the one below it */
} page;

static void draw_page(cairo_t *cr, const void *user) {
  const page *p = user;
  double left = DV_FIGURE_MARGIN + DV_AXES_LEFT,
         room = p->width - 2 * DV_FIGURE_MARGIN - p->right + p->between;
  double pitch = p->stacked ? 0 : room / (double)p->panels;
  dv_figure_title(cr, p->width, p->title);
  dv_legend_draw(cr, left, DV_FIGURE_MARGIN + dv_figure_title_height(p->title) + 10, left + p->legend_room,
                 p->entries, p->n_entries);
  for (size_t k = 0; k < p->panels; k++) {
    dv_axes axes = {.x = left + (double)k * pitch,
                    .y = p->top + (double)k * p->down,
                    .width = (p->stacked ? room : pitch) - DV_AXES_LEFT - p->between,
                    .height = p->box_height};
    p->panel(cr, p->figure, k, axes);
  }
}

static dvbf_status write_page(page *p, const char *path, dvbf_error *error) {
  p->legend_room = p->width - 2 * DV_FIGURE_MARGIN - DV_AXES_LEFT - p->right;
  p->top = DV_FIGURE_MARGIN + dv_figure_title_height(p->title) +
           dv_figure_legend_height(p->entries, p->n_entries, p->legend_room);
  p->down = p->stacked ? p->box_height + p->between + DV_AXES_BELOW / 2.0 : 0;
  double boxes =
      p->stacked ? (double)p->panels * p->down + DV_AXES_BELOW / 2.0 : p->box_height + DV_AXES_BELOW;
  return dv_figure_write(path, p->width, p->top + boxes + DV_FIGURE_MARGIN, draw_page, p, error);
}

/* ---- Learning curves ---- */

enum { CURVE_TRAINING, CURVE_VALIDATION, CURVE_PREDICTION, CURVE_KL };

static const double *values_of(const dvbf_learning_run *run, size_t curve) {
  const double *const curves[] = {run->train_bound, run->valid_bound, run->prediction, run->kl};
  return run->count && run->update ? curves[curve] : NULL;
}

static bool has_curve(const dvbf_figure_curves *f, size_t curve) {
  for (size_t r = 0; r < f->runs; r++)
    if (values_of(&f->run[r], curve)) return true;
  return false;
}

/* A panel shows the curves `first` to `last` of each run. */
typedef struct curves_panel {
  const char *label, *of_signals;
  bool logarithmic;
  size_t first, last;
} curves_panel;

enum { PANELS = 3 };

static const curves_panel panels[PANELS] = {
    {"bound (nats per frame)", "bound (nats per step)", false, CURVE_TRAINING, CURVE_VALIDATION},
    {"prediction error / pixel variance", "prediction error / variance", true, CURVE_PREDICTION,
     CURVE_PREDICTION},
    {"KL (nats per frame)", "KL (nats per step)", false, CURVE_KL, CURVE_KL}};

static const dv_stroke kept_stroke = {{0.12, 0.5, 0.24}, 2, 0};

static size_t list_panels(const dvbf_figure_curves *f, const curves_panel *out[PANELS]) {
  size_t count = 0;
  for (size_t k = 0; k < PANELS; k++)
    if (has_curve(f, panels[k].first) || has_curve(f, panels[k].last)) out[count++] = &panels[k];
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

static void draw_curves(cairo_t *cr, const void *figure, size_t number, dv_axes axes) {
  const dvbf_figure_curves *f = figure;
  const curves_panel *shown[PANELS], *p = (list_panels(f, shown), shown[number]);
  axes.across = dv_scale_empty(false);
  axes.up = dv_scale_empty(p->logarithmic);
  axes.across_label = "updates";
  axes.up_label = f->signals ? p->of_signals : p->label;
  dv_scale_include(&axes.across, 0);
  for (size_t curve = p->first; curve <= p->last; curve++)
    for (size_t r = 0; r < f->runs; r++)
      if (values_of(&f->run[r], curve)) include_run(&axes, &f->run[r], values_of(&f->run[r], curve));
  dv_scale_finish(&axes.across, 0.01);
  axes.across.low = 0;
  axes.across.whole = true;
  dv_scale_finish(&axes.up, 0.04);
  dv_axes_draw_back(cr, &axes);
  for (size_t curve = p->first; curve <= p->last; curve++)
    for (size_t r = 0; r < f->runs; r++) {
      const dvbf_learning_run *run = &f->run[r];
      dv_stroke stroke = dv_figure_stroke(r);
      if (curve == CURVE_TRAINING && has_curve(f, CURVE_VALIDATION)) stroke.dash = 4, stroke.width = 1.8;
      const double *values = values_of(run, curve);
      if (values) dv_curve_draw(cr, &axes, run->update, values, run->count, stroke);
    }
  if (f->kept > 0) dv_curve_mark(cr, &axes, f->kept, false, kept_stroke);
  dv_axes_draw_frame(cr, &axes);
}

/* One entry for each run that has a name, as many as fit a few rows, and the meaning of the dashes. */
static size_t list_curves(const dvbf_figure_curves *f, dv_legend_entry out[]) {
  size_t count = 0;
  for (size_t r = 0; r < f->runs && count < 2 * DV_COLOUR_LINES; r++)
    if (f->run[r].name) out[count++] = (dv_legend_entry){f->run[r].name, dv_figure_stroke(r), false};
  if (has_curve(f, CURVE_TRAINING) && has_curve(f, CURVE_VALIDATION)) {
    out[count++] = (dv_legend_entry){"training", {dv_colour_ink, 1.8, 4}, false};
    out[count++] = (dv_legend_entry){"validation", {dv_colour_ink, 2.5, 0}, false};
  }
  if (f->kept > 0) out[count++] = (dv_legend_entry){"update that was kept", kept_stroke, true};
  return count;
}

dvbf_status dvbf_draw_curves(const dvbf_figure_curves *figure, const char *path, dvbf_error *error) {
  const curves_panel *shown[PANELS];
  if (!figure->runs || !figure->run || !list_panels(figure, shown))
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: there is no learning curve to draw; give runs with updates and a bound, a "
                   "prediction error or a KL",
                   path);
  page p = {figure->title, DV_FIGURE_WIDTH, 260, 16, 26, .panel = draw_curves, .figure = figure};
  p.panels = list_panels(figure, shown);
  p.n_entries = list_curves(figure, p.entries);
  return write_page(&p, path, error);
}

/* ---- Errors by horizon ---- */

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
static size_t list_errors(const dvbf_figure_errors *f, dv_legend_entry out[]) {
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

static void draw_errors(cairo_t *cr, const void *figure, size_t panel, dv_axes axes) {
  const dvbf_figure_errors *f = figure;
  char label[80] = "predicted steps";
  if (f->observed)
    snprintf(label, sizeof label, "predicted %ss after %zu observed %ss", f->signals ? "step" : "frame",
             f->observed, f->signals ? "step" : "frame");
  axes.across = dv_scale_empty(false);
  axes.up = scale_up(f);
  axes.across_label = label;
  axes.up_label = f->signals ? "squared error / variance" : "squared error / pixel variance";
  dv_scale_include(&axes.across, 1);
  dv_scale_include(&axes.across, (double)longest_horizon(f));
  dv_scale_finish(&axes.across, 0.01);
  axes.across.whole = true;
  dv_axes_draw_back(cr, &axes);
  dv_curve_mark(cr, &axes, 1, true, mean_stroke);
  if (bar_of(f)) dv_curve_mark(cr, &axes, (double)bar_of(f) + 0.5, false, bar_stroke);
  if (f->repeat) dv_curve_draw(cr, &axes, NULL, f->repeat, f->repeat_horizon, repeat_stroke);
  for (size_t k = f->models; k-- > 0;) { /* the first model on top */
    const dvbf_error_curve *m = &f->model[k];
    if (m->mse_mean_path) dv_curve_draw(cr, &axes, NULL, m->mse_mean_path, m->horizon, stroke_of(k, true));
    if (m->mse) dv_curve_draw(cr, &axes, NULL, m->mse, m->horizon, stroke_of(k, false));
  }
  dv_axes_draw_frame(cr, &axes);
}

dvbf_status dvbf_draw_errors(const dvbf_figure_errors *figure, const char *path, dvbf_error *error) {
  if (!longest_horizon(figure))
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: there is no prediction error to draw; give a model or the repeated frame with a "
                   "horizon of at least 1",
                   path);
  page p = {figure->title, 800, 330, 8, .panels = 1, .panel = draw_errors, .figure = figure};
  p.n_entries = list_errors(figure, p.entries);
  return write_page(&p, path, error);
}

/* ---- Signals ---- */

enum { MOST_PANELS = 4 };
enum { TRUTH, PREDICTED, LOW, HIGH, SIGNAL_LINES };

/* The figure with its columns as curves. */
typedef struct signals {
  const dvbf_figure_signals *figure;
  size_t panels;
  double *at;    /* [steps] of the axis */
  double *lines; /* [SIGNAL_LINES][panels][steps] */
} signals;

static bool has_interval(const dvbf_figure_signals *f) {
  return f->low && f->high;
}

static dv_stroke interval_stroke(void) {
  return (dv_stroke){dv_figure_stroke(1).colour, 1, 3};
}

static const dv_stroke observed_stroke = {{0.10, 0.42, 0.85}, 2, 0},
                       truth_stroke = {{0.13, 0.13, 0.15}, 1.6, 0};

static size_t list_signals(const dvbf_figure_signals *f, dv_legend_entry out[]) {
  size_t count = 0;
  out[count++] = (dv_legend_entry){"measured", truth_stroke, false};
  out[count++] = (dv_legend_entry){"predicted", dv_figure_stroke(1), false};
  if (has_interval(f)) out[count++] = (dv_legend_entry){"interval", interval_stroke(), false};
  if (f->observed) out[count++] = (dv_legend_entry){"end of observation", observed_stroke, true};
  return count;
}

static void label_of(char out[64], const dvbf_figure_signals *f, size_t k) {
  char number[32];
  snprintf(number, sizeof number, "x%zu", k);
  const char *unit = f->units ? f->units[k] : "";
  snprintf(out, 64, *unit ? "%.32s (%.16s)" : "%.32s", f->names ? f->names[k] : number, unit);
}

static void draw_signals(cairo_t *cr, const void *figure, size_t k, dv_axes axes) {
  const signals *s = figure;
  const dvbf_figure_signals *f = s->figure;
  const dv_stroke strokes[SIGNAL_LINES] = {truth_stroke, dv_figure_stroke(1), interval_stroke(),
                                           interval_stroke()};
  const double *lines[SIGNAL_LINES];
  char name[64];
  for (size_t i = 0; i < SIGNAL_LINES; i++) lines[i] = s->lines + (i * s->panels + k) * f->steps;
  label_of(name, f, k);
  axes.across = dv_scale_empty(false);
  axes.up = dv_scale_empty(false);
  axes.across_label = k + 1 < s->panels ? NULL : f->sample_time > 0 ? "time (s)" : "step";
  axes.up_label = name;
  dv_scale_include(&axes.across, s->at[0]);
  dv_scale_include(&axes.across, s->at[f->steps - 1]);
  /* A diverging prediction must not flatten the measured signal. */
  for (size_t t = 0; t < f->steps; t++) dv_scale_include(&axes.up, lines[TRUTH][t]);
  dv_scale_finish(&axes.across, 0);
  axes.across.whole = f->sample_time <= 0;
  dv_scale_finish(&axes.up, 0.1);
  dv_axes_draw_back(cr, &axes);
  for (size_t i = LOW; i < SIGNAL_LINES && has_interval(f); i++)
    dv_curve_draw(cr, &axes, s->at, lines[i], f->steps, strokes[i]);
  for (size_t i = TRUTH; i < LOW; i++) dv_curve_draw(cr, &axes, s->at, lines[i], f->steps, strokes[i]);
  double unit = f->sample_time > 0 ? f->sample_time : 1;
  if (f->observed)
    dv_curve_mark(cr, &axes, f->start + ((double)f->observed - 0.5) * unit, false, observed_stroke);
  dv_axes_draw_frame(cr, &axes);
}

static bool spread(signals *s) {
  const dvbf_figure_signals *f = s->figure;
  const float *const from[SIGNAL_LINES] = {f->truth, f->prediction, f->low, f->high};
  s->at = dv_calloc(f->steps, sizeof *s->at);
  s->lines = dv_calloc(f->steps, SIGNAL_LINES * s->panels * sizeof *s->lines);
  if (!s->at || !s->lines) return false;
  for (size_t t = 0; t < f->steps; t++) {
    s->at[t] = f->start + (double)t * (f->sample_time > 0 ? f->sample_time : 1);
    for (size_t i = 0; i < SIGNAL_LINES * s->panels; i++)
      if (from[i / s->panels])
        s->lines[i * f->steps + t] = (double)from[i / s->panels][t * f->columns + i % s->panels];
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
  page p = {figure->title,      DV_FIGURE_WIDTH,       150,         16, 14, .stacked = true,
            .panels = s.panels, .panel = draw_signals, .figure = &s};
  p.n_entries = list_signals(figure, p.entries);
  dvbf_status status = spread(&s) ? write_page(&p, path, error) : dv_fail_memory(error, "drawing signals");
  DV_FREE(s.at, s.lines);
  return status;
}
