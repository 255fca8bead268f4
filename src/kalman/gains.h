/* The gains of a filter that sees all of x. They depend on the system alone, so that many sequences share
 * them and each step costs products of matrix and vector alone. */
#ifndef DV_GAINS_H
#define DV_GAINS_H

#include "kalman/system.h"

typedef struct dv_gains {
  const dv_system *system;
  size_t steps;  /* that are kept */
  bool rest;     /* later steps have the gain of the last one */
  double *gains; /* [steps][n_z][n_x] G of kalman/filter.h */
} dv_gains;

/* For sequences of up to `steps` steps, or less where these would need much memory or a covariance is not
 * positive definite. The system must outlive them. Clear them with dv_gains_clear. */
dvbf_status dv_gains_new(dv_gains *out, const dv_system *system, size_t steps, dvbf_error *error);
void dv_gains_clear(dv_gains *gains);
/* Whether there are gains for so many steps. */
bool dv_gains_reach(const dv_gains *gains, size_t steps);
/* mean [n_z] of z_t given x before t becomes that of the next step; apart [n_x] is x_t less what was
 * expected. scratch is [n_z]. */
void dv_gains_move(const dv_gains *gains, size_t t, double *mean, const double *apart, const double *u,
                   double *scratch);

#endif
