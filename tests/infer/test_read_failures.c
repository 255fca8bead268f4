/* Frames that cannot be read during inference are a failure, never values that are missing. */
#include "data/dataset.h"
#include "model/model.h"

#include <dvbf/dvbf.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 3, STEPS = 12 };

/* A file of one column whose read number `fails_at` fails, counted from 1. */
typedef struct test_source {
  dvbf_source base;
  unsigned reads, fails_at;
} test_source;

static bool read_frames(dvbf_source *source, uint64_t first, size_t frames, float *out) {
  test_source *from = (test_source *)source;
  for (size_t i = 0; i < frames; i++) out[i] = sinf((float)(first + i));
  return ++from->reads != from->fails_at;
}

static dvbf_settings *make_settings(const char *table, const char *const values[][2], size_t count) {
  dvbf_settings *settings = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_settings_new(&settings, table, &error), DVBF_OK);
  for (size_t i = 0; i < count; i++)
    if (dvbf_settings_set(settings, values[i][0], values[i][1], &error)) fail_msg("%s", error.message);
  return settings;
}

/* Runs what `table` is for on frames of a file whose read number `fails_at` fails; returns how many reads
 * there were. */
static unsigned run(const char *table, const dvbf_model *model, unsigned fails_at, dvbf_status expected) {
  static const char *const values[][2] = {{"samples", "2"}, {"threads", "1"}, {"particles", "2"}};
  test_source source = {.base = {.read = read_frames, .path = "disk"}, .fails_at = fails_at};
  dvbf_data data = {.test = {.count = COUNT, .steps = STEPS, .n_x = 1, .gaps = true, .source = &source.base}};
  dvbf_settings *settings = make_settings(table, values, strcmp(table, "predict") ? 3 : 2);
  dvbf_evaluation *evaluation = NULL;
  dvbf_estimates *estimates = NULL;
  dvbf_error error = {.message = ""};
  dvbf_status status = strcmp(table, "evaluate")
                           ? dvbf_estimate(&estimates, model, &data.test, settings, &error)
                           : dvbf_evaluate(&evaluation, model, &data, &data.test, settings, &error);
  if (status != expected)
    fail_msg("%s: read %u failed: status %d, %s", table, fails_at, status, error.message);
  if (fails_at) assert_non_null(strstr(error.message, "disk: could not be read"));
  dvbf_evaluation_free(evaluation);
  dvbf_estimates_free(estimates);
  dvbf_settings_free(settings);
  return source.reads;
}

static void every_failure_is_noticed(void **state) {
  (void)state;
  static const char *const values[][2] = {{"latent", "2"}, {"hidden", "3"}, {"initial-frames", "2"}};
  dvbf_settings *settings = make_settings("train", values, 3);
  float x[COUNT * STEPS] = {0};
  dvbf_sequences sequences = {.count = COUNT, .steps = STEPS, .n_x = 1, .x = x};
  dvbf_model *model = NULL;
  dvbf_error error;
  for (int i = 0; i < COUNT * STEPS; i++) x[i] = sinf((float)i);
  if (dv_model_new(&model, settings, NULL, &sequences, 1, &error)) fail_msg("%s", error.message);
  static const char *const tables[] = {"evaluate", "filter", "smooth", "predict"};
  for (int k = 0; k < 4; k++) {
    unsigned reads = run(tables[k], model, 0, DVBF_OK);
    assert_true(reads > COUNT);
    for (unsigned i = 1; i <= reads; i++) run(tables[k], model, i, DVBF_IO);
  }
  dvbf_model_free(model);
  dvbf_settings_free(settings);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_failure_is_noticed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
