/* The controller on the true state and the true system: what a model could reach at most. It plans as
 * dvbf_controller does, in the space of what a system tells about its state, each column over its standard
 * deviation where sequences begin. */
#ifndef DV_TRUTH_H
#define DV_TRUTH_H

#include "loop/episode.h"

typedef struct dv_truth dv_truth;

/* The plant must outlive it. */
dvbf_status dv_truth_new(dv_truth **out, const dv_plant *plant, const dvbf_settings *control,
                         dvbf_error *error);
void dv_truth_free(dv_truth *truth);
dv_pilot dv_truth_pilot(dv_truth *truth);
/* The picture of z [n_s]. */
void dv_truth_draw(const dv_truth *truth, const float *z, dv_raster *to);

#endif
