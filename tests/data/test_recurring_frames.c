/* Frames that come again and again are found, counted and put in order. */
#include "data/checks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Sequences whose values are all 0. */
static dvbf_sequences zeros(size_t count, size_t steps, size_t n_x) {
  dvbf_sequences s = {.count = count, .steps = steps, .n_x = n_x};
  assert_int_equal(dv_sequences_allocate(&s, false, NULL), DVBF_OK);
  return s;
}

/* Three frames: 8 times 0110, 5 times 1000, 4 times 0000, one after the other. */
static dvbf_sequences three_kinds(void) {
  dvbf_sequences s = zeros(1, 17, 4);
  for (size_t i = 0; i < 17; i++) {
    bool often = i % 2 == 0 && i < 16;
    s.x[i * 4 + 1] = s.x[i * 4 + 2] = often;
    s.x[i * 4] = !often && i / 2 < 5;
  }
  return s;
}

static void few_frames_are_counted(void **state) {
  (void)state;
  static const unsigned char known[3][4] = {{0, 1, 1, 0}, {1, 0, 0, 0}, {0, 0, 0, 0}};
  dvbf_sequences s = three_kinds();
  dv_recurring r;
  double share;
  assert_int_equal(dv_recurring_of(&r, &s, NULL), DVBF_OK);
  assert_int_equal(r.n, 4);
  assert_int_equal(r.count, 3);
  assert_int_equal(r.frames, 17);
  assert_memory_equal(r.x, known, sizeof known);
  assert_memory_equal(r.times, ((uint32_t[]){8, 5, 4}), 3 * sizeof(uint32_t));
  assert_int_equal(dv_recurring_often(&r, &share), 2); /* four times is not often */
  assert_true(fabs(share - 13.0 / 17) < 1e-12);
  dv_recurring_free(&r);
  assert_null(r.x);
  dvbf_sequences_free(&s);
}

/* Of a frame that is there in part nobody knows which it is. */
static void gaps_are_left_out(void **state) {
  (void)state;
  dvbf_sequences s = three_kinds();
  dv_recurring r;
  double share;
  s.gaps = true;
  s.x[0] = NAN;                                        /* one value of a frame 0110 */
  for (size_t k = 0; k < 4; k++) s.x[1 * 4 + k] = NAN; /* a frame 1000 */
  assert_int_equal(dv_recurring_of(&r, &s, NULL), DVBF_OK);
  assert_int_equal(r.frames, 15);
  assert_memory_equal(r.times, ((uint32_t[]){7, 4, 4}), 3 * sizeof(uint32_t));
  assert_int_equal(r.x[4], 1); /* of as many, those that came first */
  assert_int_equal(dv_recurring_often(&r, &share), 1);
  assert_true(fabs(share - 7.0 / 15) < 1e-12);
  dv_recurring_free(&r);
  for (size_t i = 0; i < 17; i++) s.x[i * 4 + i % 4] = NAN;
  assert_int_equal(dv_recurring_of(&r, &s, NULL), DVBF_OK);
  assert_int_equal(r.count, 0);
  assert_int_equal(dv_recurring_often(&r, &share), 0);
  assert_true(share == 0);
  dv_recurring_free(&r);
  dvbf_sequences_free(&s);
}

static void one_column_has_two_frames(void **state) {
  (void)state;
  dvbf_sequences s = zeros(2, 10, 1);
  dv_recurring r;
  double share;
  for (size_t i = 0; i < 20; i += 3) s.x[i] = 1;
  assert_int_equal(dv_recurring_of(&r, &s, NULL), DVBF_OK);
  assert_int_equal(r.count, 2);
  assert_memory_equal(r.x, ((unsigned char[]){0, 1}), 2);
  assert_memory_equal(r.times, ((uint32_t[]){13, 7}), 2 * sizeof(uint32_t));
  assert_int_equal(dv_recurring_often(&r, &share), 2);
  assert_true(share == 1);
  dv_recurring_free(&r);
  dvbf_sequences_free(&s);
}

/* Column k of frame i is bit k of i. There are more than are kept; one that was kept comes six times more,
 * and one that was not does not push another out. */
static void many_different_frames_are_bounded(void **state) {
  (void)state;
  enum { BITS = 14, MANY = DV_MOST_DIFFERENT + 100, AGAIN = 7000, BEYOND = MANY - 1 };
  dvbf_sequences s = zeros(1, MANY + 12, BITS);
  dv_recurring r;
  double share;
  for (size_t i = 0; i < MANY + 12; i++)
    for (size_t k = 0; k < BITS; k++) s.x[i * BITS + k] = (i < MANY ? i : i % 2 ? AGAIN : BEYOND) >> k & 1;
  assert_int_equal(dv_recurring_of(&r, &s, NULL), DVBF_OK);
  assert_int_equal(r.count, DV_MOST_DIFFERENT);
  assert_int_equal(r.frames, MANY + 12);
  assert_int_equal(r.times[0], 7);
  for (size_t k = 0; k < BITS; k++) assert_int_equal(r.x[k], AGAIN >> k & 1);
  for (size_t i = 1; i < r.count; i++) assert_int_equal(r.times[i], 1);
  for (size_t k = 0; k < BITS; k++)
    assert_int_equal(r.x[BITS * 5 + k], 4 >> k & 1); /* as the data have them */
  assert_int_equal(dv_recurring_often(&r, &share), 1);
  assert_true(fabs(share - 7.0 / (MANY + 12)) < 1e-12);
  dv_recurring_free(&r);
  dvbf_sequences_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(few_frames_are_counted), cmocka_unit_test(gaps_are_left_out),
      cmocka_unit_test(one_column_has_two_frames), cmocka_unit_test(many_different_frames_are_bounded)};
  return cmocka_run_group_tests_name("recurring frames", tests, NULL, NULL);
}
