/* Files of HDF5 that are already open. The library's own drivers open files by their path, which a process
 * that parses what strangers wrote must not be able to. */
#include "base/memory.h"
#include "format/hdf5_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct open_file {
  H5FD_t base; /* of the library */
  int descriptor;
  haddr_t used, size; /* what the library takes for the end, and the end */
} open_file;

static int failure; /* errno of a read, or ENOMEM; one thread at a time uses HDF5 */

void dv_hdf5_fail(int reason) {
  failure = reason;
}

int dv_hdf5_failure(void) {
  int last = failure;
  failure = 0;
  return last;
}

/* The name is the number of the descriptor, which stays the caller's. */
static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access_list, haddr_t most) {
  struct stat about;
  int descriptor = (int)strtol(name, NULL, 10);
  (void)access_list, (void)most;
  if (flags & (H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC) || fstat(descriptor, &about)) return NULL;
  open_file *f = dv_calloc(1, sizeof *f);
  if (!f) return NULL;
  f->descriptor = descriptor;
  f->size = (haddr_t)about.st_size;
  return &f->base;
}

static herr_t driver_close(H5FD_t *file) {
  dv_free(file);
  return 0;
}

/* The library collects small reads, as from its usual driver. */
static herr_t driver_query(const H5FD_t *file, unsigned long *flags) {
  (void)file;
  if (flags) *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE;
  return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type) {
  (void)type;
  return ((const open_file *)file)->used;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t end) {
  (void)type;
  ((open_file *)file)->used = end;
  return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type) {
  (void)type;
  return ((const open_file *)file)->size;
}

/* What lies behind the end is 0, as the library's usual driver has it. */
static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t list, haddr_t at, size_t size, void *to) {
  open_file *f = (open_file *)file;
  unsigned char *out = to;
  (void)type, (void)list;
  while (size) {
    ssize_t got = pread(f->descriptor, out, size, (off_t)at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      failure = errno;
      return -1;
    }
    if (!got) {
      while (size) out[--size] = 0;
      return 0;
    }
    out += got;
    at += (haddr_t)got;
    size -= (size_t)got;
  }
  return 0;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t list, haddr_t at, size_t size,
                           const void *from) {
  (void)file, (void)type, (void)list, (void)at, (void)size, (void)from;
  return -1;
}

hid_t dv_hdf5_driver(void) {
  static const H5FD_class_t class = {
#ifdef H5FD_CLASS_VERSION
      .version = H5FD_CLASS_VERSION,
      .value = 600, /* above those that The HDF Group gives away */
#endif
      .name = "dvbf_descriptor",
      .maxaddr = (haddr_t)1 << 62,
      .fc_degree = H5F_CLOSE_STRONG,
      .open = driver_open,
      .close = driver_close,
      .query = driver_query,
      .get_eoa = driver_get_eoa,
      .set_eoa = driver_set_eoa,
      .get_eof = driver_get_eof,
      .read = driver_read,
      .write = driver_write,
      .fl_map = H5FD_FLMAP_DICHOTOMY,
  };
  return H5FDregister(&class);
}

hid_t dv_hdf5_open_descriptor(hid_t driver, int descriptor) {
  char name[16];
  hid_t access_list = H5Pcreate(H5P_FILE_ACCESS);
  snprintf(name, sizeof name, "%d", descriptor);
  H5Pset_driver(access_list, driver, NULL);
  H5Pset_fclose_degree(access_list, H5F_CLOSE_STRONG);
  hid_t file = H5Fopen(name, H5F_ACC_RDONLY, access_list);
  H5Pclose(access_list);
  return file;
}
