/* Ordinary least squares, as in the paper's Table 1. */
#ifndef DV_REGRESSION_H
#define DV_REGRESSION_H

#include <dvbf/dvbf.h>

/* y[n] on x[n][k] with intercept: R^2 and the log-likelihood at the maximum-likelihood variance,
 * -n/2 (ln(2 pi RSS / n) + 1). `stride` is the distance between entries of y. `coefficients` [k + 1], the
 * intercept last, may be NULL. */
dvbf_status dv_regress(const float *x, size_t n, size_t k, const float *y, size_t stride, double *r2,
                       double *log_likelihood, double *coefficients, dvbf_error *error);

#endif
