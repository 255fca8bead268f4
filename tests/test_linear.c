/* Kalman filter, smoother and likelihood of linear systems, against the joint normal distribution of all z
 * and x, which is made from the noises by definition and conditioned by dense algebra. */
#include "base/algebra.h"
#include "base/random.h"
#include "kalman/draw.h"
#include "kalman/smooth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
  N_Z = 3,
  N_U = 2,
  N_X = 2,
  STEPS = 7,
  EACH = N_X + N_Z,
  NOISES = N_Z + STEPS * EACH,
  ALL = STEPS * (N_Z + N_X)
};

static double normal(uint32_t *next) {
  dv_random r = dv_random_at(3, DV_STREAM_SIMULATION, (*next)++, 0);
  return dv_random_normal(&r);
}

/* A covariance [n][n] of rank `rank`. */
static void any_covariance(double *out, int n, int rank, uint32_t *next) {
  double factor[8 * 8];
  for (int i = 0; i < n * rank; i++) factor[i] = normal(next);
  dv_product_transposed(out, factor, factor, n, rank, n);
}

/* One with noises that belong together; in the innovation form z has none of its own. */
static dv_system any_system(bool innovation_form, uint32_t *next) {
  dv_system s = {0};
  double both[EACH * EACH], gain[N_Z * N_X];
  assert_int_equal(dv_system_new(&s, N_Z, N_U, N_X, NULL), DVBF_OK);
  for (int i = 0; i < N_Z * N_Z; i++) s.a[i] = 0.4 * normal(next);
  for (int i = 0; i < N_Z * N_U; i++) s.b[i] = normal(next);
  for (int i = 0; i < N_X * N_Z; i++) s.h[i] = normal(next);
  for (int i = 0; i < N_X * N_U; i++) s.d[i] = normal(next);
  for (int i = 0; i < N_Z; i++) s.shift_z[i] = normal(next), s.mean[i] = normal(next);
  for (int i = 0; i < N_X; i++) s.shift_x[i] = normal(next);
  for (int i = 0; i < N_Z * N_X; i++) gain[i] = normal(next);
  any_covariance(s.cov, N_Z, N_Z, next);
  any_covariance(both, EACH, EACH, next);
  for (int i = 0; i < EACH; i++)
    for (int j = 0; j < EACH; j++) {
      double value = both[i * EACH + j];
      if (i < N_X && j < N_X) s.r[i * N_X + j] = value;
      if (i >= N_X && j < N_X) s.s[(i - N_X) * N_X + j] = value;
      if (i >= N_X && j >= N_X) s.q[(i - N_X) * N_Z + j - N_X] = value;
    }
  if (innovation_form) dv_system_set_gain(&s, gain);
  return s;
}

/* z and x [ALL], z of all steps first, from normal noises. */
static void simulate(const dv_system *s, const double *u, const double *noise, double *out) {
  double start[N_Z * N_Z], fx[N_X * N_X], shared[N_Z * N_X], fz[N_Z * N_Z], z[N_Z];
  dv_noise_factors f = {fx, shared, fz};
  memcpy(start, s->cov, sizeof start);
  dv_factor(start, N_Z);
  dv_noise_factors_of(s, &f);
  for (int i = 0; i < N_Z; i++) z[i] = s->mean[i] + dv_dot(start + i * N_Z, noise, N_Z);
  noise += N_Z;
  for (int t = 0; t < STEPS; t++, noise += EACH, u += N_U) {
    double next[N_Z], *x = out + STEPS * N_Z + t * N_X;
    memcpy(out + t * N_Z, z, sizeof z);
    dv_system_emit(s, z, u, x);
    for (int i = 0; i < N_X; i++) x[i] += dv_dot(fx + i * N_X, noise, N_X);
    dv_system_move(s, z, u, next);
    for (int i = 0; i < N_Z; i++)
      z[i] = next[i] + dv_dot(shared + i * N_X, noise, N_X) + dv_dot(fz + i * N_Z, noise + N_X, N_Z);
  }
}

typedef struct joint {
  double mean[ALL], cov[ALL][ALL];
} joint;

static void make_joint(joint *j, const dv_system *s, const double *u) {
  static double column[NOISES][ALL];
  double noise[NOISES] = {0};
  simulate(s, u, noise, j->mean);
  for (int k = 0; k < NOISES; k++) {
    noise[k] = 1;
    simulate(s, u, noise, column[k]);
    noise[k] = 0;
    for (int i = 0; i < ALL; i++) column[k][i] -= j->mean[i];
  }
  for (int a = 0; a < ALL; a++)
    for (int b = 0; b < ALL; b++) {
      j->cov[a][b] = 0;
      for (int k = 0; k < NOISES; k++) j->cov[a][b] += column[k][a] * column[k][b];
    }
}

