/* The kernels of every instruction set that this processor has, fast and portable, against plain code in
 * double precision. */
#include "engine/kernels.h"
#include "math/portable.h"
#include "math/random.h"
#include "settings_tables.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The largest errors that were found, with some room; a worse polynomial fails. */
#define SIGMOID_RELATIVE 4e-7 /* also bounds the exponential: sigmoid(x) = e^x for very negative x */
#define TANH_ABSOLUTE 2e-7
#define SOFTMAX_RELATIVE 6e-7 /* beyond the rounding of its input */
#define NORMAL_ABSOLUTE 2e-6

/* ---- Instruction sets ---- */

static const char *const sets[] = {"base", "v3", "v4"};

/* NULL where the processor lacks the set: dv_kernels_best then answers with another. */
static const dv_kernels *kernels_for(const char *name, bool portable) {
  DV_COMPUTE(portable);
  setenv("DVBF_ISA", name, 1);
  const dv_kernels *k = dv_kernels_best();
  unsetenv("DVBF_ISA");
  return strcmp(k->name, name) ? NULL : k;
}

static const dv_kernels *kernels_of(const char *name) {
  return kernels_for(name, false);
}

#define EACH_SET(k)                                                                                          \
  for (int set_ = 0; set_ < 6; set_++)                                                                       \
    for (const dv_kernels *k = kernels_for(sets[set_ / 2], set_ % 2), *once_ = k; once_; once_ = NULL)

static void sets_are_chosen(void **state) {
  (void)state;
  const dv_kernels *base = kernels_of("base"), *best = dv_kernels_best();
  assert_non_null(base);
  assert_string_equal(base->name, "base");
  assert_ptr_equal(kernels_of(best->name), best);
}

static void portable_sets_are_others(void **state) {
  (void)state;
  assert_ptr_not_equal(kernels_for("base", true), kernels_for("base", false));
  dvbf_error error;
  const dv_products *product;
  DV_COMPUTE(true);
  assert_ptr_equal(dv_kernels_best(), kernels_for(dv_kernels_best()->name, true));
  assert_int_equal(dv_products_choose(&product, DV_BFLOAT16, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "arithmetic = portable"));
}

/* ---- Memory of the exact size, so that sanitizers see every step beyond it ---- */

static float *normal_array(size_t n, uint32_t key) {
  float *x = malloc(n * sizeof *x);
  dv_random random = dv_random_at(1, DV_STREAM_SIMULATION, key, (uint32_t)n);
  assert_non_null(x);
  for (size_t i = 0; i < n; i++) x[i] = (float)dv_random_normal(&random);
  return x;
}

static float *copy_of(const float *x, size_t n) {
  float *y = malloc(n * sizeof *y);
  assert_non_null(y);
  return memcpy(y, x, n * sizeof *y);
}

static void expect_near(double got, double wanted, double margin) {
  if (!(fabs(got - wanted) <= margin)) fail_msg("%.9g where %.9g was expected, +- %.2g", got, wanted, margin);
}

/* ---- Products ---- */

/* Strides of a (by row of c, by summed index) and b (by summed index, by column of c). */
typedef struct layout {
  size_t a_row, a_sum, b_sum, b_col;
} layout;

/* Products and the error of a term of their sums, beyond the rounding of floats. */
typedef struct suspect {
  const dv_products *product;
  double error;
} suspect;

/* c[m][n] += sum over depth, and the bound of its rounding. */
static void expect_product(const float *got, const float *before, const float *a, const float *b, layout l,
                           int m, int n, int depth, double error, const char *what) {
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = before[i * n + j], size = fabs(sum);
      for (int k = 0; k < depth; k++) {
        double term = (double)a[i * l.a_row + k * l.a_sum] * (double)b[k * l.b_sum + j * l.b_col];
        sum += term;
        size += fabs(term);
      }
      double margin = ((2 + sqrt(depth)) * FLT_EPSILON + error) * size;
      if (!(fabs(got[i * n + j] - sum) <= margin))
        fail_msg("%s: [%d][%d] of %d x %d x %d is %.9g, not %.9g", what, i, j, m, n, depth, got[i * n + j],
                 sum);
    }
}

/* nn with a first row, and nt and tn that do not add: what c held before must not matter. */
static void check_started(suspect s, const float *a, const float *b, int m, int n, int depth) {
  float *start = normal_array((size_t)n, 4), *before = calloc((size_t)m * (size_t)n, sizeof *before);
  float *c = normal_array((size_t)m * (size_t)n, 5);
  for (int i = 0; i < m * n; i++) before[i] = start[i % n], c[i] = i % 2 ? NAN : c[i];
  s.product->nn(c, start, a, b, m, n, depth);
  expect_product(c, before, a, b, (layout){(size_t)depth, 1, (size_t)n, 1}, m, n, depth, s.error,
                 "nn with a first row");
  for (int i = 0; i < m * n; i++) before[i] = 0, c[i] = NAN;
  s.product->nt(c, false, a, b, m, depth, n);
  expect_product(c, before, a, b, (layout){(size_t)depth, 1, 1, (size_t)depth}, m, n, depth, s.error,
                 "nt that does not add");
  for (int i = 0; i < m * n; i++) c[i] = NAN;
  s.product->tn(c, false, a, b, depth, n, m);
  expect_product(c, before, a, b, (layout){1, (size_t)m, (size_t)n, 1}, m, n, depth, s.error,
                 "tn that does not add");
  free(start);
  free(before);
  free(c);
}

/* The three products whose result is m x n and whose sums are `depth` long. */
static void check_suspect(suspect s, int m, int n, int depth) {
  size_t sm = (size_t)m, sn = (size_t)n, sd = (size_t)depth;
  float *a = normal_array(sm * sd, 1), *b = normal_array(sn * sd, 2), *before = normal_array(sm * sn, 3);
  float *c = copy_of(before, sm * sn);
  s.product->nn(c, NULL, a, b, m, n, depth);
  expect_product(c, before, a, b, (layout){sd, 1, sn, 1}, m, n, depth, s.error, "nn");
  memcpy(c, before, sm * sn * sizeof *c);
  s.product->nt(c, true, a, b, m, depth, n);
  expect_product(c, before, a, b, (layout){sd, 1, 1, sd}, m, n, depth, s.error, "nt");
  memcpy(c, before, sm * sn * sizeof *c);
  s.product->tn(c, true, a, b, depth, n, m);
  expect_product(c, before, a, b, (layout){1, sm, sn, 1}, m, n, depth, s.error, "tn");
  check_started(s, a, b, m, n, depth);
  free(a);
  free(b);
  free(c);
  free(before);
}

static void check_products(const dv_kernels *k, int m, int n, int depth) {
  check_suspect((suspect){k->product, 0}, m, n, depth);
}

