/* Figure of walks through a latent space (dvbf_draw_walks): paths over the latent samples, and the distance
 * between their ends, on planes of regressions or principal axes. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "report/drawing.h"
#include "report/figure.h"
#include "report/plots.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WALKS = 3, VIEWS = 2 };

typedef struct walks_plan {
  const dvbf_figure_walks *figure;
  size_t total;        /* samples, then the steps of all walks, then the attractor */
  size_t first[WALKS]; /* where each walk begins */
  float *z;            /* [total][n_z] */
  float *step;         /* [total] number of the step, of walks */
  size_t views;
  dv_view view[VIEWS];
  dv_hue hue;
  double width, box_width, box_height; /* of the page and of the box of a view */
  double distance, spread; /* between the ends of two walks; of the samples or walks around their mean */
} walks_plan;

/* ---- Computing ---- */

static dvbf_status check_walks(const dvbf_figure_walks *f, const char *path, dvbf_error *error) {
  if (f->walks < 1 || f->walks > WALKS || !f->n_z)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: the figure shows 1 to %d walks in at least 1 dimension, not %zu "
                   "in %zu",
                   path, WALKS, f->walks, f->n_z);
  dvbf_status status = dv_figure_check(f->attractor, f->n_z, "attractor", error);
  for (size_t k = 0; k < f->walks && !status; k++) {
    if (!f->walk[k].z || !f->walk[k].steps)
      return dv_fail(error, DVBF_ARGUMENT, "%.200s: walk %zu has no steps; give at least 1", path, k + 1);
    status = dv_figure_check(f->walk[k].z, f->walk[k].steps * f->n_z, "walks", error);
  }
  if (!f->z) return status;
  if (!status) status = dv_figure_check(f->z, f->points * f->n_z, "latent samples", error);
  if (!status) status = dv_figure_check(f->angle, f->points, "angles", error);
  return status ? status : dv_figure_check(f->velocity, f->points, "velocities", error);
}

static size_t samples_of(const dvbf_figure_walks *f) {
  return f->z ? f->points : 0;
}

static dvbf_status gather(walks_plan *p, dvbf_error *error) {
  const dvbf_figure_walks *f = p->figure;
  size_t at = samples_of(f), n = f->n_z, longest = 0;
  p->total = at + (f->attractor ? 1 : 0);
  for (size_t k = 0; k < f->walks; k++) p->total += f->walk[k].steps;
  p->z = dv_calloc(p->total, n * sizeof *p->z);
  p->step = dv_calloc(p->total, sizeof *p->step);
  if (!p->z || !p->step) return dv_fail_memory(error, "drawing walks");
  if (at) memcpy(p->z, f->z, at * n * sizeof *p->z);
  for (size_t k = 0; k < f->walks; k++) {
    p->first[k] = at;
    memcpy(p->z + at * n, f->walk[k].z, f->walk[k].steps * n * sizeof *p->z);
    for (size_t i = 0; i < f->walk[k].steps; i++) p->step[at + i] = (float)(i + 1);
    at += f->walk[k].steps;
    if (f->walk[k].steps > longest) longest = f->walk[k].steps;
  }
  if (f->attractor) memcpy(p->z + at * n, f->attractor, n * sizeof *p->z);
  p->hue = (dv_hue){.map = dv_colour_sequential,
                    .scale = {.low = 1, .high = longest > 1 ? (double)longest : 2, .whole = true},
                    .label = "step"};
  return DVBF_OK;
}

/* sqrt(sum_i |z_i - mean|^2 / count) */
static double spread_of(const float *z, size_t count, size_t n) {
  double sum = 0;
  for (size_t j = 0; j < n; j++) {
    double mean = 0;
    for (size_t i = 0; i < count; i++) mean += z[i * n + j] / (double)count;
    for (size_t i = 0; i < count; i++) sum += (z[i * n + j] - mean) * (z[i * n + j] - mean) / (double)count;
  }
  return sqrt(sum);
}

static double distance_of(const float *a, const float *b, size_t n) {
  double sum = 0;
  for (size_t j = 0; j < n; j++) sum += ((double)a[j] - b[j]) * ((double)a[j] - b[j]);
  return sqrt(sum);
}

static const float *end_of(const walks_plan *p, size_t k) {
  return p->z + (p->first[k] + p->figure->walk[k].steps - 1) * p->figure->n_z;
}

