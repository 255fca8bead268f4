/* Principal components of x: the few directions that hold nearly all of its variance. */
#pragma once

#include "data/dataset.h"
#include "model/model.h"

typedef struct dv_components {
  int n_x, count;
  dvbf_real *axes;     /* [count][n_x], orthonormal rows */
  dvbf_real *rotation; /* [count][count] from the principal axes to these */
  double *variance;    /* [count] along each principal axis, the largest first */
  double left_out;     /* mean squared length of the part of a scaled frame that is outside of them */
} dv_components;

/* Finds as many components of the scaled frames, about 0, as leave out at most `share` of the variance of a
 * frame: a multiple of 16, which makes products fast, at most 512 and n_x / 2. `limit` is a lower maximum,
 * taken whatever it leaves out; 0: none. The axes of `also` (fewer; may be NULL) are combinations of them and
 * replace those with least variance.
 *
 * Coordinates are c = axes x. The axes span the principal plane but are rotated at random within it: steps of
 * Adam have the same length in every coordinate, so along principal axes steps in directions with hardly any
 * variance would be as long as those that matter. */
dvbf_status dv_components_find(dv_components *out, const dvbf_sequences *s, const dvbf_model *model,
                               double share, int limit, const dv_components *also, dvbf_error *error);
void dv_components_free(dv_components *components);

/* train and valid of *out = the same sequences in memory, with the coordinates of the scaled frames instead
 * of x. Missing frames stay missing. */
dvbf_status dv_components_project(dvbf_data *out, const dv_components *components, const dvbf_data *data,
                                  const dvbf_model *model, dvbf_error *error);
