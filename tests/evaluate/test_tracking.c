/* What sets models side by side: regression by a network, and where objects are in predictions. */
#include "evaluate/evaluate.h"
#include "experiments/paper.h"
#include "math/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* y is a line, a wave and noise: the first two can be learned, and the linear regression finds the first
 * alone. */
static void networks_find_what_is_not_linear(void **state) {
  (void)state;
  enum { ROWS = 2000, K = 2, M = 3 };
  static float x[ROWS * K], y[ROWS * M];
  dv_random random = dv_random_at(3, DV_STREAM_SIMULATION, 0, 0);
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < K; j++) x[i * K + j] = (float)(4 * dv_random_uniform(&random) - 2);
    y[i * M] = 3 * x[i * K] - x[i * K + 1] + 5;
    y[i * M + 1] = cosf(2 * x[i * K + 1]);
    y[i * M + 2] = (float)dv_random_normal(&random);
  }
  double r2[M], again[M];
  dvbf_regression line;
  dvbf_error error;
  assert_int_equal(dv_network_regress(r2, x, ROWS, K, y, M, &error), DVBF_OK);
  assert_int_equal(dv_network_regress(again, x, ROWS, K, y, M, &error), DVBF_OK);
  assert_memory_equal(r2, again, sizeof r2);
  assert_int_equal(dvbf_regress(&line, x, ROWS, K, y + 1, M, &error), DVBF_OK);
  assert_true(r2[0] > 0.999 && r2[1] > 0.97 && r2[2] < 0.1);
  assert_true(line.r2 < 0.1);
  assert_int_equal(dv_network_regress(r2, x, 100, K, y, M, &error), DVBF_FORMAT);
  assert_non_null(strstr(error.message, "100 frames are too few"));
}

/* A bright pixel that goes right by one pixel each step. Predictions are right for three steps, then one
 * pixel below for two, then dark. */
static void objects_are_followed(void **state) {
  (void)state;
  enum { SIZE = 12, STEPS = 10, SEEN = 2, N = SIZE * SIZE };
  static float x[STEPS * N], predicted[STEPS * N];
  dvbf_data data = {.image_height = SIZE, .image_width = SIZE};
  data.test = (dvbf_sequences){.count = 1, .steps = STEPS, .n_x = N, .x = x};
  for (int t = 0; t < STEPS; t++) {
    x[t * N + 5 * SIZE + t] = 1;
    if (t < SEEN + 5) predicted[t * N + (t < SEEN + 3 ? 5 : 6) * SIZE + t] = 1;
  }
  dv_centres c;
  dv_centres_measure(&c, &data, predicted, SEEN);
  assert_true(fabs(c.valid - 3) < 1e-12 && fabs(c.close - 5) < 1e-12);
  assert_true(fabs(c.far - (2 * 1 + 3 * SIZE) / 8.0) < 1e-12);
  assert_true(fabs(c.near - c.far) < 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(networks_find_what_is_not_linear),
      cmocka_unit_test(objects_are_followed),
  };
  return cmocka_run_group_tests_name("measures", tests, NULL, NULL);
}
