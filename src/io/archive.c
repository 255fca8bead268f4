/* Data files as sets of named arrays (dv_archive_open, dv_archive_read): recognises a format by its content,
 * and opens it in a sandbox if a foreign library parses it. Also arrays of the caller as an archive
 * (dv_archive_of), so that names, shapes and refusals are the same in memory and in files; values in another
 * order than that of C; numbers of files; and sentences about formats that are not read. */
#include "io/archive.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/csv.h"
#include "io/sandbox.h"
#include "io/write_arrays.h"

#include <dvbf/dvbf.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
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

size_t dv_episode_length(const char *path) {
  for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
    if (slash > path && slash[-1] >= '0' && slash[-1] <= '9') return (size_t)(slash - path);
  return 0;
}

size_t dv_family_length(const char *path, size_t length) {
  while (length && path[length - 1] >= '0' && path[length - 1] <= '9') length--;
  return length;
}

static int compare_arrays(const void *a, const void *b) {
  return dv_compare_names(((const dv_named_array *)a)->name, ((const dv_named_array *)b)->name);
}

const dv_named_array *dv_archive_find(const dv_archive *a, const char *name) {
  dv_named_array wanted = {.name = name};
  return a->count ? bsearch(&wanted, a->arrays, a->count, sizeof *a->arrays, compare_arrays) : NULL;
}

const char *dv_array_shape(const dv_named_array *array, char *out, size_t size) {
  size_t used = (size_t)snprintf(out, size, "[");
  for (int i = 0; i < array->rank && used + 24 < size; i++)
    used += (size_t)snprintf(out + used, size - used, "%s%zu", i ? ", " : "", array->dims[i]);
  snprintf(out + used, size - used, "]");
  return out;
}

const char *dv_role_setting(dv_role role) {
  static const char *const names[] = {"outputs", "inputs", "states", "mask-key", "length-key"};
  return names[role];
}

const char *dv_role_text(const dv_data_settings *how, dv_role role) {
  const char *const texts[] = {how->outputs, how->inputs, how->states, how->mask_key, how->length_key};
  return texts[role];
}

/* ---- Building ---- */

void dv_array_squeeze(dv_named_array *array) {
  if (array->rank != 2 || (array->dims[0] != 1 && array->dims[1] != 1)) return;
  array->rank = array->dims[0] == 1 && array->dims[1] == 1 ? 0 : 1;
  if (array->dims[0] == 1) array->dims[0] = array->dims[1];
}

dv_archive *dv_archive_new(const dv_format *format, const char *path) {
  dv_archive *a = dv_calloc(1, format->archive);
  if (!a) return NULL;
  a->format = format;
  snprintf(a->path, sizeof a->path, "%s", path);
  a->references = 1;
  return a;
}

/* Elements of all dimensions together, or the trouble with them. */
static const char *count_elements(dv_named_array *array) {
  array->elements = 1;
  for (int i = 0; i < array->rank; i++) {
    if (array->dims[i] == 0) return "is empty; each dimension must be 1 or more";
    if (!dv_multiply(array->elements, array->dims[i], &array->elements) || array->elements > DV_MAX_ELEMENTS)
      return "is too large; it must have fewer than 2^40 numbers, so split it over several files";
  }
  return NULL;
}

const char dv_no_memory[] = "memory ran out";

dvbf_status dv_archive_add(dv_archive *a, const dv_named_array *array, dvbf_error *error) {
  enum { MOST_HELD = 1 << 20 };
  if (array->trouble == dv_no_memory) return dv_fail_memory(error, "reading data");
  if (strlen(array->name) >= DV_ARRAY_NAME) return DVBF_OK;
  if (a->count == MOST_HELD)
    return dv_fail_file(error, a->path, "holds more than %d arrays; split it over several files", MOST_HELD);
  dv_named_array *arrays = dv_grow(a->arrays, a->count, sizeof *arrays);
  if (!arrays) return dv_fail_memory(error, "reading data");
  a->arrays = arrays;
  dv_named_array *to = &a->arrays[a->count];
  *to = *array;
  const char *size = count_elements(to), *trouble = size ? size : array->trouble;
  to->seekable = to->seekable && !to->fortran;
  to->ordered = NULL;
  to->width = 0;
  if (to->unpacked == DV_WHOLE) to->unpacked = to->elements * sizeof(float);
  to->name = dv_strdup(array->name);
  to->trouble = trouble ? dv_strdup(trouble) : NULL;
  a->count++;
  return to->name && (to->trouble || !trouble) ? DVBF_OK : dv_fail_memory(error, "reading data");
}

