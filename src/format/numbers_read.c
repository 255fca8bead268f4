/* One named array of a file, as plain numbers. */
#include "base/memory.h"
#include "base/status.h"
#include "format/archive.h"

#include <dvbf/dvbf.h>

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
