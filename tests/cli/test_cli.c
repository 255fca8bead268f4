/* What all commands share: usage, settings, refusals; and simulate, train and evaluate. */
#include "command.h"

#include <hdf5.h>
#include <math.h>

static void write_dataset(hid_t file, const char *name, int rank, const hsize_t *shape, const float *values) {
  hid_t space = H5Screate_simple(rank, shape, NULL);
  hid_t set = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  H5Dclose(set);
  H5Sclose(space);
}

/* Writes x [20, 8, 3] (or [20, 8], of rank 2) and u [20, steps_u, 1], with x = `odd` at sequence 7, step 4.
 */
static void write_data(const char *path, int rank_x, hsize_t steps_u, float odd) {
  static float x[20 * 8 * 3], u[20 * 16];
  for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = sinf((float)i);
  x[(7 * 8 + 4) * 3 + 1] = odd;
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  write_dataset(file, "x", rank_x, (hsize_t[]){20, 8, 3}, x);
  write_dataset(file, "u", 3, (hsize_t[]){20, steps_u, 1}, u);
  H5Fclose(file);
}

/* ---- Usage ---- */

static void help_states_defaults(void **state) {
  (void)state;
  assert_int_equal(dvbf("--help"), 0);
  assert_has(out, "reproduce");
  assert_int_equal(dvbf("--version"), 0);
  assert_string_equal(out, "dvbf " DVBF_VERSION "\n");
  static const char *const commands[][2] = {{"simulate", "pendulum"}, {"train", "train"},
                                            {"evaluate", "evaluate"}, {"report", "evaluate"},
                                            {"info", "data"},         {"reproduce", "train"}};
  for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
    static char first[sizeof out];
    assert_int_equal(dvbf("help %s", commands[c][0]), 0);
    strcpy(first, out);
    assert_int_equal(dvbf("%s --help", commands[c][0]), 0);
    assert_string_equal(first, out);
    assert_int_equal(dvbf("help %s --all", commands[c][0]), 0);
    strcpy(first, out);
    assert_int_equal(dvbf("%s --help-all", commands[c][0]), 0);
    assert_string_equal(first, out);
    dvbf_setting_info info;
    for (size_t i = 0; dvbf_settings_table(commands[c][1], i, &info); i++) {
      char name[80], initial[160];
      snprintf(name, sizeof name, "--%s %s", info.name, info.kind);
      snprintf(initial, sizeof initial, "%s; default %s%s%s\n", info.range, info.initial,
               info.users ? "; for " : "", info.users ? info.users : "");
      if (info.recipe) {
        assert_null(strstr(out, name));
        continue;
      }
      assert_has(out, name);
      if (*info.initial) assert_has(strstr(out, name), initial);
    }
  }
  assert_has(out, "paper-pendulum");
  assert_int_equal(dvbf("version"), 0);
  assert_string_equal(out, "dvbf " DVBF_VERSION "\n");
}

/* What most people need fits on two screens, and says where the rest is. */
static void short_help_is_short(void **state) {
  (void)state;
  size_t settings = 0;
  dvbf_setting_info info;
  for (size_t i = 0; dvbf_settings_table("train", i, &info); i++) settings += info.common;
  assert_in_range(settings, 10, 18);
  assert_int_equal(dvbf("help train"), 0);
  assert_has(out, "--updates int");
  assert_has(out, "`dvbf help train --all` lists");
  assert_null(strstr(out, "--scale-emission"));
  assert_null(strstr(out, "paper-pendulum"));
}

/* Names that other programs use lead to ours, and remedies can be typed as they stand. */
static void words_of_the_field_are_known(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"--epochs 5", "--epochs: no such option or setting; the length of training is given in updates, "
                     "one per minibatch: --updates"},
      {"--lr 0.1", "did you mean --learning-rate?"},
      {"--batch 5", "did you mean --batch-size?"},
      {"--hidden_size 5", "did you mean --hidden?"},
      {"--latent-dim 5", "did you mean --latent?"},
      {"--input u", "select the input columns with --inputs"},
      {"--horizon 5", "has --steps for the steps to predict"},
      {"--device cuda", "on all cores: --threads"},
      {"--verbose", "progress is shown unless --quiet is given"},
      {"--learning-rate 5", "dvbf: --learning-rate 5: must be a number in"},
      {"--valid-share 2", "dvbf: --valid-share 2: must be"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(dvbf("train data.h5 -o x %s", cases[i][0]), 2);
    if (!strstr(err, cases[i][1])) fail_msg("\"%s\" is missing in: %s", cases[i][1], err);
  }
}

