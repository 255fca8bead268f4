/* What each model promises: presets make one, a DKF sees the observed frames alone and refuses what it cannot
 * do. */
#include "files.h"
#include "small_model.h"
#include "train/trainer.h"
#include "variants.h"

#include <cmocka.h>
#include <dvbf/dvbf.h>

/* The first is the one that presets are made for unless their name says another. */
#define MODEL(object, choice) choice,
static const char *const types[] = {
#include "model/models.def"
};
#undef MODEL
enum { TYPES = sizeof types / sizeof *types };

/* What comes after the observed frames changes nothing, before or after them; one that is observed does, also
 * at the frames before it. */
static void dkf_sees_the_observed_frames_alone(void **state) {
  (void)state;
  for (const variant *v = NULL; (v = next_variant(v, OBSERVED));)
    for (size_t observe = 1; observe < STEPS; observe += 3) {
      fixture f;
      begin(&f, v->settings);
      free(trained(&f, 1, 3));
      size_t frame = STEPS * N_X; /* from sequence to sequence */
      dv_paths *paths = infer(f.model, &f.sequences, 1, observe);
      for (size_t k = 0; k < COUNT * frame; k++)
        if (k % frame >= observe * N_X) f.sequences.x[k] += 1;
      expect_same_paths(paths, infer(f.model, &f.sequences, 1, observe));
      for (size_t k = 0; k < COUNT; k++) f.sequences.x[k * frame + (observe - 1) * N_X] += 1;
      dv_paths *others = infer(f.model, &f.sequences, 1, observe);
      for (size_t t = 0; t < STEPS; t++) {
        size_t at = t * paths->n_z; /* in the first sequence */
        assert_memory_not_equal(paths->z + at, others->z + at, paths->n_z * sizeof *paths->z);
        assert_true((paths->kl[t] != 0) == (t < observe));
        assert_true((paths->log_likelihood[t] != 0) == (t < observe));
      }
      dv_paths_free(paths);
      dv_paths_free(others);
      end(&f);
    }
}

/* Nothing is taken from a frame before it comes; what is observed of it changes all that follows. */
static void recurrent_models_look_back(void **state) {
  (void)state;
  for (const variant *v = NULL; (v = next_variant(v, PAST));) {
    fixture f;
    begin(&f, v->settings);
    free(trained(&f, 1, 3));
    dv_paths *paths = infer(f.model, &f.sequences, 1, 5);
    for (size_t k = 0; k < N_X; k++) f.sequences.x[3 * N_X + k] += 1; /* of the first sequence */
    for (size_t k = 0; k < N_X; k++) f.sequences.x[6 * N_X + k] += 1;
    dv_paths *others = infer(f.model, &f.sequences, 1, 5);
    for (size_t t = 0; t < STEPS; t++) {
      const float *a = paths->z + t * paths->n_z, *b = others->z + t * paths->n_z;
      assert_int_equal(memcmp(a, b, paths->n_z * sizeof *a) == 0, t < 3);
      assert_true((paths->kl[t] != 0) == (t < 5));
    }
    dv_paths_free(paths);
    dv_paths_free(others);
    end(&f);
  }
}

/* A network on frames cannot be a dkf's recognition: it gets a recurrent one. Nothing is left of w and v. */
static void dkf_settings(void **state) {
  (void)state;
  fixture f;
  char initial[16];
  begin(&f, "model=dkf initial=mlp initial-frames=3");
  assert_int_equal(dvbf_settings_get(f.model->settings_object, "initial", initial, sizeof initial, NULL),
                   DVBF_OK);
  assert_string_equal(initial, "birnn");
  assert_int_equal(dv_model_frames_needed(f.model), 1);
  assert_int_equal(dvbf_model_describe(f.model).n_w, 0);
  for (size_t i = 0; i < f.model->parameters.count; i++)
    assert_null(strstr(f.model->parameters.list[i].name, "universal"));
  end(&f);
}