dvbf_status dv_archive_sort(dv_archive *a, dvbf_error *error) {
  if (a->count) qsort(a->arrays, a->count, sizeof *a->arrays, compare_arrays);
  for (size_t i = 1; i < a->count; i++)
    if (!strcmp(a->arrays[i].name, a->arrays[i - 1].name))
      return dv_fail_file(error, a->path, "holds two arrays named %.64s; make the file again",
                          a->arrays[i].name);
  return DVBF_OK;
}

/* ---- Notes and failures ---- */

void dv_report_file(dvbf_error *error, const char *path, const char *format, ...) {
  DV_PLAIN_NUMBERS;
  char text[sizeof error->message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  dv_report(error, DVBF_FORMAT, "%.200s: %s", path, text);
}

void dv_archive_note(dv_archive *a, const char *format, ...) {
  DV_PLAIN_NUMBERS;
  char(*notes)[256] = dv_grow(a->notes, a->n_notes, sizeof *notes);
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
  dvbf_use *uses = dv_grow(a->uses, a->n_uses, sizeof *uses);
  a->forgot = a->forgot || !uses;
  if (!uses) return;
  a->uses = uses;
  snprintf(uses[a->n_uses].name, sizeof uses->name, "%.63s", name);
  snprintf(uses[a->n_uses++].role, sizeof uses->role, "%.127s", as);
}

/* ---- Formats that are not read ---- */

#define FRAMES "is a video; store its frames: numpy.savez(\"data.npz\", x=frames), [1, steps, height, width]"
#define IMAGES "is an image; stack images as [1, steps, height, width]: numpy.savez(\"data.npz\", x=images)"
#define PICKLE                                                                                               \
  "is a Python pickle; in Python: x = pickle.load(open(FILE, \"rb\")), then numpy.savez(\"data.npz\", "      \
  "x=x)"
#define PANDAS(read) "; convert it in Python: pandas." read ".to_csv(\"data.csv\", index=False)"

/* How files of other formats begin. */
static const struct {
  size_t offset, length;
  const char *bytes, *sentence;
} known[] = {
    {0, 4, "PAR1", "is a Parquet file" PANDAS("read_parquet(FILE)")},
    {0, 6, "ARROW1", "is a Feather or Arrow file" PANDAS("read_feather(FILE)")},
    {0, 4, "FEA1", "is a Feather file" PANDAS("read_feather(FILE)")},
    {0, 8, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
     "is an old Excel file; in Excel or LibreOffice, save it as CSV"},
    {0, 2, "\x1f\x8b", "is compressed with gzip; unpack it: gunzip FILE"},
    {0, 3, "BZh", "is compressed with bzip2; unpack it: bunzip2 FILE"},
    {0, 6,
     "\xfd"
     "7zXZ",
     "is compressed with xz; unpack it: unxz FILE"},
    {0, 4, "\x28\xb5\x2f\xfd", "is compressed with zstd; unpack it: unzstd FILE"},
    {0, 2, "\x80\x02",
     "is a Python pickle, perhaps from PyTorch; in Python: x = torch.load(FILE) or pickle.load(open(FILE, "
     "\"rb\")), then numpy.savez(\"data.npz\", x=x)"},
    {0, 2, "\x80\x03", PICKLE},
    {0, 2, "\x80\x04", PICKLE},
    {0, 2, "\x80\x05", PICKLE},
    {0, 15, "SQLite format 3",
     "is an SQLite database; export a table: sqlite3 -header -csv FILE \"select * from TABLE\" > data.csv"},
    {0, 4, "TDSm",
     "is a LabVIEW TDMS file; in Python: nptdms.TdmsFile(FILE).as_dataframe().to_csv(\"data.csv\", "
     "index=False)"},
    {0, 3, "MDF",
     "is an MDF file; in Python: asammdf.MDF(FILE).to_dataframe(raster=0.01).to_csv(\"data.csv\")"},
    {0, 7, "#ROSBAG", "is a ROS bag; write a topic as CSV: rostopic echo -b FILE -p /TOPIC > data.csv"},
    {0, 5, "\x89MCAP", "is an MCAP file; write its topics as CSV or store them with numpy.savez"},
    {4, 4, "ftyp", FRAMES},
    {8, 4, "AVI ", FRAMES},
    {8, 4, "WAVE",
     "is an audio file; in Python: rate, x = scipy.io.wavfile.read(FILE), then numpy.savez(\"data.npz\", "
     "x=x, fs=rate)"},
    {0, 4, "\x89PNG", IMAGES},
    {0, 3, "\xff\xd8\xff", IMAGES},
    {0, 4, "%PDF", "is a PDF document; export its table as CSV"},
};

/* ---- Formats ---- */

/* In the order in which they are tried. */
static const dv_format *const formats[] = {&dv_format_npy, &dv_format_npz, &dv_format_matlab, &dv_format_hdf5,
                                           &dv_format_csv};
enum { FORMATS = sizeof formats / sizeof *formats, TEXT = FORMATS - 1 };

const char *dv_formats_listed(bool endings, char out[DVBF_FORMATS]) {
  *out = 0;
  for (size_t i = 0; i < FORMATS; i++)
    dv_append(out, DVBF_FORMATS, "%s%s", i ? " " : "", endings ? formats[i]->endings : formats[i]->name);
  return dv_text_alternatives(out, DVBF_FORMATS);
}

const char *dvbf_formats(bool written, char out[DVBF_FORMATS]) {
  return written ? dv_writers_listed(".csv", out) : dv_formats_listed(false, out);
}

bool dv_format_has_ending(const char *name) {
  for (size_t i = 0; i < FORMATS; i++)
    if (dv_text_ends_in(name, formats[i]->endings)) return true;
  return false;
}

/* ---- Opening ---- */

/* A megabyte of compressed zeros may be gigabytes of memory. Stored values take no more than their file. */
static dvbf_status refuse_inflated(dv_archive *a, size_t megabytes, dvbf_error *error) {
  enum { ALWAYS = 64 }; /* megabytes, which any memory has */
  size_t most = (megabytes > ALWAYS ? megabytes : ALWAYS) << 20;
  for (size_t i = 0; i < a->count; i++) {
    dv_named_array *array = &a->arrays[i];
    if (array->trouble || array->unpacked <= most) continue;
    array->trouble =
        dv_strdup("is compressed and larger than memory allows when unpacked; set memory = MEGABYTES to its "
                  "size, or store it uncompressed, as numpy.savez does: it is then read piece by piece");
    if (!array->trouble) return dv_fail_memory(error, "reading data");
  }
  return DVBF_OK;
}

dvbf_status dv_format_open(dv_archive **out, size_t format, const char *path, int descriptor,
                           const dv_data_settings *how, dvbf_error *error) {
  dv_archive *a = *out = dv_archive_new(formats[format], path);
  return a ? a->format->open(a, descriptor, how, error) : dv_fail_memory(error, "reading data");
}

/* In a process of its own, if that is wanted and possible. */
static dvbf_status open_guarded(dv_archive **out, size_t format, const char *path, int descriptor,
                                const dv_data_settings *how, dvbf_error *error) {
  dvbf_error why = {.message = "this build has none"};
  bool started = false;
  if (!formats[format]->sandboxed) return dv_format_open(out, format, path, descriptor, how, error);
  if (how->sandbox != DV_SANDBOX_OFF && dv_sandbox_possible()) {
    dvbf_status status = dv_sandbox_open(out, format, path, descriptor, how, &started, &why);
    if (started && status && error) *error = why;
    if (started) return status;
    dv_archive_release(*out);
    *out = NULL;
  }
  if (how->sandbox == DV_SANDBOX_ON)
    return dv_fail(error, DVBF_IO,
                   "%.200s: is not read, as there is no sandbox: %.200s; sandbox = off reads it without one",
                   path, why.message);
  return dv_format_open(out, format, path, descriptor, how, error);
}

static dvbf_status open_any(dv_archive **out, const char *path, int descriptor, const dv_data_settings *how,
                            dvbf_error *error) {
  unsigned char magic[16] = {0};
  ssize_t size = pread(descriptor, magic, sizeof magic, 0);
  if (size < 0) return dv_fail(error, DVBF_IO, "%.200s: cannot be read: %s", path, strerror(errno));
  if (size == 0) return dv_fail_file(error, path, "is empty; make or copy the file again");
  size_t format = 0;
  while (format < TEXT && !formats[format]->recognises(descriptor, magic, (size_t)size)) format++;
  for (size_t i = 0; format == TEXT && i < sizeof known / sizeof *known; i++)
    if (known[i].offset + known[i].length <= (size_t)size &&
        !memcmp(magic + known[i].offset, known[i].bytes, known[i].length))
      return dv_fail_file(error, path, "%s", known[i].sentence);
  return open_guarded(out, format, path, descriptor, how, error);
}

static dvbf_status open_file(dv_archive **out, const char *path, const dv_data_settings *how,
                             dvbf_error *error) {
  struct stat about;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 || fstat(descriptor, &about)) {
    int reason = errno;
    if (descriptor >= 0) close(descriptor);
    return dv_fail(error, DVBF_IO, "%.200s: cannot be read: %s", path, strerror(reason));
  }
  char names[DVBF_FORMATS];
  dvbf_status status = S_ISREG(about.st_mode)
                           ? open_any(out, path, descriptor, how, error)
                           : dv_fail(error, DVBF_IO, "%.200s: is not a file; name a file in %s", path,
                                     dv_formats_listed(false, names));
  close(descriptor);
  return status;
}