static void products_of_many_shapes(void **state) {
  (void)state;
  dv_random random = dv_random_at(7, DV_STREAM_SIMULATION, 0, 0);
  EACH_SET(k) {
    for (int n = 1; n <= 17; n++) /* narrow results, sums shorter and longer than a vector */
      for (int depth = 1; depth <= 70; depth += 1 + depth / 8)
        check_products(k, 1 + (n * depth) % 13, n, depth);
    for (int i = 0; i < 250; i++)
      check_products(k, 1 + (int)(dv_random_word(&random) % 70), 1 + (int)(dv_random_word(&random) % 70),
                     1 + (int)(dv_random_word(&random) % 70));
  }
}

/* Widths of whole and ragged panels, rows below and above those from which panels are packed, deep sums. */
static void products_at_the_edges(void **state) {
  (void)state;
  static const int widths[] = {1, 3, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 128},
                   rows[] = {1, 5, 6, 63, 64, 65};
  EACH_SET(k) {
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
      for (size_t j = 0; j < sizeof rows / sizeof *rows; j++) check_products(k, rows[j], widths[i], 19);
    static const int depths[] = {255, 256, 257, 512, 513, 700};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
      check_products(k, 7, 3, depths[i]);
      check_products(k, 67, 33, depths[i]);
      check_products(k, depths[i], 2, 5); /* narrow operands too long to be turned round */
      check_products(k, depths[i], 16, 3);
    }
  }
}

/* Fewer rows than a tile has, and one more, for widths and depths that nothing divides. */
static void products_of_few_rows(void **state) {
  (void)state;
  static const int widths[] = {1, 5, 7, 8, 13, 16, 24, 31, 48, 49, 64, 80, 111, 128},
                   depths[] = {1, 2, 3, 5, 7, 31, 128, 257};
  EACH_SET(k) {
    for (int m = 1; m <= 7; m++)
      for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (size_t j = 0; j < sizeof depths / sizeof *depths; j++)
          check_products(k, m, widths[i], depths[j]);
  }
}

/* A row of a b does not depend, not even by rounding, on how many others there are. */
static void rows_stand_alone(void **state) {
  (void)state;
  enum { MOST = 13, DEPTH = 37 };
  static const int widths[] = {5, 16, 20, 32, 40, 64, 128};
  EACH_SET(k) {
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
      size_t n = (size_t)widths[i];
      float *a = normal_array(MOST * DEPTH, 1), *b = normal_array(DEPTH * n, 2), *start = normal_array(n, 3);
      float *one = normal_array(n, 4), *all = normal_array(MOST * n, 5);
      for (int m = 1; m <= MOST; m++) {
        k->product->nn(all, start, a, b, m, (int)n, DEPTH);
        k->product->nn(all, NULL, a, b, m, (int)n, DEPTH);
        for (int r = 0; r < m; r++) {
          k->product->nn(one, start, a + r * DEPTH, b, 1, (int)n, DEPTH);
          k->product->nn(one, NULL, a + r * DEPTH, b, 1, (int)n, DEPTH);
          assert_memory_equal(one, all + (size_t)r * n, n * sizeof *one);
        }
      }
      free(a), free(b), free(start), free(one), free(all);
    }
  }
}

/* ---- Portable kernels: no bit depends on the instruction set ---- */

/* What a set makes of one shape by all three products, behind each other. */
static size_t product_bits(const dv_kernels *k, float *out, int m, int n, int depth) {
  size_t sm = (size_t)m, sn = (size_t)n, sd = (size_t)depth;
  float *a = normal_array(sm * sd, 1), *b = normal_array(sd * sn, 2), *c = normal_array(sm * sn, 3);
  for (int add = 0; add < 2; add++) {
    float *nn = out + (size_t)(3 * add) * sm * sn, *nt = nn + sm * sn, *tn = nt + sm * sn;
    memcpy(nn, c, sm * sn * sizeof *c);
    memcpy(nt, c, sm * sn * sizeof *c);
    memcpy(tn, c, sm * sn * sizeof *c);
    k->product->nn(nn, add ? NULL : b, a, b, m, n, depth);
    k->product->nt(nt, add, a, b, m, depth, n);
    k->product->tn(tn, add, a, b, depth, n, m);
  }
  free(a);
  free(b);
  free(c);
  return 6 * sm * sn;
}

static void portable_products(void **state) {
  (void)state;
  enum { MOST = 6 * 80 * 80 };
  static float first[MOST], other[MOST];
  dv_random random = dv_random_at(9, DV_STREAM_SIMULATION, 0, 0);
  for (int i = 0; i < 400; i++) {
    int m = 1 + (int)(dv_random_word(&random) % 80), n = 1 + (int)(dv_random_word(&random) % 80);
    int depth = 1 + (int)(dv_random_word(&random) % (i % 8 ? 70 : 700));
    if (i % 3 == 0) n = 1 + n % 18;
    size_t size = product_bits(kernels_for("base", true), first, m, n, depth);
    for (int s = 1; s < 3; s++) {
      const dv_kernels *k = kernels_for(sets[s], true);
      if (!k) continue;
      product_bits(k, other, m, n, depth);
      assert_memory_equal(first, other, size * sizeof *first);
    }
  }
}

enum { BITS = 1003, BIT_ROWS = 17, BIT_COLS = BITS / BIT_ROWS }; /* no number of lanes divides these */

/* What a set makes of the same numbers by all other kernels, [30][BITS] at most. */
static void other_bits(const dv_kernels *k, float out[30][BITS]) {
  float *x = normal_array(BITS, 1), *y = normal_array(BITS, 2), *g = normal_array(BITS, 3);
  float *s = normal_array(BITS, 4);
  uint32_t words[BITS + 1];
  double squares = 0;
  dv_random random = dv_random_at(5, DV_STREAM_SIMULATION, 0, 0);
  for (int i = 0; i <= BITS; i++) words[i] = dv_random_word(&random);
  for (int i = 0; i < BITS; i++) s[i] = fabsf(s[i]);
  for (int i = 0; i < 30; i++) memcpy(out[i], x, sizeof out[i]);
  for (int a = 0; a < 5; a++) {
    k->activate((dvbf_activation)a, out[a], BIT_ROWS, BIT_COLS);
    k->activate_backward((dvbf_activation)a, out[5 + a], out[a], BIT_ROWS, BIT_COLS);
    if (a == DVBF_SOFTMAX) continue;
    k->moments((dvbf_activation)a, out[10 + a], out[15 + a], x, s, 0.1f, BITS);
    k->moments_backward((dvbf_activation)a, out[20 + a], out[25 + a], x, s, g, y, 0.1f, BITS);
  }
  k->normals(out[14], words, BITS - 1);
  k->gaussian(out[19], x, y, s, 1, -9, BIT_ROWS, BIT_COLS);
  k->gaussian(out[19] + BIT_ROWS, x, y, s, BITS, -9, BIT_ROWS, BIT_COLS);
  k->bernoulli(out[19] + 2 * BIT_ROWS, s, y, BIT_ROWS, BIT_COLS);
  k->mix(out[19] + 3 * BIT_ROWS, x, y, BIT_ROWS, 3, 5);
  k->column_sum(out[19] + 400, x, BIT_ROWS, BIT_COLS);
  squares = k->reduce((float *[]){x, y, g}, 1, BITS - 1, 3);
  memcpy(out[19] + 600, &squares, sizeof squares);
  k->gaussian_backward(out[24], true, out[29], g, x, y, s, BITS, -9, BIT_ROWS, BIT_COLS);
  k->gaussian_backward(out[24], true, out[29], g, x, y, s, 1, -9, BIT_ROWS, BIT_COLS);
  k->bernoulli_backward(out[24], g, x, y, BIT_ROWS, BIT_COLS);
  k->adam(out[0], g, x, s, BITS, 0.01f, 0.9f, 0.99f, 1e-8f, 0.7f);
  k->adadelta(out[1], g, s, y, BITS, 1, 0.9f, 1e-6f, 0.7f);
  free(x);
  free(y);
  free(g);
  free(s);
}

