/* Predictor-based subspace identification (Chiuso 2007; van der Veen et al. 2013). Everything is computed
 * from the second moments of a frame and of the p frames before it, so that orders and ridges share one pass
 * over the data:
 *
 *   y_t = (1, x_t, u_t, x_{t-1}, u_{t-1}, ..., x_{t-p}, u_{t-p})
 *
 * (a) x_t is regressed on the past. Its coefficients are Theta_j = H (A - K H)^(j-1) [K, B - K D] of lag j.
 * (b) The rows (Theta_{i+1}, Theta_{i+2}, ...), i = 0 .. f-1, applied to the past give Gamma z_t. Its leading
 * principal components are z_t. (c) Least squares of x_t on (z_t, u_t) give H and D and the residual e_t, and
 * of z_{t+1} on (z_t, u_t, e_t) A, B and K. */
#ifndef DV_SUBSPACE_H
#define DV_SUBSPACE_H

#include "identify/recordings.h"
#include "kalman/system.h"

typedef struct dv_moments_past {
  int n_x, n_u, past;
  int size;      /* of y */
  double rows;   /* frames that count */
  double *total; /* [size][size] sum of y y', upper half */
  double *some;  /* [DV_AT_ONCE][size] some y that wait to be added */
} dv_moments_past;

enum { DV_AT_ONCE = 8 };

dvbf_status dv_moments_past_new(dv_moments_past *out, const dv_recordings *r, int past, dvbf_error *error);
void dv_moments_past_clear(dv_moments_past *moments);
/* Adds the frames of a piece whose past lies in it too and of which no value is missing. */
void dv_moments_past_add(dv_moments_past *moments, const dv_recordings *r, const dv_piece *piece);
/* out = one + sign * other. */
void dv_moments_past_combine(dv_moments_past *out, const dv_moments_past *one, double sign,
                             const dv_moments_past *other);

/* The states of all orders up to `most`. */
typedef struct dv_subspace {
  int n_x, n_u, most;
  bool feedthrough;
  double rows;
  int size;      /* of s = (1, x_t, u_t, z_t, z_{t+1}) */
  double *total; /* [size][size] mean of s s' */
} dv_subspace;

/* The highest order that a window allows. */
int dv_subspace_most(int n_x, int past);

/* With ridge * rows added to the diagonal of the regression (a). Orders that the data cannot tell apart from
 * noise are left out of `most`. */
dvbf_status dv_subspace_new(dv_subspace *out, const dv_moments_past *moments, bool feedthrough, double ridge,
                            int most, dvbf_error *error);
void dv_subspace_clear(dv_subspace *subspace);
/* The system of that order, in innovation form, with no eigenvalue outside the unit circle. False where the
 * moments are not good enough for it. */
bool dv_subspace_system(const dv_subspace *subspace, dv_system *out /* of the order n_z */, double *scratch);
size_t dv_subspace_scratch(const dv_subspace *subspace);

#endif
