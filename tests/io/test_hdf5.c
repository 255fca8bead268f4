/* Data sets: HDF5 files good and bad, splits and statistics. */
#include "hdf5_files.h"

#include "data/dataset.h"

#include <dvbf/dvbf.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

static const double zeros[4096];

static void put_zeros(hid_t file, const char *name, int rank, const hsize_t *dims) {
  put(file, name, H5T_IEEE_F32LE, rank, dims, zeros);
}

/* x of 5 sequences of 4 steps and 3 columns in each group. */
static void put_three_x(hid_t file) {
  put_zeros(file, "train/x", SHAPE(5, 4, 3));
  put_zeros(file, "valid/x", SHAPE(5, 4, 3));
  put_zeros(file, "test/x", SHAPE(5, 4, 3));
}

static dvbf_data *read_good(uint64_t seed) {
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  dvbf_settings *how = NULL;
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
  assert_int_equal(dvbf_settings_new(&how, "data", &error), DVBF_OK);
  assert_int_equal(dvbf_settings_set(how, "split-seed", text, &error), DVBF_OK);
  if (dvbf_data_read(&data, in_folder("a.h5"), how, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(how);
  return data;
}

/* Reading `name` must fail with a message that names the file and holds both parts. */
static void expect_refusal_of(const char *name, dvbf_status status, const char *part, const char *other) {
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  assert_int_equal(dvbf_data_read(&data, in_folder(name), NULL, &error), status);
  assert_null(data);
  assert_int_equal(error.status, status);
  if (!strstr(error.message, name) || !strstr(error.message, part) || !strstr(error.message, other))
    fail_msg("\"%s\" lacks \"%s\", \"%s\" or \"%s\"", error.message, name, part, other);
}

static void expect_refusal(hid_t file, const char *part, const char *other) {
  H5Fclose(file);
  expect_refusal_of("a.h5", DVBF_FORMAT, part, other);
}

/* ---- Sequences for writing ---- */

static void fill(float *values, size_t count, float start) {
  for (size_t i = 0; i < count; i++) values[i] = sinf(start + (float)i);
}

static dvbf_sequences make_sequences(size_t count, bool with_length) {
  dvbf_sequences s = {.count = count, .steps = 5, .n_x = 6, .n_u = 2, .n_s = 3};
  assert_int_equal(dv_sequences_allocate(&s, with_length, NULL), DVBF_OK);
  fill(s.x, count * 30, 0.1F);
  fill(s.u, count * 10, 0.2F);
  fill(s.state, count * 15, 0.3F);
  for (size_t i = 0; with_length && i < count; i++) s.length[i] = (uint32_t)(1 + i % 5);
  dv_sequences_clear_padding(&s);
  return s;
}

static dvbf_data *make_data(void) {
  dvbf_data *data = calloc(1, sizeof *data);
  data->train = make_sequences(7, true);
  data->valid = make_sequences(3, false);
  data->test = make_sequences(4, false);
  data->image_height = 2;
  data->image_width = 3;
  data->state_names = calloc(3, sizeof *data->state_names);
  for (int i = 0; i < 3; i++) snprintf(data->state_names[i], 32, "quantity %d", i);
  return data;
}

static void write_good(const dvbf_data *data, const char *name) {
  dvbf_error error = {.message = ""};
  if (dvbf_data_write(data, in_folder(name), &error)) fail_msg("%s", error.message);
}

static void assert_same_sequences(const dvbf_sequences *a, const dvbf_sequences *b) {
  assert_int_equal(a->count, b->count);
  assert_int_equal(a->steps, b->steps);
  assert_int_equal(a->n_x, b->n_x);
  assert_int_equal(a->n_u, b->n_u);
  assert_int_equal(a->n_s, b->n_s);
  size_t n = a->count * a->steps * sizeof(float);
  assert_memory_equal(a->x, b->x, n * a->n_x);
  if (a->n_u) assert_memory_equal(a->u, b->u, n * a->n_u);
  if (a->n_s) assert_memory_equal(a->state, b->state, n * a->n_s);
  assert_int_equal(!a->length, !b->length);
  if (a->length) assert_memory_equal(a->length, b->length, a->count * sizeof *a->length);
}

/* ---- Good files ---- */

static void test_round_trip_is_exact(void **unused) {
  (void)unused;
  dvbf_data *data = make_data();
  write_good(data, "a.h5");
  dvbf_data *back = read_good(1);
  assert_same_sequences(&data->train, &back->train);
  assert_same_sequences(&data->valid, &back->valid);
  assert_same_sequences(&data->test, &back->test);
  assert_int_equal(back->image_height, 2);
  assert_int_equal(back->image_width, 3);
  for (int i = 0; i < 3; i++) assert_string_equal(back->state_names[i], data->state_names[i]);
  dvbf_data_free(data);
  dvbf_data_free(back);
}

static void test_round_trip_of_x_alone(void **unused) {
  (void)unused;
  dvbf_data *data = make_data();
  dvbf_sequences *splits[] = {&data->train, &data->valid, &data->test};
  for (int i = 0; i < 3; i++) splits[i]->n_u = splits[i]->n_s = 0;
  data->image_height = data->image_width = 0;
  write_good(data, "a.h5");
  dvbf_data *back = read_good(1);
  assert_same_sequences(&data->train, &back->train);
  assert_null(back->train.u);
  assert_null(back->train.state);
  assert_null(back->state_names);
  assert_int_equal(back->image_height, 0);
  dvbf_data_free(data);
  dvbf_data_free(back);
}

/* The clock must not be in the file. */
static void test_same_data_same_bytes(void **unused) {
  (void)unused;
  dvbf_data *data = make_data();
  write_good(data, "a.h5");
  usleep(1100000);
  write_good(data, "b.h5");
  assert_true(same_bytes(in_folder("a.h5"), in_folder("b.h5")));
  dvbf_data_free(data);
}

static void test_types_are_converted(void **unused) {
  (void)unused;
  const double x[] = {0, 51, 102, 153, 204, 255}, u[] = {-3, 2, 1000, -7, 5, 6},
               state[] = {0.5, -1e10, 3, 4, 5, 6};
  hid_t file = new_file();
  for (int i = 0; i < 3; i++) {
    static const char *const names[][3] = {{"train/x", "train/u", "train/state"},
                                           {"valid/x", "valid/u", "valid/state"},
                                           {"test/x", "test/u", "test/state"}};
    put(file, names[i][0], H5T_STD_U8LE, SHAPE(1, 3, 1, 2), x);
    put(file, names[i][1], H5T_STD_I16BE, SHAPE(1, 3), u);
    put(file, names[i][2], H5T_IEEE_F64BE, SHAPE(1, 3, 2), state);
  }
  H5Fclose(file);
  dvbf_data *data = read_good(1);
  assert_int_equal(data->train.n_x, 2);
  assert_int_equal(data->train.n_u, 1);
  assert_int_equal(data->image_height, 1);
  assert_int_equal(data->image_width, 2);
  for (int i = 0; i < 6; i++) {
    assert_true(fabs(data->train.x[i] - x[i] / 255) < 1e-7);
    assert_true(data->test.state[i] == (float)state[i]);
  }
  for (int i = 0; i < 3; i++) assert_true(data->valid.u[i] == (float)u[i]);
  assert_string_equal(data->state_names[0], "state0");
  assert_string_equal(data->state_names[1], "state1");
  dvbf_data_free(data);
}

/* Gives train/state the names a, b, c in text of variable or fixed length. */
static void put_names(hid_t file, bool variable, hsize_t count) {
  const char *const pointers[] = {"angle", "a name that is far too long to fit into its place", "\x01odd"};
  const char fixed[3][8] = {"angle", "b", "c"};
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &count, NULL);
  H5Tset_size(type, variable ? H5T_VARIABLE : 8);
  H5Tset_cset(type, H5T_CSET_UTF8);
  hid_t attribute =
      H5Acreate_by_name(file, "train/state", "names", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(attribute, type, variable ? (const void *)pointers : fixed) >= 0);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
}

static void test_names_of_both_kinds(void **unused) {
  (void)unused;
  for (int variable = 0; variable < 2; variable++) {
    hid_t file = new_file();
    put_three_x(file);
    put_zeros(file, "train/state", SHAPE(5, 4, 3));
    put_names(file, variable, 3);
    H5Fclose(file);
    dvbf_data *data = read_good(1);
    assert_string_equal(data->state_names[0], "angle");
    assert_string_equal(data->state_names[1], variable ? "a name that is far too long to " : "b");
    assert_string_equal(data->state_names[2], variable ? "?odd" : "c");
    assert_int_equal(data->test.n_s, 0);
    dvbf_data_free(data);
  }
}

static void test_padding_is_ignored_and_cleared(void **unused) {
  (void)unused;
  double x[60], length[] = {4, 2, 1, 4, 3};
  for (int i = 0; i < 60; i++) x[i] = i / 3 % 4 < length[i / 12] ? 1 : NAN;
  hid_t file = new_file();
  put_zeros(file, "valid/x", SHAPE(5, 4, 3));
  put_zeros(file, "test/x", SHAPE(5, 4, 3));
  put(file, "train/x", H5T_IEEE_F64LE, SHAPE(5, 4, 3), x);
  put(file, "train/length", H5T_STD_I64LE, SHAPE(5), length);
  put(file, "test/length", H5T_STD_I64LE, SHAPE(5), (double[]){4, 4, 4, 4, 4});
  H5Fclose(file);
  dvbf_data *data = read_good(1);
  for (int i = 0; i < 60; i++) assert_true(data->train.x[i] == (isnan(x[i]) ? 0 : 1));
  for (int i = 0; i < 5; i++) assert_int_equal(data->train.length[i], length[i]);
  assert_null(data->test.length);
  dvbf_data_free(data);
}

/* ---- Splits and statistics ---- */

/* A file with `count` sequences at the root, each filled with its number. */
static void write_root(size_t count) {
  double *x = calloc(count * 2, sizeof *x);
  for (size_t i = 0; i < count * 2; i++) x[i] = (double)(i / 2);
  hid_t file = new_file();
  put(file, "x", H5T_STD_I32LE, SHAPE(count, 2, 1), x);
  put(file, "u", H5T_STD_I32LE, SHAPE(count, 2, 1), x);
  H5Fclose(file);
  free(x);
}

static void test_root_is_split(void **unused) {
  (void)unused;
  static const size_t cases[][3] = {{100, 80, 10}, {57, 47, 5}, {10, 8, 1}, {3, 1, 1}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    write_root(cases[c][0]);
    dvbf_data *data = read_good(5);
    assert_int_equal(data->train.count, cases[c][1]);
    assert_int_equal(data->valid.count, cases[c][2]);
    assert_int_equal(data->test.count, cases[c][2]);
    int seen[100] = {0};
    const dvbf_sequences *splits[] = {&data->train, &data->valid, &data->test};
    for (int k = 0; k < 3; k++)
      for (size_t i = 0; i < splits[k]->count; i++) {
        size_t at = dvbf_sequence_start(splits[k], i);
        seen[(int)splits[k]->x[at]]++;
        assert_true(splits[k]->x[at] == splits[k]->u[at + 1]);
      }
    for (size_t i = 0; i < cases[c][0]; i++) assert_int_equal(seen[i], 1);
    dvbf_data_free(data);
  }
}

static void test_split_follows_the_seed(void **unused) {
  (void)unused;
  write_root(100);
  dvbf_data *a = read_good(5), *again = read_good(5), *other = read_good(6);
  assert_same_sequences(&a->train, &again->train);
  assert_same_sequences(&a->test, &again->test);
  assert_memory_not_equal(a->test.start, other->test.start, 10 * sizeof *a->test.start);
  dvbf_data_free(a);
  dvbf_data_free(again);
  dvbf_data_free(other);
}

static void test_statistics_honour_length(void **unused) {
  (void)unused;
  /* Valid steps of x: (1, 1e6) (3, 1e6 + 2) and (8, 1e6 + 4); the rest must not count. */
  float x[] = {1, 1000000, 3, 1000002, 8, 1000004, 99, 99}, u[] = {2, 4, 9, 99};
  uint32_t length[] = {2, 1};
  dvbf_sequences s = {.count = 2, .steps = 2, .n_x = 2, .n_u = 1, .x = x, .u = u, .length = length};
  dv_statistics a;
  assert_int_equal(dv_statistics_of_x(&a, &s, NULL), DVBF_OK);
  assert_true(fabs(a.mean[0] - 4) < 1e-12 && fabs(a.variance[0] - 26.0 / 3) < 1e-12);
  assert_true(fabs(a.mean[1] - 1000002) < 1e-6 && fabs(a.variance[1] - 8.0 / 3) < 1e-9);
  assert_true(a.frames == 3 && a.seen[1] == 3 && a.low == 1 && a.high == 1000004 && !a.binary && a.whole);
  dv_statistics_free(&a);
  assert_int_equal(dv_statistics_of_u(&a, &s, NULL), DVBF_OK);
  assert_true(fabs(a.mean[0] - 5) < 1e-12 && fabs(a.variance[0] - 26.0 / 3) < 1e-12);
  dv_statistics_free(&a);
}

/* ---- Bad files ---- */

static void test_not_a_readable_file(void **unused) {
  (void)unused;
  clear_folder();
  expect_refusal_of("none.h5", DVBF_IO, "No such file", "");
  expect_refusal_of("", DVBF_IO, "a folder without data", ".hdf5");
  write_bytes(in_folder("other.h5"), "\x81\x04\x95\x00", 4);
  expect_refusal_of("other.h5", DVBF_FORMAT, "in an unknown format", "NPZ, MATLAB, HDF5 or CSV");
  write_bytes(in_folder("empty.h5"), "", 0);
  expect_refusal_of("empty.h5", DVBF_FORMAT, "is empty", "");
}

static void test_missing_parts(void **unused) {
  (void)unused;
  hid_t file = new_file();
  expect_refusal(file, "x is missing", "train, valid and test");
  file = new_file();
  put_three_x(file);
  H5Ldelete(file, "train/x", H5P_DEFAULT);
  expect_refusal(file, "x of train is missing", "test/x [5, 4, 3]");
  file = new_file();
  H5Lcreate_soft("/nowhere", file, "x", H5P_DEFAULT, H5P_DEFAULT);
  expect_refusal(file, "x is missing", "");
  file = new_file();
  H5Gclose(H5Gcreate2(file, "x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  expect_refusal(file, "x is missing", "no array");
  file = new_file();
  put_zeros(file, "a", SHAPE(5, 4, 3));
  put_zeros(file, "b", SHAPE(5, 4, 3));
  expect_refusal(file, "x is missing", "a [5, 4, 3], b [5, 4, 3]");
}

static void test_wrong_shapes(void **unused) {
  (void)unused;
  static const struct {
    const char *name;
    int rank;
    hsize_t dims[6];
    const char *part, *other;
  } cases[] = {
      {"x", 2, {5, 4}, "x has a sequence of 5 steps", "valid-share"},
      {"x", 6, {2, 2, 2, 2, 2, 2}, "x has the shape [2, 2, 2, 2, 2, 2]", "reshape"},
      {"x", 3, {5, 0, 3}, "[5, 0, 3]", "1 or more"},
      {"x", 3, {2, 4, 3}, "x has a sequence of 4 steps", "valid-share"},
      {"x", 3, {1ULL << 31, 1ULL << 31, 1ULL << 20}, "2147483648, 2147483648", "2^40"},
      {"x", 3, {1ULL << 20, 1ULL << 20, 2}, "1048576", "2^40"},
      {"x", 3, {1ULL << 10, 1ULL << 10, 2}, "never written", "write its values"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hid_t file = new_file();
    bool large = cases[i].dims[0] > 5;
    put(file, cases[i].name, H5T_IEEE_F32LE, cases[i].rank, cases[i].dims, large ? NULL : zeros);
    expect_refusal(file, cases[i].part, cases[i].other);
  }
}

static void test_scalar_is_refused(void **unused) {
  (void)unused;
  hid_t file = new_file(), space = H5Screate(H5S_SCALAR);
  hid_t id = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Dwrite(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros);
  H5Dclose(id);
  H5Sclose(space);
  expect_refusal(file, "x has the shape []", "[sequences, steps, columns]");
}

static void test_companions_must_fit_x(void **unused) {
  (void)unused;
  static const struct {
    const char *name;
    int rank;
    hsize_t dims[4];
    const char *part, *other;
  } cases[] = {
      {"train/u", 3, {4, 4, 2}, "train/u has the shape [4, 4, 2]", "[5, 4, columns]"},
      {"valid/u", 3, {5, 2, 2}, "valid/u has the shape [5, 2, 2]", "[5, 4, columns]"},
      {"test/state", 1, {4}, "test/state has the shape [4]", "to match test/x"},
      {"train/state", 4, {5, 4, 1, 1}, "train/state has the shape", "[5, 4, columns]"},
      {"valid/u", 3, {5, 4, 2}, "valid/u has 2 columns", "has 0"},
      {"train/length", 1, {5}, "train/length is 0", "1 or more"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hid_t file = new_file();
    put_three_x(file);
    put_zeros(file, cases[i].name, cases[i].rank, cases[i].dims);
    expect_refusal(file, cases[i].part, cases[i].other);
  }
}

static void test_splits_must_fit_each_other(void **unused) {
  (void)unused;
  hid_t file = new_file();
  put_three_x(file);
  H5Ldelete(file, "test/x", H5P_DEFAULT);
  put_zeros(file, "test/x", SHAPE(5, 4, 2));
  expect_refusal(file, "test/x has 2 columns", "3");
  file = new_file();
  put_zeros(file, "train/x", SHAPE(5, 4, 2, 3));
  put_zeros(file, "valid/x", SHAPE(5, 4, 3, 2));
  expect_refusal(file, "valid/x and train/x differ", "");
  file = new_file();
  put_three_x(file);
  put_zeros(file, "train/state", SHAPE(5, 4, 3));
  put_zeros(file, "test/state", SHAPE(5, 4, 2));
  expect_refusal(file, "test/state has 2 columns", "3");
}

static void test_length_must_be_in_range(void **unused) {
  (void)unused;
  hid_t few = new_file();
  put_three_x(few);
  put(few, "train/length", H5T_STD_I64LE, SHAPE(4), (double[]){4, 4, 4, 4});
  expect_refusal(few, "train/length must be 5 integers", "sum to 16");
  static const double bad[] = {0, 5, -1, 4294967297.0};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    hid_t file = new_file();
    put_three_x(file);
    put(file, "valid/length", H5T_STD_I64LE, SHAPE(5), (double[]){4, 4, bad[i], 4, 4});
    expect_refusal(file, "valid/length", "sequence 2");
  }
}

static void test_values_must_be_finite(void **unused) {
  (void)unused;
  static const char *const names[] = {"train/x", "valid/u", "test/state"};
  static const double bad[] = {NAN, INFINITY, 1e300};
  for (size_t n = 0; n < 3; n++)
    for (size_t b = 0; b < 3; b++) {
      double values[60] = {0};
      values[2 * 12 + 1 * 3 + 2] = bad[b];
      hid_t file = new_file();
      put_three_x(file);
      if (n == 0) H5Ldelete(file, names[0], H5P_DEFAULT);
      if (n == 1) put_zeros(file, "train/u", SHAPE(5, 4, 3));
      if (n == 1) put_zeros(file, "test/u", SHAPE(5, 4, 3));
      put(file, names[n], H5T_IEEE_F64LE, SHAPE(5, 4, 3), values);
      expect_refusal(file, names[n], "sequence 2, step 1, column 2");
    }
}

static void test_numbers_are_needed(void **unused) {
  (void)unused;
  hid_t compound = H5Tcreate(H5T_COMPOUND, 8), text = H5Tcopy(H5T_C_S1), narrow = H5Tcopy(H5T_STD_U16LE);
  H5Tinsert(compound, "a", 0, H5T_IEEE_F64LE);
  H5Tset_size(text, H5T_VARIABLE);
  H5Tset_precision(narrow, 11);
  hid_t list = H5Tvlen_create(H5T_IEEE_F32LE);
  const struct {
    hid_t type;
    const char *part;
  } cases[] = {{compound, "compounds"},
               {text, "text"},
               {list, "variable length"},
               {H5T_STD_REF_OBJ, "references"},
               {narrow, "unusual width"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hid_t file = new_file();
    put(file, "x", cases[i].type, SHAPE(5, 4, 3), NULL);
    expect_refusal(file, "x holds", cases[i].part);
  }
  H5Tclose(compound);
  H5Tclose(text);
  H5Tclose(narrow);
  H5Tclose(list);
}

static void test_names_must_match_columns(void **unused) {
  (void)unused;
  hid_t file = new_file();
  put_three_x(file);
  put_zeros(file, "train/state", SHAPE(5, 4, 3));
  put_names(file, true, 2);
  expect_refusal(file, "names of train/state", "3 strings");
  file = new_file();
  put_three_x(file);
  put_zeros(file, "train/state", SHAPE(5, 4, 3));
  hsize_t count = 3;
  hid_t space = H5Screate_simple(1, &count, NULL);
  H5Aclose(H5Acreate_by_name(file, "train/state", "names", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT,
                             H5P_DEFAULT));
  H5Sclose(space);
  expect_refusal(file, "names of train/state", "3 strings");
}

/* Every cut of a file is refused. */
static void test_truncated_files(void **unused) {
  (void)unused;
  dvbf_data *data = make_data();
  write_good(data, "whole.h5");
  dvbf_data_free(data);
  size_t size;
  unsigned char *bytes = read_bytes(in_folder("whole.h5"), &size);
  for (size_t cut = 0; cut < size; cut += 1 + size / 300) {
    write_bytes(in_folder("a.h5"), bytes, cut);
    expect_refusal_of("a.h5", DVBF_FORMAT, "a.h5",
                      cut == 0  ? "empty"
                      : cut < 8 ? "in an unknown format"
                                : "truncated");
  }
  free(bytes);
}

/* A damaged file is either refused with a sentence or, where only numbers changed, read as valid data. */
static void test_flipped_bytes(void **unused) {
  (void)unused;
  dvbf_data *data = make_data();
  write_good(data, "whole.h5");
  dvbf_data_free(data);
  size_t size;
  unsigned char *bytes = read_bytes(in_folder("whole.h5"), &size);
  uint64_t random = 1;
  int refusals = 0;
  for (int trial = 0; trial < 400; trial++) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    unsigned char *at = bytes + (random >> 33) % size, kept = *at;
    *at ^= (unsigned char)(1 + (random >> 20) % 255);
    write_bytes(in_folder("a.h5"), bytes, size);
    *at = kept;
    dvbf_data *back = NULL;
    dvbf_error error = {.message = ""};
    if (dvbf_data_read(&back, in_folder("a.h5"), NULL, &error)) {
      assert_null(back);
      assert_non_null(strstr(error.message, "a.h5"));
      refusals++;
    } else {
      assert_int_equal(dv_data_validate(back, "a.h5", NULL), DVBF_OK);
    }
    dvbf_data_free(back);
  }
  assert_true(refusals > 50);
  free(bytes);
}

static herr_t count_failures(hid_t stack, void *counter) {
  (void)stack;
  ++*(int *)counter;
  return 0;
}

/* The caller's way of printing HDF5's failures is not used by us and is there again afterwards. */
static void test_hdf5_stays_silent(void **unused) {
  (void)unused;
  int printed = 0;
  H5E_auto2_t before, after;
  void *data_before, *data_after;
  H5Eget_auto2(H5E_DEFAULT, &before, &data_before);
  H5Eset_auto2(H5E_DEFAULT, count_failures, &printed);
  write_bytes(in_folder("other.h5"), "\1", 1);
  expect_refusal_of("other.h5", DVBF_FORMAT, "HDF5", "");
  H5Eget_auto2(H5E_DEFAULT, &after, &data_after);
  H5Eset_auto2(H5E_DEFAULT, before, data_before);
  assert_int_equal(printed, 0);
  assert_ptr_equal(after, count_failures);
  assert_ptr_equal(data_after, &printed);
}

/* ---- Writing that fails ---- */

static void expect_write_refusal(const dvbf_data *data, const char *name, dvbf_status status,
                                 const char *part) {
  dvbf_error error = {.message = ""};
  assert_int_equal(dvbf_data_write(data, in_folder(name), &error), status);
  if (!strstr(error.message, part)) fail_msg("\"%s\" lacks \"%s\"", error.message, part);
}

/* A limit on the size of files fails like a full disk, at every stage of writing. */
static void test_failed_write_keeps_the_old_file(void **unused) {
  (void)unused;
  clear_folder();
  dvbf_data *data = make_data();
  write_good(data, "a.h5");
  write_good(data, "b.h5");
  data->train.x[0] = 0.5F;
  struct rlimit limit, saved;
  getrlimit(RLIMIT_FSIZE, &saved);
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  for (rlim_t size = 0; size < 4096; size += 512) {
    limit = (struct rlimit){size, saved.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    expect_write_refusal(data, "a.h5", DVBF_IO, "File too large; any earlier file is unchanged");
  }
  setrlimit(RLIMIT_FSIZE, &saved);
  signal(SIGXFSZ, handler);
  assert_true(same_bytes(in_folder("a.h5"), in_folder("b.h5")));
  write_good(data, "a.h5");
  assert_false(same_bytes(in_folder("a.h5"), in_folder("b.h5")));
  assert_int_equal(clear_folder(), 2);
  dvbf_data_free(data);
}

static void test_bad_data_is_not_written(void **unused) {
  (void)unused;
  clear_folder();
  dvbf_data *data = make_data();
  expect_write_refusal(data, "no/folder/a.h5", DVBF_IO, "No such file");
  data->valid.u[13] = NAN;
  expect_write_refusal(data, "a.h5", DVBF_FORMAT, "valid/u is nan at sequence 1, step 1, column 1");
  data->valid.u[13] = 0;
  data->image_width = 4;
  expect_write_refusal(data, "a.h5", DVBF_FORMAT, "2 x 4");
  data->image_width = 3;
  data->train.length[2] = 6;
  expect_write_refusal(data, "a.h5", DVBF_FORMAT, "train/length is 6 for sequence 2");
  data->train.length[2] = 5;
  data->test.count = 0;
  expect_write_refusal(data, "a.h5", DVBF_ARGUMENT, "test has no sequences");
  assert_int_equal(clear_folder(), 0);
  dvbf_data_free(data);
}

static void test_sizes_that_overflow(void **unused) {
  (void)unused;
  dvbf_sequences s = {.count = SIZE_MAX / 2, .steps = 3, .n_x = 5};
  assert_int_equal(dv_sequences_allocate(&s, false, NULL), DVBF_MEMORY);
  assert_null(s.x);
  s = (dvbf_sequences){.count = SIZE_MAX / 8 + 1, .steps = 2, .n_x = 4};
  assert_int_equal(dv_sequences_allocate(&s, false, NULL), DVBF_MEMORY);
  assert_null(s.x);
  dvbf_data_free(NULL);
}

/* Comes last: whatever the tests before did, every file and object is closed. */
static void test_nothing_stays_open(void **unused) {
  (void)unused;
  assert_int_equal(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

/* Sequences made in C may lack an array that their widths promise: whoever takes them says so. */
static void test_missing_arrays_are_refused(void **unused) {
  (void)unused;
  static const char *const names[] = {"x has columns", "u has columns", "state has columns"};
  dvbf_settings *settings = NULL;
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  for (int i = 0; i < 3; i++) {
    dvbf_data data = {.train = make_sequences(4, false)};
    dvbf_sequences copy = {0}, lacking = data.train;
    dvbf_sequences_info *info = NULL;
    dvbf_estimates estimates = {.count = 4, .steps = 5, .n_x = 6};
    dvbf_error errors[5] = {0};
    double all, by_column[6], by_step[5];
    *(i == 0 ? &lacking.x : i == 1 ? &lacking.u : &lacking.state) = NULL;
    dvbf_data without = {.train = lacking};
    dvbf_settings_choose(settings, &without, NULL, NULL, &errors[0]);
    dvbf_sequences_copy(&copy, &lacking, 0, 4, &errors[1]);
    dvbf_sequences_describe(&info, &lacking, &errors[2]);
    dvbf_estimates_rmse(&all, by_column, by_step, &estimates, &lacking, &errors[3]);
    dvbf_train(NULL, settings, &without, NULL, &errors[4]);
    for (int k = 0; k < 5; k++) {
      assert_int_equal(errors[k].status, DVBF_FORMAT);
      assert_non_null(strstr(errors[k].message, names[i]));
    }
    dvbf_sequences_free(&data.train);
  }
  dvbf_data none = {0};
  dvbf_error error;
  assert_int_equal(dvbf_settings_choose(settings, &none, NULL, NULL, &error), DVBF_FORMAT);
  dvbf_settings_free(settings);
  none.test = make_sequences(4, false);
  assert_int_equal(dvbf_settings_new(&settings, "evaluate", NULL), DVBF_OK);
  assert_int_equal(dvbf_evaluate(NULL, NULL, &none, &none.test, settings, &error), DVBF_FORMAT);
  assert_non_null(strstr(error.message, "state_names"));
  dvbf_sequences_free(&none.test);
  dvbf_settings_free(settings);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip_is_exact),
      cmocka_unit_test(test_round_trip_of_x_alone),
      cmocka_unit_test(test_same_data_same_bytes),
      cmocka_unit_test(test_types_are_converted),
      cmocka_unit_test(test_names_of_both_kinds),
      cmocka_unit_test(test_padding_is_ignored_and_cleared),
      cmocka_unit_test(test_root_is_split),
      cmocka_unit_test(test_split_follows_the_seed),
      cmocka_unit_test(test_statistics_honour_length),
      cmocka_unit_test(test_not_a_readable_file),
      cmocka_unit_test(test_missing_parts),
      cmocka_unit_test(test_wrong_shapes),
      cmocka_unit_test(test_scalar_is_refused),
      cmocka_unit_test(test_companions_must_fit_x),
      cmocka_unit_test(test_splits_must_fit_each_other),
      cmocka_unit_test(test_length_must_be_in_range),
      cmocka_unit_test(test_values_must_be_finite),
      cmocka_unit_test(test_numbers_are_needed),
      cmocka_unit_test(test_names_must_match_columns),
      cmocka_unit_test(test_truncated_files),
      cmocka_unit_test(test_flipped_bytes),
      cmocka_unit_test(test_hdf5_stays_silent),
      cmocka_unit_test(test_failed_write_keeps_the_old_file),
      cmocka_unit_test(test_bad_data_is_not_written),
      cmocka_unit_test(test_sizes_that_overflow),
      cmocka_unit_test(test_nothing_stays_open),
      cmocka_unit_test(test_missing_arrays_are_refused),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
