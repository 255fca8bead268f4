/* Linear models of many columns: the lifted system is that of the components and nothing else, and a model
 * that is found on components is as good as the system that made the data allows. */
#include "base/memory.h"
#include "data/dataset.h"
#include "given.h"
#include "identify/identify.h"
#include "math/algebra.h"
#include "math/kalman.h"
#include "math/random.h"
#include "model/linear_gaussian.h"

#include <dvbf/dvbf.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_Z = 2, N_U = 1, COUNT = 3, N_X = 7 };

static void fill(double *to, size_t count, dv_random *r) {
  for (size_t i = 0; i < count; i++) to[i] = dv_random_normal(r);
}

static dv_state_space some_system(dv_random *r) {
  dv_state_space s = {0};
  assert_int_equal(dv_system_new(&s, N_Z, N_U, COUNT, NULL), DVBF_OK);
  fill(s.a, dv_system_size(N_Z, N_U, COUNT), r);
  double root[COUNT * COUNT];
  fill(root, COUNT * COUNT, r);
  dv_product_transposed(s.r, root, root, COUNT, COUNT, COUNT);
  for (int i = 0; i < COUNT; i++) s.r[i * (COUNT + 1)] += 0.5;
  return s;
}

/* Rows of `all` are orthonormal; the first COUNT are the axes. */
static dv_reduction some_reduction(double all[N_X][N_X], dv_random *r) {
  dv_reduction out = {.components = {.n_x = N_X, .count = COUNT, .left_out = 0.8}};
  out.components.axes = dv_calloc(COUNT * N_X, sizeof *out.components.axes);
  out.components.variance = dv_calloc(COUNT, sizeof *out.components.variance);
  fill(all[0], (size_t)N_X * N_X, r);
  dv_orthonormalise(all[0], N_X, N_X);
  for (int i = 0; i < COUNT; i++)
    for (int j = 0; j < N_X; j++) out.components.axes[i * N_X + j] = (dvbf_real)all[i][j];
  for (int i = 0; i < COUNT; i++) out.components.variance[i] = 1;
  return out;
}

/* What `matrix` [N_X][n] has along a direction, column by column. */
static double along(const double *matrix, const double *direction, int n, int column) {
  double sum = 0;
  for (int i = 0; i < N_X; i++) sum += direction[i] * matrix[i * n + column];
  return sum;
}

static double noise_between(const dv_state_space *s, const double *one, const double *other) {
  double sum = 0;
  for (int j = 0; j < N_X; j++) sum += along(s->r, one, N_X, j) * other[j];
  return sum;
}

static void a_lifted_system_is_that_of_the_components(void **state) {
  (void)state;
  const double close = 1e-5; /* axes are floats */
  double all[N_X][N_X];
  dv_random r = dv_random_at(1, DV_STREAM_SIMULATION, 0, 0);
  dv_state_space s = some_system(&r), small = {0};
  dv_reduction reduction = some_reduction(all, &r);
  assert_int_equal(dv_system_copy(&small, &s, NULL), DVBF_OK);
  assert_int_equal(dv_reduction_lift(&s, &reduction, NULL), DVBF_OK);
  assert_int_equal(s.n_x, N_X);
  for (int k = 0; k < N_X; k++) {
    bool inside = k < COUNT;
    for (int j = 0; j < N_Z; j++) {
      assert_true(fabs(along(s.h, all[k], N_Z, j) - (inside ? small.h[k * N_Z + j] : 0)) < close);
      double gain = 0;
      for (int i = 0; i < N_X; i++) gain += s.s[j * N_X + i] * all[k][i];
      assert_true(fabs(gain - (inside ? small.s[j * COUNT + k] : 0)) < close);
    }
    assert_true(fabs(along(s.d, all[k], N_U, 0) - (inside ? small.d[k] : 0)) < close);
    assert_true(fabs(along(s.shift_x, all[k], 1, 0) - (inside ? small.shift_x[k] : 0)) < close);
    for (int l = 0; l < N_X; l++) {
      double expected = inside && l < COUNT ? small.r[k * COUNT + l] : k == l ? 0.8 / (N_X - COUNT) : 0;
      assert_true(fabs(noise_between(&s, all[k], all[l]) - expected) < close);
    }
  }
  assert_memory_equal(s.a, small.a, sizeof(double) * N_Z * N_Z);
  assert_memory_equal(s.b, small.b, sizeof(double) * N_Z * N_U);
  /* ln N of a residual of squared length 0.8 in the directions outside. */
  double variance = 0.8 / (N_X - COUNT);
  assert_true(fabs(dv_reduction_log_p(&reduction) -
                   -0.5 * (N_X - COUNT) * (log(2 * 3.14159265358979 * variance) + 1)) < 1e-9);
  dv_reduction_clear(&reduction);
  dv_system_clear(&s);
  dv_system_clear(&small);
}

/* ---- A model ---- */

enum { COLUMNS = 90, STEPS = 40, SEQUENCES = 30 };

