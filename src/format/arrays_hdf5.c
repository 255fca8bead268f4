/* Arrays as datasets at the root of an HDF5 file. */
#include "base/status.h"
#include "format/arrays.h"
#include "format/hdf5_file.h"

/* Texts of a fixed size, filled up with zeros. */
static bool write_text(hid_t file, const dvbf_array *a, const hsize_t *dims) {
  hid_t type = H5Tcopy(H5T_C_S1);
  bool done = type >= 0 && H5Tset_size(type, dv_text_width(a) ? dv_text_width(a) : 1) >= 0 &&
              H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
              dv_hdf5_write(file, a->name, type, type, a->rank - 1, dims, a->values);
  if (type >= 0) H5Tclose(type);
  return done;
}

static bool write_one(hid_t file, const dvbf_array *a) {
  hid_t native[] = {[DVBF_FLOAT32] = H5T_NATIVE_FLOAT,
                    [DVBF_FLOAT64] = H5T_NATIVE_DOUBLE,
                    [DVBF_UINT32] = H5T_NATIVE_UINT32,
                    [DVBF_INT64] = H5T_NATIVE_INT64,
                    [DVBF_UINT8] = H5T_NATIVE_UINT8};
  hid_t stored[] = {[DVBF_FLOAT32] = H5T_IEEE_F32LE,
                    [DVBF_FLOAT64] = H5T_IEEE_F64LE,
                    [DVBF_UINT32] = H5T_STD_U32LE,
                    [DVBF_INT64] = H5T_STD_I64LE,
                    [DVBF_UINT8] = H5T_STD_U8LE};
  hsize_t dims[DVBF_MAX_RANK];
  for (int i = 0; i < a->rank; i++) dims[i] = a->dims[i];
  if (a->type == DVBF_TEXT) return write_text(file, a, dims);
  return dv_hdf5_write(file, a->name, native[a->type], stored[a->type], a->rank, dims, a->values);
}

dvbf_status dv_arrays_write_hdf5(const char *path, const dvbf_array *arrays, size_t count,
                                 dvbf_error *error) {
  dv_hdf5_printing saved = dv_hdf5_enter();
  hid_t file = dv_hdf5_memory_file();
  bool done = file >= 0;
  for (size_t i = 0; i < count && done; i++) done = write_one(file, &arrays[i]);
  dvbf_status status = done ? dv_hdf5_store(file, path, error) : dv_fail_memory(error, "writing arrays");
  H5Fclose(file);
  dv_hdf5_leave(saved);
  return status;
}
