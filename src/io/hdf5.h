/* The lock and the error handling of HDF5, for reading and writing. */
#pragma once

#include <dvbf/dvbf.h>
#include <hdf5.h>

/* HDF5 is not thread-safe, so only one thread uses it at a time. It prints its failures unless that is
 * switched off; the caller's choice is restored afterwards. After a damaged file it would also complain when
 * the process ends, so its exit handler is switched off too, unless the program used HDF5 before us. */
void dv_hdf5_enter(void);
void dv_hdf5_leave(void);
