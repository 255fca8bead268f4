#include "report/curve.h"
#include "report/overview.h"

#include <stdio.h>

enum { LEGEND = 58 };

static dv_axes place_axes(const dvbf_picture *p, const dv_panel *panel, const char *label) {
  dv_axes axes = {.x = panel->x + DV_AXES_LEFT,
                  .y = panel->y + DV_OVERVIEW_HEADING + LEGEND,
                  .width = panel->width - DV_AXES_LEFT,
                  .height = panel->height - DV_OVERVIEW_HEADING - LEGEND - DV_AXES_BELOW,
                  .across = dv_scale_empty(false),
                  .up = dv_scale_empty(true),
                  .across_label = label,
                  .up_label = "squared error / pixel variance"};
  const double *const lines[] = {p->mse, p->mse_mean_path, p->mse_repeat};
  for (size_t k = 0; k < 3; k++)
    for (size_t i = 0; lines[k] && i < p->horizon; i++) dv_scale_include(&axes.up, lines[k][i]);
  dv_scale_include(&axes.up, 1);
  dv_scale_finish(&axes.up, 0.04);
  dv_scale_include(&axes.across, 1);
  dv_scale_include(&axes.across, (double)p->horizon);
  dv_scale_finish(&axes.across, 0.01);
  axes.across.whole = true;
  return axes;
}

/* The legend names only what is drawn. */
void dv_overview_errors(cairo_t *cr, const dvbf_picture *p, const dv_panel *panel) {
  const double *const lines[] = {p->mse, p->mse_mean_path, p->mse_repeat};
  const char *const names[] = {"sampled", "mean path", "repeat last frame"};
  const dv_stroke level = {dv_colour_ink, 1.5, 7}, bar = {dv_colour_bar, 3, 0};
  dv_legend_entry entries[5];
  size_t count = 0;
  char label[80] = "predicted steps";
  if (p->observed) snprintf(label, sizeof label, "predicted steps after %zu observed frames", p->observed);
  dv_axes axes = place_axes(p, panel, label);
  dv_overview_heading(cr, panel, "Prediction error");
  dv_axes_draw_back(cr, &axes);
  dv_curve_level(cr, &axes, 1, level);
  /* Between the last step inside the training length and the first beyond. */
  bool inside = p->training_steps > p->observed && p->training_steps - p->observed <= p->horizon;
  if (inside) dv_curve_bar(cr, &axes, (double)(p->training_steps - p->observed) + 0.5, bar);
  for (size_t k = 3; k-- > 0;) /* the sampled error, which matters most, on top */
    if (lines[k]) dv_curve_draw(cr, &axes, NULL, lines[k], p->horizon, (dv_stroke){dv_colour_lines[k], 3, 0});
  dv_axes_draw_frame(cr, &axes);
  for (size_t k = 0; k < 3; k++)
    if (lines[k]) entries[count++] = (dv_legend_entry){names[k], {dv_colour_lines[k], 3, 0}, false};
  entries[count++] = (dv_legend_entry){"mean image", level, false};
  if (inside) entries[count++] = (dv_legend_entry){"end of the training length", bar, true};
  dv_legend_draw(cr, axes.x, panel->y + DV_OVERVIEW_HEADING + 8, axes.x + axes.width, entries, count);
}
