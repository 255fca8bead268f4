/* Expectation maximisation for linear systems: the likelihood is exact, never falls, and ends at a maximum.
 */
#include "identify/identify.h"
#include "joint.h"
#include "math/kalman.h"
#include "part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* ---- Recordings ---- */

/* Numbers between 0 and 1. */
static double any_share(uint32_t *next) {
  dv_random r = dv_random_at(5, DV_STREAM_SIMULATION, (*next)++, 0);
  return dv_random_uniform(&r);
}

static int any_number(int low, int high, uint32_t *next) {
  int n = low + (int)(any_share(next) * (high - low + 1));
  return n > high ? high : n;
}

/* Sequences of any lengths, not scaled, with nothing in them yet. */
static dv_recordings make_recordings(int n_x, int n_u, size_t count, int shortest, int longest,
                                     uint32_t *next) {
  dv_recordings r = {.n_x = n_x, .n_u = n_u, .count = count};
  r.whole = calloc(count, sizeof *r.whole);
  for (size_t i = 0; i < count; i++) {
    r.whole[i] = (dv_piece){.first = r.frames, .steps = (size_t)any_number(shortest, longest, next)};
    r.frames += r.whole[i].steps;
  }
  r.x = calloc(r.frames * (size_t)n_x, sizeof *r.x);
  r.u = calloc(r.frames * (size_t)n_u + 1, sizeof *r.u);
  for (size_t i = 0; i < r.frames * (size_t)n_u; i++) r.u[i] = any_normal(next);
  return r;
}

static void free_recordings(dv_recordings *r) {
  free(r->x);
  free(r->u);
  free(r->whole);
}

/* x from the system; `gaps` in a hundred frames and as many single values are then missing. */
static void draw_x(dv_recordings *r, const dv_state_space *s, int gaps, uint32_t *next) {
  double z[8], scratch[40], fx[64], shared[64], fz[64], start[64];
  dv_noise_factors f = {fx, shared, fz};
  dv_noise_factors_of(s, &f);
  memcpy(start, s->cov, (size_t)(s->n_z * s->n_z) * sizeof *start);
  dv_factor(start, s->n_z);
  for (size_t i = 0; i < r->count; i++) {
    dv_random random = dv_random_at(6, DV_STREAM_SIMULATION, (*next)++, 0);
    memcpy(z, s->mean, (size_t)s->n_z * sizeof *z);
    dv_add_noise(z, start, s->n_z, &random, scratch);
    for (size_t t = 0; t < r->whole[i].steps; t++) {
      size_t frame = r->whole[i].first + t;
      double *x = r->x + frame * (size_t)r->n_x;
      dv_draw_step(s, &f, z, r->u + frame * (size_t)r->n_u, x, true, &random, scratch);
      bool missing = any_number(1, 100, next) <= gaps;
      for (int k = 0; k < r->n_x; k++)
        if (missing || any_number(1, 100, next) <= gaps) x[k] = NAN;
    }
  }
}

static dv_state_space make_system(int n_z, int n_u, int n_x, double radius, uint32_t *next) {
  dv_state_space s = {0};
  double scratch[128];
  assert_int_equal(dv_system_new(&s, n_z, n_u, n_x, NULL), DVBF_OK);
  any_system(&s, next);
  memset(s.s, 0, (size_t)(n_z * n_x) * sizeof *s.s);
  double by = radius / dv_spectral_radius(s.a, n_z, scratch);
  for (int i = 0; i < n_z * n_z; i++) s.a[i] *= by;
  return s;
}

/* ---- Likelihood ---- */

static double log_p_of(dv_state_space *s, const dv_recordings *r) {
  dv_em_options none = {.feedthrough = true};
  dv_em_progress at;
  assert_int_equal(dv_em(s, r, &none, &at, NULL), DVBF_OK);
  assert_int_equal(at.iteration, 0);
  return at.log_p;
}

