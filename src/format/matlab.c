/* Files of MATLAB up to version 7, through libmatio. Those of version 7.3 are HDF5. Variables are read whole,
 * when they are used; what a file says of their size is compared with its own before. */
#include "base/memory.h"
#include "base/status.h"
#include "format/sandbox.h"

#ifdef DV_MATIO
#include <matio.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct matlab_file {
  dv_archive base;
  mat_t *file;
  bool compressed;      /* some variable is */
  pthread_mutex_t lock; /* of all reading */
  double **values;      /* [arrays] in C order, NULL where not yet read */
} matlab_file;

static const char damage[] = "the file is damaged, so make or copy it again";

/* ---- Types ---- */

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
  if (v->class_type == MAT_C_STRUCT) return "is a structure of several; store its fields as variables";
  if (v->class_type == MAT_C_SPARSE) return "is sparse; in MATLAB: x = full(x)";
  if (!is_number(v->class_type)) return "is of a class that is not read; store numbers";
  return v->isComplex ? "holds complex numbers; store their parts apart" : NULL;
}

#define EACH(type)                                                                                           \
  for (size_t i = 0; i < n; i++) out[i] = (double)((const type *)v->data)[i];                                \
  break

/* Values as doubles; false where there are not as many as the shape says. */
static bool convert(const matvar_t *v, double *out, size_t n) {
  if (!v->data || v->data_size <= 0 || v->nbytes / (size_t)v->data_size < n) return false;
  switch (v->class_type) {
  case MAT_C_DOUBLE: EACH(double);
  case MAT_C_SINGLE: EACH(float);
  case MAT_C_INT8: EACH(mat_int8_t);
  case MAT_C_UINT8: EACH(mat_uint8_t);
  case MAT_C_INT16: EACH(mat_int16_t);
  case MAT_C_UINT16: EACH(mat_uint16_t);
  case MAT_C_INT32: EACH(mat_int32_t);
  case MAT_C_UINT32: EACH(mat_uint32_t);
  case MAT_C_INT64: EACH(mat_int64_t);
  case MAT_C_UINT64: EACH(mat_uint64_t);
  default: return false;
  }
  return true;
}

/* ---- Values ---- */

/* The variable of an array: NAME, or NAME/FIELD of a structure. *whole is what must be freed. */
static matvar_t *read_variable(matlab_file *f, const char *path, matvar_t **whole) {
  char name[DV_NAME];
  const char *slash = strchr(path, '/');
  snprintf(name, sizeof name, "%.*s", slash ? (int)(slash - path) : (int)strlen(path), path);
  *whole = Mat_VarRead(f->file, name);
  if (!*whole || !slash) return *whole;
  return (*whole)->class_type == MAT_C_STRUCT ? Mat_VarGetStructFieldByName(*whole, slash + 1, 0) : NULL;
}

static const char *load(matlab_file *f, const dv_array *array) {
  matvar_t *whole = NULL, *v = read_variable(f, array->name, &whole);
  size_t n = array->elements;
  double *all = dv_calloc(n, sizeof *all), *ordered = dv_calloc(n, sizeof *ordered);
  bool done = v && all && ordered && convert(v, all, n);
  if (done) dv_array_reorder(ordered, all, array, sizeof *all);
  f->values[array->place] = done ? ordered : NULL;
  if (!done) dv_free(ordered);
  dv_free(all);
  if (whole) Mat_VarFree(whole);
  return done ? NULL : damage;
}

static const char *matlab_read(dv_archive *a, const dv_array *array, size_t first, size_t n, float *floats,
                               double *doubles) {
  matlab_file *f = (matlab_file *)a;
  pthread_mutex_lock(&f->lock);
  const char *remedy = f->values[array->place] ? NULL : load(f, array);
  pthread_mutex_unlock(&f->lock);
  for (size_t k = 0; k < n && !remedy; k++) {
    if (floats)
      floats[k] = (float)f->values[array->place][first + k];
    else
      doubles[k] = f->values[array->place][first + k];
  }
  return remedy;
}

/* ---- Opening ---- */

