/* Small and odd data: each oddity is named in a sentence, and the other columns are learned as well as
 * without it. */
#include "command.h"
#include "part.h"

#include "base/memory.h"
#include "data/checks.h"
#include "model/model.h"

#include <math.h>

/* ---- Files ---- */

enum { SEQUENCES = 60, STEPS = 15, ROWS = SEQUENCES * STEPS, MOST = 6 };

/* Sequences of a damped oscillator under random inputs: u, y1, y2. */
static double clean[ROWS][3];

static double noise(void) {
  static uint64_t state = 5;
  double sum = 0;
  for (int i = 0; i < 12; i++) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    sum += (double)(state >> 40) / 16777216;
  }
  return sum - 6;
}

static void simulate(void) {
  double z[2] = {0};
  for (size_t i = 0; i < ROWS; i++) {
    if (i % STEPS == 0) z[0] = noise(), z[1] = noise();
    double *row = clean[i], a = z[0], b = z[1];
    row[0] = noise();
    row[1] = a + 0.02 * noise();
    row[2] = b + 0.02 * noise();
    z[0] = 0.98 * (cos(0.4) * a - sin(0.4) * b);
    z[1] = 0.98 * (sin(0.4) * a + cos(0.4) * b) + 0.3 * row[0];
  }
}

/* What is odd about a file: columns of `clean` by name, each times a factor; one more column; one value. */
typedef struct oddity {
  const char *name, *header;
  double factors[3];
  int copy;    /* further column: of `clean`; -1: a constant; -2: none */
  int outlier; /* column of the outlier in row 37; -1: none */
  const char *remark;
} oddity;

static void write_odd(const oddity *o) {
  FILE *file = fopen("odd.csv", "w");
  assert_non_null(file);
  fprintf(file, "sequence,%s\n", o->header);
  for (size_t i = 0; i < ROWS; i++) {
    fprintf(file, "%zu", i / STEPS);
    for (int k = 0; k < 3; k++)
      fprintf(file, ",%.9g", i == 37 && k == o->outlier ? 1e12 : o->factors[k] * clean[i][k]);
    if (o->copy > -2) fprintf(file, ",%.9g", o->copy < 0 ? 7.3 : clean[i][o->copy]);
    fprintf(file, "\n");
  }
  fclose(file);
}

/* A recording of n steps of that kind. */
static void write_recording(const char *path, size_t n) {
  double z[2] = {1, 0};
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "u,y\n");
  for (size_t i = 0; i < n; i++) {
    double u = sin(0.7 * (double)i) + sin(0.23 * (double)(i * i % 97)), a = z[0];
    fprintf(file, "%.6f,%.6f\n", u, a + 0.01 * noise());
    z[0] = 0.9 * (cos(0.3) * a - sin(0.3) * z[1]);
    z[1] = 0.9 * (sin(0.3) * a + cos(0.3) * z[1]) + 0.3 * u;
  }
  fclose(file);
}

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

/* ---- Oddities do no harm ---- */

/* Trains on odd.csv; *fit = 100 (1 - error / error of the mean) of y1 and y2 in free runs, in %. */
static void fits(double fit[2]) {
  assert_int_equal(
      dvbf("train odd.csv -o run --force --json --search off --updates 300 --hidden 16 --systems 4 "
           "--latent 4 --batch-size 20 --starts 1 --threads 1 --learning-rate 0.01"),
      0);
  json_t *all = json_loads(out, 0, NULL);
  assert_non_null(all);
  const json_t *columns =
      json_object_get(json_object_get(json_object_get(all, "free_run"), "learned"), "columns");
  static const char *const names[] = {"y1", "y2"};
  for (int k = 0; k < 2; k++) fit[k] = number(json_object_get(columns, names[k]), "fit");
  json_decref(all);
}

