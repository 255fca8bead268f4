/* NPZ: a zip archive of NAME.npy. */
#include "base/memory.h"
#include "base/status.h"
#include "format/foreign.h"
#include "format/npy.h"
#include "format/sandbox.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

enum { MOST_ENTRIES = 1 << 20 };

typedef struct entry {
  struct npz_file *file;
  zip_uint64_t index;
  zip_uint64_t size;
  bool stored;
  zip_file_t *open; /* NULL, or open at the byte `at` */
  uint64_t at;
  dv_npy npy;
} entry;

typedef struct npz_file {
  dv_archive base;
  zip_t *zip;
  pthread_mutex_t lock; /* of all reading: libzip has none */
  entry *entries;
  size_t count;
} npz_file;

/* ---- Bytes of an entry ---- */

static void close_entry(entry *e) {
  if (e->open) zip_fclose(e->open);
  e->open = NULL;
  e->at = 0;
}

static const char *remedy_of(zip_error_t *reason) {
  switch (zip_error_code_zip(reason)) {
  case ZIP_ER_CRC: return "its checksum is wrong: the file is damaged, so make or copy it again";
  case ZIP_ER_MEMORY: return dv_no_memory;
  case ZIP_ER_NOPASSWD:
  case ZIP_ER_WRONGPASSWD: return "it is encrypted; store it without a password";
  default: return "the file is damaged, so make or copy it again";
  }
}

/* Goes to a byte: by seeking in what is stored as it is, else by reading up to there. A first pass through
 * all values never seeks, so that the checksum can be compared at its end. */
static const char *go_to(entry *e, uint64_t offset) {
  unsigned char skipped[1 << 14];
  if (e->open && e->at != offset) {
    if (e->stored && !zip_fseek(e->open, (zip_int64_t)offset, SEEK_SET))
      e->at = offset;
    else if (e->at > offset || e->stored)
      close_entry(e);
  }
  if (!e->open) {
    e->open = zip_fopen_index(e->file->zip, e->index, 0);
    if (!e->open) return remedy_of(zip_get_error(e->file->zip));
    if (e->stored && offset > sizeof skipped && !zip_fseek(e->open, (zip_int64_t)offset, SEEK_SET))
      e->at = offset;
  }
  while (e->at < offset) {
    uint64_t left = offset - e->at;
    zip_int64_t got = zip_fread(e->open, skipped, left < sizeof skipped ? left : sizeof skipped);
    if (got <= 0) return remedy_of(zip_file_get_error(e->open));
    e->at += (uint64_t)got;
  }
  return NULL;
}

/* Reading the last byte also reads the end behind it, where the checksum is compared. */
static const char *finish(entry *e) {
  unsigned char none;
  zip_int64_t got = zip_fread(e->open, &none, 1);
  const char *remedy = got < 0 ? remedy_of(zip_file_get_error(e->open)) : NULL;
  if (!e->stored || remedy) close_entry(e);
  return remedy;
}

static const char *read_bytes(entry *e, uint64_t offset, size_t n, unsigned char *out) {
  const char *remedy = go_to(e, offset);
  while (!remedy && n) {
    zip_int64_t got = zip_fread(e->open, out, n);
    if (got <= 0) {
      remedy = remedy_of(zip_file_get_error(e->open));
      break;
    }
    out += got;
    n -= (size_t)got;
    e->at += (uint64_t)got;
  }
  if (!remedy && e->at == e->size) remedy = finish(e);
  if (remedy) close_entry(e);
  return remedy;
}

static const char *entry_bytes(void *from, uint64_t offset, size_t n, unsigned char *out) {
  entry *e = from;
  pthread_mutex_lock(&e->file->lock);
  const char *remedy = read_bytes(e, offset, n, out);
  pthread_mutex_unlock(&e->file->lock);
  return remedy;
}

static const char *npz_read(dv_archive *a, const dv_array *array, size_t first, size_t n, float *floats,
                            double *doubles) {
  entry *e = &((npz_file *)a)->entries[array->place];
  return dv_npy_read(&e->npy, array, entry_bytes, e, first, n, floats, doubles);
}

static void npz_close(dv_archive *a) {
  npz_file *f = (npz_file *)a;
  for (size_t i = 0; i < f->count; i++) {
    close_entry(&f->entries[i]);
    dv_free(f->entries[i].npy.loaded);
  }
  if (f->zip) zip_discard(f->zip);
  pthread_mutex_destroy(&f->lock);
  dv_free(f->entries);
}

/* ---- Opening ---- */

/* What of an entry cannot be read, before anything of it was. Deflate makes at most 1032 bytes of one; a
 * large array that says to be made of next to nothing is meant to fill the memory. */
