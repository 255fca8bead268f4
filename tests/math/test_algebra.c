/* Small dense algebra against its definitions, and against LAPACK. */
#include "math/algebra.h"
#include "math/random.h"

#include <lapacke.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { N = 7 };

static void fill(double *to, size_t n, uint32_t key) {
  dv_random random = dv_random_at(9, DV_STREAM_SIMULATION, key, 0);
  for (size_t i = 0; i < n; i++) to[i] = dv_random_normal(&random);
}

static void rows_become_orthonormal(void **state) {
  (void)state;
  enum { COUNT = 5 };
  double rows[COUNT * N], before[COUNT * N];
  fill(rows, COUNT * N, 1);
  memcpy(rows + 3 * N, rows, N * sizeof *rows); /* depends on the first */
  memcpy(before, rows, sizeof rows);
  dv_orthonormalise(rows, COUNT, N);
  for (int i = 0; i < COUNT; i++)
    for (int j = 0; j < COUNT; j++)
      assert_true(fabs(dv_dot(rows + i * N, rows + j * N, N) - (i == j)) < 1e-14);
  for (int i = 0; i < COUNT; i++) { /* each row from before lies in the span of the rows up to its own */
    double rest[N];
    memcpy(rest, before + i * N, sizeof rest);
    for (int j = 0; j <= i; j++) {
      double along = dv_dot(rest, rows + j * N, N);
      for (int k = 0; k < N; k++) rest[k] -= along * rows[j * N + k];
    }
    assert_true(dv_dot(rest, rest, N) < 1e-28);
  }
}

static void eigenvectors_are_those_of_lapack(void **state) {
  (void)state;
  double a[N * N], matrix[N * N], vectors[N * N], values[N], half[N * N];
  fill(half, N * N, 2);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) a[i * N + j] = dv_dot(half + i * N, half + j * N, N);
  memcpy(matrix, a, sizeof a);
  dv_diagonalise(matrix, vectors, N);
  for (int v = 0; v < N; v++)
    for (int i = 0; i < N; i++) {
      double product = dv_dot(a + i * N, vectors + v * N, N);
      assert_true(fabs(product - matrix[v * N + v] * vectors[v * N + i]) < 1e-12);
    }
  assert_int_equal(LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'N', 'U', N, a, N, values), 0);
  for (int i = 0; i < N; i++) { /* the same values, in any order */
    double nearest = INFINITY;
    for (int v = 0; v < N; v++) nearest = fmin(nearest, fabs(matrix[v * N + v] - values[i]));
    assert_true(nearest < 1e-12);
  }
}

static void an_inverse_is_one(void **state) {
  (void)state;
  double a[N * N], inverse[N * N], log_det = 0;
  int order[N];
  lapack_int pivots[N];
  fill(a, N * N, 3);
  a[0] = 0; /* a pivot must be looked for */
  memcpy(inverse, a, sizeof a);
  double found = dv_invert(inverse, N, 1e-9, order);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      double sum = 0;
      for (int k = 0; k < N; k++) sum += a[i * N + k] * inverse[k * N + j];
      assert_true(fabs(sum - (i == j)) < 1e-12);
    }
  assert_int_equal(LAPACKE_dgetrf(LAPACK_ROW_MAJOR, N, N, a, N, pivots), 0);
  for (int i = 0; i < N; i++) log_det += log(fabs(a[i * N + i]));
  assert_true(fabs(found - log_det) < 1e-12);
  fill(a, N * N, 3);
  memcpy(a + N, a, N * sizeof *a);
  assert_true(isnan(dv_invert(a, N, 1e-9, order)));
}

/* a - sum_k s_k u_k v_k', and how far u and v are from orthonormal. */
static double flaw_of(const double *a, const double *u, const double *s, const double *v) {
  double worst = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      double sum = a[i * N + j];
      for (int k = 0; k < N; k++) sum -= s[k] * u[k * N + i] * v[k * N + j];
      worst = fmax(worst, fabs(sum));
      worst = fmax(worst, fabs(dv_dot(u + i * N, u + j * N, N) - (i == j)));
      worst = fmax(worst, fabs(dv_dot(v + i * N, v + j * N, N) - (i == j)));
    }
  return worst;
}

