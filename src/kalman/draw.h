/* Samples of a linear system. */
#ifndef DV_KALMAN_DRAW_H
#define DV_KALMAN_DRAW_H

#include "base/random.h"
#include "kalman/system.h"

/* out [n] += factor [n][n] times normal numbers. */
void dv_add_noise(double *out, const double *factor, int n, dv_random *random, double *scratch /* [n] */);

/* Factors of the noise: e = Lx a, w = M a + Lz b, with normal a [n_x] and b [n_z]. */
typedef struct dv_noise_factors {
  double *x;      /* [n_x][n_x] Lx */
  double *shared; /* [n_z][n_x] M = S Lx'^-1 */
  double *z;      /* [n_z][n_z] Lz Lz' = Q - M M' */
} dv_noise_factors;
void dv_noise_factors_of(const dv_system *s, dv_noise_factors *out);

/* z of the next step from z in place, and x [n_x] of this step; where x is NULL or `noise` is false it has no
 * e. */
void dv_draw_step(const dv_system *s, const dv_noise_factors *f, double *z, const double *u, double *x,
                  bool noise, dv_random *random, double *scratch /* [2 n_z + 2 n_x] */);

#endif
