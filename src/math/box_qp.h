/* Quadratic programs in a box, by projected Newton steps (Bertsekas 1982; Tassa, Mansard and Todorov 2014).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { DV_BOX_SIZE = 64 };

/* v [n] into its limits. */
static inline void dv_into_limits(double *v, const double *low, const double *high, int n) {
  for (int i = 0; i < n; i++) v[i] = v[i] < low[i] ? low[i] : v[i] > high[i] ? high[i] : v[i];
}

/* Reals of scratch that dv_box_solve needs. */
static inline size_t dv_box_scratch(int n) {
  return 3 * (size_t)n;
}

/* Minimises x'Hx / 2 + g'x over low <= x <= high, from x [n], which is moved into the box first. held [n] is
 * true if x lies at a limit and is pressed against it. factor [n][n] becomes the Cholesky factor U of H =
 * U'U over the dimensions that are not held, which come first, in order; returns how many these are, or -1
 * where H is not positive definite there. */
int dv_box_solve(double *x, bool *held, double *factor, const double *h, const double *g, const double *low,
                 const double *high, int n, double *scratch);
