/* Named arrays into one file, HDF5 or NPZ by the ending of its name. */
#include "format/arrays.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>
#include <strings.h>

static const size_t sizes[] = {
    [DVBF_FLOAT32] = 4, [DVBF_FLOAT64] = 8, [DVBF_UINT32] = 4, [DVBF_INT64] = 8, [DVBF_UINT8] = 1};

/* *out = bytes of the values; false on overflow. */
static bool count_bytes(const dvbf_array *a, size_t *out) {
  *out = sizes[a->type];
  for (int i = 0; i < a->rank; i++)
    if (!dv_multiply(*out, a->dims[i], out)) return false;
  return true;
}

size_t dv_array_bytes(const dvbf_array *a) {
  size_t bytes = 0;
  return count_bytes(a, &bytes) ? bytes : 0;
}

static dvbf_status check_array(const dvbf_array *a, const char *path, dvbf_error *error) {
  size_t bytes, types = sizeof sizes / sizeof *sizes;
  if (!a->name || !*a->name || strlen(a->name) > 64 || strpbrk(a->name, "/\\"))
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: cannot hold an array named \"%.64s\"; a name has 1 to 64 characters and no slash",
                   path, a->name ? a->name : "");
  if ((size_t)a->type >= types || a->rank < 0 || a->rank > DVBF_MAX_RANK || !count_bytes(a, &bytes) ||
      (bytes && !a->values))
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: the array %s cannot be written; it needs a known type, values, and a rank in [0, "
                   "%d]",
                   path, a->name, DVBF_MAX_RANK);
  return DVBF_OK;
}

static dvbf_status check_arrays(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error) {
  dvbf_status status =
      count ? DVBF_OK : dv_fail(error, DVBF_ARGUMENT, "%.200s: there are no arrays to write", path);
  for (size_t i = 0; i < count && !status; i++) {
    status = check_array(&arrays[i], path, error);
    for (size_t j = 0; j < i && !status; j++)
      if (!strcmp(arrays[i].name, arrays[j].name))
        status =
            dv_fail(error, DVBF_ARGUMENT, "%.200s: cannot hold two arrays named %s", path, arrays[i].name);
  }
  return status;
}

static bool ends_in(const char *path, const char *ending) {
  size_t length = strlen(path), n = strlen(ending);
  return length > n && !strcasecmp(path + length - n, ending);
}

typedef dvbf_status write_fn(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error);

static write_fn *writer_of(const char *path) {
  if (ends_in(path, ".npz")) return dv_arrays_write_npz;
  return ends_in(path, ".h5") || ends_in(path, ".hdf5") ? dv_arrays_write_hdf5 : NULL;
}

dvbf_status dvbf_arrays_check_path(const char *path, dvbf_error *error) {
  if (writer_of(path)) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "%.200s: its ending names no format; .h5 or .hdf5 makes it HDF5, .npz an archive for NumPy",
                 path);
}

dvbf_status dvbf_arrays_write(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error) {
  dvbf_status status = dvbf_arrays_check_path(path, error);
  if (!status) status = check_arrays(path, arrays, count, error);
  return status ? status : writer_of(path)(path, arrays, count, error);
}
