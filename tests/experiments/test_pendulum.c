/* The simulated pendulum against physics that is known in closed form, and against the numbers of the paper's
 * data. */
#include "data/dataset.h"

#include <dvbf/dvbf.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { SIN, COS, VELOCITY, STATES };

/* Simulates with the defaults, small splits, and the given name, value, ..., NULL on top. */
static dvbf_status try_simulate(dvbf_data **out, dvbf_error *error, va_list pairs) {
  dvbf_settings *settings = NULL;
  assert_int_equal(dvbf_settings_new(&settings, "pendulum", NULL), DVBF_OK);
  static const char *const small[][2] = {{"train", "20"}, {"valid", "1"}, {"test", "1"}, {"size", "4"}};
  for (size_t i = 0; i < sizeof small / sizeof *small; i++)
    assert_int_equal(dvbf_settings_set(settings, small[i][0], small[i][1], NULL), DVBF_OK);
  for (const char *name; (name = va_arg(pairs, const char *));)
    assert_int_equal(dvbf_settings_set(settings, name, va_arg(pairs, const char *), NULL), DVBF_OK);
  dvbf_status status = dvbf_simulate(out, settings, error);
  dvbf_settings_free(settings);
  return status;
}

static dvbf_data *simulate(const char *first, ...) {
  (void)first; /* va_start needs a name before the pairs */
  dvbf_data *data = NULL;
  va_list pairs;
  va_start(pairs, first);
  assert_int_equal(try_simulate(&data, NULL, pairs), DVBF_OK);
  va_end(pairs);
  return data;
}
#define SIMULATE(...) simulate("", __VA_ARGS__, (const char *)NULL)

static const float *state_at(const dvbf_sequences *s, size_t sequence, size_t step) {
  return s->state + (sequence * s->steps + step) * STATES;
}

/* Kinetic and potential energy for m = l = 1, g = 9.81. */
static double energy(const float *state /* [STATES] */) {
  return 0.5 * state[VELOCITY] * state[VELOCITY] + 9.81 * state[COS];
}

static void test_energy_is_conserved(void **unused) {
  (void)unused;
  dvbf_data *data = SIMULATE("damping", "0", "torque", "0", "steps", "200", "substeps", "50");
  for (size_t i = 0; i < data->train.count; i++)
    for (size_t t = 1; t < data->train.steps; t++)
      assert_true(fabs(energy(state_at(&data->train, i, t)) - energy(state_at(&data->train, i, 0))) < 2e-5);
  dvbf_data_free(data);
}

static void test_damping_takes_energy(void **unused) {
  (void)unused;
  dvbf_data *data = SIMULATE("torque", "0", "steps", "50");
  for (size_t i = 0; i < data->train.count; i++) {
    for (size_t t = 1; t < data->train.steps; t++)
      assert_true(energy(state_at(&data->train, i, t)) < energy(state_at(&data->train, i, t - 1)) + 1e-5);
    assert_true(energy(state_at(&data->train, i, 49)) < energy(state_at(&data->train, i, 0)) - 0.5);
  }
  dvbf_data_free(data);
}

/* Without gravity v' = (u - mu v) / (m l^2) has a solution in closed form, which also fixes when u[t] acts.
 */
static void test_torque_acts_between_frames(void **unused) {
  (void)unused;
  dvbf_data *data = SIMULATE("gravity", "0", "mass", "2", "length", "0.5", "damping", "0.7");
  const dvbf_sequences *s = &data->train;
  double decay = exp(-0.7 / (2 * 0.5 * 0.5) * 0.1);
  for (size_t i = 0; i < s->count; i++)
    for (size_t t = 0; t + 1 < s->steps; t++) {
      double expected = state_at(s, i, t)[VELOCITY] * decay + s->u[i * s->steps + t] / 0.7 * (1 - decay);
      assert_true(fabs(state_at(s, i, t + 1)[VELOCITY] - expected) < 1e-5);
    }
  dvbf_data_free(data);
}

/* Root of the summed squared distance of the last velocities of two simulations. */
static double distance(const dvbf_data *a, const dvbf_data *b) {
  double sum = 0;
  for (size_t i = 0; i < a->train.count; i++) {
    size_t last = a->train.steps - 1;
    double d = state_at(&a->train, i, last)[VELOCITY] - state_at(&b->train, i, last)[VELOCITY];
    sum += d * d;
  }
  return sqrt(sum);
}

