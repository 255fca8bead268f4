/* Files that are wrong in one way each, and what the refusal must say. Makes them in the folder of files.h.
 */
#ifndef MALFORMED_H
#define MALFORMED_H

#include "arrays.h"

typedef struct malformed {
  const char *name; /* its ending tells the format */
  const char *part; /* of the message; NULL: the file is good */
} malformed;

/* Calls `each` with every file, which is there for the time of the call. */
typedef void malformed_fn(const malformed *file);

/* ---- NPY ---- */

static const float thirty[30];

static inline void each_header(malformed_fn *each) {
  static const struct {
    const char *header, *part;
  } cases[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3, 2), }", NULL},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3, 2)", "damaged NPY header"},
      {"{'descr': '<f4', 'fortran_order': False}", "damaged NPY header"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (5, 3, 2)}", "damaged NPY header"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (5, 3, 2)}", "damaged NPY header"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (5, -3, 2)}", "damaged NPY header"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3, 2)} + 1", "damaged NPY header"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 2)}", "damaged NPY header"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os'), 2)}", "damaged NPY header"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3, 2), 'more': 1}", "damaged NPY header"},
      {"{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (5, 3, 2)}", "damaged NPY header"},
      {"", "damaged NPY header"},
      {"{", "damaged NPY header"},
      {"{}", "damaged NPY header"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (5, 3, 2)}", "holds objects"},
      {"{'descr': '<U7', 'fortran_order': False, 'shape': (5, 3, 2)}", "holds text"},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (5, 3, 2)}", "complex"},
      {"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (5, 3, 2)}", "times"},
      {"{'descr': '<f16', 'fortran_order': False, 'shape': (5, 3, 2)}", "unusual width"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (5, 3, 2)}", "structures"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 0, 2)}", "1 or more"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3, 3)}", "truncated"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (4294967296, 4294967296, 2)}", "2^40"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952, 2, 4)}", "2^40"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627775, 1)}", "truncated"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "8 dimensions"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "shape []"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (30,)}", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char name[32];
    snprintf(name, sizeof name, "header-%zu.npy", i);
    write_npy(name, npy_with(1, cases[i].header, thirty, sizeof thirty));
    each(&(malformed){name, cases[i].part});
  }
}

/* The header ends where the file does, behind a number too large for anything, in a string or a number. */
static inline void each_unterminated(malformed_fn *each) {
  const char *const headers[] = {"{'shape': (99999999999999999999),'s",
                                 "{'shape': (99999999999999999999",
                                 "{'shape': (9",
                                 "{'shape': (",
                                 "{'shape",
                                 "{'"};
  for (int i = 0; i < 6; i++) {
    unsigned char file[64] = "\x93NUMPY\1";
    size_t length = strlen(headers[i]);
    file[8] = (unsigned char)length;
    memcpy(file + 10, headers[i], length);
    write_bytes(in_folder("open.npy"), file, 10 + length);
    each(&(malformed){"open.npy", "damaged NPY header"});
  }
}

static inline void each_npy(malformed_fn *each) {
  each_header(each);
  each_unterminated(each);
  write_bytes(in_folder("magic.npy"), "\x93NUMPY", 6);
  each(&(malformed){"magic.npy", "NPY format"});
  write_bytes(in_folder("long.npy"), "\x93NUMPY\1\0\xff\xff{'descr'", 18);
  each(&(malformed){"long.npy", "damaged NPY header"});
  write_bytes(in_folder("longer.npy"), "\x93NUMPY\2\0\xff\xff\xff\xff{'descr'", 20);
  each(&(malformed){"longer.npy", "damaged NPY header"});
  write_bytes(in_folder("version.npy"), "\x93NUMPY\x09\0\xff\xff\xff\xff{'descr'", 20);
  each(&(malformed){"version.npy", "version"});
  bytes whole = npy("<f4", false, "(5, 3, 2)", thirty, sizeof thirty);
  for (size_t cut = 6; cut < whole.size; cut += 5) {
    write_bytes(in_folder("cut.npy"), whole.at, cut);
    each(&(malformed){"cut.npy", "cut.npy"});
  }
  free(whole.at);
  float values[30] = {0};
  values[7] = 1 / values[8];
  write_npy("infinite.npy", npy("<f4", false, "(5, 3, 2)", values, sizeof values));
  each(&(malformed){"infinite.npy", "finite"});
}

