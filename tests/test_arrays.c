/* Named arrays in files, read back by the libraries of the formats. */
#include "base/memory.h"

#include <dvbf/dvbf.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <hdf5.h>
#include <zip.h>

static char folder[] = "/tmp/dvbf-arrays-XXXXXX";

static const float numbers[2][3] = {{1, 2, 3}, {-4, 5.5F, 6}};
static const double single = 0.1;
static const uint32_t lengths[] = {7, 4000000000U};
static const int64_t large[] = {-9000000000000000000LL};
static const dvbf_array arrays[] = {
    {"x", DVBF_FLOAT32, 2, {2, 3}, numbers},  {"scalar", DVBF_FLOAT64, 0, {0}, &single},
    {"length", DVBF_UINT32, 1, {2}, lengths}, {"large", DVBF_INT64, 1, {1}, large},
    {"empty", DVBF_FLOAT32, 2, {3, 0}, NULL},
};
enum { COUNT = sizeof arrays / sizeof *arrays };

static size_t read_file(const char *path, unsigned char *into, size_t size) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s is not there", path);
  size_t length = fread(into, 1, size, file);
  fclose(file);
  return length;
}

/* ---- Formats ---- */

static void check_dataset(hid_t file, const char *name, hid_t type, const hsize_t *dims, int rank,
                          const void *values, size_t size) {
  unsigned char found[64];
  hsize_t shape[8] = {0};
  hid_t id = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(id);
  assert_int_equal(H5Sget_simple_extent_ndims(space), rank);
  H5Sget_simple_extent_dims(space, shape, NULL);
  for (int i = 0; i < rank; i++) assert_int_equal(shape[i], dims[i]);
  assert_true(H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
  assert_memory_equal(found, values, size);
  H5Sclose(space);
  H5Dclose(id);
}

static void hdf5_holds_the_arrays(void **state) {
  (void)state;
  assert_int_equal(dvbf_arrays_write("a.h5", arrays, COUNT, NULL), DVBF_OK);
  hid_t file = H5Fopen("a.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
  assert_true(file >= 0);
  check_dataset(file, "x", H5T_NATIVE_FLOAT, (hsize_t[]){2, 3}, 2, numbers, sizeof numbers);
  check_dataset(file, "scalar", H5T_NATIVE_DOUBLE, NULL, 0, &single, sizeof single);
  check_dataset(file, "length", H5T_NATIVE_UINT32, (hsize_t[]){2}, 1, lengths, sizeof lengths);
  check_dataset(file, "large", H5T_NATIVE_INT64, (hsize_t[]){1}, 1, large, sizeof large);
  H5Fclose(file);
}

static void check_entry(zip_t *archive, const char *name, const char *header, const void *values,
                        size_t size) {
  unsigned char found[512];
  zip_file_t *file = zip_fopen(archive, name, 0);
  if (!file) fail_msg("%s is missing", name);
  zip_int64_t length = zip_fread(file, found, sizeof found);
  zip_fclose(file);
  size_t told = found[8] + 256U * found[9];
  assert_memory_equal(found, "\x93NUMPY\x01\x00", 8);
  assert_int_equal((told + 10) % 64, 0);
  assert_int_equal(length, 10 + told + size);
  assert_memory_equal(found + 10, header, strlen(header));
  assert_int_equal(found[10 + told - 1], '\n');
  for (size_t i = 10 + strlen(header); i < 10 + told - 1; i++) assert_int_equal(found[i], ' ');
  if (size) assert_memory_equal(found + 10 + told, values, size);
}

static void npz_holds_the_arrays(void **state) {
  (void)state;
  assert_int_equal(dvbf_arrays_write("a.npz", arrays, COUNT, NULL), DVBF_OK);
  int code;
  zip_t *archive = zip_open("a.npz", ZIP_RDONLY | ZIP_CHECKCONS, &code);
  assert_non_null(archive);
  assert_int_equal(zip_get_num_entries(archive, 0), COUNT);
#define HEADER(type, shape) "{'descr': '<" type "', 'fortran_order': False, 'shape': (" shape "), }"
  check_entry(archive, "x.npy", HEADER("f4", "2, 3,"), numbers, sizeof numbers);
  check_entry(archive, "scalar.npy", HEADER("f8", ""), &single, sizeof single);
  check_entry(archive, "length.npy", HEADER("u4", "2,"), lengths, sizeof lengths);
  check_entry(archive, "large.npy", HEADER("i8", "1,"), large, sizeof large);
  check_entry(archive, "empty.npy", HEADER("f4", "3, 0,"), NULL, 0);
  zip_close(archive);
}

/* Whatever the clock and its zone say. */
static void same_arrays_same_bytes(void **state) {
  (void)state;
  static const char *const names[][2] = {{"one.h5", "two.h5"}, {"one.npz", "two.npz"}};
  static unsigned char one[1 << 16], two[1 << 16];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(setenv("TZ", "Pacific/Auckland", 1), 0);
    assert_int_equal(dvbf_arrays_write(names[i][0], arrays, COUNT, NULL), DVBF_OK);
    assert_int_equal(setenv("TZ", "America/New_York", 1), 0);
    sleep(2); /* a zip archive's clock has a grain of 2 s */
    assert_int_equal(dvbf_arrays_write(names[i][1], arrays, COUNT, NULL), DVBF_OK);
    size_t n = read_file(names[i][0], one, sizeof one);
    assert_int_equal(n, read_file(names[i][1], two, sizeof two));
    assert_memory_equal(one, two, n);
  }
}

/* ---- Refusals ---- */

static void expect_refusal(const char *path, const dvbf_array *array, size_t count, const char *part) {
  dvbf_error error = {0};
  assert_int_equal(dvbf_arrays_write(path, array, count, &error), DVBF_ARGUMENT);
  if (!strstr(error.message, part)) fail_msg("\"%s\" is missing in: %s", part, error.message);
  assert_int_equal(access(path, F_OK), -1);
}

static void wrong_arrays_are_refused(void **state) {
  (void)state;
  dvbf_array odd = arrays[0], twins[] = {arrays[0], arrays[0]};
  expect_refusal("x.txt", arrays, COUNT, "x.txt: its ending names no format; .h5");
  expect_refusal(".npz", arrays, COUNT, "names no format");
  expect_refusal("x.npz", arrays, 0, "no arrays");
  expect_refusal("x.npz", twins, 2, "two arrays named x");
  odd.name = "../x";
  expect_refusal("x.h5", &odd, 1, "no slash");
  odd = arrays[0], odd.name = "";
  expect_refusal("x.h5", &odd, 1, "1 to 64 characters");
  odd = arrays[0], odd.rank = 9;
  expect_refusal("x.npz", &odd, 1, "a rank in [0, 8]");
  odd = arrays[0], odd.values = NULL;
  expect_refusal("x.npz", &odd, 1, "values");
  odd = arrays[0], odd.dims[0] = odd.dims[1] = (size_t)1 << 40;
  expect_refusal("x.npz", &odd, 1, "cannot be written");
}

/* What was there before stays, and nothing is left beside it. */
static void failed_writes_leave_the_old_file(void **state) {
  (void)state;
  static const char *const names[] = {"no/x.h5", "no/x.npz", "/dev/full/x.npz"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    dvbf_error error = {0};
    assert_int_equal(dvbf_arrays_write(names[i], arrays, COUNT, &error), DVBF_IO);
    assert_non_null(strstr(error.message, names[i]));
  }
  assert_int_equal(mkdir("target.npz", 0777), 0);
  assert_int_equal(dvbf_arrays_write("target.npz", arrays, COUNT, NULL), DVBF_IO);
  assert_int_equal(system("test -z \"$(ls | grep tmp)\""), 0);
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
      cmocka_unit_test(hdf5_holds_the_arrays),
      cmocka_unit_test(npz_holds_the_arrays),
      cmocka_unit_test(same_arrays_same_bytes),
      cmocka_unit_test(wrong_arrays_are_refused),
      cmocka_unit_test(failed_writes_leave_the_old_file),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
