/* HDF5 files as archives (dv_hdf5_open), also MATLAB 7.3 files. A file may hold anything: whatever HDF5
 * reports is checked before it is used. Files are read through a driver for open descriptors, since a
 * sandboxed process can open none; the library is locked, its printing switched off, and its error handling
 * is shared with hdf5_write.c (dv_hdf5_enter). */
#include "base/error.h"
#include "base/memory.h"
#include "io/archive.h"
#include "io/csv.h"
#include "io/hdf5.h"
#include "io/sandbox.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Errors ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The errno with which the system refused a read, or ENOMEM; the library skips objects that it cannot read.
 * One thread at a time uses HDF5. */
static int failure;

static int take_failure(void) {
  int last = failure;
  failure = 0;
  return last;
}

static herr_t look_for_memory(unsigned depth, const H5E_error2_t *error, void *user) {
  bool *found = user;
  *found |= error->min_num == H5E_NOSPACE || error->min_num == H5E_CANTALLOC;
  return 0;
}

/* Instead of printing. A lack of memory would else be taken for a missing object. */
static herr_t notice(hid_t stack, void *user) {
  bool found = false;
  H5Ewalk2(stack, H5E_WALK_DOWNWARD, look_for_memory, &found);
  if (found) failure = ENOMEM;
  return 0;
}

/* The caller's choice. */
static H5E_auto2_t printing;
static void *printing_data;

void dv_hdf5_enter(void) {
  pthread_mutex_lock(&lock);
  H5dont_atexit();
  H5Eget_auto2(H5E_DEFAULT, &printing, &printing_data);
  H5Eset_auto2(H5E_DEFAULT, notice, NULL);
}

void dv_hdf5_leave(void) {
  H5Eset_auto2(H5E_DEFAULT, printing, printing_data);
  pthread_mutex_unlock(&lock);
}

/* ---- Driver for open descriptors ---- */

/* HDF5's own drivers open files by path, which a sandboxed process must not be able to do. */

typedef struct open_file {
  H5FD_t base; /* of the library */
  int descriptor;
  haddr_t used, size; /* what the library takes for the end, and the end */
} open_file;

/* The name is the number of the descriptor, which stays the caller's. */
static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access_list, haddr_t most) {
  struct stat about;
  int descriptor = (int)strtol(name, NULL, 10);
  if (flags & (H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC) || fstat(descriptor, &about)) return NULL;
  open_file *f = dv_calloc(1, sizeof *f);
  if (!f) return NULL;
  f->descriptor = descriptor;
  f->size = (haddr_t)about.st_size;
  return &f->base;
}

static herr_t driver_close(H5FD_t *file) {
  dv_free(file);
  return 0;
}

/* The library collects small reads, as from its usual driver. */
static herr_t driver_query(const H5FD_t *file, unsigned long *flags) {
  if (flags) *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE;
  return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type) {
  return ((const open_file *)file)->used;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t end) {
  ((open_file *)file)->used = end;
  return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type) {
  return ((const open_file *)file)->size;
}

/* Bytes past the end are 0, as in the usual driver. */
static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t list, haddr_t at, size_t size, void *to) {
  open_file *f = (open_file *)file;
  unsigned char *out = to;
  while (size) {
    ssize_t got = pread(f->descriptor, out, size, (off_t)at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      failure = errno;
      return -1;
    }
    if (!got) {
      while (size) out[--size] = 0;
      return 0;
    }
    out += got;
    at += (haddr_t)got;
    size -= (size_t)got;
  }
  return 0;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t list, haddr_t at, size_t size,
                           const void *from) {
  return -1;
}

