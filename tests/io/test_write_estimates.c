/* Estimates in files: what they are of, when, and beside what was measured. */
#include "small_model.h"

#include <hdf5.h>
#include <math.h>
#include <unistd.h>

static char folder[] = "/tmp/dvbf-outcome-XXXXXX";
static char text[1 << 16];

static const char *file_text(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s is not there", path);
  size_t length = fread(text, 1, sizeof text - 1, file);
  text[length] = 0;
  fclose(file);
  return text;
}

/* ---- Data by hand: two recordings with dates, two columns, one input ---- */

enum { T = 4 };
static float x[2][T][2], u[2][T][1];
static dvbf_origin origins[2] = {{.sequence = 7, .step = 10, .time = 86400, .name = "run, \"7\""},
                                 {.sequence = 2, .step = 0, .time = 0.5, .name = "=2+2"}};
static char x_names[2][32] = {"level", "flow"}, u_names[1][32] = {"valve"};
static char x_units[2][16] = {"mm", ""}, u_units[1][16] = {"V"};

static dvbf_data data_by_hand(void) {
  for (int i = 0; i < 2 * T; i++) {
    x[i / T][i % T][0] = (float)i;
    x[i / T][i % T][1] = i == 3 ? NAN : -(float)i;
    u[i / T][i % T][0] = 0.25F * (float)i;
  }
  return (dvbf_data){.test = {.count = 2,
                              .steps = T,
                              .n_x = 2,
                              .n_u = 1,
                              .x = &x[0][0][0],
                              .u = &u[0][0][0],
                              .gaps = true,
                              .origin = origins},
                     .x_names = x_names,
                     .u_names = u_names,
                     .x_units = x_units,
                     .u_units = u_units,
                     .sample_time = 0.5};
}

/* Two steps, of which the first is step 2 of each recording and the second recording has but one. */
static float z[2 * 2], mean[2][2][2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}, spread[2][2][2], acted[2][2][1];
static float quantiles_of[2][2][2][2];
static double quantiles[] = {0.05, 0.975};
static uint32_t lengths[] = {2, 1};

static dvbf_estimates estimates_by_hand(void) {
  for (int i = 0; i < 8; i++) (&spread[0][0][0])[i] = 0.5F;
  for (int i = 0; i < 4; i++) (&acted[0][0][0])[i] = (float)i;
  return (dvbf_estimates){.count = 2,
                          .samples = 1,
                          .steps = 2,
                          .n_z = 1,
                          .n_x = 2,
                          .n_u = 1,
                          .n_quantiles = 2,
                          .first = 2,
                          .length = lengths,
                          .z = z,
                          .z_mean = z,
                          .z_std = z,
                          .x = &mean[0][0][0],
                          .x_std = &spread[0][0][0],
                          .x_quantiles = &quantiles_of[0][0][0][0],
                          .u = &acted[0][0][0],
                          .quantiles = quantiles};
}

static void tables_have_a_row_for_each_step(void **state) {
  (void)state;
  dvbf_data data = data_by_hand();
  dvbf_estimates e = estimates_by_hand();
  dvbf_error error = {0};
  if (dvbf_estimates_write(&e, "predict", &data, &data.test, "p.csv", &error)) fail_msg("%s", error.message);
  assert_string_equal(
      file_text("p.csv"),
      "sequence,name,split,step,time,level [mm],level_std [mm],level_q05 [mm],level_q97.5 [mm],level_true "
      "[mm],flow,flow_std,flow_q05,flow_q97.5,flow_true,valve [V]\n"
      "7,\"run, \"\"7\"\"\",test,12,86401,1,0.5,0,0,2,2,0.5,0,0,-2,0\n"
      "7,\"run, \"\"7\"\"\",test,13,86401.5,3,0.5,0,0,3,4,0.5,0,0,,1\n"
      "2,'=2+2,test,2,1.5,5,0.5,0,0,6,6,0.5,0,0,-6,2\n");
  data.dates = true;
  assert_int_equal(dvbf_estimates_write(&e, "filter", &data, &data.test, "f.csv", NULL), DVBF_OK);
  assert_non_null(strstr(file_text("f.csv"), ",valve [V],z0,z0_std\n"));
  assert_non_null(strstr(text, "test,12,1970-01-02T00:00:01.000,1,"));
  assert_non_null(strstr(text, "test,13,1970-01-02T00:00:01.500,3,"));
}