dvbf_status dv_archive_open(dv_archive **out, const char *path, const dv_data_settings *how,
                            dvbf_error *error) {
  dv_archive *a = NULL;
  dvbf_status status = open_file(&a, path, how, error);
  if (!status) status = dv_archive_sort(a, error);
  if (!status) status = refuse_inflated(a, (size_t)how->memory, error);
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
  if (a->format->close) a->format->close(a);
  for (size_t i = 0; i < a->count; i++)
    DV_FREE((void *)(uintptr_t)a->arrays[i].name, (void *)(uintptr_t)a->arrays[i].trouble,
            a->arrays[i].ordered);
  if (a->table) dv_csv_table_free(a->table);
  DV_FREE(a->arrays, a->notes, a->uses);
  dv_free(a);
}

/* ---- Reading ---- */

void dv_array_reorder(unsigned char *to, const unsigned char *from, const dv_named_array *array,
                      size_t size) {
  const int rank = array->rank, last = rank - 1;
  size_t index[DV_RANK] = {0}, strides[DV_RANK] = {0}, at = 0, stride = size;
  for (int k = 0; k < rank; k++) {
    int stored = array->fortran ? k : last - k;
    int i = array->swapped && stored >= rank - 2 ? 2 * rank - 3 - stored : stored;
    strides[i] = stride;
    stride *= array->dims[i];
  }
  for (size_t k = 0; k < array->elements; k++, to += size) {
    memcpy(to, from + at, size);
    for (int i = last; i >= 0; i--) {
      at += strides[i];
      if (++index[i] < array->dims[i]) break;
      at -= strides[i] * array->dims[i];
      index[i] = 0;
    }
  }
}

