/* Named arrays to one file whose format follows from the ending of its name (dvbf_arrays_write), and one
 * array from a file (dvbf_numbers_read). */
#include "io/write_arrays.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/archive.h"
#include "io/csv.h"

#include <dvbf/dvbf.h>

#include <string.h>
#include <strings.h>

static const size_t sizes[] = {[DVBF_FLOAT32] = 4, [DVBF_FLOAT64] = 8, [DVBF_UINT32] = 4,
                               [DVBF_INT64] = 8,   [DVBF_UINT8] = 1,   [DVBF_TEXT] = 1};

/* *out = bytes of the values; false on overflow. */
static bool count_bytes(const dvbf_array *a, size_t *out) {
  *out = sizes[a->type];
  for (int i = 0; i < a->rank; i++)
    if (!dv_multiply(*out, a->dims[i], out)) return false;
  return true;
}

size_t dv_array_bytes(const dvbf_array *a) {
  size_t bytes = 0;
  return count_bytes(a, &bytes) ? bytes : 0;
}

uint32_t dv_next_character(const char **at, const char *end) {
  const unsigned char *c = (const unsigned char *)*at;
  size_t left = (size_t)(end - *at);
  if (!left || !*c) return 0;
  int more = *c < 0x80                 ? 0
             : *c >= 0xC2 && *c < 0xE0 ? 1
             : *c >= 0xE0 && *c < 0xF0 ? 2
             : *c >= 0xF0 && *c < 0xF5 ? 3
                                       : -1;
  bool whole = more >= 0 && left > (size_t)more;
  uint32_t value = more <= 0 ? *c : *c & (0x3FU >> more);
  for (int i = 1; whole && i <= more; i++) {
    whole = (c[i] & 0xC0) == 0x80;
    value = value << 6 | (c[i] & 0x3FU);
  }
  bool valid = whole && !(value >= 0xD800 && value < 0xE000) && value < 0x110000;
  *at += valid ? 1 + more : 1;
  return valid ? value : 0xFFFD;
}

static dvbf_status check_array(const dvbf_array *a, const char *path, dvbf_error *error) {
  size_t bytes, types = sizeof sizes / sizeof *sizes;
  if (!a->name || !*a->name || strlen(a->name) > 64 || strpbrk(a->name, "/\\"))
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: cannot hold an array named \"%.64s\"; a name has 1 to 64 characters and no slash",
                   path, a->name ? a->name : "");
  if ((size_t)a->type >= types || a->rank < (a->type == DVBF_TEXT) || a->rank > DVBF_MAX_RANK ||
      !count_bytes(a, &bytes) || (bytes && !a->values))
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: the array %s cannot be written; it needs a known type, values, and a rank in [0, "
                   "%d]",
                   path, a->name, DVBF_MAX_RANK);
  return DVBF_OK;
}

static dvbf_status check_arrays(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error) {
  dvbf_status status =
      count ? DVBF_OK : dv_fail(error, DVBF_ARGUMENT, "%.200s: there are no arrays to write", path);
  for (size_t i = 0; i < count && !status; i++) {
    status = check_array(&arrays[i], path, error);
    for (size_t j = 0; j < i && !status; j++)
      if (!strcmp(arrays[i].name, arrays[j].name))
        status =
            dv_fail(error, DVBF_ARGUMENT, "%.200s: cannot hold two arrays named %s", path, arrays[i].name);
  }
  return status;
}

static bool ends_in(const char *path, const char *ending) {
  size_t length = strlen(path), n = strlen(ending);
  return length > n && !strcasecmp(path + length - n, ending);
}

typedef dvbf_status write_fn(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error);

static const struct {
  const char *ending;
  write_fn *write;
} formats[] = {
    {".h5", dv_arrays_write_hdf5},
    {".hdf5", dv_arrays_write_hdf5},
    {".npz", dv_arrays_write_npz},
    {".mat", dv_arrays_write_mat},
};

static write_fn *writer_of(const char *path) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (ends_in(path, formats[i].ending)) return formats[i].write;
  return NULL;
}

dvbf_status dvbf_arrays_check_path(const char *path, dvbf_error *error) {
  if (writer_of(path)) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "%.200s: its ending names no format; .h5 or .hdf5 makes it HDF5, .npz an archive for NumPy, "
                 ".mat a file for MATLAB",
                 path);
}

dvbf_status dvbf_arrays_write(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error) {
  dvbf_status status = dvbf_arrays_check_path(path, error);
  if (!status) status = check_arrays(path, arrays, count, error);
  return status ? status : writer_of(path)(path, arrays, count, error);
}

/* ---- Reading one array ---- */

/* All rows of the columns of a role. */
static dvbf_status read_columns(float **out, size_t *count, const dv_csv_table *t, dv_role role,
                                dvbf_error *error) {
  const dv_csv_rows *rows = &t->splits[DV_CSV_WHOLE];
  *count = rows->count * t->columns.chosen[role];
  if (*count) *out = dv_csv_table_values(t, DV_CSV_WHOLE, role);
  return *out || !*count ? DVBF_OK : dv_fail_memory(error, "reading an array");
}

dvbf_status dvbf_numbers_read(float **out, size_t *count, const char *path, const char *name,
                              dvbf_error *error) {
  dv_archive *archive = NULL;
  dvbf_settings *how = NULL;
  float *values = NULL;
  size_t found = 0;
  dvbf_status status = dvbf_settings_new(&how, "data", error);
  if (!status) status = dv_archive_open(&archive, path, dv_settings_data(how, error), error);
  const dv_array *array = status ? NULL : dv_archive_find(archive, name);
  if (array && (array->trouble || array->text))
    status = dv_fail(error, DVBF_FORMAT, "%.300s: %s %s", path, name,
                     array->trouble ? array->trouble : "holds text and no numbers");
  if (array && !status) {
    values = dv_calloc(array->elements, sizeof *values);
    found = array->elements;
    status = values ? dv_archive_read(archive, array, 0, found, values, NULL, error)
                    : dv_fail_memory(error, "reading an array");
  }
  for (int role = 0; !status && archive->table && role <= DV_ROLE_STATE; role++)
    if (!strcmp(name, (const char *const[]){"x", "u", "state"}[role]))
      status = read_columns(&values, &found, archive->table, role, error);
  dv_archive_release(archive);
  dvbf_settings_free(how);
  if (status) {
    dv_free(values);
    return status;
  }
  *out = values;
  *count = found;
  return DVBF_OK;
}
