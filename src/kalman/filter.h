/* The Kalman filter of a linear system, exact from the first step on and with any values missing. It lives in
 * memory of the caller and allocates nothing.
 *
 *   e = x - H m - D u - c           F = H P H' + R                 over the values that are seen
 *   filtered:   m + P H' F^-1 e     P - P H' F^-1 H P
 *   next:       A m + B u + b + G e     A P A' + Q - G F G'        G = (A P H' + S) F^-1
 */
#ifndef DV_KALMAN_FILTER_H
#define DV_KALMAN_FILTER_H

#include "kalman/system.h"

typedef struct dv_kalman {
  const dv_system *system;
  double *mean, *cov;              /* of z_t given x before t */
  double *filtered, *filtered_cov; /* of z_t given x_t too, after dv_kalman_observe */
  int seen;                        /* values of x_t that are there */
  int *which;                      /* [seen] their columns */
  double *innovation;              /* [seen] U'^-1 e, where F = U'U */
  double *u_factor;                /* [seen][seen] U */
  double log_det;                  /* ln det U */
  double *state_gain;              /* [n_z][seen] P H' U^-1 */
  double *move_gain;               /* [n_z][seen] G U' = (A P H' + S) U^-1 */
  double log_p;                    /* ln p(x_t | x before t) */
  bool steady;                     /* the covariances no longer change while all of x is seen */
  double *scratch;
} dv_kalman;

/* Doubles that a filter needs. */
size_t dv_kalman_size(int n_z, int n_x);
/* At the first step, in memory [dv_kalman_size]. The system must outlive it. */
dv_kalman dv_kalman_begin(const dv_system *system, double *memory);
/* Takes in x [n_x], NaN where missing, NULL: all of it; u [n_u] acts on x by D. False where a covariance is
 * not positive definite, which no sensible system has. */
bool dv_kalman_observe(dv_kalman *k, const double *x, const double *u);
/* To the next step, under u [n_u]. */
void dv_kalman_move(dv_kalman *k, const double *u);

/* Variance of each x_t given x before t, the diagonal of H P H' + R; without R where `noise` is false. P is
 * either covariance of z_t. */
void dv_kalman_x_variance(const dv_system *s, const double *cov, bool noise, double *variance /* [n_x] */);

#endif