static const oddity oddities[] = {
    {"constant", "u,y1,y2,y3", {1, 1, 1}, -1, -1, "note: y3 (7.3) is constant, so no score counts it\n"},
    {"constant input",
     "u,y1,y2,u2",
     {1, 1, 1},
     -1,
     -1,
     "note: u2 (7.3) is constant, so its effect cannot be learned\n"},
    {"duplicate",
     "u,y1,y2,y3",
     {1, 1, 1},
     1,
     -1,
     "note: y1 and y3 have the same values: one of them can be left out\n"},
    {"duplicate input",
     "u,y1,y2,u2",
     {1, 1, 1},
     0,
     -1,
     "note: u and u2 have the same values: one of them can be left out\n"},
    {"outlier", "u,y1,y2", {1, 1, 1}, -2, 2, "note: y2 is 1e+12 at sequence 2, step 7 (counted from 0), "},
    {"outlier of an input",
     "u,y1,y2",
     {1, 1, 1},
     -2,
     0,
     "note: u is 1e+12 at sequence 2, step 7 (counted from 0), "},
    {"small", "u,y1,y2", {1, 1, 1e-8}, -2, -1, "note: y2 (deviation "},
    {"tiny", "u,y1,y2", {1e-30, 1, 1e-30}, -2, -1, "note: u (deviation "},
    {"large",
     "u,y1,y2",
     {1e20, 1, 1e20},
     -2,
     -1,
     " is in an unusual unit, which does not matter where columns are "
     "standardised\n"},
};

static void oddities_are_named_and_do_no_harm(void **state) {
  (void)state;
  double without[2], with[2];
  write_odd(&(oddity){.header = "u,y1,y2", .factors = {1, 1, 1}, .copy = -2, .outlier = -1});
  fits(without);
  assert_null(strstr(err, "note:"));
  if (!(without[0] > 60 && without[1] > 60))
    fail_msg("fits of %g %% and %g %% without anything odd", without[0], without[1]);
  for (size_t i = 0; i < sizeof oddities / sizeof *oddities; i += PART) {
    write_odd(&oddities[i]);
    fits(with);
    assert_has(err, oddities[i].remark);
    for (int k = 0; k < 2; k++)
      if (!(with[k] > without[k] - 10))
        fail_msg("%s: fit of y%d %g %%, without it %g %%", oddities[i].name, k + 1, with[k], without[k]);
  }
}

static void info_tells_of_them(void **state) {
  (void)state;
  write_odd(&oddities[0]);
  assert_int_equal(dvbf("info odd.csv"), 0);
  assert_has(out, "\nWarnings\n  y3 (7.3) is constant, so no score counts it\n");
  write_odd(&oddities[4]);
  assert_int_equal(dvbf("info odd.csv --json"), 0);
  json_t *all = json_loads(out, 0, NULL), *remarks = json_object_get(all, "remarks");
  assert_int_equal(json_array_size(remarks), 1);
  assert_has(json_string_value(json_array_get(remarks, 0)),
             " deviations from all others: it is treated as missing (--outliers 0 keeps it)");
  json_decref(all);
  assert_int_equal(dvbf("info odd.csv --outliers 0"), 0);
  assert_has(out, " deviations from all others: it is kept; --outliers 1000 leaves it out\n");
  assert_has(out, "1e+12");
}

/* ---- Scaling ---- */

static void the_unit_decides_nothing(void **state) {
  (void)state;
  static const double sizes[] = {1e-36, 1e-30, 1e-8, 1, 1e20, 1e36};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    double size = sizes[i];
    assert_true(dv_varies(0, size * size) && dv_varies(size, size * size) &&
                dv_varies(1e6 * size, size * size));
    assert_false(dv_varies(size, 0) || dv_varies(1e9 * size, size * size));
  }
  float x[64];
  for (size_t i = 0; i < 32; i++) x[2 * i] = (float)(i % 2 ? 1e-30 : 3e-30), x[2 * i + 1] = 5;
  dvbf_sequences s = {.count = 4, .steps = 8, .n_x = 2, .x = x};
  dvbf_settings *settings = NULL;
  dvbf_model *m = NULL;
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "x-scaling", "standardise", NULL), DVBF_OK);
  assert_int_equal(dv_model_new(&m, settings, NULL, &s, 1, NULL), DVBF_OK);
  assert_float_equal(m->x.shift[0] * 1e30F, 2, 1e-4);
  assert_float_equal(m->x.scale[0] * 1e-30F, 1, 1e-4);
  assert_true(m->x.shift[1] == 5 && m->x.scale[1] == 1);
  dvbf_model_free(m);
  dvbf_settings_free(settings);
}

/* ---- Outliers ---- */

enum { LONG = 200 };

