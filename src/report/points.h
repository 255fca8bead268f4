/* Latent samples, each with its ground truth, for figures and pages. */
#ifndef DV_POINTS_H
#define DV_POINTS_H

#include "evaluate/paths.h"

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

#endif
