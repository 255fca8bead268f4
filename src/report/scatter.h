/* Scatter plots: points coloured by a third value, and their colour bar. */
#ifndef DV_SCATTER_H
#define DV_SCATTER_H

#include "report/axes.h"
#include "report/colour.h"

/* Room that a colour bar needs to the right of its axes. */
#define DV_SCATTER_BAR 104

typedef struct dv_hue {
  dv_colour_map *map; /* NULL: one colour for all points */
  dv_scale scale;     /* its range is mapped to the whole colour map */
  bool angle;         /* in radians: the map and its bar run from -pi to pi */
  const char *label;
} dv_hue;

/* The colouring for `values` by magnitude, and for angles. */
dv_hue dv_hue_values(const float *values, size_t count, const char *label);
dv_hue dv_hue_angle(const char *label);

/* Draws points across[i], up[i] in the colour of values[i] (NULL: all in the first). Points that are not
 * finite are left out, as are those outside the box; those whose colour is not finite are grey. Of more than
 * some thousand points a uniform subset is drawn, a smaller one in SVG files, which must stay small. */
void dv_scatter_draw(cairo_t *cr, const dv_axes *axes, const double *across, const double *up,
                     const float *values, size_t count, const dv_hue *hue);

/* Draws the colour bar to the right of the axes. */
void dv_scatter_draw_bar(cairo_t *cr, const dv_axes *axes, const dv_hue *hue);

/* Draws it horizontally, with its upper left corner at x, y. */
#define DV_SCATTER_LYING 60 /* height with labels */
void dv_scatter_draw_lying_bar(cairo_t *cr, double x, double y, double length, const dv_hue *hue);

#endif
