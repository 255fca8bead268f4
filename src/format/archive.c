#include "format/archive.h"

#include "base/locale.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "format/foreign.h"
#include "format/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Names ---- */

/* demo_9 stands before demo_10. */
int dv_compare_names(const char *a, const char *b) {
  const char *p = a, *q = b;
  while (*p && *q) {
    if (*p >= '0' && *p <= '9' && *q >= '0' && *q <= '9') {
      size_t zeros_p = strspn(p, "0"), zeros_q = strspn(q, "0");
      const char *m = p + zeros_p, *n = q + zeros_q;
      size_t digits_m = strspn(m, "0123456789"), digits_n = strspn(n, "0123456789");
      if (digits_m != digits_n) return digits_m < digits_n ? -1 : 1;
      int order = memcmp(m, n, digits_m);
      if (order) return order;
      p = m + digits_m;
      q = n + digits_n;
    } else if (*p != *q) {
      return (unsigned char)*p < (unsigned char)*q ? -1 : 1;
    } else {
      p++, q++;
    }
  }
  if (*p || *q) return *p ? 1 : -1;
  return strcmp(a, b); /* 01 and 1 are two names */
}

static int compare_arrays(const void *a, const void *b) {
  return dv_compare_names(((const dv_array *)a)->name, ((const dv_array *)b)->name);
}

const dv_array *dv_archive_find(const dv_archive *a, const char *name) {
  dv_array wanted = {.name = (char *)(uintptr_t)name};
  return a->count ? bsearch(&wanted, a->arrays, a->count, sizeof *a->arrays, compare_arrays) : NULL;
}

const char *dv_array_shape(const dv_array *array, char *out, size_t size) {
  size_t used = (size_t)snprintf(out, size, "[");
  for (int i = 0; i < array->rank && used + 24 < size; i++)
    used += (size_t)snprintf(out + used, size - used, "%s%zu", i ? ", " : "", array->dims[i]);
  snprintf(out + used, size - used, "]");
  return out;
}

/* ---- Fortran order ---- */

void dv_array_reorder(void *to, const void *from, const dv_array *array, size_t size) {
  size_t index[DV_RANK] = {0}, strides[DV_RANK] = {0}, at = 0, stride = size;
  unsigned char *out = to;
  for (int i = 0; i < array->rank; i++) {
    strides[i] = stride;
    stride *= array->dims[i];
  }
  for (size_t k = 0; k < array->elements; k++, out += size) {
    memcpy(out, (const unsigned char *)from + at, size);
    for (int i = array->rank - 1; i >= 0; i--) {
      at += strides[i];
      if (++index[i] < array->dims[i]) break;
      at -= strides[i] * array->dims[i];
      index[i] = 0;
    }
  }
}

void dv_array_squeeze(dv_array *array) {
  if (array->rank != 2 || (array->dims[0] != 1 && array->dims[1] != 1)) return;
  array->rank = array->dims[0] == 1 && array->dims[1] == 1 ? 0 : 1;
  if (array->dims[0] == 1) array->dims[0] = array->dims[1];
}

/* ---- Making one ---- */

dv_archive *dv_archive_new(size_t size, const char *path) {
  dv_archive *a = dv_calloc(1, size);
  if (!a) return NULL;
  snprintf(a->path, sizeof a->path, "%s", path);
  a->references = 1;
  return a;
}

/* Elements of all dimensions together, or what is wrong with them. */
static const char *count_elements(dv_array *array) {
  array->elements = 1;
  for (int i = 0; i < array->rank; i++) {
    if (array->dims[i] == 0) return "is empty; each dimension must be 1 or more";
    if (!dv_multiply(array->elements, array->dims[i], &array->elements) || array->elements > DV_MAX_ELEMENTS)
      return "is too large; it must have below 2^40 numbers, so split it over several files";
  }
  return NULL;
}

const char dv_no_memory[] = "memory is short";

