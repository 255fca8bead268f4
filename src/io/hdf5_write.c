/* Writing HDF5 files: data sets with names, units, origins and times (dvbf_data_write), and named arrays
 * (dv_arrays_write_hdf5). A file is built in memory and stored atomically, because HDF5 crashes on a full
 * disk; equal data give equal bytes. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "io/hdf5.h"
#include "io/write_arrays.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- Files in memory ---- */

/* Stores no time of writing, so that the same data give the same bytes. */
static hid_t timeless(hid_t class) {
  hid_t list = H5Pcreate(class);
  H5Pset_obj_track_times(list, false);
  return list;
}

/* Negative on failure. HDF5 cannot give up a file on a full disk: it would crash when the process ends. The
 * format is that of HDF5 1.8, which has checksums and which all current versions read. */
static hid_t memory_file(void) {
  enum { GROWTH = 1 << 20 };
  hid_t access_list = H5Pcreate(H5P_FILE_ACCESS), creation = timeless(H5P_FILE_CREATE);
  H5Pset_fclose_degree(access_list, H5F_CLOSE_STRONG);
  H5Pset_libver_bounds(access_list, H5F_LIBVER_V18, H5F_LIBVER_V18);
  H5Pset_fapl_core(access_list, GROWTH, false);
  hid_t file = H5Fcreate("memory", H5F_ACC_TRUNC, creation, access_list);
  H5Pclose(creation);
  H5Pclose(access_list);
  return file;
}

/* Numbers are stored with their lowest byte first. */
static bool write_dataset(hid_t group, const char *name, hid_t type, int rank, const hsize_t *dims,
                          const void *values) {
  hid_t space = H5Screate_simple(rank, dims, NULL), creation = timeless(H5P_DATASET_CREATE);
  hid_t stored = H5Tcopy(type);
  if (H5Tget_class(type) != H5T_STRING) H5Tset_order(stored, H5T_ORDER_LE);
  hid_t id = H5Dcreate2(group, name, stored, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  bool done = H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
  done &= H5Dclose(id) >= 0;
  H5Tclose(stored);
  H5Pclose(creation);
  H5Sclose(space);
  return done;
}

static hid_t text_type(size_t size) {
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, size);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

/* Copies the file to `path`, atomically. HDF5's handle of a file in memory points to the pointer to its
 * bytes. */
static dvbf_status store(hid_t file, const char *path, dvbf_error *error) {
  dv_atomic_file out;
  void **bytes;
  bool flushed = H5Fflush(file, H5F_SCOPE_LOCAL) >= 0;
  ssize_t size = flushed ? H5Fget_file_image(file, NULL, 0) : -1;
  if (size < 0 || H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&bytes) < 0)
    return dv_fail(error, DVBF_IO, "%.200s: cannot be written: HDF5 failed to finish it", path);
  dvbf_status status = dv_atomic_open(&out, path, error);
  if (status) return status;
  fwrite(*bytes, 1, (size_t)size, out.stream);
  return dv_atomic_commit(&out, error);
}

/* ---- Data sets ---- */

