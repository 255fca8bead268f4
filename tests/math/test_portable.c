/* The functions of portable arithmetic, against those of the C library in long double; where they are used.
 */
#include "engine/threads.h"
#include "math/portable.h"
#include "math/random.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Apart from b in units of its last place. */
static double units(double a, long double b) {
  if (a == (double)b) return 0;
  double place = fabs(nextafter((double)b, INFINITY) - (double)b);
  return (double)(fabsl((long double)a - b) / (long double)place);
}

typedef struct curve {
  const char *name;
  double (*ours)(double);
  long double (*theirs)(long double);
  double low, high, most; /* units in the last place */
} curve;

static void functions_are_accurate(void **state) {
  (void)state;
  static const curve curves[] = {
      {"exp", dv_portable_exp, expl, -745, 709, 1.5},
      {"exp", dv_portable_exp, expl, -1, 1, 1.5},
      {"expm1", dv_portable_expm1, expm1l, -2, 2, 2},
      {"log", dv_portable_log, logl, 0, 3, 1.5},
      {"log", dv_portable_log, logl, 0, 1e300, 1.5},
      {"log1p", dv_portable_log1p, log1pl, -0.99, 3, 2},
      {"log1p", dv_portable_log1p, log1pl, -1e-6, 1e-6, 2},
      {"sin", dv_portable_sin, sinl, -7, 7, 2},
      {"sin", dv_portable_sin, sinl, -1e6, 1e6, 4},
      {"cos", dv_portable_cos, cosl, -7, 7, 2},
      {"cos", dv_portable_cos, cosl, -1e6, 1e6, 4},
      {"tanh", dv_portable_tanh, tanhl, -1, 1, 3},
      {"tanh", dv_portable_tanh, tanhl, -25, 25, 3},
      {"erfc", dv_portable_erfc, erfcl, -7, 1, 40},
      {"erfc", dv_portable_erfc, erfcl, 1, 26, 4000},
      {"lgamma", dv_portable_lgamma, lgammal, 3, 1000, 150},
  };
  for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
    const curve *c = &curves[i];
    dv_random random = dv_random_at(i, DV_STREAM_SIMULATION, 0, 0);
    for (int n = 0; n < 20000; n++) {
      double x = c->low + (c->high - c->low) * dv_random_uniform(&random);
      double apart = units(c->ours(x), c->theirs(x));
      if (!(apart <= c->most)) fail_msg("%s(%.17g) is %g units from the truth", c->name, x, apart);
    }
  }
}

static void lgamma_near_its_roots(void **state) {
  (void)state;
  for (double x = 0.01; x < 3; x += 0.001)
    assert_true(fabs(dv_portable_lgamma(x) - (double)lgammal(x)) < 3e-14);
}

static void powers(void **state) {
  (void)state;
  dv_random random = dv_random_at(1, DV_STREAM_SIMULATION, 0, 0);
  for (int n = 0; n < 20000; n++) {
    double x = 10 * dv_random_uniform(&random), y = 40 * dv_random_uniform(&random) - 20;
    assert_true(units(dv_portable_pow(x, y), powl(x, y)) < 3 + 3 * fabs(y * log(x)));
  }
  for (int n = -20; n <= 20; n++) assert_true(dv_portable_pow(2, n) == ldexp(1, n));
  assert_true(dv_portable_pow(-3, 3) == -27);
  assert_true(dv_portable_pow(-2, 101) < -2.5e30);
  assert_true(isnan(dv_portable_pow(-2, 0.5)));
  assert_true(dv_portable_pow(0, 0.5) == 0);
  assert_true(dv_portable_pow(0, 0) == 1);
}

static void ends_of_the_range(void **state) {
  (void)state;
  assert_true(dv_portable_exp(INFINITY) == INFINITY && dv_portable_exp(710) == INFINITY);
  assert_true(dv_portable_exp(-INFINITY) == 0 && dv_portable_exp(-1000) == 0);
  assert_true(dv_portable_exp(0) == 1 && dv_portable_expm1(0) == 0 && dv_portable_log(1) == 0);
  assert_true(dv_portable_expm1(-INFINITY) == -1);
  assert_true(dv_portable_log(0) == -INFINITY && dv_portable_log(INFINITY) == INFINITY);
  assert_true(units(dv_portable_log(0x1p-1074), logl(0x1p-1074L)) < 2);
  assert_true(isnan(dv_portable_log(-1)) && isnan(dv_portable_sin(INFINITY)));
  assert_true(dv_portable_log1p(-1) == -INFINITY && dv_portable_log1p(INFINITY) == INFINITY);
  assert_true(dv_portable_tanh(INFINITY) == 1 && dv_portable_tanh(-INFINITY) == -1);
  assert_true(dv_portable_erfc(INFINITY) == 0 && dv_portable_erfc(-INFINITY) == 2);
  assert_true(fabs(dv_portable_sin(1e15)) <= 1 && fabs(dv_portable_cos(-1e300)) <= 1);
  double (*const all[])(double) = {dv_portable_exp,   dv_portable_expm1, dv_portable_log,
                                   dv_portable_log1p, dv_portable_sin,   dv_portable_cos,
                                   dv_portable_tanh,  dv_portable_erfc,  dv_portable_lgamma};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) assert_true(isnan(all[i](NAN)));
}

#define KNOWN 0x1.009547244b392p+14

/* Some bits that every machine must find: one that differs would train other models. */
static void bits_are_known(void **state) {
  (void)state;
  double sum = 0;
  for (int i = 1; i < 2000; i++) {
    double x = i / 256.0;
    sum += dv_portable_exp(-x) + dv_portable_log(x) + dv_portable_sin(x) * dv_portable_cos(3 * x) +
           dv_portable_tanh(x / 4) + dv_portable_log1p(x) - dv_portable_expm1(-x) + dv_portable_erfc(x) +
           dv_portable_lgamma(x) + dv_portable_pow(x, 0.3);
  }
  if (sum != KNOWN) fail_msg("the sum is %a", sum);
}

/* ---- Which arithmetic a thread has ---- */

static void look(void *user, int worker) {
  ((bool *)user)[worker] = dv_portable;
}

static void workers_follow_their_caller(void **state) {
  (void)state;
  bool found[3];
  dv_threads *pool = NULL;
  assert_int_equal(dv_threads_new(&pool, 3, NULL), DVBF_OK);
  for (int turn = 0; turn < 4; turn++) {
    DV_COMPUTE(turn % 2);
    dv_threads_run(pool, look, found);
    for (int i = 0; i < 3; i++) assert_int_equal(found[i], turn % 2);
  }
  assert_false(dv_portable);
  dv_threads_free(pool);
}

/* What is smaller than normal numbers stays. */
static void divide(void *user, int worker) {
  volatile float *x = user;
  x[worker] /= 1024;
}

static void tiny_numbers_are_kept(void **state) {
  (void)state;
  dv_threads *pool = NULL;
  assert_int_equal(dv_threads_new(&pool, 2, NULL), DVBF_OK);
  float x[2] = {FLT_MIN, FLT_MIN};
  DV_COMPUTE(true);
  dv_threads_run(pool, divide, x);
  assert_true(x[0] == FLT_MIN / 1024 && x[1] == FLT_MIN / 1024);
  dv_threads_free(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_are_accurate),
      cmocka_unit_test(lgamma_near_its_roots),
      cmocka_unit_test(powers),
      cmocka_unit_test(ends_of_the_range),
      cmocka_unit_test(bits_are_known),
      cmocka_unit_test(workers_follow_their_caller),
      cmocka_unit_test(tiny_numbers_are_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
