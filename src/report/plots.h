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
  enum { DV_OF_ANGLE, DV_OF_STATE, DV_OF_X, DV_OF_U, DV_OF_STEP } kind;
  size_t at, cosine; /* of these: which one; of an angle its sine and cosine */
} dv_column;

/* Columns: angles made of a sine and a cosine, the columns of the state; signals and inputs, but pixels; the
 * number of the step. */
typedef struct dv_points {
  size_t count, n_z, n_columns;
  size_t n_truth; /* of the columns, the first ones: what comes from the state */
  float *z;       /* [count][n_z] */
  float *values;  /* [n_columns][count] of the columns */
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

/* Ordinary least-squares regression of one true value on z. All is 0 before it is made. */
typedef struct dv_reading {
  const char *name; /* of the true value */
  bool fitted;      /* false if there are too few points; then `direction` is 0 */
  double r2;
  double *direction; /* [n_z + 1] coefficients, the intercept last */
  double *truth;     /* [points] */
  double *predicted; /* [points] */
} dv_reading;

/* Regresses truth[i * stride] on z [points][n_z], all finite. Freed with dv_readings_clear, also after a
 * failure. */
dvbf_status dv_reading_make(dv_reading *out, const char *name, const float *z, size_t points, size_t n_z,
                            const float *truth, size_t stride, dvbf_error *error);
void dv_readings_clear(dv_reading *readings, size_t count);

/* The readings of a pendulum. Those of what is NULL are not made. */
enum { DV_SINE, DV_COSINE, DV_VELOCITY, DV_READINGS };
dvbf_status dv_pendulum_read(dv_reading out[DV_READINGS], const float *z, size_t points, size_t n_z,
                             const float *angle, const float *velocity, dvbf_error *error);

/* Two orthonormal directions of a latent space of n >= 2 dimensions, axes [2][n]: the first has the direction
 * of the first reading, the second the part of the other that is orthogonal to it. A coordinate replaces a
 * reading that is not made, has no direction, or has the direction of the other. */
void dv_view_plane(double *axes, size_t n, const dv_reading *first, const dv_reading *second);

/* ---- Views ---- */

/* A view of a latent space: samples projected on the plane of two regressions, coloured by a true value. */

typedef struct dv_view {
  size_t points;
  double *across, *up; /* [points] */
  char across_label[80], up_label[80];
  const float *values; /* [points] of the caller, NULL: one colour */
  dv_hue hue;
} dv_view;

/* Projects z [points][n_z], which need not be the points of the readings, so that `up` is exactly the
 * direction of its reading. A space of one dimension is set against the truth of `up` instead, which then is
 * of these points, or against the number of the sample. The colouring is left to the caller. Freed with
 * dv_view_clear, also after a failure. */
dvbf_status dv_view_make(dv_view *out, const float *z, size_t points, size_t n_z, const dv_reading *across,
                         const dv_reading *up, dvbf_error *error);
void dv_view_clear(dv_view *view);

/* Space to the left of the box of a view, for labels. */
#define DV_VIEW_LEFT 74

void dv_view_draw(cairo_t *cr, const dv_view *view, double x, double y, double width, double height);