/* Conditions on the values x of steps 0 .. last that are there; returns their ln p. */
static double condition(joint *j, const double *x, int last) {
  int seen[STEPS * N_X], n = 0, order[STEPS * N_X];
  static double inverse[STEPS * N_X * STEPS * N_X], before[ALL][ALL];
  double apart[STEPS * N_X], log_p = 0;
  for (int i = 0; i < (last + 1) * N_X; i++)
    if (!isnan(x[i])) seen[n] = STEPS * N_Z + i, apart[n++] = x[i] - j->mean[STEPS * N_Z + i];
  memcpy(before, j->cov, sizeof before);
  for (int a = 0; a < n; a++)
    for (int b = 0; b < n; b++) inverse[a * n + b] = before[seen[a]][seen[b]];
  double log_det = dv_invert(inverse, n, 1e-300, order);
  for (int a = 0; a < n; a++) log_p -= 0.5 * apart[a] * dv_dot(inverse + a * n, apart, (size_t)n);
  for (int i = 0; i < ALL; i++) {
    double gain[STEPS * N_X] = {0};
    for (int a = 0; a < n; a++)
      for (int b = 0; b < n; b++) gain[a] += before[i][seen[b]] * inverse[b * n + a];
    j->mean[i] += dv_dot(gain, apart, (size_t)n);
    for (int k = 0; k < ALL; k++)
      for (int a = 0; a < n; a++) j->cov[i][k] -= gain[a] * before[seen[a]][k];
  }
  return log_p - 0.5 * (log_det + n * log(2 * M_PI));
}

static void assert_z(const joint *j, int t, const double *mean, const double *cov) {
  for (int i = 0; i < N_Z; i++) {
    assert_float_equal(mean[i], j->mean[t * N_Z + i], 1e-8);
    for (int k = 0; k < N_Z; k++)
      assert_float_equal(cov[i * N_Z + k], j->cov[t * N_Z + i][t * N_Z + k], 1e-8);
  }
}

static void check(bool innovation_form, bool gaps, uint32_t *next) {
  static joint prior, known;
  double u[STEPS * N_U], noise[NOISES], all[ALL], *x = all + STEPS * N_Z, log_p = 0;
  dv_system s = any_system(innovation_form, next);
  for (int i = 0; i < STEPS * N_U; i++) u[i] = normal(next);
  for (int i = 0; i < NOISES; i++) noise[i] = normal(next);
  simulate(&s, u, noise, all);
  for (int i = 0; gaps && i < STEPS * N_X; i++)
    if (i / N_X == 2 || i % 5 == 3) x[i] = NAN;
  make_joint(&prior, &s, u);
  double *memory = calloc(dv_kalman_size(N_Z, N_X), sizeof *memory);
  dv_kalman k = dv_kalman_begin(&s, memory);
  for (int t = 0; t < STEPS; t++) {
    assert_true(dv_kalman_observe(&k, x + t * N_X, u + t * N_U));
    log_p += k.log_p;
    known = prior;
    assert_float_equal(condition(&known, x, t), log_p, 1e-8);
    assert_z(&known, t, k.filtered, k.filtered_cov);
    dv_kalman_move(&k, u + t * N_U);
  }
  dv_smoothed smoothed;
  assert_int_equal(dv_smoothed_init(&smoothed, &s, STEPS, NULL), DVBF_OK);
  assert_true(dv_smooth(&smoothed, &s, x, u, STEPS));
  assert_float_equal(smoothed.log_p, log_p, 1e-8);
  for (int t = 0; t < STEPS; t++) {
    assert_z(&known, t, smoothed.mean + t * N_Z, smoothed.cov + t * N_Z * N_Z);
    for (int i = 0; t + 1 < STEPS && i < N_Z * N_Z; i++)
      assert_float_equal(smoothed.pair[t * N_Z * N_Z + i],
                         known.cov[(t + 1) * N_Z + i / N_Z][t * N_Z + i % N_Z], 1e-8);
  }
  dv_smoothed_clear(&smoothed);
  free(memory);
  dv_system_clear(&s);
}

static void filter_and_smoother_are_exact(void **state) {
  (void)state;
  uint32_t next = 0;
  for (int i = 0; i < 40; i++) check(i % 2, i % 4 >= 2, &next);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(filter_and_smoother_are_exact)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