/* The planes of sin and cos of the angle, and of cos and velocity. */
static dvbf_status read_views(walks_plan *p, dvbf_error *error) {
  const dvbf_figure_walks *f = p->figure;
  dv_reading r[DV_READINGS];
  dvbf_status status = dv_pendulum_read(r, f->z, f->points, f->n_z, f->angle, f->velocity, error);
  if (!status && f->angle)
    status = dv_view_make(&p->view[p->views++], p->z, p->total, f->n_z, &r[DV_SINE], &r[DV_COSINE], error);
  if (!status && f->velocity)
    status =
        dv_view_make(&p->view[p->views++], p->z, p->total, f->n_z, &r[DV_COSINE], &r[DV_VELOCITY], error);
  dv_readings_clear(r, DV_READINGS);
  return status;
}

/* The first principal axis against the second and the third; of two dimensions the coordinates, and of one
 * the coordinate against time, without the samples. */
static dvbf_status plain_views(walks_plan *p, dvbf_error *error) {
  dv_cloud cloud;
  dvbf_status status = dv_cloud_make(&cloud, p->z, p->total, p->figure->n_z, error);
  bool flat = cloud.axes == 1, principal = cloud.axes > 2;
  for (size_t k = 0; k < (principal ? 2 : 1) && !status; k++) {
    dv_view *v = &p->view[p->views++];
    *v = (dv_view){.points = p->total,
                   .across = dv_calloc(p->total, sizeof *v->across),
                   .up = dv_calloc(p->total, sizeof *v->up)};
    if (!v->across || !v->up) status = dv_fail_memory(error, "projecting walks");
    for (size_t i = 0; i < p->total && !status; i++) {
      double step = p->step[i] > 0 ? (double)p->step[i] : i + 1 == p->total ? p->hue.scale.high : NAN;
      v->across[i] = flat ? step : cloud.at[0][i];
      v->up[i] = cloud.at[flat ? 0 : k + 1][i];
    }
    snprintf(v->across_label, sizeof v->across_label,
             principal ? "PC 1 (%.0f %%)"
             : flat    ? "step"
                       : "z₁",
             100 * cloud.share[0]);
    snprintf(v->up_label, sizeof v->up_label,
             principal ? "PC %zu (%.0f %%)"
             : flat    ? "z"
                       : "z₂",
             k + 2, 100 * cloud.share[k + 1]);
  }
  dv_cloud_clear(&cloud);
  return status;
}

static dvbf_status compute_walks(walks_plan *p, dvbf_error *error) {
  const dvbf_figure_walks *f = p->figure;
  dvbf_status status = gather(p, error);
  if (status) return status;
  size_t n = f->n_z, samples = samples_of(f), all = p->total - (f->attractor ? 1 : 0);
  p->distance = f->walks > 1 ? distance_of(end_of(p, 0), end_of(p, 1), n) : 0;
  p->spread = spread_of(p->z, samples > 1 ? samples : all, n);
  bool readable = n > 1 && samples >= n + 2 && (f->angle || f->velocity);
  return readable ? read_views(p, error) : plain_views(p, error);
}

/* ---- Drawing ---- */

static const double left_next = 60, heading = 32, legend_room = 32, between_rows = 12;

enum { WALK_START, END, ATTRACTOR };

static void draw_mark(cairo_t *cr, double x, double y, int mark) {
  cairo_new_path(cr);
  cairo_set_line_width(cr, 2);
  if (mark == WALK_START) cairo_arc(cr, x, y, 6, 0, 2 * M_PI);
  if (mark == END) cairo_rectangle(cr, x - 5.5, y - 5.5, 11, 11);
  if (mark != ATTRACTOR) {
    dv_colour_set(cr, (dv_colour){1, 1, 1});
    cairo_fill_preserve(cr);
    dv_colour_set(cr, dv_colour_ink);
    cairo_stroke(cr);
    return;
  }
  cairo_set_line_width(cr, 3);
  dv_colour_set(cr, dv_colour_bar);
  cairo_move_to(cr, x - 8, y - 8);
  cairo_line_to(cr, x + 8, y + 8);
  cairo_move_to(cr, x - 8, y + 8);
  cairo_line_to(cr, x + 8, y - 8);
  cairo_stroke(cr);
}

static void draw_mark_at(cairo_t *cr, const dv_axes *axes, const dv_view *v, size_t i, int mark) {
  double x, y;
  if (dv_axes_place(axes, v->across[i], v->up[i], &x, &y)) draw_mark(cr, x, y, mark);
}

static dv_colour faint_map(double t) {
  return (dv_colour){0.84, 0.84, 0.85};
}

