/* NPY arrays (dv_npy_open, and dv_npy_describe and dv_npy_read inside of archives): "\x93NUMPY", a version,
 * the length of a header, the header, the values. The header is a dictionary in the syntax of Python,
 * {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, of which just this form is understood. */
#include "io/npy.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The header ---- */

#define HEADER_BLANKS " \t\n\r"
static const char bad_header[] = "has a damaged NPY header; make or copy the file again";

/* The text of the header; empty after an error. */
typedef struct header {
  dv_cursor text;
  bool failed;
} header;

static void fail(header *h) {
  h->failed = true;
  h->text.at = h->text.end;
}

/* Whether `text` comes next; it is passed then. */
static bool next_is(header *h, const char *text) {
  dv_cursor_skip(&h->text, HEADER_BLANKS);
  return dv_cursor_take_text(&h->text, text);
}

static void expect(header *h, const char *text) {
  if (!next_is(h, text)) fail(h);
}

/* A string in either quotes, without escapes. */
static void read_string(header *h, char *out, size_t size) {
  char quote = next_is(h, "'") ? '\'' : '"';
  if (quote == '"') expect(h, "\"");
  dv_cursor string = dv_cursor_until(&h->text, quote);
  if (!dv_cursor_take(&h->text, quote) || !dv_cursor_copy(string, out, size) || strchr(out, '\\')) fail(h);
}

/* A whole number, perhaps with the L of Python 2. */
static size_t read_integer(header *h) {
  size_t value = 0;
  dv_cursor_skip(&h->text, HEADER_BLANKS);
  if (!dv_cursor_at_digit(&h->text)) fail(h);
  for (; dv_cursor_at_digit(&h->text); dv_cursor_pass(&h->text, 1)) {
    if (value > (SIZE_MAX - 9) / 10) {
      fail(h); /* too large for anything */
      return 0;
    }
    value = value * 10 + (size_t)(*h->text.at - '0');
  }
  next_is(h, "L");
  return value;
}

/* (3, 4), (3,) or (). */
static void read_shape(header *h, dv_named_array *array) {
  expect(h, "(");
  while (!h->failed && !next_is(h, ")")) {
    if (array->rank == DV_RANK) array->trouble = "has more than 8 dimensions; reshape it";
    size_t size = read_integer(h);
    if (array->rank < DV_RANK) array->dims[array->rank++] = size;
    if (next_is(h, ",")) continue;
    expect(h, ")");
    break;
  }
}

/* Type and byte order, as <f4 or |u1. */
static const char *read_type(const char *text, dv_npy *npy, dv_named_array *array) {
  static const struct {
    const char *name;
    dv_number type;
  } types[] = {{"f2", DV_FLOAT16}, {"f4", DV_FLOAT32}, {"f8", DV_FLOAT64}, {"i1", DV_INT8},
               {"i2", DV_INT16},   {"i4", DV_INT32},   {"i8", DV_INT64},   {"b1", DV_INT8},
               {"u1", DV_UINT8},   {"u2", DV_UINT16},  {"u4", DV_UINT32},  {"u8", DV_UINT64}};
  bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  if (!*text || !strchr("<>|=", text[0])) return bad_header;
  npy->swapped = text[0] == (little ? '>' : '<');
  array->real = text[1] == 'f';
  array->bytes = !strcmp(text + 1, "u1");
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strcmp(types[i].name, text + 1)) {
      npy->type = types[i].type;
      return NULL;
    }
  switch (text[1]) {
  case 'O': return "holds objects; store numbers, preferably float32 or uint8";
  case 'U':
  case 'S': return "holds text; store numbers, preferably float32 or uint8";
  case 'c': return "holds complex numbers; store real and imaginary parts as columns";
  case 'M':
  case 'm': return "holds times; store numbers, preferably float32";
  case 'V': return "holds structures; store numbers, preferably float32 or uint8";
  default: return "holds numbers of an unusual width; store float32 or uint8";
  }
}

/* The dictionary, each of whose three keys stands there once. */
static const char *read_dictionary(const char *text, size_t length, dv_npy *npy, dv_named_array *array) {
  header h = {.text = {text, text + length}};
  const char *type = NULL;
  int descr = 0, order = 0, shape = 0;
  expect(&h, "{");
  while (!h.failed && !next_is(&h, "}")) {
    char key[16] = "", value[32] = "";
    read_string(&h, key, sizeof key);
    expect(&h, ":");
    if (!strcmp(key, "descr")) {
      descr++;
      if (next_is(&h, "[")) return "holds structures; store numbers, preferably float32 or uint8";
      read_string(&h, value, sizeof value);
      type = !h.failed ? read_type(value, npy, array) : NULL;
    } else if (!strcmp(key, "fortran_order")) {
      order++;
      array->fortran = next_is(&h, "True");
      if (!array->fortran) expect(&h, "False");
    } else if (!strcmp(key, "shape") && !shape++) {
      read_shape(&h, array);
    } else {
      fail(&h);
    }
    if (next_is(&h, ",")) continue;
    expect(&h, "}");
    break;
  }
  dv_cursor_skip(&h.text, HEADER_BLANKS);
  if (h.failed || dv_cursor_left(&h.text) || descr != 1 || order != 1 || shape != 1) return bad_header;
  return type;
}