/* Of several sequences of different lengths it is the sum of those of the joint distributions. */
static void likelihood_is_exact(void **state) {
  (void)state;
  uint32_t next = 0;
  for (int i = 0; i < 30; i++) {
    int n_u = i % 3;
    dv_state_space s = make_system(1 + i % 3, n_u, 1 + i % 2, 0.8, &next);
    dv_recordings r = make_recordings(s.n_x, n_u, 4, 1, 12, &next);
    double truth = 0;
    draw_x(&r, &s, i % 2 ? 15 : 0, &next);
    for (size_t k = 0; k < r.count; k++) {
      joint j = joint_new(&s, r.u + r.whole[k].first * (size_t)n_u, (int)r.whole[k].steps);
      truth += joint_condition(&j, r.x + r.whole[k].first * (size_t)s.n_x, (int)r.whole[k].steps - 1);
      joint_free(&j);
    }
    double found = log_p_of(&s, &r);
    if (!(fabs(found - truth) <= 1e-8 * (1 + fabs(truth)))) fail_msg("%.12g is not %.12g", found, truth);
    free_recordings(&r);
    dv_system_clear(&s);
  }
}

/* ---- It never falls ---- */

/* An iteration that falls ends EM. Only rounding may make it, and only by as little as this. */
static void assert_rise(const dv_em_progress *last, int number) {
  if (!(last->fall <= 1e-9 * (1 + fabs(last->objective))))
    fail_msg("system %d falls by %g to %g", number, last->fall, last->objective);
}

/* EM from one random system on data of another. Without priors nothing but ln p(x) is maximised. */
static void check_rise(int number, uint32_t *next, int *iterations) {
  int n_u = any_number(0, 2, next), n_x = any_number(1, 3, next);
  double radius = number % 10 == 9 ? 1.05 : 0.95; /* some explode */
  dv_state_space truth = make_system(any_number(1, 3, next), n_u, n_x, radius, next),
                 guess = make_system(any_number(1, 3, next), n_u, n_x, 0.7, next);
  dv_recordings r = make_recordings(n_x, n_u, (size_t)any_number(1, 3, next), 20, 60, next);
  draw_x(&r, &truth, number % 2 ? 10 : 0, next);
  dv_em_options o = {.iterations = 12, .feedthrough = number % 3};
  if (number % 4 >= 2) o.floor = 1e-6, o.starts = 1;
  if (!o.feedthrough) memset(guess.d, 0, (size_t)(n_x * n_u) * sizeof *guess.d);
  dv_em_progress last;
  dvbf_error error;
  if (dv_em(&guess, &r, &o, &last, &error)) fail_msg("system %d: %s", number, error.message);
  assert_rise(&last, number);
  if (!(o.floor > 0)) assert_true(last.objective == last.log_p);
  double scratch[32];
  assert_true(dv_spectral_radius(guess.a, guess.n_z, scratch) <= 1);
  for (int i = 0; i < n_x * n_u && !o.feedthrough; i++) assert_true(guess.d[i] == 0);
  *iterations += last.iteration;
  free_recordings(&r);
  dv_system_clear(&truth);
  dv_system_clear(&guess);
}

static void likelihood_never_falls(void **state) {
  (void)state;
  uint32_t next = 5000000;
  int iterations = 0;
  for (int i = 0; i < 1000; i += PART) check_rise(i, &next, &iterations);
  assert_true(iterations > 12000 / PART - 10); /* of twelve each */
}

/* ---- It ends at a maximum ---- */