/* ---- NPZ ---- */

static inline member thirty_named(const char *name) {
  return (member){name, npy("<f4", false, "(5, 3, 2)", thirty, sizeof thirty)};
}

/* Changes `size` bytes at each place where `old` is found in the file; returns at how many. */
static inline int patch(const char *name, const void *old, const void *new, size_t size) {
  size_t length;
  int count = 0;
  unsigned char *all = read_bytes(in_folder(name), &length);
  for (size_t i = 0; i + size <= length; i++)
    if (!memcmp(all + i, old, size)) memcpy(all + i, new, size), count++;
  write_bytes(in_folder(name), all, length);
  free(all);
  return count;
}

/* Changes `size` bytes at an offset behind each header that begins with `magic`. */
static inline void patch_headers(const char *name, const char *magic, size_t offset, const void *new,
                                 size_t size) {
  size_t length;
  unsigned char *all = read_bytes(in_folder(name), &length);
  for (size_t i = 0; i + offset + size <= length; i++)
    if (!memcmp(all + i, magic, 4)) memcpy(all + i + offset, new, size);
  write_bytes(in_folder(name), all, length);
  free(all);
}

static inline void each_npz(malformed_fn *each) {
  static const unsigned char huge[] = {0, 0, 0, 0x70};
  write_zip("good.npz", false, 1, (member[]){thirty_named("x.npy")});
  each(&(malformed){"good.npz", NULL});
  write_zip("deflated.npz", true, 2, (member[]){thirty_named("x.npy"), thirty_named("u.npy")});
  each(&(malformed){"deflated.npz", NULL});
  write_zip("path.npz", true, 2,
            (member[]){thirty_named("../../../etc/x.npy"), thirty_named("/train/x.npy")});
  each(&(malformed){"path.npz", "x is missing"});
  write_zip("other.npz", true, 1, (member[]){{"x.npy", {memcpy(malloc(11), "not an NPY\n", 11), 11}}});
  each(&(malformed){"other.npz", "not an array in NPY format"});
  write_zip("twice.npz", false, 2, (member[]){thirty_named("x.npy"), thirty_named("y.npy")});
  patch("twice.npz", "y.npy", "x.npy", 5);
  each(&(malformed){"twice.npz", "two arrays named x"});
  write_zip("twin.npz", false, 2, (member[]){thirty_named("x"), thirty_named("x.npy")});
  each(&(malformed){"twin.npz", "two arrays named x"});
  write_zip("checksum.npz", false, 1, (member[]){thirty_named("x.npy")});
  patch("checksum.npz", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
  each(&(malformed){"checksum.npz", "checksum"});
  write_zip("encrypted.npz", false, 1, (member[]){thirty_named("x.npy")});
  patch_headers("encrypted.npz", "PK\3\4", 6, "\1", 1);
  patch_headers("encrypted.npz", "PK\1\2", 8, "\1", 1);
  each(&(malformed){"encrypted.npz", "encrypted"});
  write_zip("method.npz", true, 1, (member[]){thirty_named("x.npy")});
  patch_headers("method.npz", "PK\3\4", 8, "\14", 1);
  patch_headers("method.npz", "PK\1\2", 10, "\14", 1);
  each(&(malformed){"method.npz", "other than deflate"});
  write_zip("bomb.npz", true, 1, (member[]){thirty_named("x.npy")});
  patch_headers("bomb.npz", "PK\3\4", 22, huge, 4);
  patch_headers("bomb.npz", "PK\1\2", 24, huge, 4);
  each(&(malformed){"bomb.npz", "far larger"});
  write_zip("sizes.npz", false, 1, (member[]){thirty_named("x.npy")});
  patch_headers("sizes.npz", "PK\1\2", 24, huge, 4);
  each(&(malformed){"sizes.npz", "sizes differ"});
  write_bytes(in_folder("empty.npz"), "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
  each(&(malformed){"empty.npz", "empty archive"});
  size_t length;
  write_zip("whole.npz", true, 1, (member[]){thirty_named("x.npy")});
  unsigned char *all = read_bytes(in_folder("whole.npz"), &length);
  for (size_t cut = 4; cut < length; cut += 7) {
    write_bytes(in_folder("cut.npz"), all, cut);
    each(&(malformed){"cut.npz", "damaged or truncated"});
  }
  free(all);
}

/* ---- CSV ---- */

/* ---- MATLAB ---- */

static inline size_t put_element(unsigned char *to, uint32_t type, const void *values, uint32_t size) {
  memcpy(to, &type, 4);
  memcpy(to + 4, &size, 4);
  if (size) memcpy(to + 8, values, size);
  return 8 + (size_t)(size + 7) / 8 * 8;
}

/* A variable x [10, 3] of doubles, as MATLAB 6 writes it; returns the bytes. */
static inline size_t make_mat(unsigned char file[512]) {
  const uint32_t flags[] = {6, 0}, version = 0x4D490100;
  const int32_t dims[] = {10, 3};
  double values[30];
  for (int i = 0; i < 30; i++) values[i] = i * i % 7;
  memset(file, ' ', 124);
  memset(file + 124, 0, 512 - 124);
  memcpy(file, "MATLAB 5.0 MAT-file", 19);
  memcpy(file + 124, &version, 4);
  size_t at = 136;
  at += put_element(file + at, 6, flags, 8);
  at += put_element(file + at, 5, dims, 8);
  at += put_element(file + at, 1, "x", 1);
  at += put_element(file + at, 9, values, sizeof values);
  put_element(file + 128, 14, NULL, 0);
  uint32_t size = (uint32_t)(at - 136);
  memcpy(file + 132, &size, 4);
  return at;
}

static inline void each_mat(malformed_fn *each) {
  unsigned char file[512];
  const int32_t huge[] = {1 << 30, 1 << 20};
  size_t size = make_mat(file);
  write_bytes(in_folder("good.mat"), file, size);
  each(&(malformed){"good.mat", NULL});
  for (size_t cut = 16; cut < size; cut += 13) {
    write_bytes(in_folder("cut.mat"), file, cut);
    each(&(malformed){"cut.mat", "cut.mat"});
  }
  memcpy(file + 160, huge, sizeof huge);
  write_bytes(in_folder("huge.mat"), file, size);
  each(&(malformed){"huge.mat", "huge.mat"});
}

static inline void each_csv(malformed_fn *each) {
  static const struct {
    const char *name, *text, *part;
  } cases[] = {
      {"good.csv", "x,u\n1,2\n3,4\n5,6\n7,8\n9,1\n2,3\n", NULL},
      {"quotes.csv", "\"x\",\"u\"\n1,\"2\n3,4\n", "line 2: a quote"},
      {"quote.csv", "\"x,u\n1,2\n", "a quote"},
      {"behind.csv", "\"x\"y,u\n1,2\n", "a quote"},
      {"ragged.csv", "x,u\n1,2\n3\n", "line 3: has 1 fields"},
      {"wide.csv", "x,u\n1,2\n3,4,5\n", "line 3: has 3 fields"},
      {"names.csv", "x,u\n", "no rows"},
      {"blank.csv", "\n\n  \n# nothing\n", "only blank lines"},
      {"text.csv", "a,b\nc,d\n", "no column of numbers"},
      {"word.csv", "x,u\n1,2\n3,four\n", "line 3, column u: \"four\""},
      {"infinite.csv", "x,u\n1,2\n3,4\ninf,5\n", "line 4, column x: \"inf\" is beyond 3.4e38"},
      {"large.csv", "x,u\n1,2\n3,4\n1e39,5\n",
       "line 4, column x: \"1e39\" is beyond 3.4e38, the range of 32-bit numbers"},
      {"larger.csv", "x,u\n1,2\n3,4\n5,-1e999\n", "line 4, column u: \"-1e999\" is beyond 3.4e38"},
      {"control.csv", "x,u\n1,2\n3,4\n\x1b[2J,5\n", "CSV"},
      {"digits.csv",
       "x\n1\n12345678901234567890123456789012345678901234567890123456789012345678901234567890e-70\n",
       "has a sequence of 2 steps"},
      {"hex.csv", "x\n1\n0x10\n", "line 3, column x"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_bytes(in_folder(cases[i].name), cases[i].text, strlen(cases[i].text));
    each(&(malformed){cases[i].name, cases[i].part});
  }
  char late[8192];
  memset(late, '\n', sizeof late);
  memcpy(late, "x,u\n1,2\n", 8);
  memcpy(late + 8000, "3,\0004\n", 6);
  write_bytes(in_folder("zero.csv"), late, sizeof late);
  each(&(malformed){"zero.csv", "zero byte"});
}

/* ---- HDF5 ---- */

static inline hid_t hdf5_named(const char *name) {
  return H5Fcreate(in_folder(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
}

static inline void each_hdf5(malformed_fn *each) {
  static const double values[60];
  hid_t file = hdf5_named("good.h5");
  put(file, "x", H5T_IEEE_F32LE, SHAPE(5, 3, 2), values);
  put(file, "u", H5T_STD_I16BE, SHAPE(5, 2, 1), values);
  H5Fclose(file);
  each(&(malformed){"good.h5", NULL});
  file = hdf5_named("episodes.h5");
  for (int i = 0; i < 4; i++) {
    char name[64];
    snprintf(name, sizeof name, "data/demo_%d/obs/a", i);
    put(file, name, H5T_IEEE_F32LE, SHAPE(3, 2), values);
    snprintf(name, sizeof name, "data/demo_%d/actions", i);
    put(file, name, H5T_IEEE_F32LE, SHAPE(2, 2), values);
  }
  H5Fclose(file);
  each(&(malformed){"episodes.h5", NULL});
  file = hdf5_named("ring.h5"); /* groups that hold each other */
  put(file, "a/b/c", H5T_IEEE_F32LE, SHAPE(5, 3, 2), values);
  for (int i = 0; i < 6; i++) {
    char name[16];
    snprintf(name, sizeof name, "a/b/%d", i);
    H5Lcreate_hard(file, "a", file, name, H5P_DEFAULT, H5P_DEFAULT);
  }
  H5Fclose(file);
  each(&(malformed){"ring.h5", "x is missing"});
  file = hdf5_named("huge.h5"); /* 2^39 numbers, of which one chunk is stored */
  hid_t creation = H5Pcreate(H5P_DATASET_CREATE),
        space = H5Screate_simple(3, (hsize_t[]){1 << 19, 1 << 10, 1 << 10}, NULL);
  hid_t memory = H5Screate_simple(1, (hsize_t[]){1}, NULL);
  H5Pset_chunk(creation, 3, (hsize_t[]){1, 4, 4});
  hid_t id = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){0, 0, 0}, NULL, (hsize_t[]){1, 1, 1}, NULL);
  H5Dwrite(id, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values);
  H5Dclose(id);
  H5Sclose(memory);
  H5Sclose(space);
  H5Pclose(creation);
  H5Fclose(file);
  each(&(malformed){"huge.h5", "far larger"});
}

#endif