static uint32_t word(const unsigned char *at, bool big) {
  return big ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
             : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* Whether the variables, each of which begins with its kind and its size, fill the file to its end. libmatio
 * reads zeros where a file was cut short. */
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

/* A variable cannot have more numbers than its file could hold, compressed by at most 1032 to 1. */
static const char *size_trouble(const dv_array *array, double bytes) {
  double numbers = 1;
  for (int i = 0; i < array->rank; i++) numbers *= (double)array->dims[i];
  return numbers > 1032 * bytes ? damage : NULL;
}

static dvbf_status add(matlab_file *f, const matvar_t *v, const char *prefix, double bytes,
                       dvbf_error *error) {
  char name[2 * DV_NAME + 2];
  dv_array array = {.name = name, .trouble = trouble_of(v), .place = f->base.count};
  if (!v->name || strlen(v->name) >= DV_NAME || strlen(prefix) >= DV_NAME) return DVBF_OK;
  snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "/" : "", v->name);
  array.real = v->class_type == MAT_C_DOUBLE || v->class_type == MAT_C_SINGLE;
  array.bytes = v->class_type == MAT_C_UINT8 && !v->isLogical;
  if (v->rank < 1 || v->rank > DV_RANK || !v->dims)
    array.trouble = "has more than 8 dimensions; reshape it";
  else
    for (; array.rank < v->rank; array.rank++) array.dims[array.rank] = v->dims[array.rank];
  if (!array.trouble) array.trouble = size_trouble(&array, bytes);
  if (f->compressed) array.unpacked = DV_WHOLE;
  dv_array_squeeze(&array);
  return dv_archive_add(&f->base, &array, error);
}

/* The fields of a structure of one element. */
static dvbf_status add_fields(matlab_file *f, matvar_t *v, double bytes, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  unsigned count = Mat_VarGetNumberOfFields(v);
  for (unsigned i = 0; i < count && !status; i++) {
    const matvar_t *field = Mat_VarGetStructFieldByIndex(v, i, 0);
    if (field) status = add(f, field, v->name, bytes, error);
  }
  return status;
}

static dvbf_status list_variables(matlab_file *f, double bytes, dvbf_error *error) {
  enum { MOST = 100000 };
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < MOST && !status; i++) {
    matvar_t *v = Mat_VarReadNextInfo(f->file);
    if (!v) break;
    bool single =
        v->class_type == MAT_C_STRUCT && v->rank == 2 && v->dims && v->dims[0] == 1 && v->dims[1] == 1;
    if (v->name) status = single ? add_fields(f, v, bytes, error) : add(f, v, "", bytes, error);
    Mat_VarFree(v);
  }
  if (!status && !f->base.count)
    status =
        dv_fail(error, DVBF_FORMAT, "%.200s: holds no variables, or is damaged; save it again", f->base.path);
  if (!status && !(f->values = dv_calloc(f->base.count, sizeof *f->values)))
    status = dv_fail_memory(error, "reading data");
  return status;
}

static void matlab_close(dv_archive *a) {
  matlab_file *f = (matlab_file *)a;
  if (f->file) Mat_Close(f->file);
  for (size_t i = 0; f->values && i < a->count; i++) dv_free(f->values[i]);
  dv_free(f->values);
  pthread_mutex_destroy(&f->lock);
}

dvbf_status dv_matlab_open(dv_archive **out, const char *path, int descriptor, dvbf_error *error) {
  struct stat about;
  char open_file[32];
  matlab_file *f = (matlab_file *)dv_archive_new(sizeof *f, path);
  if (!f) return dv_fail_memory(error, "reading data");
  f->base.read = matlab_read;
  f->base.close = matlab_close;
  pthread_mutex_init(&f->lock, NULL);
  *out = &f->base;
  bool whole = !fstat(descriptor, &about) && is_whole(descriptor, about.st_size, &f->compressed);
  snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", descriptor);
  if (whole) f->file = Mat_Open(access(open_file, R_OK) ? path : open_file, MAT_ACC_RDONLY);
  if (!dv_sandbox_enter() || !f->file)
    return dv_fail(error, DVBF_FORMAT,
                   "%.200s: is a file of MATLAB that is damaged or cut short; save or copy it again", path);
  return list_variables(f, (double)about.st_size, error);
}
#else
dvbf_status dv_matlab_open(dv_archive **out, const char *path, int descriptor, dvbf_error *error) {
  (void)out, (void)descriptor;
  return dv_fail(
      error, DVBF_FORMAT,
      "%.200s: is a file of MATLAB, and dvbf was built without libmatio, which reads it; in MATLAB: "
      "save('new.mat', 'x', 'u', '-v7.3'), or build dvbf where libmatio-dev is installed",
      path);
}
#endif
