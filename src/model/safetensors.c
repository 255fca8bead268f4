/* Reading and writing safetensors files: named float32 tensors with JSON metadata (dv_tensors_write,
 * dv_tensors_open, dv_tensors_read). Files are written atomically and little-endian on every machine. When
 * reading, sizes, shapes, overlaps and values are checked before anything is used. */
#include "model/safetensors.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 1 << 24 };

dv_tensor dv_tensor_real(const char *name, size_t rows, size_t cols, dvbf_real *at) {
  dv_tensor t = {.rows = rows, .cols = cols, .real = at};
  snprintf(t.name, sizeof t.name, "%s", name);
  return t;
}

dv_tensor dv_tensor_single(const char *name, size_t cols, float *at) {
  dv_tensor t = {.rows = 1, .cols = cols, .single = at};
  snprintf(t.name, sizeof t.name, "%s", name);
  return t;
}

static size_t entries_of(const dv_tensor *t) {
  return t->rows * t->cols;
}

static float value_at(const dv_tensor *t, size_t i) {
  return t->real ? (float)t->real[i] : t->single[i];
}

static bool is_flaw(const dv_tensor *t, float value) {
  return t->infinite ? isnan(value) : !isfinite(value);
}

size_t dv_tensor_flaw(const dv_tensor *t) {
  size_t i = 0;
  while (i < entries_of(t) && !is_flaw(t, value_at(t, i))) i++;
  return i;
}

/* ---- Writing ---- */

bool dv_meta_set(json_t *meta, const char *key, const char *format, ...) {
  DV_PLAIN_NUMBERS;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return !json_object_set_new(meta, key, json_string(text));
}

/* Takes `meta`; NULL when memory is short. */
static json_t *header_of(json_t *meta, const dv_tensor *tensors, int n) {
  json_t *header = json_object();
  size_t at = 0;
  bool done = !json_object_set_new(header, "__metadata__", meta);
  for (int i = 0; done && i < n; i++) {
    size_t end = at + entries_of(&tensors[i]) * sizeof(float);
    done = !json_object_set_new(header, tensors[i].name,
                                json_pack("{s:s, s:[I,I], s:[I,I]}", "dtype", "F32", "shape",
                                          (json_int_t)tensors[i].rows, (json_int_t)tensors[i].cols,
                                          "data_offsets", (json_int_t)at, (json_int_t)end));
    at = end;
  }
  if (done) return header;
  json_decref(header);
  return NULL;
}

/* The header as text, padded with spaces so that the tensors begin at a multiple of 8. */
static char *header_text(json_t *meta, const dv_tensor *tensors, int n) {
  json_t *header = header_of(meta, tensors, n);
  size_t flags = JSON_COMPACT | JSON_PRESERVE_ORDER, length = header ? json_dumpb(header, NULL, 0, flags) : 0;
  size_t padded = (length + 7) / 8 * 8;
  char *out = length ? dv_calloc(padded + 1, 1) : NULL;
  if (out && json_dumpb(header, memset(out, ' ', padded), padded, flags) != length) {
    dv_free(out);
    out = NULL;
  }
  json_decref(header);
  return out;
}

static dvbf_status refuse_flaws(const dv_tensor *tensors, int n, const char *path, dvbf_error *error) {
  for (int i = 0; i < n; i++) {
    size_t at = dv_tensor_flaw(&tensors[i]);
    if (at < entries_of(&tensors[i]))
      return dv_fail(error, DVBF_NUMERIC, "%s: tensor %s holds a value that is not finite at %zu", path,
                     tensors[i].name, at);
  }
  return DVBF_OK;
}

/* Little-endian words, whatever the machine. */
static void put_word(FILE *to, uint64_t word, int bytes) {
  for (int i = 0; i < bytes; i++) putc((int)(word >> (8 * i) & 255), to);
}

static void put_tensor(FILE *to, const dv_tensor *t) {
  unsigned char bytes[4096];
  size_t used = 0;
  for (size_t i = 0; i < entries_of(t); i++) {
    float value = value_at(t, i);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int k = 0; k < 4; k++) bytes[used++] = (unsigned char)(bits >> (8 * k));
    if (used == sizeof bytes || i + 1 == entries_of(t)) {
      fwrite(bytes, 1, used, to);
      used = 0;
    }
  }
}

static void put_all(FILE *to, const char *header, const dv_tensor *tensors, int n) {
  put_word(to, strlen(header), 8);
  fputs(header, to);
  for (int i = 0; i < n; i++) put_tensor(to, &tensors[i]);
}

