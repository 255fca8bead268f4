/* Linear Gaussian systems with correlated noises: Kalman filter, shared gains, samples, and the
 * fixed-interval smoother. Memory is the caller's. */
#pragma once

#include "math/random.h"

#include <dvbf/core.h>

/* ---- System ---- */

/* A linear system with normal noise:
 *
 *   z_1 ~ N(m, P)    z_{t+1} = A z_t + B u_t + b + w_t    x_t = H z_t + D u_t + c + e_t
 *   (w_t, e_t) ~ N(0, [Q S; S' R])
 *
 * The innovation form z' = A z + B u + b + K e is the case Q = K R K', S = K R. */

typedef struct dv_state_space {
  int n_z, n_u, n_x;
  double *a;                 /* [n_z][n_z] */
  double *b;                 /* [n_z][n_u] */
  double *h;                 /* [n_x][n_z] */
  double *d;                 /* [n_x][n_u] */
  double *shift_z, *shift_x; /* b [n_z] and c [n_x] */
  double *q;                 /* [n_z][n_z] */
  double *r;                 /* [n_x][n_x] */
  double *s;                 /* [n_z][n_x] */
  double *mean;              /* m [n_z] */
  double *cov;               /* P [n_z][n_z] */
} dv_state_space;

/* Numbers of a system, the first of which is a[0]. */
size_t dv_system_size(int n_z, int n_u, int n_x);
/* A system whose numbers are in values [dv_system_size]. */
dv_state_space dv_system_at(double *values, int n_z, int n_u, int n_x);
/* A system of zeros in new memory; free it with dv_system_clear. */
dvbf_status dv_system_new(dv_state_space *out, int n_z, int n_u, int n_x, dvbf_error *error);
dvbf_status dv_system_copy(dv_state_space *out, const dv_state_space *from, dvbf_error *error);
void dv_system_clear(dv_state_space *system);

/* next = A z + B u + b, and x = H z + D u + c; u may be NULL if n_u = 0. */
void dv_system_move(const dv_state_space *s, const double *z, const double *u, double *next);
void dv_system_emit(const dv_state_space *s, const double *z, const double *u, double *x);

/* Sets Q, S from the gain K [n_z][n_x] of the innovation form and R. */
void dv_system_set_gain(dv_state_space *s, const double *k);

/* ---- Filter ---- */

/* The Kalman filter of a linear system, exact from the first step on and with any values missing. It lives in
 * memory of the caller and allocates nothing.
 *
 *   e = x - H m - D u - c           F = H P H' + R                 over the values that are seen
 *   filtered:   m + P H' F^-1 e     P - P H' F^-1 H P
 *   next:       A m + B u + b + G e     A P A' + Q - G F G'        G = (A P H' + S) F^-1
 */

typedef struct dv_kalman {
  const dv_state_space *system;
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
dv_kalman dv_kalman_begin(const dv_state_space *system, double *memory);
/* Takes in x [n_x], NaN if missing, NULL: all of it; u [n_u] acts on x by D. False if a covariance is
 * not positive definite, which no sensible system has. */
bool dv_kalman_observe(dv_kalman *k, const double *x, const double *u);
/* To the next step, under u [n_u]. */
void dv_kalman_move(dv_kalman *k, const double *u);

/* The diagonal of H P H' + R, or without R if `noise` is false, with either covariance P of z_t. */
void dv_kalman_x_variance(const dv_state_space *s, const double *cov, bool noise,
                          double *variance /* [n_x] */);

/* ---- Gains ---- */

/* The gains of a filter that sees all of x. They depend on the system alone, so that many sequences share
 * them and each step costs products of matrix and vector alone. */

typedef struct dv_kalman_gains {
  const dv_state_space *system;
  size_t steps;  /* that are kept */
  bool rest;     /* later steps have the gain of the last one */
  double *gains; /* [steps][n_z][n_x] G of the filter */
} dv_kalman_gains;

/* For sequences of up to `steps` steps, or less if these would need much memory or a covariance is not
 * positive definite. The system must outlive them. Clear them with dv_kalman_gains_clear. */
dvbf_status dv_kalman_gains_new(dv_kalman_gains *out, const dv_state_space *system, size_t steps,
                                dvbf_error *error);
void dv_kalman_gains_clear(dv_kalman_gains *gains);
/* Whether there are gains for this many steps. */
bool dv_kalman_gains_reach(const dv_kalman_gains *gains, size_t steps);
/* mean [n_z] of z_t given x before t becomes that of the next step; apart [n_x] is x_t less its mean. */
void dv_kalman_gains_move(const dv_kalman_gains *gains, size_t t, double *mean, const double *apart,
                          const double *u, double *scratch /* [n_z] */);

/* ---- Samples ---- */

/* out [n] += factor [n][n] times normal numbers. */
void dv_add_noise(double *out, const double *factor, int n, dv_random *random, double *scratch /* [n] */);

/* Factors of the noise: e = Lx a, w = M a + Lz b, with normal a [n_x] and b [n_z]. */
typedef struct dv_noise_factors {
  double *x;      /* [n_x][n_x] Lx */
  double *shared; /* [n_z][n_x] M = S Lx'^-1 */
  double *z;      /* [n_z][n_z] Lz Lz' = Q - M M' */
} dv_noise_factors;
void dv_noise_factors_of(const dv_state_space *s, dv_noise_factors *out);

/* z of the next step from z in place, and x [n_x] of this step, without e if `noise` is false. */
void dv_draw_step(const dv_state_space *s, const dv_noise_factors *f, double *z, const double *u, double *x,
                  bool noise, dv_random *random, double *scratch /* [2 n_z + 2 n_x] */);

/* ---- Smoother ---- */

/* The fixed-interval smoother of a linear system, in the form of Bryson and Frazier (de Jong 1989), which
 * inverts no covariance of z and so works for the innovation form too, where z is known exactly:
 *
 *   r_{t-1} = H' F^-1 e + L' r_t    N_{t-1} = H' F^-1 H + L' N_t L    L = A - G H
 *   E[z_t | x] = m_t + P_t r_{t-1}    Var = P_t - P_t N_{t-1} P_t
 *   Cov(z_{t+1}, z_t | x) = (I - P_{t+1} N_t) L P_t */

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
dvbf_status dv_smoothed_init(dv_smoothed *out, const dv_state_space *system, int steps, dvbf_error *error);
void dv_smoothed_clear(dv_smoothed *smoothed);
/* z of a sequence x [steps][n_x], NaN if missing, u [steps][n_u], by a system of the same sizes. False as
 * in dv_kalman_observe. */
bool dv_smooth(dv_smoothed *out, const dv_state_space *system, const double *x, const double *u, int steps);
