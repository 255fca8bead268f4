/* Simulated systems: their images against their states, walls, limits, colour, noise, and steps by hand. */
#include "evaluate/tracking.h"
#include "experiments/system.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static dvbf_settings *settings_of(const char *system, const char *const pairs[][2]) {
  static const char *const small[][2] = {{"train", "6"}, {"valid", "1"}, {"test", "1"}, {"steps", "40"}};
  dvbf_settings *settings = NULL;
  assert_int_equal(dvbf_settings_new(&settings, system, NULL), DVBF_OK);
  for (size_t i = 0; i < sizeof small / sizeof *small; i++)
    assert_int_equal(dvbf_settings_set(settings, small[i][0], small[i][1], NULL), DVBF_OK);
  for (size_t i = 0; pairs && pairs[i][0]; i++)
    assert_int_equal(dvbf_settings_set(settings, pairs[i][0], pairs[i][1], NULL), DVBF_OK);
  return settings;
}

static dvbf_data *simulate(const char *system, const char *const pairs[][2]) {
  dvbf_settings *settings = settings_of(system, pairs);
  dvbf_data *data = NULL;
  assert_int_equal(dvbf_simulate(&data, settings, NULL), DVBF_OK);
  dvbf_settings_free(settings);
  return data;
}

static const char *const colour[][2] = {{"channels", "3"}, {"size", "24"}, {NULL, NULL}};

/* Every system in grey and in colour: values of images, shapes, controls within limits, images that move. */
static void test_all_systems_make_images(void **unused) {
  (void)unused;
  dvbf_system_info info;
  for (size_t k = 0; dvbf_system(k, &info); k++)
    for (int in_colour = 0; in_colour < 2; in_colour++) {
      dvbf_settings *settings = settings_of(info.name, in_colour ? colour : NULL);
      dvbf_data *data = simulate(info.name, in_colour ? colour : NULL);
      dv_system system;
      assert_int_equal(dv_system_of(&system, settings, NULL), DVBF_OK);
      const dvbf_sequences *s = &data->train;
      size_t channels = in_colour ? 3 : 1, pixels = data->image_height * data->image_width;
      assert_int_equal(data->image_channels, channels);
      assert_int_equal(s->n_x, pixels * channels);
      assert_int_equal(s->n_u, system.n_u);
      assert_true(system.n_state <= DV_MOST_STATES && system.n_u <= DV_MOST_CONTROLS);
      double moved = 0, differ = 0;
      for (size_t i = 0; i < s->count * s->steps * s->n_x; i++) {
        assert_true(s->x[i] >= 0 && s->x[i] <= 1);
        if (i % (s->steps * s->n_x) >= s->n_x) moved += fabs((double)s->x[i] - (double)s->x[i - s->n_x]);
        if (in_colour && i % 3) differ += fabs((double)s->x[i] - (double)s->x[i - 1]);
      }
      for (size_t i = 0; i < s->count * s->steps * s->n_u; i++)
        assert_true(fabs((double)s->u[i]) <= system.limit);
      assert_true(moved > 1);
      /* The planar point and the dot are white; the obstacles of the one are not. */
      if (in_colour && strcmp(info.name, "dot") != 0) assert_true(differ > 1);
      dvbf_data_free(data);
      dvbf_settings_free(settings);
    }
}

/* The dot is drawn where its state says, at any size. */
static void test_dot_is_where_its_state_says(void **unused) {
  (void)unused;
  static const char *const sizes[][2] = {{"size", "16"}, {"size", "32"}, {"size", "64"}};
  for (size_t k = 0; k < 3; k++) {
    const char *const pairs[][2] = {{sizes[k][0], sizes[k][1]}, {NULL, NULL}};
    dvbf_data *data = simulate("dot", pairs);
    const dvbf_sequences *s = &data->train;
    double size = (double)data->image_width;
    for (size_t i = 0; i < s->count * s->steps; i++) {
      double sum = 0, row = 0, column = 0;
      for (size_t p = 0; p < s->n_x; p++) {
        double light = s->x[i * s->n_x + p];
        sum += light;
        row += light * (double)(p / data->image_width);
        column += light * (double)(p % data->image_width);
      }
      assert_float_equal((column / sum + 0.5) / size, s->state[i * s->n_s], 0.02);
      assert_float_equal(1 - (row / sum + 0.5) / size, s->state[i * s->n_s + 1], 0.02);
    }
    dvbf_data_free(data);
  }
}