/* Reads an array whole, as floats or doubles by `width`, and keeps it in C order. */
static const char *load(dv_archive *a, dv_named_array *array, size_t width) {
  void *stored = dv_calloc(array->elements, width), *ordered = dv_calloc(array->elements, width);
  const char *remedy = !stored || !ordered
                           ? dv_no_memory
                           : a->format->read(a, array, 0, array->elements, (dv_out){stored, width});
  if (!remedy) {
    dv_array_reorder(ordered, stored, array, width);
    dv_free(array->ordered);
    array->ordered = ordered;
    array->width = width;
  }
  DV_FREE(stored, remedy ? ordered : NULL);
  return remedy;
}

const char *dv_array_read(dv_archive *a, const dv_named_array *array, size_t first, size_t n, dv_out out) {
  if (first > array->elements || n > array->elements - first) return "it has fewer numbers than needed";
  if (!array->fortran && !array->swapped) return a->format->read(a, array, first, n, out);
  dv_named_array *own = &a->arrays[array - a->arrays];
  const char *remedy = own->width < out.width ? load(a, own, out.width) : NULL;
  if (!remedy && own->width == out.width)
    memcpy(out.at, (const char *)own->ordered + first * out.width, n * out.width);
  else
    for (size_t k = 0; !remedy && k < n; k++)
      ((float *)out.at)[k] = (float)((const double *)own->ordered)[first + k];
  return remedy;
}

