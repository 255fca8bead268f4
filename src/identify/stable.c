#include "identify/stable.h"

#include "base/algebra.h"
#include "base/arithmetic.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

size_t dv_stabilise_scratch(int n) {
  return 4 * (size_t)n * (size_t)n + (size_t)n;
}

/* s [n][n] becomes its matrix sign by Newton's method, s <- (s + s^-1) / 2, in which eigenvalues become the
 * signs of their real parts. False where they have none. */
static bool find_sign(double *s, int n, double *inverse, int *order) {
  enum { MOST = 60 };
  size_t all = (size_t)n * (size_t)n;
  double change = INFINITY;
  for (int k = 0; k < MOST; k++) {
    memcpy(inverse, s, all * sizeof *s);
    double log_det = dv_invert(inverse, n, 1e-300, order);
    if (!isfinite(log_det)) return false;
    double by = change > 0.01 ? dv_exp(-log_det / n) : 1, apart = 0, size = 0;
    for (size_t i = 0; i < all; i++) {
      double value = (by * s[i] + inverse[i] / by) / 2;
      apart += (value - s[i]) * (value - s[i]);
      size += value * value;
      s[i] = value;
    }
    if (!isfinite(size)) return false;
    change = sqrt(apart / size);
    if (change < 1e-11) return true;
  }
  return false;
}

/* The projector (I + sign((A - I) (A + I)^-1)) / 2 on the modes outside the unit circle, which Cayley's map
 * takes to the right half-plane. */
static bool find_projector(const double *a, int n, double *out, double *rest) {
  size_t all = (size_t)n * (size_t)n, step = (size_t)n + 1;
  double *plus = rest, *minus = rest + all;
  int *order = (int *)(void *)(rest + 2 * all);
  memcpy(plus, a, all * sizeof *a);
  memcpy(minus, a, all * sizeof *a);
  for (size_t i = 0; i < all; i += step) plus[i] += 1, minus[i] -= 1;
  if (!isfinite(dv_invert(plus, n, 1e-12, order))) return false;
  dv_product(out, minus, plus, n, n, n);
  if (!find_sign(out, n, rest, order)) return false;
  for (size_t i = 0; i < all; i++) out[i] = (out[i] + (i % step == 0)) / 2;
  return true;
}

void dv_stabilise(double *a, int n, double *scratch) {
  size_t all = (size_t)n * (size_t)n;
  double *projector = scratch, *rest = scratch + all, radius = dv_spectral_radius(a, n, rest);
  if (radius <= 1) return;
  if (isfinite(radius) && find_projector(a, n, projector, rest)) {
    dv_product(rest, projector, a, n, n, n);
    for (size_t i = 0; i < all; i++) projector[i] = a[i] - (1 - 1 / radius) * rest[i];
    double now = dv_spectral_radius(projector, n, rest);
    if (now < radius) memcpy(a, projector, all * sizeof *a), radius = now;
  }
  for (size_t i = 0; i < all && !(radius <= 1); i++) a[i] = isfinite(radius) ? a[i] / radius : 0;
}
