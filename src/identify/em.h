/* Expectation maximisation for a linear system whose two noises are independent (Ghahramani and Hinton 1996):
 *
 *   z_1 ~ N(m, P)    z_{t+1} = A z_t + B u_t + b + w_t    x_t = H z_t + D u_t + c + e_t
 *   w_t ~ N(0, Q)    e_t ~ N(0, R)                        full Q and R, S = 0
 *
 * The Kalman smoother gives the moments of z under the system as it is. Then A, B, b and Q follow from a
 * regression of z_{t+1} on (z_t, 1, u_t), and H, D, c and R from one of x_t on the same. Frames that are
 * missing have no part in the second; single missing values take the mean and the covariance that they have
 * given z_t and the rest of their frame. No iteration lowers
 *
 *   ln p(x) - floor / 2 (rows_z tr Q^-1 + rows_x tr R^-1) + starts E[ln N(z; m, P)], z ~ N(m_0, P_0)
 *
 * where rows count the terms of each regression, and m_0 and P_0 are the m and P that it begins with. The
 * first prior keeps Q and R at least `floor` (columns that are constant or the same as others would make R
 * singular). The second acts like `starts` more sequences: from one recording alone P would fall to 0. */
#ifndef DV_EM_H
#define DV_EM_H

#include "identify/recordings.h"
#include "kalman/system.h"

typedef struct dv_em_progress {
  int iteration;
  double log_p;     /* ln p(x) under the system, in the units of the recordings */
  double objective; /* log_p and the priors */
  double seen;      /* values of x */
  double fall;      /* what the objective lost in an iteration that was taken back, which ended it; 0: none */
} dv_em_progress;
/* Called with the first system and after each iteration; false ends it. */
typedef bool dv_em_watch_fn(const dv_em_progress *progress, void *user);

typedef struct dv_em_options {
  int iterations;   /* at most */
  double tolerance; /* it ends where an iteration adds less than this */
  double floor;
  double starts;
  bool feedthrough;      /* otherwise D stays 0 */
  bool start_only;       /* nothing but m and P changes; then noises may be correlated */
  dv_em_watch_fn *watch; /* may be NULL */
  void *user;
} dv_em_options;

/* Turns a system in innovation form, with states of about unit variance, into one whose two noises are
 * independent: R becomes a share of itself, Q is K R K' plus some noise of each state. Share and noise are
 * those, of a few, that make x most likely. */
dvbf_status dv_em_begin(dv_system *system, const dv_recordings *r, dvbf_error *error);
/* Improves the system. A must have no eigenvalue outside the unit circle, and never gets one. `last` tells of
 * the result. Fails where x has no likelihood under the first system. */
dvbf_status dv_em(dv_system *system, const dv_recordings *r, const dv_em_options *options,
                  dv_em_progress *last, dvbf_error *error);

#endif
