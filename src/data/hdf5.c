/* Writes data sets as HDF5 files. */
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

#include <errno.h>
#include <hdf5.h>
#include <string.h>

static const char *const split_names[] = {"train", "valid", "test"};

/* HDF5 prints its failures unless told not to; the caller's own choice is put back afterwards. Where it found
 * a damaged file it would also complain when the process ends, so it is told not to act then; a program that
 * started HDF5 before us keeps its own way. */
typedef struct printing {
  H5E_auto2_t function;
  void *data;
} printing;

static printing silence(void) {
  printing saved = {NULL, NULL};
  H5dont_atexit();
  H5Eget_auto2(H5E_DEFAULT, &saved.function, &saved.data);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  return saved;
}

static void restore(printing saved) {
  H5Eset_auto2(H5E_DEFAULT, saved.function, saved.data);
}

/* HDF5 would store the time of writing: without it the same data make the same bytes. */
static hid_t timeless(hid_t class) {
  hid_t list = H5Pcreate(class);
  H5Pset_obj_track_times(list, false);
  return list;
}

static bool write_array(hid_t group, const char *name, hid_t type, hid_t stored_type, int rank,
                        const hsize_t *dims /* [rank] */, const void *values) {
  hid_t space = H5Screate_simple(rank, dims, NULL), creation = timeless(H5P_DATASET_CREATE);
  hid_t id = H5Dcreate2(group, name, stored_type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  bool done = H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
  done &= H5Dclose(id) >= 0;
  H5Pclose(creation);
  H5Sclose(space);
  return done;
}

static bool write_floats(hid_t group, const char *name, int rank, const hsize_t *dims, const float *values) {
  return write_array(group, name, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, rank, dims, values);
}

static bool write_names(hid_t group, hsize_t count, char (*names)[32] /* [count] */) {
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &count, NULL);
  H5Tset_size(type, sizeof *names);
  hid_t attribute =
      H5Acreate_by_name(group, "state", "names", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  bool done = H5Awrite(attribute, type, names) >= 0;
  done &= H5Aclose(attribute) >= 0;
  H5Sclose(space);
  H5Tclose(type);
  return done;
}

/* s is laid out [count][steps]. */
static bool write_split(hid_t file, const char *name, const dvbf_sequences *s, const dvbf_data *data) {
  hid_t creation = timeless(H5P_GROUP_CREATE);
  hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, creation, H5P_DEFAULT);
  hsize_t columns[] = {s->count, s->steps, s->n_x};
  hsize_t pixels[] = {s->count, s->steps, data->image_height, data->image_width};
  bool image = data->image_height;
  bool done = write_floats(group, "x", image ? 4 : 3, image ? pixels : columns, s->x);
  columns[2] = s->n_u;
  if (s->n_u) done = done && write_floats(group, "u", 3, columns, s->u);
  columns[2] = s->n_s;
  if (s->n_s)
    done = done && write_floats(group, "state", 3, columns, s->state) &&
           write_names(group, s->n_s, data->state_names);
  if (s->length)
    done = done && write_array(group, "length", H5T_NATIVE_UINT32, H5T_STD_U32LE, 1, columns, s->length);
  done &= H5Gclose(group) >= 0;
  H5Pclose(creation);
  return done;
}

/* Makes the file in memory; the caller closes it. HDF5 cannot give up a file on a full disk: it crashes when
 * the process ends. The format of HDF5 1.8 guards its structure by checksums, and everything in use reads it.
 */
static bool build_file(const dvbf_data *data, hid_t *file) {
  enum { GROWTH = 1 << 20 };
  const dvbf_sequences *splits[] = {&data->train, &data->valid, &data->test};
  hid_t access_list = H5Pcreate(H5P_FILE_ACCESS), creation = timeless(H5P_FILE_CREATE);
  H5Pset_fclose_degree(access_list, H5F_CLOSE_STRONG);
  H5Pset_libver_bounds(access_list, H5F_LIBVER_V18, H5F_LIBVER_V18);
  H5Pset_fapl_core(access_list, GROWTH, false);
  *file = H5Fcreate("memory", H5F_ACC_TRUNC, creation, access_list);
  bool done = *file >= 0;
  for (size_t i = 0; done && i < 3; i++) {
    dvbf_sequences copy = {0};
    bool scattered = splits[i]->start || splits[i]->source;
    done = !scattered || !dvbf_sequences_copy(&copy, splits[i], 0, splits[i]->count, NULL);
    done = done && write_split(*file, split_names[i], scattered ? &copy : splits[i], data);
    dvbf_sequences_free(&copy);
  }
  done = done && H5Fflush(*file, H5F_SCOPE_LOCAL) >= 0;
  H5Pclose(creation);
  H5Pclose(access_list);
  return done;
}

/* Copies the file from memory, where HDF5's handle points to the pointer to its bytes. */
static dvbf_status store_file(hid_t file, const char *path, dvbf_error *error) {
  dv_atomic_file out;
  void **bytes;
  ssize_t size = H5Fget_file_image(file, NULL, 0);
  if (size < 0 || H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&bytes) < 0)
    return dv_fail(error, DVBF_IO, "%.200s: cannot be written: HDF5 failed to finish it", path);
  dvbf_status status = dv_atomic_open(&out, path, error);
  if (status) return status;
  if (fwrite(*bytes, 1, (size_t)size, out.stream) == (size_t)size) return dv_atomic_commit(&out, error);
  int reason = errno;
  dv_atomic_abandon(&out);
  return dv_fail(error, DVBF_IO, "%.200s: cannot be written: %s; what was there before is unchanged", path,
                 strerror(reason));
}

dvbf_status dvbf_data_write(const dvbf_data *data, const char *path, dvbf_error *error) {
  if (!data->valid.count || !data->test.count)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: cannot be written: %s has no sequences; each split needs one", path,
                   data->valid.count ? "test" : "valid");
  dvbf_status status = dv_data_validate(data, "data to be written", error);
  if (status) return status;
  printing saved = silence();
  hid_t file;
  if (build_file(data, &file))
    status = store_file(file, path, error);
  else
    status = dv_fail_memory(error, "writing data");
  H5Fclose(file);
  restore(saved);
  return status;
}