/* Finds the outliers of one column and, where there are any, tells the first. */
static size_t outliers_of(const float *values, double times, dv_outlier *first) {
  dvbf_sequences s = {.count = 4, .steps = LONG / 4, .n_x = 1, .x = (float *)values};
  dv_statistics x;
  dv_outliers found;
  assert_int_equal(dv_statistics_of_x(&x, &s, NULL), DVBF_OK);
  assert_int_equal(dv_outliers_find(&found, &s, false, times, &x, NULL), DVBF_OK);
  size_t count = found.count ? found.list[0].count : 0;
  if (found.count) *first = found.list[0];
  dv_free(found.list);
  dv_statistics_free(&x);
  return count;
}

static void only_faults_are_outliers(void **state) {
  (void)state;
  float x[LONG];
  dv_outlier first;
  for (size_t i = 0; i < LONG; i++) x[i] = (float)noise();
  assert_int_equal(outliers_of(x, 100, &first), 0);
  x[120] = -1e12F;
  assert_int_equal(outliers_of(x, 1e6, &first), 1);
  assert_true(first.sequence == 2 && first.step == 20 && first.value == -1e12F);
  assert_true(first.times > 5e11 && first.times < 2e12 && first.low < -5e5 && first.low > -2e6);
  x[121] = 1e9F, x[0] = 1e7F; /* each hides behind the one before */
  assert_int_equal(outliers_of(x, 1e6, &first), 3);
  assert_true(first.sequence == 0 && first.step == 0);
  for (size_t i = 50; i < 60; i++) x[i] = 2e9F;
  assert_int_equal(outliers_of(x, 1e6, &first), 0); /* what is frequent belongs to the data */
  assert_int_equal(outliers_of(x, 1000, &first), 1);
  assert_true(first.value == -1e12F);
  for (size_t i = 0; i < LONG; i++) x[i] = i == 70 ? 1e12F : 3;
  assert_int_equal(outliers_of(x, 1e6, &first), 0); /* an event on a constant column */
  for (size_t i = 0; i < LONG; i++) x[i] = (float)exp(-0.5 * (double)i);
  assert_int_equal(outliers_of(x, 1e6, &first), 0); /* within 0 and 1 */
  for (size_t i = 0; i < LONG; i++) x[i] *= 100;
  assert_int_equal(outliers_of(x, 1e6, &first), 0); /* a decay */
}

/* Those of u are bridged, also at the begin and end of a sequence; those of x are missing, in memory and in a
 * file that is read piece by piece. */
static void outliers_are_left_out(void **state) {
  (void)state;
  static float x[4][50][2], u[4][50][1];
  for (size_t i = 0; i < 200; i++) {
    x[i / 50][i % 50][0] = (float)noise();
    x[i / 50][i % 50][1] = (float)(3 + noise());
    u[i / 50][i % 50][0] = (float)noise();
  }
  x[1][7][1] = 1e15F, u[0][0][0] = u[2][49][0] = 1e15F;
  const dvbf_array arrays[] = {{"x", DVBF_FLOAT32, 3, {4, 50, 2}, x}, {"u", DVBF_FLOAT32, 3, {4, 50, 1}, u}};
  assert_int_equal(dvbf_arrays_write("outliers.npz", arrays, 2, NULL), DVBF_OK);
  for (int pieces = 0; pieces < 2; pieces++) {
    dvbf_settings *how = NULL;
    dvbf_data *data = NULL;
    dvbf_sequences copy;
    assert_int_equal(dvbf_settings_new(&how, "data", NULL), DVBF_OK);
    assert_int_equal(dvbf_settings_set(how, "split-by", "none", NULL), DVBF_OK);
    if (pieces) assert_int_equal(dvbf_settings_set(how, "memory", "0", NULL), DVBF_OK);
    assert_int_equal(dvbf_data_read(&data, "outliers.npz", how, NULL), DVBF_OK);
    assert_int_equal(data->train.source != NULL, pieces);
    assert_true(data->train.gaps);
    assert_int_equal(dvbf_sequences_copy(&copy, &data->train, 0, 4, NULL), DVBF_OK);
    for (size_t i = 0; i < 400; i++)
      assert_true(i == (50 + 7) * 2 + 1 ? isnan(copy.x[i]) : copy.x[i] == (&x[0][0][0])[i]);
    for (size_t i = 0; i < 200; i++) assert_true(copy.u[i] == (&u[0][0][0])[i == 0 ? 1 : i == 149 ? 148 : i]);
    assert_int_equal(data->n_notes, 2);
    assert_has(data->notes[0], "x1 is 1e+15 at sequence 1, step 7");
    assert_has(data->notes[1], "u0 is 1e+15 at sequence 0, step 0 (counted from 0) (and 1 more values)");
    dvbf_sequences_free(&copy);
    dvbf_data_free(data);
    dvbf_settings_free(how);
  }
}

