/* The discrete algebraic Riccati equation by fixed-point iteration: the infinite-horizon linear quadratic
 * regulator and its cost. Entry point dv_riccati; memory is the caller's. */
#include "math/riccati.h"

#include "math/algebra.h"

#include <math.h>
#include <string.h>

enum { MOST_ITERATIONS = 20000 };

/* next = q + a'p a - a'p b k with k = (r + b'p b)^-1 b'p a; false if r + b'p b is not positive definite. */
static bool iterate(double *next, double *k, const double *p, const dv_regulator *s, double *scratch) {
  int n = s->n_z, m = s->n_u;
  size_t nm = (size_t)n * (size_t)m, nn = (size_t)n * (size_t)n;
  double *pa = scratch, *pb = pa + nn, *bpa = pb + nm, *bt = bpa + nm, *factor = bt + nm;
  dv_product(pa, p, s->a, n, n, n);
  dv_product(pb, p, s->b, n, n, m);
  dv_transpose(bt, s->b, n, m);
  dv_product(factor, bt, pb, m, n, m);
  for (int i = 0; i < m * m; i++) factor[i] += s->r[i];
  dv_product(bpa, bt, pa, m, n, n);
  memcpy(k, bpa, nm * sizeof *k);
  if (!dv_solve_definite(factor, m, k, n)) return false;
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      double sum = s->q[i * n + j];
      for (int l = 0; l < n; l++) sum += s->a[l * n + i] * pa[l * n + j];
      for (int l = 0; l < m; l++) sum -= bpa[l * n + i] * k[l * n + j];
      next[i * n + j] = next[j * n + i] = sum;
    }
  return true;
}

bool dv_riccati(double *p, double *k, const dv_regulator *s, double *scratch) {
  size_t nn = (size_t)s->n_z * (size_t)s->n_z;
  double *next = scratch;
  memcpy(p, s->q, nn * sizeof *p);
  for (int i = 0; i < MOST_ITERATIONS; i++) {
    double change = 0, size = 0;
    if (!iterate(next, k, p, s, scratch + nn)) return false;
    for (size_t e = 0; e < nn; e++) {
      if (!isfinite(next[e])) return false;
      change = fmax(change, fabs(next[e] - p[e]));
      size = fmax(size, fabs(next[e]));
    }
    memcpy(p, next, nn * sizeof *p);
    if (change <= 1e-13 * size) return true;
  }
  return false;
}
