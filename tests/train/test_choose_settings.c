/* Settings that suit the data: each can be used, and none that is given is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/dataset.h"
#include "model/train_settings.h"

#include <dvbf/dvbf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `count` sequences of columns that go up and down. */
static dvbf_data data_of(size_t count, size_t steps, size_t n_x, size_t n_u) {
  dvbf_data data = {.train = {.count = count, .steps = steps, .n_x = n_x, .n_u = n_u}};
  assert_int_equal(dv_sequences_allocate(&data.train, false, NULL), DVBF_OK);
  for (size_t i = 0; i < count * steps * n_x; i++) data.train.x[i] = (float)(i % 7) - 3;
  for (size_t i = 0; i < count * steps * n_u; i++) data.train.u[i] = (float)(i % 5);
  return data;
}

static double value(const dvbf_settings *settings, const char *name) {
  char text[64];
  assert_int_equal(dvbf_settings_get(settings, name, text, sizeof text, NULL), DVBF_OK);
  return !strcmp(text, "on") ? 1 : strtod(text, NULL);
}

/* Suits settings to data, with one that is given where `name` is not NULL. */
static dvbf_settings *suited(const dvbf_data *data, const char *name, const char *given) {
  dvbf_settings *settings = NULL;
  dvbf_error error = {0};
  assert_int_equal(dvbf_settings_new(&settings, "train", &error), DVBF_OK);
  if (name) assert_int_equal(dvbf_settings_set(settings, name, given, &error), DVBF_OK);
  if (dvbf_settings_choose(settings, data, NULL, NULL, &error)) fail_msg("%s", error.message);
  return settings;
}

/* The initial network and prediction find their frames in sequences of any length. */
static void test_any_length(void **unused) {
  (void)unused;
  for (size_t steps = 2; steps < 300; steps = steps < 22 ? steps + 1 : 2 * steps + 1) {
    dvbf_data data = data_of(3, steps, 2, 1);
    dvbf_settings *s = suited(&data, NULL, NULL);
    double window = value(s, "window"), seen = window > 0 && window < (double)steps ? window : (double)steps;
    assert_in_range((size_t)value(s, "initial-frames"), 1, (size_t)seen);
    dvbf_settings_free(s);
    dvbf_sequences_free(&data.train);
  }
}

/* The more columns there are, the fewer frames the initial network sees. */
static void test_initial_frames(void **unused) {
  (void)unused;
  static const double cases[][2] = {{1, 20}, {12, 20}, {24, 10}, {48, 5}, {100, 5}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    size_t n_x = (size_t)cases[k][0];
    dvbf_data data = data_of(10, 60, n_x, 0);
    for (size_t i = 0; i < 600 * n_x; i++) data.train.x[i] += 3; /* counts, which no linear model looks at */
    dvbf_settings *s = suited(&data, NULL, NULL);
    assert_true(value(s, "initial-frames") == cases[k][1]);
    dvbf_settings_free(s);
    dvbf_sequences_free(&data.train);
  }
}

static void test_what_is_given_stays(void **unused) {
  (void)unused;
  dvbf_data data = data_of(2, 500, 2, 1);
  dvbf_settings *s = suited(&data, NULL, NULL);
  assert_true(value(s, "window") == 100 && value(s, "stride") == 10 && value(s, "latent") == 6);
  dvbf_settings_free(s);
  s = suited(&data, "window", "10");
  assert_true(value(s, "window") == 10 && value(s, "stride") == 1 && value(s, "initial-frames") == 5);
  dvbf_settings_free(s);
  s = suited(&data, "updates", "50");
  assert_true(value(s, "validate-every") == 10);
  dvbf_settings_free(s);
  dvbf_sequences_free(&data.train);
  data = data_of(9, 4, 1, 0);
  s = suited(&data, "initial-frames", "4");
  assert_true(value(s, "initial-frames") == 4);
  dvbf_settings_free(s);
  dvbf_sequences_free(&data.train);
}

/* Only a model that has a gain trains it in a phase of its own. */
static void test_phases_are_for_models_with_a_gain(void **unused) {
  (void)unused;
  dvbf_data data = data_of(3, 60, 2, 1);
  static const struct {
    const char *model;
    double updates, dropout;
  } cases[] = {{"dvbf", 600, 0.9}, {"dkf", 0, 0.7}};
  for (size_t i = 0; i < 2; i++) {
    dvbf_settings *s = suited(&data, "model", cases[i].model);
    assert_true(value(s, "gain-updates") == cases[i].updates);
    assert_true(value(s, "filter-dropout") == cases[i].dropout);
    dvbf_settings_free(s);
  }
  /* It stays the smaller part. */
  dvbf_settings *s = suited(&data, "updates", "12");
  assert_true(value(s, "gain-updates") == 3);
  dvbf_settings_free(s);
  dvbf_sequences_free(&data.train);
}

