/* Files of settings, line by line. */
#include "files.h"
#include "given.h"
#include "model/model.h"

#include <dvbf/dvbf.h>

static char message[sizeof((dvbf_error *)0)->message];

/* Reads a file of those bytes; "" or the sentence of the failure goes into `message`. */
static dvbf_status read_text(dvbf_settings *settings, const char *text, size_t size) {
  dvbf_error error = {.message = ""};
  write_bytes(in_folder("settings.txt"), text, size);
  dvbf_status status = dvbf_settings_read(settings, in_folder("settings.txt"), &error);
  memcpy(message, error.message, sizeof message);
  return status;
}

static void assert_value(const dvbf_settings *settings, const char *name, const char *value) {
  char found[256];
  assert_int_equal(dvbf_settings_get(settings, name, found, sizeof found, NULL), DVBF_OK);
  assert_string_equal(found, value);
}

static dvbf_settings *new_settings(void) {
  dvbf_settings *settings = NULL;
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  return settings;
}

/* What a comment holds is no setting, however long the comment is. */
static void comments_are_skipped(void **state) {
  (void)state;
  enum { LONG = 3000 };
  for (int place = 1000; place < 1050; place++) {
    char text[2 * LONG];
    dvbf_settings *settings = new_settings();
    memset(text, 'x', sizeof text);
    memcpy(text, "latent = 5 # ", 13);
    memcpy(text + place, " latent = 7 ", 12); /* where a reader with a short buffer would begin anew */
    memcpy(text + LONG, "\n  hidden=9\r", 12);
    if (read_text(settings, text, LONG + 12)) fail_msg("%s", message);
    assert_value(settings, "latent", "5");
    assert_value(settings, "hidden", "9");
    dvbf_settings_free(settings);
  }
}

/* Settings that only some densities have are in a file only where they are not the default. */
static void settings_of_densities(void **state) {
  (void)state;
  for (int given = 0; given < 2; given++) {
    char text[1 << 14] = "";
    dvbf_settings *settings = new_settings(), *again = new_settings();
    if (given) assert_int_equal(dvbf_settings_set(settings, "categories", "3,5", NULL), DVBF_OK);
    assert_int_equal(dvbf_settings_write(settings, in_folder("settings.txt"), NULL), DVBF_OK);
    FILE *file = fopen(in_folder("settings.txt"), "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_int_equal(strstr(text, "categories") != NULL, given);
    assert_int_equal(dvbf_settings_read(again, in_folder("settings.txt"), NULL), DVBF_OK);
    assert_value(again, "categories", given ? "3,5" : "");
    dvbf_settings_free(again);
    dvbf_settings_free(settings);
  }
}

static void bad_lines_are_refused(void **state) {
  (void)state;
  char text[3000];
  dvbf_settings *settings = new_settings();
  memset(text, ' ', sizeof text);
  memcpy(text, "# one\n\nlatent = 5", 17);
  memcpy(text + sizeof text - 5, "7\n\n\n\n", 5);
  assert_int_equal(read_text(settings, text, sizeof text), DVBF_FORMAT);
  assert_non_null(strstr(message, "line 3"));
  assert_int_equal(read_text(settings, "latent\n", 7), DVBF_FORMAT);
  assert_non_null(strstr(message, "\"latent\" is not of the form name = value"));
  assert_int_equal(read_text(settings, "latent = 5\0 7\n", 14), DVBF_FORMAT);
  assert_int_equal(read_text(settings, "= 5\n", 4), DVBF_ARGUMENT);
  assert_int_equal(read_text(settings, "latent =\n", 9), DVBF_ARGUMENT);
  dvbf_settings_free(settings);
}

/* Expects that the settings fit their model, or a sentence that begins like this. */
static void expect_fit(const dvbf_settings *settings, const char *sentence) {
  dvbf_error error = {.message = ""};
  dvbf_status status = dv_settings_fit_model(settings, NULL, true, &error);
  assert_int_equal(status, sentence ? DVBF_ARGUMENT : DVBF_OK);
  if (!sentence || strncmp(error.message, sentence, strlen(sentence)))
    assert_string_equal(error.message, sentence ? sentence : "");
}

/* A setting that the model does not use is refused where the user names it, and only there. */
static void unused_settings_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *settings, *sentence;
  } cases[] = {
      {"model=dvbf systems=4 residual=off hidden=9 updates=3", NULL},
      {"model=dkf residual=off hidden=9 updates=3", NULL},
      {"model=vae hidden=9 updates=3", NULL},
      {"model=linear latent=2 seed=3 threads=1 x-scaling=none split-seed=2", NULL},
      {"model=vrnn units=9 hidden=9", NULL},
      {"model=vrnn filter-dropout=0.1", "filter-dropout = 0.1: model = vrnn does not use this setting"},
      {"model=dkf units=9", "units = 9: model = dkf "},
      {"model=dkf systems=4", "systems = 4: model = dkf does not use this setting, which belongs to dvbf;"},
      {"systems=4 model=dkf", "systems = 4: model = dkf "},
      {"model=dkf systems=16", "systems = 16: model = dkf "}, /* the default */
      {"model=vae residual=on",
       "residual = on: model = vae does not use this setting, which belongs to dvbf, dkf;"},
      {"model=vae clip-z=1", "clip-z = 1: model = vae "},
      {"model=linear hidden=9", "hidden = 9: model = linear does not use this setting, which belongs to "
                                "dvbf, dkf, vae, vrnn, storn, e2c, svae;"},
      {"model=linear batch-size=9", "batch-size = 9: model = linear "},
      {"model=dkf search=on", NULL},
      {"categories=2,3",
       "categories = 2,3: likelihood = gaussian does not use this setting, which belongs to categorical;"},
      {"categories=2,3 likelihood=categorical", NULL},
      {"degrees-of-freedom=5 likelihood=poisson", "degrees-of-freedom = 5: likelihood = poisson "},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dvbf_settings *settings = new_settings();
    set_all(settings, cases[i].settings);
    expect_fit(settings, cases[i].sentence);
    dvbf_settings_free(settings);
  }
}