/* The file holds on to the driver. Negative on failure. */
static hid_t open_descriptor(int descriptor) {
  static const H5FD_class_t class = {
#ifdef H5FD_CLASS_VERSION
      .version = H5FD_CLASS_VERSION,
      .value = 600, /* above those that The HDF Group gives away */
#endif
      .name = "dvbf_descriptor",
      .maxaddr = (haddr_t)1 << 62,
      .fc_degree = H5F_CLOSE_STRONG,
      .open = driver_open,
      .close = driver_close,
      .query = driver_query,
      .get_eoa = driver_get_eoa,
      .set_eoa = driver_set_eoa,
      .get_eof = driver_get_eof,
      .read = driver_read,
      .write = driver_write,
      .fl_map = H5FD_FLMAP_DICHOTOMY,
  };
  char name[16];
  hid_t driver = H5FDregister(&class), access_list = H5Pcreate(H5P_FILE_ACCESS), file = H5I_INVALID_HID;
  snprintf(name, sizeof name, "%d", descriptor);
  H5Pset_fclose_degree(access_list, H5F_CLOSE_STRONG);
  if (driver >= 0 && H5Pset_driver(access_list, driver, NULL) >= 0)
    file = H5Fopen(name, H5F_ACC_RDONLY, access_list);
  H5Pclose(access_list);
  if (driver >= 0) H5FDunregister(driver);
  return file;
}

/* ---- Types and storage ---- */

typedef struct hdf5_file {
  dv_archive base;
  hid_t file;
  int descriptor;
  hid_t *open; /* [arrays] datasets that stay open, negative if closed; NULL if there are too many */
} hdf5_file;

/* The signature may follow a user block. */
static bool recognises(int descriptor, const unsigned char *bytes, size_t size) {
  enum { USER_BLOCK = 512 };
  char signature[8];
  for (off_t at = 0; pread(descriptor, signature, sizeof signature, at) == sizeof signature;
       at = at ? 2 * at : USER_BLOCK)
    if (!memcmp(signature, "\x89HDF\r\n\x1a\n", sizeof signature)) return true;
  return false;
}

static const char *class_trouble(H5T_class_t class) {
  switch (class) {
  case H5T_INTEGER:
  case H5T_FLOAT:
  case H5T_ENUM: return NULL; /* h5py stores booleans as an enumeration */
  case H5T_STRING: return "holds text; store numbers, preferably float32 or uint8";
  case H5T_COMPOUND: return "holds compounds; store numbers, preferably float32 or uint8";
  case H5T_REFERENCE: return "holds references; store numbers, preferably float32 or uint8";
  case H5T_VLEN: return "holds values of variable length; store numbers, preferably float32 or uint8";
  case H5T_ARRAY: return "holds arrays as values; store numbers, preferably float32 or uint8";
  default: return "holds values of an unknown type; store numbers, preferably float32 or uint8";
  }
}

static const char *type_trouble(hid_t type, dv_named_array *array) {
  H5T_class_t class = H5Tget_class(type);
  size_t size = H5Tget_size(type);
  const char *trouble = class_trouble(class);
  array->text = class == H5T_STRING;
  array->real = class == H5T_FLOAT;
  array->bytes = class == H5T_INTEGER && size == 1 && H5Tget_sign(type) == H5T_SGN_NONE;
  if (trouble) return trouble;
  /* HDF5 overruns its buffers on some of the other widths, which a damaged file can have. */
  hid_t number = class == H5T_ENUM ? H5Tget_super(type) : H5Tcopy(type);
  bool ordinary = H5Tget_size(number) == size && size <= 8 && size && H5Tget_offset(number) == 0 &&
                  H5Tget_precision(number) == 8 * size;
  H5Tclose(number);
  return ordinary ? NULL : "holds numbers of an unusual width; store float32 or uint8";
}

static const char damage[] = "the file is damaged, so make or copy it again";

/* An array much larger than its stored bytes is meant to fill the memory. */
static const char *storage_trouble(hid_t id, const dv_named_array *array) {
  enum { USUAL = 200 };
  const double large = 1 << 30;
  double needed = sizeof(float), stored = (double)H5Dget_storage_size(id);
  for (int i = 0; i < array->rank; i++) needed *= (double)array->dims[i];
  if (needed > 0 && stored == 0) return "was declared but never written; write its values";
  if (needed > large && needed / USUAL > stored)
    return "is declared far larger than the values stored; write all its values";
  return NULL;
}

