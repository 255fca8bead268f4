/* The bound of a trained model against the exact likelihood of a linear-Gaussian system.
 *
 * Whatever a model has learned, bound <= ln p_model(x), and the mean of ln p_model(x) over data of the system
 * is at most that of ln p_system(x). So the bound on held-out data must not pass the exact likelihood, and a
 * well trained model comes close to it: both a mistake in a term of the bound and one in its gradient show
 * here. */
#include "evaluate/evaluate.h"
#include "kalman.h"
#include "math/random.h"

#include <dvbf/dvbf.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRAIN = 1000, VALID = 200, TEST = 1000, SAMPLES = 4 };

/* Under sanitizers training stops early: the bound must still hold, but it cannot be close. */
#ifdef __SANITIZE_ADDRESS__
enum { CLOSE = 0 };
static const char *const updates = "1000";
#else
enum { CLOSE = 1 };
static const char *const updates = "3000";
#endif

/* A damped rotation that the control pushes. Frames tell most of z, as recognition sees no frame but the
 * next. */
static const kalman_system linear = {.a = {{0.83, -0.45}, {0.45, 0.83}},
                                     .b = {{0.2}, {0.5}},
                                     .c = {{0.4, 0}, {0.1, 0.5}},
                                     .h = {{1.5, 0}, {0, 1.5}, {1, 1}, {0.5, -1}},
                                     .sigma = 0.15};

/* ---- Data ---- */

static void make_sequence(dv_random *random, double *u, double *x) {
  double noise[K_NOISES];
  for (int i = 0; i < K_STEPS * K_U; i++) u[i] = dv_random_normal(random);
  for (int i = 0; i < K_NOISES; i++) noise[i] = dv_random_normal(random);
  kalman_simulate(&linear, u, noise, x);
}

static dvbf_sequences make_sequences(size_t count, uint32_t split) {
  dvbf_sequences s = {.count = count, .steps = K_STEPS, .n_x = K_X, .n_u = K_U};
  double u[K_STEPS * K_U], x[K_ALL];
  s.x = calloc(count * K_ALL, sizeof *s.x);
  s.u = calloc(count * K_STEPS * K_U, sizeof *s.u);
  assert_true(s.x && s.u);
  for (size_t i = 0; i < count; i++) {
    dv_random random = dv_random_at(1, DV_STREAM_SIMULATION, split, (uint32_t)i);
    make_sequence(&random, u, x);
    for (int k = 0; k < K_ALL; k++) s.x[i * K_ALL + (size_t)k] = (float)x[k];
    for (int k = 0; k < K_STEPS * K_U; k++) s.u[i * K_STEPS * K_U + (size_t)k] = (float)u[k];
  }
  return s;
}

static void free_sequences(dvbf_sequences *s) {
  free(s->x);
  free(s->u);
}

/* ln p of sequence i under the system that made it. */
static double exact(const dvbf_sequences *s, size_t i) {
  double u[K_STEPS * K_U], x[K_ALL];
  for (size_t k = 0; k < K_ALL; k++) x[k] = (double)s->x[i * K_ALL + k];
  for (size_t k = 0; k < K_STEPS * K_U; k++) u[k] = (double)s->u[i * K_STEPS * K_U + k];
  return kalman_log_likelihood(&linear, u, x);
}

/* ---- Training ---- */

static void set(dvbf_settings *settings, const char *name, const char *value) {
  dvbf_error error;
  if (dvbf_settings_set(settings, name, value, &error)) fail_msg("%s", error.message);
}