static void wrong_usage_is_status_2(void **state) {
  (void)state;
  static const struct {
    const char *arguments, *answer;
  } cases[] = {
      {"trian data.h5", "did you mean train?"},
      {"help trian", "did you mean train?"},
      {"frobnicate data.h5", "frobnicate: no such command; choose one of: simulate, train"},
      {"train data.h5 -o x --frobnicate 1",
       "--frobnicate: no such option or setting; `dvbf help train --all`"},
      {"train data.h5 -o x --learning-rat 1", "did you mean --learning-rate?"},
      {"train data.h5 -o x --quite", "did you mean --quiet?"},
      {"train data.h5 -o x --output y1", "--output: given twice"}, /* --outputs is meant */
      {"train data.h5 -o x --learning-rate 5", "learning-rate = 5: must be a number in [1e-12, 1]"},
      {"train data.h5 -o x --latent=3.5", "latent = 3.5: must be a whole number"},
      {"train data.h5 -o x --transition cubic", "locally-linear | linear | mlp"},
      {"train data.h5 -o x --model dkf --systems 4",
       "systems = 4: model = dkf does not use this setting, which belongs to dvbf"},
      {"train data.h5 -o x --model linear --updates 5",
       "updates = 5: model = linear does not use this setting, which belongs to dvbf, dkf, vae, vrnn, storn, "
       "e2c, svae"},
      {"train data.h5 -o x --updates", "--updates: needs a value"},
      {"train data.h5 -o x --updates --quiet", "--updates: needs a value"},
      {"train data.h5 -o x --quiet=1", "--quiet: takes no value"},
      {"train data.h5 -o x --no-residual=on", "takes no value"},
      {"train data.h5 -o x --no-updates", "no such option or setting"},
      {"train data.h5 -o x -z", "-z: no such option"},
      {"train data.h5 -o x --preset pendulm", "the known ones are pendulum"},
      {"simulate pendulum ball -o x", "ball: too many arguments"},
      {"train data.h5", "--output is missing"},
      {"train -o x", "DATA is missing"},
      {"train data.h5 -o x --resume --force", "--resume continues a run and --force replaces it"},
      {"simulate bowl -o x", "choose one of: pendulum"},
      {"simulate pendulum -o x --steps 1", "steps = 1: must be a whole number in [2, 100000]"},
      {"reproduce bowl -o x", "choose one of: pendulum, ball, two-balls, all, zoo"},
      {"reproduce zoo -o x --preset pendulum", "the zoo is trained with settings chosen from its data"},
      {"reproduce ball -o x --preset paper-pendulum", "preset = paper-pendulum: it is for pendulum"},
      {"reproduce pendulum -o x --model dkf", "--model dkf: pendulum is compared with its rival"},
      {"reproduce ball -o x --preset ball --model dkf", "--model dkf: the paper has no such model for ball"},
      {"reproduce pendulum -o x --model vae", "--model vae: the paper has no such model for pendulum"},
      {"reproduce all -o x --preset bowl", "no such preset; the known ones are pendulum"},
      {"reproduce pendulum -o x --seeds 0", "--seeds 0: must be a whole number in [1, 1000]"},
      {"evaluate run", "DATA is missing"},
      {"report run data.h5", "--output is missing"},
      {"report run data.h5 -o x/x.html --split some", "train | valid | test"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int status = dvbf("%s", cases[i].arguments);
    if (status != 2) fail_msg("dvbf %s: exit status %d", cases[i].arguments, status);
    assert_refused(cases[i].answer);
    assert_false(exists("x"));
  }
  assert_int_equal(dvbf(""), 2);
  assert_has(err, "usage:");
}

static void flags_win_over_config_over_preset(void **state) {
  (void)state;
  static char text[1 << 14];
  FILE *config = fopen("config.txt", "w");
  fprintf(config, "updates = 5 # a comment\nlatent = 2\nstate-limit = 0.5\n");
  fclose(config);
  assert_int_equal(
      dvbf("train data.h5 --latent 4 -o order --config config.txt --no-residual --affine --clip-z=0"
           " --preset paper-pendulum --hidden 8 --batch-size 20 --quiet --no-verdict"),
      0);
  read_file("order/settings.txt", text, sizeof text);
  assert_has(text, "\nlatent = 4\n");           /* flag */
  assert_has(text, "\nclip-z = 0\n");           /* flag over preset */
  assert_has(text, "\nresidual = off\n");       /* --no-NAME */
  assert_has(text, "\naffine = on\n");          /* a switch alone */
  assert_has(text, "\nupdates = 5\n");          /* config over preset */
  assert_has(text, "\nstate-limit = 0.5\n");    /* config over default */
  assert_has(text, "\noptimizer = adadelta\n"); /* preset over default */
  assert_has(text, "\nvalidate-every = 250\n"); /* preset */
  assert_has(text, "\nclip-norm = 0\n");        /* default */
  assert_string_equal(err, "");                 /* --quiet */
  assert_int_equal(dvbf("train data.h5 -o order2 --config none.txt"), 1);
  assert_refused("none.txt");
}

/* ---- Bad input ---- */

static void bad_data_is_named(void **state) {
  (void)state;
  char bytes[1 << 14];
  size_t length = read_file("data.h5", bytes, sizeof bytes);
  FILE *file = fopen("short.h5", "wb");
  fwrite(bytes, 1, length / 2, file);
  fclose(file);
  file = fopen("text.h5", "w");
  fprintf(file, "no numbers\n");
  fclose(file);
  write_data("rank.h5", 1, 8, 0);
  write_data("length.h5", 3, 9, 0);
  write_data("nan.h5", 3, 8, NAN);
  static const char *const cases[][3] = {
      {"none.h5", "none.h5", "cannot be read"},       {"short.h5", "short.h5", "truncated"},
      {"text.h5", "text.h5", "no column of numbers"}, {"rank.h5", "rank.h5: u", "shape"},
      {"length.h5", "length.h5: u", "shape"},         {"nan.h5", "nan.h5: x", "sequence 7, step 4"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(dvbf("train %s -o bad" TINY, cases[i][0]), 1);
    assert_refused(cases[i][1]);
    assert_has(err, cases[i][2]);
    assert_false(exists("bad"));
  }
}

static void good_data_at_the_root_trains(void **state) {
  (void)state;
  write_data("good.h5", 3, 8, 0);
  assert_int_equal(dvbf("train good.h5 -o good --updates 5" TINY), 0);
  assert_int_equal(dvbf("evaluate good good.h5"), 0);
  assert_has(out, "No ground truth");
}

static void output_is_checked_before_training(void **state) {
  (void)state;
  assert_int_equal(dvbf("train data.h5 -o data.h5/run --updates 1000000000"), 1);
  assert_refused("data.h5/run: the folder cannot be created");
  assert_int_equal(dvbf("train data.h5 -o data.h5 --updates 1000000000"), 1);
  assert_refused("data.h5: the folder cannot be written");
  assert_int_equal(dvbf("simulate pendulum -o data.h5/x.h5"), 1);
  assert_refused("data.h5/x.h5");
}

static void former_results_stay_without_force(void **state) {
  (void)state;
  assert_int_equal(system("cp -r run before && cp data.h5 before.h5"), 0);
  assert_int_equal(dvbf("train data.h5 -o run --updates 1 --seed 9" TINY), 1);
  assert_refused("run/model.safetensors: already exists");
  assert_int_equal(dvbf("simulate pendulum -o data.h5"), 1);
  assert_refused("data.h5: already exists");
  /* Even with --force a run that fails changes nothing. */
  assert_int_equal(dvbf("train none.h5 -o run --force" TINY), 1);
  assert_int_equal(dvbf("train data.h5 -o run --force --quiet --initial-frames 100" TINY), 2);
  assert_refused("initial-frames");
  static const char *const names[] = {"model.safetensors", "metrics.csv", "settings.txt",
                                      "checkpoint.safetensors"};
  for (size_t i = 0; i < 4; i++) {
    char now[64], then[64];
    snprintf(now, sizeof now, "run/%s", names[i]);
    snprintf(then, sizeof then, "before/%s", names[i]);
    assert_true(same_bytes(now, then));
  }
  assert_true(same_bytes("data.h5", "before.h5"));
  assert_int_equal(dvbf("train data.h5 -o before --updates 1 --seed 9 --force" TINY), 0);
  assert_false(same_bytes("run/model.safetensors", "before/model.safetensors"));
  assert_false(same_bytes("run/metrics.csv", "before/metrics.csv"));
}

/* ---- Work ---- */

static void run_folder_is_complete(void **state) {
  (void)state;
  static char text[1 << 14];
  read_file("run/metrics.csv", text, sizeof text);
  assert_int_equal(strncmp(text, "update,start,seconds,bound,valid_bound,", 39), 0);
  assert_has(text, "\n5,");
  assert_has(text, "\n20,");
  read_file("run/settings.txt", text, sizeof text);
  assert_has(text, "\nupdates = 20\n");
  assert_int_equal(dvbf("evaluate run data.h5"), 0);
  assert_has(out, "velocity");
  assert_has(out, "Lower bound");
  assert_has(out, "steps ahead");
}

static void progress_tells_of_a_restart(void **state) {
  (void)state;
  assert_int_equal(dvbf("train data.h5 -o restart --updates 10 --restart-above 0" TINY " --starts 2"), 0);
  assert_has(err, "\nstart 1 predicts badly");
  assert_has(err, "\n10/10 updates  start 2 of 2");
  assert_string_equal(out, "");
}

static void training_tells_scripts(void **state) {
  (void)state;
  assert_int_equal(dvbf("train data.h5 -o told --updates 10 --json --quiet" TINY), 0);
  json_t *all = json_loads(out, 0, NULL);
  assert_non_null(all);
  assert_int_equal(number(all, "updates"), 10);
  assert_true(number(all, "seconds") > 0 && number(all, "parameters") > 0 && number(all, "threads") > 0);
  number(all, "valid_bound");
  assert_string_equal(err, "");
  json_decref(all);
}

/* ---- The verdict ---- */

/* Each use has every way to predict; that of the model has its columns by name. */
static void expect_rolling(const json_t *all, const char *use) {
  static const char *const ways[] = {"mean", "last", "linear", "learned"};
  const json_t *rolling = json_object_get(all, use);
  assert_true(number(rolling, "origins") >= 1 && number(rolling, "steps") >= 1);
  for (int i = 0; i < 4; i++) {
    const json_t *score = json_object_get(rolling, ways[i]), *columns = json_object_get(score, "columns");
    assert_true(number(score, "rmse") > 0 && number(score, "fit") <= 100);
    assert_true(number(json_object_get(columns, "position"), "rmse") > 0);
    assert_true(number(json_object_get(columns, "speed"), "fit") <= 100);
  }
  const json_t *coverage = json_object_get(rolling, "coverage");
  assert_true(number(coverage, "90") >= number(coverage, "50"));
}

static void expect_verdict(void) {
  json_t *all = json_loads(out, 0, NULL);
  assert_non_null(all);
  expect_rolling(all, "one_step");
  expect_rolling(all, "free_run");
  const json_t *whiteness = json_object_get(json_object_get(all, "one_step"), "whiteness");
  assert_in_range((int)(100 * number(whiteness, "outside")), 0, 100);
  const json_t *speed = json_object_get(json_object_get(whiteness, "columns"), "speed");
  assert_int_equal(json_array_size(json_object_get(speed, "autocorrelation")), 20);
  const json_t *verdict = json_object_get(all, "verdict");
  assert_true(json_is_false(json_object_get(verdict, "useful")));
  assert_string_equal(json_string_value(json_object_get(verdict, "split")), "test");
  assert_has(json_string_value(json_object_get(verdict, "sentence")), "NOT better than the mean");
  json_decref(all);
}

/* Numbers without a pattern: there is nothing to learn. */
static void a_useless_model_is_status_3(void **state) {
  (void)state;
  FILE *file = fopen("noise.csv", "w");
  fprintf(file, "push,position,speed\n");
  uint32_t random = 1;
  for (int i = 0; i < 400 * 3; i++) {
    random = random * 1664525 + 1013904223;
    fprintf(file, "%u%c", random >> 16, i % 3 < 2 ? ',' : '\n');
  }
  fclose(file);
  static const char train[] = "train noise.csv --inputs push --updates 1 --hidden 8 --starts 1 --threads 1";
  assert_int_equal(dvbf("%s -o noise", train), 3);
  const char *last = strstr(err, "verdict: ");
  assert_non_null(last);
  assert_has(last, "verdict: NOT better than the mean: do not use this model; what to try: ");
  assert_has(last, "more data than these 320 steps, more updates than 1, ");
  assert_ptr_equal(strchr(last, '\n'), err + strlen(err) - 1); /* the last line */
  assert_int_equal(dvbf("%s -o quiet --quiet --json", train), 3);
  assert_has(err, "dvbf: quiet: NOT better than the mean");
  expect_verdict();
  assert_int_equal(dvbf("%s -o silent --quiet --no-verdict", train), 0);
  assert_string_equal(err, "");
  assert_int_equal(dvbf("evaluate noise noise.csv --json"), 0);
  expect_verdict();
  assert_int_equal(dvbf("predict noise noise.csv --json --verdict"), 0);
  expect_verdict();
  assert_int_equal(dvbf("predict noise noise.csv --json"), 0);
  assert_null(strstr(out, "verdict")); /* only if it is asked for */
  assert_int_equal(dvbf("evaluate noise noise.csv"), 0);
  assert_has(out, "\n  last value ");
  assert_has(out, "\n  best linear model ");
  assert_has(out, "\n    speed, learned ");
  assert_has(out, "\nVerdict: NOT better than the mean: do not use this model;");
  assert_has(out, "\nStability: no certificate of contraction (longest in the best quadratic norm found: ");
  assert_has(out, "; bounded by state-limit: each |z_k| <= ");
  assert_int_equal(dvbf("evaluate noise noise.csv --no-verdict"), 0);
  assert_null(strstr(out, "Verdict"));
}

/* A certificate, and what it is made of, for scripts. */
static void a_contracting_model_says_so(void **state) {
  (void)state;
  assert_int_equal(dvbf("train noise.csv --inputs push --updates 3 --hidden 8 --starts 1 --contraction 0.9 "
                        "--no-verdict --quiet -o short"),
                   0);
  assert_int_equal(dvbf("evaluate short noise.csv --no-verdict"), 0);
  assert_has(out,
             "\nStability: contracts: every mixture of its 8 systems shrinks differences of states by at "
             "least 10 % per step (longest in the Euclidean norm: 0.9");
  assert_int_equal(dvbf("evaluate short noise.csv --no-verdict --json"), 0);
  json_t *all = json_loads(out, 0, NULL);
  const json_t *stability = json_object_get(all, "stability");
  const json_t *member = json_array_get(json_object_get(stability, "members"), 0);
  assert_true(json_is_true(json_object_get(stability, "contracts")));
  assert_true(json_is_true(json_object_get(stability, "bounded")));
  assert_true(fabs(number(stability, "length") - 0.9) < 1e-5);
  assert_has(json_string_value(json_object_get(stability, "sentence")), "contracts: ");
  assert_int_equal(json_integer_value(json_object_get(member, "systems")), 8);
  assert_int_equal(json_integer_value(json_object_get(member, "draws")), 64);
  assert_string_equal(json_string_value(json_object_get(member, "measure")), "euclidean");
  assert_int_equal(json_array_size(json_object_get(member, "reach")), 6);
  json_decref(all);
  assert_int_equal(dvbf("train noise.csv --inputs push --transition mlp --contraction 1 -o never"), 2);
  assert_has(err, "contraction = 1: mlp is not made of linear systems");
}

static void evaluation_is_complete_json(void **state) {
  (void)state;
  assert_int_equal(dvbf("evaluate run/model.safetensors data.h5 --json --samples 2 --threads 2"), 0);
  json_t *all = json_loads(out, 0, NULL);
  assert_non_null(all);
  static const char *const names[] = {"sin", "cos", "velocity"};
  for (int i = 0; i < 3; i++) {
    const json_t *entry = json_object_get(json_object_get(all, "regression"), names[i]);
    assert_true(number(entry, "r2") <= 1);
    number(entry, "log_likelihood");
  }
  const json_t *bound = json_object_get(all, "bound");
  double sum = number(bound, "reconstruction") - number(bound, "kl_w") - number(bound, "kl_v");
  assert_true(fabs(number(bound, "elbo") - sum) < 1e-6 * (1 + fabs(sum)));
  assert_true(number(bound, "elbo_deviation") >= 0);
  const json_t *prediction = json_object_get(all, "prediction");
  assert_int_equal(number(prediction, "observed"), 5);
  assert_true(number(prediction, "pixel_variance") > 0);
  static const char *const curves[] = {"horizon", "mse", "mse_mean_path", "mse_repeat"};
  for (int i = 0; i < 4; i++) assert_int_equal(json_array_size(json_object_get(prediction, curves[i])), 10);
  for (size_t i = 0; i < 10; i++)
    assert_int_equal(json_integer_value(json_array_get(json_object_get(prediction, "horizon"), i)), i + 1);
  assert_true(number(all, "updates") <= 20);
  assert_true(number(all, "seconds") > 0);
  assert_true(number(all, "parameters") > 1000);
  assert_int_equal(number(all, "seed"), 3);
  assert_int_equal(number(all, "threads"), 2);
  json_decref(all);
}

/* The file tells evaluate which model it is. */
static void a_dkf_from_data_to_tables(void **state) {
  (void)state;
  assert_int_equal(dvbf("train data.h5 -o dkf --preset dkf-pendulum --updates 10 --quiet" TINY_NETS), 0);
  assert_int_equal(dvbf("evaluate dkf data.h5 --samples 2"), 0);
  assert_has(out, "- KL of z");
  assert_has(out, "velocity");
  assert_has(out, "steps ahead");
}

static void same_bytes_with_any_threads(void **state) {
  (void)state;
  static const char *const names[] = {"t1", "t2", "t4", "again"};
  static const int threads[] = {1, 2, 4, 1};
  for (int i = 0; i < 4; i++) {
    char path[64];
    snprintf(path, sizeof path, "%s/model.safetensors", names[i]);
    assert_int_equal(
        dvbf("train data.h5 -o %s --updates 20 --threads %d --seed 3" TINY, names[i], threads[i]), 0);
    assert_true(same_bytes(path, "run/model.safetensors"));
  }
  assert_int_equal(dvbf("train data.h5 -o other --updates 20 --seed 4" TINY), 0);
  assert_false(same_bytes("other/model.safetensors", "run/model.safetensors"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(help_states_defaults),
      cmocka_unit_test(short_help_is_short),
      cmocka_unit_test(words_of_the_field_are_known),
      cmocka_unit_test(wrong_usage_is_status_2),
      cmocka_unit_test(flags_win_over_config_over_preset),
      cmocka_unit_test(bad_data_is_named),
      cmocka_unit_test(good_data_at_the_root_trains),
      cmocka_unit_test(output_is_checked_before_training),
      cmocka_unit_test(former_results_stay_without_force),
      cmocka_unit_test(run_folder_is_complete),
      cmocka_unit_test(progress_tells_of_a_restart),
      cmocka_unit_test(training_tells_scripts),
      cmocka_unit_test(a_useless_model_is_status_3),
      cmocka_unit_test(a_contracting_model_says_so),
      cmocka_unit_test(evaluation_is_complete_json),
      cmocka_unit_test(a_dkf_from_data_to_tables),
      cmocka_unit_test(same_bytes_with_any_threads),
  };
  return cmocka_run_group_tests_name("cli", tests, enter_folder_with_run, tear_down);
}
