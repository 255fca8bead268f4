/* filter, smooth, predict and sample as a user meets them. */
#include "command.h"

#include <hdf5.h>
#include <math.h>

static float values[1 << 20]; /* of the array that was read last */
static hsize_t shape[8];

/* Reads an array of a file and returns its rank, 0 when it is not there. */
static int read_array(const char *path, const char *name) {
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) fail_msg("%s cannot be read", path);
  int rank = 0;
  if (H5Lexists(file, name, H5P_DEFAULT) > 0) {
    hid_t id = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(id);
    rank = H5Sget_simple_extent_dims(space, shape, NULL);
    assert_true(H5Sget_simple_extent_npoints(space) <= (hssize_t)(sizeof values / sizeof *values));
    assert_true(H5Dread(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Sclose(space);
    H5Dclose(id);
  }
  H5Fclose(file);
  return rank;
}

/* An array of that shape, all finite. */
static void expect_array(const char *path, const char *name, int rank, const hsize_t *dims) {
  size_t count = 1;
  int found = read_array(path, name);
  if (found != rank) fail_msg("%s: %s has the rank %d, not %d", path, name, found, rank);
  for (int i = 0; i < rank; i++) {
    if (shape[i] != dims[i]) fail_msg("%s: %s has %d entries in dimension %d", path, name, (int)shape[i], i);
    count *= dims[i];
  }
  for (size_t i = 0; i < count; i++)
    if (!isfinite(values[i])) fail_msg("%s: %s is not finite at %zu", path, name, i);
}

#define EXPECT(path, name, ...)                                                                              \
  expect_array(path, name, sizeof((hsize_t[]){__VA_ARGS__}) / sizeof(hsize_t), (hsize_t[]){__VA_ARGS__})

/* ---- Usage ---- */

static void help_states_defaults(void **state) {
  (void)state;
  static const char *const commands[] = {"filter", "smooth", "predict", "sample"};
  for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
    assert_int_equal(dvbf("help %s", commands[c]), 0);
    dvbf_setting_info info;
    for (size_t i = 0; dvbf_settings_table(commands[c], i, &info); i++) {
      char name[80], initial[160];
      snprintf(name, sizeof name, "--%s %s", info.name, info.kind);
      snprintf(initial, sizeof initial, "%s; default %s\n", info.range, info.initial);
      assert_has(out, name);
      if (*info.initial) assert_has(strstr(out, name), initial);
    }
  }
}

