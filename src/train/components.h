/* Principal components of x: the few directions that hold nearly all that varies in it. */
#ifndef DV_COMPONENTS_H
#define DV_COMPONENTS_H

#include "data/dataset.h"
#include "model/model.h"

typedef struct dv_components {
  int n_x, count;
  dvbf_real *axes; /* [count][n_x], orthonormal rows */
  double left_out; /* squared length of a scaled frame outside of them, on average */
} dv_components;

/* Coordinates are c = axes x. A step of Adam goes as far in each coordinate as in each pixel, so that it
 * matters which they are. The axes are those of the plane turned at random, each with a bit of all, as pixels
 * have: along the principal ones, those that hold next to nothing would be shaken as far as those that
 * matter.
 *
 * As many components of the scaled frames, about 0, as leave out no more than `share` of the variance of a
 * frame: a multiple of 16, which products like, and no more than half of n_x, or they would save nothing, nor
 * than 512. */
dvbf_status dv_components_find(dv_components *out, const dvbf_sequences *s, const dvbf_model *model,
                               double share, dvbf_error *error);
void dv_components_free(dv_components *components);

/* *out = the sequences with the coordinates of their scaled frames in place of x, in memory. Frames that are
 * missing stay so. */
dvbf_status dv_components_project(dvbf_sequences *out, const dv_components *components,
                                  const dvbf_sequences *s, const dvbf_model *model, dvbf_error *error);

#endif