/* The state has room for what varies, not for each of many columns that follow the same few signals. */
static void test_columns_that_follow_each_other(void **unused) {
  (void)unused;
  for (int signals = 1; signals <= 3; signals++) {
    dvbf_data data = data_of(10, 15, 24, 0); /* too short for a linear model to look at */
    for (size_t t = 0; t < 150; t++)
      for (size_t k = 0; k < 24; k++) {
        float *x = &data.train.x[t * 24 + k];
        *x = 0.001F * (float)((t * 31 + k * 17) % 11);
        for (int s = 1; s <= signals; s++)
          *x += sinf((float)s * 0.7F * (float)t) * (k % 4 == (size_t)s ? 1 : -1);
        if (t % 29 == 0 && k == 3) *x = NAN;
      }
    data.train.gaps = true;
    dvbf_settings *s = suited(&data, NULL, NULL);
    assert_true(value(s, "latent") == 2 + 2 * signals);
    dvbf_settings_free(s);
    dvbf_sequences_free(&data.train);
  }
}

/* Told of every choice, with a reason. */
static void note(const char *name, const char *chosen, const char *was, const char *why, void *user) {
  assert_true(*name && strcmp(chosen, was) != 0 && *why);
  ++*(int *)user;
}

static void test_bits_and_gaps(void **unused) {
  (void)unused;
  dvbf_data data = data_of(20, 12, 20, 0);
  for (size_t i = 0; i < 20 * 12 * 20; i++) data.train.x[i] = ((uint32_t)i * 2654435761U >> 16) % 3 == 0;
  dvbf_settings *s = suited(&data, NULL, NULL);
  char text[32];
  assert_int_equal(dvbf_settings_get(s, "likelihood", text, sizeof text, NULL), DVBF_OK);
  assert_string_equal(text, "bernoulli");
  assert_int_equal(dv_settings_train(s, NULL)->mask_input, DV_MASK_OFF);
  assert_true(value(s, "starts") == 1); /* noise drives them: none predicts far ahead */
  dvbf_settings_free(s);
  data.train.gaps = true;
  for (size_t k = 0; k < 3 * 20; k++) data.train.x[5 * 20 + k] = NAN;
  s = suited(&data, NULL, NULL);
  assert_int_equal(dv_settings_train(s, NULL)->mask_input, DV_MASK_OFF); /* three steps of 240 are rare */
  dvbf_settings_free(s);
  for (size_t k = 0; k < 20; k++) data.train.x[9 * 20 + k] = NAN;
  s = suited(&data, NULL, NULL);
  assert_int_equal(dv_settings_train(s, NULL)->mask_input, DV_MASK_STEP);
  dvbf_settings_free(s);
  data.train.x[7] = NAN;
  s = suited(&data, NULL, NULL);
  assert_int_equal(dv_settings_train(s, NULL)->mask_input, DV_MASK_DIMENSION);
  dvbf_settings_free(s);
  dvbf_sequences_free(&data.train);
}

/* Frames of three kinds. A setting of the dvbf alone keeps the model. */
static void test_recurring_frames(void **unused) {
  (void)unused;
  dvbf_data data = data_of(20, 12, 20, 0);
  for (size_t i = 0; i < 20 * 12 * 20; i++) data.train.x[i] = i % 20 % (i / 20 % 3 + 2) == 0;
  for (int given = 0; given < 2; given++) {
    dvbf_settings *s = suited(&data, given ? "systems" : NULL, given ? "8" : NULL);
    char text[32];
    assert_int_equal(dvbf_settings_get(s, "likelihood", text, sizeof text, NULL), DVBF_OK);
    assert_string_equal(text, "patterns");
    assert_true(value(s, "patterns") == 3);
    assert_int_equal(dvbf_settings_get(s, "model", text, sizeof text, NULL), DVBF_OK);
    assert_string_equal(text, given ? "dvbf" : "vrnn");
    dvbf_settings_free(s);
  }
  dvbf_sequences_free(&data.train);
}

