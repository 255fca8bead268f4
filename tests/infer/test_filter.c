/* The online filter against inference over whole sequences, which shares no code with it but the equations.
 */
#include "base/memory.h"
#include "data/dataset.h"
#include "evaluate/evaluate.h"
#include "math/random.h"
#include "model/model.h"

#include <dvbf/dvbf.h>
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

enum { STEPS = 12, N_X = 7, N_U = 2, N_Z = 3, SEEN = 8, PASSES = 600, SAMPLES = 4096 };

static dvbf_sequences make_data(void) {
  dvbf_sequences s = {.count = 4, .steps = STEPS, .n_x = N_X, .n_u = N_U};
  assert_int_equal(dv_sequences_allocate(&s, false, NULL), DVBF_OK);
  dv_random r = dv_random_at(5, DV_STREAM_SIMULATION, 0, 0);
  for (size_t i = 0; i < s.count * STEPS * N_X; i++) s.x[i] = (float)(1 + 2 * dv_random_normal(&r));
  for (size_t i = 0; i < s.count * STEPS * N_U; i++) s.u[i] = (float)dv_random_normal(&r);
  return s;
}

/* With one more setting. */
static dvbf_model *make_model_with(const dvbf_sequences *data, const char *initial, const char *frames,
                                   const char *name, const char *value) {
  const char *const values[][2] = {{"universal", "point"},
                                   {"hidden", "20"},
                                   {"x-scaling", "standardise"},
                                   {"initial", initial},
                                   {"initial-frames", frames},
                                   {"u-scaling", "standardise"},
                                   {"systems", "5"},
                                   {"recognition-input", strcmp(value, "on") != 0 ? "frame" : "innovation"},
                                   {name, value}};
  dvbf_settings *settings = NULL;
  dvbf_model *model = NULL;
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    assert_int_equal(dvbf_settings_set(settings, values[i][0], values[i][1], NULL), DVBF_OK);
  assert_int_equal(dv_model_new(&model, settings, NULL, data, 3, NULL), DVBF_OK);
  dvbf_settings_free(settings);
  return model;
}

static dvbf_model *make_model(const dvbf_sequences *data, const char *initial, const char *frames) {
  return make_model_with(data, initial, frames, "state-limit", "0");
}

static dvbf_filter *make_filter(const dvbf_model *model, size_t samples, uint64_t seed, void **memory) {
  size_t size;
  dvbf_filter *filter = NULL;
  assert_int_equal(dvbf_filter_memsize(&size, model, samples, NULL), DVBF_OK);
  *memory = dv_calloc_aligned(size, 1);
  assert_int_equal(dvbf_filter_init(&filter, *memory, size, model, samples, seed, NULL), DVBF_OK);
  return filter;
}

/* mean and variance [STEPS][N_Z] of z in sequence 0 over many passes. */
static void offline(const dvbf_model *model, const dvbf_sequences *data, size_t observe, double *mean,
                    double *variance) {
  memset(mean, 0, STEPS * N_Z * sizeof *mean);
  memset(variance, 0, STEPS * N_Z * sizeof *variance);
  for (uint64_t seed = 0; seed < PASSES; seed++) {
    dv_path_options options = {.observe = observe, .seed = 100 + seed, .threads = 1};
    dv_paths *paths = NULL;
    assert_int_equal(dv_paths_of(&paths, model, data, &options, NULL), DVBF_OK);
    for (size_t i = 0; i < STEPS * N_Z; i++) {
      mean[i] += (double)paths->z[i] / PASSES;
      variance[i] += (double)paths->z[i] * (double)paths->z[i] / PASSES;
    }
    dv_paths_free(paths);
  }
  for (size_t i = 0; i < STEPS * N_Z; i++) variance[i] -= mean[i] * mean[i];
}

