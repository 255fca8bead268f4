/* The folds of a search: each leaves out a part, and together they leave out everything once. */
#include "data/dataset.h"
#include "train/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { FRAMES = 200, MOST = 50 };
static float x[FRAMES];
static uint64_t starts[MOST];
static uint32_t lengths[MOST];

/* Sequences of equal length, the last of which validate. */
static dvbf_data split(size_t count, size_t steps, size_t valid) {
  dvbf_sequences all = {.steps = steps, .n_x = 1, .x = x};
  dvbf_data data = {.train = all, .valid = all};
  for (size_t i = 0; i < count; i++) starts[i] = i * steps, lengths[i] = (uint32_t)steps;
  data.train.count = count - valid;
  data.valid.count = valid;
  data.train.start = starts;
  data.train.length = lengths;
  data.valid.start = starts + count - valid;
  data.valid.length = lengths + count - valid;
  return data;
}

static void mark(const dvbf_sequences *s, int *seen) {
  for (size_t i = 0; i < s->count; i++)
    for (size_t t = 0; t < dvbf_sequence_length(s, i); t++) seen[dvbf_sequence_start(s, i) + t]++;
}

/* Every frame is in one part, and training sees it in all other folds; valid has all, the part twice. */
static void expect_sound(const dv_folds *f, size_t frames) {
  int parts[FRAMES] = {0};
  for (size_t k = 0; k < f->count; k++) {
    int part[FRAMES] = {0}, train[FRAMES] = {0}, valid[FRAMES] = {0};
    mark(&f->list[k].part, part);
    mark(&f->list[k].part, parts);
    mark(&f->list[k].data.train, train);
    mark(&f->list[k].data.valid, valid);
    assert_true(f->list[k].part.count > 0);
    for (size_t t = 0; t < frames; t++) {
      assert_int_equal(part[t] + train[t], 1);
      assert_int_equal(valid[t], 1 + part[t]);
    }
  }
  for (size_t t = 0; t < frames; t++) assert_int_equal(parts[t], 1);
}

static void one_recording_is_cut_into_blocks(void **state) {
  (void)state;
  dv_folds f = {0};
  dvbf_data data = split(1, 180, 0);
  data.valid = data.train; /* the last 20 steps of 200 */
  uint64_t start = 180;
  uint32_t length = 20;
  data.valid.start = &start;
  data.valid.length = &length;
  data.valid.steps = 20;
  assert_int_equal(dv_folds_make(&f, &data, NULL), DVBF_OK);
  assert_int_equal(f.count, 5);
  expect_sound(&f, 200);
  assert_int_equal(f.list[4].part.start[0], 160); /* the part that validated has joined the rest */
  assert_int_equal(f.list[0].data.train.count, 1);
  assert_int_equal(f.list[2].data.train.count, 2);
  dv_folds_free(&f);
}

static void sequences_stay_whole_where_there_are_enough(void **state) {
  (void)state;
  dv_folds f = {0};
  dvbf_data data = split(20, 10, 3);
  assert_int_equal(dv_folds_make(&f, &data, NULL), DVBF_OK);
  assert_int_equal(f.count, 5);
  expect_sound(&f, 200);
  for (size_t k = 0; k < f.count; k++)
    for (size_t i = 0; i < f.list[k].part.count; i++)
      assert_int_equal(dvbf_sequence_length(&f.list[k].part, i), 10);
  dv_folds_free(&f);
}

static void short_recordings_have_fewer_folds(void **state) {
  (void)state;
  dv_folds f = {0};
  dvbf_data data = split(1, 40, 0);
  assert_int_equal(dv_folds_make(&f, &data, NULL), DVBF_OK);
  assert_int_equal(f.count, 3);
  expect_sound(&f, 40);
  dv_folds_free(&f);
}

static void data_that_validate_stay_as_they_are(void **state) {
  (void)state;
  dv_folds f = {0};
  float other[FRAMES] = {0};
  dvbf_data data = split(20, 10, 8); /* many */
  for (int i = 0; i < 2; i++) {
    assert_int_equal(dv_folds_make(&f, &data, NULL), DVBF_OK);
    assert_int_equal(f.count, 1);
    assert_memory_equal(&f.list[0].data, &data, sizeof data);
    assert_memory_equal(&f.list[0].part, &data.valid, sizeof data.valid);
    dv_folds_free(&f);
    data = split(4, 10, 1);
    data.valid.x = other; /* given apart from the rest */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_recording_is_cut_into_blocks),
      cmocka_unit_test(sequences_stay_whole_where_there_are_enough),
      cmocka_unit_test(short_recordings_have_fewer_folds),
      cmocka_unit_test(data_that_validate_stay_as_they_are),
  };
  return cmocka_run_group_tests_name("folds", tests, NULL, NULL);
}