static void wrong_usage_is_status_2(void **state) {
  (void)state;
  static const struct {
    const char *arguments, *answer;
  } cases[] = {
      {"filter run data.h5", "--output is missing"},
      {"filter run data.h5 -o x.txt", "x.txt: its ending is not that of a known format; use .csv"},
      {"filter run data.h5 -o x.h5 --samples 0", "samples = 0: must be a whole number in [1, 65536]"},
      {"filter dkf data.h5 -o x.h5", "the model dkf cannot filter"},
      {"smooth run data.h5", "--output is missing"},
      {"smooth run data.h5 -o x.h5 --particles 0", "particles = 0: must be a whole number in [1, 65536]"},
      {"predict run data.h5 -o x.h5 --observe 4", "the initial network needs 5 frames"},
      {"predict run data.h5 -o x.h5 --observe 16 --steps 1", "sequence 0 (counted from 0) has only 15 steps"},
      {"predict run data.h5 -o x.h5 --steps 12",
       "ask for at most 11 steps after the observed ones, or choose"},
      {"predict run data.h5 -o x.h5 --quantiles 0.5,1", "numbers in (0, 1)"},
      {"predict run data.h5 -o x.h5 --quantiles 0.5:0.6", "separated by commas"},
      {"predict run data.h5 -o x.h5 --quantiles ,", "numbers in (0, 1)"},
      {"predict run data.h5 -o x.h5 --from end --steps 3 --verdict", "leave out --verdict or --from end"},
      {"sample run -o x.h5 --controls refuse",
       "controls are needed for 99 steps but the data have them for 0"},
      {"sample run -o x.h5 --controls loud", "refuse | zero | hold | random"},
      {"sample run data.h5 -o x.h5", "too many arguments"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int status = dvbf("%s", cases[i].arguments);
    if (status != 2) fail_msg("dvbf %s: exit status %d: %s", cases[i].arguments, status, err);
    assert_refused(cases[i].answer);
    assert_false(exists("x.h5"));
  }
}

static void former_results_stay_without_force(void **state) {
  (void)state;
  assert_int_equal(dvbf("sample run -o keep.npz --steps 5 --count 2 --quiet"), 0);
  assert_string_equal(err, "");
  assert_int_equal(dvbf("sample run -o keep.npz --steps 6 --count 2"), 1);
  assert_refused("keep.npz: already exists");
  assert_int_equal(dvbf("sample run -o keep.npz --steps 6 --count 2 --force"), 0);
  assert_int_equal(dvbf("sample none -o new.npz"), 1);
  assert_refused("none");
  assert_int_equal(dvbf("predict run plain.h5"), 1);
  assert_refused("trained on 256 columns of x");
}

/* ---- Work ---- */

/* The same bytes whatever the threads, other bytes for another seed. */
static void expect_reproducible(const char *arguments, const char *ending) {
  char path[2][64];
  snprintf(path[0], sizeof path[0], "threads-1.%s", ending);
  for (int i = 0; i < 4; i++) {
    static const char *const options[] = {"--threads 1", "--threads 2", "--threads 5", "--seed 2"};
    snprintf(path[1], sizeof path[1], "threads-2.%s", ending);
    assert_int_equal(dvbf("%s -o %s --force %s", arguments, path[i > 0], options[i]), 0);
    if (i) assert_int_equal(same_bytes(path[0], path[1]), i < 3);
  }
}

static void commands_are_reproducible(void **state) {
  (void)state;
  expect_reproducible("filter run data.h5 --samples 7", "h5");
  expect_reproducible("filter point plain.h5 --samples 7", "npz");
  expect_reproducible("filter run data.h5 --samples 7 --particles 20", "h5");
  expect_reproducible("smooth run data.h5 --samples 7 --particles 20", "h5");
  expect_reproducible("smooth slim plain.h5 --samples 7 --particles 20", "npz");
  expect_reproducible("smooth dkf data.h5 --samples 7 --particles 20", "npz");
  expect_reproducible("predict run data.h5 --samples 7 --steps 6", "npz");
  expect_reproducible("predict dkf data.h5 --samples 7 --steps 6 --x-samples", "h5");
  expect_reproducible("sample run --steps 9 --noise", "npz");
  expect_reproducible("sample dkf --steps 9 --from data.h5", "h5");
}

static void filter_writes_states(void **state) {
  (void)state;
  assert_int_equal(dvbf("filter run data.h5 -o f.h5 --samples 9"), 0);
  assert_has(err, "f.h5: 20 sequences of 15 steps");
  EXPECT("f.h5", "z", 20, 9, 15, 3);
  EXPECT("f.h5", "z_mean", 20, 15, 3);
  EXPECT("f.h5", "z_std", 20, 15, 3);
  EXPECT("f.h5", "x", 20, 15, 16, 16);
  EXPECT("f.h5", "x_std", 20, 15, 16, 16);
  assert_int_equal(read_array("f.h5", "length"), 0);
  /* Moments are those of the samples. */
  static float z[20 * 9 * 15 * 3];
  read_array("f.h5", "z");
  memcpy(z, values, sizeof z);
  read_array("f.h5", "z_std");
  for (size_t i = 0; i < 20; i++)
    for (size_t k = 0; k < 45; k++) {
      double sum = 0, squares = 0;
      for (size_t s = 0; s < 9; s++) sum += (double)z[(i * 9 + s) * 45 + k] / 9;
      for (size_t s = 0; s < 9; s++) squares += pow((double)z[(i * 9 + s) * 45 + k] - sum, 2) / 9;
      assert_true(fabs(sqrt(squares) - (double)values[i * 45 + k]) < 1e-4);
    }
}

/* At step t the filter knows nothing of later frames. */
static void filter_does_not_see_the_future(void **state) {
  (void)state;
  static float first[20 * 8 * 3];
  assert_int_equal(dvbf("filter point plain.h5 -o now.h5 --split train --samples 3"), 0);
  EXPECT("now.h5", "z_mean", 16, 8, 3);
  memcpy(first, values, sizeof first);
  assert_int_equal(dvbf("filter point later.h5 -o then.h5 --split train --samples 3"), 0);
  EXPECT("then.h5", "z_mean", 16, 8, 3);
  int differ = 0;
  for (size_t i = 0; i < 16; i++)
    for (size_t k = 0; k < 24; k++) {
      bool same = first[i * 24 + k] == values[i * 24 + k];
      assert_true(same || k / 3 >= 6); /* frames 6 and 7 (from 0) are others in later.h5 */
      differ += !same;
    }
  assert_true(differ > 16 * 3);
}

static void smooth_writes_states(void **state) {
  (void)state;
  static const char *const models[] = {"run", "dkf"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(dvbf("smooth %s data.h5 -o sm.h5 --samples 9 --particles 30 --force", models[i]), 0);
    EXPECT("sm.h5", "z", 20, 9, 15, 3);
    EXPECT("sm.h5", "z_mean", 20, 15, 3);
    EXPECT("sm.h5", "z_std", 20, 15, 3);
    EXPECT("sm.h5", "x", 20, 15, 16, 16);
    EXPECT("sm.h5", "x_std", 20, 15, 16, 16);
  }
}

/* Sequences of 8 and of 5 steps: what is past an end is 0, and nothing of it reaches what is before. */
static void short_sequences_end(void **state) {
  (void)state;
  static const char *const commands[] = {"filter", "filter --particles 30", "smooth --particles 30"};
  for (size_t c = 0; c < 3; c++) {
    static float other[20 * 8 * 3];
    for (int i = 0; i < 2; i++) {
      assert_int_equal(dvbf("%s point %s -o short.h5 --force --split all --samples 4", commands[c],
                            i ? "ragged-2.h5" : "ragged.h5"),
                       0);
      EXPECT("short.h5", "x", 20, 8, 3);
      for (size_t k = 0; k < 20 * 24; k++) assert_int_equal(values[k] == 0, k / 24 % 2 && k / 3 % 8 >= 5);
      EXPECT("short.h5", "z_mean", 20, 8, 3);
      for (size_t k = 0; k < 20 * 24; k++) assert_int_equal(values[k] == 0, k / 24 % 2 && k / 3 % 8 >= 5);
      if (i) assert_memory_equal(other, values, sizeof other);
      memcpy(other, values, sizeof other);
      EXPECT("short.h5", "length", 20);
      assert_true(values[0] == 8 && values[1] == 5);
    }
  }
}

/* Whole frames and single values of x are missing, seen and unseen ones. */
static void gaps_are_taken(void **state) {
  (void)state;
  static const char *const commands[] = {
      "filter point gaps.h5 --particles 9", "filter point gaps.h5", "smooth point gaps.h5 --particles 9",
      "predict point gaps.h5 --steps 2 --controls hold --json", "sample point --from gaps.h5"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    assert_int_equal(dvbf("%s -o gaps-out.h5 --force --split all", commands[i]), 1);
    assert_refused("missing = nan");
    assert_int_equal(dvbf("%s -o gaps-out.h5 --force --split all --missing nan", commands[i]), 0);
    if (strstr(commands[i], "json")) {
      json_t *all = json_loads(out, 0, NULL);
      assert_true(number(all, "rmse") > 0);
      json_decref(all);
    }
    assert_true(read_array("gaps-out.h5", "x") == 3);
    EXPECT("gaps-out.h5", "x", shape[0], shape[1], 3);
    assert_true(read_array("gaps-out.h5", "z") >= 3);
    for (size_t k = 0; k < 100; k++) assert_true(isfinite(values[k]));
  }
}

/* The same from memory and from a file that is read piece by piece. */
static void sources_are_read(void **state) {
  (void)state;
  static const char *const commands[] = {"filter run data.h5 --samples 3", "predict run data.h5 --samples 3",
                                         "filter run data.h5 --samples 3 --particles 9",
                                         "smooth run data.h5 --samples 3 --particles 9",
                                         "smooth dkf data.h5 --samples 3 --particles 9"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    assert_int_equal(dvbf("%s -o whole.npz --force", commands[i]), 0);
    assert_int_equal(dvbf("%s -o pieces.npz --force --memory 0", commands[i]), 0);
    assert_true(same_bytes("whole.npz", "pieces.npz"));
  }
}

static void likelihoods_come_with_the_bound(void **state) {
  (void)state;
  static const char *const models[] = {"run", "dkf"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(dvbf("evaluate %s data.h5 --samples 20 --particles 200 --json", models[i]), 0);
    json_t *all = json_loads(out, 0, NULL);
    const json_t *bound = json_object_get(all, "bound");
    assert_int_equal(number(bound, "particles"), 200);
    assert_true(number(bound, "importance") > number(bound, "elbo"));
    if (!i) assert_true(number(bound, "particle_filter") > number(bound, "elbo"));
    if (i) assert_true(json_is_null(json_object_get(bound, "particle_filter")));
    json_decref(all);
  }
  assert_int_equal(dvbf("evaluate run data.h5 --samples 1 --particles 5"), 0);
  assert_has(out, "by 5 weighted paths");
  assert_has(out, "by a particle filter of 5");
  assert_int_equal(dvbf("evaluate run data.h5 --samples 1"), 0);
  assert_null(strstr(out, "weighted"));
}

static void predictions_are_complete(void **state) {
  (void)state;
  assert_int_equal(dvbf("predict run data.h5 -o p.h5 --samples 9 --steps 6 --x-samples"
                        " --quantiles 0.25,0.75 --json"),
                   0);
  json_t *all = json_loads(out, 0, NULL);
  assert_non_null(all);
  assert_int_equal(number(all, "sequences"), 20);
  assert_int_equal(number(all, "observed"), 5);
  assert_int_equal(number(all, "steps"), 6);
  assert_true(number(all, "rmse") > 0);
  assert_int_equal(json_array_size(json_object_get(all, "rmse_by_column")), 256);
  double sum = 0;
  for (size_t i = 0; i < 6; i++)
    sum += pow(json_number_value(json_array_get(json_object_get(all, "rmse_by_step"), i)), 2) / 6;
  assert_true(fabs(sqrt(sum) - number(all, "rmse")) < 1e-6);
  json_decref(all);
  EXPECT("p.h5", "z", 20, 9, 6, 3);
  EXPECT("p.h5", "x", 20, 6, 16, 16);
  EXPECT("p.h5", "x_std", 20, 6, 16, 16);
  EXPECT("p.h5", "x_samples", 20, 9, 6, 16, 16);
  EXPECT("p.h5", "quantiles", 2);
  EXPECT("p.h5", "u", 20, 6, 1);
  EXPECT("p.h5", "x_quantiles", 2, 20, 6, 16, 16);
  for (size_t i = 0; i < 20 * 6 * 256; i++) assert_true(values[i] <= values[i + 20 * 6 * 256]);
}

static void predictions_say_how_good_they_are(void **state) {
  (void)state;
  assert_int_equal(dvbf("predict point plain.h5 --samples 5 --steps 2 --verdict"), 0);
  assert_has(out, "2 sequences predicted from 5 steps");
  assert_has(out, "\nVerdict: ");
  assert_int_equal(dvbf("predict point plain.h5 --samples 5 --steps 2"), 0);
  assert_has(out, "2 sequences predicted from 5 steps");
  assert_null(strstr(out, "Verdict"));
  assert_has(out, "  x2 ");
  assert_has(out, "\n  2 ");
  assert_int_equal(dvbf("predict point plain.h5 --samples 5 --observe 8 --steps 3 --controls zero"), 0);
  assert_has(out, "nothing to compare with");
  /* Noise of the emission widens the quantiles. */
  assert_int_equal(dvbf("predict run data.h5 -o wide.h5 --samples 20 --steps 2 --quantiles 0.1"), 0);
  assert_int_equal(dvbf("predict run data.h5 -o slim.h5 --samples 20 --steps 2 --quantiles 0.1 --no-noise"),
                   0);
  double sum[2] = {0};
  for (int i = 0; i < 2; i++) {
    EXPECT(i ? "slim.h5" : "wide.h5", "x_std", 20, 2, 16, 16);
    for (size_t k = 0; k < 20 * 2 * 256; k++) sum[i] += (double)values[k];
  }
  assert_true(sum[0] > sum[1]);
}

static void controls_can_be_made_up(void **state) {
  (void)state;
  static const char *const names[] = {"zero", "hold", "random"};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(
        dvbf("predict run data.h5 -o u.h5 --force --samples 2 --steps 20 --controls %s", names[i]), 0);
    EXPECT("u.h5", "u", 20, 20, 1);
    for (size_t k = 0; k < 20; k++) {
      const float *u = values + k * 20;
      assert_true(u[9] != 0); /* the data's last */
      assert_true(i == 0 ? u[10] == 0 : i == 1 ? u[10] == u[9] && u[19] == u[9] : u[10] != u[11]);
    }
  }
}

