/* Measures of a model: bounds on the likelihood, latent paths, regressions, errors by number of steps ahead,
 * and a norm that certifies stability. */
#pragma once

#include "engine/threads.h"
#include "model/batches.h"
#include "model/model.h"
#include "settings_tables.h"

#include <dvbf/core.h>
#include <dvbf/dvbf.h>

/* ---- Closer bounds ---- */

/* Estimates of ln p(x) of each sequence, all too low on average and closer the more paths; given one v ~ q(v)
 * for each sequence, so that KL(q(v) || p(v)) / N is still to be taken off. */
typedef struct dv_likelihoods {
  double *importance; /* [count] from whole paths; NULL if they are not asked for */
  double *particle;   /* [count] from a particle filter; NULL for a model that cannot filter */
} dv_likelihoods;

/* `paths`: also from whole paths. Free with dv_likelihoods_free, also after a failure. */
dvbf_status dv_likelihoods_of(dv_likelihoods *out, const dvbf_model *model, const dvbf_sequences *s,
                              size_t particles, bool paths, uint64_t seed, dv_threads *pool,
                              dvbf_error *error);
void dv_likelihoods_free(dv_likelihoods *likelihoods);

/* ---- Paths ---- */

/* One path through the latent space per sequence: filtered while x is observed, predicted afterwards. For
 * evaluation and figures; dvbf_estimate is for users. */

typedef struct dv_paths {
  size_t count, steps, n_z, n_x;
  float *z;               /* [count][steps][n_z] */
  float *x;               /* [count][steps][n_x] mean of the emission, in units of the data; may be NULL */
  double *log_likelihood; /* [count][steps] ln p(x_t | z_t), 0 if not observed */
  double *kl;             /* [count][steps] KL of w_t, or of z_t if there is no w; entry 0 belongs to the
                             first step, entry t to the step into t */
} dv_paths;

void dv_paths_free(dv_paths *paths);

typedef struct dv_path_options {
  size_t observe;  /* steps whose x is seen; 0: all */
  bool noise_free; /* every noise is at its mean, so that w = 0 if it is predicted */
  uint64_t seed;
  unsigned threads;              /* 0: all cores */
  const volatile int *interrupt; /* NULL, or a flag that ends the work */
} dv_path_options;

/* Checks the sequences, makes a pass over them and draws paths, once. Free with dv_paths_free. */
dvbf_status dv_paths_of(dv_paths **out, const dvbf_model *model, const dvbf_sequences *sequences,
                        const dv_path_options *options, dvbf_error *error);

/* ---- Regression ---- */

/* y[n] on x[n][k] with intercept: R^2 and the log-likelihood at the maximum-likelihood variance,
 * -n/2 (ln(2 pi RSS / n) + 1). `stride` is the distance between entries of y. `coefficients` [k + 1], the
 * intercept last, may be NULL. */
dvbf_status dv_regress(const float *x, size_t n, size_t k, const float *y, size_t stride, double *r2,
                       double *log_likelihood, double *coefficients, dvbf_error *error);

/* y [n][m] on x [n][k] by 32 tanh units and a linear path, learned from the first half of the rows; r2 [m] is
 * that of the second half, which it has not seen. The same input gives the same numbers. */
dvbf_status dv_network_regress(double *r2, const float *x, size_t n, size_t k, const float *y, size_t m,
                               dvbf_error *error);

/* ---- Errors by horizon ---- */

/* Fills observed, horizon, the squared errors and distances of *out; horizon stays 0 if nothing is left to
 * predict. */
dvbf_status dv_horizon_errors(dvbf_evaluation *out, const dvbf_model *model, const dvbf_sequences *sequences,
                              const dvbf_data *data, const dv_evaluate_settings *settings, dv_threads *pool,
                              dvbf_error *error);

/* ---- Common norm ---- */

/* Searches an invertible T with which the largest singular value of all T^-1 S_i T is small. A row z then has
 * the norm |z T|, and no z S_i, nor any mixture of them, is longer than *length times z. systems is
 * [count][n][n]; t [n][n] becomes T and inverse [n][n] its inverse. Without `search` T stays the identity. */
dvbf_status dv_common_norm(double *length, double *t, double *inverse, const double *systems, int count,
                           int n, bool search, dvbf_error *error);
