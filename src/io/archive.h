/* An archive: a data file of any format as a set of named arrays; what formats implement, and what readers
 * use. */
#pragma once

#include "settings_tables.h"

#include <dvbf/dvbf.h>

#include <stdbool.h>
#include <stddef.h>

enum { DV_RANK = 8, DV_ARRAY_NAME = 512 };
#define DV_MAX_ELEMENTS ((size_t)1 << 40) /* more than any memory holds, but far from an overflow */

#define DV_WHOLE SIZE_MAX /* dv_named_array.unpacked of one unpacked whole, until dv_archive_add counts */

typedef struct dv_named_array {
  const char *name; /* path inside the file, as train/x */
  int rank;
  size_t dims[DV_RANK]; /* [rank], each 1 or more */
  size_t elements;
  bool real;           /* floating-point numbers */
  bool bytes;          /* unsigned integers of 8 bits, which may be pixels */
  bool text;           /* strings, which only `text` below reads */
  bool seekable;       /* a part can be read without reading what comes before it */
  bool fortran;        /* the file has the first index run fastest; `read` then gets all values at once */
  bool swapped;        /* the same where the file has the last two dimensions in the other order */
  size_t unpacked;     /* bytes that must be unpacked at once to read of it; 0: it is not compressed */
  const char *trouble; /* why it cannot be used, to follow its name; NULL: it can. dv_archive_add copies it */
  size_t place;        /* its number in the file's format */
  uint64_t plain;      /* where float32 (`real`) or `bytes` are as in memory; 0: nowhere */
  void *ordered; /* [elements] of `width` bytes in C order, where the file has another and they were read */
  size_t width;
} dv_named_array;

typedef enum dv_role { DV_ROLE_X, DV_ROLE_U, DV_ROLE_STATE, DV_ROLE_MASK, DV_ROLE_LENGTH, DV_ROLES } dv_role;
/* The name of the setting that chooses a role's arrays or columns, as outputs, and its text. */
const char *dv_role_setting(dv_role role);
const char *dv_role_text(const dv_data_settings *how, dv_role role);

typedef struct dv_archive dv_archive;

/* Where numbers are read to: floats or doubles, by the bytes of one. */
typedef struct dv_out {
  void *at;
  size_t width;
} dv_out;
#define DV_FLOATS(to) ((dv_out){(to), sizeof(float)})
#define DV_DOUBLES(to) ((dv_out){(to), sizeof(double)})

/* Strings of an array: those of one of text, or the names and units of the columns of one of numbers. */
typedef enum dv_strings { DV_STRINGS_VALUES, DV_STRINGS_NAMES, DV_STRINGS_UNITS } dv_strings;
typedef enum dv_found { DV_FOUND_NONE, DV_FOUND, DV_FOUND_UNREADABLE } dv_found;

/* How files of a format are recognised, opened and read: one row of the table in archive.c. */
typedef struct dv_format {
  const char *name, *endings; /* as "NPZ" and ".npz", several apart by a blank */
  bool sandboxed;             /* a foreign library parses it, in a process of its own */
  /* By the first `size` bytes, 16 unless the file is shorter. */
  bool (*recognises)(int descriptor, const unsigned char *bytes, size_t size);
  size_t archive; /* bytes of its archive, which begins with a dv_archive */
  /* Lists the arrays, or reads the table. A format that goes on reading duplicates the descriptor. */
  dvbf_status (*open)(dv_archive *a, int descriptor, const dv_data_settings *how, dvbf_error *error);
  /* Reads elements first .. first + n - 1 as they are stored. Several threads may read a seekable array at
   * once. Returns NULL or, after a failure, the remedy. */
  const char *(*read)(dv_archive *a, const dv_named_array *array, size_t first, size_t n, dv_out out);
  /* Reads `count` strings into out [count][size]. NULL if the format has none. */
  dv_found (*strings)(dv_archive *a, const dv_named_array *array, dv_strings which, size_t count, size_t size,
                      char *out);
  /* An array's floats in memory, valid as long as the archive; NULL: it is not in memory. */
  const float *(*floats)(dv_archive *a, const dv_named_array *array);
  /* Of several files: rows (of the first dimension) in piece `number` of an array, over the files that have
   * it, and the file's path; 0: there are no more. */
  size_t (*piece)(const dv_archive *a, const dv_named_array *array, size_t number, const char **path);
  void (*close)(dv_archive *a); /* frees all but the arrays, the table and itself */
} dv_format;

struct dv_archive {
  const dv_format *format;
  char path[512];
  dv_named_array *arrays; /* [count] sorted by name, with 9 before 10 */
  size_t count;
  struct dv_csv_table *table; /* of a CSV file, which has no arrays (csv.h); NULL: it has arrays */
  unsigned references;
  size_t files;       /* that it was joined of; 0: it is one file */
  char (*notes)[256]; /* [n_notes] sentences for the user */
  size_t n_notes;
  const char *lost; /* why nothing more can be parsed of it; NULL: it can */
  dvbf_use *uses;   /* [n_uses] use of each part of the file */
  size_t n_uses;
  bool forgot; /* a note or a use, for want of memory */
};

