#include "kalman/draw.h"

#include "base/algebra.h"

#include <string.h>

void dv_add_noise(double *out, const double *factor, int n, dv_random *random, double *scratch) {
  for (int i = 0; i < n; i++) scratch[i] = dv_random_normal(random);
  for (int i = 0; i < n; i++) out[i] += dv_dot(factor + (size_t)i * (size_t)n, scratch, (size_t)n);
}

void dv_noise_factors_of(const dv_system *s, dv_noise_factors *f) {
  int n_x = s->n_x, n_z = s->n_z;
  memcpy(f->x, s->r, (size_t)n_x * (size_t)n_x * sizeof *f->x);
  dv_factor(f->x, n_x);
  for (int i = 0; i < n_z; i++) /* M Lx' = S, row by row */
    for (int j = 0; j < n_x; j++) {
      double sum = s->s[i * n_x + j], root = f->x[j * (n_x + 1)];
      for (int k = 0; k < j; k++) sum -= f->shared[i * n_x + k] * f->x[j * n_x + k];
      f->shared[i * n_x + j] = root > 0 ? sum / root : 0;
    }
  for (int i = 0; i < n_z; i++)
    for (int j = 0; j < n_z; j++)
      f->z[i * n_z + j] = s->q[i * n_z + j] - dv_dot(f->shared + (size_t)i * (size_t)n_x,
                                                     f->shared + (size_t)j * (size_t)n_x, (size_t)n_x);
  /* In the innovation form nothing but rounding is left. */
  double largest = 0, left = 0;
  for (int i = 0; i < n_z; i++)
    largest = fmax(largest, s->q[i * (n_z + 1)]), left = fmax(left, f->z[i * (n_z + 1)]);
  if (left <= 1e-12 * largest) memset(f->z, 0, (size_t)n_z * (size_t)n_z * sizeof *f->z);
  dv_factor(f->z, n_z);
}

void dv_draw_step(const dv_system *s, const dv_noise_factors *f, double *z, const double *u, double *x,
                  bool noise, dv_random *random, double *scratch) {
  size_t n_x = (size_t)s->n_x, n_z = (size_t)s->n_z;
  double *next = scratch, *shared = next + n_z, *own = shared + n_x;
  for (size_t i = 0; i < n_x; i++) shared[i] = dv_random_normal(random);
  if (x) {
    dv_system_emit(s, z, u, x);
    for (size_t i = 0; noise && i < n_x; i++) x[i] += dv_dot(f->x + i * n_x, shared, n_x);
  }
  dv_system_move(s, z, u, next);
  for (size_t i = 0; i < n_z; i++) next[i] += dv_dot(f->shared + i * n_x, shared, n_x);
  dv_add_noise(next, f->z, s->n_z, random, own);
  memcpy(z, next, n_z * sizeof *z);
}
