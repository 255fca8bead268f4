/* Arrays in NPY format, in a file of their own or in an archive. */
#ifndef DV_NPY_H
#define DV_NPY_H

#include "format/archive.h"
#include "format/numbers.h"

typedef struct dv_npy {
  dv_number type;
  bool swapped, fortran;
  size_t header;         /* bytes before the values */
  unsigned char *loaded; /* all values in C order, once they were needed and the file has them in another */
} dv_npy;

/* Reads `n` bytes from `offset` on; returns NULL, or the remedy when it fails. */
typedef const char *dv_npy_bytes(void *from, uint64_t offset, size_t n, unsigned char *out);

/* Reads the header of an array of `size` bytes in all. What is wrong with it goes into array->trouble. */
void dv_npy_describe(dv_npy *npy, dv_array *array, dv_npy_bytes *bytes, void *from, uint64_t size);
/* As dv_archive.read. */
const char *dv_npy_read(dv_npy *npy, const dv_array *array, dv_npy_bytes *bytes, void *from, size_t first,
                        size_t n, float *floats, double *doubles);

#endif
