#include "report/curve.h"

#include <math.h>

static void begin(cairo_t *cr, const dv_axes *axes, dv_stroke stroke) {
  cairo_save(cr);
  cairo_rectangle(cr, axes->x, axes->y, axes->width, axes->height);
  cairo_clip(cr);
  cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
  cairo_set_line_cap(cr, stroke.dash > 0 ? CAIRO_LINE_CAP_BUTT : CAIRO_LINE_CAP_ROUND);
  dv_stroke_set(cr, stroke);
}

static void end(cairo_t *cr) {
  cairo_stroke(cr);
  cairo_restore(cr);
}

void dv_curve_draw(cairo_t *cr, const dv_axes *axes, const double *at, const double *values, size_t count,
                   dv_stroke stroke) {
  begin(cr, axes, stroke);
  bool drawing = false;
  for (size_t i = 0; i < count; i++) {
    double x, y;
    bool shown = dv_axes_place(axes, at ? at[i] : (double)i + 1, values[i], &x, &y);
    if (shown && !drawing) {
      cairo_move_to(cr, x, y);
      cairo_line_to(cr, x, y); /* a value between two gaps is a dot */
    } else if (shown) {
      cairo_line_to(cr, x, y);
    }
    drawing = shown;
  }
  end(cr);
}

void dv_curve_level(cairo_t *cr, const dv_axes *axes, double value, dv_stroke stroke) {
  double place = dv_scale_place(&axes->up, value);
  if (!(place >= 0 && place <= 1)) return;
  begin(cr, axes, stroke);
  cairo_move_to(cr, axes->x, axes->y + axes->height * (1 - place));
  cairo_rel_line_to(cr, axes->width, 0);
  end(cr);
}

void dv_curve_bar(cairo_t *cr, const dv_axes *axes, double value, dv_stroke stroke) {
  double place = dv_scale_place(&axes->across, value);
  if (!(place >= 0 && place <= 1)) return;
  begin(cr, axes, stroke);
  cairo_move_to(cr, axes->x + axes->width * place, axes->y);
  cairo_rel_line_to(cr, 0, axes->height);
  end(cr);
}