dvbf_status dv_archive_add(dv_archive *a, const dv_array *array, dvbf_error *error) {
  enum { MOST = 1 << 20 };
  if (array->trouble == dv_no_memory) return dv_fail_memory(error, "reading data");
  if (strlen(array->name) >= DV_NAME) return DVBF_OK;
  if (a->count == MOST)
    return dv_fail(error, DVBF_FORMAT, "%.200s: holds more than %d arrays; split it over several files",
                   a->path, MOST);
  if (a->count == a->room) {
    size_t room = a->room ? 2 * a->room : 16;
    dv_array *larger = dv_realloc(a->arrays, room, sizeof *larger);
    if (!larger) return dv_fail_memory(error, "reading data");
    a->arrays = larger;
    a->room = room;
  }
  dv_array *to = &a->arrays[a->count];
  *to = *array;
  const char *size = count_elements(to);
  if (size) to->trouble = size;
  if (to->unpacked == DV_WHOLE) to->unpacked = to->elements * sizeof(float);
  to->name = dv_strdup(array->name);
  if (!to->name) return dv_fail_memory(error, "reading data");
  a->count++;
  return DVBF_OK;
}

dvbf_status dv_archive_sort(dv_archive *a, dvbf_error *error) {
  if (a->count) qsort(a->arrays, a->count, sizeof *a->arrays, compare_arrays);
  for (size_t i = 1; i < a->count; i++)
    if (!strcmp(a->arrays[i].name, a->arrays[i - 1].name))
      return dv_fail(error, DVBF_FORMAT, "%.200s: holds two arrays named %.64s; make the file anew", a->path,
                     a->arrays[i].name);
  return DVBF_OK;
}

/* ---- What is told about it ---- */

void dv_archive_note(dv_archive *a, const char *format, ...) {
  DV_PLAIN_NUMBERS;
  char(*notes)[256] = dv_realloc(a->notes, a->n_notes + 1, sizeof *notes);
  a->forgot = a->forgot || !notes;
  if (!notes) return;
  va_list arguments;
  a->notes = notes;
  va_start(arguments, format);
  vsnprintf(notes[a->n_notes], sizeof *notes, format, arguments);
  va_end(arguments);
  dv_text_plain(notes[a->n_notes++]);
}

void dv_archive_use(dv_archive *a, const char *name, const char *as) {
  dvbf_use *uses = dv_realloc(a->uses, a->n_uses + 1, sizeof *uses);
  a->forgot = a->forgot || !uses;
  if (!uses) return;
  a->uses = uses;
  snprintf(uses[a->n_uses].name, sizeof uses->name, "%.63s", name);
  snprintf(uses[a->n_uses++].role, sizeof uses->role, "%.127s", as);
}

/* ---- Opening ---- */

/* A megabyte of compressed zeros may be gigabytes of memory. What is stored as it is takes no more than its
 * file. */
static void refuse_inflated(dv_archive *a, size_t megabytes) {
  enum { ALWAYS = 64 }; /* megabytes, which any memory has */
  size_t most = (megabytes > ALWAYS ? megabytes : ALWAYS) << 20;
  for (size_t i = 0; i < a->count; i++)
    if (!a->arrays[i].trouble && a->arrays[i].unpacked > most)
      a->arrays[i].trouble =
          "is compressed, and unpacked it needs more than memory allows; set memory = "
          "MEGABYTES to what it needs, or store it uncompressed, as numpy.savez does: it is "
          "then read piece by piece";
}

dvbf_status dv_format_open(dv_archive **out, dv_format format, const char *path, int descriptor,
                           dvbf_error *error) {
  switch (format) {
  case DV_FORMAT_HDF5: return dv_hdf5_open(out, path, descriptor, error);
  case DV_FORMAT_MATLAB: return dv_matlab_open(out, path, descriptor, error);
  default: return dv_npz_open(out, path, descriptor, error);
  }
}

/* In a process of its own, where that is wanted and possible. */
static dvbf_status open_guarded(dv_archive **out, dv_format format, const char *path, int descriptor,
                                const dv_data_settings *how, dvbf_error *error) {
  dvbf_error why = {.message = "this build has none"};
  bool started = false;
  if (how->sandbox != DV_SANDBOX_OFF && dv_sandbox_possible()) {
    dvbf_status status = dv_sandbox_open(out, format, path, descriptor, how, &started, &why);
    if (started && status && error) *error = why;
    if (started) return status;
    dv_archive_release(*out);
    *out = NULL;
  }
  if (how->sandbox == DV_SANDBOX_ON)
    return dv_fail(error, DVBF_IO,
                   "%.200s: is not read, as there is no sandbox: %.200s; with sandbox = off it is", path,
                   why.message);
  return dv_format_open(out, format, path, descriptor, error);
}

