/* NPY and NPZ files, made byte by byte. */
#ifndef ARRAYS_H
#define ARRAYS_H

#include "hdf5_files.h"

#include <zip.h>

typedef struct bytes {
  unsigned char *at;
  size_t size;
} bytes;

/* An NPY file of that version with any text as its header. */
static inline bytes npy_with(int version, const char *header, const void *values, size_t size) {
  size_t length = strlen(header) + 1, before = version == 1 ? 10 : 12;
  bytes b = {malloc(before + length + size), before + length + size};
  memcpy(b.at, "\x93NUMPY", 6);
  b.at[6] = (unsigned char)version;
  b.at[7] = 0;
  for (size_t i = 0; i < before - 8; i++) b.at[8 + i] = (unsigned char)(length >> (8 * i));
  memcpy(b.at + before, header, length - 1);
  b.at[before + length - 1] = '\n';
  if (size) memcpy(b.at + before + length, values, size);
  return b;
}

/* `shape` as (3, 4). */
static inline bytes npy(const char *type, bool fortran, const char *shape, const void *values, size_t size) {
  char header[256];
  snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", type,
           fortran ? "True" : "False", shape);
  return npy_with(1, header, values, size);
}

static inline void write_npy(const char *name, bytes b) {
  write_bytes(in_folder(name), b.at, b.size);
  free(b.at);
}

typedef struct member {
  const char *name; /* with its .npy */
  bytes content;
} member;

/* A zip archive of members, whose content is freed. */
static inline void write_zip(const char *name, bool deflated, size_t count, const member *members) {
  unlink(in_folder(name));
  zip_t *zip = zip_open(in_folder(name), ZIP_CREATE | ZIP_TRUNCATE, NULL);
  assert_non_null(zip);
  for (size_t i = 0; i < count; i++) {
    zip_source_t *source = zip_source_buffer(zip, members[i].content.at, members[i].content.size, 0);
    zip_int64_t index = zip_file_add(zip, members[i].name, source, 0);
    assert_true(index >= 0);
    zip_set_file_compression(zip, (zip_uint64_t)index, deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  assert_int_equal(zip_close(zip), 0);
  for (size_t i = 0; i < count; i++) free(members[i].content.at);
}

#endif
