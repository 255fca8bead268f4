/* Regressions of true values on the latent state, and planes spanned by their directions. */
#ifndef DV_READING_H
#define DV_READING_H

#include <dvbf/dvbf.h>

/* Ordinary least-squares regression of one true value on z. */
typedef struct dv_reading {
  bool fitted; /* false if there are too few points; then all below is 0 */
  double r2;
  double *direction; /* [n_z + 1] coefficients, the intercept last */
  double *truth;     /* [points] */
  double *predicted; /* [points] */
} dv_reading;

/* Regresses truth[i * stride] on z [points][n_z], all finite. Freed with dv_reading_clear, also after a
 * failure. */
dvbf_status dv_reading_make(dv_reading *out, const float *z, size_t points, size_t n_z, const float *truth,
                            size_t stride, dvbf_error *error);
void dv_reading_clear(dv_reading *reading);

/* Two orthonormal directions of a latent space of n >= 2 dimensions. */
typedef struct dv_view_plane {
  double *first, *second; /* [n] */
} dv_view_plane;

/* The plane of two regressions: axis `first` has the direction of the first, axis `second` the part of the
 * second that is orthogonal to it. A coordinate replaces a regression that is NULL, has no direction, or has
 * the direction of the other. Free with dv_view_plane_clear, also after a failure. */
dvbf_status dv_view_plane_make(dv_view_plane *out, size_t n, const dv_reading *first,
                               const dv_reading *second, dvbf_error *error);
void dv_view_plane_clear(dv_view_plane *plane);

/* out[i] = axis . z[i] for z [points][n]. */
void dv_view_plane_project(double *out, const double *axis, const float *z, size_t points, size_t n);

#endif