static void nothing_is_made_up(void **state) {
  (void)state;
  dvbf_estimates e = estimates_by_hand();
  e.n_quantiles = 0;
  assert_int_equal(dvbf_estimates_write(&e, "smooth", NULL, NULL, "plain.csv", NULL), DVBF_OK);
  assert_non_null(strstr(file_text("plain.csv"),
                         "sequence,name,split,step,time,x0,x0_std,x1,x1_std,u0,z0,z0_std\n"
                         "0,,,2,,1,0.5,2,0.5,0,0,0\n"));
  e.x_samples = &mean[0][0][0];
  dvbf_error error = {0};
  assert_int_equal(dvbf_estimates_write(&e, "filter", NULL, NULL, "samples.csv", &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "cannot hold x-samples"));
  assert_int_equal(dvbf_estimates_write(&e, "guess", NULL, NULL, "x.csv", &error), DVBF_ARGUMENT);
  assert_int_equal(dvbf_estimates_write(&e, "filter", NULL, NULL, "x.txt", &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "use .csv, .h5, .hdf5, .npz or .mat"));
  assert_int_equal(access("x.csv", F_OK), -1);
  dvbf_data data = data_by_hand();
  data.test.n_x = 3;
  assert_int_equal(dvbf_estimates_write(&e, "filter", &data, &data.test, "x.csv", &error), DVBF_ARGUMENT);
}

