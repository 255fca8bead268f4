/* Least squares: nonlinear by Levenberg and Marquardt, and ridge regression of several targets. */
#pragma once

#include <dvbf/core.h>

/* ---- Levenberg-Marquardt: a sum of squared nonlinear residuals; derivatives by differences ---- */

typedef struct dv_levenberg {
  int n;        /* parameters */
  size_t rows;  /* residuals */
  double ridge; /* adds ridge |theta - first theta|^2 */
  void (*residuals)(double *out /* [rows] */, const double *theta, void *user);
  bool (*allowed)(const double *theta, void *user);
  const volatile int *interrupt; /* ends it with DVBF_STOPPED; may be NULL */
  void *user;
} dv_levenberg;

/* Lowers the sum of squares from theta [n], which must be allowed. */
dvbf_status dv_levenberg_run(double *theta, const dv_levenberg *how, dvbf_error *error);

/* ---- Ridge regression of several targets on several inputs, of which the first is 1 ---- */

/* All zeros: none. */
typedef struct dv_ridge {
  size_t inputs, targets;
  double rows;          /* that were added */
  double *total;        /* [inputs][inputs] */
  double *coefficients; /* [inputs][targets], after dv_ridge_solve */
  double *row;          /* [inputs], for the caller to fill; row[0] stays 1 */
  double *target;       /* [targets], likewise */
} dv_ridge;

/* Call clear also after a failure. */
dvbf_status dv_ridge_init(dv_ridge *out, size_t inputs, size_t targets, dvbf_error *error);
void dv_ridge_clear(dv_ridge *ridge);
/* Counts row and target once. */
void dv_ridge_add(dv_ridge *ridge);
/* Adds `share` to the mean square of each input but the first; if not enough, all coefficients are 0. */
void dv_ridge_solve(dv_ridge *ridge, double share);
/* Prediction of target k for the present row. */
double dv_ridge_guess(const dv_ridge *ridge, size_t k);
