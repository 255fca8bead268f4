/* Arrays in NPY format, in their own file or in an archive. */
#pragma once

#include "io/archive.h"

typedef struct dv_npy {
  dv_number type;
  bool swapped;  /* the bytes of each number */
  size_t header; /* bytes before the values */
} dv_npy;

/* Reads `n` bytes from `offset` on. Returns NULL or, after a failure, the remedy. */
typedef const char *dv_npy_bytes(void *from, uint64_t offset, size_t n, unsigned char *out);

/* Of the file with the descriptor `from` (const int *). */
dv_npy_bytes dv_npy_file_bytes;

/* Reads the header of an array; the file has `size` bytes. Problems are put into array->trouble. */
void dv_npy_describe(dv_npy *npy, dv_named_array *array, dv_npy_bytes *bytes, void *from, uint64_t size);
/* As dv_archive.read. */
const char *dv_npy_read(const dv_npy *npy, dv_npy_bytes *bytes, void *from, size_t first, size_t n,
                        dv_out out);
