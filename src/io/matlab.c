/* MATLAB files up to version 7: reading through libmatio (dv_matlab_open), and writing level 5 files
 * (dv_arrays_write_mat). Sizes in a file are compared with its own before anything is allocated. The writer
 * is our own, so that equal data give equal bytes whatever the version of libmatio; the header holds no time.
 * Version 7.3 is HDF5. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "io/sandbox.h"
#include "io/write_arrays.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#ifdef DV_MATIO
#include <matio.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct matlab_file {
  dv_archive base;
  mat_t *file;
  bool compressed; /* some variable is */
} matlab_file;

static const char damage[] = "the file is damaged, so make or copy it again";

static bool is_number(enum matio_classes class) {
  return class >= MAT_C_DOUBLE && class <= MAT_C_UINT64;
}

static const char *trouble_of(const matvar_t *v) {
  if (v->class_type == MAT_C_CELL)
    return "is a cell array; in MATLAB: x = vertcat(c{:}); length = cellfun(@(a) size(a, 1), c); "
           "save('new.mat', 'x', 'length')";
  if (v->class_type == MAT_C_CHAR) return "holds text; store numbers";
  if (v->class_type == MAT_C_OBJECT || v->class_type == MAT_C_OPAQUE || v->class_type == MAT_C_FUNCTION)
    return "is an object; in MATLAB: store its numbers, as x = z.OutputData; u = z.InputData; "
           "save('new.mat', 'x', 'u')";
  if (v->class_type == MAT_C_STRUCT) return "is an array of structures; store its fields as variables";
  if (v->class_type == MAT_C_SPARSE) return "is sparse; in MATLAB: x = full(x)";
  if (!is_number(v->class_type)) return "is of an unsupported class; store numbers";
  return v->isComplex ? "holds complex numbers; store real and imaginary parts as columns" : NULL;
}

static const dv_number number_of[] = {
    [MAT_C_DOUBLE] = DV_FLOAT64, [MAT_C_SINGLE] = DV_FLOAT32, [MAT_C_INT8] = DV_INT8,
    [MAT_C_UINT8] = DV_UINT8,    [MAT_C_INT16] = DV_INT16,    [MAT_C_UINT16] = DV_UINT16,
    [MAT_C_INT32] = DV_INT32,    [MAT_C_UINT32] = DV_UINT32,  [MAT_C_INT64] = DV_INT64,
    [MAT_C_UINT64] = DV_UINT64};

/* Whether the variable has `n` numbers: there may not be as many as its shape says. */
static bool holds(const matvar_t *v, size_t n) {
  if (!v || !is_number(v->class_type) || !v->data || v->data_size <= 0) return false;
  size_t size = (size_t)v->data_size;
  return size == dv_number_size(number_of[v->class_type]) && v->nbytes / size >= n;
}

/* ---- Values ---- */

/* The variable of an array: NAME, or NAME/FIELD of a structure. *whole must be freed. */
static matvar_t *read_variable(matlab_file *f, const char *path, matvar_t **whole) {
  char name[DV_ARRAY_NAME];
  const char *slash = strchr(path, '/');
  snprintf(name, sizeof name, "%.*s", slash ? (int)(slash - path) : (int)strlen(path), path);
  *whole = Mat_VarRead(f->file, name);
  if (!*whole || !slash) return *whole;
  return (*whole)->class_type == MAT_C_STRUCT ? Mat_VarGetStructFieldByName(*whole, slash + 1, 0) : NULL;
}

/* All values at once. */
static const char *matlab_read(dv_archive *a, const dv_named_array *array, size_t first, size_t n,
                               dv_out out) {
  matvar_t *whole = NULL, *v = read_variable((matlab_file *)a, array->name, &whole);
  bool done = !first && holds(v, n);
  if (done) dv_numbers_convert(v->data, number_of[v->class_type], false, n, out);
  if (whole) Mat_VarFree(whole);
  return done ? NULL : damage;
}

/* ---- Opening ---- */

