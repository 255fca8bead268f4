/* Arrays as variables of a MATLAB file, level 5, which MATLAB, Octave and SciPy read. A file is a header of
 * 128 bytes and elements: type, number of bytes, content, filled up to a multiple of 8. A variable is an
 * element that holds others: its class, its dimensions, its name and its values, the first dimension fastest.
 * Texts become a cell array of them, a lone one an array of characters. */
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "format/arrays.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* Types of elements, and classes of variables. */
enum { INT8 = 1, UINT8 = 2, INT32 = 5, UINT32 = 6, SINGLE = 7, DOUBLE = 9, INT64 = 12 };
enum { MATRIX = 14, UTF8 = 16 };
enum { CLASS_CELL = 1, CLASS_CHAR = 4, CLASS_DOUBLE = 6, CLASS_SINGLE, CLASS_UINT8 = 9, CLASS_UINT32 = 13 };
enum { CLASS_INT64 = 14 };

static const struct {
  uint32_t type, class;
  size_t size;
} kinds[] = {
    [DVBF_FLOAT32] = {SINGLE, CLASS_SINGLE, 4}, [DVBF_FLOAT64] = {DOUBLE, CLASS_DOUBLE, 8},
    [DVBF_UINT32] = {UINT32, CLASS_UINT32, 4},  [DVBF_INT64] = {INT64, CLASS_INT64, 8},
    [DVBF_UINT8] = {UINT8, CLASS_UINT8, 1},
};

enum { HEADER = 128, LONGEST_NAME = 63, PIECE = 1 << 16 };

static size_t padded(size_t bytes) {
  return (bytes + 7) / 8 * 8;
}

/* ---- Sizes ---- */

/* The shape that MATLAB sees: two dimensions at least, a vector is a column. Texts of a list stand in a
 * column of cells. */
typedef struct shape {
  int rank;
  uint32_t dims[DVBF_MAX_RANK + 1];
} shape;

static shape shape_of(const dvbf_array *a) {
  shape s = {.rank = a->rank - (a->type == DVBF_TEXT)};
  for (int i = 0; i < s.rank; i++) s.dims[i] = (uint32_t)a->dims[i];
  while (s.rank < 2) s.dims[s.rank++] = 1;
  return s;
}

/* A text as the file holds it: UTF-8 and the number of its characters. Programs count characters beyond 16
 * bits in different ways, so that these become question marks. */
typedef struct text {
  size_t characters, bytes;
} text;

/* Writes into `out` [width], which may be NULL. */
static text text_of(const char *from, size_t width, char *out) {
  const char *at = from, *end = from + width;
  text t = {0, 0};
  for (;;) {
    const char *first = at;
    uint32_t c = dv_next_character(&at, end);
    if (!c) return t;
    bool odd = c >= 0x10000 || c == 0xFFFD;
    size_t bytes = odd ? 1 : (size_t)(at - first);
    if (out) memcpy(out + t.bytes, odd ? "?" : first, bytes);
    t.bytes += bytes;
    t.characters++;
  }
}

/* Bytes of flags, dimensions and name, each with its tag. */
static size_t begin_bytes(int rank, size_t name) {
  return 16 + 8 + padded(4 * (size_t)rank) + 8 + padded(name);
}

static size_t text_bytes(size_t name, text t) {
  return begin_bytes(2, name) + 8 + padded(t.bytes);
}

/* Bytes behind the tag of a variable. */
static size_t variable_bytes(const dvbf_array *a) {
  size_t name = strlen(a->name);
  if (a->type != DVBF_TEXT) return begin_bytes(shape_of(a).rank, name) + 8 + padded(dv_array_bytes(a));
  const char *values = a->values;
  size_t width = dv_text_width(a), bytes = begin_bytes(shape_of(a).rank, name);
  if (a->rank == 1) return text_bytes(name, text_of(values, width, NULL));
  for (size_t i = 0; i < dv_text_count(a); i++)
    bytes += 8 + text_bytes(0, text_of(values + i * width, width, NULL));
  return bytes;
}

static dvbf_status check(const char *path, const dvbf_array *a, dvbf_error *error) {
  bool named = strlen(a->name) <= LONGEST_NAME && isalpha((unsigned char)*a->name);
  for (const char *c = a->name; *c; c++) named = named && (isalnum((unsigned char)*c) || *c == '_');
  if (!named)
    return dv_fail(
        error, DVBF_ARGUMENT,
        "%.200s: MATLAB has no variable named \"%.64s\"; a name has 1 to %d letters, digits and _, "
        "and begins with a letter",
        path, a->name, LONGEST_NAME);
  bool fits = dv_array_bytes(a) < INT32_MAX / 2;
  for (int i = 0; i < a->rank; i++) fits = fits && a->dims[i] <= INT32_MAX;
  if (fits) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "%.200s: %.64s is larger than the 1 GB that a variable of such a file may have; write .h5, "
                 "which MATLAB reads too (h5read)",
                 path, a->name);
}

/* ---- Writing ---- */

static void put32(FILE *out, uint32_t value) {
  fwrite(&value, sizeof value, 1, out);
}

