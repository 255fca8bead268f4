/* Numbers as files store them: types, widths and byte orders. */
#ifndef DV_NUMBERS_H
#define DV_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum dv_number {
  DV_FLOAT16,
  DV_FLOAT32,
  DV_FLOAT64,
  DV_INT8,
  DV_INT16,
  DV_INT32,
  DV_INT64,
  DV_UINT8,
  DV_UINT16,
  DV_UINT32,
  DV_UINT64
} dv_number;

size_t dv_number_size(dv_number type);

/* Converts n numbers from bytes, which need no alignment, to `floats` or, if that is NULL, `doubles`. Each is
 * rounded once. `swapped`: the byte order is not the machine's. */
void dv_numbers_convert(const unsigned char *from, dv_number type, bool swapped, size_t n, float *floats,
                        double *doubles);

#endif