/* No point stands in an obstacle, and one that is told to stay stays. */
static void test_planar_point_avoids_obstacles(void **unused) {
  (void)unused;
  dvbf_data *data = simulate("planar", NULL);
  const dvbf_sequences *s = &data->train;
  size_t stood = 0;
  for (size_t i = 0; i < s->count; i++)
    for (size_t t = 0; t + 1 < s->steps; t++) {
      const float *now = s->state + (i * s->steps + t) * 2, *u = s->u + (i * s->steps + t) * 2;
      double moved = hypot(now[2] - now[0], now[3] - now[1]), asked = hypot(u[0], u[1]);
      assert_true(now[0] > 0 && now[0] < 1 && now[1] > 0 && now[1] < 1);
      assert_true(hypot(now[0] - 0.5, now[1] - 0.55) >= 0.15 - 1e-6);
      assert_true(moved == 0 || fabs(moved - asked) < 1e-5);
      stood += moved == 0;
    }
  assert_true(stood > 0 && stood < s->count * s->steps / 2);
  dvbf_data_free(data);
}

/* With friction and no torque it falls from step to step. */
static void test_arm_loses_energy(void **unused) {
  (void)unused;
  static const char *const still[][2] = {{"control", "0"}, {NULL, NULL}};
  dvbf_data *data = simulate("arm", still);
  const dvbf_sequences *s = &data->train;
  for (size_t i = 0; i < s->count; i++) {
    double before = INFINITY;
    for (size_t t = 0; t < s->steps; t++) {
      const float *at = s->state + (i * s->steps + t) * s->n_s;
      double bend = at[0] * (at[2] - at[0]) + at[1] * (at[3] - at[1]), one = at[4], two = at[5];
      double energy = 0.5 * (5.0 / 3 + bend) * one * one + (1.0 / 3 + bend / 2) * one * two + two * two / 6;
      assert_true(energy < before);
      before = energy;
    }
  }
  dvbf_data_free(data);
}

static void test_noise_and_disturbance_change_what_they_should(void **unused) {
  (void)unused;
  static const char *const noise[][2] = {{"noise", "0.1"}, {NULL, NULL}};
  static const char *const disturbed[][2] = {{"disturbance", "0.5"}, {NULL, NULL}};
  dvbf_data *plain = simulate("dot", NULL), *noisy = simulate("dot", noise),
            *pushed = simulate("dot", disturbed);
  size_t states = plain->train.count * plain->train.steps * plain->train.n_s;
  double squares = 0;
  size_t count = 0;
  assert_memory_equal(plain->train.state, noisy->train.state, states * sizeof(float));
  assert_memory_equal(plain->train.u, pushed->train.u, states / 2 * sizeof(float));
  assert_true(memcmp(plain->train.state, pushed->train.state, states * sizeof(float)) != 0);
  for (size_t i = 0; i < plain->train.n_x * 20; i++)
    if (plain->train.x[i] > 0.4F && plain->train.x[i] < 0.6F) {
      double d = (double)noisy->train.x[i] - (double)plain->train.x[i];
      squares += d * d, count++;
    }
  assert_true(count > 20);
  assert_float_equal(sqrt(squares / (double)count), 0.1, 0.04);
  dvbf_data_free(plain);
  dvbf_data_free(noisy);
  dvbf_data_free(pushed);
}

/* A closed loop by hand: the same states and images as the data set has, from the same controls. */
static void test_steps_by_hand_are_those_of_the_data(void **unused) {
  (void)unused;
  dvbf_settings *settings = settings_of("cart-pole", NULL);
  dvbf_data *data = simulate("cart-pole", NULL);
  const dvbf_sequences *s = &data->train;
  dv_system system;
  assert_int_equal(dv_system_of(&system, settings, NULL), DVBF_OK);
  dv_random random = dv_random_at(1, DV_STREAM_SIMULATION, DV_SPLIT_TRAIN, 0);
  double state[DV_MOST_STATES];
  float image[32 * 32], truth[DV_MOST_TRUTHS];
  system.reset(&system, &random, state);
  for (size_t t = 0; t < s->steps; t++) {
    dv_system_draw(&system, state, image, NULL);
    system.tell(&system, state, truth);
    assert_memory_equal(image, s->x + t * s->n_x, sizeof image);
    assert_memory_equal(truth, s->state + t * s->n_s, s->n_s * sizeof(float));
    assert_true(dv_system_step(&system, state, s->u + t, NULL));
  }
  float hard[] = {1e9F}, limit[] = {(float)system.limit};
  double other[DV_MOST_STATES];
  memcpy(other, state, sizeof state);
  assert_true(dv_system_step(&system, state, hard, NULL) && dv_system_step(&system, other, limit, NULL));
  assert_memory_equal(state, other, (size_t)system.n_state * sizeof *state);
  dvbf_data_free(data);
  dvbf_settings_free(settings);
}

