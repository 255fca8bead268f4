/* Small dense algebra against its definitions, and against LAPACK. */
#include "base/algebra.h"
#include "base/random.h"

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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_become_orthonormal),
                                     cmocka_unit_test(eigenvectors_are_those_of_lapack),
                                     cmocka_unit_test(an_inverse_is_one)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
