/* Figure of the latent space of a pendulum, of one model or of two side by side (dvbf_draw_latent). It shows
 * regression directions and not principal axes, which show where a space varies and not what it encodes; R^2
 * is printed with each. */
#include "base/error.h"
#include "base/text.h"
#include "report/drawing.h"
#include "report/figure.h"
#include "report/plots.h"

#include <math.h>
#include <stdio.h>

static const char velocity_label[] = "velocity (rad/s)";

typedef struct block {
  const dvbf_latent_model *model;
  dv_reading reading[DV_READINGS];
  size_t views;
  dv_view view[2];
} block;

typedef struct latent_plan {
  const dvbf_figure_latent *figure;
  size_t blocks;
  block block[2];
  dv_hue velocity_hue;                                /* of both models */
  dv_scale readings[DV_READINGS];                     /* of both models, predicted and true */
  double width, height;                               /* of the page */
  double block_width, pitch, view_side, reading_side; /* pitch: from view to view */
  double views_top, view_height, readings_top;        /* height: from a view to the one below it */
} latent_plan;

/* ---- Computing ---- */

static dvbf_status check_latent(const dvbf_latent_model *m, dvbf_error *error) {
  if (!m->z || !m->points || !m->n_z)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the latent figure needs samples; it has %zu points of %zu dimensions", m->points, m->n_z);
  dvbf_status status = dv_figure_check(m->z, m->points * m->n_z, "latent samples", error);
  if (!status) status = dv_figure_check(m->angle, m->points, "angles", error);
  return status ? status : dv_figure_check(m->velocity, m->points, "velocities", error);
}

static dvbf_status make_views(latent_plan *p, block *b, dvbf_error *error) {
  const dvbf_latent_model *m = b->model;
  const dv_reading *sine = &b->reading[DV_SINE], *cosine = &b->reading[DV_COSINE];
  dvbf_status status = DVBF_OK;
  if (m->angle || !m->velocity) {
    dv_view *v = &b->view[b->views++];
    status = dv_view_make(v, m->z, m->points, m->n_z, sine, cosine, error);
    v->values = m->angle;
    if (m->angle) v->hue = dv_hue_angle("angle φ (rad)");
  }
  if (!status && m->velocity) {
    dv_view *v = &b->view[b->views++];
    status = dv_view_make(v, m->z, m->points, m->n_z, cosine, &b->reading[DV_VELOCITY], error);
    v->values = m->velocity;
    v->hue = p->velocity_hue;
  }
  return status;
}

/* Two models have one scale for each quantity, so that they can be compared. */
static void share_scales(latent_plan *p) {
  p->velocity_hue =
      (dv_hue){.map = dv_colour_sequential, .scale = dv_scale_empty(false), .label = velocity_label};
  for (size_t k = 0; k < DV_READINGS; k++) {
    p->readings[k] = dv_scale_empty(false);
    for (size_t m = 0; m < p->blocks; m++) {
      const block *b = &p->block[m];
      for (size_t i = 0; b->reading[k].truth && i < b->model->points; i++) {
        dv_scale_include(&p->readings[k], b->reading[k].truth[i]);
        dv_scale_include(&p->readings[k], b->reading[k].predicted[i]);
        if (k == DV_VELOCITY) dv_scale_include(&p->velocity_hue.scale, b->reading[k].truth[i]);
      }
    }
    dv_scale_finish(&p->readings[k], 0.03);
  }
  dv_scale_finish(&p->velocity_hue.scale, 0);
}

static dvbf_status compute_latent(latent_plan *p, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  for (size_t m = 0; m < p->blocks && !status; m++) {
    p->block[m].model = &p->figure->model[m];
    status = check_latent(p->block[m].model, error);
    const dvbf_latent_model *model = p->block[m].model;
    if (!status)
      status = dv_pendulum_read(p->block[m].reading, model->z, model->points, model->n_z, model->angle,
                                model->velocity, error);
  }
  if (status) return status;
  share_scales(p);
  for (size_t m = 0; m < p->blocks && !status; m++) status = make_views(p, &p->block[m], error);
  return status;
}

static void clear(latent_plan *p) {
  for (size_t m = 0; m < p->blocks; m++) {
    dv_readings_clear(p->block[m].reading, DV_READINGS);
    for (size_t k = 0; k < 2; k++) dv_view_clear(&p->block[m].view[k]);
  }
}

/* ---- Layout ---- */

static const double heading = 34, between_blocks = 22, gap = 14, above_reading = 30, left_first = 68,
                    left_next = 34;

/* Parts that are left out make the page narrower. A narrow figure has all views and regressions of a block
 * below each other. */