/* ---- Large files ---- */

/* Bytes that this process has read from files. */
static double bytes_read(void) {
  unsigned long long bytes = 0;
  FILE *file = fopen("/proc/self/io", "r");
  if (!file) {
    print_message("not tested: this system does not count the bytes that a process reads\n");
    skip();
  }
  assert_int_equal(fscanf(file, "rchar: %llu", &bytes), 1);
  fclose(file);
  return (double)bytes;
}

static void ignore(const char *sentence, void *user) {
  (void)sentence, (void)user;
}

/* Opened, checked, split, described, measured and fingerprinted, and then trained on with windows, in one
 * pass but for what training itself reads: a minibatch and what validates. The range of the state and the
 * last phase, which filter the training data, are left out. */
static void a_large_file_is_read_once(void **state) {
  (void)state;
  enum { COUNT = 20, LENGTH = 5000, WIDTH = 10 };
  static float x[COUNT][LENGTH][WIDTH];
  float *values = &x[0][0][0];
  for (size_t i = 0; i < sizeof x / sizeof *values; i++)
    values[i] = (float)sin(0.01 * (double)(i * i % 10007));
  const dvbf_array array = {"x", DVBF_FLOAT32, 3, {COUNT, LENGTH, WIDTH}, x};
  assert_int_equal(dvbf_arrays_write("large.h5", &array, 1, NULL), DVBF_OK);
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  dvbf_sequences_info *info = NULL;
  dvbf_model *model = NULL;
  dvbf_error error = {.message = ""};
  uint64_t fingerprint;
  static const char *const given[][2] = {{"memory", "0"},   {"search", "off"},     {"updates", "1"},
                                         {"starts", "1"},   {"batch-size", "2"},   {"hidden", "4"},
                                         {"window", "100"}, {"gain-updates", "0"}, {"state-limit", "0"}};
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  for (size_t i = 0; i < sizeof given / sizeof *given; i++)
    assert_int_equal(dvbf_settings_set(settings, given[i][0], given[i][1], NULL), DVBF_OK);
  double before = bytes_read(), size = sizeof x;
  if (dvbf_data_read(&data, "large.h5", settings, &error)) fail_msg("%s", error.message);
  assert_non_null(data->train.source);
  assert_int_equal(dvbf_sequences_describe(&info, &data->train, NULL), DVBF_OK);
  assert_int_equal(dvbf_data_warnings(data, ignore, NULL, NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_choose(settings, data, NULL, NULL, NULL), DVBF_OK);
  assert_int_equal(dv_data_fingerprint(&fingerprint, data, NULL), DVBF_OK);
  double opened = bytes_read() - before;
  if (dvbf_train(&model, settings, data, NULL, &error)) fail_msg("%s", error.message);
  double trained = bytes_read() - before - opened;
  print_message("opened and measured: %.2f of the file, trained: %.2f\n", opened / size, trained / size);
  assert_true(opened < 1.2 * size && trained < 1 * size);
  dvbf_sequences_info_free(info);
  dvbf_model_free(model);
  dvbf_data_free(data);
  dvbf_settings_free(settings);
}

/* ---- Few steps ---- */

static void few_samples_are_enough(void **state) {
  (void)state;
  static const size_t lengths[] = {60, 100, 134, 148};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    write_recording("short.csv", lengths[i]);
    for (int search = 0; search < 2; search++) {
      int status = dvbf("train short.csv -o run --force --updates 10 --threads 1 --search %s --candidates 2",
                        search ? "on" : "off");
      if (status != 0 && status != 3) fail_msg("%zu samples: %s", lengths[i], err);
      assert_null(strstr(err, "nothing to judge"));
      assert_null(strstr(err, "note:"));
    }
  }
}

