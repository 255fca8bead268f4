#include "format/hdf5_file.h"

#include "base/file.h"
#include "base/status.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static herr_t look_for_memory(unsigned depth, const H5E_error2_t *error, void *user) {
  bool *found = user;
  (void)depth;
  *found |= error->min_num == H5E_NOSPACE || error->min_num == H5E_CANTALLOC;
  return 0;
}

/* In the place of printing. What HDF5 has no memory for would else be taken for what is not in the file. */
static herr_t notice(hid_t stack, void *user) {
  bool found = false;
  (void)user;
  H5Ewalk2(stack, H5E_WALK_DOWNWARD, look_for_memory, &found);
  if (found) dv_hdf5_fail(ENOMEM);
  return 0;
}

dv_hdf5_printing dv_hdf5_enter(void) {
  dv_hdf5_printing saved = {NULL, NULL};
  pthread_mutex_lock(&lock);
  H5dont_atexit();
  H5Eget_auto2(H5E_DEFAULT, &saved.function, &saved.data);
  H5Eset_auto2(H5E_DEFAULT, notice, NULL);
  return saved;
}

void dv_hdf5_leave(dv_hdf5_printing saved) {
  H5Eset_auto2(H5E_DEFAULT, saved.function, saved.data);
  pthread_mutex_unlock(&lock);
}

hid_t dv_hdf5_timeless(hid_t class) {
  hid_t list = H5Pcreate(class);
  H5Pset_obj_track_times(list, false);
  return list;
}

hid_t dv_hdf5_memory_file(void) {
  enum { GROWTH = 1 << 20 };
  hid_t access_list = H5Pcreate(H5P_FILE_ACCESS), creation = dv_hdf5_timeless(H5P_FILE_CREATE);
  H5Pset_fclose_degree(access_list, H5F_CLOSE_STRONG);
  H5Pset_libver_bounds(access_list, H5F_LIBVER_V18, H5F_LIBVER_V18);
  H5Pset_fapl_core(access_list, GROWTH, false);
  hid_t file = H5Fcreate("memory", H5F_ACC_TRUNC, creation, access_list);
  H5Pclose(creation);
  H5Pclose(access_list);
  return file;
}

bool dv_hdf5_write(hid_t group, const char *name, hid_t type, hid_t stored_type, int rank,
                   const hsize_t *dims, const void *values) {
  hid_t space = H5Screate_simple(rank, dims, NULL), creation = dv_hdf5_timeless(H5P_DATASET_CREATE);
  hid_t id = H5Dcreate2(group, name, stored_type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  bool done = H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
  done &= H5Dclose(id) >= 0;
  H5Pclose(creation);
  H5Sclose(space);
  return done;
}

/* HDF5's handle of a file in memory points to the pointer to its bytes. */
dvbf_status dv_hdf5_store(hid_t file, const char *path, dvbf_error *error) {
  dv_atomic_file out;
  void **bytes;
  bool flushed = H5Fflush(file, H5F_SCOPE_LOCAL) >= 0;
  ssize_t size = flushed ? H5Fget_file_image(file, NULL, 0) : -1;
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