static uint32_t word(const unsigned char *at, bool big) {
  return big ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
             : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* Whether the variables, each beginning with kind and size, fill the file. libmatio reads zeros from a
 * truncated file. */
static bool is_whole(int descriptor, off_t size, bool *compressed) {
  enum { HEAD = 128, MATRIX = 14, COMPRESSED = 15 };
  unsigned char head[HEAD], tag[8];
  bool good = pread(descriptor, head, HEAD, 0) == HEAD;
  off_t at = HEAD;
  bool big = good && head[126] == 'M';
  while (good && at < size) {
    good = pread(descriptor, tag, sizeof tag, at) == sizeof tag;
    uint32_t kind = good ? word(tag, big) : 0, length = good ? word(tag + 4, big) : 0;
    *compressed = *compressed || kind == COMPRESSED;
    good = good && (kind == MATRIX || kind == COMPRESSED) && (off_t)length <= size - at - (off_t)sizeof tag;
    at += (off_t)sizeof tag + (off_t)length;
  }
  return good;
}

static dvbf_status add_variable(matlab_file *f, const matvar_t *v, const char *prefix, double bytes,
                                dvbf_error *error) {
  char name[2 * DV_ARRAY_NAME + 2];
  double numbers = 1;
  dv_named_array array = {.name = name, .fortran = true, .trouble = trouble_of(v)};
  if (!v->name || strlen(v->name) >= DV_ARRAY_NAME || strlen(prefix) >= DV_ARRAY_NAME) return DVBF_OK;
  snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "/" : "", v->name);
  array.real = v->class_type == MAT_C_DOUBLE || v->class_type == MAT_C_SINGLE;
  array.bytes = v->class_type == MAT_C_UINT8 && !v->isLogical;
  if (v->rank < 1 || v->rank > DV_RANK || !v->dims)
    array.trouble = "has more than 8 dimensions; reshape it";
  else
    for (; array.rank < v->rank; array.rank++)
      numbers *= (double)(array.dims[array.rank] = v->dims[array.rank]);
  /* A variable cannot have more numbers than its file could hold, compressed by at most 1032 to 1. */
  if (!array.trouble && numbers > 1032 * bytes) array.trouble = damage;
  if (f->compressed) array.unpacked = DV_WHOLE;
  dv_array_squeeze(&array);
  return dv_archive_add(&f->base, &array, error);
}

static dvbf_status add_fields(matlab_file *f, matvar_t *v, double bytes, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  unsigned count = Mat_VarGetNumberOfFields(v);
  for (unsigned i = 0; i < count && !status; i++) {
    const matvar_t *field = Mat_VarGetStructFieldByIndex(v, i, 0);
    if (field) status = add_variable(f, field, v->name, bytes, error);
  }
  return status;
}

static dvbf_status list_variables(matlab_file *f, double bytes, dvbf_error *error) {
  enum { MOST_VARIABLES = 100000 };
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < MOST_VARIABLES && !status; i++) {
    matvar_t *v = Mat_VarReadNextInfo(f->file);
    if (!v) break;
    bool single =
        v->class_type == MAT_C_STRUCT && v->rank == 2 && v->dims && v->dims[0] == 1 && v->dims[1] == 1;
    if (v->name) status = single ? add_fields(f, v, bytes, error) : add_variable(f, v, "", bytes, error);
    Mat_VarFree(v);
  }
  if (!status && !f->base.count)
    status = dv_fail_file(error, f->base.path, "holds no variables, or is damaged; save it again");
  return status;
}

static void matlab_close(dv_archive *a) {
  matlab_file *f = (matlab_file *)a;
  if (f->file) Mat_Close(f->file);
}

static dvbf_status matlab_open(dv_archive *a, int descriptor, const dv_data_settings *how,
                               dvbf_error *error) {
  struct stat about;
  char open_file[32];
  matlab_file *f = (matlab_file *)a;
  bool whole = !fstat(descriptor, &about) && is_whole(descriptor, about.st_size, &f->compressed);
  snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", descriptor);
  if (whole) f->file = Mat_Open(access(open_file, R_OK) ? a->path : open_file, MAT_ACC_RDONLY);
  if (!dv_sandbox_enter() || !f->file)
    return dv_fail_file(error, a->path, "is a damaged or truncated MATLAB file; save or copy it again");
  return list_variables(f, (double)about.st_size, error);
}
#else
typedef dv_archive matlab_file;
#define matlab_read NULL
#define matlab_close NULL

static dvbf_status matlab_open(dv_archive *a, int descriptor, const dv_data_settings *how,
                               dvbf_error *error) {
  return dv_fail_file(error, a->path,
                      "is a MATLAB file, and dvbf was built without libmatio, which reads it; in MATLAB: "
                      "save('new.mat', 'x', 'u', '-v7.3'), or build dvbf where libmatio-dev is installed");
}
#endif

static bool recognises(int descriptor, const unsigned char *bytes, size_t size) {
  return size == 16 && !memcmp(bytes, "MATLAB 5.0", 10);
}

const dv_format dv_format_matlab = {.name = "MATLAB",
                                    .endings = ".mat",
                                    .sandboxed = true,
                                    .recognises = recognises,
                                    .archive = sizeof(matlab_file),
                                    .open = matlab_open,
                                    .read = matlab_read,
                                    .close = matlab_close};

/* ---- Elements ---- */

/* A file is a header of 128 bytes and elements: type, number of bytes, content, padded to a multiple of 8. A
 * variable is an element that holds others: class, dimensions, name and values, the first dimension fastest.
 * Texts become a cell array, a single one an array of characters. */

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

enum { LONGEST_NAME = 63 };

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

