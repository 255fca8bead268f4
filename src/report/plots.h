/* Points of a latent space for figures and pages: principal axes, samples with true values, regressions, and
 * views. */
#pragma once

#include "evaluate/evaluate.h"
#include "report/drawing.h"

#include <dvbf/dvbf.h>

/* ---- Principal axes ---- */

enum { DV_CLOUD_AXES = 3 };

typedef struct dv_cloud {
  size_t points, axes;         /* axes = min(n, 3) */
  double *at[DV_CLOUD_AXES];   /* [points] coordinate of each point, NaN when the point is not finite */
  double share[DV_CLOUD_AXES]; /* of the whole variance */
  bool rotated;                /* principal axes, rather than the coordinates themselves */
} dv_cloud;

/* Principal axes of z [points][n] when n > 2, ordered by variance; for fewer the coordinates themselves. The
 * arrays are freed with dv_cloud_clear, also after a failure. */
dvbf_status dv_cloud_make(dv_cloud *out, const float *z, size_t points, size_t n, dvbf_error *error);
void dv_cloud_clear(dv_cloud *cloud);

/* ---- Latent samples ---- */

typedef struct dv_column {
  char name[64];
  float *values; /* [count] */
  bool cyclic;   /* an angle in radians */
  const char *group;
} dv_column;

/* Columns: angles made of a sine and a cosine, the columns of the state; signals and inputs, but pixels; the
 * number of the step. */
typedef struct dv_points {
  size_t count, n_z, n_columns;
  size_t n_truth; /* of the columns, the first ones: what comes from the state */
  float *z;       /* [count][n_z] */
  dv_column *columns;
} dv_points;

/* One sample of the path through each sequence, without padding. Free with dv_points_free, also after a
 * failure. */
dvbf_status dv_points_sample(dv_points *out, const dvbf_model *model, const dvbf_data *data,
                             const dvbf_sequences *sequences, const dv_path_options *options,
                             dvbf_error *error);
void dv_points_free(dv_points *points);

/* The first column of the truth whose name begins so; NULL when there is none. */
const dv_column *dv_points_column(const dv_points *points, const char *prefix);
/* The column of the truth of that name; NULL when there is none. */
const dv_column *dv_points_named(const dv_points *points, const char *name);

/* ---- Regressions ---- */

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

/* ---- Views ---- */

/* A view of a latent space: samples projected on the plane of two regressions, coloured by a true value. */

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

/* Space to the left of the box of a view, for labels. */
#define DV_VIEW_LEFT 74

void dv_view_draw(cairo_t *cr, const dv_view *view, double x, double y, double width, double height);
