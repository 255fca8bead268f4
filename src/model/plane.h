/* A recognition network that reads only a plane of x, as one does that was trained on components: its weights
 * from x are W = in * out with few columns of `in`, and two small products do the work of a large one. */
#ifndef DV_PLANE_H
#define DV_PLANE_H

#include "model/model.h"

typedef struct dv_plane {
  int rank;       /* 0: there is none that would save work */
  dvbf_real *in;  /* [n_x][rank] */
  dvbf_real *out; /* [rank][hidden] */
} dv_plane;

/* Exact to a millionth of the length of W. */
dvbf_status dv_plane_find(dv_plane *plane, const dvbf_model *model, dvbf_error *error);
void dv_plane_free(dv_plane *plane);

#endif
