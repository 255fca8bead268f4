#include "base/memory.h"
#include "base/status.h"
#include "report/cloud.h"
#include "report/overview.h"
#include "report/scatter.h"

#include <math.h>
#include <stdio.h>

/* One colouring of the latent space: by angle, by velocity, or none. */
typedef struct colouring {
  const float *values; /* [points] */
  dv_hue hue;
} colouring;

/* What one small plot shows. */
typedef struct view {
  const double *across, *up; /* [points] */
  const char *across_label, *up_label;
  const colouring *colours;
} view;

static size_t list_colourings(const dvbf_picture *p, colouring out[2]) {
  size_t count = 0;
  if (p->angle) out[count++] = (colouring){p->angle, dv_hue_angle(p->angle_label ? p->angle_label : "angle")};
  if (p->velocity)
    out[count++] =
        (colouring){p->velocity, dv_hue_values(p->velocity, p->points,
                                               p->velocity_label ? p->velocity_label : "velocity")};
  if (!count) out[count++] = (colouring){0};
  return count;
}

static dv_scale scale_of(const double *values, size_t count) {
  dv_scale scale = dv_scale_empty(false);
  for (size_t i = 0; i < count; i++) dv_scale_include(&scale, values[i]);
  dv_scale_finish(&scale, 0.03);
  return scale;
}

static void draw_view(cairo_t *cr, const view *v, size_t points, const dv_panel *box, bool bar) {
  dv_axes axes = {.x = box->x,
                  .y = box->y,
                  .width = box->width,
                  .height = box->height,
                  .across = scale_of(v->across, points),
                  .up = scale_of(v->up, points),
                  .across_label = v->across_label,
                  .up_label = v->up_label};
  dv_axes_draw_back(cr, &axes);
  dv_scatter_draw(cr, &axes, v->across, v->up, v->colours->values, points, &v->colours->hue);
  dv_axes_draw_frame(cr, &axes);
  if (bar) dv_scatter_draw_bar(cr, &axes, &v->colours->hue);
}

/* The box of plot (row, column) of a grid; `bars` colour bars stand in each row. */
static dv_panel grid_box(const dv_panel *panel, size_t rows, size_t columns, size_t bars, size_t row,
                         size_t column) {
  const double gap = 14;
  double top = panel->y + DV_OVERVIEW_HEADING;
  double height = (panel->height + gap - DV_OVERVIEW_HEADING) / (double)rows;
  double width = (panel->width + gap - (double)bars * DV_SCATTER_BAR) / (double)columns;
  double bars_before = bars == columns ? (double)column * DV_SCATTER_BAR : 0;
  dv_panel box = {panel->x + (double)column * width + bars_before + DV_AXES_LEFT, top + (double)row * height,
                  width - gap - DV_AXES_LEFT, height - gap - DV_AXES_BELOW};
  box.width = fmin(box.width, 2 * box.height); /* shapes are hard to judge when stretched */
  return box;
}

/* Three axes or more: columns are projections, rows are colourings, which share a colour bar. */
static void draw_principal(cairo_t *cr, const dvbf_picture *p, const dv_panel *panel, const dv_cloud *pr) {
  colouring colours[2];
  size_t rows = list_colourings(p, colours);
  char labels[DV_CLOUD_AXES][40];
  for (size_t k = 0; k < DV_CLOUD_AXES; k++)
    snprintf(labels[k], sizeof labels[k], "PC %zu (%.0f %%)", k + 1, 100 * pr->share[k]);
  for (size_t row = 0; row < rows; row++)
    for (size_t column = 0; column < 2; column++) {
      view v = {pr->at[0], pr->at[column + 1], labels[0], labels[column + 1], &colours[row]};
      dv_panel box = grid_box(panel, rows, 2, colours[row].hue.map ? 1 : 0, row, column);
      draw_view(cr, &v, p->points, &box, column == 1 && colours[row].hue.map);
    }
}

/* One or two axes: a plot for each colouring. A single axis is set against the values themselves, which then
 * need no colour bar. */
static dvbf_status draw_plain(cairo_t *cr, const dvbf_picture *p, const dv_panel *panel, const dv_cloud *pr,
                              dvbf_error *error) {
  colouring colours[2];
  size_t columns = list_colourings(p, colours);
  double *copy = dv_calloc(p->points, sizeof *copy);
  if (!copy) return dv_fail_memory(error, "drawing the latent space");
  for (size_t column = 0; column < columns; column++) {
    const colouring *c = &colours[column];
    for (size_t i = 0; i < p->points; i++) copy[i] = c->values ? c->values[i] : (double)i;
    view v = {pr->at[0], pr->axes > 1 ? pr->at[1] : copy, "z₁", "z₂", c};
    if (pr->axes == 1) v.up_label = c->values ? c->hue.label : "sample";
    bool bar = c->hue.map && pr->axes > 1;
    dv_panel box = grid_box(panel, 1, columns, bar ? columns : 0, 0, column);
    draw_view(cr, &v, p->points, &box, bar);
  }
  dv_free(copy);
  return DVBF_OK;
}

dvbf_status dv_overview_latent(cairo_t *cr, const dvbf_picture *picture, const dv_panel *panel,
                               dvbf_error *error) {
  dv_cloud cloud;
  dvbf_status status = dv_cloud_make(&cloud, picture->z, picture->points, picture->n_z, error);
  if (!status) {
    char heading[80] = "Latent space";
    if (cloud.rotated)
      snprintf(heading, sizeof heading, "Latent space: principal axes of %zu dimensions", picture->n_z);
    dv_overview_heading(cr, panel, heading);
    if (cloud.rotated)
      draw_principal(cr, picture, panel, &cloud);
    else
      status = draw_plain(cr, picture, panel, &cloud, error);
  }
  dv_cloud_clear(&cloud);
  return status;
}
