/* The Kalman filter of a linear system as a part, for languages that have no loops over what is seen. */
#ifndef DV_KALMAN_PART_H
#define DV_KALMAN_PART_H

#include "export/part.h"
#include "kalman/system.h"

/* Numbers of the state, which is all 0 before the first step: mean and covariance of the next z, how many
 * values of x were seen last, and whether there was a step. Without feedthrough the mean lacks B u. */
static inline size_t dv_kalman_part_state(int n_z) {
  return (size_t)n_z + (size_t)n_z * (size_t)n_z + 2;
}

/* Slots: Z is the state, U the control since the step before or, with feedthrough, that of this step, X and
 * SEEN the observation. OUT is the next
 * state, and behind it mean and variance of z given x, and mean and variance of x before it was seen, all as
 * the model sees them. range [2][n_z] are centres and limits of the states; NULL: there are none. */
dvbf_status dv_kalman_part(dv_code_part *out, const dv_system *system, bool feedthrough,
                           const dvbf_real *range, dvbf_error *error);

#endif
