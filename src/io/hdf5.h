/* Shared by reading and writing HDF5 files: error handling, files in memory, and a driver for open
 * descriptors. */
#ifndef DV_IO_HDF5_H
#define DV_IO_HDF5_H

#include <dvbf/dvbf.h>
#include <hdf5.h>

/* HDF5 is not thread-safe, so only one thread uses it at a time. It prints its failures unless that is
 * switched off; the caller's choice is restored afterwards. After a damaged file it would also complain when
 * the process ends, so its exit handler is switched off too, unless the program used HDF5 before us. */
typedef struct dv_hdf5_printing {
  H5E_auto2_t function;
  void *data;
} dv_hdf5_printing;
dv_hdf5_printing dv_hdf5_enter(void);
void dv_hdf5_leave(dv_hdf5_printing saved);

/* A driver of HDF5 that reads from an open descriptor, for as long as it is registered; negative on failure.
 * dv_hdf5_open_descriptor opens a file by it. */
hid_t dv_hdf5_driver(void);
hid_t dv_hdf5_open_descriptor(hid_t driver, int descriptor);
/* The errno with which the system refused such a driver a read, or the library memory, since the last call;
 * 0: none. The library skips objects that it cannot read. */
int dv_hdf5_failure(void);
void dv_hdf5_fail(int reason);

/* A creation list of that class that stores no time of writing, so that the same data give the same bytes. */
hid_t dv_hdf5_timeless(hid_t class);

/* A file in memory; negative on failure. HDF5 cannot give up a file on a full disk: it would crash when the
 * process ends. The format is that of HDF5 1.8, which has checksums and which all current versions read. */
hid_t dv_hdf5_memory_file(void);
bool dv_hdf5_write(hid_t group, const char *name, hid_t type, hid_t stored_type, int rank,
                   const hsize_t *dims /* [rank] */, const void *values);
/* Copies a file in memory to `path`, atomically. The caller closes it. */
dvbf_status dv_hdf5_store(hid_t file, const char *path, dvbf_error *error);

#endif