static void samples_are_data(void **state) {
  (void)state;
  assert_int_equal(dvbf("sample run -o s.h5 --steps 30 --count 40"), 0);
  EXPECT("s.h5", "z", 40, 30, 3);
  EXPECT("s.h5", "u", 40, 30, 1);
  EXPECT("s.h5", "x", 40, 30, 16, 16); /* the run folder knows the images */
  assert_true(values[0] != values[30 * 256]);
  assert_int_equal(dvbf("evaluate run s.h5 --samples 1"), 0); /* x and u make a data set */
  assert_int_equal(dvbf("sample run -o s.h5 --steps 1 --count 1 --force"), 0);
  EXPECT("s.h5", "x", 1, 1, 16, 16);
  /* Samples continue sequences in turn, under their controls. */
  assert_int_equal(dvbf("sample run --from data.h5 -o t.h5 --steps 12 --count 25 --controls zero"), 0);
  EXPECT("t.h5", "x", 25, 12, 16, 16);
  EXPECT("t.h5", "u", 25, 12, 1);
  assert_true(values[0] == values[20 * 12] && values[0] != values[12] && values[11] == 0);
  assert_int_equal(dvbf("sample dkf -o d.h5 --steps 4 --count 3"), 0);
  EXPECT("d.h5", "x", 3, 4, 16, 16);
  assert_int_equal(dvbf("sample run/model.safetensors -o m.h5 --steps 4 --count 3"), 0);
  EXPECT("m.h5", "x", 3, 4, 256);
}

