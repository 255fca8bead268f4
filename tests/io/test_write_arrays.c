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
static const char texts[2][8] = {"a,b", "\xc2\xb0"
                                        "C \xf0\x9f\x99\x82"};
static const dvbf_array arrays[] = {
    {"x", DVBF_FLOAT32, 2, {2, 3}, numbers},  {"scalar", DVBF_FLOAT64, 0, {0}, &single},
    {"length", DVBF_UINT32, 1, {2}, lengths}, {"large", DVBF_INT64, 1, {1}, large},
    {"empty", DVBF_FLOAT32, 2, {3, 0}, NULL}, {"names", DVBF_TEXT, 2, {2, 8}, texts},
    {"word", DVBF_TEXT, 1, {8}, texts},
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
  hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 8);
  H5Tset_strpad(text, H5T_STR_NULLPAD);
  H5Tset_cset(text, H5T_CSET_UTF8);
  check_dataset(file, "names", text, (hsize_t[]){2}, 1, texts, sizeof texts);
  check_dataset(file, "word", text, NULL, 0, texts, sizeof texts[0]);
  H5Tclose(text);
  H5Fclose(file);
}

/* An element of a MATLAB file: type, bytes and content, then zeros up to a multiple of 8. */
typedef struct element {
  uint32_t type, bytes;
  const unsigned char *content;
} element;

static element take(const unsigned char **at) {
  element e;
  memcpy(&e.type, *at, 4);
  memcpy(&e.bytes, *at + 4, 4);
  e.content = *at + 8;
  *at += 8 + (e.bytes + 7) / 8 * 8;
  return e;
}

/* Checks the beginning of a variable and returns its values, or the first cell. */
static const unsigned char *check_variable(element e, uint32_t class, const char *name, const int32_t *dims,
                                           size_t rank) {
  const unsigned char *at = e.content;
  element flags = take(&at), shape = take(&at), called = take(&at);
  uint32_t found;
  assert_int_equal(e.type, 14);
  assert_int_equal(flags.type, 6);
  memcpy(&found, flags.content, 4);
  assert_int_equal(found, class);
  assert_int_equal(shape.type, 5);
  assert_int_equal(shape.bytes, 4 * rank);
  assert_memory_equal(shape.content, dims, shape.bytes);
  assert_int_equal(called.type, 1);
  assert_int_equal(called.bytes, strlen(name));
  assert_memory_equal(called.content, name, called.bytes);
  assert_true(at <= e.content + e.bytes);
  return at;
}

static void check_values(const unsigned char **at, uint32_t class, const char *name, const int32_t *dims,
                         size_t rank, uint32_t type, const void *values, size_t size) {
  const unsigned char *inner = check_variable(take(at), class, name, dims, rank);
  element e = take(&inner);
  assert_int_equal(e.type, type);
  assert_int_equal(e.bytes, size);
  if (size) assert_memory_equal(e.content, values, size);
}

static void mat_holds_the_arrays(void **state) {
  (void)state;
  static unsigned char bytes[4096];
  static const float columns[] = {1, -4, 2, 5.5F, 3, 6}; /* the first dimension is the fastest */
  assert_int_equal(dvbf_arrays_write("a.mat", arrays, COUNT, NULL), DVBF_OK);
  size_t size = read_file("a.mat", bytes, sizeof bytes);
  assert_memory_equal(bytes, "MATLAB 5.0 MAT-file", 19);
  assert_memory_equal(bytes + 124, "\x00\x01IM", 4);
  const unsigned char *at = bytes + 128;
  check_values(&at, 7, "x", (int32_t[]){2, 3}, 2, 7, columns, sizeof columns);
  check_values(&at, 6, "scalar", (int32_t[]){1, 1}, 2, 9, &single, sizeof single);
  check_values(&at, 13, "length", (int32_t[]){2, 1}, 2, 6, lengths, sizeof lengths);
  check_values(&at, 14, "large", (int32_t[]){1, 1}, 2, 12, large, sizeof large);
  check_values(&at, 7, "empty", (int32_t[]){3, 0}, 2, 7, NULL, 0);
  const unsigned char *cell = check_variable(take(&at), 1, "names", (int32_t[]){2, 1}, 2);
  check_values(&cell, 4, "", (int32_t[]){1, 3}, 2, 16, "a,b", 3);
  check_values(&cell, 4, "", (int32_t[]){1, 4}, 2, 16,
               "\xc2\xb0"
               "C ?",
               5);
  check_values(&at, 4, "word", (int32_t[]){1, 3}, 2, 16, "a,b", 3);
  assert_int_equal(at - bytes, size);
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
  static const uint32_t letters[2][8] = {{'a', ',', 'b'}, {0xB0, 'C', ' ', 0x1F642}};
  check_entry(archive, "names.npy", HEADER("U8", "2,"), letters, sizeof letters);
  check_entry(archive, "word.npy", HEADER("U8", ""), letters, sizeof letters[0]);
  zip_close(archive);
}

/* Whatever the clock and its zone say. */
static void same_arrays_same_bytes(void **state) {
  (void)state;
  static const char *const names[][2] = {
      {"one.h5", "two.h5"}, {"one.npz", "two.npz"}, {"one.mat", "two.mat"}};
  static unsigned char one[1 << 16], two[1 << 16];
  for (int i = 0; i < 3; i++) {
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
  expect_refusal("x.txt", arrays, COUNT, "x.txt: its ending is not that of a known format; use .h5");
  expect_refusal(".npz", arrays, COUNT, "not that of a known format");
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
  odd = arrays[0], odd.name = "a-b";
  expect_refusal("x.mat", &odd, 1, "MATLAB has no variable named \"a-b\"");
  odd = arrays[0], odd.dims[0] = 1 << 15, odd.dims[1] = 1 << 15;
  expect_refusal("x.mat", &odd, 1, "write .h5");
  odd = arrays[COUNT - 1], odd.rank = 0;
  expect_refusal("x.npz", &odd, 1, "cannot be written");
}

/* What was there before stays, and nothing is left beside it. */
static void failed_writes_leave_the_old_file(void **state) {
  (void)state;
  static const char *const names[] = {"no/x.h5", "no/x.npz", "no/x.mat", "/dev/full/x.npz"};
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
      cmocka_unit_test(hdf5_holds_the_arrays),    cmocka_unit_test(npz_holds_the_arrays),
      cmocka_unit_test(mat_holds_the_arrays),     cmocka_unit_test(same_arrays_same_bytes),
      cmocka_unit_test(wrong_arrays_are_refused), cmocka_unit_test(failed_writes_leave_the_old_file),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
