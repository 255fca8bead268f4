#include "op/chain.h"

#include "base/algebra.h"
#include "base/arithmetic.h"

#include <math.h>
#include <string.h>

/* Loops run along rows of out and, but for a transposed b, of b. */
void dv_add_product(double *out, double f, const double *a, bool a_transposed, const double *b,
                    bool b_transposed, int n) {
  for (int i = 0; i < n; i++) {
    double *restrict row = out + (size_t)i * (size_t)n;
    for (int k = 0; k < n; k++) {
      double by = f * (a_transposed ? a[k * n + i] : a[i * n + k]);
      const double *from = b_transposed ? b + k : b + (size_t)k * (size_t)n;
      if (by == 0) continue; /* factors are triangular */
      if (b_transposed)
        for (int j = 0; j < n; j++) row[j] += by * from[(size_t)j * (size_t)n];
      else
        for (int j = 0; j < n; j++) row[j] += by * from[j];
    }
  }
}

void dv_set_product(double *out, const double *a, bool a_transposed, const double *b, bool b_transposed,
                    int n) {
  memset(out, 0, (size_t)n * (size_t)n * sizeof *out);
  dv_add_product(out, 1, a, a_transposed, b, b_transposed, n);
}

void dv_symmetrise(double *a, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++) a[i * n + j] = a[j * n + i] = 0.5 * (a[i * n + j] + a[j * n + i]);
}

void dv_factor_read(double *l, const dvbf_real *from, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      l[i * n + j] = j > i ? 0 : j == i ? dv_exp((double)from[i * n + j]) : (double)from[i * n + j];
}

void dv_factor_gradient(dvbf_real *back, const double *l, const double *l_back, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++)
      back[i * n + j] += (dvbf_real)(l_back[i * n + j] * (j == i ? l[i * n + j] : 1));
}

void dv_potential_read(double *d_matrix, double *d, const dvbf_real *head, double low, double high, bool seen,
                       int n) {
  for (int i = 0; i < n; i++) {
    d_matrix[i] = seen ? dv_exp(-2 * (double)dv_clamp(head[n + i], low, high)) : 0;
    d[i] = seen ? d_matrix[i] * (double)head[i] : 0;
  }
}

double dv_chain_factor(double *u, double *x, const double *l, const double *g, int n) {
  double log_det = 0;
  dv_set_product(u, l, true, g, false, n);
  for (int i = 0; i < n; i++) u[i * n + i] += 1;
  if (!dv_cholesky(u, n))
    for (int i = 0; i < n; i++) u[i * n + i] = (double)NAN;
  for (int i = 0; i < n; i++) {
    log_det += 2 * dv_log(u[i * n + i]);
    for (int j = 0; j < n; j++) x[i * n + j] = i == j;
  }
  dv_solve_lower(u, n, x, n);
  dv_solve_upper(u, n, x, n);
  dv_symmetrise(x, n);
  return log_det;
}

void dv_chain_unfactor(const double *u, double *v, int n) {
  dv_solve_upper(u, n, v, 1);
}

void dv_chain_write(dvbf_real *state, const double *z, const double *mean, const double *cov, int n) {
  for (int i = 0; i < n; i++) *state++ = (dvbf_real)z[i];
  for (int i = 0; i < n; i++) *state++ = (dvbf_real)mean[i];
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) *state++ = (dvbf_real)cov[i * n + j];
}

void dv_chain_read(const dvbf_real *state, double *z, double *mean, double *cov, int n) {
  for (int i = 0; i < n; i++) z[i] = (double)*state++;
  for (int i = 0; i < n; i++) mean[i] = (double)*state++;
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) cov[i * n + j] = cov[j * n + i] = (double)*state++;
}