dvbf_status dv_tensors_write_bytes(void **bytes, size_t *size, json_t *meta, const dv_tensor *tensors, int n,
                                   dvbf_error *error) {
  char *header = header_text(meta, tensors, n), *all = NULL;
  size_t length = 0;
  if (!header) return dv_fail_memory(error, "saving a model");
  dvbf_status status = refuse_flaws(tensors, n, "the model", error);
  FILE *stream = status ? NULL : open_memstream(&all, &length);
  if (stream) put_all(stream, header, tensors, n);
  bool done = stream && !ferror(stream);
  if (stream && fclose(stream)) done = false;
  dv_free(header);
  if (!status && !done) status = dv_fail_memory(error, "saving a model");
  if (status) {
    free(all);
    return status;
  }
  *bytes = all;
  *size = length;
  return DVBF_OK;
}

void dvbf_bytes_free(void *bytes) {
  free(bytes);
}

dvbf_status dv_tensors_write(const char *path, json_t *meta, const dv_tensor *tensors, int n,
                             dvbf_error *error) {
  char *header = header_text(meta, tensors, n);
  if (!header) return dv_fail_memory(error, "writing a file");
  dv_atomic_file file = {0};
  dvbf_status status = refuse_flaws(tensors, n, path, error);
  if (!status) status = dv_atomic_open(&file, path, error);
  if (!status) {
    put_all(file.stream, header, tensors, n);
    status = dv_atomic_commit(&file, error);
  }
  dv_free(header);
  return status;
}

/* ---- Reading ---- */

static dvbf_status read_whole(dv_tensor_file *f, const char *what, dvbf_error *error) {
  FILE *file = dv_open_file(f->path, error);
  if (!file) return DVBF_IO;
  dvbf_status status = DVBF_OK;
  long size = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
  if (size < 0 || fseek(file, 0, SEEK_SET) || size > (long)1 << 36)
    status = dv_fail(error, DVBF_IO, "%s: is not a file that can be read as %s", f->path, what);
  else if (!(f->bytes = dv_calloc((size_t)size, 1)))
    status = dv_fail_memory(error, "reading a file");
  else if (fread(f->bytes, 1, (size_t)size, file) != (size_t)size)
    status = dv_fail(error, DVBF_IO, "%s: cannot be read: %s", f->path, strerror(errno));
  f->size = (size_t)size;
  fclose(file);
  return status;
}

static uint64_t get_word(const unsigned char *from, int bytes) {
  uint64_t word = 0;
  for (int i = 0; i < bytes; i++) word |= (uint64_t)from[i] << (8 * i);
  return word;
}

/* Jansson's reader (2.14) writes past its strings if they find no memory to grow, so some is tried first.
 * NULL if there is none or the text is no JSON; only the latter leaves a text in `trouble`. */
static json_t *read_json(const char *text, size_t length, json_error_t *trouble) {
  void *trial = dv_calloc(length, 32);
  trouble->text[0] = 0;
  if (!trial) return NULL;
  dv_free(trial);
  return json_loadb(text, length, JSON_REJECT_DUPLICATES, trouble);
}

static dvbf_status copy_whole(dv_tensor_file *f, const dv_tensor_bytes *from, dvbf_error *error) {
  f->bytes = dv_calloc(from->size, 1);
  if (!f->bytes) return dv_fail_memory(error, "loading a model");
  if (from->size) memcpy(f->bytes, from->bytes, from->size);
  f->size = from->size;
  return DVBF_OK;
}

/* A format is a name and a version, such as "dvbf checkpoint 1". Whether `found` has the same name and a
 * later version. */
static bool is_later(const char *found, const char *format) {
  const char *blank = strrchr(format, ' ');
  size_t name = blank ? (size_t)(blank - format) + 1 : 0;
  const char *digits = found + name;
  if (!name || strncmp(found, format, name) != 0 || !*digits || strlen(digits) > 9) return false;
  if (strspn(digits, "0123456789") != strlen(digits)) return false;
  return strtol(digits, NULL, 10) > strtol(format + name, NULL, 10);
}

dvbf_status dv_tensors_open(dv_tensor_file *f, const char *path, const dv_tensor_bytes *bytes,
                            const char *format, const char *what, dvbf_error *error) {
  json_error_t trouble;
  *f = (dv_tensor_file){.path = path, .prefix = ""};
  dvbf_status status = bytes ? copy_whole(f, bytes, error) : read_whole(f, what, error);
  if (status) return status;
  uint64_t length = f->size >= 8 ? get_word(f->bytes, 8) : 0;
  if (f->size < 8 || length > MAX_HEADER || length > f->size - 8)
    return dv_fail(error, DVBF_FORMAT, "%s: is not a safetensors file, or is truncated", path);
  f->data = 8 + (size_t)length;
  f->header = read_json((const char *)f->bytes + 8, (size_t)length, &trouble);
  if (!f->header && !*trouble.text) return dv_fail_memory(error, "reading a file");
  f->meta = json_object_get(f->header, "__metadata__");
  if (!json_is_object(f->header) || !json_is_object(f->meta))
    return dv_fail(error, DVBF_FORMAT, "%s: its safetensors header cannot be read: %.100s", path,
                   f->header ? "no __metadata__" : trouble.text);
  const char *found = dv_meta_get(f, "format");
  if (found && format && is_later(found, format))
    return dv_fail(error, DVBF_FORMAT,
                   "%s: is %s of the format \"%.40s\", and dvbf " DVBF_VERSION
                   " reads formats up to \"%s\"; use a newer dvbf",
                   path, what, found, format);
  if (!found || (format && strcmp(found, format) != 0))
    return dv_fail(error, DVBF_FORMAT, "%s: is a safetensors file but not %s of dvbf (format \"%.40s\")",
                   path, what, found ? found : "none");
  return DVBF_OK;
}

