/* Regression by a small network, for what a latent state holds without holding it linearly. */
#ifndef DV_NETWORK_H
#define DV_NETWORK_H

#include <dvbf/dvbf.h>

/* y [n][m] on x [n][k] by 32 tanh units and a linear path, learned from the first half of the rows; r2 [m] is
 * that of the second half, which it has not seen. The same input gives the same numbers. */
dvbf_status dv_network_regress(double *r2, const float *x, size_t n, size_t k, const float *y, size_t m,
                               dvbf_error *error);

#endif