static const char *refuse_entry(const zip_stat_t *about) {
  enum { DEFLATE_LIMIT = 1032, USUAL = 200 };
  const zip_uint64_t large = (zip_uint64_t)1 << 30;
  const zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((about->valid & needed) != needed) return "is damaged; make or copy the file again";
  if ((about->valid & ZIP_STAT_ENCRYPTION_METHOD) && about->encryption_method != ZIP_EM_NONE)
    return "is encrypted; store it without a password";
  if (about->comp_method != ZIP_CM_STORE && about->comp_method != ZIP_CM_DEFLATE)
    return "is compressed by a method other than deflate; store it with numpy.savez or savez_compressed";
  if (about->comp_method == ZIP_CM_STORE && about->size != about->comp_size)
    return "is damaged: its two sizes differ; make or copy the file again";
  if (about->size / DEFLATE_LIMIT > about->comp_size ||
      (about->size > large && about->size / USUAL > about->comp_size))
    return "is far larger than its compressed bytes can be; store it with numpy.savez, uncompressed";
  return NULL;
}

static dvbf_status add_entry(npz_file *f, zip_uint64_t index, zip_uint64_t *total, dvbf_error *error) {
  zip_stat_t about;
  char name[DV_NAME];
  entry *e = &f->entries[f->count];
  if (zip_stat_index(f->zip, index, 0, &about) || !(about.valid & ZIP_STAT_NAME))
    return dv_fail(error, DVBF_FORMAT, "%.200s: its list of arrays is damaged; make or copy it again",
                   f->base.path);
  size_t length = strlen(about.name);
  const char *foreign = dv_foreign_entry(about.name);
  if (foreign) return dv_fail(error, DVBF_FORMAT, "%.200s: %s", f->base.path, foreign);
  if (length >= sizeof name || (length && about.name[length - 1] == '/')) return DVBF_OK;
  if (length > 4 && !strcmp(about.name + length - 4, ".npy")) length -= 4;
  for (size_t i = 0; i < length; i++)
    name[i] = (unsigned char)about.name[i] < ' ' || about.name[i] == 127 ? '?' : about.name[i];
  name[length] = 0;
  *e = (entry){.file = f, .index = index, .size = about.size, .stored = about.comp_method == ZIP_CM_STORE};
  dv_array array = {.name = name, .trouble = refuse_entry(&about), .place = f->count++};
  *total += about.valid & ZIP_STAT_COMP_SIZE && about.comp_size < SIZE_MAX / 4 ? about.comp_size : 0;
  if (!array.trouble) dv_npy_describe(&e->npy, &array, entry_bytes, e, about.size);
  close_entry(e);
  if (!e->stored) array.unpacked = DV_WHOLE;
  array.seekable = e->stored && (!e->npy.fortran || array.rank < 2);
  return dv_archive_add(&f->base, &array, error);
}

static dvbf_status add_entries(npz_file *f, int descriptor, dvbf_error *error) {
  struct stat about;
  zip_int64_t count = zip_get_num_entries(f->zip, 0);
  zip_uint64_t total = 0;
  if (count <= 0)
    return dv_fail(error, DVBF_FORMAT, "%.200s: is an empty archive; numpy.savez fills one", f->base.path);
  if (count > MOST_ENTRIES)
    return dv_fail(error, DVBF_FORMAT, "%.200s: holds more than %d arrays; split it over several files",
                   f->base.path, MOST_ENTRIES);
  f->entries = dv_calloc((size_t)count, sizeof *f->entries);
  if (!f->entries) return dv_fail_memory(error, "reading data");
  dvbf_status status = DVBF_OK;
  for (zip_int64_t i = 0; i < count && !status; i++) status = add_entry(f, (zip_uint64_t)i, &total, error);
  /* Entries that share their bytes would make much of little. */
  if (!status && (fstat(descriptor, &about) || total > (zip_uint64_t)about.st_size))
    status = dv_fail(error, DVBF_FORMAT,
                     "%.200s: its arrays overlap in the file; make it again with numpy.savez", f->base.path);
  return status;
}

/* The file as libzip reads it; NULL: memory is short. */
static zip_source_t *source_of(int descriptor) {
  zip_error_t code;
  int own = dup(descriptor);
  FILE *stream = own < 0 ? NULL : fdopen(own, "rb");
  zip_error_init(&code);
  zip_source_t *source = stream ? zip_source_filep_create(stream, 0, -1, &code) : NULL;
  zip_error_fini(&code);
  if (source) return source;
  if (stream)
    fclose(stream);
  else if (own >= 0)
    close(own);
  return NULL;
}

dvbf_status dv_npz_open(dv_archive **out, const char *path, int descriptor, dvbf_error *error) {
  npz_file *f = (npz_file *)dv_archive_new(sizeof *f, path);
  if (!f) return dv_fail_memory(error, "reading data");
  f->base.read = npz_read;
  f->base.close = npz_close;
  pthread_mutex_init(&f->lock, NULL);
  *out = &f->base;
  zip_source_t *source = source_of(descriptor);
  if (!source) return dv_fail_memory(error, "reading data");
  if (dv_sandbox_enter()) f->zip = zip_open_from_source(source, ZIP_RDONLY, NULL);
  if (!f->zip) zip_source_free(source);
  if (!f->zip)
    return dv_fail(error, DVBF_FORMAT,
                   "%.200s: is an archive that is damaged or cut short; make or copy it again", path);
  return add_entries(f, descriptor, error);
}
