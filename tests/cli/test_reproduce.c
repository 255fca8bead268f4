/* dvbf reproduce: what it measures, writes and says. */
#include "command.h"

#define BRIEF " --updates 5 --hidden 8 --starts 1 --json --quiet"

static void expect_files(const char *folder_name, const char *const *names) {
  for (; *names; names++) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder_name, *names);
    if (!exists(path)) fail_msg("%s is missing", path);
  }
}

static void reproduce_writes_everything(void **state) {
  (void)state;
  assert_int_equal(dvbf("reproduce pendulum -o all" BRIEF), 0);
  json_t *all = json_loads(out, 0, NULL);
  assert_non_null(all);
  const json_t *models = json_object_get(all, "pendulum");
  assert_int_equal(json_array_size(models), 2);
  static const double paper[] = {798.56, 784.70};
  for (size_t m = 0; m < 2; m++) {
    const json_t *model = json_array_get(models, m),
                 *first = json_array_get(json_object_get(model, "seeds"), 0);
    const json_t *summary = json_object_get(first, "summary");
    assert_true(number(summary, "error_6_45") > 0);
    assert_true(number(summary, "walk_distance") > 0);
    assert_true(number(summary, "seconds") > 0 && number(summary, "starts") == 1);
    assert_true(number(json_object_get(model, "paper"), "elbo") == paper[m]);
    const json_t *far = json_object_get(json_object_get(first, "long"), "prediction");
    assert_int_equal(json_array_size(json_object_get(far, "mse")), 40);
  }
  json_decref(all);
  static const char *const names[] = {"data.h5",
                                      "long.h5",
                                      "results.json",
                                      "overview.png",
                                      "run/model.safetensors",
                                      "run-dkf/model.safetensors",
                                      "report.html",
                                      "figures/pendulum-latent.svg",
                                      "figures/pendulum-latent.png",
                                      "figures/pendulum-walks-DVBF-LL.svg",
                                      "figures/pendulum-run-dkf-errors.svg",
                                      NULL};
  expect_files("all", names);
  assert_int_equal(dvbf("reproduce pendulum -o all --updates 5"), 1);
  assert_refused("already exists");
}

/* A preset stands for its model alone and decides on the data; several seeds have folders of their own. */
static void reproduce_takes_presets_and_seeds(void **state) {
  (void)state;
  assert_int_equal(dvbf("reproduce ball -o ball --preset paper-ball --seeds 2 --batch-size 20" BRIEF), 0);
  json_t *all = json_loads(out, 0, NULL);
  const json_t *models = json_object_get(all, "ball"), *model = json_array_get(models, 0);
  assert_int_equal(json_array_size(models), 1);
  assert_string_equal(json_string_value(json_object_get(model, "preset")), "paper-ball");
  assert_int_equal(json_array_size(json_object_get(model, "seeds")), 2);
  assert_true(number(json_object_get(model, "min"), "velocity_x_r2_away") <=
              number(json_object_get(model, "max"), "velocity_x_r2_away"));
  assert_true(json_is_null(json_object_get(json_object_get(model, "paper"), "elbo")));
  json_decref(all);
  static const char *const names[] = {"seed-1/data.h5", "seed-2/run/model.safetensors", "report.html",
                                      "figures/ball-run-ball.svg", NULL};
  expect_files("ball", names);
  char line[2048] = "";
  FILE *settings = fopen("ball/seed-1/run/settings.txt", "r");
  assert_non_null(settings);
  assert_true(fread(line, 1, sizeof line - 1, settings) > 0);
  fclose(settings);
  assert_has(line, "latent = 4");
}

/* A model whose initial network sees all 15 frames: what cannot be predicted is not said to be predicted
 * well, and the rest is measured from the frames that it needs. */
static void reproduce_says_what_it_cannot_measure(void **state) {
  (void)state;
  assert_int_equal(
      dvbf("reproduce two-balls -o two --preset paper-two-balls --batch-size 20 --systems 4" BRIEF), 0);
  json_t *all = json_loads(out, 0, NULL);
  const json_t *model = json_array_get(json_object_get(all, "two-balls"), 0);
  const json_t *first = json_array_get(json_object_get(model, "seeds"), 0),
               *summary = json_object_get(first, "summary");
  assert_true(json_is_null(json_object_get(summary, "error_6_15")));
  assert_true(number(summary, "two_balls_45_truth") > 0.8);
  const json_t *far = json_object_get(json_object_get(first, "long"), "prediction");
  assert_true(number(far, "observed") == 15);
  json_decref(all);
}

/* Models beyond those of the paper's tables have closer bounds, regressions by a network and places of
 * objects. */
static void reproduce_sets_models_side_by_side(void **state) {
  (void)state;
  assert_int_equal(dvbf("reproduce pendulum -o some --models vae,e2c" BRIEF), 0);
  json_t *all = json_loads(out, 0, NULL);
  const json_t *models = json_object_get(all, "pendulum");
  assert_int_equal(json_array_size(models), 2);
  for (size_t m = 0; m < 2; m++) {
    const json_t *model = json_array_get(models, m);
    assert_string_equal(json_string_value(json_object_get(model, "model")), m ? "VAE" : "E2C");
    const json_t *summary = json_object_get(json_array_get(json_object_get(model, "seeds"), 0), "summary");
    assert_true(number(summary, "sin_r2_network") <= 1 && number(summary, "distance_6_45") > 0);
    assert_true(number(summary, "valid_steps") >= 0);
    assert_int_equal(json_is_null(json_object_get(summary, "particles")), !m);
    if (m) assert_true(number(summary, "particles") > number(summary, "elbo"));
  }
  json_decref(all);
  static const char *const names[] = {
      "run-vae/model.safetensors",   "run-e2c/model.safetensors",      "report.html",
      "figures/pendulum-latent.svg", "figures/pendulum-walks-VAE.svg", NULL};
  expect_files("some", names);
  assert_int_equal(dvbf("reproduce pendulum -o no --models vae,vea"), 2);
  assert_refused("models = vae,vea: must be paper, all, or names of models of pendulum");
  assert_int_equal(dvbf("reproduce two-balls -o no --models all"), 2);
  assert_refused("two-balls has only the model of the paper");
  assert_int_equal(dvbf("reproduce ball -o no --models all --preset ball"), 2);
  assert_refused("leave preset = ball out");
}

static int set_up(void **state) {
  (void)state;
  return enter_folder();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reproduce_writes_everything),
      cmocka_unit_test(reproduce_takes_presets_and_seeds),
      cmocka_unit_test(reproduce_says_what_it_cannot_measure),
      cmocka_unit_test(reproduce_sets_models_side_by_side),
  };
  return cmocka_run_group_tests_name("reproduce", tests, set_up, tear_down);
}
