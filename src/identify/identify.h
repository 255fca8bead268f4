/* Identification of linear systems without gradients: recordings in scaled units, subspace identification,
 * EM, scores, the choice of order, prediction-error refinement, and models of wide data on principal
 * components. */
#pragma once

#include "identify/pca.h"
#include "math/kalman.h"
#include "model/linear_gaussian.h"
#include "model/model.h"

#include <stddef.h>

/* ---- Recordings ---- */

/* Sequences in double precision, each column in units of its own deviation. */

/* A run of frames of one sequence. */
typedef struct dv_piece {
  size_t first, steps; /* in the arrays */
  size_t before;       /* frames of the same sequence that stand before it */
  int fold;
} dv_piece;

typedef struct dv_recordings {
  int n_x, n_u;
  size_t frames;
  double *x;                    /* [frames][n_x], NaN if missing */
  double *filled;               /* the same with short gaps filled; NULL if most frames have none */
  double *u;                    /* [frames][n_u] */
  double *x_mean, *x_deviation; /* [n_x] that were taken out; a column that is constant has deviation 1 */
  double *u_mean, *u_deviation; /* [n_u] */
  bool *varies;                 /* [n_x] */
  size_t count;
  dv_piece *whole; /* [count] the sequences */
  size_t blocks;
  dv_piece *block; /* [blocks] the same cut for cross-validation, with the number of its fold */
} dv_recordings;

enum { DV_FOLDS = 4 };

/* Least variance of noise, in units of recordings: constant or duplicate columns would have none, and no
 * likelihood. */
#define DV_NOISE_FLOOR 1e-8

/* Of the training and the validation sequences together: cross-validation needs no part of its own. */
dvbf_status dv_recordings_new(dv_recordings *out, const dvbf_data *data, dvbf_error *error);
void dv_recordings_clear(dv_recordings *recordings);
/* x of a frame; NaN marks values that are missing and not filled. */
static inline const double *dv_frame(const dv_recordings *r, size_t frame) {
  return (r->filled ? r->filled : r->x) + frame * (size_t)r->n_x;
}
/* Frames of the pieces that are complete together with `past` frames before them in their piece. */
double dv_complete_rows(const dv_recordings *recordings, const dv_piece *pieces, size_t count, size_t past);
/* Fills the short gaps anew by the smoother of this system instead of straight lines. */
dvbf_status dv_recordings_refill(dv_recordings *recordings, const dv_state_space *system, dvbf_error *error);

/* ---- Subspace ---- */

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
/* The system of that order, in innovation form, with no eigenvalue outside the unit circle. False if the
 * moments are not good enough for it. */
bool dv_subspace_system(const dv_subspace *subspace, dv_state_space *out /* of the order n_z */,
                        double *scratch);
size_t dv_subspace_scratch(const dv_subspace *subspace);

/* ---- Stabilisation ---- */

/* Moves the eigenvalues of a [n][n] outside the unit circle onto it and leaves the others: growing modes stop
 * growing, slow or weakly damped ones keep their time. scratch is [dv_stabilise_scratch(n)]. */
void dv_stabilise(double *a, int n, double *scratch);
size_t dv_stabilise_scratch(int n);

/* ---- Expectation maximisation ---- */

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

typedef struct dv_em_progress {
  int iteration;
  double log_p;     /* ln p(x) under the system, in the units of the recordings */
  double objective; /* log_p and the priors */
  double fall;      /* what the objective lost in an iteration that was taken back, which ended it; 0: none */
} dv_em_progress;
/* Called with the first system and after each iteration; false ends it. */
typedef bool dv_em_watch_fn(const dv_em_progress *progress, void *user);

typedef struct dv_em_options {
  int iterations;   /* at most */
  double tolerance; /* it ends if an iteration adds less than this */
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
dvbf_status dv_em_begin(dv_state_space *system, const dv_recordings *r, dvbf_error *error);
/* Improves the system. A must have no eigenvalue outside the unit circle, and never gets one. `last`
 * describes the result. Fails if x has no likelihood under the first system. */
dvbf_status dv_em(dv_state_space *system, const dv_recordings *r, const dv_em_options *options,
                  dv_em_progress *last, dvbf_error *error);

/* ---- Order selection ---- */

/* Root mean square errors relative to the mean's, averaged over the columns that vary: each column counts in
 * its own units. */
typedef struct dv_fit_errors {
  double one_step, free_run;
} dv_fit_errors;

typedef struct dv_linear_choice {
  int order, past;
  bool feedthrough;
  double ridge;
  dv_fit_errors errors; /* of cross-validation */
  double judgement;     /* of these */
} dv_linear_choice;

/* Chooses order, window and ridge by blocked cross-validation. order = 0: any; feedthrough = -1: either.
 * Filled gaps are filled anew. The system is in the units of the recordings; clear it, also after a failure.
 * The interrupt flag ends the search with DVBF_STOPPED. */
dvbf_status dv_identify_order(dv_state_space *out, dv_linear_choice *choice, dv_recordings *r, int order,
                              int feedthrough, const volatile int *interrupt, dvbf_error *error);

/* The recordings of the data and the best system for them. That of any order is found once, and kept with the
 * data. Clear all three, also after a failure. */
dvbf_status dv_identify_data(dv_state_space *out, dv_linear_choice *choice, dv_recordings *r,
                             const dvbf_data *data, int order, int feedthrough, const volatile int *interrupt,
                             dvbf_error *error);

/* ---- Prediction-error refinement ---- */

/* Subspace models forecast the next frame best, which says little about hundreds of steps under inputs alone.
 * So A, B, H, D and the shifts are refined by least squares over free runs from many origins, each from the
 * state that its first frames show, and then the gain by forecasts one step ahead. */

/* Replaces a system found by dv_identify_order. With order = 0 its order is chosen anew, by the free runs of
 * refined systems over unseen blocks. With too little data, or too many parameters for all orders, the system
 * stays as it is. */
dvbf_status dv_prediction_error_refine(dv_state_space *system, dv_linear_choice *choice,
                                       const dv_recordings *r, int order, const volatile int *interrupt,
                                       dvbf_error *error);

/* ---- Wide data ---- */

/* Systems of many columns are identified on principal components: the time grows with the third power of the
 * columns, and most of them are redundant. With x' the scaled columns and orthonormal rows P,
 *
 *   c = P x'     c_t = H z_t + D u_t + h + e_t, e ~ N(0, R)     is found, and
 *   x'_t = P'(H z_t + D u_t + h) + P' e_t + r_t,  r ~ N(0, s^2 (I - P'P))
 *
 * is the model of x', where s^2 is the variance left out in each further direction. */

/* All zeros: nothing is reduced. */
typedef struct dv_reduction {
  dv_components components;
  dvbf_data data; /* the coordinates c of the training and the validation data; valid may be empty */
} dv_reduction;

void dv_reduction_clear(dv_reduction *reduction);

/* A system of the coordinates becomes one of x'. */
dvbf_status dv_reduction_lift(dv_state_space *system, const dv_reduction *reduction, dvbf_error *error);

/* The difference of ln p of a frame of x' from that of its coordinates, on average. */
double dv_reduction_log_p(const dv_reduction *reduction);