/* The place of a dot is found in its pictures; a camera sees no object. */
static void test_objects_are_found(void **unused) {
  (void)unused;
  static const struct {
    const char *name;
    bool object;
  } cases[] = {{"dot", true}, {"textured-dot", true}, {"camera", false}};
  for (size_t k = 0; k < 3; k++) {
    dvbf_data *data = simulate(cases[k].name, k == 1 ? colour : NULL);
    const dvbf_sequences *s = &data->train;
    dv_tracker tracker;
    float room[2 * 32 * 32];
    assert_int_equal(dv_tracker_of(&tracker, data, s, NULL), DVBF_OK);
    assert_int_equal(tracker.height > 0, cases[k].object);
    for (size_t t = 0; cases[k].object && t < s->steps; t++) {
      const float *now = s->state + t * s->n_s;
      double moved = (double)data->image_width * hypot(now[0] - s->state[0], now[1] - s->state[1]);
      assert_float_equal(dv_tracker_distance(&tracker, s->x, s->x + t * s->n_x, room), moved, 0.5);
    }
    dvbf_data_free(data);
  }
}

/* Colour survives a file: as [sequences, steps, height, width, 3]. */
static void test_colour_survives_a_file(void **unused) {
  (void)unused;
  static const char path[] = "test_systems.h5";
  dvbf_data *data = simulate("arm", colour), *back = NULL;
  assert_int_equal(dvbf_data_write(data, path, NULL), DVBF_OK);
  assert_int_equal(dvbf_data_read(&back, path, NULL, NULL), DVBF_OK);
  assert_int_equal(back->image_height, 24);
  assert_int_equal(back->image_width, 24);
  assert_int_equal(back->image_channels, 3);
  assert_int_equal(back->train.n_x, 24 * 24 * 3);
  assert_memory_equal(back->train.x, data->train.x, 6 * 40 * back->train.n_x * sizeof(float));
  dvbf_data_free(back);
  dvbf_data_free(data);
  remove(path);
}

static void test_two_channels_are_refused(void **unused) {
  (void)unused;
  static const char *const two[][2] = {{"channels", "2"}, {NULL, NULL}};
  dvbf_settings *settings = settings_of("camera", two);
  dvbf_data *data = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_simulate(&data, settings, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "channels = 2"));
  dvbf_settings_free(settings);
}

/* Changes of sign of a control in a part of a sequence. */
static int signs(const dvbf_sequences *s, size_t sequence, size_t control, size_t first, size_t last) {
  int changes = 0;
  for (size_t t = first + 1; t < last; t++) {
    size_t row = sequence * s->steps + t;
    changes += (s->u[row * s->n_u + control] > 0) != (s->u[(row - 1) * s->n_u + control] > 0);
  }
  return changes;
}

/* Swept controls keep to the limits, are slow at one end of a sequence and fast at the other, at either end,
 * and are as strong in one direction as in the other. */
static void test_controls_sweep_through_frequencies(void **unused) {
  (void)unused;
  static const char *const names[] = {"pendulum", "ball", "cart-pole", "planar"};
  static const char *const swept[][2] = {{"sweep", "on"}, {"size", "8"}, {NULL, NULL}};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    dvbf_settings *settings = settings_of(names[k], swept);
    dvbf_data *data = simulate(names[k], swept);
    const dvbf_sequences *s = &data->train;
    dv_system system;
    int rising = 0, falling = 0;
    assert_int_equal(dv_system_of(&system, settings, NULL), DVBF_OK);
    for (size_t i = 0; i < s->count * s->steps * s->n_u; i++)
      assert_true(fabs((double)s->u[i]) <= system.limit);
    for (size_t i = 0; i < s->count; i++)
      for (size_t c = 0; c < s->n_u; c++) {
        int first = signs(s, i, c, 0, s->steps / 2), last = signs(s, i, c, s->steps / 2, s->steps);
        assert_true(first <= 3 || last <= 3);
        assert_true(first >= 5 || last >= 5);
        rising += first<last, falling += first> last;
      }
    assert_true(rising && falling);
    dvbf_data_free(data);
    dvbf_settings_free(settings);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_systems_make_images),
      cmocka_unit_test(test_dot_is_where_its_state_says),
      cmocka_unit_test(test_planar_point_avoids_obstacles),
      cmocka_unit_test(test_arm_loses_energy),
      cmocka_unit_test(test_noise_and_disturbance_change_what_they_should),
      cmocka_unit_test(test_steps_by_hand_are_those_of_the_data),
      cmocka_unit_test(test_controls_sweep_through_frequencies),
      cmocka_unit_test(test_objects_are_found),
      cmocka_unit_test(test_colour_survives_a_file),
      cmocka_unit_test(test_two_channels_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
