#include "format/numbers.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

size_t dv_number_size(dv_number type) {
  static const size_t sizes[] = {2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8};
  return sizes[type];
}

/* Binary16: 1 bit of sign, 5 of exponent with bias 15, 10 of fraction. */
static float from_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float size = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent     ? ldexpf((float)(1024 + fraction), exponent - 25)
                              : ldexpf((float)fraction, -24);
  return bits >> 15 ? -size : size;
}

static uint16_t swap2(uint16_t v, bool swapped) {
  return swapped ? __builtin_bswap16(v) : v;
}

static uint32_t swap4(uint32_t v, bool swapped) {
  return swapped ? __builtin_bswap32(v) : v;
}

static uint64_t swap8(uint64_t v, bool swapped) {
  return swapped ? __builtin_bswap64(v) : v;
}

static float as_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double as_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* One loop for a type of words, whose value is the expression of `v`. */
#define EACH(word, bits_of, value)                                                                           \
  for (size_t i = 0; i < n; i++) {                                                                           \
    word v;                                                                                                  \
    memcpy(&v, from + i * sizeof v, sizeof v);                                                               \
    v = bits_of;                                                                                             \
    if (floats)                                                                                              \
      floats[i] = (float)(value);                                                                            \
    else                                                                                                     \
      doubles[i] = (double)(value);                                                                          \
  }                                                                                                          \
  break

void dv_numbers_convert(const unsigned char *from, dv_number type, bool swapped, size_t n, float *floats,
                        double *doubles) {
  switch (type) {
  case DV_FLOAT16: EACH(uint16_t, swap2(v, swapped), from_half(v));
  case DV_FLOAT32: EACH(uint32_t, swap4(v, swapped), as_float(v));
  case DV_FLOAT64: EACH(uint64_t, swap8(v, swapped), as_double(v));
  case DV_INT8: EACH(uint8_t, v, (int8_t)v);
  case DV_INT16: EACH(uint16_t, swap2(v, swapped), (int16_t)v);
  case DV_INT32: EACH(uint32_t, swap4(v, swapped), (int32_t)v);
  case DV_INT64: EACH(uint64_t, swap8(v, swapped), (int64_t)v);
  case DV_UINT8: EACH(uint8_t, v, v);
  case DV_UINT16: EACH(uint16_t, swap2(v, swapped), v);
  case DV_UINT32: EACH(uint32_t, swap4(v, swapped), v);
  case DV_UINT64: EACH(uint64_t, swap8(v, swapped), v);
  }
}