static void singular_values_are_those_of_lapack(void **state) {
  (void)state;
  double a[N * N], u[N * N], s[N], v[N * N], copy[N * N], expected[N], rest[N];
  for (uint32_t kind = 0; kind < 5; kind++) {
    fill(a, N * N, 40 + kind);
    for (int i = 0; kind == 1 && i < N; i++) a[3 * N + i] = a[i] + a[N + i];              /* of rank N - 1 */
    for (int i = 0; kind == 2 && i < N * N; i++) a[i] = 1e-3 * a[i] + (i % (N + 1) == 0); /* near I */
    for (int i = 0; kind == 3 && i < N * N; i++) a[i] = i % (N + 1) == 0 ? 2 : 0;         /* all equal */
    for (int i = 0; kind == 4 && i < N * N; i++) a[i] = i / N == 2 ? a[i] : 0;            /* of rank 1 */
    dv_singular_values(a, N, u, s, v);
    assert_true(flaw_of(a, u, s, v) < 1e-13);
    memcpy(copy, a, sizeof a);
    assert_int_equal(
        LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'N', 'N', N, N, copy, N, expected, NULL, N, NULL, N, rest), 0);
    for (int k = 0; k < N; k++) assert_true(fabs(s[k] - expected[k]) < 1e-13 * (1 + expected[0]));
    assert_true(dv_norm_within(a, N, s[0] * (1 + 1e-12), copy));
    assert_false(dv_norm_within(a, N, s[0] * (1 - 1e-12), copy));
  }
  a[5] = NAN; /* is not within anything, and ends */
  assert_false(dv_norm_within(a, N, 1e9, copy));
  dv_singular_values(a, N, u, s, v);
}

static void a_product_with_the_transposed_is_the_same(void **state) {
  (void)state;
  enum { ROWS = 3, SHARED = 5 };
  double a[ROWS * SHARED], b[N * SHARED], b_transposed[SHARED * N], one[ROWS * N], other[ROWS * N];
  fill(a, ROWS * SHARED, 6);
  fill(b, N * SHARED, 7);
  dv_transpose(b_transposed, b, N, SHARED);
  dv_product(one, a, b_transposed, ROWS, SHARED, N);
  dv_product_transposed(other, a, b, ROWS, SHARED, N);
  for (int i = 0; i < ROWS * N; i++) assert_true(fabs(one[i] - other[i]) < 1e-13);
}

/* N x RANK times its transposed. */
static void fill_square(double *out, int rank, uint32_t key) {
  double m[N * N];
  fill(m, (size_t)(N * rank), key);
  dv_product_transposed(out, m, m, N, rank, N);
}

static void factors_give_the_matrix_back(void **state) {
  (void)state;
  for (int rank = 2; rank <= N; rank += N - 2) { /* singular, and regular */
    double a[N * N], l[N * N], back[N * N];
    fill_square(a, rank, 8);
    memcpy(l, a, sizeof l);
    dv_factor(l, N);
    dv_product_transposed(back, l, l, N, N, N);
    for (int i = 0; i < N * N; i++) assert_true(fabs(back[i] - a[i]) < 1e-6);
    for (int i = 0; i < N; i++)
      for (int j = i + 1; j < N; j++) assert_true(l[i * N + j] == 0);
  }
}

static void cholesky_solves_equations(void **state) {
  (void)state;
  enum { SIDES = 3 };
  double a[N * N], u[N * N], b[N * SIDES], x[N * SIDES], back[N * SIDES];
  fill_square(a, N, 9);
  memcpy(u, a, sizeof u);
  fill(b, N * SIDES, 10);
  memcpy(x, b, sizeof x);
  assert_true(dv_cholesky(u, N));
  dv_solve_lower(u, N, x, SIDES);
  dv_solve_upper(u, N, x, SIDES);
  dv_product(back, a, x, N, N, SIDES);
  for (int i = 0; i < N * SIDES; i++) assert_true(fabs(back[i] - b[i]) < 1e-9);
  a[N + 1] = -1;
  assert_false(dv_cholesky(a, N));
}

/* With more rows than columns, also where columns depend on each other: then the solution of least norm. */
static void least_squares_are_those_of_lapack(void **state) {
  (void)state;
  enum { ROWS = 40 };
  double a[ROWS * N], b[ROWS], copy[ROWS * N], expected[ROWS], singular[N], scratch[3 * N * N + 2 * N];
  lapack_int rank;
  for (int dependent = 0; dependent < 3; dependent++) {
    fill(a, (size_t)ROWS * N, 21);
    fill(b, ROWS, 22);
    for (int i = 0; i < ROWS; i++) {
      if (dependent > 0) a[i * N + 3] = 2 * a[i * N] - a[i * N + 5];
      if (dependent > 1) a[i * N + 1] = 0;
    }
    memcpy(copy, a, sizeof a);
    memcpy(expected, b, sizeof b);
    assert_int_equal(
        LAPACKE_dgelsd(LAPACK_ROW_MAJOR, ROWS, N, 1, copy, N, expected, 1, singular, 1e-10, &rank), 0);
    assert_int_equal(rank, N - dependent);
    dv_least_squares(a, b, ROWS, N, 1e-10, scratch);
    for (int j = 0; j < N; j++) assert_true(fabs(b[j] - expected[j]) < 1e-11);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_become_orthonormal),
                                     cmocka_unit_test(eigenvectors_are_those_of_lapack),
                                     cmocka_unit_test(an_inverse_is_one),
                                     cmocka_unit_test(a_product_with_the_transposed_is_the_same),
                                     cmocka_unit_test(factors_give_the_matrix_back),
                                     cmocka_unit_test(cholesky_solves_equations),
                                     cmocka_unit_test(least_squares_are_those_of_lapack),
                                     cmocka_unit_test(singular_values_are_those_of_lapack)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