/* Adds a note, or the use of a part of the file. If memory is short, `forgot` is set. */
__attribute__((format(printf, 2, 3))) void dv_archive_note(dv_archive *a, const char *format, ...);
void dv_archive_use(dv_archive *a, const char *name, const char *as);

/* Arrays of the caller as an archive; their values must stay as they are. Release *out after a failure too.
 */
struct dvbf_array;
dvbf_status dv_archive_of(dv_archive **out, const struct dvbf_array *arrays, size_t count, dvbf_error *error);
/* Swaps steps and columns of the arrays of the highest rank: those with fewer dimensions have no columns. */
void dv_archive_transpose(dv_archive *a);
/* Opens a file by its content. `how` chooses the columns of a CSV. */
dvbf_status dv_archive_open(dv_archive **out, const char *path, const dv_data_settings *how,
                            dvbf_error *error);
/* Files, folders and patterns with * and ? as one archive: in the order given and by name within a folder or
 * pattern, with 9 before 10. Release *out after a failure too. */
dvbf_status dv_archive_open_all(dv_archive **out, const char *const *given, size_t count,
                                const dv_data_settings *how, dvbf_error *error);
dv_archive *dv_archive_keep(dv_archive *a); /* one more user */
void dv_archive_release(dv_archive *a);     /* drops a reference; the last one closes the archive */

/* The order of names: by characters, with numbers in them compared as numbers. */
int dv_compare_names(const char *a, const char *b);
/* The beginning of a path up to and with the first folder whose name ends in a number, as data/demo_7; 0:
 * none does. */
size_t dv_episode_length(const char *path);
/* The same without the digits at its end. */
size_t dv_family_length(const char *path, size_t length);
const dv_named_array *dv_archive_find(const dv_archive *a, const char *name);
/* The shape as text: [500, 15, 256] */
const char *dv_array_shape(const dv_named_array *array, char *out, size_t size);
/* Calls `strings` if the format has it. */
dv_found dv_array_strings(dv_archive *a, const dv_named_array *array, dv_strings which, size_t count,
                          size_t size, char *out);
/* Elements in C order; refuses those outside of the array. Only one thread may read an array that the file
 * has in another order. */
const char *dv_array_read(dv_archive *a, const dv_named_array *array, size_t first, size_t n, dv_out out);
/* Values in C order from those that are stored, `size` bytes each. */
void dv_array_reorder(unsigned char *to, const unsigned char *from, const dv_named_array *array, size_t size);
/* The same as dv_array_read, with a message after a failure. */
dvbf_status dv_archive_read(dv_archive *a, const dv_named_array *array, size_t first, size_t n, dv_out out,
                            dvbf_error *error);

/* The failure of a file: its path, a colon, and what is wrong with it. The value is DVBF_FORMAT. */
#define dv_fail_file(error, path, ...) (dv_report_file((error), (path), __VA_ARGS__), DVBF_FORMAT)
void dv_report_file(dvbf_error *error, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- For implementations of formats ---- */

/* An archive that is still to be opened; NULL if there is no memory. */
dv_archive *dv_archive_new(const dv_format *format, const char *path);
/* Adds an array; copies its name and counts its elements. An array that is too large gets a `trouble`. One
 * whose name is too long is left out. The trouble dv_no_memory is a failure. */
dvbf_status dv_archive_add(dv_archive *a, const dv_named_array *array, dvbf_error *error);

/* After the last one. */
dvbf_status dv_archive_sort(dv_archive *a, dvbf_error *error);

/* A vector of MATLAB, which has two dimensions, gets one; a number none. */
void dv_array_squeeze(dv_named_array *array);

extern const char dv_no_memory[];

/* A row of the table each; the format of a text comes last. */
extern const dv_format dv_format_npy, dv_format_npz, dv_format_matlab, dv_format_hdf5, dv_format_csv;

/* Opens a file in this process, in the format with this number in the table. `path` is for messages. */
dvbf_status dv_format_open(dv_archive **out, size_t format, const char *path, int descriptor,
                           const dv_data_settings *how, dvbf_error *error);

/* The names, or the endings, of all formats: "NPY, NPZ or CSV". */
const char *dv_formats_listed(bool endings, char out[DVBF_FORMATS]);
/* Whether a name ends as those of a format do. */
bool dv_format_has_ending(const char *name);

/* ---- Numbers as files store them ---- */

typedef enum dv_number {
  DV_FLOAT16,
  DV_FLOAT32,
  DV_FLOAT64,
  DV_INT8,
  DV_INT16,
  DV_INT32,
  DV_INT64,
  DV_UINT8,
  DV_UINT16,
  DV_UINT32,
  DV_UINT64
} dv_number;

size_t dv_number_size(dv_number type);

/* Converts n numbers from bytes, which need no alignment. Each is rounded once. `swapped`: the byte order is
 * not the machine's. */
void dv_numbers_convert(const unsigned char *from, dv_number type, bool swapped, size_t n, dv_out out);
