/* Figure of a ball (dvbf_draw_ball): true position and velocity as colours in the latent space, on planes of
 * regression directions. */
#include "base/error.h"
#include "base/memory.h"
#include "report/figure.h"
#include "report/plots.h"

#include <math.h>

enum { PANELS = 3 };

typedef struct plan {
  const dvbf_figure_ball *figure;
  double low, high;
  size_t cells;
  float *checker;     /* [points] 0 or 1 */
  float *velocity[2]; /* [points] */
  size_t views;
  dv_view view[PANELS];
  double side, right, down, width; /* of a box; from a view to the next; of the page */
} plan;

/* ---- Computing ---- */

/* Two colours apart in lightness as well. */
static dv_colour checker_colour(double t) {
  return t < 0.5 ? dv_colour_lines[0] : dv_colour_lines[1];
}

static size_t cell_of(const plan *p, double value) {
  double cell = floor((value - p->low) / (p->high - p->low) * (double)p->cells);
  return (size_t)fmin(fmax(cell, 0), (double)p->cells - 1);
}

static dvbf_status check(const dvbf_figure_ball *f, const plan *p, const char *path, dvbf_error *error) {
  if (!f->points || !f->n_z || !f->z || (!f->position && !f->velocity))
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: the ball figure needs latent samples and positions or velocities; it has %zu "
                   "points of %zu dimensions",
                   path, f->points, f->n_z);
  if (!(p->low < p->high) || !isfinite(p->high - p->low))
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: the box runs from %g to %g; the upper limit must be larger",
                   path, p->low, p->high);
  dvbf_status status = dv_figure_check(f->z, f->points * f->n_z, "latent samples", error);
  if (!status) status = dv_figure_check(f->position, 2 * f->points, "positions", error);
  return status ? status : dv_figure_check(f->velocity, 2 * f->points, "velocities", error);
}

static dvbf_status colour(plan *p, dvbf_error *error) {
  const dvbf_figure_ball *f = p->figure;
  p->checker = dv_calloc(f->points, sizeof(float));
  p->velocity[0] = dv_calloc(f->points, sizeof(float));
  p->velocity[1] = dv_calloc(f->points, sizeof(float));
  if (!p->checker || !p->velocity[0] || !p->velocity[1]) return dv_fail_memory(error, "drawing the ball");
  for (size_t i = 0; i < f->points; i++) {
    if (f->position)
      p->checker[i] = (float)((cell_of(p, f->position[2 * i]) + cell_of(p, f->position[2 * i + 1])) % 2);
    for (size_t k = 0; f->velocity && k < 2; k++) p->velocity[k][i] = f->velocity[2 * i + k];
  }
  return DVBF_OK;
}

/* Adds the view of a pair of true values [points][2]; `copies` differ in colours alone. */
static dvbf_status add_views(plan *p, const float *truth, const char *const names[2], size_t copies,
                             dvbf_error *error) {
  const dvbf_figure_ball *f = p->figure;
  dv_reading reading[2] = {0};
  dvbf_status status = DVBF_OK;
  for (size_t k = 0; k < 2 && !status; k++)
    status = dv_reading_make(&reading[k], names[k], f->z, f->points, f->n_z, truth + k, 2, error);
  for (size_t k = 0; k < copies && !status; k++)
    status = dv_view_make(&p->view[p->views++], f->z, f->points, f->n_z, &reading[0], &reading[1], error);
  dv_readings_clear(reading, 2);
  return status;
}

static dvbf_status compute(plan *p, dvbf_error *error) {
  static const char *const positions[] = {"x position", "y position"}, *const velocities[] = {"x velocity",
                                                                                              "y velocity"};
  const dvbf_figure_ball *f = p->figure;
  static const char *const labels[2] = {"velocity in x", "velocity in y"};
  dvbf_status status = colour(p, error);
  if (!status && f->position) {
    status = add_views(p, f->position, positions, 1, error);
    p->view[0].values = p->checker;
    p->view[0].hue = (dv_hue){.map = checker_colour, .scale = {.low = 0, .high = 1}};
  }
  if (!status && f->velocity) {
    dv_view *v = &p->view[p->views];
    status = add_views(p, f->velocity, velocities, 2, error);
    for (size_t k = 0; k < 2; k++) {
      v[k].values = p->velocity[k];
      v[k].hue = dv_hue_values(p->velocity[k], f->points, labels[k]);
    }
  }
  return status;
}