/* Presets and the file of a run have all settings, and those that the model does not use among them. */
static void recipes_may_have_unused_settings(void **state) {
  (void)state;
  dvbf_settings *settings = new_settings();
  assert_int_equal(dvbf_settings_preset(settings, "ball", NULL), DVBF_OK);
  set_all(settings, "model=dkf");
  expect_fit(settings, NULL);
  assert_int_equal(dv_settings_set_chosen(settings, "systems", "8", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_write(settings, in_folder("run.txt"), NULL), DVBF_OK);
  dvbf_settings_free(settings);
  settings = new_settings();
  assert_int_equal(dvbf_settings_read(settings, in_folder("run.txt"), NULL), DVBF_OK);
  assert_value(settings, "systems", "8");
  expect_fit(settings, NULL);
  /* What is named on top of it is named. */
  set_all(settings, "affine=on");
  expect_fit(settings, "affine = on: model = dkf ");
  dvbf_settings_free(settings);
  /* A file of few lines names them, also on top of a preset. */
  static const char few[] = "model = dkf\nsystems = 8\n";
  settings = new_settings();
  assert_int_equal(dvbf_settings_preset(settings, "pendulum", NULL), DVBF_OK);
  assert_int_equal(read_text(settings, few, sizeof few - 1), DVBF_OK);
  expect_fit(settings, "systems = 8: model = dkf ");
  /* A copy names what the original does; what lies on top of others is only given. */
  dvbf_settings *copy = NULL, *under = new_settings();
  assert_int_equal(dvbf_settings_copy(&copy, settings, NULL), DVBF_OK);
  expect_fit(copy, "systems = 8: model = dkf ");
  assert_int_equal(dv_settings_lay(under, settings, NULL), DVBF_OK);
  assert_value(under, "systems", "8");
  expect_fit(under, NULL);
  dvbf_settings_free(copy);
  dvbf_settings_free(under);
  dvbf_settings_free(settings);
}

/* Settings stand in the order of the first model files, whichever table they are in now. */
static void order_of_settings(void **state) {
  (void)state;
  static const char *const order[] = {
      "model",           "transition",    "latent",          "systems",           "residual",
      "affine",          "mixing-hidden", "mixing-control",  "transition-hidden", "universal",
      "universal-noise", "hidden",        "layers",          "activation",        "initial",
      "initial-frames",  "mask-input",    "initial-control", "likelihood"};
  static const char *const ends[] = {"window", "stride", "updates"};
  dvbf_setting_info info;
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    assert_true(dvbf_settings_table("train", i, &info));
    assert_string_equal(info.name, order[i]);
  }
  size_t count = 0, begin = 0, groups = 0;
  char group[64] = "";
  for (; dvbf_settings_table("train", count, &info); count++) {
    if (!strcmp(info.name, "window")) begin = count;
    groups += strcmp(info.group, group) != 0;
    snprintf(group, sizeof group, "%s", info.group);
  }
  assert_string_equal(group, "Reading"); /* the last */
  for (size_t i = 0; i < 3; i++) {
    assert_true(dvbf_settings_table("train", begin + i, &info));
    assert_string_equal(info.name, ends[i]);
  }
  /* A group stands in one place. */
  for (size_t i = 0; i < count; i++) {
    dvbf_setting_info before;
    bool is_new = true;
    assert_true(dvbf_settings_table("train", i, &info));
    for (size_t k = 0; k < i; k++)
      if (dvbf_settings_table("train", k, &before) && !strcmp(before.group, info.group)) is_new = false;
    groups -= is_new;
  }
  assert_int_equal(groups, 0);
}