static void draw_walk(cairo_t *cr, const walks_plan *p, const dv_view *v, size_t k, dv_axes axes) {
  const dvbf_figure_walks *f = p->figure;
  size_t first = p->first[k], steps = f->walk[k].steps;
  dv_hue faint = {.map = faint_map};
  dv_axes_draw_back(cr, &axes);
  if (samples_of(f)) dv_scatter_draw(cr, &axes, v->across, v->up, NULL, samples_of(f), &faint);
  dv_curve_draw(cr, &axes, v->across + first, v->up + first, steps, (dv_stroke){{0.45, 0.45, 0.47}, 1.2, 0});
  dv_scatter_draw(cr, &axes, v->across + first, v->up + first, p->step + first, steps, &p->hue);
  dv_axes_draw_frame(cr, &axes);
  draw_mark_at(cr, &axes, v, first, WALK_START);
  draw_mark_at(cr, &axes, v, first + steps - 1, END);
  if (f->attractor) draw_mark_at(cr, &axes, v, p->total - 1, ATTRACTOR);
}

static void draw_legend(cairo_t *cr, const walks_plan *p, double x, double y, double right) {
  static const char *const names[] = {"start", "end", "attractor of the truth"};
  dv_text_style style = {.size = DV_TEXT_TICK};
  for (int mark = WALK_START; mark <= (p->figure->attractor ? ATTRACTOR : END); mark++) {
    draw_mark(cr, x + 8, y, mark);
    dv_text(cr, x + 24, y, style, names[mark]);
    x += 24 + dv_text_length(cr, style, names[mark]) + 26;
  }
  char text[160];
  dv_print(text, sizeof text, "distance between the ends: %.3g (%.0f %% of the spread of z)", p->distance,
           p->spread > 0 ? 100 * p->distance / p->spread : 0);
  style.across = 1;
  style.longest = right - x;
  if (p->figure->walks > 1) dv_text(cr, right, y, style, text);
}

static void draw_name(cairo_t *cr, const walks_plan *p, size_t k, double x, double y, double room) {
  const dvbf_figure_walks *f = p->figure;
  dv_text_style style = {.size = DV_TEXT_LABEL, .bold = true, .longest = 0.48 * room};
  dv_text(cr, x, y, style, f->walk[k].name ? f->walk[k].name : "walk");
  if (!f->attractor) return;
  char text[80];
  dv_print(text, sizeof text, "end to attractor: %.3g", distance_of(end_of(p, k), f->attractor, f->n_z));
  dv_text(cr, x + room, y, (dv_text_style){.size = DV_TEXT_TICK, .across = 1, .longest = 0.5 * room}, text);
}

/* Walks across, projections down. */
static void draw(cairo_t *cr, const void *figure) {
  const walks_plan *p = figure;
  double top = DV_FIGURE_MARGIN + dv_figure_title_height(p->figure->title);
  double width = p->box_width, height = p->box_height;
  dv_figure_title(cr, p->width, p->figure->title);
  draw_legend(cr, p, DV_FIGURE_MARGIN + DV_AXES_LEFT, top + 8, p->width - DV_FIGURE_MARGIN);
  top += legend_room + heading;
  for (size_t row = 0; row < p->views; row++)
    for (size_t k = 0; k < p->figure->walks; k++) {
      const dv_view *v = &p->view[row];
      dv_axes axes = {.x = DV_FIGURE_MARGIN + DV_AXES_LEFT + (double)k * (width + left_next),
                      .y = top + (double)row * (height + DV_AXES_BELOW + between_rows),
                      .width = width,
                      .height = height,
                      .across = dv_figure_scale(v->across, v->points),
                      .up = dv_figure_scale(v->up, v->points),
                      .across_label = v->across_label,
                      .up_label = k ? NULL : v->up_label};
      draw_walk(cr, p, v, k, axes);
      if (!row) draw_name(cr, p, k, axes.x, top - 18, width);
      if (k + 1 == p->figure->walks) dv_scatter_draw_bar(cr, &axes, &p->hue);
    }
}

dvbf_status dvbf_draw_walks(const dvbf_figure_walks *figure, const char *path, dvbf_error *error) {
  walks_plan p = {.figure = figure};
  dvbf_status status = check_walks(figure, path, error);
  if (!status) status = compute_walks(&p, error);
  if (!status) {
    double walks = (double)figure->walks;
    p.width = figure->walks > 1 ? DV_FIGURE_WIDTH : 720;
    double room = p.width - 2 * DV_FIGURE_MARGIN - DV_SCATTER_BAR + 4;
    p.box_width = (room - DV_AXES_LEFT - (walks - 1) * left_next) / walks;
    p.box_height = fmin(p.box_width, 300);
    double height = 2 * DV_FIGURE_MARGIN + dv_figure_title_height(figure->title) + legend_room + heading +
                    (double)p.views * (p.box_height + DV_AXES_BELOW + between_rows) - between_rows;
    status = dv_figure_write(path, p.width, height, draw, &p, error);
  }
  DV_FREE(p.z, p.step);
  for (size_t k = 0; k < VIEWS; k++) dv_view_clear(&p.view[k]);
  return status;
}