/* Strings of `size` bytes as an attribute of an array; NULL: there are none to write. */
static bool write_texts(hid_t group, const char *array, const char *name, hsize_t count, size_t size,
                        const void *texts /* [count][size] */) {
  if (!texts || !count) return true;
  hid_t type = text_type(size), space = H5Screate_simple(1, &count, NULL);
  hid_t attribute = H5Acreate_by_name(group, array, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  bool done = H5Awrite(attribute, type, texts) >= 0;
  done &= H5Aclose(attribute) >= 0;
  H5Sclose(space);
  H5Tclose(type);
  return done;
}

/* Names of sequences as an array of strings, if any has one. */
static bool write_sequence_names(hid_t group, const dvbf_sequences *s) {
  hsize_t count = s->count;
  char(*names)[32] = dv_calloc(s->count, sizeof *names);
  bool any = false, done = names;
  for (size_t i = 0; names && i < s->count; i++) {
    memcpy(names[i], s->origin[i].name, sizeof *names);
    any |= *names[i] != 0;
  }
  hid_t type = text_type(sizeof *names);
  if (any) done = write_dataset(group, "sequence_name", type, 1, &count, names);
  H5Tclose(type);
  dv_free(names);
  return done;
}

/* Origins of sequences: sequence_number, sequence_step, sequence_time and sequence_name. */
static bool write_origins(hid_t group, const dvbf_sequences *s) {
  static const char *const names[] = {"sequence_number", "sequence_step", "sequence_time"};
  hsize_t count = s->count;
  if (!s->origin) return true;
  double *values = dv_calloc(s->count, sizeof *values);
  bool done = values;
  for (int k = 0; k < 3 && done; k++) {
    for (size_t i = 0; i < s->count; i++) {
      const dvbf_origin *o = &s->origin[i];
      values[i] = k == 0 ? (double)o->sequence : k == 1 ? (double)o->step : o->time;
    }
    done = write_dataset(group, names[k], H5T_NATIVE_DOUBLE, 1, &count, values);
  }
  dv_free(values);
  return done && write_sequence_names(group, s);
}

static bool write_columns(hid_t group, const dvbf_sequences *s, const dvbf_data *data) {
  return write_texts(group, "x", "names", s->n_x, sizeof *data->x_names, data->x_names) &&
         write_texts(group, "x", "units", s->n_x, sizeof *data->x_units, data->x_units) &&
         write_texts(group, "u", "names", s->n_u, sizeof *data->u_names, data->u_names) &&
         write_texts(group, "u", "units", s->n_u, sizeof *data->u_units, data->u_units);
}

/* Sample time, and whether times count from 1970, if they are known. */
static bool write_time(hid_t file, const dvbf_data *data) {
  double dates = 1;
  if (!(data->sample_time > 0)) return true;
  return write_dataset(file, "sample_time", H5T_NATIVE_DOUBLE, 0, NULL, &data->sample_time) &&
         (!data->dates || write_dataset(file, "dates", H5T_NATIVE_DOUBLE, 0, NULL, &dates));
}

/* s is laid out [count][steps]. */
static bool write_split(hid_t file, const char *name, const dvbf_sequences *s, const dvbf_data *data) {
  hid_t creation = timeless(H5P_GROUP_CREATE);
  hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, creation, H5P_DEFAULT);
  hsize_t columns[] = {s->count, s->steps, s->n_x};
  hsize_t pixels[] = {s->count, s->steps, data->image_height, data->image_width, dv_image_channels(data)};
  bool image = data->image_height;
  int rank = dv_image_channels(data) > 1 ? 5 : 4;
  hid_t type = H5T_NATIVE_FLOAT;
  bool done = write_dataset(group, "x", type, image ? rank : 3, image ? pixels : columns, s->x);
  columns[2] = s->n_u;
  if (s->n_u) done = done && write_dataset(group, "u", type, 3, columns, s->u);
  columns[2] = s->n_s;
  if (s->n_s)
    done = done && write_dataset(group, "state", type, 3, columns, s->state) &&
           write_texts(group, "state", "names", s->n_s, sizeof *data->state_names, data->state_names);
  if (s->length) done = done && write_dataset(group, "length", H5T_NATIVE_UINT32, 1, columns, s->length);
  done = done && write_columns(group, s, data) && write_origins(group, s);
  done &= H5Gclose(group) >= 0;
  H5Pclose(creation);
  return done;
}

static bool write_any(hid_t file, const char *name, const dvbf_sequences *s, const dvbf_data *data) {
  dvbf_sequences copy = {0};
  bool scattered = s->start || s->source;
  if (scattered && dvbf_sequences_copy(&copy, s, 0, s->count, NULL)) return false;
  bool done = write_split(file, name, scattered ? &copy : s, data);
  dvbf_sequences_free(&copy);
  return done;
}

dvbf_status dvbf_data_write(const dvbf_data *data, const char *path, dvbf_error *error) {
  if (!data->valid.count || !data->test.count)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: cannot be written: %s has no sequences; each split needs one", path,
                   data->valid.count ? "test" : "valid");
  dvbf_status status = dv_data_validate(data, "data to be written", error);
  if (status) return status;
  dv_hdf5_enter();
  static const char *const names[] = {"train", "valid", "test"};
  const dvbf_sequences *splits[] = {&data->train, &data->valid, &data->test};
  hid_t file = memory_file();
  bool done = file >= 0 && write_time(file, data);
  for (size_t i = 0; done && i < 3; i++) done = write_any(file, names[i], splits[i], data);
  status = done ? store(file, path, error) : dv_fail_memory(error, "writing data");
  H5Fclose(file);
  dv_hdf5_leave();
  return status;
}

/* ---- Named arrays ---- */

/* Texts have a fixed size and are filled up with zeros. */
static bool write_one(hid_t file, const dvbf_array *a) {
  hid_t native[] = {[DVBF_FLOAT32] = H5T_NATIVE_FLOAT,
                    [DVBF_FLOAT64] = H5T_NATIVE_DOUBLE,
                    [DVBF_UINT32] = H5T_NATIVE_UINT32,
                    [DVBF_INT64] = H5T_NATIVE_INT64,
                    [DVBF_UINT8] = H5T_NATIVE_UINT8};
  hsize_t dims[DVBF_MAX_RANK];
  for (int i = 0; i < a->rank; i++) dims[i] = a->dims[i];
  if (a->type != DVBF_TEXT) return write_dataset(file, a->name, native[a->type], a->rank, dims, a->values);
  hid_t type = text_type(dv_text_width(a) ? dv_text_width(a) : 1);
  bool done = H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0 &&
              write_dataset(file, a->name, type, a->rank - 1, dims, a->values);
  H5Tclose(type);
  return done;
}

dvbf_status dv_arrays_write_hdf5(const char *path, const dvbf_array *arrays, size_t count,
                                 dvbf_error *error) {
  dv_hdf5_enter();
  hid_t file = memory_file();
  bool done = file >= 0;
  for (size_t i = 0; i < count && done; i++) done = write_one(file, &arrays[i]);
  dvbf_status status = done ? store(file, path, error) : dv_fail_memory(error, "writing arrays");
  H5Fclose(file);
  dv_hdf5_leave();
  return status;
}
