#include "train/about.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

/* ---- Writing ---- */

/* Adds a list of texts, `apart` bytes from each other; NULL: there are none. */
static void put_texts(json_t *to, const char *name, const char *texts, size_t count, size_t apart) {
  json_t *list = texts ? json_array() : NULL;
  for (size_t i = 0; list && i < count; i++) {
    json_t *text = json_stringn(texts + i * apart, strnlen(texts + i * apart, apart));
    json_array_append_new(list, text ? text : json_string("")); /* what is no UTF-8 has no name */
  }
  if (list) json_object_set_new(to, name, list);
}

dvbf_status dv_about_write(const dvbf_data *d, const char *folder, dvbf_error *error) {
  dv_path path;
  dv_atomic_file file;
  json_t *all = json_pack("{s:I, s:I}", "n_x", (json_int_t)d->train.n_x, "n_u", (json_int_t)d->train.n_u);
  if (!all) return dv_fail_memory(error, "describing the data of a run");
  if (d->image_height)
    json_object_set_new(all, "image",
                        json_pack("[I, I]", (json_int_t)d->image_height, (json_int_t)d->image_width));
  if (d->image_height && dv_image_channels(d) > 1)
    json_object_set_new(all, "channels", json_integer((json_int_t)d->image_channels));
  put_texts(all, "x_names", (const char *)d->x_names, d->train.n_x, sizeof *d->x_names);
  put_texts(all, "x_units", (const char *)d->x_units, d->train.n_x, sizeof *d->x_units);
  put_texts(all, "u_names", (const char *)d->u_names, d->train.n_u, sizeof *d->u_names);
  put_texts(all, "u_units", (const char *)d->u_units, d->train.n_u, sizeof *d->u_units);
  if (d->sample_time > 0) json_object_set_new(all, "sample_time", json_real(d->sample_time));
  if (d->dates) json_object_set_new(all, "dates", json_true());
  char *text = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
  json_decref(all);
  if (!text) return dv_fail_memory(error, "describing the data of a run");
  dv_join(path, folder, DV_RUN_DATA);
  dvbf_status status = dv_atomic_open(&file, path, error);
  if (!status) fputs(text, file.stream);
  if (!status) putc('\n', file.stream);
  free(text);
  return status ? status : dv_atomic_commit(&file, error);
}

/* ---- Reading ---- */

/* *out = [count] texts of `apart` bytes, NULL where the file has none; false: memory is short. */
static bool take_texts(void **out, const json_t *all, const char *name, size_t count, size_t apart) {
  const json_t *list = json_object_get(all, name);
  if (json_array_size(list) != count || !count) return true;
  char *texts = dv_calloc(count, apart);
  if (!texts) return false;
  for (size_t i = 0; i < count; i++) {
    const char *text = json_string_value(json_array_get(list, i));
    size_t length = text ? strnlen(text, apart - 1) : 0;
    if (length) memcpy(texts + i * apart, text, length);
  }
  *out = texts;
  return true;
}

static size_t size_of(const json_t *number) {
  json_int_t value = json_integer_value(number);
  return value > 0 && value < 1 << 30 ? (size_t)value : 0;
}

static bool take_all(dvbf_data *d, const json_t *all) {
  const json_t *image = json_object_get(all, "image");
  size_t n_x = d->train.n_x = size_of(json_object_get(all, "n_x"));
  size_t n_u = d->train.n_u = size_of(json_object_get(all, "n_u")), pixels, values;
  size_t channels = size_of(json_object_get(all, "channels"));
  size_t height = size_of(json_array_get(image, 0)), width = size_of(json_array_get(image, 1));
  if (!channels) channels = 1;
  if (dv_multiply(height, width, &pixels) && dv_multiply(pixels, channels, &values) && values &&
      values == n_x)
    d->image_height = height, d->image_width = width, d->image_channels = channels;
  d->sample_time = json_real_value(json_object_get(all, "sample_time"));
  d->dates = json_is_true(json_object_get(all, "dates"));
  return take_texts((void **)&d->x_names, all, "x_names", n_x, sizeof *d->x_names) &&
         take_texts((void **)&d->x_units, all, "x_units", n_x, sizeof *d->x_units) &&
         take_texts((void **)&d->u_names, all, "u_names", n_u, sizeof *d->u_names) &&
         take_texts((void **)&d->u_units, all, "u_units", n_u, sizeof *d->u_units);
}

/* NULL without a failure: not JSON. */
static json_t *read_file(const char *path, dvbf_status *status, dvbf_error *error) {
  json_error_t reason;
  FILE *file = dv_open_file(path, error);
  if (!file) {
    *status = DVBF_IO;
    return NULL;
  }
  json_t *all = json_loadf(file, 0, &reason);
  if (ferror(file)) *status = dv_fail(error, DVBF_IO, "%.300s: cannot be read: %s", path, strerror(errno));
  fclose(file);
  return all;
}

dvbf_status dvbf_run_data(dvbf_data **out, const char *folder, dvbf_error *error) {
  dv_path path;
  dv_join(path, folder, DV_RUN_DATA);
  dvbf_data *data = dv_calloc(1, sizeof *data);
  if (!data) return dv_fail_memory(error, "reading what a run knows of its data");
  dvbf_status status = DVBF_OK;
  json_t *all = dv_exists(path) ? read_file(path, &status, error) : json_object();
  if (!status && !json_is_object(all))
    status = dv_fail(error, DVBF_FORMAT, "%.300s: is not what training writes; remove it", path);
  if (!status && !take_all(data, all)) status = dv_fail_memory(error, "reading what a run knows of its data");
  json_decref(all);
  if (status)
    dvbf_data_free(data);
  else
    *out = data;
  return status;
}