static void step(dvbf_filter *filter, const dvbf_sequences *data, size_t t, bool seen, size_t lead,
                 dvbf_belief *belief) {
  dvbf_filter_step(filter, seen ? data->x + t * N_X : NULL, t + lead ? data->u + (t + lead - 1) * N_U : NULL,
                   belief);
}

/* Means and deviations of the online samples agree with the passes, observed and predicted. With a limit, it
 * is so narrow that most states are beyond it. */
static void compare(const char *initial, const char *frames, size_t first, const char *name,
                    const char *value) {
  dvbf_sequences data = make_data();
  dvbf_model *model = make_model_with(&data, initial, frames, name, value);
  bool path = !strcmp(value, "on");
  double mean[STEPS * N_Z], variance[STEPS * N_Z];
  void *memory;
  dvbf_belief belief;
  dvbf_filter *filter = make_filter(model, SAMPLES, 9, &memory);
  for (size_t i = 0; path && i < model->parameters.size; i++) /* linear paths start at 0 */
    model->parameters.values[i] += 0.05f * (float)sin((double)i);
  const dv_parameter *later = dv_model_find(model, "recognition.hidden.later"); /* a filter sees no such */
  for (int i = 0; later && i < later->rows * later->cols; i++)
    model->parameters.values[later->offset + (size_t)i] = 0;
  dvbf_real *range = dv_model_range(model);
  for (int k = 0; range && k < N_Z; k++) range[N_Z + k] = 0.3f;
  offline(model, &data, SEEN, mean, variance);
  for (size_t t = 0; t < STEPS; t++) {
    size_t lead = dvbf_model_describe(model).feedthrough ? 1 : 0; /* then u comes with its own frame */
    step(filter, &data, t, t < SEEN, lead, &belief);
    assert_int_equal(belief.ready, t + 1 >= first);
    for (size_t i = 0; i < N_Z && belief.ready; i++) {
      double v = variance[t * N_Z + i], error = sqrt(v * (1.0 / PASSES + 1.0 / SAMPLES));
      assert_true(fabs((double)belief.mean[i] - mean[t * N_Z + i]) < 5 * error);
      assert_true(fabs((double)belief.deviation[i] / sqrt(v) - 1) < 0.2);
    }
  }
  dv_free(memory);
  dvbf_model_free(model);
  dvbf_sequences_free(&data);
}

static void agrees_with_inference_mlp(void **state) {
  (void)state;
  compare("mlp", "5", 5, "state-limit", "0");
}

static void agrees_with_inference_birnn(void **state) {
  (void)state;
  compare("birnn", "3", 3, "state-limit", "0");
}

static void agrees_with_inference_fast_dropout(void **state) {
  (void)state;
  compare("fast-dropout", "3", 3, "state-limit", "0");
}

static void agrees_with_inference_beyond_limits(void **state) {
  (void)state;
  compare("mlp", "5", 5, "state-limit", "2");
}

/* The systems are contracted once, with the first step, and kept. */
static void agrees_with_inference_contracting(void **state) {
  (void)state;
  compare("mlp", "5", 5, "contraction", "0.8");
}

static void agrees_with_inference_innovation(void **state) {
  (void)state;
  compare("mlp", "5", 5, "linear-paths", "on");
}

static void agrees_with_inference_feedthrough(void **state) {
  (void)state;
  compare("mlp", "3", 3, "feedthrough", "on");
}

static void agrees_with_inference_waiting(void **state) {
  (void)state;
  compare("mlp", "5", 5, "gain-updates", "1");
  compare("birnn", "3", 3, "gain-updates", "1");
}

static void agrees_with_inference_smoothing(void **state) {
  (void)state;
  compare("mlp", "5", 5, "recognition", "smoothing");
}

/* z of a few steps on the way, without noise, given the first `observe` frames. */
static void path(const dvbf_model *model, const dvbf_sequences *data, size_t observe, float z[STEPS * N_Z]) {
  dv_path_options options = {.observe = observe, .seed = 1, .threads = 1};
  dv_paths *paths = NULL;
  assert_int_equal(dv_paths_of(&paths, model, data, &options, NULL), DVBF_OK);
  memcpy(z, paths->z, STEPS * N_Z * sizeof *z);
  dv_paths_free(paths);
}