static const char *read_header(dv_npy *npy, dv_named_array *array, dv_npy_bytes *bytes, void *from,
                               uint64_t size) {
  enum { LONGEST_HEADER = 1 << 16 };
  unsigned char start[12];
  const char *failed = size < 10 ? "" : bytes(from, 0, 10, start);
  if (failed == dv_no_memory) return failed; /* which tells nothing of the file */
  if (failed || memcmp(start, "\x93NUMPY", 6))
    return "is not an array in NPY format; numpy.save and numpy.savez write it";
  if (start[6] < 1 || start[6] > 3)
    return "has an NPY header of a version other than 1.0, 2.0 or 3.0; save it with another NumPy";
  size_t before = start[6] == 1 ? 10 : 12, length = start[8] + 256U * start[9];
  if (before == 12) {
    failed = size < 12 ? "" : bytes(from, 10, 2, start + 10);
    if (failed) return failed == dv_no_memory ? failed : bad_header;
    length += 65536U * start[10] + (size_t)16777216U * start[11];
  }
  if (length > LONGEST_HEADER || length > size - before) return bad_header;
  char *text = dv_calloc(length + 1, 1);
  if (!text) return dv_no_memory;
  const char *trouble = bytes(from, before, length, (unsigned char *)text);
  if (!trouble) trouble = read_dictionary(text, length, npy, array);
  dv_free(text);
  npy->header = before + length;
  return trouble;
}

/* Whether the values fit into what there is. */
static bool cut_short(const dv_npy *npy, const dv_named_array *array, uint64_t size) {
  size_t elements = dv_number_size(npy->type);
  for (int i = 0; i < array->rank; i++)
    if (!dv_multiply(elements, array->dims[i], &elements)) return true;
  return elements > size - npy->header;
}

void dv_npy_describe(dv_npy *npy, dv_named_array *array, dv_npy_bytes *bytes, void *from, uint64_t size) {
  const char *trouble = read_header(npy, array, bytes, from, size);
  if (trouble) array->trouble = trouble;
  if (trouble == bad_header) array->rank = 0;
  array->fortran = array->fortran && array->rank > 1;
  if (!array->trouble && cut_short(npy, array, size))
    array->trouble = "is truncated: its shape needs more values than there are; make or copy the file again";
}

/* ---- Values ---- */

const char *dv_npy_read(const dv_npy *npy, dv_npy_bytes *bytes, void *from, size_t first, size_t n,
                        dv_out out) {
  unsigned char buffer[1 << 15];
  size_t size = dv_number_size(npy->type), most = sizeof buffer / size; /* numbers of a read */
  if (out.width == sizeof(float) && npy->type == DV_FLOAT32 && !npy->swapped)
    return bytes(from, npy->header + (uint64_t)first * size, n * size, out.at);
  for (size_t k = 0; k < n; k += most) {
    size_t part = n - k < most ? n - k : most, offset = (first + k) * size;
    const char *remedy = bytes(from, npy->header + (uint64_t)offset, part * size, buffer);
    if (remedy) return remedy;
    dv_numbers_convert(buffer, npy->type, npy->swapped, part, out);
    out.at = (char *)out.at + part * out.width;
  }
  return NULL;
}

/* ---- A file of its own ---- */

typedef struct npy_file {
  dv_archive base;
  int descriptor;
  dv_npy npy;
} npy_file;

const char *dv_npy_file_bytes(void *from, uint64_t offset, size_t n, unsigned char *out) {
  const int *descriptor = from;
  while (n) {
    ssize_t got = pread(*descriptor, out, n, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return "the file was truncated while in use, or the disk is failing";
    out += got;
    offset += (uint64_t)got;
    n -= (size_t)got;
  }
  return NULL;
}

static const char *file_read(dv_archive *a, const dv_named_array *array, size_t first, size_t n, dv_out out) {
  npy_file *f = (npy_file *)a;
  return dv_npy_read(&f->npy, dv_npy_file_bytes, &f->descriptor, first, n, out);
}

static void file_close(dv_archive *a) {
  npy_file *f = (npy_file *)a;
  if (f->descriptor >= 0) close(f->descriptor);
}

static bool recognises(int descriptor, const unsigned char *bytes, size_t size) {
  return size >= 6 && !memcmp(bytes, "\x93NUMPY", 6);
}

static dvbf_status file_open(dv_archive *a, int descriptor, const dv_data_settings *how, dvbf_error *error) {
  struct stat about;
  npy_file *f = (npy_file *)a;
  f->descriptor = dup(descriptor);
  if (f->descriptor < 0 || fstat(f->descriptor, &about))
    return dv_fail(error, DVBF_IO, "%.200s: cannot be read: %s", a->path, strerror(errno));
  dv_named_array array = {.name = "x", .seekable = true}; /* one without a name is the one that is needed */
  dv_npy_describe(&f->npy, &array, dv_npy_file_bytes, &f->descriptor, (uint64_t)about.st_size);
  return dv_archive_add(a, &array, error);
}

const dv_format dv_format_npy = {.name = "NPY",
                                 .endings = ".npy",
                                 .recognises = recognises,
                                 .archive = sizeof(npy_file),
                                 .open = file_open,
                                 .read = file_read,
                                 .close = file_close};
