#include "report/axes.h"

#include "report/colour.h"
#include "report/text.h"

#include <math.h>

bool dv_axes_place(const dv_axes *axes, double across, double up, double *x, double *y) {
  double s = dv_scale_place(&axes->across, across), t = dv_scale_place(&axes->up, up);
  if (!isfinite(s) || !isfinite(t)) return false;
  /* Far outside the box a place stays near it: cairo's coordinates end at 2^23. */
  *x = axes->x + axes->width * fmin(fmax(s, -50), 50);
  *y = axes->y + axes->height * (1 - fmin(fmax(t, -50), 50));
  return true;
}

static void line(cairo_t *cr, double x0, double y0, double x1, double y1) {
  cairo_move_to(cr, x0, y0);
  cairo_line_to(cr, x1, y1);
  cairo_stroke(cr);
}

static void tick_across(cairo_t *cr, const dv_axes *axes, double value, const char *label) {
  double x = axes->x + axes->width * dv_scale_place(&axes->across, value), bottom = axes->y + axes->height;
  dv_colour_set(cr, dv_colour_faint);
  if (*label) line(cr, x, axes->y, x, bottom);
  dv_colour_set(cr, dv_colour_ink);
  line(cr, x, bottom, x, bottom + (*label ? 6 : 3));
  dv_text(cr, x, bottom + 18, (dv_text_style){.size = DV_TEXT_TICK, .across = 0.5}, label);
}

static void tick_up(cairo_t *cr, const dv_axes *axes, double value, const char *label) {
  double y = axes->y + axes->height * (1 - dv_scale_place(&axes->up, value));
  dv_colour_set(cr, dv_colour_faint);
  if (*label) line(cr, axes->x, y, axes->x + axes->width, y);
  dv_colour_set(cr, dv_colour_ink);
  line(cr, axes->x - (*label ? 6 : 3), y, axes->x, y);
  dv_text(cr, axes->x - 10, y,
          (dv_text_style){
              .size = DV_TEXT_TICK, .across = 1, .longest = axes->up_room > 0 ? axes->up_room - 18 : 50},
          label);
}

static bool have_room(cairo_t *cr, const dv_scale *scale, const dv_ticks *ticks, double length) {
  double end = -INFINITY;
  for (size_t i = 0; i < ticks->count; i++) {
    if (!ticks->at[i].label[0]) continue;
    double half = dv_text_length(cr, (dv_text_style){.size = DV_TEXT_TICK}, ticks->at[i].label) / 2 + 8;
    double at = length * dv_scale_place(scale, ticks->at[i].value);
    if (at - half < end) return false;
    end = at + half;
  }
  return true;
}

dv_ticks dv_axes_ticks(cairo_t *cr, const dv_scale *scale, double length, size_t most) {
  dv_ticks ticks = dv_scale_ticks(scale, most);
  while (most > 2 && !have_room(cr, scale, &ticks, length)) ticks = dv_scale_ticks(scale, --most);
  return ticks;
}

void dv_axes_draw_back(cairo_t *cr, const dv_axes *axes) {
  cairo_set_line_width(cr, 1);
  size_t across = axes->ticks ? axes->ticks : (size_t)fmax(2, fmin(axes->width / 40, 10));
  size_t up = axes->ticks ? axes->ticks : (size_t)fmax(2, axes->height / 45);
  dv_ticks ticks = dv_axes_ticks(cr, &axes->across, axes->width, across);
  for (size_t i = 0; i < ticks.count; i++) tick_across(cr, axes, ticks.at[i].value, ticks.at[i].label);
  ticks = dv_scale_ticks(&axes->up, up);
  for (size_t i = 0; i < ticks.count; i++) tick_up(cr, axes, ticks.at[i].value, ticks.at[i].label);
  dv_text_style style = {.size = DV_TEXT_LABEL, .across = 0.5, .longest = axes->width};
  if (axes->across_label)
    dv_text(cr, axes->x + axes->width / 2, axes->y + axes->height + 43, style, axes->across_label);
  style.upwards = true;
  style.longest = axes->height;
  double room = axes->up_room > 0 ? axes->up_room : 72;
  if (axes->up_label) dv_text(cr, axes->x - room, axes->y + axes->height / 2, style, axes->up_label);
}

void dv_axes_draw_frame(cairo_t *cr, const dv_axes *axes) {
  cairo_set_line_width(cr, 1);
  dv_colour_set(cr, dv_colour_ink);
  cairo_rectangle(cr, axes->x, axes->y, axes->width, axes->height);
  cairo_stroke(cr);
}
