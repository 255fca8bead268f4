/* Curves inside axes. */
#ifndef DV_CURVE_H
#define DV_CURVE_H

#include "report/axes.h"
#include "report/legend.h"

/* Draws values[i] at at[i], or at i + 1 when `at` is NULL. A value that cannot be shown leaves a gap. */
void dv_curve_draw(cairo_t *cr, const dv_axes *axes, const double *at, const double *values, size_t count,
                   dv_stroke stroke);

/* Straight lines across the box, if they are inside it. */
void dv_curve_level(cairo_t *cr, const dv_axes *axes, double value, dv_stroke stroke);
void dv_curve_bar(cairo_t *cr, const dv_axes *axes, double value, dv_stroke stroke);

#endif
