/* Kalman filter, smoother and likelihood of linear systems, against the joint normal distribution of all z
 * and x (joint.h). */
#include "joint.h"
#include "math/kalman.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { LONG = 60 };
enum { CORRELATED, INNOVATION, APART };
enum { WHOLE, SOME_VALUES, SOME_FRAMES, BOTH };

/* assert_float_equal compares floats, which have seven digits. */
static void assert_near(double value, double truth) {
  if (!(fabs(value - truth) <= 1e-8 * (1 + fabs(truth)))) fail_msg("%.12g is not %.12g", value, truth);
}

typedef struct shape {
  int n_z, n_u, n_x, steps;
} shape;

static dv_state_space make_system(shape h, int form, uint32_t *next) {
  dv_state_space s = {0};
  double gain[8 * 8];
  assert_int_equal(dv_system_new(&s, h.n_z, h.n_u, h.n_x, NULL), DVBF_OK);
  any_system(&s, next);
  double radius =
      dv_spectral_radius(s.a, h.n_z, gain); /* growing states would be too much for the dense way */
  for (int i = 0; i < h.n_z * h.n_z && radius > 0.9; i++) s.a[i] *= 0.9 / radius;
  for (int i = 0; i < h.n_z * h.n_x; i++) gain[i] = any_normal(next);
  if (form == INNOVATION) dv_system_set_gain(&s, gain); /* z has no noise of its own */
  if (form == APART) memset(s.s, 0, (size_t)(h.n_z * h.n_x) * sizeof *s.s);
  return s;
}

/* x of a sequence from the system, with gaps. */
static void make_x(double *x, const dv_state_space *s, const double *u, shape h, int gaps, uint32_t *next) {
  double z[8], scratch[40], fx[64], shared[64], fz[64];
  dv_noise_factors f = {fx, shared, fz};
  dv_random random = dv_random_at(4, DV_STREAM_SIMULATION, (*next)++, 0);
  dv_noise_factors_of(s, &f);
  for (int i = 0; i < h.n_z; i++) z[i] = s->mean[i];
  for (int t = 0; t < h.steps; t++)
    dv_draw_step(s, &f, z, u + t * h.n_u, x + t * h.n_x, true, &random, scratch);
  for (int i = 0; i < h.steps * h.n_x; i++) {
    int t = i / h.n_x;
    if ((gaps & SOME_FRAMES) && (t == 2 || t == 3 || t == h.steps - 1 || t == 30)) x[i] = NAN;
    if ((gaps & SOME_VALUES) && (i % 5 == 3 || t == 0) && t < 28) x[i] = i % h.n_x ? x[i] : NAN;
  }
}

static void assert_z(const joint *j, int t, const double *mean, const double *cov) {
  for (int i = 0; i < j->n_z; i++) {
    int a = t * j->n_z + i;
    assert_near(mean[i], j->mean[a]);
    for (int k = 0; k < j->n_z; k++) {
      double truth = j->cov[a * j->all + t * j->n_z + k];
      assert_near(cov[i * j->n_z + k], truth);
    }
  }
}

static int resting; /* sequences in which the covariances have come to rest */

/* Filtered z and ln p of every step; of long sequences of some. */
static double check_filter(const dv_state_space *s, const double *x, const double *u, int steps) {
  int rests = 0;
  double log_p = 0, *memory = calloc(dv_kalman_size(s->n_z, s->n_x), sizeof *memory);
  dv_kalman k = dv_kalman_begin(s, memory);
  for (int t = 0; t < steps; t++) {
    assert_true(dv_kalman_observe(&k, x + t * s->n_x, u + t * s->n_u));
    log_p += k.log_p;
    rests += k.steady;
    if (t < 7 || t % 11 == 0 || t + 1 == steps) {
      joint known = joint_new(s, u, steps);
      double truth = joint_condition(&known, x, t);
      assert_near(log_p, truth);
      assert_z(&known, t, k.filtered, k.filtered_cov);
      joint_free(&known);
    }
    dv_kalman_move(&k, u + t * s->n_u);
  }
  resting += rests > 5;
  free(memory);
  return log_p;
}

static void check_smoother(const dv_state_space *s, const double *x, const double *u, int steps,
                           double log_p) {
  dv_smoothed smoothed;
  joint known = joint_new(s, u, steps);
  int n = s->n_z;
  joint_condition(&known, x, steps - 1);
  /* Its room may be larger than a sequence, and is used again. */
  assert_int_equal(dv_smoothed_init(&smoothed, s, steps + 3, NULL), DVBF_OK);
  for (int again = 0; again < 2; again++) assert_true(dv_smooth(&smoothed, s, x, u, steps));
  assert_near(smoothed.log_p, log_p);
  for (int t = 0; t < steps; t++) {
    assert_z(&known, t, smoothed.mean + t * n, smoothed.cov + t * n * n);
    for (int i = 0; t + 1 < steps && i < n * n; i++) {
      double truth = known.cov[((t + 1) * n + i / n) * known.all + t * n + i % n];
      assert_near(smoothed.pair[t * n * n + i], truth);
    }
  }
  dv_smoothed_clear(&smoothed);
  joint_free(&known);
}