static void portable_kernels(void **state) {
  (void)state;
  static float first[30][BITS], other[30][BITS];
  other_bits(kernels_for("base", true), first);
  for (int s = 1; s < 3; s++) {
    const dv_kernels *k = kernels_for(sets[s], true);
    if (!k) continue;
    other_bits(k, other);
    for (int i = 0; i < 30; i++) assert_memory_equal(first[i], other[i], sizeof first[i]);
  }
}

/* ---- Products on tile units ---- */

#if defined(DV_TILES)
extern const dv_products dv_products_all_bfloat16x3, dv_products_all_bfloat16;

/* Both kinds, with the bounds of their errors: what a term lacks after splitting, or after rounding alone. */
static const suspect on_tiles[] = {{&dv_products_all_bfloat16x3, 0x1p-15},
                                   {&dv_products_all_bfloat16, 0x1.01p-7}};
#else
static const suspect on_tiles[2];
#endif

#define EACH_KIND(s) for (const suspect *s = on_tiles; s < on_tiles + 2; s++)

/* The chosen products, or the test is skipped where the machine has no tile units. */
static const dv_products *tiles_or_skip(int64_t choice) {
  const dv_products *product = NULL;
  dvbf_error error;
  if (!dv_products_choose(&product, choice, &error)) return product;
  print_message("not tested: %s\n", error.message);
  skip();
  return NULL;
}

static void tiles_of_many_shapes(void **state) {
  (void)state;
  tiles_or_skip(DV_BFLOAT16X3);
  dv_random random = dv_random_at(8, DV_STREAM_SIMULATION, 0, 0);
  EACH_KIND(s) {
    for (int m = 1; m <= 33; m++) /* every edge in each direction, odd sums */
      for (int n = 1; n <= 33; n += 1 + n / 3) {
        check_suspect(*s, m, n, 1 + (m * 7 + n) % 67);
        check_suspect(*s, n, m, 1 + (m * 5 + n) % 67);
      }
    for (int i = 0; i < 150; i++)
      check_suspect(*s, 1 + (int)(dv_random_word(&random) % 100), 1 + (int)(dv_random_word(&random) % 100),
                    1 + (int)(dv_random_word(&random) % 100));
  }
}

/* Around the width and depth that are packed at once, and the shapes of the model. */
static void tiles_at_the_edges(void **state) {
  (void)state;
  tiles_or_skip(DV_BFLOAT16X3);
  static const int around[] = {255, 256, 257, 271, 288, 513};
  EACH_KIND(s) {
    for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
      check_suspect(*s, 35, 21, around[i]);
      check_suspect(*s, 35, around[i], 21);
      check_suspect(*s, around[i], 21, 35);
      check_suspect(*s, 3, around[i], around[i]);
    }
    check_suspect(*s, 375, 128, 256);
    check_suspect(*s, 128, 128, 375);
  }
}

/* Large products go to the tile units, where bfloat16 errs more than float can; small ones stay float. */
static void tiles_take_large_products(void **state) {
  (void)state;
  for (int64_t choice = DV_BFLOAT16X3; choice <= DV_BFLOAT16; choice++) {
    const dv_products *chosen = tiles_or_skip(choice), *plain = dv_kernels_best()->product;
    for (int size = 8; size <= 64; size += 56) {
      size_t n = (size_t)size * (size_t)size;
      float *a = normal_array(n, 1), *b = normal_array(n, 2), *c = normal_array(n, 3), *d = copy_of(c, n);
      chosen->nn(c, NULL, a, b, size, size, size);
      plain->nn(d, NULL, a, b, size, size, size);
      assert_int_equal(!memcmp(c, d, n * sizeof *c), size == 8);
      free(a);
      free(b);
      free(c);
      free(d);
    }
  }
}

/* What is not finite must reach the gradient, where training sees it; it stays in its row. */
static void tiles_pass_nan(void **state) {
  (void)state;
  enum { M = 40, N = 20, K = 50, AT = 17 };
  tiles_or_skip(DV_BFLOAT16X3);
  static const float bad[] = {NAN, INFINITY, -INFINITY};
  EACH_KIND(s)
  for (int i = 0; i < 3; i++) {
    float *a = normal_array(M * K, 1), *b = normal_array(K * N, 2), *c = normal_array(M * N, 3);
    a[AT * K + K - 1] = bad[i];
    s->product->nn(c, NULL, a, b, M, N, K);
    for (int j = 0; j < M * N; j++) assert_int_equal(!isfinite(c[j]), j / N == AT);
    free(a);
    free(b);
    free(c);
  }
}

/* ---- Activations ---- */

enum { POINTS = 200001 };

/* Points from low to high through one activation. */
static float *activated(const dv_kernels *k, dvbf_activation a, double low, double high, float *x) {
  float *y = malloc(POINTS * sizeof *y);
  assert_non_null(y);
  for (int i = 0; i < POINTS; i++) x[i] = y[i] = (float)(low + (high - low) * i / (POINTS - 1));
  k->activate(a, y, 1, POINTS);
  return y;
}

static void sigmoid_is_accurate(void **state) {
  (void)state;
  float *x = malloc(POINTS * sizeof *x);
  EACH_SET(k) {
    double worst = 0;
    float *y = activated(k, DVBF_SIGMOID, -86, 40, x);
    for (int i = 0; i < POINTS; i++) {
      double wanted = 1 / (1 + exp(-(double)x[i]));
      worst = fmax(worst, fabs(y[i] - wanted) / wanted);
    }
    print_message("%s: sigmoid within %.2g\n", k->name, worst);
    assert_true(worst < SIGMOID_RELATIVE);
    free(y);
  }
  free(x);
}

