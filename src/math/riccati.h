/* The infinite-horizon linear quadratic regulator. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* z' = a z + b u, cost sum of z'q z + u'r u. */
typedef struct dv_regulator {
  int n_z, n_u;
  const double *a, *b, *q, *r; /* [n_z][n_z], [n_z][n_u], [n_z][n_z], [n_u][n_u] */
} dv_regulator;

/* Reals of scratch. */
static inline size_t dv_riccati_scratch(int n_z, int n_u) {
  size_t n = (size_t)n_z, m = (size_t)n_u;
  return 2 * n * n + 3 * n * m + m * m;
}

/* z'p z is the cost to come under the best controls u = -k z, k [n_u][n_z]: p = q + a'p a - a'p b (r + b'p
 * b)^-1 b'p a, iterated from p = q. False if no p is found: a mode that grows, or costs and does not decay,
 * cannot be controlled. */
bool dv_riccati(double *p, double *k, const dv_regulator *regulator, double *scratch);
