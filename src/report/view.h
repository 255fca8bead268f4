/* A view of a latent space: samples projected on the plane of two regressions, coloured by a true value. */
#ifndef DV_VIEW_H
#define DV_VIEW_H

#include "report/reading.h"
#include "report/scatter.h"

typedef struct dv_view {
  size_t points;
  double *across, *up; /* [points] */
  char across_label[80], up_label[80];
  const float *values; /* [points] of the caller, NULL: one colour */
  dv_hue hue;
} dv_view;

/* A regression and the name of its quantity; reading NULL: none. */
typedef struct dv_named_reading {
  const dv_reading *reading;
  const char *name;
} dv_named_reading;

/* Projects z [points][n_z] so that `up` is exactly the direction of its reading. A space of one dimension is
 * set against the truth of `up` instead, or against the number of the sample. The colouring is left to the
 * caller. Freed with dv_view_clear, also after a failure. */
dvbf_status dv_view_make(dv_view *out, const float *z, size_t points, size_t n_z, dv_named_reading across,
                         dv_named_reading up, dvbf_error *error);
void dv_view_clear(dv_view *view);

/* Room to the left of the box of a view, for labels. */
#define DV_VIEW_LEFT 74

void dv_view_draw(cairo_t *cr, const dv_view *view, double x, double y, double width, double height);

#endif
