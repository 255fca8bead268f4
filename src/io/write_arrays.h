/* Writing named arrays: shared by the formats. */
#pragma once

#include <dvbf/dvbf.h>

/* Bytes of the values; SIZE_MAX: more than there can be. */
size_t dv_array_bytes(const dvbf_array *array);

/* The endings of the writers, behind `further`: ".csv, .npz or .mat". */
const char *dv_writers_listed(const char *further, char out[DVBF_FORMATS]);

/* The formats; arrays are checked. */
dvbf_status dv_arrays_write_hdf5(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error);
dvbf_status dv_arrays_write_npz(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error);
dvbf_status dv_arrays_write_mat(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error);

/* Number of texts in an array, and the bytes of each. */
static inline size_t dv_text_width(const dvbf_array *a) {
  return a->dims[a->rank - 1];
}
static inline size_t dv_text_count(const dvbf_array *a) {
  size_t count = 1;
  for (int i = 0; i + 1 < a->rank; i++) count *= a->dims[i];
  return count;
}

/* The next character of UTF-8 text before `end`; what is none counts as U+FFFD. 0 at the end. */
uint32_t dv_next_character(const char **at, const char *end);
