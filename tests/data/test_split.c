/* Parts of sequences: splits and windows. */
#include "data/dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- Splits ---- */

/* Three recordings one behind the other. */
static uint64_t starts[] = {0, 100, 150};
static uint32_t lengths[] = {100, 50, 4};
static float values[154];

static dvbf_sequences recordings(size_t count) {
  return (dvbf_sequences){
      .count = count, .steps = 100, .n_x = 1, .x = values, .start = starts, .length = lengths};
}

static dv_data_settings settings_of(int64_t by, double valid, double test) {
  return (dv_data_settings){.split_by = by, .valid_share = valid, .test_share = test, .split_seed = 3};
}

static void free_parts(dvbf_data *data) {
  dv_windows_free(&data->train);
  dv_windows_free(&data->valid);
  dv_windows_free(&data->test);
}

static void time_is_cut_in_order(void **state) {
  (void)state;
  dvbf_data data = {.sample_time = 0.5};
  dvbf_sequences all = recordings(2);
  dvbf_origin origins[] = {{.sequence = 0, .time = 10, .name = "a"}, {.sequence = 1, .time = 20}};
  all.origin = origins;
  dv_data_settings how = settings_of(DV_SPLIT_TIME, 0.1, 0.2);
  assert_int_equal(dv_data_split(&data, &all, &how, "data", NULL), DVBF_OK);
  const dvbf_sequences *parts[] = {&data.train, &data.valid, &data.test};
  static const size_t begin[3][2] = {{0, 100}, {70, 135}, {80, 140}},
                      steps[3][2] = {{70, 35}, {10, 5}, {20, 10}};
  for (int k = 0; k < 3; k++) {
    assert_int_equal(parts[k]->count, 2);
    assert_int_equal(parts[k]->steps, steps[k][0]);
    assert_ptr_equal(parts[k]->x, values);
    for (size_t i = 0; i < 2; i++) {
      assert_int_equal(dvbf_sequence_start(parts[k], i), begin[k][i]);
      assert_int_equal(dvbf_sequence_length(parts[k], i), steps[k][i]);
      const dvbf_origin *origin = &parts[k]->origin[i];
      assert_int_equal(origin->sequence, i);
      assert_int_equal(origin->step, begin[k][i] - starts[i]);
      assert_true(origin->time == origins[i].time + 0.5 * (double)origin->step);
      assert_string_equal(origin->name, i ? "" : "a");
    }
  }
  free_parts(&data);
}

static void sequences_are_split_in_order(void **state) {
  (void)state;
  dvbf_data data = {0};
  dvbf_sequences all = recordings(3);
  dv_data_settings how = settings_of(DV_SPLIT_SEQUENCE, 0.1, 0);
  assert_int_equal(dv_data_split(&data, &all, &how, "data", NULL), DVBF_OK);
  assert_int_equal(data.train.count, 2);
  assert_int_equal(data.valid.count, 1);
  assert_int_equal(data.test.count, 0);
  assert_int_equal(dvbf_sequence_start(&data.valid, 0), 150);
  assert_null(data.valid.length); /* all of its sequences are 4 long */
  assert_int_equal(data.valid.steps, 4);
  free_parts(&data);
}

static void too_little_is_refused(void **state) {
  (void)state;
  dvbf_error error;
  dvbf_data data = {0};
  dvbf_sequences all = recordings(3);
  dv_data_settings how = settings_of(DV_SPLIT_TIME, 0.1, 0.1);
  assert_int_equal(dv_data_split(&data, &all, &how, "data", &error), DVBF_FORMAT);
  assert_non_null(strstr(error.message, "a sequence of 4 steps"));
  how = settings_of(DV_SPLIT_SEQUENCE, 0.5, 0.5);
  all.count = 2;
  assert_int_equal(dv_data_split(&data, &all, &how, "data", &error), DVBF_FORMAT);
  assert_non_null(strstr(error.message, "2 sequences"));
}

/* ---- Windows ---- */

static void windows_cover_everything(void **state) {
  (void)state;
  dvbf_sequences all = recordings(3), w;
  assert_int_equal(dv_windows_cut(&w, &all, 30, 20, NULL), DVBF_OK);
  static const size_t begin[] = {0, 20, 40, 60, 70, 100, 120, 150}, steps[] = {30, 30, 30, 30, 30, 30, 30, 4};
  assert_int_equal(w.count, 8);
  assert_int_equal(w.steps, 30);
  for (size_t i = 0; i < w.count; i++) {
    assert_int_equal(dvbf_sequence_start(&w, i), begin[i]);
    assert_int_equal(dvbf_sequence_length(&w, i), steps[i]);
  }
  dv_windows_free(&w);
  assert_int_equal(dv_windows_cut(&w, &all, 1000, 1, NULL), DVBF_OK);
  assert_int_equal(w.count, 3);
  dv_windows_free(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(time_is_cut_in_order),
      cmocka_unit_test(sequences_are_split_in_order),
      cmocka_unit_test(too_little_is_refused),
      cmocka_unit_test(windows_cover_everything),
  };
  return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