static void tanh_is_accurate(void **state) {
  (void)state;
  float *x = malloc(POINTS * sizeof *x);
  EACH_SET(k) {
    double worst = 0;
    float *y = activated(k, DVBF_TANH, -20, 20, x);
    for (int i = 0; i < POINTS; i++) worst = fmax(worst, fabs(y[i] - tanh((double)x[i])));
    print_message("%s: tanh within %.2g\n", k->name, worst);
    assert_true(worst < TANH_ABSOLUTE);
    free(y);
  }
  free(x);
}

/* Relative error beyond that of rounding x - top, which compilers place before or behind other differences.
 */
static double softmax_error(const float *x, const float *y, int n) {
  double top = x[0], sum = 0, worst = 0;
  for (int i = 0; i < n; i++) top = fmax(top, x[i]);
  for (int i = 0; i < n; i++) sum += exp(x[i] - top);
  for (int i = 0; i < n; i++) {
    double wanted = exp(x[i] - top) / sum, rounding = 0.5 * FLT_EPSILON * (fabs(x[i]) + fabs(top));
    worst = fmax(worst, fabs(y[i] - wanted) / wanted - rounding);
  }
  return worst;
}

static void softmax_is_accurate(void **state) {
  (void)state;
  EACH_SET(k) {
    double worst = 0;
    for (int n = 1; n <= 40; n++) {
      float *x = normal_array(5 * (size_t)n, 11);
      for (int i = 0; i < 5 * n; i++) x[i] *= 8;
      float *y = copy_of(x, 5 * (size_t)n);
      k->activate(DVBF_SOFTMAX, y, 5, n);
      for (int r = 0; r < 5; r++) worst = fmax(worst, softmax_error(x + r * n, y + r * n, n));
      free(x);
      free(y);
    }
    print_message("%s: softmax within %.2g\n", k->name, worst);
    assert_true(worst < SOFTMAX_RELATIVE);
  }
}

static void activations_saturate(void **state) {
  (void)state;
  EACH_SET(k) {
    float s[] = {-1e30f, -1000, 1000, 1e30f, -INFINITY, INFINITY}, t[6];
    memcpy(t, s, sizeof t);
    k->activate(DVBF_SIGMOID, s, 1, 6);
    k->activate(DVBF_TANH, t, 1, 6);
    static const int signs[] = {-1, -1, 1, 1, -1, 1};
    for (int i = 0; i < 6; i++) {
      expect_near(s[i], signs[i] > 0, 1e-37);
      expect_near(t[i], signs[i], 0);
    }
    float m[] = {1000, -1000, 999, -1e30f, 1000};
    k->activate(DVBF_SOFTMAX, m, 1, 5);
    expect_near(m[0], 1 / (2 + exp(-1)), 1e-6);
    expect_near(m[1] + m[3], 0, 1e-30);
  }
}

/* A value that is not a number must reach the bound, where training sees it, through every activation. */
static void nan_passes(void **state) {
  (void)state;
  EACH_SET(k)
  for (int a = DVBF_LINEAR; a <= DVBF_SOFTMAX; a++)
    for (int at = 0; at < 37; at += 9) {
      float *y = normal_array(37, 5);
      y[at] = NAN;
      k->activate((dvbf_activation)a, y, 1, 37);
      if (!isnan(y[at])) fail_msg("%s: activation %d turns NaN at %d into %g", k->name, a, at, y[at]);
      free(y);
    }
}

/* ReLU is exact, and each derivative is that of the output. */
static void activations_backward(void **state) {
  (void)state;
  enum { ROWS = 3, N = 21 };
  EACH_SET(k)
  for (int a = DVBF_LINEAR; a <= DVBF_SOFTMAX; a++) {
    float *x = normal_array(ROWS * N, 8), *y = copy_of(x, ROWS * N), *d = normal_array(ROWS * N, 9);
    float *g = copy_of(d, ROWS * N);
    k->activate((dvbf_activation)a, y, ROWS, N);
    k->activate_backward((dvbf_activation)a, g, y, ROWS, N);
    for (int i = 0; i < ROWS * N; i++) {
      double dot = 0, yi = y[i], wanted = d[i];
      for (int j = i / N * N; j < i / N * N + N; j++) dot += (double)d[j] * y[j];
      if (a == DVBF_RELU) wanted *= x[i] > 0, expect_near(yi, fmax(x[i], 0), 0);
      if (a == DVBF_TANH) wanted *= 1 - yi * yi;
      if (a == DVBF_SIGMOID) wanted *= yi * (1 - yi);
      if (a == DVBF_SOFTMAX) wanted = yi * (d[i] - dot);
      expect_near(g[i], wanted, 1e-6);
    }
    free(x);
    free(y);
    free(d);
    free(g);
  }
}

/* ---- Normal numbers ---- */

enum { NORMALS = 1 << 18 };

static void fill_words(uint32_t *words) {
  for (uint32_t i = 0; i < NORMALS / 4; i++) {
    dv_random_words block = dv_random_block(99, DV_STREAM_SIMULATION, i, 0, 0);
    memcpy(words + 4 * i, block.word, sizeof block.word);
  }
}

static void expect_moments(const float *x) {
  double sum[5] = {0}, n = NORMALS, together = 0;
  for (int i = 0; i < NORMALS; i++)
    for (int p = 1; p <= 4; p++) sum[p] += pow(x[i], p) / n;
  for (int i = 0; i < NORMALS; i += 2) together += (double)x[i] * x[i + 1] / (n / 2);
  /* Four standard deviations of each average. */
  expect_near(sum[1], 0, 4 * sqrt(1 / n));
  expect_near(sum[2], 1, 4 * sqrt(2 / n));
  expect_near(sum[3], 0, 4 * sqrt(15 / n));
  expect_near(sum[4], 3, 4 * sqrt(96 / n));
  expect_near(together, 0, 4 * sqrt(2 / n));
}

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return x < y ? -1 : x > y;
}

/* Kolmogorov and Smirnov: the largest distance between the empirical distribution and Phi. Sorts x. */
static double distance_from_normal(float *x) {
  double worst = 0;
  qsort(x, NORMALS, sizeof *x, by_value);
  for (int i = 0; i < NORMALS; i++) {
    double phi = 0.5 * erfc(-(double)x[i] / sqrt(2));
    worst = fmax(worst, fmax(fabs(phi - (double)i / NORMALS), fabs(phi - (i + 1.0) / NORMALS)));
  }
  return worst;
}

static void normals_are_normal(void **state) {
  (void)state;
  uint32_t *words = malloc(NORMALS * sizeof *words);
  float *x = malloc(NORMALS * sizeof *x);
  fill_words(words);
  EACH_SET(k) {
    k->normals(x, words, NORMALS);
    expect_moments(x);
    assert_true(distance_from_normal(x) * sqrt(NORMALS) < 1.95); /* one chance in a thousand */
  }
  free(words);
  free(x);
}