dv_found dv_array_strings(dv_archive *a, const dv_named_array *array, dv_strings which, size_t count,
                          size_t size, char *out) {
  return a->format->strings ? a->format->strings(a, array, which, count, size, out) : DV_FOUND_NONE;
}

void dv_archive_transpose(dv_archive *a) {
  int rank = 2;
  for (size_t i = 0; i < a->count; i++)
    if (!a->arrays[i].trouble && a->arrays[i].rank > rank) rank = a->arrays[i].rank;
  for (size_t i = 0; i < a->count; i++) {
    size_t *dims = a->arrays[i].dims, rows = dims[rank - 1];
    if (a->arrays[i].rank != rank) continue;
    dims[rank - 1] = dims[rank - 2];
    dims[rank - 2] = rows;
    a->arrays[i].swapped = true;
    a->arrays[i].seekable = false;
  }
}

dvbf_status dv_archive_read(dv_archive *a, const dv_named_array *array, size_t first, size_t n, dv_out out,
                            dvbf_error *error) {
  const char *remedy = dv_array_read(a, array, first, n, out);
  if (!remedy) return DVBF_OK;
  return dv_fail_file(error, a->path, "%.64s cannot be read; %s", array->name, remedy);
}

/* ---- Arrays of the caller ---- */

typedef struct memory_archive {
  dv_archive base;
  dvbf_array *given; /* [count], in the order of the caller; dv_named_array.place is the number of one */
} memory_archive;

/* Types in the order of dvbf_type. */
static const dv_number types[] = {[DVBF_FLOAT32] = DV_FLOAT32,
                                  [DVBF_FLOAT64] = DV_FLOAT64,
                                  [DVBF_UINT32] = DV_UINT32,
                                  [DVBF_INT64] = DV_INT64,
                                  [DVBF_UINT8] = DV_UINT8};

static const char *read_memory(dv_archive *a, const dv_named_array *array, size_t first, size_t n,
                               dv_out out) {
  const dvbf_array *given = &((const memory_archive *)a)->given[array->place];
  const unsigned char *from = given->values;
  size_t size = dv_number_size(types[given->type]);
  if (out.width == sizeof(float) && given->type == DVBF_FLOAT32)
    memcpy(out.at, from + first * size, n * size);
  else
    dv_numbers_convert(from + first * size, types[given->type], false, n, out);
  return NULL;
}

static const float *floats(dv_archive *a, const dv_named_array *array) {
  const dvbf_array *given = &((const memory_archive *)a)->given[array->place];
  return given->type == DVBF_FLOAT32 ? given->values : NULL;
}

static void close_memory(dv_archive *a) {
  dv_free(((memory_archive *)a)->given);
}