static void too_few_are_told(void **state) {
  (void)state;
  write_recording("short.csv", 6);
  dvbf("train short.csv -o run --force --updates 2 --search off" TINY);
  assert_has(err, "note: training sees only 2 steps, as the others are for validation and tests (--split-by "
                  "none trains on "
                  "all): too few to learn from");
  write_recording("short.csv", 100);
  assert_int_equal(dvbf("train short.csv -o none --quiet --initial-frames 90"), 2);
  assert_refused(
      "initial-frames = 90: the training sequences have only 80 steps, so the model cannot begin; use "
      "initial-frames = 79 or fewer, or longer sequences or windows");
  assert_int_equal(dvbf("train short.csv -o none --quiet --window 10 --initial-frames 11"), 2);
  assert_refused("the training sequences have only 10 steps");
  assert_int_equal(dvbf("train short.csv -o none --quiet --search off --initial-frames 20"), 2);
  assert_refused(
      "initial-frames = 20: the validation sequences have only 10 steps, so the model cannot begin; "
      "use initial-frames = 9 or fewer, or a larger valid-share, or valid-share = 0");
  assert_int_equal(dvbf("train short.csv -o none --quiet --preset pendulum --initial-frames 90"), 2);
  assert_refused("the training sequences have only 80 steps");
  assert_false(exists("none/model.safetensors"));
}

/* ---- Values that cannot be used ---- */

static void nothing_varies(void **state) {
  (void)state;
  FILE *file = fopen("constant.csv", "w");
  assert_non_null(file);
  fprintf(file, "y1,y2\n");
  for (int i = 0; i < 100; i++) fprintf(file, "1,2.5\n");
  fclose(file);
  static const char sentence[] =
      "data: every column of x is constant in the training sequences (column 0 is always "
      "1), so there is nothing to learn; choose other columns, or other data";
  assert_int_equal(dvbf("train constant.csv -o none --quiet"), 1);
  assert_refused(sentence);
  assert_int_equal(dvbf("train constant.csv -o none --quiet --preset pendulum"), 1);
  assert_refused(sentence);
  assert_int_equal(dvbf("info constant.csv"), 0);
  assert_has(out, sentence);
}

static void values_out_of_range_are_not_called_inf(void **state) {
  (void)state;
  static double x[30];
  x[4] = 1e39;
  const dvbf_array array = {"x", DVBF_FLOAT64, 3, {3, 10, 1}, x};
  assert_int_equal(dvbf_arrays_write("large.npz", &array, 1, NULL), DVBF_OK);
  assert_int_equal(dvbf("info large.npz"), 1);
  assert_refused(
      "x is above 3.4e38, the range of 32-bit numbers (or infinite), at sequence 0, step 4, column 0");
  x[4] = -1e39;
  assert_int_equal(dvbf_arrays_write("large.npz", &array, 1, NULL), DVBF_OK);
  assert_int_equal(dvbf("info large.npz"), 1);
  assert_refused("x is below -3.4e38, the range of 32-bit numbers (or infinite), at sequence 0, step 4");
}

static void text_names_the_setting_of_its_column(void **state) {
  (void)state;
  write_text("text.csv", "time,u,y,state_a\n1,2,3,4\n2,on,4,5\n");
  assert_int_equal(dvbf("info text.csv"), 1);
  assert_refused("line 3, column u: \"on\" is not a number; correct it, or select columns with --inputs\n");
  write_text("text.csv", "time,u,y,state_a\n1,2,3,4\n2,3,high,5\n");
  assert_int_equal(dvbf("info text.csv"), 1);
  assert_refused("column y: \"high\" is not a number; correct it, or select columns with --outputs\n");
  write_text("text.csv", "time,u,y,state_a\n1,2,3,4\n2,3,4,up\n");
  assert_int_equal(dvbf("info text.csv"), 1);
  assert_refused("column state_a: \"up\" is not a number; correct it, or select columns with --states\n");
}

/* ---- All of them ---- */

static int set_up(void **state) {
  (void)state;
  simulate();
  return enter_folder();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(oddities_are_named_and_do_no_harm),
      cmocka_unit_test(info_tells_of_them),
      cmocka_unit_test(the_unit_decides_nothing),
      cmocka_unit_test(only_faults_are_outliers),
      cmocka_unit_test(outliers_are_left_out),
      cmocka_unit_test(a_large_file_is_read_once),
      cmocka_unit_test(few_samples_are_enough),
      cmocka_unit_test(too_few_are_told),
      cmocka_unit_test(nothing_varies),
      cmocka_unit_test(values_out_of_range_are_not_called_inf),
      cmocka_unit_test(text_names_the_setting_of_its_column),
  };
  return cmocka_run_group_tests_name("odd", tests, set_up, tear_down);
}