static void test_integrator_has_order_four(void **unused) {
  (void)unused;
  dvbf_data *coarse = SIMULATE("dt", "0.8", "steps", "2", "substeps", "8");
  dvbf_data *fine = SIMULATE("dt", "0.8", "steps", "2", "substeps", "16");
  dvbf_data *exact = SIMULATE("dt", "0.8", "steps", "2", "substeps", "2000");
  double ratio = distance(coarse, exact) / distance(fine, exact);
  assert_true(ratio > 13 && ratio < 21); /* 2^4 in the limit */
  dvbf_data_free(coarse);
  dvbf_data_free(fine);
  dvbf_data_free(exact);
}

static double state_variance(const dvbf_sequences *s, size_t column) {
  double sum = 0, squares = 0, n = (double)(s->count * s->steps);
  for (size_t k = 0; k < s->count * s->steps; k++) {
    sum += s->state[k * STATES + column];
    squares += (double)s->state[k * STATES + column] * s->state[k * STATES + column];
  }
  return squares / n - sum / n * (sum / n);
}

/* The paper's 500 sequences have 13.57, 0.519 and 0.473, an earlier simulation of the same equation 13.4,
 * 0.50 and 0.48. Over sets of 500 sequences the variances deviate by 0.40, 0.007 and 0.0085: the paper's are
 * met within three of these, the others within their rounding and a sixth of these. */
static void test_states_vary_as_in_the_paper(void **unused) {
  (void)unused;
  dvbf_data *data = SIMULATE("train", "20000");
  double velocity = state_variance(&data->train, VELOCITY), sine = state_variance(&data->train, SIN),
         cosine = state_variance(&data->train, COS);
  assert_true(fabs(velocity - 13.57) < 1.2 && fabs(velocity - 13.4) < 0.2);
  assert_true(fabs(sine - 0.519) < 0.021 && fabs(sine - 0.50) < 0.01);
  assert_true(fabs(cosine - 0.473) < 0.026 && fabs(cosine - 0.48) < 0.01);
  dvbf_data_free(data);
}

static void test_pixels_vary_as_measured(void **unused) {
  (void)unused;
  dvbf_data *data = SIMULATE("train", "2000", "size", "16");
  dv_statistics x;
  double total = 0;
  assert_int_equal(dv_statistics_of_x(&x, &data->train, NULL), DVBF_OK);
  for (size_t k = 0; k < 256; k++) total += x.variance[k];
  dv_statistics_free(&x);
  assert_true(fabs(total - 5.8) < 0.1);
  dvbf_data_free(data);
}

/* A share of the frames is NaN as a whole; all else is as without it. */
static void test_frames_can_be_missing(void **unused) {
  (void)unused;
  dvbf_data *whole = SIMULATE("train", "200"), *data = SIMULATE("train", "200", "missing", "0.2");
  dvbf_sequences *s = &data->train;
  size_t frames = s->count * s->steps, lost = 0;
  assert_true(s->gaps && !whole->train.gaps);
  for (size_t i = 0; i < frames; i++) {
    bool gone = isnan(s->x[i * s->n_x]);
    lost += gone;
    for (size_t k = i * s->n_x; k < (i + 1) * s->n_x; k++)
      assert_true(gone ? isnan(s->x[k]) : s->x[k] == whole->train.x[k]);
  }
  assert_true(fabs((double)lost / (double)frames - 0.2) < 0.03);
  assert_memory_equal(s->u, whole->train.u, frames * sizeof *s->u);
  dvbf_data_free(whole);
  dvbf_data_free(data);
}

/* The bob's centre of mass is where the state says, upright being at the top, and its mass is 2 pi sigma^2.
 */