/* With smoothing an early state depends on a late frame, and on none that may not be seen. */
static void smoothing_sees_what_it_may(void **state) {
  (void)state;
  dvbf_sequences data = make_data();
  dvbf_model *model = make_model_with(&data, "mlp", "3", "recognition", "smoothing");
  dvbf_model *causal = make_model_with(&data, "mlp", "3", "recognition", "filtering");
  float before[3][STEPS * N_Z], after[3][STEPS * N_Z];
  path(model, &data, SEEN, before[0]);
  path(model, &data, SEEN - 1, before[1]);
  path(causal, &data, SEEN, before[2]);
  for (int i = 0; i < N_X; i++) data.x[(SEEN - 1) * N_X + i] += 1;
  path(model, &data, SEEN, after[0]);
  path(model, &data, SEEN - 1, after[1]);
  path(causal, &data, SEEN, after[2]);
  assert_memory_equal(before[0], after[0], N_Z * sizeof(float)); /* z_1 is made from three frames */
  for (size_t t = 1; t < SEEN; t++)
    for (size_t i = 0; i < N_Z; i++) assert_true(before[0][t * N_Z + i] != after[0][t * N_Z + i]);
  assert_memory_equal(before[1], after[1], sizeof before[1]);
  assert_memory_equal(before[2], after[2], (SEEN - 1) * N_Z * sizeof(float));
  dvbf_model_free(model);
  dvbf_model_free(causal);
  dvbf_sequences_free(&data);
}

static void same_inputs_same_bytes_no_allocation(void **state) {
  (void)state;
  dvbf_sequences data = make_data();
  dvbf_model *model = make_model(&data, "mlp", "2");
  void *memory[2];
  dvbf_filter *a = make_filter(model, 8, 4, &memory[0]), *b = make_filter(model, 8, 4, &memory[1]);
  dvbf_belief from_a, from_b;
  for (size_t t = 0; t < 6; t++) step(b, &data, t, true, 0, &from_b); /* b has a past, which it forgets */
  dvbf_filter_reset(b);
  unsigned long before = dv_allocations();
  for (size_t t = 0; t < STEPS; t++) {
    step(a, &data, t, t != 3, 0, &from_a);
    step(b, &data, t, t != 3, 0, &from_b);
    if (from_a.ready) assert_memory_equal(from_a.z, from_b.z, 8 * N_Z * sizeof(float));
  }
  assert_int_equal(dv_allocations(), before);
  dv_free(memory[0]);
  dv_free(memory[1]);
  dvbf_model_free(model);
  dvbf_sequences_free(&data);
}

/* A sample does not depend on how many others there are, though these share the product with x. */
static void samples_stand_alone(void **state) {
  (void)state;
  dvbf_sequences data = make_data();
  dvbf_model *model = make_model(&data, "mlp", "2");
  void *memory[2];
  dvbf_filter *few = make_filter(model, 3, 4, &memory[0]), *many = make_filter(model, 20, 4, &memory[1]);
  dvbf_belief from_few, from_many;
  for (size_t t = 0; t < STEPS; t++) {
    step(few, &data, t, t != 5, 0, &from_few);
    step(many, &data, t, t != 5, 0, &from_many);
    for (size_t i = 0; i < 3 * N_Z && from_few.ready; i++)
      assert_true(fabsf(from_few.z[i] - from_many.z[i]) <= 1e-5f * (1 + fabsf(from_few.z[i])));
  }
  dv_free(memory[0]);
  dv_free(memory[1]);
  dvbf_model_free(model);
  dvbf_sequences_free(&data);
}