static void check(shape h, int form, int gaps, uint32_t *next) {
  dv_state_space s = make_system(h, form, next);
  double *u = calloc((size_t)(h.steps * h.n_u + 1), sizeof *u),
         *x = calloc((size_t)(h.steps * h.n_x), sizeof *x);
  for (int i = 0; i < h.steps * h.n_u; i++) u[i] = any_normal(next);
  make_x(x, &s, u, h, gaps, next);
  check_smoother(&s, x, u, h.steps, check_filter(&s, x, u, h.steps));
  free(u);
  free(x);
  dv_system_clear(&s);
}

static void filter_and_smoother_are_exact(void **state) {
  (void)state;
  static const shape shapes[] = {{3, 2, 2, 7}, {1, 0, 1, 5}, {2, 1, 3, 6}, {4, 0, 1, 8}, {2, 3, 2, 1}};
  uint32_t next = 0;
  for (int round = 0; round < 3; round++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      for (int form = CORRELATED; form <= APART; form++)
        for (int gaps = WHOLE; gaps <= BOTH; gaps++) check(shapes[i], form, gaps, &next);
}

/* Long enough for the covariances to come to rest, to be disturbed by a gap and to rest again. */
static void covariances_at_rest_are_exact(void **state) {
  (void)state;
  uint32_t next = 1000000;
  resting = 0;
  for (int form = CORRELATED; form <= APART; form++)
    for (int gaps = WHOLE; gaps <= BOTH; gaps++) check((shape){2, 1, 2, LONG}, form, gaps, &next);
  assert_true(resting >= 6);
}

/* Gains that are found once move the mean as the filter does, also where fewer are kept than there are steps
 * because the last one stays. */
static void check_gains(shape h, int form, uint32_t *next, int *rested) {
  dv_state_space s = make_system(h, form, next);
  double *memory = calloc(dv_kalman_size(h.n_z, h.n_x), sizeof *memory), u[8], x[8], guess[8], mean[8],
         scratch[8];
  dv_kalman_gains gains = {0};
  assert_int_equal(dv_kalman_gains_new(&gains, &s, (size_t)h.steps, NULL), DVBF_OK);
  assert_true(dv_kalman_gains_reach(&gains, (size_t)h.steps));
  *rested += gains.rest && gains.steps < (size_t)h.steps;
  dv_kalman k = dv_kalman_begin(&s, memory);
  memcpy(mean, s.mean, (size_t)h.n_z * sizeof *mean);
  for (int t = 0; t < h.steps; t++) {
    for (int i = 0; i < h.n_u; i++) u[i] = any_normal(next);
    for (int i = 0; i < h.n_x; i++) x[i] = any_normal(next);
    for (int i = 0; i < h.n_z; i++) assert_near(mean[i], k.mean[i]);
    dv_system_emit(&s, mean, u, guess);
    for (int i = 0; i < h.n_x; i++) guess[i] = x[i] - guess[i];
    dv_kalman_gains_move(&gains, (size_t)t, mean, guess, u, scratch);
    assert_true(dv_kalman_observe(&k, x, u));
    dv_kalman_move(&k, u);
  }
  dv_kalman_gains_clear(&gains);
  free(memory);
  dv_system_clear(&s);
}

static void gains_are_those_of_the_filter(void **state) {
  (void)state;
  static const shape shapes[] = {{3, 2, 2, LONG}, {1, 0, 1, 5},    {2, 1, 3, LONG},
                                 {4, 0, 1, LONG}, {1, 2, 4, LONG}, {2, 0, 6, 9}};
  uint32_t next = 2000000;
  int rested = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int form = CORRELATED; form <= APART; form++) check_gains(shapes[i], form, &next, &rested);
  assert_true(rested > 2);
}

/* Noise of no variance has no gains. */
static void systems_without_noise_have_no_gains(void **state) {
  (void)state;
  dv_state_space s = {0};
  dv_kalman_gains gains = {0};
  assert_int_equal(dv_system_new(&s, 2, 0, 2, NULL), DVBF_OK);
  assert_int_equal(dv_kalman_gains_new(&gains, &s, 5, NULL), DVBF_OK);
  assert_false(dv_kalman_gains_reach(&gains, 1));
  dv_kalman_gains_clear(&gains);
  dv_system_clear(&s);
}

/* Columns in units of their own: a factor of the covariance must not lose the small ones. */
static void factors_keep_small_units(void **state) {
  (void)state;
  double a[] = {1e8, 1e-1, 1e-1, 2e-10}, f[4];
  memcpy(f, a, sizeof a);
  dv_factor(f, 2);
  assert_true(fabs(f[2] * f[2] + f[3] * f[3] - a[3]) < 1e-24);
  assert_true(f[3] > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(filter_and_smoother_are_exact), cmocka_unit_test(covariances_at_rest_are_exact),
      cmocka_unit_test(gains_are_those_of_the_filter), cmocka_unit_test(systems_without_noise_have_no_gains),
      cmocka_unit_test(factors_keep_small_units)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