static void test_image_shows_the_state(void **unused) {
  (void)unused;
  dvbf_data *data = SIMULATE("size", "32", "radius", "4", "blob", "0.6");
  const dvbf_sequences *s = &data->train;
  double middle = 15.5, radius = 8, deviation = 1.2;
  assert_int_equal(data->image_height, 32);
  assert_int_equal(data->image_width, 32);
  for (size_t k = 0; k < s->count * s->steps; k++) {
    double mass = 0, row = 0, column = 0;
    for (size_t p = 0; p < s->n_x; p++) {
      double x = s->x[k * s->n_x + p];
      assert_true(x >= 0 && x <= 1);
      mass += x;
      row += x * (double)(p / 32);
      column += x * (double)(p % 32);
    }
    assert_true(fabs(mass - 2 * M_PI * deviation * deviation) < 1e-4);
    assert_true(fabs(row / mass - (middle - radius * s->state[k * STATES + COS])) < 1e-4);
    assert_true(fabs(column / mass - (middle + radius * s->state[k * STATES + SIN])) < 1e-4);
  }
  dvbf_data_free(data);
}

static bool same(const dvbf_sequences *a, const dvbf_sequences *b, size_t count) {
  size_t n = count * a->steps;
  return !memcmp(a->x, b->x, n * a->n_x * sizeof *a->x) && !memcmp(a->u, b->u, n * sizeof *a->u) &&
         !memcmp(a->state, b->state, n * STATES * sizeof *a->state);
}

static void test_seed_decides(void **unused) {
  (void)unused;
  dvbf_data *a = SIMULATE("seed", "3"), *again = SIMULATE("seed", "3"), *other = SIMULATE("seed", "4");
  assert_true(same(&a->train, &again->train, 20));
  assert_true(same(&a->test, &again->test, 1));
  assert_false(same(&a->train, &other->train, 1));
  assert_false(same(&a->train, &a->valid, 1));
  assert_false(same(&a->valid, &a->test, 1));
  dvbf_data_free(a);
  dvbf_data_free(again);
  dvbf_data_free(other);
}

static void test_sequence_ignores_the_others(void **unused) {
  (void)unused;
  dvbf_data *few = SIMULATE("train", "3"), *many = SIMULATE("train", "50", "valid", "7");
  assert_true(same(&few->train, &many->train, 3));
  assert_true(same(&few->valid, &many->valid, 1));
  assert_true(same(&few->test, &many->test, 1));
  dvbf_data_free(few);
  dvbf_data_free(many);
}

static void test_names_and_sizes(void **unused) {
  (void)unused;
  dvbf_data *data = SIMULATE("train", "4", "valid", "3", "test", "2", "steps", "5");
  assert_string_equal(data->state_names[SIN], "sin");
  assert_string_equal(data->state_names[COS], "cos");
  assert_string_equal(data->state_names[VELOCITY], "velocity");
  assert_int_equal(data->train.count, 4);
  assert_int_equal(data->valid.count, 3);
  assert_int_equal(data->test.count, 2);
  assert_int_equal(dv_data_validate(data, "data", NULL), DVBF_OK);
  dvbf_data_free(data);
}

static dvbf_status refused(dvbf_data **out, dvbf_error *error, ...) {
  va_list pairs;
  va_start(pairs, error);
  dvbf_status status = try_simulate(out, error, pairs);
  va_end(pairs);
  return status;
}

static void test_refusals(void **unused) {
  (void)unused;
  dvbf_error error;
  dvbf_data *data = NULL;
  assert_int_equal(refused(&data, &error, "damping", "1e6", "dt", "10", "steps", "100", NULL), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "substeps"));
  assert_null(data);
  dvbf_settings *train = NULL;
  assert_int_equal(dvbf_settings_new(&train, "train", NULL), DVBF_OK);
  assert_int_equal(dvbf_simulate(&data, train, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "pendulum"));
  assert_null(data);
  dvbf_settings_free(train);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_energy_is_conserved),
      cmocka_unit_test(test_damping_takes_energy),
      cmocka_unit_test(test_torque_acts_between_frames),
      cmocka_unit_test(test_integrator_has_order_four),
      cmocka_unit_test(test_states_vary_as_in_the_paper),
      cmocka_unit_test(test_pixels_vary_as_measured),
      cmocka_unit_test(test_frames_can_be_missing),
      cmocka_unit_test(test_image_shows_the_state),
      cmocka_unit_test(test_seed_decides),
      cmocka_unit_test(test_sequence_ignores_the_others),
      cmocka_unit_test(test_names_and_sizes),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