/* ---- Drawing ---- */

static const double gap = 14;

/* The true box, in the colours of its cells. */
static void draw_box(cairo_t *cr, const plan *p, double x, double y, double room) {
  const double size = DV_SCATTER_LYING - 8, cell = size / (double)p->cells;
  const char *text = "cell of the true position";
  dv_text_style style = {.size = DV_TEXT_LABEL, .longest = room - size - 12};
  x += (room - size - 12 - fmin(dv_text_length(cr, style, text), style.longest)) / 2;
  for (size_t i = 0; i < p->cells; i++)
    for (size_t j = 0; j < p->cells; j++) {
      dv_colour_set(cr, checker_colour((double)((i + j) % 2)));
      cairo_rectangle(cr, x + (double)i * cell, y + size - (double)(j + 1) * cell, cell, cell);
      cairo_fill(cr);
    }
  dv_colour_set(cr, dv_colour_ink);
  cairo_set_line_width(cr, 1);
  cairo_rectangle(cr, x, y, size, size);
  cairo_stroke(cr);
  dv_text(cr, x + size + 12, y + size / 2, style, text);
}

static void draw(cairo_t *cr, const void *figure) {
  const plan *p = figure;
  double top = DV_FIGURE_MARGIN + dv_figure_title_height(p->figure->title);
  dv_figure_title(cr, p->width, p->figure->title);
  for (size_t k = 0; k < p->views; k++) {
    double x = DV_FIGURE_MARGIN + (double)k * p->right + DV_VIEW_LEFT, y = top + (double)k * p->down;
    double below = y + p->side + DV_AXES_BELOW + 4;
    dv_view_draw(cr, &p->view[k], x, y, p->side, p->side);
    if (p->view[k].values == p->checker)
      draw_box(cr, p, x, below, p->side);
    else
      dv_scatter_draw_lying_bar(cr, x, below, p->side, &p->view[k].hue);
  }
}

dvbf_status dvbf_draw_ball(const dvbf_figure_ball *figure, const char *path, dvbf_error *error) {
  bool unit = figure->box_low == 0 && figure->box_high == 0;
  plan p = {.figure = figure,
            .low = figure->box_low,
            .high = unit ? 1 : figure->box_high,
            .cells = figure->cells ? figure->cells : 3};
  if (p.cells > 20)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: a checkerboard of %zu cells in each direction; give 1 to 20", path, p.cells);
  dvbf_status status = check(figure, &p, path, error);
  if (!status) status = compute(&p, error);
  if (!status) {
    double pitch = (DV_FIGURE_WIDTH - 2 * DV_FIGURE_MARGIN + gap) / PANELS;
    double views = (double)p.views, height = 2 * DV_FIGURE_MARGIN + dv_figure_title_height(figure->title);
    p.side = pitch - DV_VIEW_LEFT - gap;
    double down = p.side + DV_AXES_BELOW + DV_SCATTER_LYING + gap;
    p.right = figure->narrow ? 0 : pitch;
    p.down = figure->narrow ? down : 0;
    p.width = 2 * DV_FIGURE_MARGIN + (figure->narrow ? 1 : views) * pitch - gap;
    height += (figure->narrow ? views : 1) * down - gap;
    status = dv_figure_write(path, p.width, height, draw, &p, error);
  }
  DV_FREE(p.checker, p.velocity[0], p.velocity[1]);
  for (size_t k = 0; k < PANELS; k++) dv_view_clear(&p.view[k]);
  return status;
}
