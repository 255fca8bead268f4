/* Shared by the ops of a linear Gaussian system: z' = A z + c + L w, w ~ N(0, I), and a potential exp(-z'D z
 * / 2 + d'z) of each observed frame, with a diagonal D. Everything is in double precision; matrices are
 * [n][n], row-major. */
#ifndef DV_OPS_CHAIN_H
#define DV_OPS_CHAIN_H

#include "ops/ops.h"

/* Columns of a state: z [n], the mean [n] of z, and the lower half [n (n + 1) / 2] of its covariance. */
static inline int dv_chain_state(int n) {
  return 2 * n + n * (n + 1) / 2;
}

/* out += f a b, either may be transposed. */
void dv_add_product(double *out, double f, const double *a, bool a_transposed, const double *b,
                    bool b_transposed, int n);
/* out = a b */
void dv_set_product(double *out, const double *a, bool a_transposed, const double *b, bool b_transposed,
                    int n);

/* out += f a v */
static inline void dv_add_applied(double *out, double f, const double *a, bool transposed, const double *v,
                                  int n) {
  for (int i = 0; i < n; i++) {
    double sum = 0;
    for (int k = 0; k < n; k++) sum += a[transposed ? k * n + i : i * n + k] * v[k];
    out[i] += f * sum;
  }
}

/* out += f a b' */
static inline void dv_add_outer(double *out, double f, const double *a, const double *b, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) out[i * n + j] += f * a[i] * b[j];
}

/* a = (a + a') / 2 */
void dv_symmetrise(double *a, int n);

/* The lower triangular factor L of a parameter [n][n] whose diagonal holds logarithms; its upper half counts
 * for nothing. And the gradient of the parameter from that of L, which is added. */
void dv_factor_read(double *l, const dvbf_real *from, int n);
void dv_factor_gradient(dvbf_real *back, const double *l, const double *l_back, int n);

/* The potential of one frame from its head (mu, ln sigma): D = sigma^-2 and d = D mu; 0 if it is not seen.
 */
void dv_potential_read(double *d_matrix /* [n] */, double *d, const dvbf_real *head, double low, double high,
                       bool seen, int n);

/* K = I + L'G with K = U'U, and X = K^-1. If G is not finite, neither is U. Returns ln det K. */
double dv_chain_factor(double *u, double *x, const double *l, const double *g, int n);
/* v becomes U^-1 v. */
void dv_chain_unfactor(const double *u, double *v, int n);

/* A row of a state from z, mean and covariance, and back. */
void dv_chain_write(dvbf_real *state, const double *z, const double *mean, const double *cov, int n);
void dv_chain_read(const dvbf_real *state, double *z, double *mean, double *cov, int n);

#endif