/* ---- The folder that all tests work in ---- */

/* x [20, 8, 3] and u [20, 8, 1]; the last two frames are turned by `turn`. With `ragged` every second
 * sequence has 5 steps and is filled up with `turn`; if that is NaN, values before the end are missing. */
static void write_plain(const char *path, float turn, bool ragged) {
  static float x[20 * 8 * 3], u[20 * 8];
  uint32_t length[20];
  for (size_t i = 0; i < 20; i++) length[i] = i % 2 ? 5 : 8;
  for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
    size_t t = i / 3 % 8;
    bool padding = ragged && t >= length[i / 24], gap = t == 3 || t == 6 || i % 7 == 1;
    x[i] = sinf((float)i + (!ragged && t > 5 ? turn : 0));
    if (padding || (isnan(turn) && gap)) x[i] = turn;
  }
  for (size_t i = 0; i < sizeof u / sizeof *u; i++) u[i] = cosf((float)i);
  dvbf_array arrays[] = {{"x", DVBF_FLOAT32, 3, {20, 8, 3}, x},
                         {"u", DVBF_FLOAT32, 3, {20, 8, 1}, u},
                         {"length", DVBF_UINT32, 1, {20}, length}};
  assert_int_equal(dvbf_arrays_write(path, arrays, ragged ? 3 : 2, NULL), DVBF_OK);
}