static void put_tag(FILE *out, uint32_t type, size_t bytes) {
  put32(out, type);
  put32(out, (uint32_t)bytes);
}

static void fill_up(FILE *out, size_t bytes) {
  static const char zeros[8] = "";
  fwrite(zeros, 1, padded(bytes) - bytes, out);
}

static void put_begin(FILE *out, uint32_t class, const shape *s, const char *name) {
  put_tag(out, UINT32, 8);
  put32(out, class);
  put32(out, 0);
  put_tag(out, INT32, 4 * (size_t)s->rank);
  fwrite(s->dims, 4, (size_t)s->rank, out);
  fill_up(out, 4 * (size_t)s->rank);
  put_tag(out, INT8, strlen(name));
  fputs(name, out);
  fill_up(out, strlen(name));
}

/* A variable of characters; `room` [width] is for the caller to provide. */
static void put_text(FILE *out, const char *name, const char *from, size_t width, char *room) {
  text t = text_of(from, width, room);
  shape s = {.rank = 2, .dims = {1, (uint32_t)t.characters}};
  put_tag(out, MATRIX, text_bytes(strlen(name), t));
  put_begin(out, CLASS_CHAR, &s, name);
  put_tag(out, UTF8, t.bytes);
  fwrite(room, 1, t.bytes, out);
  fill_up(out, t.bytes);
}

/* A list of texts. Lists of lists are not needed, so their order is that of C. */
static bool put_texts(FILE *out, const dvbf_array *a) {
  size_t width = dv_text_width(a);
  char *room = dv_calloc(width + 1, 1);
  shape s = shape_of(a);
  if (!room) return false;
  if (a->rank > 1) {
    put_tag(out, MATRIX, variable_bytes(a));
    put_begin(out, CLASS_CELL, &s, a->name);
  }
  for (size_t i = 0; i < dv_text_count(a); i++)
    put_text(out, a->rank > 1 ? "" : a->name, (const char *)a->values + i * width, width, room);
  dv_free(room);
  return true;
}

/* Moves `index` [rank] to the next element in the order of MATLAB and returns its place in C's order. */
static size_t next_place(const dvbf_array *a, size_t *index, const size_t *stride, size_t place) {
  for (int i = 0; i < a->rank; i++) {
    place += stride[i];
    if (++index[i] < a->dims[i]) break;
    place -= stride[i] * index[i];
    index[i] = 0;
  }
  return place;
}

static bool put_values(FILE *out, const dvbf_array *a) {
  size_t size = kinds[a->type].size, count = dv_array_bytes(a) / size, index[DVBF_MAX_RANK] = {0};
  size_t stride[DVBF_MAX_RANK] = {0}, place = 0, held = 0;
  unsigned char *piece = dv_calloc(PIECE, size);
  if (!piece) return false;
  for (int i = a->rank; i-- > 0;) stride[i] = i + 1 < a->rank ? stride[i + 1] * a->dims[i + 1] : 1;
  for (size_t k = 0; k < count; k++) {
    memcpy(piece + held++ * size, (const unsigned char *)a->values + place * size, size);
    place = next_place(a, index, stride, place);
    if (held < PIECE && k + 1 < count) continue;
    fwrite(piece, size, held, out);
    held = 0;
  }
  dv_free(piece);
  return true;
}

static bool put_variable(FILE *out, const dvbf_array *a) {
  if (a->type == DVBF_TEXT) return put_texts(out, a);
  shape s = shape_of(a);
  size_t bytes = dv_array_bytes(a);
  put_tag(out, MATRIX, variable_bytes(a));
  put_begin(out, kinds[a->type].class, &s, a->name);
  put_tag(out, kinds[a->type].type, bytes);
  if (!put_values(out, a)) return false;
  fill_up(out, bytes);
  return true;
}

/* A line of text, where no time stands, then version and order of bytes. */
static void put_header(FILE *out) {
  char line[HEADER - 4];
  uint16_t version = 0x0100, order = 'M' << 8 | 'I';
  memset(line, ' ', sizeof line - 8);
  memset(line + sizeof line - 8, 0, 8);
  memcpy(line, "MATLAB 5.0 MAT-file, written by dvbf", 36);
  fwrite(line, 1, sizeof line, out);
  fwrite(&version, sizeof version, 1, out);
  fwrite(&order, sizeof order, 1, out);
}

dvbf_status dv_arrays_write_mat(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error) {
  dv_atomic_file file;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < count && !status; i++) status = check(path, &arrays[i], error);
  if (!status) status = dv_atomic_open(&file, path, error);
  if (status) return status;
  bool room = true;
  put_header(file.stream);
  for (size_t i = 0; i < count && room; i++) room = put_variable(file.stream, &arrays[i]);
  if (room && !ferror(file.stream)) return dv_atomic_commit(&file, error);
  int reason = errno;
  dv_atomic_abandon(&file);
  if (!room) return dv_fail_memory(error, "writing arrays");
  return dv_fail(error, DVBF_IO, "%.200s: cannot be written: %s; what was there before is unchanged", path,
                 strerror(reason));
}