static dvbf_status open_any(dv_archive **out, const char *path, int descriptor, const dv_data_settings *how,
                            dvbf_error *error) {
  unsigned char magic[16] = {0};
  ssize_t size = pread(descriptor, magic, sizeof magic, 0);
  if (size < 0) return dv_fail(error, DVBF_IO, "%.200s: cannot be read: %s", path, strerror(errno));
  if (size == 0) return dv_fail(error, DVBF_FORMAT, "%.200s: is empty; make or copy the file again", path);
  if (!memcmp(magic, "\x93NUMPY", 6)) return dv_npy_open(out, path, descriptor, error);
  if (!memcmp(magic, "PK\3\4", 4) || !memcmp(magic, "PK\5\6", 4))
    return open_guarded(out, DV_FORMAT_ZIP, path, descriptor, how, error);
  if (size == sizeof magic && !memcmp(magic, "MATLAB 5.0", 10))
    return open_guarded(out, DV_FORMAT_MATLAB, path, descriptor, how, error);
  if (dv_hdf5_recognises(descriptor)) return open_guarded(out, DV_FORMAT_HDF5, path, descriptor, how, error);
  const char *foreign = dv_foreign(magic, (size_t)size);
  if (foreign) return dv_fail(error, DVBF_FORMAT, "%.200s: %s", path, foreign);
  return dv_csv_open(out, path, descriptor, how, error);
}

/* A format that goes on reading from the descriptor duplicates it. */
static dvbf_status open_file(dv_archive **out, const char *path, const dv_data_settings *how,
                             dvbf_error *error) {
  struct stat about;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 || fstat(descriptor, &about)) {
    int reason = errno;
    if (descriptor >= 0) close(descriptor);
    return dv_fail(error, DVBF_IO, "%.200s: cannot be read: %s", path, strerror(reason));
  }
  dvbf_status status =
      S_ISREG(about.st_mode)
          ? open_any(out, path, descriptor, how, error)
          : dv_fail(error, DVBF_IO, "%.200s: is not a file; name an HDF5, NPZ, NPY, MATLAB or CSV file",
                    path);
  close(descriptor);
  return status;
}

dvbf_status dv_archive_open(dv_archive **out, const char *path, const dv_data_settings *how,
                            dvbf_error *error) {
  dv_archive *a = NULL;
  dvbf_status status = open_file(&a, path, how, error);
  if (!status) status = dv_archive_sort(a, error);
  if (!status) refuse_inflated(a, (size_t)how->memory);
  if (status)
    dv_archive_release(a);
  else
    *out = a;
  return status;
}

dv_archive *dv_archive_keep(dv_archive *a) {
  __atomic_add_fetch(&a->references, 1, __ATOMIC_RELAXED);
  return a;
}

void dv_archive_release(dv_archive *a) {
  if (!a || __atomic_sub_fetch(&a->references, 1, __ATOMIC_ACQ_REL)) return;
  if (a->close) a->close(a);
  for (size_t i = 0; i < a->count; i++) dv_free(a->arrays[i].name);
  DV_FREE(a->arrays, a->notes, a->uses);
  dv_free(a);
}

/* ---- Reading ---- */

const char *dv_array_read(dv_archive *a, const dv_array *array, size_t first, size_t n, float *floats,
                          double *doubles) {
  if (first > array->elements || n > array->elements - first) return "it has fewer numbers than are needed";
  return a->read(a, array, first, n, floats, doubles);
}

dvbf_status dv_archive_read(dv_archive *a, const dv_array *array, size_t first, size_t n, float *floats,
                            double *doubles, dvbf_error *error) {
  const char *remedy = dv_array_read(a, array, first, n, floats, doubles);
  if (!remedy) return DVBF_OK;
  return dv_fail(error, DVBF_FORMAT, "%.200s: %.64s cannot be read; %s", a->path, array->name, remedy);
}