/* Two states that turn and are driven, seen by 90 columns with little noise. */
static dvbf_sequences simulate(uint32_t seed) {
  dvbf_sequences s = {.count = SEQUENCES, .steps = STEPS, .n_x = COLUMNS, .n_u = 1};
  assert_int_equal(dv_sequences_allocate(&s, false, NULL), DVBF_OK);
  for (size_t i = 0; i < s.count; i++) {
    dv_random r = dv_random_at(7, DV_STREAM_SIMULATION, seed, (uint32_t)i);
    double z[2] = {dv_random_normal(&r), dv_random_normal(&r)};
    for (size_t t = 0; t < STEPS; t++) {
      size_t at = i * STEPS + t;
      double u = dv_random_normal(&r), first = z[0];
      for (int k = 0; k < COLUMNS; k++)
        s.x[at * COLUMNS + (size_t)k] =
            (float)(z[0] * cos(0.07 * k) + z[1] * sin(0.05 * k) + 0.1 * dv_random_normal(&r));
      s.u[at] = (float)u;
      z[0] = 0.9 * first - 0.3 * z[1] + 0.2 * u + 0.1 * dv_random_normal(&r);
      z[1] = 0.3 * first + 0.9 * z[1] + 0.1 * dv_random_normal(&r);
    }
  }
  return s;
}

static double one_step(const dvbf_model *m, const dvbf_sequences *s) {
  dv_state_space system = {0};
  assert_int_equal(dv_system_new(&system, m->n_z, m->n_u, m->n_x, NULL), DVBF_OK);
  dv_linear_get(m, &system);
  double *memory = calloc(dv_kalman_size(m->n_z, m->n_x), sizeof *memory), sum = 0, count = 0;
  double x[COLUMNS], guess[COLUMNS];
  assert_non_null(memory);
  for (size_t i = 0; i < 5; i++) {
    dv_kalman k = dv_kalman_begin(&system, memory);
    for (size_t t = 0; t < STEPS; t++) {
      size_t at = i * STEPS + t;
      double u = ((double)s->u[at] - (double)m->u.shift[0]) * (double)m->u.scale[0];
      for (size_t c = 0; c < COLUMNS; c++)
        x[c] = ((double)s->x[at * COLUMNS + c] - (double)m->x.shift[c]) * (double)m->x.scale[c];
      dv_system_emit(&system, k.mean, &u, guess);
      for (size_t c = 0; c < COLUMNS && t >= 10; c++) {
        double apart = (x[c] - guess[c]) / (double)m->x.scale[c];
        sum += apart * apart, count++;
      }
      assert_true(dv_kalman_observe(&k, x, &u));
      dv_kalman_move(&k, &u);
    }
  }
  free(memory);
  dv_system_clear(&system);
  return sqrt(sum / count);
}

/* Noise of 0.1 in each column, and of 0.1 in each state, which a column sees with a weight of about 1. */
static void many_columns_are_as_good_as_few(void **state) {
  (void)state;
  static const char *const fits[] = {"linear-fit=subspace", "linear-fit=em"};
  dvbf_sequences train = simulate(1), test = simulate(2);
  for (int i = 0; i < 2; i++) {
    dvbf_settings *settings = settings_of("train", "model=linear threads=1 x-scaling=standardise");
    dvbf_settings *more = settings_of("train", fits[i]);
    dvbf_data data = {.train = train};
    dvbf_model *m = NULL;
    dvbf_error error;
    assert_int_equal(dv_settings_lay(settings, more, NULL), DVBF_OK);
    if (dvbf_train(&m, settings, &data, NULL, &error)) fail_msg("%s", error.message);
    double found = one_step(m, &test);
    print_message("%s: one step %.4f, order %d\n", fits[i], found, m->n_z);
    assert_true(found > 0.13 && found < 0.155);
    dvbf_model_free(m);
    dvbf_settings_free(settings);
    dvbf_settings_free(more);
  }
  dvbf_sequences_free(&train);
  dvbf_sequences_free(&test);
}

/* The best system of the same data is found once, however often it is asked for; gaps are filled alike. */
static void the_best_system_is_found_once(void **unused) {
  (void)unused;
  enum { FEW = 40 }; /* allocations, where a search needs thousands */
  dvbf_sequences s = simulate(2);
  s.n_x = 2; /* of the values, whatever they mean then */
  s.gaps = true;
  for (size_t i = 0; i < 1200; i += 3) s.x[2 * i + i % 2] = NAN;
  assert_int_equal(dv_facts_begin(&s, NULL), DVBF_OK);
  dvbf_data data = {.train = s};
  dv_state_space first = {0}, again = {0};
  dv_linear_choice choice[2];
  dv_recordings r[2] = {0};
  assert_int_equal(dv_identify_data(&first, &choice[0], &r[0], &data, 0, -1, NULL, NULL), DVBF_OK);
  unsigned long before = dv_allocations();
  assert_int_equal(dv_identify_data(&again, &choice[1], &r[1], &data, 0, -1, NULL, NULL), DVBF_OK);
  assert_true(dv_allocations() - before < FEW);
  size_t size = dv_system_size(first.n_z, first.n_u, first.n_x);
  assert_int_equal(first.n_z, again.n_z);
  assert_memory_equal(first.a, again.a, size * sizeof *first.a);
  assert_non_null(r[0].filled);
  assert_memory_equal(r[0].filled, r[1].filled, r[0].frames * 2 * sizeof *r[0].filled);
  assert_true(choice[0].past == choice[1].past && choice[0].judgement == choice[1].judgement);
  dv_system_clear(&again);
  dv_recordings_clear(&r[1]);
  s.x[1001] += 1;
  before = dv_allocations();
  assert_int_equal(dv_identify_data(&again, &choice[1], &r[1], &data, 0, -1, NULL, NULL), DVBF_OK);
  assert_true(dv_allocations() - before > FEW);
  for (int i = 0; i < 2; i++) dv_recordings_clear(&r[i]);
  dv_system_clear(&first);
  dv_system_clear(&again);
  dvbf_sequences_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_lifted_system_is_that_of_the_components),
                                     cmocka_unit_test(many_columns_are_as_good_as_few),
                                     cmocka_unit_test(the_best_system_is_found_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
