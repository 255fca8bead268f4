/* Sequences in numbers: lengths, columns, gaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/dataset.h"

#include <math.h>
#include <string.h>

static void assert_column(const dvbf_column *c, uint64_t seen, double low, double high, double mean,
                          double variance) {
  assert_int_equal(c->seen, seen);
  assert_true(c->low == low && c->high == high);
  assert_true(fabs(c->mean - mean) < 1e-9);
  assert_true(fabs(c->deviation - sqrt(variance)) < 1e-9);
}

/* Two sequences of 3 and 1 steps, padded to 3; what stands behind the end must not count. */
static void test_values_that_are_there_count(void **unused) {
  (void)unused;
  float x[] = {1, 5, NAN, NAN, 3, 5, 8, NAN, 99, 99, 99, 99}, u[] = {0, 1, 1, 1, 7, 7};
  float state[] = {NAN, NAN, NAN, NAN, 9, 9};
  uint32_t length[] = {3, 1};
  dvbf_sequences s = {.count = 2, .steps = 3, .n_x = 2, .n_u = 1, .n_s = 1, .x = x, .u = u};
  s.state = state;
  s.length = length;
  s.gaps = true;
  dvbf_sequences_info *info = NULL;
  assert_int_equal(dvbf_sequences_describe(&info, &s, NULL), DVBF_OK);
  assert_true(info->frames == 4 && info->shortest == 1 && info->longest == 3 && info->median == 2);
  assert_int_equal(info->x.width, 2);
  assert_column(&info->x.column[0], 3, 1, 8, 4, 26.0 / 3);
  assert_column(&info->x.column[1], 2, 5, 5, 5, 0);
  assert_column(&info->x.all, 5, 1, 8, 4.4, 5.44); /* of 1, 3, 8, 5, 5 */
  assert_false(info->x.whole || info->x.binary);   /* the last step lacks one value of two */
  assert_column(&info->u.all, 4, 0, 1, 0.75, 0.1875);
  assert_true(info->u.binary && info->u.whole);
  assert_int_equal(info->state.all.seen, 0);
  assert_true(isnan(info->state.all.low) && isnan(info->state.column[0].mean) && !info->state.binary);
  dvbf_sequences_info_free(info);
}

static void test_nothing_is_no_failure(void **unused) {
  (void)unused;
  dvbf_sequences s = {0};
  dvbf_sequences_info *info = NULL;
  assert_int_equal(dvbf_sequences_describe(&info, &s, NULL), DVBF_OK);
  assert_true(info->frames == 0 && info->longest == 0 && info->x.width == 0 && !info->x.column);
  dvbf_sequences_info_free(info);
  dvbf_sequences_info_free(NULL);
}

/* Columns far from 0 and of different means: the moments of all are exact all the same. */
static void test_far_from_zero(void **unused) {
  (void)unused;
  float x[] = {1000000, -4, 1000002, -4, 1000004, -4, 1000006, -4};
  dvbf_sequences s = {.count = 2, .steps = 2, .n_x = 2, .x = x};
  dvbf_sequences_info *info = NULL;
  assert_int_equal(dvbf_sequences_describe(&info, &s, NULL), DVBF_OK);
  assert_column(&info->x.column[0], 4, 1000000, 1000006, 1000003, 5);
  assert_true(fabs(info->x.all.mean - 499999.5) < 1e-6);
  assert_true(fabs(info->x.all.deviation - sqrt(2.5 + 500003.5 * 500003.5)) < 1e-6);
  assert_true(info->median == 2 && info->x.whole);
  dvbf_sequences_info_free(info);
}

/* Frame t holds t, up to `frames`. */
typedef struct counter {
  dvbf_source base;
  uint64_t frames;
} counter;

static bool count(dvbf_source *source, uint64_t first, size_t frames, float *out) {
  for (size_t t = 0; t < frames; t++) out[t] = (float)(first + t);
  return first + frames <= ((counter *)source)->frames;
}

static void test_read_piece_by_piece(void **unused) {
  (void)unused;
  counter c = {.base = {.read = count, .path = "far.h5"}, .frames = 300};
  dvbf_sequences s = {.count = 3, .steps = 100, .n_x = 1, .source = &c.base};
  dvbf_sequences_info *info = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_sequences_describe(&info, &s, &error), DVBF_OK);
  assert_column(&info->x.all, 300, 0, 299, 149.5, (300.0 * 300 - 1) / 12);
  dvbf_sequences_info_free(info);
  info = NULL;
  c.frames = 250; /* the file was cut short meanwhile */
  assert_int_equal(dvbf_sequences_describe(&info, &s, &error), DVBF_IO);
  assert_null(info);
  assert_non_null(strstr(error.message, "far.h5"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values_that_are_there_count),
      cmocka_unit_test(test_nothing_is_no_failure),
      cmocka_unit_test(test_far_from_zero),
      cmocka_unit_test(test_read_piece_by_piece),
  };
  return cmocka_run_group_tests_name("describe", tests, NULL, NULL);
}