/* No parameter may be changed for the better: the derivatives of ln p, by differences, are 0. */
static void it_ends_at_a_maximum(void **state) {
  (void)state;
  uint32_t next = 9000000;
  dv_state_space s = make_system(1, 1, 2, 0.8, &next), guess = make_system(1, 1, 2, 0.5, &next);
  dv_recordings r = make_recordings(2, 1, 6, 15, 30, &next);
  draw_x(&r, &s, 10, &next);
  dv_em_options o = {.iterations = 20000, .tolerance = 1e-11, .feedthrough = true};
  dv_em_progress last;
  assert_int_equal(dv_em(&guess, &r, &o, &last, NULL), DVBF_OK);
  struct {
    double *at;
    int count;
    bool variance;
  } parts[] = {{guess.a, 1, 0},       {guess.b, 1, 0},       {guess.h, 2, 0},    {guess.d, 2, 0},
               {guess.shift_z, 1, 0}, {guess.shift_x, 2, 0}, {guess.mean, 1, 0}, {guess.q, 1, 1},
               {guess.r, 4, 1},       {guess.cov, 1, 1}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    for (int k = 0; k < parts[i].count; k++) {
      double *value = parts[i].at + k, before = *value, step = 1e-4 * (parts[i].variance ? fabs(before) : 1),
             up, down;
      if (parts[i].at == guess.r && k == 2) continue; /* moves with k = 1 */
      double *twin = parts[i].at == guess.r && k == 1 ? value + 1 : value;
      *value = *twin = before + step;
      up = log_p_of(&guess, &r);
      *value = *twin = before - step;
      down = log_p_of(&guess, &r);
      *value = *twin = before;
      double slope = (up - down) / (2 * step), curve = (up + down - 2 * last.log_p) / (step * step);
      assert_true(curve < 0);
      /* As far from the maximum as this, in units of the standard error. */
      if (!(fabs(slope) / sqrt(-curve) < 1e-3))
        fail_msg("part %zu, %d: slope %g, curve %g", i, k, slope, curve);
    }
  free_recordings(&r);
  dv_system_clear(&s);
  dv_system_clear(&guess);
}

/* ---- Data that leave something open ---- */

/* A constant column, one twice, a constant control, one twice, and a column that is never seen. */
static void singular_data_are_fitted(void **state) {
  (void)state;
  uint32_t next = 7000000;
  dv_state_space s = make_system(2, 3, 5, 0.9, &next), guess = make_system(2, 3, 5, 0.9, &next);
  dv_recordings r = make_recordings(5, 3, 1, 40, 40, &next);
  draw_x(&r, &s, 0, &next);
  for (size_t t = 0; t < r.frames; t++) {
    r.x[t * 5 + 1] = 0;
    r.x[t * 5 + 2] = r.x[t * 5];
    r.x[t * 5 + 4] = NAN;
    r.u[t * 3 + 1] = 0;
    r.u[t * 3 + 2] = r.u[t * 3];
  }
  dv_em_options o = {.iterations = 100, .floor = DV_NOISE_FLOOR, .starts = 1, .feedthrough = true};
  dv_em_progress last;
  assert_int_equal(dv_em(&guess, &r, &o, &last, NULL), DVBF_OK);
  assert_rise(&last, 0);
  assert_true(last.iteration > 20);
  for (size_t i = 0; i < dv_system_size(2, 3, 5); i++) assert_true(isfinite(guess.a[i]));
  assert_true(guess.r[5 + 1] >= DV_NOISE_FLOOR);
  free_recordings(&r);
  dv_system_clear(&s);
  dv_system_clear(&guess);
}

/* Numbers that have no likelihood are told, and the system stays as it is. */
static void what_cannot_be_fitted_is_said(void **state) {
  (void)state;
  uint32_t next = 8000000;
  dv_state_space s = make_system(1, 0, 2, 0.9, &next);
  dv_recordings r = make_recordings(2, 0, 1, 30, 30, &next);
  dv_em_options o = {.iterations = 5};
  dv_em_progress last;
  dvbf_error error;
  draw_x(&r, &s, 0, &next);
  memset(s.r, 0, 4 * sizeof *s.r);
  memset(s.cov, 0, sizeof *s.cov);
  assert_int_equal(dv_em(&s, &r, &o, &last, &error), DVBF_FORMAT);
  assert_non_null(strstr(error.message, "linear-fit = subspace"));
  free_recordings(&r);
  dv_system_clear(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(likelihood_is_exact), cmocka_unit_test(likelihood_never_falls),
      cmocka_unit_test(it_ends_at_a_maximum), cmocka_unit_test(singular_data_are_fitted),
      cmocka_unit_test(what_cannot_be_fitted_is_said)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
