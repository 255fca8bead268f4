/* The simulated balls against what physics conserves, and their images against their states. */
#include "data/dataset.h"

#include <dvbf/dvbf.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Simulates with small splits and the given name, value, ..., NULL on top of the defaults. */
static dvbf_data *simulate(const char *system, ...) {
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  va_list pairs;
  assert_int_equal(dvbf_settings_new(&settings, system, NULL), DVBF_OK);
  static const char *const small[][2] = {{"train", "40"}, {"valid", "1"}, {"test", "1"}, {"steps", "100"}};
  for (size_t i = 0; i < sizeof small / sizeof *small; i++)
    assert_int_equal(dvbf_settings_set(settings, small[i][0], small[i][1], NULL), DVBF_OK);
  va_start(pairs, system);
  for (const char *name; (name = va_arg(pairs, const char *));)
    assert_int_equal(dvbf_settings_set(settings, name, va_arg(pairs, const char *), NULL), DVBF_OK);
  va_end(pairs);
  assert_int_equal(dvbf_simulate(&data, settings, NULL), DVBF_OK);
  dvbf_settings_free(settings);
  return data;
}

static const float *state_at(const dvbf_sequences *s, size_t sequence, size_t step) {
  return s->state + (sequence * s->steps + step) * s->n_s;
}

static const float *image_at(const dvbf_sequences *s, size_t sequence, size_t step) {
  return s->x + (sequence * s->steps + step) * s->n_x;
}

/* Brightness and its centre in pixels. */
typedef struct centre {
  double sum, row, column;
} centre;

static centre centre_of(const float *image, size_t size) {
  centre c = {0};
  for (size_t i = 0; i < size; i++)
    for (size_t j = 0; j < size; j++) {
      c.sum += image[i * size + j];
      c.row += (double)i * image[i * size + j];
      c.column += (double)j * image[i * size + j];
    }
  c.row /= c.sum, c.column /= c.sum;
  return c;
}

/* ---- One ball: state = x, y, velocity x, velocity y ---- */

static void test_ball_stays_inside_at_constant_speed(void **unused) {
  (void)unused;
  dvbf_data *data = simulate("ball", "control", "0", NULL);
  for (size_t i = 0; i < data->train.count; i++)
    for (size_t t = 0; t < data->train.steps; t++) {
      const float *first = state_at(&data->train, i, 0), *s = state_at(&data->train, i, t);
      for (int a = 0; a < 2; a++) {
        assert_true(s[a] >= 0 && s[a] <= 1);
        assert_true(fabsf(s[2 + a]) == fabsf(first[2 + a]));
      }
    }
  dvbf_data_free(data);
}

/* Between walls x' = x + dt v' with v' = v + control u; a wall turns the velocity and nothing else. Both must
 * happen often enough for the test to mean something. */
static void test_ball_moves_as_its_control_says(void **unused) {
  (void)unused;
  dvbf_data *data = simulate("ball", "dt", "0.05", "control", "0.2", NULL);
  const dvbf_sequences *s = &data->train;
  size_t walls = 0, flights = 0;
  for (size_t i = 0; i < s->count; i++)
    for (size_t t = 0; t + 1 < s->steps; t++)
      for (int a = 0; a < 2; a++) {
        const float *now = state_at(s, i, t), *next = state_at(s, i, t + 1);
        double v = now[2 + a] + 0.2 * (double)s->u[(i * s->steps + t) * 2 + (size_t)a],
               to = now[a] + 0.05 * v;
        bool wall = to < 0 || to > 1;
        double expected = to < 0 ? -to : to > 1 ? 2 - to : to;
        if (fabs(to) > 1.9 || to < -0.9 || fabs(to) < 1e-5 || fabs(to - 1) < 1e-5) continue;
        assert_true(fabs(next[a] - expected) < 1e-5);
        assert_true(fabs(next[2 + a] - (wall ? -v : v)) < 1e-5);
        walls += wall, flights += !wall;
      }
  assert_true(walls > 100 && flights > 1000);
  dvbf_data_free(data);
}

/* The blob is round and never cut far, so its centre of brightness follows the position: y points up. */
static void test_ball_is_drawn_where_it_is(void **unused) {
  (void)unused;
  dvbf_data *data = simulate("ball", "blob", "0.8", NULL);
  for (size_t t = 0; t < data->train.steps; t++) {
    const float *s = state_at(&data->train, 3, t);
    centre c = centre_of(image_at(&data->train, 3, t), 16);
    assert_true(fabs(c.column - (3 + 9 * s[0])) < 0.01 && fabs(c.row - (12 - 9 * s[1])) < 0.01);
  }
  dvbf_data_free(data);
}