static void every_preset_makes_a_model(void **state) {
  (void)state;
  for (size_t i = 0; dvbf_preset_name(i, NULL); i++) {
    fixture f;
    dvbf_model *m = NULL;
    dvbf_error error;
    dvbf_settings *settings = make_settings("");
    begin(&f, "");
    if (dvbf_settings_preset(settings, dvbf_preset_name(i, NULL), &error)) fail_msg("%s", error.message);
    if (dv_model_new(&m, settings, NULL, &f.sequences, 1, &error)) fail_msg("%s", error.message);
    const char *expected = types[0];
    for (int k = 1; k < TYPES; k++)
      if (strstr(dvbf_preset_name(i, NULL), types[k])) expected = types[k];
    assert_string_equal(m->type->name, expected);
    dvbf_model_free(m);
    dvbf_settings_free(settings);
    end(&f);
  }
}

static void dkf_refusals(void **state) {
  (void)state;
  fixture f;
  dvbf_error error = {0};
  dvbf_model *m = NULL;
  size_t size;
  const char *path = in_folder("model");
  dvbf_transition own = {.name = "own"};
  begin(&f, "model=dkf");
  dvbf_data data = {.train = f.sequences, .valid = f.sequences, .test = f.sequences};
  assert_int_equal(dvbf_train_with(&m, &own, f.model->settings_object, &data, NULL, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "\"own\"; model = dvbf does"));
  if (dvbf_model_save(f.model, path, &error)) fail_msg("%s", error.message);
  error = (dvbf_error){0};
  assert_int_equal(dvbf_model_load_with(&m, &own, path, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "\"own\"; model = dvbf does"));
  assert_null(m);
  assert_int_equal(dvbf_filter_memsize(&size, f.model, 4, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "frames after t"));
  end(&f);
}

/* Another frame changes its own z and no other. */
static void vae_knows_no_time(void **state) {
  (void)state;
  fixture f;
  begin(&f, "model=vae");
  free(trained(&f, 1, 3));
  dv_paths *paths = infer(f.model, &f.sequences, 1, STEPS);
  f.sequences.x[2 * N_X] += 1; /* of the first sequence */
  dv_paths *others = infer(f.model, &f.sequences, 1, STEPS);
  for (size_t t = 0; t < STEPS; t++) {
    const float *a = paths->z + t * paths->n_z, *b = others->z + t * paths->n_z;
    assert_int_equal(memcmp(a, b, paths->n_z * sizeof *a) == 0, t != 2);
  }
  dv_paths_free(paths);
  dv_paths_free(others);
  end(&f);
}

/* Frames alone are sequences of one step, which other models refuse. */
static void vae_takes_single_frames(void **state) {
  (void)state;
  fixture f;
  dvbf_error error = {0};
  begin(&f, "model=vae updates=3");
  dvbf_sequences frames = f.sequences;
  frames.count *= frames.steps;
  frames.steps = 1;
  frames.length = NULL;
  dvbf_data data = {.train = frames, .valid = frames, .test = frames};
  dvbf_model *m = NULL;
  if (dvbf_train(&m, f.model->settings_object, &data, NULL, &error)) fail_msg("%s", error.message);
  dvbf_settings *filter = NULL;
  dvbf_estimates *estimates = NULL;
  assert_int_equal(dvbf_settings_new(&filter, "filter", &error), DVBF_OK);
  if (dvbf_estimate(&estimates, m, &frames, filter, &error)) fail_msg("%s", error.message);
  assert_int_equal(estimates->count, frames.count);
  for (size_t i = 0; i < frames.count * estimates->n_z; i++) assert_true(estimates->z_std[i] > 0);
  dvbf_estimates_free(estimates);
  dvbf_settings_free(filter);
  dvbf_model_free(m);
  dvbf_settings *settings = make_settings("model=dvbf updates=3 initial-frames=1");
  m = NULL;
  assert_int_equal(dvbf_train(&m, settings, &data, NULL, &error), DVBF_FORMAT);
  assert_non_null(strstr(error.message, "at least 2"));
  dvbf_settings_free(settings);
  end(&f);
}