/* Against Box and Muller in double, on the 24 bits that a float can hold. */
static void normals_are_accurate(void **state) {
  (void)state;
  uint32_t *words = malloc(NORMALS * sizeof *words);
  float *x = malloc(NORMALS * sizeof *x);
  fill_words(words);
  EACH_SET(k) {
    double worst = 0;
    k->normals(x, words, NORMALS);
    for (int i = 0; i < NORMALS; i += 2) {
      double u = ((words[i] >> 8) + 0.5) / 16777216, turn = 2 * M_PI * ((words[i + 1] >> 8) + 0.5) / 16777216;
      double radius = sqrt(-2 * log(u));
      if (u > 0.999) continue; /* there the rounding of u itself is what differs, in numbers near 0 */
      worst = fmax(worst, fmax(fabs(x[i] - radius * cos(turn)), fabs(x[i + 1] - radius * sin(turn))));
    }
    print_message("%s: normals within %.2g\n", k->name, worst);
    assert_true(worst < NORMAL_ABSOLUTE);
  }
  free(words);
  free(x);
}

static void normals_of_extreme_words(void **state) {
  (void)state;
  static const uint32_t ends[] = {0,          1,          0xff,       0x100,      0x3fffffff,
                                  0x40000000, 0x7fffffff, 0x80000000, 0xbfffffff, 0xc0000000,
                                  0xfffffeff, 0xffffff00, 0xfffffffe, 0xffffffff};
  enum { ENDS = sizeof ends / sizeof *ends };
  uint32_t words[2 * ENDS * ENDS];
  float x[2 * ENDS * ENDS];
  for (int i = 0; i < ENDS * ENDS; i++) {
    words[2 * i] = ends[i / ENDS];
    words[2 * i + 1] = ends[i % ENDS];
  }
  EACH_SET(k) {
    k->normals(x, words, 2 * ENDS * ENDS);
    for (int i = 0; i < 2 * ENDS * ENDS; i++) assert_true(isfinite(x[i]) && fabsf(x[i]) < 6);
  }
}

/* ---- Likelihoods ---- */

enum { LIKELY_ROWS = 5, LIKELY_N = 37 };

static double floored(const float *s, size_t n_sigma, int r, int i, double floor) {
  return fmax(n_sigma == 1 ? s[0] : n_sigma == LIKELY_N ? s[i] : s[r * LIKELY_N + i], floor);
}