static int set_up(void **state) {
  (void)state;
  if (enter_folder()) return -1;
  write_plain("plain.h5", 0, false);
  write_plain("later.h5", 1, false);
  write_plain("gaps.h5", NAN, true);
  write_plain("ragged.h5", 0, true);
  write_plain("ragged-2.h5", 7, true);
  assert_int_equal(dvbf("simulate pendulum -o data.h5 --train 40 --valid 10 --test=20 --seed 2"), 0);
  assert_int_equal(dvbf("train data.h5 -o run --updates 20 --seed 3" TINY), 0);
  assert_int_equal(dvbf("train plain.h5 -o point --updates 5 --universal point" TINY), 0);
  assert_int_equal(dvbf("train plain.h5 -o slim --updates 5 --universal-noise step" TINY), 0);
  assert_int_equal(dvbf("train data.h5 -o dkf --preset dkf-pendulum --updates 5" TINY_NETS), 0);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(help_states_defaults),
      cmocka_unit_test(wrong_usage_is_status_2),
      cmocka_unit_test(former_results_stay_without_force),
      cmocka_unit_test(commands_are_reproducible),
      cmocka_unit_test(filter_writes_states),
      cmocka_unit_test(filter_does_not_see_the_future),
      cmocka_unit_test(smooth_writes_states),
      cmocka_unit_test(short_sequences_end),
      cmocka_unit_test(gaps_are_taken),
      cmocka_unit_test(sources_are_read),
      cmocka_unit_test(likelihoods_come_with_the_bound),
      cmocka_unit_test(predictions_are_complete),
      cmocka_unit_test(predictions_say_how_good_they_are),
      cmocka_unit_test(controls_can_be_made_up),
      cmocka_unit_test(samples_are_data),
  };
  return cmocka_run_group_tests_name("estimates", tests, set_up, tear_down);
}
