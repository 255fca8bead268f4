/* A file of data as a set of named arrays, whatever its format. */
#ifndef DV_ARCHIVE_H
#define DV_ARCHIVE_H

#include "base/settings.h"

enum { DV_RANK = 8, DV_NAME = 512 };
#define DV_MAX_ELEMENTS ((size_t)1 << 40) /* far beyond any memory, far below an overflow */

typedef struct dv_array {
  char *name; /* path inside the file, as train/x */
  int rank;
  size_t dims[DV_RANK]; /* [rank], each 1 or more */
  size_t elements;
  bool real;           /* floating-point numbers */
  bool bytes;          /* unsigned integers of 8 bits, which may be pixels */
  bool text;           /* strings, for `text` below alone */
  bool seekable;       /* a part can be read without what stands before it */
  const char *trouble; /* why it cannot be used, to stand behind its name; NULL: nothing */
  size_t place;        /* its number in the file's format */
} dv_array;

typedef struct dv_archive dv_archive;

/* Whoever reads a format fills the functions and puts its own data behind this. */
struct dv_archive {
  char path[512];
  dv_array *arrays; /* [count] in the order of their names, in which 9 stands before 10 */
  size_t count, room;
  bool table; /* columns of a CSV, which are x, u, state and length already */
  unsigned references;
  /* Elements first .. first + n - 1 in C order into `floats` or, where that is NULL, `doubles`. Several
   * threads may do so at once where the array is seekable. Returns NULL, or the remedy when it fails. */
  const char *(*read)(dv_archive *a, const dv_array *array, size_t first, size_t n, float *floats,
                      double *doubles);
  /* Strings of an array of text or, for an array of numbers, those that name its columns; false: there are
   * none, or not `count` of them. NULL where the format has no text. */
  bool (*text)(dv_archive *a, const dv_array *array, size_t count, char (*out)[32]);
  bool (*named)(dv_archive *a, const dv_array *array); /* whether there are names of columns */
  void (*close)(dv_archive *a);                        /* frees all but the arrays and itself */
};

/* Opens a file by its content. `how` chooses the columns of a CSV. */
dvbf_status dv_archive_open(dv_archive **out, const char *path, const dv_data_settings *how,
                            dvbf_error *error);
dv_archive *dv_archive_keep(dv_archive *a); /* one more user */
void dv_archive_release(dv_archive *a);     /* one less; the last one closes */

const dv_array *dv_archive_find(const dv_archive *a, const char *name);
/* The shape as text: [500, 15, 256] */
const char *dv_array_shape(const dv_array *array, char *out, size_t size);
/* Calls `read`, but for elements that the array does not have. */
const char *dv_array_read(dv_archive *a, const dv_array *array, size_t first, size_t n, float *floats,
                          double *doubles);
/* Reads with a sentence on failure. */
dvbf_status dv_archive_read(dv_archive *a, const dv_array *array, size_t first, size_t n, float *floats,
                            double *doubles, dvbf_error *error);

/* ---- For the formats ---- */

/* A new archive of `size` bytes, of which dv_archive is the first part; NULL when memory is short. */
dv_archive *dv_archive_new(size_t size, const char *path);
/* Adds an array, whose name is copied and whose elements are counted here: what is too large gets into
 * trouble. Names that are too long are left out. */
dvbf_status dv_archive_add(dv_archive *a, const dv_array *array, dvbf_error *error);

dvbf_status dv_hdf5_open(dv_archive **out, const char *path, dvbf_error *error);
dvbf_status dv_npy_open(dv_archive **out, const char *path, int descriptor, dvbf_error *error);
dvbf_status dv_npz_open(dv_archive **out, const char *path, dvbf_error *error);
dvbf_status dv_csv_open(dv_archive **out, const char *path, int descriptor, const dv_data_settings *how,
                        dvbf_error *error);
/* Whether HDF5 knows the file as its own. */
bool dv_hdf5_recognises(const char *path);

#endif
