/* Arrays as NAME.npy in a zip archive, as numpy.savez makes it. An NPY file is a line of text about type and
 * shape, filled up to a multiple of 64 bytes, and the values. */
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "format/arrays.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

enum { HEADER = 512, JANUARY_1980 = 1 << 5 | 1 /* the first day of a zip archive's clock */ };

/* Writes the header of an array into out [HEADER] and returns its length. */
static size_t make_header(const dvbf_array *a, unsigned char *out) {
  static const char *const types[] = {[DVBF_FLOAT32] = "f4",
                                      [DVBF_FLOAT64] = "f8",
                                      [DVBF_UINT32] = "u4",
                                      [DVBF_INT64] = "i8",
                                      [DVBF_UINT8] = "u1"};
  char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>', shape[256] = "", type[24];
  bool texts = a->type == DVBF_TEXT;
  int rank = a->rank - texts; /* of what NumPy shows, for which a text is one value */
  snprintf(type, sizeof type, "U%zu", texts ? dv_text_width(a) : 0);
  for (int i = 0; i < rank; i++)
    snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%zu,%s", a->dims[i],
             i + 1 < rank ? " " : "");
  char *text = (char *)out + 10;
  int length = snprintf(text, HEADER - 10, "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }",
                        order, texts ? type : types[a->type], shape);
  size_t end = (10 + (size_t)length + 1 + 63) / 64 * 64, told = end - 10;
  memset(text + length, ' ', end - 10 - (size_t)length);
  out[end - 1] = '\n';
  memcpy(out, "\x93NUMPY\x01\x00", 8);
  out[8] = (unsigned char)(told & 255);
  out[9] = (unsigned char)(told >> 8);
  return end;
}

/* NumPy's texts are characters of 32 bits. Returns room that the caller frees; NULL: there is none. */
static uint32_t *characters_of(const dvbf_array *a, size_t *bytes) {
  size_t count = dv_text_count(a), width = dv_text_width(a), size;
  uint32_t *out = dv_multiply(count, width, &size) && size < SIZE_MAX / 4
                      ? dv_calloc(size ? size : 1, sizeof *out)
                      : NULL;
  *bytes = out ? size * sizeof *out : 0;
  for (size_t i = 0; out && i < count; i++) {
    const char *at = (const char *)a->values + i * width, *end = at + width;
    uint32_t *to = out + i * width;
    for (uint32_t c; (c = dv_next_character(&at, end));) *to++ = c;
  }
  return out;
}

/* What an array needs until the archive is closed. */
typedef struct entry {
  unsigned char header[HEADER];
  uint32_t *characters; /* of texts */
} entry;

/* Adds an array; the archive reads header and values when it is closed. */
static bool add(zip_t *archive, const dvbf_array *a, entry *e) {
  char name[80];
  zip_buffer_fragment_t parts[] = {{e->header, make_header(a, e->header)},
                                   {(zip_uint8_t *)(uintptr_t)a->values, dv_array_bytes(a)}};
  if (a->type == DVBF_TEXT) {
    size_t bytes;
    e->characters = characters_of(a, &bytes);
    if (!e->characters) return false;
    parts[1] = (zip_buffer_fragment_t){(zip_uint8_t *)e->characters, bytes};
  }
  zip_source_t *source = zip_source_buffer_fragment(archive, parts, parts[1].length ? 2 : 1, 0);
  if (!source) return false;
  snprintf(name, sizeof name, "%s.npy", a->name);
  zip_int64_t index = zip_file_add(archive, name, source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return false;
  }
  return !zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_STORE, 0) &&
         !zip_file_set_dostime(archive, (zip_uint64_t)index, 0, JANUARY_1980, 0);
}

static dvbf_status refused(const char *path, zip_error_t *reason, dvbf_error *error) {
  return dv_fail(error, DVBF_IO, "%.200s: cannot be written: %.200s; what was there before is unchanged",
                 path, zip_error_strerror(reason));
}

static dvbf_status write_archive(const char *temporary, const char *path, const dvbf_array *arrays,
                                 size_t count, entry *entries /* [count] */, dvbf_error *error) {
  int code = 0;
  zip_t *archive = zip_open(temporary, ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (!archive) {
    zip_error_t reason;
    zip_error_init_with_code(&reason, code);
    dvbf_status status = refused(path, &reason, error);
    zip_error_fini(&reason);
    return status;
  }
  bool done = true;
  for (size_t i = 0; i < count && done; i++) done = add(archive, &arrays[i], &entries[i]);
  if (done && !zip_close(archive)) return DVBF_OK;
  dvbf_status status = refused(path, zip_get_error(archive), error);
  zip_discard(archive);
  unlink(temporary);
  return status;
}

dvbf_status dv_arrays_write_npz(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error) {
  char temporary[4128];
  dvbf_status status = dv_temporary_name(temporary, sizeof temporary, path, error);
  if (status) return status;
  entry *entries = dv_calloc(count, sizeof *entries);
  status = entries ? write_archive(temporary, path, arrays, count, entries, error)
                   : dv_fail_memory(error, "writing arrays");
  for (size_t i = 0; entries && i < count; i++) dv_free(entries[i].characters);
  dv_free(entries);
  return status ? status : dv_publish(temporary, path, error);
}