void dv_tensors_close(dv_tensor_file *f) {
  json_decref(f->header);
  dv_free(f->bytes);
  *f = (dv_tensor_file){0};
}

const char *dv_meta_get(const dv_tensor_file *f, const char *key) {
  char whole[128];
  snprintf(whole, sizeof whole, "%s%s", f->prefix, key);
  return json_string_value(json_object_get(f->meta, whole));
}

dvbf_status dv_meta_number(const dv_tensor_file *f, const char *key, double low, double high, double *out,
                           dvbf_error *error) {
  DV_PLAIN_NUMBERS;
  const char *text = dv_meta_get(f, key);
  char *end = NULL;
  double value = text ? strtod(text, &end) : 0;
  if (!text || end == text || *end || !(value >= low && value <= high))
    return dv_fail(error, DVBF_FORMAT, "%s: metadata %s%s = \"%.40s\" must be a number in [%g, %g]", f->path,
                   f->prefix, key, text ? text : "", low, high);
  *out = value;
  return DVBF_OK;
}

static dvbf_status read_values(const dv_tensor_file *f, const dv_tensor *t, dvbf_error *error) {
  const unsigned char *from = f->bytes + f->data + t->begin;
  for (size_t i = 0; i < entries_of(t); i++, from += 4) {
    uint32_t bits = (uint32_t)get_word(from, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    if (is_flaw(t, value))
      return dv_fail(error, DVBF_FORMAT, "%s: tensor %s holds a value that is not finite at %zu", f->path,
                     t->name, i);
    if (t->real)
      t->real[i] = (dvbf_real)value;
    else
      t->single[i] = value;
  }
  return DVBF_OK;
}

static bool has_length(json_t *array, size_t index, size_t wanted) {
  json_t *entry = json_array_get(array, index);
  return json_is_integer(entry) && json_integer_value(entry) >= 0 &&
         (uint64_t)json_integer_value(entry) == wanted;
}

static dvbf_status read_tensor(const dv_tensor_file *f, dv_tensor *t, dvbf_error *error) {
  json_t *entry = json_object_get(f->header, t->name), *shape = json_object_get(entry, "shape");
  json_t *offsets = json_object_get(entry, "data_offsets");
  const char *type = json_string_value(json_object_get(entry, "dtype"));
  if (!type || strcmp(type, "F32") || json_array_size(shape) != 2 || !has_length(shape, 0, t->rows) ||
      !has_length(shape, 1, t->cols))
    return dv_fail(error, DVBF_FORMAT, "%s: tensor %s of F32 [%zu, %zu] is missing or has another shape",
                   f->path, t->name, t->rows, t->cols);
  json_int_t begin = json_integer_value(json_array_get(offsets, 0)),
             end = json_integer_value(json_array_get(offsets, 1));
  size_t bytes = entries_of(t) * sizeof(float), room = f->size - f->data;
  if (json_array_size(offsets) != 2 || begin < 0 || end < begin || (uint64_t)end > room ||
      (uint64_t)(end - begin) != bytes)
    return dv_fail(error, DVBF_FORMAT, "%s: tensor %s lies outside the file, which is truncated or damaged",
                   f->path, t->name);
  t->begin = (size_t)begin;
  return read_values(f, t, error);
}

/* Each byte belongs to one tensor. */
static dvbf_status refuse_overlap(const dv_tensor_file *f, const dv_tensor *tensors, int n,
                                  dvbf_error *error) {
  size_t left = f->size - f->data;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++)
      if (tensors[i].begin < tensors[j].begin + entries_of(&tensors[j]) * sizeof(float) &&
          tensors[j].begin < tensors[i].begin + entries_of(&tensors[i]) * sizeof(float))
        return dv_fail(error, DVBF_FORMAT, "%s: tensors %s and %s overlap; the file is damaged", f->path,
                       tensors[j].name, tensors[i].name);
  for (int i = 0; i < n; i++) left -= entries_of(&tensors[i]) * sizeof(float);
  if (left)
    return dv_fail(error, DVBF_FORMAT, "%s: %zu of its bytes belong to no tensor; the file is damaged",
                   f->path, left);
  return DVBF_OK;
}

dvbf_status dv_tensors_read(const dv_tensor_file *f, dv_tensor *tensors, int n, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < n && !status; i++) status = read_tensor(f, &tensors[i], error);
  return status ? status : refuse_overlap(f, tensors, n, error);
}
