/* A folder for the files of a test program, and files made there. Include it before cmocka.h. */
#ifndef FILES_H
#define FILES_H

#include <dirent.h>
#include <hdf5.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* HDF5 itself loses memory over damaged files; ours is still checked. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libhdf5";
}

/* ---- A folder for the files of this program ---- */

static char folder[] = "/tmp/dvbf-test-XXXXXX";

static inline const char *in_folder(const char *name) {
  static char path[2][512];
  static int turn;
  turn = !turn; /* two paths may be in use at once */
  snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
  return path[turn];
}

/* Removes all files; returns how many there were. */
static inline int clear_folder(void) {
  int count = 0;
  DIR *entries = opendir(folder);
  for (struct dirent *entry; entries && (entry = readdir(entries));) {
    if (entry->d_name[0] == '.') continue;
    unlink(in_folder(entry->d_name));
    count++;
  }
  closedir(entries);
  return count;
}

static inline int make_folder(void **unused) {
  (void)unused;
  return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **unused) {
  (void)unused;
  clear_folder();
  return rmdir(folder);
}

static inline unsigned char *read_bytes(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  unsigned char *bytes = malloc(*size + 1);
  assert_int_equal(fread(bytes, 1, *size, file), *size);
  fclose(file);
  return bytes;
}

static inline void write_bytes(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static inline bool same_bytes(const char *a, const char *b) {
  size_t size_a, size_b;
  unsigned char *bytes_a = read_bytes(a, &size_a), *bytes_b = read_bytes(b, &size_b);
  bool same = size_a == size_b && !memcmp(bytes_a, bytes_b, size_a);
  free(bytes_a);
  free(bytes_b);
  return same;
}

/* ---- Files made with HDF5 itself ---- */

static inline hid_t new_file(void) {
  hid_t file = H5Fcreate(in_folder("a.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(file >= 0);
  return file;
}

#define SHAPE(...)                                                                                           \
  (int)(sizeof((hsize_t[]){__VA_ARGS__}) / sizeof(hsize_t)), (hsize_t[]) {                                   \
    __VA_ARGS__                                                                                              \
  }

/* A dataset with values of H5T_NATIVE_DOUBLE, or without any when they are NULL; groups are made on the way.
 */
static inline void put(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims,
                       const double *values) {
  hid_t links = H5Pcreate(H5P_LINK_CREATE), space = H5Screate_simple(rank, dims, NULL);
  H5Pset_create_intermediate_group(links, 1);
  hid_t id = H5Dcreate2(file, name, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(id >= 0);
  if (values) assert_true(H5Dwrite(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  H5Dclose(id);
  H5Sclose(space);
  H5Pclose(links);
}

#endif
