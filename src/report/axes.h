/* A box with labelled axes, into which curves and points are drawn. */
#ifndef DV_AXES_H
#define DV_AXES_H

#include "report/scale.h"

#include <cairo.h>

/* Room that the labels of an axis need beside the box. */
#define DV_AXES_LEFT 84
#define DV_AXES_BELOW 58

typedef struct dv_axes {
  double x, y, width, height; /* the box; y is its upper edge */
  dv_scale across, up;
  const char *across_label, *up_label; /* NULL: none */
  double up_room;                      /* from the box to the middle of the up label; 0: 72 */
  size_t ticks;                        /* most labels along each axis; 0: as many as are easily read */
} dv_axes;

/* Draw in this order: back (grid, ticks, labels), content, frame. */
void dv_axes_draw_back(cairo_t *cr, const dv_axes *axes);
void dv_axes_draw_frame(cairo_t *cr, const dv_axes *axes);

/* Ticks at round numbers: as many as fit side by side along `length`, at most `most`. */
dv_ticks dv_axes_ticks(cairo_t *cr, const dv_scale *scale, double length, size_t most);

/* Position of a pair of values on the page; false if the scales cannot show it. */
bool dv_axes_place(const dv_axes *axes, double across, double up, double *x, double *y);

#endif