/* Another value of the setting than its default. */
static void other_value(const dvbf_setting_info *info, char *out, size_t size) {
  const char *last = strrchr(info->range, '|');
  const char *comma = strchr(info->range, ',');
  double low = strtod(info->range + 1, NULL), high = comma ? strtod(comma + 1, NULL) : 0,
         first = strtod(info->initial, NULL);
  if (!strcmp(info->kind, "switch"))
    snprintf(out, size, "%s", strcmp(info->initial, "on") ? "on" : "off");
  else if (!strcmp(info->kind, "choice"))
    snprintf(out, size, "%.*s", (int)strcspn(info->range, " "), info->range);
  if (!strcmp(info->kind, "choice") && !strcmp(out, info->initial)) snprintf(out, size, "%s", last + 2);
  if (!strcmp(info->kind, "int"))
    snprintf(out, size, "%.0f", first == 2 && high > 2 ? 3.0 : first > low ? first - 1 : first + 1);
  if (!strcmp(info->kind, "real")) snprintf(out, size, "%.9g", first > low ? (first + low) / 2 : low + 0.05);
}

static bool is_user(const dvbf_setting_info *info, const char *name) {
  const char *found = info->users ? strstr(info->users, name) : NULL;
  return !info->users || found;
}

/* The parameters of a model that is trained with one setting changed. The caller frees. NULL: the setting is
 * refused. */
static dvbf_real *trained_with(const char *type, const char *name, const char *value, size_t *size) {
  char text[256];
  fixture f;
  dvbf_model *m = NULL;
  dvbf_error error;
  snprintf(text, sizeof text, "model=%s updates=2 starts=1 %s=%s", type, name, value);
  begin(&f, "");
  dvbf_settings *settings = make_settings(text);
  dvbf_data data = {.train = f.sequences};
  dvbf_status status = dv_train(&m, NULL, settings, &data, NULL, 0, &error);
  if (status && !strstr(error.message, name)) fail_msg("%s: %s", text, error.message);
  *size = m ? m->parameters.size * sizeof(dvbf_real) : 0;
  dvbf_real *copy = m ? malloc(*size) : NULL;
  if (m) memcpy(copy, m->parameters.values, *size);
  dvbf_model_free(m);
  dvbf_settings_free(settings);
  end(&f);
  return copy;
}

/* What a user is told of a setting that a model does not use is true: it changes nothing. */
static void unused_settings_change_nothing(void **state) {
  (void)state;
  for (size_t i = 1; i < TYPES; i++) {
    dvbf_setting_info info;
    size_t size, other, tried = 0;
    dvbf_real *plain = trained_with(types[i], "seed", "1", &size);
    for (size_t k = 0; dvbf_settings_table("train", k, &info); k++) {
      char value[64] = "";
      if (is_user(&info, types[i]) || !strcmp(info.group, "Density")) continue;
      other_value(&info, value, sizeof value);
      dvbf_real *changed = trained_with(types[i], info.name, value, &other);
      if (changed && (size != other || memcmp(plain, changed, size)))
        fail_msg("%s: %s = %s changes the model", types[i], info.name, value);
      free(changed);
      tried++;
    }
    assert_true(tried > 10);
    free(plain);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dkf_sees_the_observed_frames_alone),
      cmocka_unit_test(vae_knows_no_time),
      cmocka_unit_test(recurrent_models_look_back),
      cmocka_unit_test(vae_takes_single_frames),
      cmocka_unit_test(dkf_settings),
      cmocka_unit_test(every_preset_makes_a_model),
      cmocka_unit_test(dkf_refusals),
      cmocka_unit_test(unused_settings_change_nothing),
  };
  return cmocka_run_group_tests_name("models", tests, make_folder, remove_folder);
}