static void read_dataset(hid_t file, const char *name, hid_t type, void *out, const hsize_t *dims, int rank) {
  hid_t id = H5Dopen2(file, name, H5P_DEFAULT);
  if (id < 0) fail_msg("%s is missing", name);
  hid_t space = H5Dget_space(id);
  hsize_t shape[8] = {0};
  assert_int_equal(H5Sget_simple_extent_dims(space, shape, NULL), rank);
  for (int i = 0; i < rank; i++) assert_int_equal(shape[i], dims[i]);
  assert_true(H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
  H5Sclose(space);
  H5Dclose(id);
}

static void arrays_say_what_they_are_of(void **state) {
  (void)state;
  dvbf_data data = data_by_hand();
  dvbf_estimates e = estimates_by_hand();
  data.image_height = 1, data.image_width = 2;
  assert_int_equal(dvbf_estimates_write(&e, "predict", &data, &data.test, "p.h5", NULL), DVBF_OK);
  hid_t file = H5Fopen("p.h5", H5F_ACC_RDONLY, H5P_DEFAULT), word = H5Tcopy(H5T_C_S1);
  H5Tset_size(word, 32);
  H5Tset_strpad(word, H5T_STR_NULLPAD);
  H5Tset_cset(word, H5T_CSET_UTF8);
  float truth[8];
  int64_t number[2];
  double time[4];
  char names[2][32] = {""};
  read_dataset(file, "x_true", H5T_NATIVE_FLOAT, truth, (hsize_t[]){2, 2, 1, 2}, 4);
  assert_true(truth[0] == 2 && truth[1] == -2 && truth[2] == 3 && isnan(truth[3]) && truth[4] == 6);
  read_dataset(file, "sequence", H5T_NATIVE_INT64, number, (hsize_t[]){2}, 1);
  assert_true(number[0] == 7 && number[1] == 2);
  read_dataset(file, "step", H5T_NATIVE_INT64, number, (hsize_t[]){2}, 1);
  assert_true(number[0] == 12 && number[1] == 2);
  read_dataset(file, "time", H5T_NATIVE_DOUBLE, time, (hsize_t[]){2, 2}, 2);
  assert_true(time[0] == 86401 && time[1] == 86401.5 && time[2] == 1.5);
  read_dataset(file, "name", word, names, (hsize_t[]){2}, 1);
  assert_string_equal(names[1], "=2+2");
  read_dataset(file, "x_names", word, names, (hsize_t[]){2}, 1);
  assert_string_equal(names[0], "level");
  read_dataset(file, "split", word, names, NULL, 0);
  assert_string_equal(names[0], "test");
  H5Tclose(word);
  H5Fclose(file);
  assert_int_equal(dvbf_estimates_write(&e, "predict", &data, &data.test, "p.mat", NULL), DVBF_OK);
  assert_int_equal(dvbf_estimates_write(&e, "predict", &data, &data.test, "p.npz", NULL), DVBF_OK);
}

/* ---- What follows the end of a recording ---- */

static dvbf_settings *predicting(const char *observe, const char *steps, const char *from) {
  dvbf_settings *s = NULL;
  assert_int_equal(dvbf_settings_new(&s, "predict", NULL), DVBF_OK);
  dvbf_settings_set(s, "samples", "5", NULL);
  dvbf_settings_set(s, "threads", "1", NULL);
  if (observe) assert_int_equal(dvbf_settings_set(s, "observe", observe, NULL), DVBF_OK);
  if (steps) assert_int_equal(dvbf_settings_set(s, "steps", steps, NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(s, "from", from, NULL), DVBF_OK);
  return s;
}

/* From the end is the same as from the beginning of what is left when the steps before are cut off. */
static void forecasts_follow_the_last_output(void **state) {
  (void)state;
  fixture f;
  dvbf_error error = {0};
  dvbf_estimates *ahead = NULL, *plain = NULL;
  begin(&f, "");
  dvbf_sequences one = f.sequences;
  one.count = 1, one.length = NULL, one.steps = STEPS, one.gaps = true;
  for (int k = 0; k < 2 * N_X; k++) one.x[6 * N_X + k] = NAN; /* two steps are only planned */
  dvbf_settings *s = predicting("4", NULL, "end");
  if (dvbf_estimate(&ahead, f.model, &one, s, &error)) fail_msg("%s", error.message);
  assert_int_equal(ahead->steps, 2);
  assert_int_equal(dvbf_estimates_begin(ahead, 0), 6);
  dvbf_settings_free(s);
  dvbf_sequences cut = one;
  cut.x += 2 * N_X, cut.u += 2 * N_U, cut.steps = 6;
  s = predicting("4", "2", "start");
  if (dvbf_estimate(&plain, f.model, &cut, s, &error)) fail_msg("%s", error.message);
  assert_memory_equal(ahead->x, plain->x, 2 * N_X * sizeof(float));
  assert_memory_equal(ahead->u, plain->u, 2 * N_U * sizeof(float));
  double all, by_column[N_X], by_step[2];
  assert_int_equal(dvbf_estimates_rmse(&all, by_column, by_step, ahead, &one, &error), DVBF_OK);
  assert_true(isnan(all));
  dvbf_estimates_free(ahead);
  dvbf_estimates_free(plain);
  dvbf_settings_free(s);
  /* Further than is planned only with inputs that are made up. */
  s = predicting(NULL, "5", "end");
  assert_int_equal(dvbf_estimate(&ahead, f.model, &one, s, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "controls = zero, hold or random"));
  assert_int_equal(dvbf_settings_set(s, "controls", "hold", NULL), DVBF_OK);
  assert_int_equal(dvbf_estimate(&ahead, f.model, &one, s, &error), DVBF_OK);
  assert_memory_equal(ahead->u + 3 * N_U, one.u + 7 * N_U, N_U * sizeof(float));
  dvbf_estimates_free(ahead);
  dvbf_settings_free(s);
  s = predicting("7", NULL, "end");
  assert_int_equal(dvbf_estimate(&ahead, f.model, &one, s, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "has only 6 steps whose x is known"));
  dvbf_settings_free(s);
  s = predicting(NULL, NULL, "end");
  one.steps = 6;
  assert_int_equal(dvbf_estimate(&ahead, f.model, &one, s, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "the number of steps to forecast is unknown"));
  dvbf_settings_free(s);
  dvbf_sequences_free(&f.sequences);
  dvbf_model_free(f.model);
}

/* Inputs of arrays that go on beyond x. */
static void inputs_may_be_longer_than_x(void **state) {
  (void)state;
  static const float longer[6][1] = {{1}, {2}, {3}, {4}, {5}, {6}},
                     shorter[4][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  const dvbf_array arrays[] = {{"x", DVBF_FLOAT32, 2, {4, 2}, shorter},
                               {"u", DVBF_FLOAT32, 2, {6, 1}, longer}};
  dvbf_settings *how = NULL;
  dvbf_data *data = NULL;
  dvbf_error error = {0};
  assert_int_equal(dvbf_settings_new(&how, "data", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(how, "split-by", "none", NULL), DVBF_OK);
  assert_int_equal(dvbf_data_from(&data, arrays, 2, how, &error), DVBF_FORMAT);
  assert_int_equal(dvbf_settings_set(how, "missing", "nan", NULL), DVBF_OK);
  if (dvbf_data_from(&data, arrays, 2, how, &error)) fail_msg("%s", error.message);
  assert_int_equal(data->train.steps, 6);
  assert_true(data->train.x[7] == 8 && isnan(data->train.x[8]) && isnan(data->train.x[11]));
  assert_true(data->train.u[5] == 6 && data->train.gaps);
  dvbf_data_free(data);
  dvbf_settings_free(how);
}

static int set_up(void **state) {
  (void)state;
  return !mkdtemp(folder) || chdir(folder);
}

static int tear_down(void **state) {
  (void)state;
  char line[64];
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return chdir("/") || system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tables_have_a_row_for_each_step), cmocka_unit_test(nothing_is_made_up),
      cmocka_unit_test(arrays_say_what_they_are_of),     cmocka_unit_test(forecasts_follow_the_last_output),
      cmocka_unit_test(inputs_may_be_longer_than_x),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