/* Bytes of a chunk that is compressed: it is unpacked as a whole. 0: chunks are stored as they are. */
static size_t unpacked_chunk(hid_t id, hid_t type) {
  hsize_t dims[H5S_MAX_RANK];
  hid_t creation = H5Dget_create_plist(id);
  size_t bytes = 0;
  bool chunked = creation >= 0 && H5Pget_layout(creation) == H5D_CHUNKED && H5Pget_nfilters(creation) > 0;
  int rank = chunked ? H5Pget_chunk(creation, H5S_MAX_RANK, dims) : 0;
  if (rank > 0) bytes = H5Tget_size(type);
  for (int i = 0; i < rank && i < H5S_MAX_RANK; i++)
    if (!dv_multiply(bytes, dims[i], &bytes)) bytes = DV_WHOLE - 1;
  if (creation >= 0) H5Pclose(creation);
  return bytes;
}

static void describe(hid_t id, dv_named_array *array) {
  hsize_t dims[H5S_MAX_RANK];
  hid_t type = H5Dget_type(id), space = H5Dget_space(id);
  array->trouble = type_trouble(type, array);
  int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0 || H5Sget_simple_extent_dims(space, dims, NULL) < 0)
    array->trouble = "is damaged; make or copy the file again";
  else if (rank > DV_RANK)
    array->trouble = "has more than 8 dimensions; reshape it";
  else
    for (array->rank = 0; array->rank < rank; array->rank++) array->dims[array->rank] = dims[array->rank];
  if (!array->trouble) array->trouble = storage_trouble(id, array);
  array->unpacked = unpacked_chunk(id, type);
  haddr_t at = H5Dget_offset(id); /* known only of values in one piece */
  if (at != HADDR_UNDEF && (array->bytes || H5Tequal(type, H5T_NATIVE_FLOAT) > 0)) array->plain = at;
  array->seekable = true;
  H5Sclose(space);
  H5Tclose(type);
}

/* ---- List of arrays ---- */

enum { DEEPEST = 8, MOST_LINKS = 1 << 21 };

typedef struct hdf5_walk {
  hdf5_file *file;
  char path[DV_ARRAY_NAME];
  int depth;
  size_t links; /* visited objects: links may form rings */
  dvbf_status status;
  dvbf_error *error;
} hdf5_walk;

static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *user);

/* MATLAB 7.3's class of a variable; "" if another program wrote it. */
static void matlab_class(hid_t id, char out[32]) {
  *out = 0;
  if (H5Aexists(id, "MATLAB_class") <= 0) return;
  hid_t attribute = H5Aopen(id, "MATLAB_class", H5P_DEFAULT), type = H5Aget_type(attribute);
  hid_t memory = H5Tcopy(H5T_C_S1);
  char text[32] = "";
  bool fixed = type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) <= 0;
  if (fixed && H5Tset_size(memory, sizeof text) >= 0 && H5Aread(attribute, memory, text) >= 0)
    snprintf(out, 32, "%.31s", text);
  H5Tclose(memory);
  if (type >= 0) H5Tclose(type);
  if (attribute >= 0) H5Aclose(attribute);
}

/* MATLAB's first dimension runs fastest, so HDF5 has the dimensions reversed. Vectors have two dimensions,
 * one of them 1. */
static void turn(dv_named_array *array, const char *class) {
  size_t dims[DV_RANK] = {0};
  array->fortran = true;
  array->plain = 0;
  if (array->unpacked) array->unpacked = DV_WHOLE;
  if (!strcmp(class, "cell"))
    array->trouble = "is a cell array; in MATLAB: x = vertcat(c{:}); length = cellfun(@(a) size(a, 1), c); "
                     "save('new.mat', 'x', 'length')";
  if (!strcmp(class, "char")) array->trouble = "holds text; store numbers";
  for (int i = 0; i < array->rank; i++) dims[i] = array->dims[array->rank - 1 - i];
  memcpy(array->dims, dims, sizeof *dims * (size_t)array->rank);
  dv_array_squeeze(array);
}

