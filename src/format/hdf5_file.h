/* What all that writes HDF5 shares, and the quiet that reading needs too. */
#ifndef DV_HDF5_FILE_H
#define DV_HDF5_FILE_H

#include <dvbf/dvbf.h>
#include <hdf5.h>

/* HDF5 is not made for threads: one at a time is in it. It prints its failures unless told not to; the
 * caller's own choice is put back afterwards. Where it found a damaged file it would also complain when the
 * process ends, so it is told not to act then; a program that started HDF5 before us keeps its own way. */
typedef struct dv_hdf5_printing {
  H5E_auto2_t function;
  void *data;
} dv_hdf5_printing;
dv_hdf5_printing dv_hdf5_enter(void);
void dv_hdf5_leave(dv_hdf5_printing saved);

/* A creation list of that class. HDF5 would store the time of writing: without it the same data make the same
 * bytes. */
hid_t dv_hdf5_timeless(hid_t class);

/* A file in memory, negative on failure. HDF5 cannot give up a file on a full disk: it crashes when the
 * process ends. The format of HDF5 1.8 guards its structure by checksums, and everything in use reads it. */
hid_t dv_hdf5_memory_file(void);
bool dv_hdf5_write(hid_t group, const char *name, hid_t type, hid_t stored_type, int rank,
                   const hsize_t *dims /* [rank] */, const void *values);
/* Copies a file in memory to `path`, atomically. The caller closes it. */
dvbf_status dv_hdf5_store(hid_t file, const char *path, dvbf_error *error);

#endif