static void users_are_named(void **state) {
  (void)state;
  static const struct {
    const char *name, *users;
  } cases[] = {{"latent", NULL},
               {"mask-key", NULL},
               {"threads", NULL},
               {"systems", "dvbf"},
               {"residual", "dvbf, dkf"},
               {"clip-z", "dvbf, dkf"},
               {"hidden", NULL},
               {"updates", NULL},
               {"units", "vrnn, storn"},
               {"transition-weight", "e2c"},
               {"categories", "categorical"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dvbf_setting_info info;
    size_t k = 0;
    while (dvbf_settings_table("train", k, &info) && strcmp(info.name, cases[i].name)) k++;
    if (!cases[i].users != !info.users) fail_msg("%s", cases[i].name);
    if (info.users) assert_string_equal(info.users, cases[i].users);
  }
}

/* ---- Names of before ---- */

/* A constant is read with its value. With another one it is refused, but for what files say about training.
 */
static void constants_are_read(void **state) {
  (void)state;
  for (const dv_former *f = dv_former_settings; f->name; f++) {
    dvbf_settings *user = new_settings(), *model = new_settings();
    const char *other = !strcmp(f->name, "initial-variance") ? "head" : "0.123";
    dvbf_error error = {0};
    if (f->now) {
      const char *value = f->value ? f->value : !strcmp(f->name, "elsewhere") ? "on" : "1";
      if (!strcmp(f->name, "recognition-sees")) value = "innovation";
      if (dvbf_settings_set(user, f->name, value, &error)) fail_msg("%s: %s", f->name, error.message);
      assert_value(user, f->now, f->as ? f->as : value);
      assert_true(dv_settings_given(user, f->now));
    } else {
      if (dvbf_settings_set(user, f->name, f->value, &error)) fail_msg("%s: %s", f->name, error.message);
      if (dv_settings_give(model, f->name, f->value, &error)) fail_msg("%s: %s", f->name, error.message);
      assert_int_equal(dvbf_settings_set(user, f->name, other, &error), DVBF_ARGUMENT);
      if (!strstr(error.message, "no longer has this setting")) fail_msg("%s", error.message);
      assert_int_equal(dv_settings_give(model, f->name, other, &error), f->model ? DVBF_FORMAT : DVBF_OK);
      if (f->model && !strstr(error.message, "use dvbf 0.1 or train again")) fail_msg("%s", error.message);
    }
    dvbf_settings_free(user);
    dvbf_settings_free(model);
  }
}

/* Names of before in a file of few lines are the user's; in the file of a run they say how it was trained. */
static void files_of_before_are_read(void **state) {
  (void)state;
  static const char few[] =
      "recognition-sees = prediction\nx-key = image\noutputs =\nretries = 2\nwarm-up = 100\n",
                    another[] = "latent = 4\nbeta1 = 0.5\n";
  dvbf_settings *settings = new_settings();
  dvbf_error error;
  assert_int_equal(read_text(settings, few, sizeof few - 1), DVBF_OK);
  assert_value(settings, "recognition-input", "prediction");
  assert_value(settings, "outputs", "image");
  assert_int_equal(read_text(settings, another, sizeof another - 1), DVBF_ARGUMENT);
  dvbf_settings_free(settings);
  /* What is chosen under the present name stays. */
  settings = new_settings();
  assert_int_equal(dv_settings_give(settings, "start", "linear", &error), DVBF_OK);
  assert_int_equal(dv_settings_give(settings, "modes", "on", &error), DVBF_OK);
  assert_value(settings, "start", "linear");
  dvbf_settings_free(settings);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(comments_are_skipped),
      cmocka_unit_test(settings_of_densities),
      cmocka_unit_test(bad_lines_are_refused),
      cmocka_unit_test(unused_settings_are_refused),
      cmocka_unit_test(recipes_may_have_unused_settings),
      cmocka_unit_test(order_of_settings),
      cmocka_unit_test(constants_are_read),
      cmocka_unit_test(files_of_before_are_read),
      cmocka_unit_test(users_are_named),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
