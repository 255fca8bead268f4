/* A committee says what its members say together. */
#include "small_model.h"

#include <math.h>

#include <cmocka.h>

enum { MEMBERS = 3 };

static fixture f;
static const dvbf_model *member[MEMBERS]; /* the first is the committee itself */

static int begin_committee(void **state) {
  (void)state;
  static const char *const others[] = {"latent=2 hidden=4", "transition=linear affine=on initial-frames=4"};
  begin(&f, "");
  member[0] = f.model;
  for (int i = 1; i < MEMBERS; i++) {
    fixture g;
    begin(&g, others[i - 1]);
    free(trained(&g, 1, (uint64_t)(3 * i)));
    member[i] = g.model;
    assert_int_equal(dv_model_add_member(f.model, g.model, NULL), DVBF_OK);
    g.model = NULL;
    end(&g);
  }
  return 0;
}

static int end_committee(void **state) {
  (void)state;
  end(&f);
  return 0;
}

static dvbf_estimates *estimate(const dvbf_model *m, const char *table, const char *text) {
  dvbf_settings *settings = NULL;
  dvbf_estimates *e = NULL;
  dvbf_error error;
  char line[200], *rest = line;
  assert_int_equal(dvbf_settings_new(&settings, table, NULL), DVBF_OK);
  snprintf(line, sizeof line, "%s", text);
  for (char *word; (word = strsep(&rest, " "));) {
    char *value = strchr(word, '=');
    *value++ = 0;
    if (dvbf_settings_set(settings, word, value, &error)) fail_msg("%s", error.message);
  }
  if (dvbf_estimate(&e, m, &f.sequences, settings, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return e;
}

/* What the committee says, and each member alone. */
typedef struct said {
  dvbf_estimates *all, *each[MEMBERS];
} said;

static said ask(const char *table, const char *text) {
  said s;
  s.all = estimate(f.model, table, text);
  for (int i = 1; i < MEMBERS; i++) s.each[i] = estimate(member[i], table, text);
  f.model->n_others = 0;
  s.each[0] = estimate(f.model, table, text);
  f.model->n_others = MEMBERS - 1;
  return s;
}

static void forget(said *s) {
  dvbf_estimates_free(s->all);
  for (int i = 0; i < MEMBERS; i++) dvbf_estimates_free(s->each[i]);
}

/* z is that of the best member; means are averaged; deviations are of all samples together. */
static void expect_pooled(const said *s) {
  const dvbf_estimates *all = s->all;
  assert_int_equal(all->n_z, s->each[0]->n_z);
  assert_memory_equal(all->z, s->each[0]->z,
                      all->count * all->samples * all->steps * all->n_z * sizeof *all->z);
  for (size_t i = 0; i < all->count * all->steps * all->n_x; i++) {
    double mean = 0, squares = 0;
    for (int k = 0; k < MEMBERS; k++) {
      double x = (double)s->each[k]->x[i], deviation = (double)s->each[k]->x_std[i];
      mean += x / MEMBERS;
      squares += (x * x + deviation * deviation) / MEMBERS;
    }
    assert_float_equal(all->x[i], mean, 1e-5);
    assert_float_equal(all->x_std[i], sqrt(fmax(0, squares - mean * mean)), 1e-3);
  }
}

static int compare(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static void predictions_are_pooled(void **state) {
  (void)state;
  enum { SAMPLES = 5 };
  said s = ask("predict", "observe=4 samples=5 x-samples=on quantiles=0.5,0.1");
  expect_pooled(&s);
  size_t values = s.all->steps * s.all->n_x;
  for (size_t i = 0; i < s.all->count; i++)
    for (size_t k = 0; k < values; k++) {
      float sorted[MEMBERS * SAMPLES];
      for (size_t j = 0; j < MEMBERS * SAMPLES; j++)
        sorted[j] = s.each[j / SAMPLES]->x_samples[(i * SAMPLES + j % SAMPLES) * values + k];
      qsort(sorted, MEMBERS * SAMPLES, sizeof *sorted, compare);
      size_t length = f.sequences.length[i];
      if (k / s.all->n_x + 4 >= length) continue;
      assert_float_equal(s.all->x_quantiles[i * values + k], sorted[7], 1e-6);
      double low = 0.6 * (double)sorted[1] + 0.4 * (double)sorted[2]; /* 0.1 * 14 */
      assert_float_equal(s.all->x_quantiles[(s.all->count + i) * values + k], low, 1e-5);
    }
  for (size_t j = 0; j < s.all->count * SAMPLES; j++)
    assert_memory_equal(s.all->x_samples + j * values, s.each[j % MEMBERS]->x_samples + j * values,
                        values * sizeof(float));
  forget(&s);
  s = ask("predict", "observe=4 samples=3");
  expect_pooled(&s);
  assert_null(s.all->x_samples);
  forget(&s);
}

static void states_are_pooled(void **state) {
  (void)state;
  static const char *const ways[][2] = {
      {"filter", "samples=3"}, {"filter", "samples=3 particles=5"}, {"smooth", "samples=3 particles=5"}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    said s = ask(ways[i][0], ways[i][1]);
    expect_pooled(&s);
    forget(&s);
  }
}

/* Forecasts begin where that member can forecast which needs most frames. */
static void forecasts_are_pooled(void **state) {
  (void)state;
  dvbf_estimates *all = estimate(f.model, "filter", "samples=3 forecast=on");
  dvbf_estimates *last = estimate(member[2], "filter", "samples=3 forecast=on");
  dvbf_estimates *second = estimate(member[1], "filter", "samples=3 forecast=on");
  assert_int_equal(all->first, 4);
  assert_int_equal(second->first, 3);
  f.model->n_others = 0;
  dvbf_estimates *first = estimate(f.model, "filter", "samples=3 forecast=on");
  f.model->n_others = MEMBERS - 1;
  for (size_t i = 0; i < all->count; i++)
    for (size_t k = 0; k < (f.sequences.length[i] - 4) * all->n_x; k++) {
      size_t at = i * all->steps * all->n_x + k, shifted = (i * (all->steps + 1) + 1) * all->n_x + k;
      double mean = ((double)first->x[shifted] + (double)second->x[shifted] + (double)last->x[at]) / 3;
      assert_float_equal(all->x[at], mean, 1e-5);
    }
  dvbf_estimates_free(all);
  dvbf_estimates_free(first);
  dvbf_estimates_free(second);
  dvbf_estimates_free(last);
}

/* Path i is drawn by member i, counted round. */
static void members_sample_in_turn(void **state) {
  (void)state;
  said s = ask("sample", "observe=4 steps=6 count=7");
  size_t values = s.all->steps * s.all->n_x;
  for (size_t i = 0; i < 7; i++)
    assert_memory_equal(s.all->x + i * values, s.each[i % MEMBERS]->x + i * values, values * sizeof(float));
  forget(&s);
}

/* One member needs four frames, the best one three: prediction begins after four. */
static void all_have_their_frames(void **state) {
  (void)state;
  dvbf_settings *settings = NULL;
  dvbf_estimates *e = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_settings_new(&settings, "predict", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "observe", "3", NULL), DVBF_OK);
  assert_int_equal(dvbf_estimate(&e, f.model, &f.sequences, settings, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "needs 4 frames"));
  assert_null(e);
  dvbf_settings_free(settings);
}

/* Members that take no part in one use are not heard there, and the file says so. */
static void not_all_take_part_in_everything(void **state) {
  (void)state;
  static const char path[] = "committee-parts.safetensors";
  dvbf_model *loaded = NULL;
  dvbf_error error;
  f.model->no_forecasts = f.model->others[1]->no_forecasts = f.model->others[0]->no_predictions = true;
  assert_int_equal(dvbf_model_save(f.model, path, NULL), DVBF_OK);
  if (dvbf_model_load(&loaded, path, &error)) fail_msg("%s", error.message);
  dvbf_estimates *all = estimate(loaded, "filter", "samples=3 forecast=on");
  dvbf_estimates *second = estimate(member[1], "filter", "samples=3 forecast=on");
  size_t n = all->n_x, row = all->steps * n;
  for (size_t i = 0; i < all->count; i++)
    assert_memory_equal(all->x + i * row, second->x + (i * (all->steps + 1) + 1) * n,
                        (f.sequences.length[i] - 4) * n * sizeof *all->x);
  dvbf_estimates_free(all);
  dvbf_estimates_free(second);
  said s = ask("predict", "observe=4 samples=3");
  for (size_t i = 0; i < s.all->count * s.all->steps * s.all->n_x; i++)
    assert_float_equal(s.all->x[i], (s.each[0]->x[i] + s.each[2]->x[i]) / 2, 1e-5);
  forget(&s);
  dvbf_model_free(loaded);
  f.model->others[0]->no_predictions = false; /* nobody forecasts */
  f.model->others[0]->no_forecasts = true;
  assert_int_equal(dvbf_model_save(f.model, path, NULL), DVBF_OK);
  assert_int_equal(dvbf_model_load(&loaded, path, &error), DVBF_FORMAT);
  assert_non_null(strstr(error.message, "no member takes part in forecasts"));
  remove(path);
  for (int i = 0; i < MEMBERS; i++) ((dvbf_model *)dv_model_member(f.model, i))->no_forecasts = false;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(predictions_are_pooled), cmocka_unit_test(states_are_pooled),
      cmocka_unit_test(forecasts_are_pooled),   cmocka_unit_test(members_sample_in_turn),
      cmocka_unit_test(all_have_their_frames),  cmocka_unit_test(not_all_take_part_in_everything),
  };
  return cmocka_run_group_tests_name("committee", tests, begin_committee, end_committee);
}