static dvbf_model *train(const dvbf_data *data) {
  static const char *const values[][2] = {{"transition", "linear"},
                                          {"universal", "point"},
                                          {"latent", "2"},
                                          {"hidden", "64"},
                                          {"initial-frames", "0"},
                                          {"initial-control", "on"},
                                          {"scale-transition", "0.02"},
                                          {"x-scaling", "none"},
                                          {"sigma-floor", "0.05"},
                                          {"sigma-floor-updates", "300"},
                                          {"filter-dropout", "0.2"},
                                          {"filter-dropout-end", "0"},
                                          {"filter-dropout-updates", "300"},
                                          {"batch-size", "50"},
                                          {"learning-rate", "0.004"},
                                          {"starts", "1"},
                                          {"threads", "1"}};
  dvbf_settings *settings = NULL;
  dvbf_model *model = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) set(settings, values[i][0], values[i][1]);
  set(settings, "updates", updates);
  if (dvbf_train(&model, settings, data, NULL, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return model;
}

/* ---- Tests ---- */

static void test_recursions_give_the_joint_likelihood(void **unused) {
  (void)unused;
  dv_random random = dv_random_at(2, DV_STREAM_SIMULATION, 0, 0);
  double u[K_STEPS * K_U], x[K_ALL];
  for (int i = 0; i < 20; i++) {
    make_sequence(&random, u, x);
    double recursive = kalman_log_likelihood(&linear, u, x),
           joint = kalman_joint_log_likelihood(&linear, u, x);
    assert_true(fabs(recursive - joint) < 1e-8);
  }
}

/* bound[i] of each sequence, averaged over samples. */
static void measure_bounds(const dvbf_model *model, const dvbf_sequences *s, double *bound) {
  for (size_t sample = 0; sample < SAMPLES; sample++) {
    dv_path_options options = {.seed = 1 + sample, .threads = 1};
    dv_paths *paths = NULL;
    assert_int_equal(dv_paths_of(&paths, model, s, &options, NULL), DVBF_OK);
    for (size_t k = 0; k < s->count * K_STEPS; k++)
      bound[k / K_STEPS] += (paths->log_likelihood[k] - paths->kl[k]) / SAMPLES;
    dv_paths_free(paths);
  }
}

/* Mean over sequences of the exact likelihood less the bound, and the standard error of that mean. */
static double mean_gap(const dvbf_sequences *s, const double *bound, double *deviation) {
  double sum = 0, squares = 0, n = (double)s->count;
  for (size_t i = 0; i < s->count; i++) {
    double gap = exact(s, i) - bound[i];
    sum += gap;
    squares += gap * gap;
  }
  *deviation = sqrt((squares / n - sum / n * (sum / n)) / (n - 1));
  return sum / n;
}

static double evaluated_bound(const dvbf_model *model, const dvbf_data *data) {
  dvbf_settings *settings = NULL;
  dvbf_evaluation *evaluation = NULL;
  assert_int_equal(dvbf_settings_new(&settings, "evaluate", NULL), DVBF_OK);
  char text[16];
  snprintf(text, sizeof text, "%d", SAMPLES);
  set(settings, "samples", text);
  snprintf(text, sizeof text, "%d", K_STEPS); /* the initial network wants all frames: nothing is predicted */
  set(settings, "observe", text);
  set(settings, "threads", "1");
  assert_int_equal(dvbf_evaluate(&evaluation, model, data, &data->test, settings, NULL), DVBF_OK);
  double elbo = evaluation->elbo;
  dvbf_evaluation_free(evaluation);
  dvbf_settings_free(settings);
  return elbo;
}

static void test_bound_nears_the_likelihood_from_below(void **unused) {
  (void)unused;
  dvbf_data data = {
      .train = make_sequences(TRAIN, 0), .valid = make_sequences(VALID, 1), .test = make_sequences(TEST, 2)};
  double *bound = calloc(TEST, sizeof *bound), deviation, total = 0;
  dvbf_model *model = train(&data);
  assert_non_null(bound);
  measure_bounds(model, &data.test, bound);
  double gap = mean_gap(&data.test, bound, &deviation);
  print_message("likelihood less bound: %.4f +- %.4f nats per frame\n", gap / K_STEPS, deviation / K_STEPS);
  assert_true(gap > -3 * deviation);
  /* 0.045 to 0.058 with each of 50 seeds. With twenty times the sequences and seven times the updates 0.022
   * is left, so most of it is the short training. */
  assert_true(!CLOSE || gap < 0.1 * K_STEPS);
  for (size_t i = 0; i < TEST; i++) total += bound[i];
  assert_true(fabs(total / (TEST * K_STEPS) - evaluated_bound(model, &data)) < 1e-6);
  dvbf_model_free(model);
  free(bound);
  free_sequences(&data.train);
  free_sequences(&data.valid);
  free_sequences(&data.test);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_recursions_give_the_joint_likelihood),
      cmocka_unit_test(test_bound_nears_the_likelihood_from_below),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