static dvbf_status check(const char *path, const dvbf_array *a, dvbf_error *error) {
  bool named = strlen(a->name) <= LONGEST_NAME && isalpha((unsigned char)*a->name);
  for (const char *c = a->name; *c; c++) named = named && (isalnum((unsigned char)*c) || *c == '_');
  if (!named)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: MATLAB has no variable named \"%.64s\"; a name has 1 to %d letters, digits and "
                   "_, and begins with a letter",
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

/* Begins an element; returns where its content does. */
static long begin(FILE *out, uint32_t type) {
  put32(out, type);
  put32(out, 0);
  return ftell(out);
}

/* Fills it up to a multiple of 8 bytes. A variable counts those of its elements, which are full. */
static void end(FILE *out, long content) {
  static const char zeros[8] = "";
  uint32_t bytes = (uint32_t)(ftell(out) - content);
  fwrite(zeros, 1, (8 - bytes % 8) % 8, out);
  long last = ftell(out);
  fseek(out, content - 4, SEEK_SET);
  put32(out, bytes);
  fseek(out, last, SEEK_SET);
}

static void put(FILE *out, uint32_t type, const void *values, size_t bytes) {
  long content = begin(out, type);
  fwrite(values, 1, bytes, out);
  end(out, content);
}

/* Begins a variable, whose values follow. */
static long begin_variable(FILE *out, uint32_t class, const shape *s, const char *name) {
  const uint32_t flags[] = {class, 0};
  long content = begin(out, MATRIX);
  put(out, UINT32, flags, sizeof flags);
  put(out, INT32, s->dims, 4 * (size_t)s->rank);
  put(out, INT8, name, strlen(name));
  return content;
}

/* A variable of characters, in UTF-8. Programs count characters beyond 16 bits differently, so these become
 * question marks. */
static void put_text(FILE *out, const char *name, const char *from, size_t width) {
  const char *at = from, *first = from;
  shape s = {.rank = 2, .dims = {1, 0}};
  while (dv_next_character(&at, from + width)) s.dims[1]++;
  long variable = begin_variable(out, CLASS_CHAR, &s, name), content = begin(out, UTF8);
  at = from;
  for (uint32_t c; (c = dv_next_character(&at, from + width)); first = at)
    if (c >= 0x10000 || c == 0xFFFD)
      putc('?', out);
    else
      fwrite(first, 1, (size_t)(at - first), out);
  end(out, content);
  end(out, variable);
}

/* A text, or a list of them as cells. Lists of lists are not needed, so their order is that of C. */
static void put_texts(FILE *out, const dvbf_array *a) {
  size_t width = dv_text_width(a);
  shape s = shape_of(a);
  long content = a->rank > 1 ? begin_variable(out, CLASS_CELL, &s, a->name) : 0;
  for (size_t i = 0; i < dv_text_count(a); i++)
    put_text(out, a->rank > 1 ? "" : a->name, (const char *)a->values + i * width, width);
  if (a->rank > 1) end(out, content);
}

static bool put_numbers(FILE *out, const dvbf_array *a) {
  shape s = shape_of(a);
  size_t bytes = dv_array_bytes(a), size = kinds[a->type].size;
  dv_named_array order = {.rank = a->rank, .elements = bytes / size, .fortran = true};
  unsigned char *values = dv_calloc(bytes, 1);
  if (!values) return false;
  /* The transpose of an array in Fortran order, with its dimensions in reverse, is the array in C order. */
  for (int i = 0; i < a->rank; i++) order.dims[i] = a->dims[a->rank - 1 - i];
  dv_array_reorder(values, a->values, &order, size);
  long content = begin_variable(out, kinds[a->type].class, &s, a->name);
  put(out, kinds[a->type].type, values, bytes);
  end(out, content);
  dv_free(values);
  return true;
}

/* A line of text, where no time stands, then version and order of bytes. */
static void put_header(FILE *out) {
  const uint16_t end[] = {0, 0, 0, 0, 0x0100, 'M' << 8 | 'I'};
  fprintf(out, "%-116s", "MATLAB 5.0 MAT-file, written by dvbf");
  fwrite(end, sizeof end, 1, out);
}

dvbf_status dv_arrays_write_mat(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error) {
  dv_atomic_file file;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < count && !status; i++) status = check(path, &arrays[i], error);
  if (!status) status = dv_atomic_open(&file, path, error);
  if (status) return status;
  bool room = true;
  put_header(file.stream);
  for (size_t i = 0; i < count && room; i++)
    if (arrays[i].type == DVBF_TEXT)
      put_texts(file.stream, &arrays[i]);
    else
      room = put_numbers(file.stream, &arrays[i]);
  if (room) return dv_atomic_commit(&file, error);
  dv_atomic_abandon(&file);
  return dv_fail_memory(error, "writing arrays");
}
