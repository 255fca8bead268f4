#include "report/scatter.h"

#include "report/svg.h"
#include "report/text.h"

#include <math.h>

/* More points would only cover each other and cost time and space. */
enum { MOST_POINTS = 12000, MOST_POINTS_SVG = 2000 };

/* Colours are rounded to this many levels, which cannot be seen, because dots of one colour share one path.
 */
enum { LEVELS = 64, MISSING = LEVELS };

dv_hue dv_hue_values(const float *values, size_t count, const char *label) {
  dv_hue hue = {.map = dv_colour_sequential, .scale = dv_scale_empty(false), .label = label};
  for (size_t i = 0; i < count; i++) dv_scale_include(&hue.scale, values[i]);
  dv_scale_finish(&hue.scale, 0);
  return hue;
}

dv_hue dv_hue_angle(const char *label) {
  return (dv_hue){
      .map = dv_colour_cyclic, .scale = {.low = -M_PI, .high = M_PI}, .angle = true, .label = label};
}

static int level_of(const dv_hue *hue, const float *values, size_t i) {
  if (!values) return 0;
  double t = dv_scale_place(&hue->scale, values[i]);
  if (!isfinite(t)) return MISSING;
  if (hue->angle) t -= floor(t); /* once around: the ends are one colour */
  return (int)fmin(fmax(t * LEVELS, 0), LEVELS - 1);
}

static dv_colour colour_of(const dv_hue *hue, int level) {
  if (level == MISSING) return dv_colour_missing;
  if (!hue->map) return dv_colour_lines[0];
  return hue->map((level + 0.5) / LEVELS);
}

static size_t common_divisor(size_t a, size_t b) {
  while (b) {
    size_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* Steps of about `count` times the golden section visit every point once. In this order no sequence covers
 * another, and any number of first points is a uniform subset. */
static size_t golden_step(size_t count) {
  size_t step = (size_t)((double)count * 0.6180339887);
  if (step < 1) return 1;
  while (common_divisor(step, count) != 1) step++;
  return step;
}

/* A line of length 0 with round ends is a dot and needs far fewer bytes of SVG than an arc. Rounding to
 * quarters of a unit saves more. */
static void add_dot(cairo_t *cr, const dv_axes *axes, double across, double up) {
  double x, y;
  if (!dv_axes_place(axes, across, up, &x, &y)) return;
  if (x < axes->x || x > axes->x + axes->width || y < axes->y || y > axes->y + axes->height) return;
  x = round(4 * x) / 4;
  y = round(4 * y) / 4;
  cairo_move_to(cr, x, y);
  cairo_line_to(cr, x, y);
}

void dv_scatter_draw(cairo_t *cr, const dv_axes *axes, const double *across, const double *up,
                     const float *values, size_t count, const dv_hue *hue) {
  enum { LAYERS = 6 }; /* colours are drawn in turn, but no colour over all others */
  size_t most = dv_svg_of(cr) ? MOST_POINTS_SVG : MOST_POINTS;
  size_t shown = count < most ? count : most, step = golden_step(count), first = 0;
  /* Dots cover a fixed share of the box until they become too small or too large to see well. */
  double area = 0.35 * axes->width * axes->height / ((double)shown + 1);
  double radius = fmin(fmax(sqrt(area / M_PI), 1.1), 3.2);
  cairo_save(cr);
  cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND);
  cairo_set_line_width(cr, 2 * radius);
  for (size_t layer = 0; layer < LAYERS; layer++) {
    size_t begin = layer * shown / LAYERS, end = (layer + 1) * shown / LAYERS, i = first;
    for (int level = 0; level <= MISSING; level++) {
      i = first;
      for (size_t k = begin; k < end; k++, i = (i + step) % count)
        if (level_of(hue, values, i) == level) add_dot(cr, axes, across[i], up[i]);
      dv_colour colour = colour_of(hue, level);
      cairo_set_source_rgba(cr, colour.red, colour.green, colour.blue, 0.85);
      if (cairo_has_current_point(cr)) cairo_stroke(cr);
    }
    first = i;
  }
  cairo_restore(cr);
}

/* From low to high upwards, or to the right when lying. */
static void draw_ramp(cairo_t *cr, double x, double y, double width, double height, const dv_hue *hue,
                      bool lying) {
  enum { BANDS = 64 };
  cairo_pattern_t *ramp = lying ? cairo_pattern_create_linear(x, 0, x + width, 0)
                                : cairo_pattern_create_linear(0, y + height, 0, y);
  for (int i = 0; i <= BANDS; i++) {
    double t = (double)i / BANDS;
    dv_colour c = hue->map(t);
    cairo_pattern_add_color_stop_rgb(ramp, t, c.red, c.green, c.blue);
  }
  cairo_set_source(cr, ramp);
  cairo_rectangle(cr, x, y, width, height);
  cairo_fill_preserve(cr);
  cairo_pattern_destroy(ramp);
  dv_colour_set(cr, dv_colour_ink);
  cairo_set_line_width(cr, 1);
  cairo_stroke(cr);
}

void dv_scatter_draw_bar(cairo_t *cr, const dv_axes *axes, const dv_hue *hue) {
  const double width = 16, x = axes->x + axes->width + 14;
  draw_ramp(cr, x, axes->y, width, axes->height, hue, false);
  dv_ticks ticks = hue->angle ? dv_scale_ticks_angle() : dv_scale_ticks(&hue->scale, 5);
  for (size_t i = 0; i < ticks.count; i++) {
    double y = axes->y + axes->height * (1 - dv_scale_place(&hue->scale, ticks.at[i].value));
    cairo_move_to(cr, x + width, y);
    cairo_rel_line_to(cr, 5, 0);
    dv_colour_set(cr, dv_colour_ink);
    cairo_stroke(cr);
    dv_text(cr, x + width + 9, y, (dv_text_style){.size = DV_TEXT_TICK, .longest = 38}, ticks.at[i].label);
  }
  dv_text_style style = {.size = DV_TEXT_LABEL, .across = 0.5, .upwards = true, .longest = axes->height};
  if (hue->label) dv_text(cr, x + width + 62, axes->y + axes->height / 2, style, hue->label);
}

void dv_scatter_draw_lying_bar(cairo_t *cr, double x, double y, double length, const dv_hue *hue) {
  const double thick = 12;
  draw_ramp(cr, x, y, length, thick, hue, true);
  dv_ticks ticks = hue->angle ? dv_scale_ticks_angle() : dv_axes_ticks(cr, &hue->scale, length, 6);
  for (size_t i = 0; i < ticks.count; i++) {
    double at = x + length * dv_scale_place(&hue->scale, ticks.at[i].value);
    cairo_move_to(cr, at, y + thick);
    cairo_rel_line_to(cr, 0, 5);
    dv_colour_set(cr, dv_colour_ink);
    cairo_stroke(cr);
    dv_text(cr, at, y + thick + 14, (dv_text_style){.size = DV_TEXT_TICK, .across = 0.5}, ticks.at[i].label);
  }
  dv_text_style style = {.size = DV_TEXT_LABEL, .across = 0.5, .longest = 1.2 * length};
  if (hue->label) dv_text(cr, x + length / 2, y + thick + 36, style, hue->label);
}
