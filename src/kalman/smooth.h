/* The fixed-interval smoother of a linear system, in the form of Bryson and Frazier (de Jong 1989), which
 * inverts no covariance of z and so works for the innovation form too, where z is known exactly:
 *
 *   r_{t-1} = H' F^-1 e + L' r_t    N_{t-1} = H' F^-1 H + L' N_t L    L = A - G H
 *   E[z_t | x] = m_t + P_t r_{t-1}    Var = P_t - P_t N_{t-1} P_t
 *   Cov(z_{t+1}, z_t | x) = (I - P_{t+1} N_t) L P_t */
#ifndef DV_KALMAN_SMOOTH_H
#define DV_KALMAN_SMOOTH_H

#include "kalman/filter.h"

typedef struct dv_smoothed {
  int steps, n_z;
  double log_p; /* ln p(x) */
  double *mean; /* [steps][n_z] */
  double *cov;  /* [steps][n_z][n_z] */
  double *pair; /* [steps - 1][n_z][n_z] Cov(z_{t+1}, z_t | x) */
  double *memory;
  dv_kalman filter;
} dv_smoothed;

/* Room for sequences of up to `steps` steps; clear it also after a failure. */
dvbf_status dv_smoothed_init(dv_smoothed *out, const dv_system *system, int steps, dvbf_error *error);
void dv_smoothed_clear(dv_smoothed *smoothed);
/* z of a sequence x [steps][n_x], NaN where missing, u [steps][n_u], by a system of the same sizes. False as
 * in dv_kalman_observe. */
bool dv_smooth(dv_smoothed *out, const dv_system *system, const double *x, const double *u, int steps);

#endif
