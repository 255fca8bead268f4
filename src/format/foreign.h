/* Files of formats that are not read, and how to turn them into one that is. */
#ifndef DV_FOREIGN_H
#define DV_FOREIGN_H

#include <stddef.h>

/* By how a file begins: the rest of a sentence that begins with its name; NULL: it is none of those known. */
const char *dv_foreign(const unsigned char *bytes, size_t size);
/* The same for a zip archive, by the name of a file in it. */
const char *dv_foreign_entry(const char *name);
/* For HDF5, by the name of an array in it. */
const char *dv_foreign_array(const char *name);

#endif