static dvbf_status add(dv_archive *a, const dvbf_array *given, size_t number, dvbf_error *error) {
  if (!given->name || !*given->name || strlen(given->name) >= DV_ARRAY_NAME)
    return dv_fail(error, DVBF_ARGUMENT, "data: array %zu needs a name of 1 to %d bytes, as x or u", number,
                   DV_ARRAY_NAME - 1);
  if ((size_t)given->type >= sizeof types / sizeof *types || given->rank < 0 || given->rank > DVBF_MAX_RANK ||
      !given->values)
    return dv_fail(error, DVBF_ARGUMENT,
                   "data: %.64s cannot be read; it needs a known type, values, and a rank in [0, %d]",
                   given->name, DVBF_MAX_RANK);
  dv_named_array array = {.name = given->name,
                          .rank = given->rank,
                          .real = given->type == DVBF_FLOAT32 || given->type == DVBF_FLOAT64,
                          .bytes = given->type == DVBF_UINT8,
                          .seekable = true,
                          .place = number};
  for (int i = 0; i < given->rank; i++) array.dims[i] = given->dims[i];
  return dv_archive_add(a, &array, error);
}

static const dv_format memory_format = {
    .archive = sizeof(memory_archive), .read = read_memory, .floats = floats, .close = close_memory};

dvbf_status dv_archive_of(dv_archive **out, const dvbf_array *arrays, size_t count, dvbf_error *error) {
  memory_archive *m = (memory_archive *)dv_archive_new(&memory_format, "data");
  if (!m) return dv_fail_memory(error, "reading data");
  *out = &m->base;
  m->given = dv_calloc(count, sizeof *m->given);
  dvbf_status status = m->given ? DVBF_OK : dv_fail_memory(error, "reading data");
  if (!status && count) memcpy(m->given, arrays, count * sizeof *arrays);
  for (size_t i = 0; i < count && !status; i++) status = add(&m->base, &arrays[i], i, error);
  return status ? status : dv_archive_sort(&m->base, error);
}

/* ---- Numbers of files ---- */

size_t dv_number_size(dv_number type) {
  static const size_t sizes[] = {2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8};
  return sizes[type];
}

/* Binary16: 1 bit of sign, 5 of exponent with bias 15, 10 of fraction. */
static float from_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float size = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent     ? ldexpf((float)(1024 + fraction), exponent - 25)
                              : ldexpf((float)fraction, -24);
  return bits >> 15 ? -size : size;
}

static void reverse(unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size / 2; i++) {
    unsigned char first = bytes[i];
    bytes[i] = bytes[size - 1 - i];
    bytes[size - 1 - i] = first;
  }
}

/* One loop for a type of words, whose value is the expression of `v`. */
#define EACH(word, value)                                                                                    \
  for (size_t i = 0; i < n; i++, from += sizeof(word)) {                                                     \
    word v;                                                                                                  \
    memcpy(&v, from, sizeof v);                                                                              \
    if (swapped) reverse((unsigned char *)&v, sizeof v);                                                     \
    if (single)                                                                                              \
      floats[i] = (float)(value);                                                                            \
    else                                                                                                     \
      doubles[i] = (double)(value);                                                                          \
  }                                                                                                          \
  break

void dv_numbers_convert(const unsigned char *from, dv_number type, bool swapped, size_t n, dv_out out) {
  const bool single = out.width == sizeof(float);
  float *floats = out.at;
  double *doubles = out.at;
  switch (type) {
  case DV_FLOAT16: EACH(uint16_t, from_half(v));
  case DV_FLOAT32: EACH(float, v);
  case DV_FLOAT64: EACH(double, v);
  case DV_INT8: EACH(int8_t, v);
  case DV_INT16: EACH(int16_t, v);
  case DV_INT32: EACH(int32_t, v);
  case DV_INT64: EACH(int64_t, v);
  case DV_UINT8: EACH(uint8_t, v);
  case DV_UINT16: EACH(uint16_t, v);
  case DV_UINT32: EACH(uint32_t, v);
  case DV_UINT64: EACH(uint64_t, v);
  }
}
