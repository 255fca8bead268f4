/* Named arrays in files: what the formats share. */
#ifndef DV_ARRAYS_H
#define DV_ARRAYS_H

#include <dvbf/dvbf.h>

/* Bytes of the values of a checked array. */
size_t dv_array_bytes(const dvbf_array *array);

/* The formats; arrays are checked. */
dvbf_status dv_arrays_write_hdf5(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error);
dvbf_status dv_arrays_write_npz(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error);

#endif