/* A frame of NaN is a missing one, and a missing value stands at its mean. */
static void missing_values(void **state) {
  (void)state;
  dvbf_sequences data = make_data();
  dvbf_model *model = make_model(&data, "mlp", "2");
  void *memory[2];
  dvbf_filter *a = make_filter(model, 4, 4, &memory[0]), *b = make_filter(model, 4, 4, &memory[1]);
  dvbf_belief from_a, from_b;
  for (size_t t = 0; t < STEPS; t++) {
    float x[N_X], filled[N_X];
    bool none = t % 4 == 3;
    for (int i = 0; i < N_X; i++) {
      bool gap = none || (t % 2 && i % 3 == 1);
      x[i] = gap ? NAN : data.x[t * N_X + (size_t)i];
      filled[i] = gap ? model->x.shift[i] : x[i];
    }
    dvbf_filter_step(a, x, NULL, &from_a);
    dvbf_filter_step(b, none ? NULL : filled, NULL, &from_b);
    if (from_a.ready) assert_memory_equal(from_a.z, from_b.z, 4 * N_Z * sizeof(float));
  }
  dv_free(memory[0]);
  dv_free(memory[1]);
  dvbf_model_free(model);
  dvbf_sequences_free(&data);
}

/* Tiny numbers are flushed inside a step, and only there. */
static void tiny_numbers_stay_the_callers(void **state) {
  (void)state;
  dvbf_sequences data = make_data();
  dvbf_model *model = make_model(&data, "mlp", "2");
  void *memory;
  dvbf_filter *filter = make_filter(model, 2, 4, &memory);
  dvbf_belief belief;
  volatile float tiny = FLT_MIN;
  for (size_t t = 0; t < STEPS; t++) {
    step(filter, &data, t, true, 0, &belief);
    assert_true(tiny / 2 > 0);
  }
  dv_free(memory);
  dvbf_model_free(model);
  dvbf_sequences_free(&data);
}

static void bad_memory_is_refused(void **state) {
  (void)state;
  dvbf_sequences data = make_data();
  dvbf_model *model = make_model(&data, "mlp", "2");
  dvbf_error error;
  size_t size;
  dvbf_filter *filter = NULL;
  assert_int_equal(dvbf_filter_memsize(&size, model, 0, &error), DVBF_ARGUMENT);
  assert_int_equal(dvbf_filter_memsize(&size, model, 2, &error), DVBF_OK);
  assert_int_equal(size % 64, 0); /* so that aligned_alloc(64, size) is allowed, as the header shows */
  unsigned char *memory = aligned_alloc(64, size);
  assert_non_null(memory);
  assert_int_equal(dvbf_filter_init(&filter, memory, size - 1, model, 2, 1, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "needs"));
  assert_int_equal(dvbf_filter_init(&filter, memory + 4, size, model, 2, 1, &error), DVBF_ARGUMENT);
  assert_int_equal(dvbf_filter_init(&filter, NULL, size, model, 2, 1, &error), DVBF_ARGUMENT);
  assert_int_equal(dvbf_filter_init(&filter, memory, size, model, 2, 1, &error), DVBF_OK);
  free(memory);
  dvbf_model_free(model);
  dvbf_sequences_free(&data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_inference_mlp),
      cmocka_unit_test(agrees_with_inference_birnn),
      cmocka_unit_test(agrees_with_inference_fast_dropout),
      cmocka_unit_test(agrees_with_inference_beyond_limits),
      cmocka_unit_test(agrees_with_inference_contracting),
      cmocka_unit_test(agrees_with_inference_innovation),
      cmocka_unit_test(agrees_with_inference_feedthrough),
      cmocka_unit_test(agrees_with_inference_waiting),
      cmocka_unit_test(agrees_with_inference_smoothing),
      cmocka_unit_test(smoothing_sees_what_it_may),
      cmocka_unit_test(same_inputs_same_bytes_no_allocation),
      cmocka_unit_test(samples_stand_alone),
      cmocka_unit_test(missing_values),
      cmocka_unit_test(tiny_numbers_stay_the_callers),
      cmocka_unit_test(bad_memory_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