static void check_gaussian(const dv_kernels *k, size_t n_sigma, bool fixed, float floor) {
  enum { ROWS = LIKELY_ROWS, N = LIKELY_N };
  float *x = normal_array(ROWS * N, 1), *mean = normal_array(ROWS * N, 2), *s = normal_array(n_sigma, 3);
  float *g = normal_array(ROWS, 4), out[ROWS], *d_mean = normal_array(ROWS * N, 5),
        *d_s = normal_array(n_sigma, 6);
  double *wanted = calloc(n_sigma, sizeof *wanted), before;
  for (size_t i = 0; i < n_sigma; i++) wanted[i] = d_s[i];
  k->gaussian(out, x, mean, s, n_sigma, floor, ROWS, N);
  float *old = copy_of(d_mean, ROWS * N);
  for (int i = 0; i < ROWS * N && !fixed; i++) old[i] = 0, d_mean[i] = NAN; /* then it does not add */
  k->gaussian_backward(d_mean, fixed, fixed ? NULL : d_s, g, x, mean, s, n_sigma, floor, ROWS, N);
  for (int r = 0; r < ROWS; r++) {
    double sum = 0, size = 0;
    for (int i = 0; i < N; i++) {
      double ls = floored(s, n_sigma, r, i, floor), e = ((double)x[r * N + i] - mean[r * N + i]) * exp(-ls);
      sum -= 0.5 * e * e + ls + 0.5 * log(2 * M_PI);
      size += 0.5 * e * e + fabs(ls) + 1;
      before = old[r * N + i];
      expect_near(d_mean[r * N + i], before + g[r] * e * exp(-ls), 1e-5 * (1 + fabs(e * exp(-ls))));
      size_t at = n_sigma == 1 ? 0 : n_sigma == N ? (size_t)i : (size_t)(r * N + i);
      if (s[at] > floor && !fixed) wanted[at] += g[r] * (e * e - 1);
    }
    expect_near(out[r], sum, 1e-6 * size);
  }
  for (size_t i = 0; i < n_sigma; i++) expect_near(d_s[i], wanted[i], 1e-5 * (10 + fabs(wanted[i])));
  void *all[] = {x, mean, s, g, d_mean, d_s, wanted, old};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void gaussian_kernels(void **state) {
  (void)state;
  static const size_t counts[] = {1, LIKELY_N, LIKELY_ROWS * LIKELY_N};
  EACH_SET(k)
  for (int i = 0; i < 3; i++) {
    check_gaussian(k, counts[i], false, -30);
    check_gaussian(k, counts[i], false, 0.1f);
    check_gaussian(k, counts[i], false, 5);
    check_gaussian(k, counts[i], true, -1);
  }
}

static void bernoulli_kernels(void **state) {
  (void)state;
  enum { ROWS = LIKELY_ROWS, N = LIKELY_N };
  EACH_SET(k) {
    float *x = normal_array(ROWS * N, 1), *l = normal_array(ROWS * N, 2), *g = normal_array(ROWS, 3),
          out[ROWS];
    float *d = normal_array(ROWS * N, 4), *old = copy_of(d, ROWS * N);
    for (int i = 0; i < ROWS * N; i++) {
      x[i] = x[i] > 0;
      l[i] *= i % 10 ? 3 : 300; /* far out, too */
    }
    k->bernoulli(out, x, l, ROWS, N);
    k->bernoulli_backward(d, g, x, l, ROWS, N);
    for (int r = 0; r < ROWS; r++) {
      double sum = 0;
      for (int i = r * N; i < (r + 1) * N; i++) {
        double li = l[i];
        sum += x[i] * li - (li > 0 ? li + log1p(exp(-li)) : log1p(exp(li)));
        expect_near(d[i], old[i] + g[r] * (x[i] - 1 / (1 + exp(-li))), 1e-6);
      }
      expect_near(out[r], sum, 1e-6 * (N + fabs(sum)));
    }
    void *all[] = {x, l, g, d, old};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  }
}

/* ---- Mixture, sums ---- */

static void mix_kernels(void **state) {
  (void)state;
  enum { ROWS = 4, N = 3, MOST = 19 };
  EACH_SET(k)
  for (int m = 1; m <= MOST; m += 3) {
    size_t all = (size_t)(ROWS * N * m), n_alpha = (size_t)(ROWS * m);
    float *alpha = m > 1 ? normal_array(n_alpha, 1) : NULL, *parts = normal_array(all, 2),
          *next = normal_array(ROWS * N, 3);
    float *old = copy_of(next, ROWS * N), *kept = copy_of(parts, all), *d_alpha = normal_array(n_alpha, 4);
    float *old_alpha = copy_of(d_alpha, n_alpha);
    k->mix(next, alpha, parts, ROWS, N, m);
    for (int r = 0; r < ROWS * N; r++) {
      double sum = old[r];
      for (int i = 0; i < m; i++) sum += (alpha ? alpha[r / N * m + i] : 1.0) * parts[r * m + i];
      expect_near(next[r], sum, 1e-5);
    }
    k->mix_backward(d_alpha, parts, next, alpha, ROWS, N, m); /* with `next` as the gradient */
    for (int i = 0; i < (int)all; i++)
      expect_near(parts[i], (double)next[i / m] * (alpha ? alpha[i / m / N * m + i % m] : 1),
                  1e-6 * (1 + fabsf(next[i / m])));
    for (int i = 0; alpha && i < (int)n_alpha; i++) {
      double sum = old_alpha[i];
      for (int j = 0; j < N; j++) sum += (double)next[i / m * N + j] * kept[(i / m * N + j) * m + i % m];
      expect_near(d_alpha[i], sum, 1e-5 * (1 + fabs(sum)));
    }
    void *arrays[] = {alpha, parts, next, old, kept, d_alpha, old_alpha};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
  }
}

static void sum_kernels(void **state) {
  (void)state;
  enum { ROWS = 7, N = 23 };
  EACH_SET(k) {
    float *x = normal_array(ROWS * N, 1), *sum = normal_array(N, 2), *old = copy_of(sum, N);
    k->column_sum(sum, x, ROWS, N);
    for (int i = 0; i < N; i++) {
      double wanted = old[i];
      for (int r = 0; r < ROWS; r++) wanted += x[r * N + i];
      expect_near(sum[i], wanted, 1e-5);
    }
    memcpy(sum, old, N * sizeof *sum);
    k->add(sum, x, N);
    for (int i = 0; i < N; i++) expect_near(sum[i], old[i] + x[i], 0);
    free(x);
    free(sum);
    free(old);
  }
}

static double *normal_doubles(size_t n, uint32_t key) {
  double *x = malloc(n * sizeof *x);
  dv_random random = dv_random_at(1, DV_STREAM_SIMULATION, key, (uint32_t)n);
  assert_non_null(x);
  for (size_t i = 0; i < n; i++) x[i] = dv_random_normal(&random);
  return x;
}

/* ln N of the rows from `first` on, of arrays with more rows. */
static void log_normals_kernel(void **state) {
  (void)state;
  enum { N = 3, ALL = 150 };
  double *scale = normal_doubles(ALL, 1), *gain = normal_doubles(N * N * ALL, 2);
  double *offset = normal_doubles(N * ALL, 3), *z = normal_doubles(N, 4), *out = normal_doubles(ALL, 5);
  EACH_SET(k)
  for (int first = 0; first < ALL; first += 64) {
    int rows = ALL - first < 64 ? ALL - first : 64;
    k->log_normals(out + first, scale + first, gain + first, offset + first, z, N, ALL, rows);
    for (int r = first; r < first + rows; r++) {
      double wanted = scale[r];
      for (int i = 0; i < N; i++) {
        double w = -offset[i * ALL + r];
        for (int j = 0; j < N; j++) w += gain[(i * N + j) * ALL + r] * z[j];
        wanted -= 0.5 * w * w;
      }
      expect_near(out[r], wanted, 1e-12 * (1 + fabs(wanted)));
    }
  }
  free(scale);
  free(gain);
  free(offset);
  free(z);
  free(out);
}

/* The same order of summation whatever the set: one shard after the other. */
/* Missing values become 0, whoever asks which they are; others are scaled as without gaps. */
static void observe_kernel(void **state) {
  (void)state;
  enum { N = 53 };
  EACH_SET(k) {
    float *x = normal_array(N, 1), *shift = normal_array(N, 2), *scale = normal_array(N, 3);
    float *y = normal_array(N, 4), *whole = normal_array(N, 5), *seen = normal_array(N, 6);
    k->standardise(whole, x, shift, scale, N);
    for (int i = 0; i < N; i += 3) x[i] = NAN;
    for (int asked = 0; asked < 2; asked++) {
      assert_true(k->observe(y, asked ? seen : NULL, x, shift, scale, N));
      for (int i = 0; i < N; i++) assert_true(y[i] == (i % 3 ? whole[i] : 0));
    }
    for (int i = 0; i < N; i++) assert_true(seen[i] == (i % 3 > 0));
    for (int i = 0; i < N; i++) x[i] = NAN;
    assert_false(k->observe(y, seen, x, shift, scale, N));
    for (int i = 0; i < N; i++) assert_true(y[i] == 0 && seen[i] == 0);
    free(x), free(shift), free(scale), free(y), free(whole), free(seen);
  }
}

/* The sum of shards first .. first + span - 1, halves first; span is a power of two. */
static float tree_sum(float *const *shards, int count, int first, int span, int i) {
  int half = span / 2;
  if (span == 1) return shards[first][i];
  float left = tree_sum(shards, count, first, half, i);
  return first + half < count ? left + tree_sum(shards, count, first + half, half, i) : left;
}

static void reduce_kernel(void **state) {
  (void)state;
  enum { MOST = 9, N = 45, OFFSET = 5 };
  EACH_SET(k)
  for (int count = 1; count <= MOST; count++) {
    float *shards[MOST], *before[MOST];
    for (int s = 0; s < count; s++) shards[s] = normal_array(OFFSET + N, (uint32_t)s);
    for (int s = 0; s < count; s++) before[s] = copy_of(shards[s], OFFSET + N);
    double squares = k->reduce(shards, OFFSET, N, count), wanted = 0;
    for (int i = OFFSET; i < OFFSET + N; i++) {
      float one = tree_sum(before, count, 0, 16, i);
      assert_true(shards[0][i] == one);
      wanted += (double)one * one;
    }
    for (int i = 0; i < OFFSET; i++) assert_true(shards[0][i] == before[0][i]);
    expect_near(squares, wanted, 1e-10 * wanted);
    shards[count - 1][OFFSET + 40] = NAN; /* must be seen: it is how training notices that it diverged */
    assert_true(isnan(k->reduce(shards, OFFSET, N, count)));
    for (int s = 0; s < count; s++) free(shards[s]), free(before[s]);
  }
}

/* ---- Optimisers ---- */

static void adam_kernel(void **state) {
  (void)state;
  enum { N = 33 };
  const double step = 0.01, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-3, factor = 0.5;
  EACH_SET(k) {
    float *p = normal_array(N, 1), *g = normal_array(N, 2), *m = normal_array(N, 3), *v = normal_array(N, 4);
    for (int i = 0; i < N; i++) v[i] = v[i] * v[i];
    float *p0 = copy_of(p, N), *m0 = copy_of(m, N), *v0 = copy_of(v, N);
    k->adam(p, g, m, v, N, (float)step, (float)beta1, (float)beta2, (float)epsilon, (float)factor);
    for (int i = 0; i < N; i++) {
      double gi = factor * g[i], mi = beta1 * m0[i] + (1 - beta1) * gi,
             vi = beta2 * v0[i] + (1 - beta2) * gi * gi;
      expect_near(m[i], mi, 1e-6);
      expect_near(v[i], vi, 1e-6 * (1 + vi));
      expect_near(p[i], p0[i] - step * mi / (sqrt(vi) + epsilon), 1e-6 * (1 + fabs(p0[i])));
    }
    void *all[] = {p, g, m, v, p0, m0, v0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  }
}

static void adadelta_kernel(void **state) {
  (void)state;
  enum { N = 33 };
  const double step = 0.8, rho = 0.95, epsilon = 1e-4, factor = 0.5;
  EACH_SET(k) {
    float *p = normal_array(N, 1), *g = normal_array(N, 2), *m = normal_array(N, 3), *v = normal_array(N, 4);
    for (int i = 0; i < N; i++) m[i] = m[i] * m[i], v[i] = v[i] * v[i];
    float *p0 = copy_of(p, N), *m0 = copy_of(m, N), *v0 = copy_of(v, N);
    k->adadelta(p, g, m, v, N, (float)step, (float)rho, (float)epsilon, (float)factor);
    for (int i = 0; i < N; i++) {
      double gi = factor * g[i], vi = rho * v0[i] + (1 - rho) * gi * gi;
      double delta = gi * sqrt((m0[i] + epsilon) / (vi + epsilon)),
             mi = rho * m0[i] + (1 - rho) * delta * delta;
      expect_near(v[i], vi, 1e-6 * (1 + vi));
      expect_near(m[i], mi, 1e-5 * (1 + mi));
      expect_near(p[i], p0[i] - step * delta, 2e-6 * (1 + fabs(p0[i]) + fabs(delta)));
    }
    void *all[] = {p, g, m, v, p0, m0, v0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  }
}

/* ---- Moments of fast dropout ---- */

static double sigmoid_mean(double mu, double nu) {
  return 1 / (1 + exp(-mu / sqrt(1 + 3.14159265358979323846 / 8 * nu)));
}

static double sigmoid_variance(double mu, double nu) {
  double pi = 3.14159265358979323846, m = sigmoid_mean(mu, nu), q = m * (1 - m);
  double kappa = 1 / sqrt(1 + pi / 8 * nu), r = 1 - kappa * kappa;
  double g = 1 - kappa * (1 + (0.5 - 2 / pi) * r + 0.04 * r * r);
  return q * g * (4 * q + (1 - 4 * q) * 0.5 * g * (1 + g));
}

/* The formulas of op/moments.c. */
static void moments_reference(dvbf_activation a, double mu, double nu, double p, double *mean,
                              double *dropped) {
  double sigma = sqrt(nu), below = 0.5 * erfc(-mu / sigma / sqrt(2)),
         above = 0.5 * erfc(mu / sigma / sqrt(2));
  double alpha = mu / sigma, phi = exp(-0.5 * alpha * alpha) / sqrt(2 * 3.14159265358979323846), s = nu;
  *mean = mu;
  if (a == DVBF_RELU) {
    *mean = mu * below + sigma * phi;
    s = nu * (below + alpha * alpha * below * above + alpha * phi * (above - below) - phi * phi);
  } else if (a == DVBF_SIGMOID) {
    *mean = sigmoid_mean(mu, nu);
    s = sigmoid_variance(mu, nu);
  } else if (a == DVBF_TANH) {
    *mean = 2 * sigmoid_mean(2 * mu, 4 * nu) - 1;
    s = 4 * sigmoid_variance(2 * mu, 4 * nu);
  }
  *dropped = (s + p * *mean * *mean) / (1 - p);
}

/* The derivative of mean + 0.7 dropped by mu or nu. */
static double moments_slope(dvbf_activation a, double mu, double nu, double p, bool by_nu) {
  double h = 1e-4 * sqrt(nu) * (by_nu ? sqrt(nu) : 1), m[2], d[2];
  for (int i = 0; i < 2; i++)
    moments_reference(a, mu + (by_nu ? 0 : i ? h : -h), nu + (!by_nu ? 0 : i ? h : -h), p, &m[i], &d[i]);
  return (m[1] - m[0] + 0.7 * (d[1] - d[0])) / (2 * h);
}

static void expect_propagated(const dv_kernels *k, dvbf_activation a, float mu, float nu, float p) {
  float mean, dropped, d_mu = 0.25f, d_nu = 0.5f, d_mean = 1, d_dropped = 0.7f;
  double m, d, at = (double)nu + DV_VARIANCE_FLOOR, size = fabs((double)mu) + sqrt(at);
  k->moments(a, &mean, &dropped, &mu, &nu, p, 1);
  k->moments_backward(a, &d_mu, &d_nu, &mu, &nu, &d_mean, &d_dropped, p, 1);
  moments_reference(a, mu, at, p, &m, &d);
  expect_near(mean, m, 1e-6 * size + TANH_ABSOLUTE);
  expect_near(dropped, d, 4e-6 * (at + d) + 4 * p * size * TANH_ABSOLUTE);
  double by_mu = moments_slope(a, mu, at, p, false), by_nu = moments_slope(a, mu, at, p, true);
  expect_near(d_mu, by_mu + 0.25, 1e-5 * (1 + size));
  expect_near(d_nu, by_nu + 0.5, 1e-5 * (1 + size) * (1 + 1 / at * size));
}

static void moments(void **state) {
  (void)state;
  static const float some_nu[] = {1e-4f, 0.01f, 0.3f, 2, 50};
  EACH_SET(k) {
    for (int a = DVBF_LINEAR; a <= DVBF_SIGMOID; a++)
      for (int i = 0; i < 5; i++)
        for (int z = -50; z <= 50; z++) /* standard deviations from 0: through both tails */
          expect_propagated(k, a, 0.2f * (float)z * sqrtf(some_nu[i]), some_nu[i], z % 2 ? 0.4f : 0);
  }
}

/* No variance at all, or means so many standard deviations off that nothing of a tail is left. */
static void moments_of_extremes(void **state) {
  (void)state;
  static const float some_mu[] = {0, 1e-30f, 1e-3f, 1, 30, 1e4f, 1e8f},
                     some_nu[] = {0, 1e-30f, 1e-3f, 1, 1e8f};
  EACH_SET(k) {
    for (int a = DVBF_LINEAR; a <= DVBF_SIGMOID; a++)
      for (int i = 0; i < 2 * 7 * 5; i++) {
        float mu = (i % 2 ? -1 : 1) * some_mu[i / 2 % 7], nu = some_nu[i / 14], mean, dropped;
        float d_mu = 0, d_nu = 0, one = 1;
        k->moments(a, &mean, &dropped, &mu, &nu, 0.1f, 1);
        k->moments_backward(a, &d_mu, &d_nu, &mu, &nu, &one, &one, 0.1f, 1);
        if (!isfinite(mean) || !(dropped >= 0) || !isfinite(dropped) || !isfinite(d_mu) || !isfinite(d_nu))
          fail_msg("activation %d of N(%g, %g): %g, %g; gradients %g, %g", a, mu, nu, mean, dropped, d_mu,
                   d_nu);
        if (nu < 1e-2f && fabsf(mu) >= 1) /* nearly certain */
          expect_near(mean,
                      a == DVBF_RELU      ? fmax(mu, 0)
                      : a == DVBF_TANH    ? tanh(mu)
                      : a == DVBF_SIGMOID ? 1 / (1 + exp(-(double)mu))
                                          : mu,
                      1e-3 * fmax(1, fabs((double)mu) * 1e-3));
      }
  }
}

/* ---- Transforms for convolutions by windows ---- */

enum { CHANNELS = 21, APART = 4 * CHANNELS + 3 };

static const double see_line[3][3] = {{1, -1, 0}, {0, 1, 0}, {0, -1, 1}}; /* B' */
static const double make_line[3][2] = {{1, 0}, {1, 1}, {0, 1}};           /* A and G */

/* Whole numbers, whose sums are exact. */
static void fill_whole(dvbf_real *to, size_t n, int seed) {
  for (size_t i = 0; i < n; i++) to[i] = (dvbf_real)((int)(i * 7 + (size_t)seed) % 23 - 11);
}

/* v[9][4][channels] = B' d B of each phase, and back. */
static void window_kernels(void **state) {
  (void)state;
  dvbf_real pixels[36][CHANNELS], sum[36][CHANNELS], v[9 * APART];
  dvbf_real *at[36];
  EACH_SET(k) {
    fill_whole(&pixels[0][0], 36 * CHANNELS, set_);
    for (int i = 0; i < 36; i++) at[i] = pixels[i];
    k->window->see(v, APART, (const dvbf_real *const *)at, CHANNELS);
    for (int r = 0; r < 9; r++)
      for (int q = 0; q < 4 * CHANNELS; q++) {
        int phase = q / CHANNELS, c = q % CHANNELS;
        double expected = 0;
        for (int i = 0; i < 9; i++)
          expected += see_line[r / 3][i / 3] * see_line[r % 3][i % 3] *
                      (double)pixels[6 * (2 * (i / 3) + phase / 2) + 2 * (i % 3) + phase % 2][c];
        assert_true((double)v[r * APART + q] == expected);
      }
    fill_whole(v, 9 * APART, 3);
    fill_whole(&sum[0][0], 36 * CHANNELS, 5);
    for (int i = 0; i < 36; i++) at[i] = memcpy(pixels[i], sum[i], sizeof sum[i]);
    k->window->show(at, v, APART, CHANNELS);
    for (int i = 0; i < 36; i++)
      for (int c = 0; c < CHANNELS; c++) {
        int phase = 2 * (i / 6 % 2) + i % 2;
        double expected = (double)sum[i][c];
        for (int r = 0; r < 9; r++)
          expected += see_line[r / 3][i / 12] * see_line[r % 3][i % 6 / 2] *
                      (double)v[r * APART + phase * CHANNELS + c];
        assert_true((double)pixels[i][c] == expected);
      }
  }
}

/* m[9][channels] = A s A', and back; weights do the same for pixels that are apart. */
static void block_kernels(void **state) {
  (void)state;
  dvbf_real w[16][CHANNELS], sum[16][CHANNELS], m[9 * APART];
  EACH_SET(k) {
    for (int own = 0; own < 2; own++) {
      dvbf_real *at[4] = {w[0], w[2], w[8], w[10]};
      fill_whole(&w[0][0], 16 * CHANNELS, set_);
      memset(m, 0, sizeof m);
      own ? k->window->weights(m, APART, w[0], CHANNELS, CHANNELS)
          : k->window->spread(m, APART, (const dvbf_real *const *)at, CHANNELS);
      for (int r = 0; r < 9; r++)
        for (int c = 0; c < CHANNELS; c++) {
          double expected = 0;
          for (int i = 0; i < 4; i++)
            expected += make_line[r / 3][i / 2] * make_line[r % 3][i % 2] * (double)at[i][c];
          assert_true((double)m[r * APART + c] == expected);
        }
      memcpy(sum, w, sizeof w);
      own ? k->window->weights_backward(w[0], CHANNELS, m, APART, CHANNELS)
          : k->window->collect(at, m, APART, CHANNELS);
      for (int i = 0; i < 4; i++)
        for (int c = 0; c < CHANNELS; c++) {
          double expected = (double)sum[8 * (i / 2) + 2 * (i % 2)][c];
          for (int r = 0; r < 9; r++)
            expected += make_line[r / 3][i / 2] * make_line[r % 3][i % 2] * (double)m[r * APART + c];
          assert_true((double)at[i][c] == expected);
        }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sets_are_chosen),
      cmocka_unit_test(portable_sets_are_others),
      cmocka_unit_test(portable_products),
      cmocka_unit_test(portable_kernels),
      cmocka_unit_test(products_of_many_shapes),
      cmocka_unit_test(tiles_of_many_shapes),
      cmocka_unit_test(tiles_at_the_edges),
      cmocka_unit_test(tiles_take_large_products),
      cmocka_unit_test(tiles_pass_nan),
      cmocka_unit_test(products_at_the_edges),
      cmocka_unit_test(products_of_few_rows),
      cmocka_unit_test(rows_stand_alone),
      cmocka_unit_test(observe_kernel),
      cmocka_unit_test(sigmoid_is_accurate),
      cmocka_unit_test(tanh_is_accurate),
      cmocka_unit_test(softmax_is_accurate),
      cmocka_unit_test(activations_saturate),
      cmocka_unit_test(nan_passes),
      cmocka_unit_test(activations_backward),
      cmocka_unit_test(normals_are_normal),
      cmocka_unit_test(normals_are_accurate),
      cmocka_unit_test(normals_of_extreme_words),
      cmocka_unit_test(gaussian_kernels),
      cmocka_unit_test(bernoulli_kernels),
      cmocka_unit_test(mix_kernels),
      cmocka_unit_test(sum_kernels),
      cmocka_unit_test(log_normals_kernel),
      cmocka_unit_test(reduce_kernel),
      cmocka_unit_test(adam_kernel),
      cmocka_unit_test(adadelta_kernel),
      cmocka_unit_test(window_kernels),
      cmocka_unit_test(block_kernels),
      cmocka_unit_test(moments),
      cmocka_unit_test(moments_of_extremes),
  };
  return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