/* Over 15 frames a wall is met in about a tenth of the steps of an axis pair. */
static void test_ball_bounces_often_enough(void **unused) {
  (void)unused;
  dvbf_data *data = simulate("ball", "train", "500", "steps", "15", NULL);
  const dvbf_sequences *s = &data->train;
  double bounces = 0, steps = 0;
  for (size_t i = 0; i < s->count; i++)
    for (size_t t = 0; t + 1 < s->steps; t++, steps++)
      for (size_t a = 0; a < 2; a++) {
        double gained = state_at(s, i, t + 1)[2 + a] - state_at(s, i, t)[2 + a];
        bounces += fabs(gained - 0.1 * (double)s->u[(i * s->steps + t) * 2 + a]) > 1e-4;
      }
  assert_true(bounces / steps > 0.07 && bounces / steps < 0.15);
  dvbf_data_free(data);
}

/* ---- Two balls: state = mean x, mean y, mean velocity x, mean velocity y, distance ---- */

static void test_two_balls_keep_apart_and_inside(void **unused) {
  (void)unused;
  dvbf_data *data = simulate("two-balls", NULL);
  assert_int_equal(data->train.n_u, 0);
  assert_null(data->train.u);
  for (size_t i = 0; i < data->train.count; i++)
    for (size_t t = 0; t < data->train.steps; t++) {
      const float *s = state_at(&data->train, i, t);
      assert_true(s[0] > 1 && s[0] < 9 && s[1] > 1 && s[1] < 9);
      assert_true(s[4] > 2 * 1.2 - 0.5); /* overlap lasts no longer than a move */
      assert_true(hypot(s[2], s[3]) < 0.5);
    }
  dvbf_data_free(data);
}

/* Away from walls the mean velocity is the total momentum: a collision leaves it as it is. In a box so large
 * that walls are not met the pair still collides. */
static void test_collisions_conserve_momentum(void **unused) {
  (void)unused;
  dvbf_data *data = simulate("two-balls", "box", "1000", "radius", "150", "speed", "20", "steps", "8",
                             "train", "400", NULL);
  const dvbf_sequences *s = &data->train;
  size_t collisions = 0, kept = 0;
  for (size_t i = 0; i < s->count; i++)
    for (size_t t = 0; t + 2 < s->steps; t++) {
      const float *a = state_at(s, i, t), *b = state_at(s, i, t + 1), *c = state_at(s, i, t + 2);
      bool same = fabsf(a[2] - c[2]) < 1e-3f && fabsf(a[3] - c[3]) < 1e-3f;
      bool turned = b[4] < a[4] - 1 && c[4] > b[4] + 1 && b[4] < 320;
      collisions += turned;
      kept += turned && same;
    }
  assert_true(collisions > 20);
  assert_true(kept > 0.8 * (double)collisions); /* the rest met a wall as well */
  dvbf_data_free(data);
}

/* The centre of brightness of both discs is their mean position: 2 pixels to a unit of length. */
static void test_two_balls_are_drawn_where_they_are(void **unused) {
  (void)unused;
  dvbf_data *data = simulate("two-balls", NULL);
  size_t whole = 0;
  for (size_t t = 0; t < data->train.steps; t++) {
    const float *s = state_at(&data->train, 5, t);
    centre c = centre_of(image_at(&data->train, 5, t), 20);
    if (s[4] < 2.6f) continue; /* where discs overlap brightness is cut */
    assert_true(fabs((c.column + 0.5) / 2 - s[0]) < 0.12 && fabs(10 - (c.row + 0.5) / 2 - s[1]) < 0.12);
    assert_true(c.sum > 25 && c.sum < 40); /* two discs of about 4.3 units of area each, 4 pixels to a unit */
    whole++;
  }
  assert_true(whole > 50);
  dvbf_data_free(data);
}

static void expect_refused(const char *system, const char *name, const char *value, const char *message) {
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_settings_new(&settings, system, NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, name, value, NULL), DVBF_OK);
  assert_int_equal(dvbf_simulate(&data, settings, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, message));
  assert_null(data);
  dvbf_settings_free(settings);
}

static void test_a_box_without_room_is_refused(void **unused) {
  (void)unused;
  expect_refused("two-balls", "box", "4", "box = 4");
  expect_refused("ball", "margin", "7.5", "margin = 7.5: leaves no room between the walls");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ball_stays_inside_at_constant_speed),
      cmocka_unit_test(test_ball_moves_as_its_control_says),
      cmocka_unit_test(test_ball_is_drawn_where_it_is),
      cmocka_unit_test(test_ball_bounces_often_enough),
      cmocka_unit_test(test_two_balls_keep_apart_and_inside),
      cmocka_unit_test(test_collisions_conserve_momentum),
      cmocka_unit_test(test_two_balls_are_drawn_where_they_are),
      cmocka_unit_test(test_a_box_without_room_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