static void visit_dataset(hdf5_walk *w, hid_t id) {
  char class[32];
  dv_named_array array = {.name = w->path, .place = w->file->base.count};
  describe(id, &array);
  matlab_class(id, class);
  if (*class && array.rank) turn(&array, class);
  const char *slash = strrchr(w->path, '/');
  bool pandas = slash && (!strcmp(slash, "/block0_values") || !strcmp(slash, "/table"));
  if (pandas && (array.trouble || strstr(w->path, "block0_values"))) {
    w->status = dv_fail_file(w->error, w->file->base.path,
                             "was written by pandas; convert it in Python: "
                             "pandas.read_hdf(FILE).to_csv(\"data.csv\", index=False)");
    return;
  }
  if (!strncmp(w->path, "#refs#", 6) || !strncmp(w->path, "#subsystem#", 11))
    return; /* of cells and objects */
  w->status = dv_archive_add(&w->file->base, &array, w->error);
}

static void visit_object(hdf5_walk *w, hid_t group, const char *name) {
  hid_t id = H5Oopen(group, name, H5P_DEFAULT);
  if (id < 0) return; /* a link to nowhere, or damage that matters only if it is x that is missing then */
  H5I_type_t type = H5Iget_type(id);
  if (type == H5I_DATASET) visit_dataset(w, id);
  if (type == H5I_GROUP && w->depth < DEEPEST) {
    w->depth++;
    H5Literate(id, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, visit, w);
    w->depth--;
  }
  H5Oclose(id);
}

static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *user) {
  hdf5_walk *w = user;
  size_t before = strlen(w->path);
  if (++w->links > MOST_LINKS)
    w->status = dv_fail_file(w->error, w->file->base.path, "has too many links; store fewer, larger arrays");
  if (w->status) return 1;
  /* Links out of the file are not followed. */
  if (info->type != H5L_TYPE_HARD && info->type != H5L_TYPE_SOFT) return 0;
  if (before + strlen(name) + 2 > sizeof w->path) return 0;
  snprintf(w->path + before, sizeof w->path - before, "%s%s", before ? "/" : "", name);
  visit_object(w, group, name);
  w->path[before] = 0;
  return w->status ? 1 : 0;
}

/* ---- Values ---- */

/* Elements first .. first + n - 1 of dims [rank] in C order are slabs: the rest of a row, whole rows, the
 * beginning of a row; rows are cut alike. `at` [fixed] are the indices that are fixed already. */
typedef struct reading {
  hid_t id, space, type;
  const dv_named_array *array;
  hsize_t at[DV_RANK];
  unsigned char *out;
  size_t size; /* of an element in `out` */
} reading;

/* `rows` slabs of all that is below index `first` of dimension `fixed`. */
static bool read_slab(reading *r, int fixed, size_t first, size_t rows) {
  hsize_t begin[DV_RANK] = {0}, counts[DV_RANK] = {0}, elements = rows;
  for (int i = 0; i < r->array->rank; i++) {
    begin[i] = i < fixed ? r->at[i] : i == fixed ? first : 0;
    counts[i] = i < fixed ? 1 : i == fixed ? rows : r->array->dims[i];
    if (i > fixed) elements *= counts[i];
  }
  /* In the shape of the slab: HDF5 would walk through single elements otherwise. */
  hid_t memory = H5Screate_simple(r->array->rank, counts, NULL);
  bool done = H5Sselect_hyperslab(r->space, H5S_SELECT_SET, begin, NULL, counts, NULL) >= 0 &&
              H5Dread(r->id, r->type, memory, r->space, H5P_DEFAULT, r->out) >= 0;
  r->out += elements * r->size;
  H5Sclose(memory);
  return done;
}

