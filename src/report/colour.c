#include "report/colour.h"

#include <math.h>

const dv_colour dv_colour_ink = {0.13, 0.13, 0.15};
const dv_colour dv_colour_faint = {0.87, 0.87, 0.88};
const dv_colour dv_colour_missing = {0.72, 0.72, 0.72};
const dv_colour dv_colour_bar = {0.84, 0.10, 0.12};
const dv_colour dv_colour_observe = {0.10, 0.42, 0.85};

/* Different in lightness and in hue, also to the colour-blind: blue, orange, green, purple, sky blue, brown.
 */
const dv_colour dv_colour_lines[DV_COLOUR_LINES] = {{0.05, 0.30, 0.66}, {0.93, 0.55, 0.05},
                                                    {0.20, 0.62, 0.42}, {0.55, 0.15, 0.50},
                                                    {0.40, 0.72, 0.92}, {0.42, 0.26, 0.10}};

/* Both maps are curves in CIE L*a*b*, where distance is nearly the difference that is seen. The idea is that
 * of Smith and van der Walt's viridis (2015) and Kovesi's "Good Colour Maps" (2015); the curves are our own.
 */

static double cube_or_line(double f) {
  const double knee = 6.0 / 29;
  return f > knee ? f * f * f : 3 * knee * knee * (f - 4.0 / 29);
}

/* Linear light to sRGB. */
static double encode(double light) {
  if (light <= 0.0031308) return light <= 0 ? 0 : 12.92 * light;
  return light >= 1 ? 1 : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

/* L*a*b* under D65, as IEC 61966-2-1 and CIE 15 define the way to sRGB. */
static dv_colour from_lab(double lightness, double a, double b) {
  double y = (lightness + 16) / 116;
  double X = 0.95047 * cube_or_line(y + a / 500);
  double Y = cube_or_line(y);
  double Z = 1.08883 * cube_or_line(y - b / 200);
  return (dv_colour){.red = encode(3.2404542 * X - 1.5371385 * Y - 0.4985314 * Z),
                     .green = encode(-0.9692660 * X + 1.8760108 * Y + 0.0415560 * Z),
                     .blue = encode(0.0556434 * X - 0.2040259 * Y + 1.0572252 * Z)};
}

static double bezier(double t, double p0, double p1, double p2, double p3) {
  double s = 1 - t;
  return s * s * s * p0 + 3 * s * s * t * p1 + 3 * s * t * t * p2 + t * t * t * p3;
}

dv_colour dv_colour_sequential(double t) {
  if (!isfinite(t)) return dv_colour_missing;
  t = fmin(fmax(t, 0), 1);
  /* It ends below white, so that the last points still show on paper. */
  return from_lab(16 + 73 * t, bezier(t, 30, 5, -75, -12), bezier(t, -38, -45, 5, 80));
}

dv_colour dv_colour_cyclic(double t) {
  if (!isfinite(t)) return dv_colour_missing;
  /* A circle, moved off the grey axis because sRGB has little room in cyan, and tilted in lightness: lightest
   * in the middle (t = 1/2), darkest where the ends meet. */
  const double crest = 95 * M_PI / 180;
  double turn = 2 * M_PI * (t - 0.5);
  return from_lab(62 + 14 * cos(turn), 9 + 42 * cos(crest + turn), 9 + 42 * sin(crest + turn));
}

void dv_colour_set(cairo_t *cr, dv_colour colour) {
  cairo_set_source_rgb(cr, colour.red, colour.green, colour.blue);
}