static void place(latent_plan *p) {
  bool narrow = p->figure->narrow, titled = false, coloured = false, fitted = false;
  size_t most_views = 1;
  double used = 0;
  p->block_width = narrow           ? 388
                   : p->blocks == 1 ? 680
                                    : (DV_FIGURE_WIDTH - 2 * DV_FIGURE_MARGIN - between_blocks) / 2;
  p->pitch = narrow ? p->block_width : p->block_width / 2;
  p->view_side = p->pitch - DV_VIEW_LEFT - gap;
  p->reading_side = narrow ? p->block_width - left_first - gap
                           : (p->block_width - left_first - 2 * left_next - 3 * gap) / 3;
  for (size_t m = 0; m < p->blocks; m++) {
    const block *b = &p->block[m];
    size_t fits = 0;
    for (size_t k = 0; k < DV_READINGS; k++) fits += b->reading[k].fitted;
    double below = fits ? left_first - left_next + (double)fits * (left_next + p->reading_side + gap) : 0;
    used = fmax(used, fmax(below, (double)b->views * p->pitch));
    titled |= b->model->title != NULL;
    coloured |= b->view[0].hue.map != NULL;
    fitted |= fits > 0;
    if (b->views > most_views) most_views = b->views;
  }
  if (!narrow) p->block_width = used;
  p->width = 2 * DV_FIGURE_MARGIN + (double)p->blocks * (p->block_width + between_blocks) - between_blocks;
  p->views_top = DV_FIGURE_MARGIN + dv_figure_title_height(p->figure->title) + (titled ? heading : 0);
  p->view_height = p->view_side + DV_AXES_BELOW + (coloured ? DV_SCATTER_LYING + 10 : 0);
  p->readings_top = p->views_top + p->view_height * (narrow ? (double)most_views : 1);
  p->height = p->readings_top;
  if (fitted) p->height += (narrow ? DV_READINGS : 1) * (above_reading + p->reading_side + DV_AXES_BELOW);
  p->height += DV_FIGURE_MARGIN;
}

/* ---- Drawing ---- */

static void draw_reading(cairo_t *cr, const latent_plan *p, const block *b, size_t k, dv_axes axes) {
  axes.across = axes.up = p->readings[k];
  axes.across_label = "true";
  axes.ticks = 4;
  dv_axes_draw_back(cr, &axes);
  dv_hue plain = {0};
  dv_scatter_draw(cr, &axes, b->reading[k].truth, b->reading[k].predicted, NULL, b->model->points, &plain);
  const double ends[2] = {axes.up.low, axes.up.high};
  dv_curve_draw(cr, &axes, ends, ends, 2, (dv_stroke){dv_colour_ink, 1.5, 6});
  dv_axes_draw_frame(cr, &axes);
  /* In the corner that good predictions leave free. */
  char text[32];
  dv_print(text, sizeof text, "%.3f", b->reading[k].r2);
  dv_text_style style = {.size = DV_TEXT_TICK, .longest = 0.5 * axes.width};
  dv_text(cr, axes.x + 6, axes.y + 14, style, "R²");
  dv_text(cr, axes.x + 6, axes.y + 34, style, text);
  dv_text(cr, axes.x + axes.width / 2, axes.y - 14,
          (dv_text_style){.size = DV_TEXT_LABEL, .across = 0.5, .longest = axes.width + 40},
          k == DV_VELOCITY ? velocity_label : b->reading[k].name);
}

static void draw_readings(cairo_t *cr, const latent_plan *p, const block *b, double x) {
  bool first = true, narrow = p->figure->narrow;
  double y = p->readings_top + above_reading;
  for (size_t k = 0; k < DV_READINGS; k++) {
    if (!b->reading[k].fitted) continue;
    x += first ? left_first : narrow ? 0 : left_next;
    dv_axes axes = {.x = x,
                    .y = y,
                    .width = p->reading_side,
                    .height = p->reading_side,
                    .up_label = first || narrow ? "predicted" : NULL,
                    .up_room = left_first - 12};
    draw_reading(cr, p, b, k, axes);
    if (narrow)
      y += above_reading + p->reading_side + DV_AXES_BELOW;
    else
      x += p->reading_side + gap;
    first = false;
  }
}

static void draw_block(cairo_t *cr, const latent_plan *p, const block *b, double x) {
  double top = p->views_top, side = p->view_side;
  dv_text_style style = {.size = DV_TEXT_HEADING, .across = 0.5, .bold = true, .longest = p->block_width};
  if (b->model->title) dv_text(cr, x + p->block_width / 2, top - heading + 10, style, b->model->title);
  for (size_t k = 0; k < b->views; k++) {
    bool narrow = p->figure->narrow;
    double left = x + (narrow ? 0 : (double)k * p->pitch) + DV_VIEW_LEFT;
    double y = top + (narrow ? (double)k * p->view_height : 0);
    dv_view_draw(cr, &b->view[k], left, y, side, side);
    if (b->view[k].hue.map)
      dv_scatter_draw_lying_bar(cr, left, y + side + DV_AXES_BELOW + 4, side, &b->view[k].hue);
  }
  draw_readings(cr, p, b, x);
}

static void draw(cairo_t *cr, const void *figure) {
  const latent_plan *p = figure;
  dv_figure_title(cr, p->width, p->figure->title);
  for (size_t m = 0; m < p->blocks; m++)
    draw_block(cr, p, &p->block[m], DV_FIGURE_MARGIN + (double)m * (p->block_width + between_blocks));
}

dvbf_status dvbf_draw_latent(const dvbf_figure_latent *figure, const char *path, dvbf_error *error) {
  if (figure->models < 1 || figure->models > 2)
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: the latent figure shows 1 or 2 models, not %zu", path,
                   figure->models);
  latent_plan p = {.figure = figure, .blocks = figure->models};
  dvbf_status status = compute_latent(&p, error);
  if (!status) {
    place(&p);
    status = dv_figure_write(path, p.width, p.height, draw, &p, error);
  }
  clear(&p);
  return status;
}
