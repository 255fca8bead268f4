/* Sequences in numbers: lengths, columns, gaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
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
  uint64_t frames, read; /* there, and read so far */
} counter;

static bool count(dvbf_source *source, uint64_t first, size_t frames, float *out) {
  ((counter *)source)->read += frames;
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

/* Checked and measured in one pass, whoever asks, as long as it is for the same sequences. */
static void test_read_once(void **unused) {
  (void)unused;
  counter c = {.base = {.read = count, .path = "far.h5"}, .frames = 300};
  uint64_t starts[] = {0, 100, 200};
  uint32_t lengths[] = {100, 100, 100};
  dvbf_sequences s = {.count = 3, .steps = 100, .n_x = 1, .source = &c.base}, same = s;
  same.start = starts;
  same.length = lengths;
  dvbf_sequences_info *info = NULL;
  dv_statistics x;
  assert_int_equal(dv_facts_begin(&s, NULL), DVBF_OK);
  same.facts = s.facts;
  assert_int_equal(dv_sequences_validate(&s, "data", "", NULL), DVBF_OK);
  assert_int_equal(dvbf_sequences_describe(&info, &s, NULL), DVBF_OK);
  dvbf_sequences_info_free(info);
  assert_int_equal(dv_statistics_of_x(&x, &same, NULL), DVBF_OK);
  assert_true(x.rows == 300 && x.frames == 300 && x.seen[0] == 300 && x.mean[0] == 149.5 && x.most[0] == 299);
  dv_statistics_free(&x);
  assert_int_equal(c.read, 300);
  lengths[2] = 50;
  assert_int_equal(dv_statistics_of_x(&x, &same, NULL), DVBF_OK);
  assert_true(x.rows == 250 && x.most[0] == 249);
  dv_statistics_free(&x);
  assert_int_equal(c.read, 550);
  dv_facts_free(s.facts);
}

/* In memory too, until a value changes. */
static void test_measured_once_until_values_change(void **unused) {
  (void)unused;
  enum { COPY = 1 }; /* the only allocation where statistics are known */
  float x[64], u[64] = {0};
  for (int t = 0; t < 64; t++) x[t] = (float)t;
  dvbf_sequences s = {.count = 4, .steps = 16, .n_x = 1, .n_u = 1, .x = x, .u = u}, part = s;
  assert_int_equal(dv_facts_begin(&s, NULL), DVBF_OK);
  part = s;
  part.count = 2;
  for (int round = 0; round < 3; round++) {
    dv_statistics statistics;
    if (round) x[20] = 1000.0F * (float)round;
    assert_int_equal(dv_sequences_validate(&s, "data", "", NULL), DVBF_OK);
    unsigned long before = dv_allocations();
    assert_int_equal(dv_statistics_of_x(&statistics, &s, NULL), DVBF_OK);
    assert_int_equal(dv_allocations() - before, COPY);
    assert_true(statistics.most[0] == (round ? 1000.0 * round : 63));
    dv_statistics_free(&statistics);
    assert_int_equal(dv_statistics_of_x(&statistics, &part, NULL), DVBF_OK);
    assert_true(statistics.rows == 32 && statistics.most[0] == (round ? 1000.0 * round : 31));
    dv_statistics_free(&statistics);
  }
  dvbf_error error;
  u[63] = NAN; /* data that were sound once are checked again */
  assert_int_equal(dv_sequences_validate(&s, "data", "", &error), DVBF_FORMAT);
  assert_non_null(strstr(error.message, "u is nan at sequence 3, step 15"));
  dv_facts_free(s.facts);
}

static void test_joined_statistics_are_those_of_both(void **unused) {
  (void)unused;
  float x[] = {1, 7, 2, 7, 5, 7, 8, NAN, -3, 7, 0.5F, 9};
  dvbf_sequences all = {.count = 3, .steps = 2, .n_x = 2, .x = x, .gaps = true}, part = all;
  dv_statistics whole, a, b;
  uint64_t start[] = {2, 4};
  part.count = 1;
  assert_int_equal(dv_statistics_of_x(&whole, &all, NULL), DVBF_OK);
  assert_int_equal(dv_statistics_of_x(&a, &part, NULL), DVBF_OK);
  part.count = 2;
  part.start = start;
  assert_int_equal(dv_statistics_of_x(&b, &part, NULL), DVBF_OK);
  dv_statistics_join(&a, &b, 2);
  for (int k = 0; k < 2; k++) {
    assert_true(fabs(a.mean[k] - whole.mean[k]) < 1e-12 && fabs(a.variance[k] - whole.variance[k]) < 1e-12);
    assert_true(a.least[k] == whole.least[k] && a.most[k] == whole.most[k] && a.seen[k] == whole.seen[k]);
  }
  assert_true(a.rows == 6 && a.frames == 6 && a.low == -3 && a.high == 9 && !a.whole);
  assert_true(dv_statistics_complete(&a, 2, true) && !dv_statistics_complete(&a, 2, false));
  dv_statistics_free(&whole);
  dv_statistics_free(&a);
  dv_statistics_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values_that_are_there_count),
      cmocka_unit_test(test_nothing_is_no_failure),
      cmocka_unit_test(test_far_from_zero),
      cmocka_unit_test(test_read_piece_by_piece),
      cmocka_unit_test(test_read_once),
      cmocka_unit_test(test_measured_once_until_values_change),
      cmocka_unit_test(test_joined_statistics_are_those_of_both),
  };
  return cmocka_run_group_tests_name("describe", tests, NULL, NULL);
}
