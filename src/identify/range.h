/* How far the states of a linear model go in the recordings. */
#ifndef DV_IDENTIFY_RANGE_H
#define DV_IDENTIFY_RANGE_H

#include "identify/recordings.h"
#include "model/linear.h"

/* Filters the recordings and sets the limits of the model to `state-limit` times the range of z; does nothing
 * where that is 0. `system` is that of the model, in the units of the recordings. */
dvbf_status dv_linear_measure(dvbf_model *m, const dv_system *system, const dv_recordings *recordings,
                              dvbf_error *error);

#endif