static bool read_range(reading *r, int fixed, size_t first, size_t n) {
  if (r->array->rank == 0 || r->array->fortran)
    return H5Dread(r->id, r->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, r->out) >= 0;
  size_t below = 1; /* elements of one index of dimension `fixed` */
  for (int i = fixed + 1; i < r->array->rank; i++) below *= r->array->dims[i];
  while (n) {
    size_t row = first / below, at = first % below, rows = at ? 0 : n / below;
    size_t part = rows ? rows * below : below - at < n ? below - at : n;
    r->at[fixed] = row;
    if (!(rows ? read_slab(r, fixed, row, rows) : read_range(r, fixed + 1, at, part))) return false;
    first += part;
    n -= part;
  }
  return true;
}

/* The dataset of an array, opened with a bounded cache of chunks. */
static hid_t open_dataset(hdf5_file *f, const dv_named_array *array) {
  enum { SLOTS = 521, CACHE = 8 << 20 };
  if (f->open && f->open[array->place] >= 0) return f->open[array->place];
  hid_t list = H5Pcreate(H5P_DATASET_ACCESS);
  /* A chunk that is compressed must fit, or each piece would unpack it anew. The chunk longest unused goes; 1
   * would keep all read in part. */
  H5Pset_chunk_cache(list, SLOTS, array->unpacked > CACHE ? array->unpacked : CACHE, 0);
  hid_t id = H5Dopen2(f->file, array->name, list);
  H5Pclose(list);
  if (f->open) f->open[array->place] = id;
  return id;
}

static void close_dataset(hdf5_file *f, hid_t id) {
  if (!f->open && id >= 0) H5Dclose(id);
}

static const char *hdf5_read(dv_archive *a, const dv_named_array *array, size_t first, size_t n, dv_out out) {
  hdf5_file *f = (hdf5_file *)a;
  dv_hdf5_enter();
  hid_t id = open_dataset(f, array), space = H5Dget_space(id);
  reading r = {.id = id,
               .space = space,
               .array = array,
               .type = out.width == sizeof(float) ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE,
               .out = out.at,
               .size = out.width};
  bool done = id >= 0 && space >= 0 && read_range(&r, 0, first, n);
  if (space >= 0) H5Sclose(space);
  close_dataset(f, id);
  dv_hdf5_leave();
  return done ? NULL : damage;
}

/* ---- Text ---- */

/* Either type of text, of an attribute or, if that is negative, of a dataset, as UTF-8. */
static bool copy_strings(hid_t dataset, hid_t attribute, hid_t type, hid_t space, size_t count, size_t size,
                         char *out /* [count][size] */) {
  enum { LONGEST_STRING = 128 };
  bool variable = H5Tis_variable_str(type) > 0;
  size_t width = variable ? sizeof(char *) : 32;
  if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != (hssize_t)count)
    return false;
  hid_t memory_type = H5Tcopy(H5T_C_S1);
  char *raw = dv_calloc(count, width);
  bool read = raw && H5Tset_size(memory_type, variable ? H5T_VARIABLE : width) >= 0 &&
              H5Tset_cset(memory_type, H5Tget_cset(type)) >= 0 &&
              (attribute >= 0 ? H5Aread(attribute, memory_type, raw)
                              : H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw)) >= 0;
  for (size_t i = 0; read && i < count; i++) {
    const char *name = variable ? ((char **)(void *)raw)[i] : raw + i * width;
    size_t length = name ? strnlen(name, variable ? LONGEST_STRING : width) : 0;
    dv_name_copy((dv_cursor){name, name + length}, out + i * size, size);
  }
  if (read && variable) H5Dvlen_reclaim(memory_type, space, H5P_DEFAULT, raw);
  dv_free(raw);
  H5Tclose(memory_type);
  return read;
}

