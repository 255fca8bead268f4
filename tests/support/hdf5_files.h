/* Files made with HDF5 itself. Include it before cmocka.h. */
#ifndef HDF5_FILES_H
#define HDF5_FILES_H

#include "files.h"

#include <hdf5.h>

/* HDF5 itself loses memory over damaged files; ours is still checked. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libhdf5";
}

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
