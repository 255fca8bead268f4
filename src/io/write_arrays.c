/* Named arrays to one file whose format follows from the ending of its name (dvbf_arrays_write), and one
 * array from a file (dvbf_numbers_read). */
#include "io/write_arrays.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/archive.h"
#include "io/csv.h"

#include <dvbf/dvbf.h>

#include <stdio.h>
#include <string.h>

static const size_t sizes[] = {[DVBF_FLOAT32] = 4, [DVBF_FLOAT64] = 8, [DVBF_UINT32] = 4,
                               [DVBF_INT64] = 8,   [DVBF_UINT8] = 1,   [DVBF_TEXT] = 1};

size_t dv_array_bytes(const dvbf_array *a) {
  size_t bytes = sizes[a->type];
  for (int i = 0; i < a->rank; i++)
    if (!dv_multiply(bytes, a->dims[i], &bytes)) return SIZE_MAX;
  return bytes;
}

uint32_t dv_next_character(const char **at, const char *end) {
  const unsigned char *c = (const unsigned char *)*at;
  size_t left = (size_t)(end - *at), n = dv_character(*at, left);
  if (!left || !*c) return 0;
  uint32_t value = n > 1 ? *c & (0x7FU >> n) : n ? *c : 0xFFFD;
  for (size_t i = 1; i < n; i++) value = value << 6 | (c[i] & 0x3FU);
  *at += n ? n : 1;
  return value;
}

static dvbf_status check_array(const dvbf_array *a, const char *path, dvbf_error *error) {
  size_t types = sizeof sizes / sizeof *sizes;
  if (!a->name || !*a->name || strlen(a->name) > 64 || strpbrk(a->name, "/\\"))
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: cannot hold an array named \"%.64s\"; a name has 1 to 64 characters and no slash",
                   path, a->name ? a->name : "");
  if ((size_t)a->type >= types || a->rank < (a->type == DVBF_TEXT) || a->rank > DVBF_MAX_RANK ||
      dv_array_bytes(a) == SIZE_MAX || (dv_array_bytes(a) && !a->values))
    return dv_fail(
        error, DVBF_ARGUMENT,
        "%.200s: the array %s cannot be written; it needs a known type, values, and a rank in [0, %d]", path,
        a->name, DVBF_MAX_RANK);
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

/* Writers by ending; a format with another ending is one row more. */
static const struct {
  const char *endings;
  dvbf_status (*write)(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error);
} writers[] = {
    {".h5 .hdf5", dv_arrays_write_hdf5}, {".npz", dv_arrays_write_npz}, {".mat", dv_arrays_write_mat}};
enum { WRITERS = sizeof writers / sizeof *writers };

const char *dv_writers_listed(const char *further, char out[DVBF_FORMATS]) {
  snprintf(out, DVBF_FORMATS, "%s", further);
  for (size_t i = 0; i < WRITERS; i++)
    dv_append(out, DVBF_FORMATS, "%s%s", *out ? " " : "", writers[i].endings);
  return dv_text_alternatives(out, DVBF_FORMATS);
}

static size_t writer_of(const char *path) {
  size_t i = 0;
  while (i < WRITERS && !dv_text_ends_in(path, writers[i].endings)) i++;
  return i;
}

dvbf_status dvbf_arrays_check_path(const char *path, dvbf_error *error) {
  char endings[DVBF_FORMATS];
  if (writer_of(path) < WRITERS) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT, "%.200s: its ending is not that of a known format; use %s", path,
                 dv_writers_listed("", endings));
}

dvbf_status dvbf_arrays_write(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error) {
  dvbf_status status = dvbf_arrays_check_path(path, error);
  if (!status) status = check_arrays(path, arrays, count, error);
  return status ? status : writers[writer_of(path)].write(path, arrays, count, error);
}

dvbf_status dvbf_numbers_read(float **out, size_t *count, const char *path, const char *name,
                              dvbf_error *error) {
  dv_archive *archive = NULL;
  dvbf_settings *how = NULL;
  float *values = NULL;
  size_t found = 0;
  dvbf_status status = dvbf_settings_new(&how, "data", error);
  if (!status) status = dv_archive_open(&archive, path, dv_settings_data(how, error), error);
  const dv_named_array *array = status ? NULL : dv_archive_find(archive, name);
  if (array && (array->trouble || array->text))
    status = dv_fail(error, DVBF_FORMAT, "%.300s: %s %s", path, name,
                     array->trouble ? array->trouble : "holds text and no numbers");
  if (array && !status) {
    values = dv_calloc(array->elements, sizeof *values);
    found = array->elements;
    status = values ? dv_archive_read(archive, array, 0, found, DV_FLOATS(values), error)
                    : dv_fail_memory(error, "reading an array");
  }
  const dv_csv_table *table = status ? NULL : archive->table;
  for (int role = 0; table && role <= DV_ROLE_STATE; role++) {
    if (strcmp(name, (const char *const[]){"x", "u", "state"}[role]) != 0) continue;
    found = table->splits[DV_CSV_WHOLE].count * table->columns.chosen[role];
    if (found) values = dv_csv_table_values(table, DV_CSV_WHOLE, role);
    if (found && !values) status = dv_fail_memory(error, "reading an array");
  }
  dv_archive_release(archive);
  dvbf_settings_free(how);
  if (status)
    dv_free(values);
  else
    *out = values, *count = found;
  return status;
}