/* The strings of an array of text, or of an attribute of another. */
static dv_found read_object(hid_t id, const dv_named_array *array, dv_strings which, size_t count,
                            size_t size, char *out) {
  const char *name = which == DV_STRINGS_UNITS ? "units" : "names";
  bool values = which == DV_STRINGS_VALUES;
  if (array->text != values || (!values && H5Aexists(id, name) <= 0)) return DV_FOUND_NONE;
  hid_t attribute = values ? H5I_INVALID_HID : H5Aopen(id, name, H5P_DEFAULT);
  hid_t type = values ? H5Dget_type(id) : H5Aget_type(attribute);
  hid_t space = values ? H5Dget_space(id) : H5Aget_space(attribute);
  bool done = type >= 0 && space >= 0 && copy_strings(id, attribute, type, space, count, size, out);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  if (attribute >= 0) H5Aclose(attribute);
  return done ? DV_FOUND : DV_FOUND_UNREADABLE;
}

static dv_found hdf5_strings(dv_archive *a, const dv_named_array *array, dv_strings which, size_t count,
                             size_t size, char *out) {
  hdf5_file *f = (hdf5_file *)a;
  dv_hdf5_enter();
  hid_t id = open_dataset(f, array);
  dv_found found = read_object(id, array, which, count, size, out);
  close_dataset(f, id);
  int reason = take_failure(); /* which is not the same as missing text */
  if (reason)
    a->lost = reason == ENOMEM ? dv_no_memory : "the disk is failing, or the file was truncated while in use";
  dv_hdf5_leave();
  return found;
}

/* ---- Opening ---- */

static void hdf5_close(dv_archive *a) {
  hdf5_file *f = (hdf5_file *)a;
  dv_hdf5_enter();
  if (f->file >= 0) H5Fclose(f->file); /* and the objects left open in it */
  if (f->descriptor >= 0) close(f->descriptor);
  dv_hdf5_leave();
  dv_free(f->open);
}

static dvbf_status list_arrays(hdf5_file *f, dvbf_error *error) {
  enum { FEW_DATASETS = 64 };
  hdf5_walk w = {.file = f, .error = error};
  hid_t root = H5Gopen2(f->file, "/", H5P_DEFAULT);
  if (root < 0 || (H5Literate(root, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, visit, &w) < 0 && !w.status))
    w.status = dv_fail_file(error, f->base.path, "its list of arrays cannot be read; %s", damage);
  if (root >= 0) H5Gclose(root);
  if (w.status || f->base.count > FEW_DATASETS) return w.status;
  f->open = dv_calloc(f->base.count, sizeof *f->open);
  if (!f->open) return dv_fail_memory(error, "reading data");
  for (size_t i = 0; i < f->base.count; i++) f->open[i] = H5I_INVALID_HID;
  return DVBF_OK;
}

static dvbf_status hdf5_open(dv_archive *a, int descriptor, const dv_data_settings *how, dvbf_error *error) {
  hdf5_file *f = (hdf5_file *)a;
  dv_hdf5_enter();
  take_failure();
  f->descriptor = dup(descriptor);
  f->file = dv_sandbox_enter() ? open_descriptor(f->descriptor) : H5I_INVALID_HID;
  dvbf_status status =
      f->file < 0 ? dv_fail_file(error, a->path,
                                 "is truncated, damaged or being written; make or copy the file again")
                  : list_arrays(f, error);
  int reason = take_failure();
  if (reason) status = dv_fail(error, DVBF_IO, "%.200s: cannot be read: %s", a->path, strerror(reason));
  dv_hdf5_leave();
  return status;
}

const dv_format dv_format_hdf5 = {.name = "HDF5",
                                  .endings = ".h5 .hdf5",
                                  .sandboxed = true,
                                  .recognises = recognises,
                                  .archive = sizeof(hdf5_file),
                                  .open = hdf5_open,
                                  .read = hdf5_read,
                                  .strings = hdf5_strings,
                                  .close = hdf5_close};