static void test_presets_are_left_alone(void **unused) {
  (void)unused;
  int choices = 0;
  dvbf_settings *s = NULL;
  dvbf_data data = data_of(1, 1000, 1, 0);
  assert_int_equal(dvbf_settings_new(&s, "train", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_choose(s, &data, note, &choices, NULL), DVBF_OK);
  assert_true(choices > 5);
  choices = 0;
  assert_int_equal(dvbf_settings_preset(s, "pendulum", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_choose(s, &data, note, &choices, NULL), DVBF_OK);
  assert_int_equal(choices, 0);
  dvbf_settings_free(s);
  dvbf_sequences_free(&data.train);
}

static void keep_advice(const char *name, const char *chosen, const char *was, const char *why, void *user) {
  if (!strcmp(chosen, was)) snprintf(user, 256, "%s: %s", name, why);
}

/* Where x has outliers, the user is told of a density for them, but it is not taken. */
static void test_outliers(void **unused) {
  (void)unused;
  dvbf_data data = data_of(20, 12, 2, 0);
  for (int outliers = 0; outliers < 2; outliers++) {
    char advice[256] = "", text[32];
    dvbf_settings *s = NULL;
    if (outliers) data.train.x[50] = 500;
    assert_int_equal(dvbf_settings_new(&s, "train", NULL), DVBF_OK);
    assert_int_equal(dvbf_settings_choose(s, &data, keep_advice, advice, NULL), DVBF_OK);
    assert_int_equal(strstr(advice, "likelihood = student-t may suit it better") != NULL, outliers);
    assert_int_equal(dvbf_settings_get(s, "likelihood", text, sizeof text, NULL), DVBF_OK);
    assert_string_equal(text, "gaussian");
    dvbf_settings_free(s);
  }
  dvbf_sequences_free(&data.train);
}

/* Large images that move are learned by components and places first or, where that does not go with what is
 * given, coarse first; from windows. Small ones are as before, and what is given stays. */
static void test_videos(void **unused) {
  (void)unused;
  static const struct {
    size_t side;
    const char *name, *given;
    double projection, coarse, window, latent;
  } cases[] = {{32, "seed", "1", 1e-4, 0, 15, 6},    {32, "start", "random", 1e-4, 1, 15, 8},
               {23, "moments", "1", 1e-4, 0, 15, 6}, {23, "systems", "4", 1e-4, 1, 15, 8},
               {32, "coarse", "on", 1e-4, 1, 15, 8}, {32, "recognition", "smoothing", 1e-4, 1, 15, 8},
               {32, "network", "conv", 0, 0, 15, 8}, {32, "mean", "sigmoid", 0, 0, 15, 8},
               {32, "latent", "3", 1e-4, 1, 15, 3},  {32, "model", "dkf", 0, 0, 0, 4},
               {16, "seed", "1", 0, 0, 0, 4}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    size_t side = cases[k].side;
    size_t count = side == 23 ? 200 : 4, steps = side == 23 ? 16 : 30; /* many, or few */
    dvbf_data data = data_of(count, steps, side * side, 2);
    data.image_height = data.image_width = side;
    memset(data.train.x, 0, count * steps * side * side * sizeof *data.train.x);
    for (size_t i = 0; i < count * steps; i++) /* a dot that goes everywhere */
      data.train.x[(i * side + i * 7 % side) * side + i * 11 % side / 2] = 0.9f;
    dvbf_settings *s = suited(&data, cases[k].name, cases[k].given);
    assert_true(value(s, "projection") == cases[k].projection);
    assert_true(value(s, "coarse") == cases[k].coarse);
    assert_true((value(s, "emission-updates") > 0) == (cases[k].projection > 0 && !cases[k].coarse));
    assert_true(value(s, "window") == cases[k].window);
    assert_true(value(s, "latent") == cases[k].latent);
    dvbf_settings_free(s);
    dvbf_sequences_free(&data.train);
  }
}

/* network = auto: components or a layer of weights, and convolutions for what neither is for. */
static void test_networks(void **unused) {
  (void)unused;
  static const struct {
    size_t side;
    bool images, mean;
    const char *network;
  } cases[] = {{32, true, false, "dense"},
               {184, true, false, "dense"},
               {180, true, true, "dense"},
               {184, true, true, "conv"},
               {184, false, true, "dense"}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    size_t side = cases[k].side, n = side * side;
    dvbf_data data = data_of(2, 12, n, 0);
    if (cases[k].images) data.image_height = data.image_width = side;
    for (size_t i = 0; i < 24 * n; i++) data.train.x[i] = (float)(i * 7 % 11) / 11;
    dvbf_settings *s = NULL;
    char text[32];
    assert_int_equal(dvbf_settings_new(&s, "train", NULL), DVBF_OK);
    assert_int_equal(dv_settings_give(s, "network", "auto", NULL), DVBF_OK);
    if (cases[k].mean) assert_int_equal(dv_settings_give(s, "mean", "sigmoid", NULL), DVBF_OK);
    assert_int_equal(dvbf_settings_choose(s, &data, NULL, NULL, NULL), DVBF_OK);
    assert_int_equal(dvbf_settings_get(s, "network", text, sizeof text, NULL), DVBF_OK);
    assert_string_equal(text, cases[k].network);
    assert_true(value(s, "image-height") == (strcmp(text, "conv") ? 0 : (double)side));
    dvbf_settings_free(s);
    dvbf_sequences_free(&data.train);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_initial_frames),
      cmocka_unit_test(test_any_length),
      cmocka_unit_test(test_what_is_given_stays),
      cmocka_unit_test(test_phases_are_for_models_with_a_gain),
      cmocka_unit_test(test_columns_that_follow_each_other),
      cmocka_unit_test(test_bits_and_gaps),
      cmocka_unit_test(test_recurring_frames),
      cmocka_unit_test(test_presets_are_left_alone),
      cmocka_unit_test(test_outliers),
      cmocka_unit_test(test_videos),
      cmocka_unit_test(test_networks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
