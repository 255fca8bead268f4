/* NPZ files, zip archives of NAME.npy: reading through libzip (dv_npz_open) and writing as numpy.savez does
 * (dv_arrays_write_npz). Entries that claim to expand beyond what deflate can do, or that share bytes, are
 * refused; checksums are compared at the end of a first pass. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/archive.h"
#include "io/npy.h"
#include "io/sandbox.h"
#include "io/write_arrays.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

enum { MOST_ENTRIES = 1 << 20, SKIPPED = 1 << 14 /* bytes at a time */ };

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

/* Reads on, into `out` or, if that is NULL, past `n` bytes. */
static const char *read_on(entry *e, uint64_t n, unsigned char *out) {
  unsigned char skipped[SKIPPED];
  while (n) {
    zip_int64_t got =
        out ? zip_fread(e->open, out, n) : zip_fread(e->open, skipped, n < SKIPPED ? n : SKIPPED);
    if (got <= 0) return remedy_of(zip_file_get_error(e->open));
    if (out) out += got;
    n -= (uint64_t)got;
    e->at += (uint64_t)got;
  }
  return NULL;
}

/* Goes to a byte: by seeking in uncompressed entries, else by reading up to it. A first pass through all
 * values never seeks, so that the checksum can be compared at its end. */
static const char *go_to(entry *e, uint64_t offset) {
  if (e->open && e->at != offset) {
    if (e->stored && !zip_fseek(e->open, (zip_int64_t)offset, SEEK_SET))
      e->at = offset;
    else if (e->at > offset || e->stored)
      close_entry(e);
  }
  if (!e->open) {
    e->open = zip_fopen_index(e->file->zip, e->index, 0);
    if (!e->open) return remedy_of(zip_get_error(e->file->zip));
    if (e->stored && offset > SKIPPED && !zip_fseek(e->open, (zip_int64_t)offset, SEEK_SET)) e->at = offset;
  }
  return read_on(e, offset - e->at, NULL);
}

static const char *read_bytes(entry *e, uint64_t offset, size_t n, unsigned char *out) {
  const char *remedy = go_to(e, offset);
  if (!remedy) remedy = read_on(e, n, out);
  if (!remedy && e->at == e->size) {
    unsigned char none; /* the checksum is compared behind the last byte */
    if (zip_fread(e->open, &none, 1) < 0) remedy = remedy_of(zip_file_get_error(e->open));
    if (!e->stored) close_entry(e);
  }
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

static const char *npz_read(dv_archive *a, const dv_named_array *array, size_t first, size_t n, dv_out out) {
  entry *e = &((npz_file *)a)->entries[array->place];
  return dv_npy_read(&e->npy, entry_bytes, e, first, n, out);
}

static void npz_close(dv_archive *a) {
  npz_file *f = (npz_file *)a;
  for (size_t i = 0; i < f->count; i++) close_entry(&f->entries[i]);
  if (f->zip) zip_discard(f->zip);
  pthread_mutex_destroy(&f->lock);
  dv_free(f->entries);
}

/* ---- Opening ---- */

/* Refuses an entry before it is read. Deflate makes at most 1032 bytes of one; a large array from almost
 * nothing is meant to fill the memory. */
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
    return "is far larger than its compressed bytes allow; store it with numpy.savez, uncompressed";
  return NULL;
}

/* Another program's archive by the name of a file in it: advice on converting it; NULL: it is none of those
 * known. */
static const char *foreign_entry(const char *name) {
  const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
  if (!strcmp(name, "xl/workbook.xml"))
    return "is an Excel file; in Excel or LibreOffice, save it as CSV, or in Python: "
           "pandas.read_excel(FILE).to_csv(\"data.csv\", index=False)";
  if (!strcmp(name, "META-INF/manifest.xml"))
    return "is a LibreOffice spreadsheet; save it as CSV there, or: soffice --convert-to csv FILE";
  if (dv_text_ends_in(name, "/data.pkl"))
    return "is a PyTorch file; in Python: x = torch.load(FILE), then numpy.savez(\"data.npz\", x=x.numpy())";
  if (!strcmp(last, ".zarray") || !strcmp(last, "zarr.json"))
    return "is a Zarr archive; in Python: numpy.savez(\"data.npz\", **zarr.open(FILE))";
  return NULL;
}

static dvbf_status add_entry(npz_file *f, zip_uint64_t index, zip_uint64_t *total, dvbf_error *error) {
  zip_stat_t about;
  char name[DV_ARRAY_NAME];
  entry *e = &f->entries[f->count];
  if (zip_stat_index(f->zip, index, 0, &about) || !(about.valid & ZIP_STAT_NAME))
    return dv_fail_file(error, f->base.path, "its list of arrays is damaged; make or copy the file again");
  size_t length = strlen(about.name);
  const char *foreign = foreign_entry(about.name);
  if (foreign) return dv_fail_file(error, f->base.path, "%s", foreign);
  if (length >= sizeof name || (length && about.name[length - 1] == '/')) return DVBF_OK;
  if (length > 4 && !strcmp(about.name + length - 4, ".npy")) length -= 4;
  for (size_t i = 0; i < length; i++)
    name[i] = (unsigned char)about.name[i] < ' ' || about.name[i] == 127 ? '?' : about.name[i];
  name[length] = 0;
  *e = (entry){.file = f, .index = index, .size = about.size, .stored = about.comp_method == ZIP_CM_STORE};
  dv_named_array array = {.name = name, .trouble = refuse_entry(&about), .place = f->count++};
  *total += about.valid & ZIP_STAT_COMP_SIZE && about.comp_size < SIZE_MAX / 4 ? about.comp_size : 0;
  if (!array.trouble) dv_npy_describe(&e->npy, &array, entry_bytes, e, about.size);
  close_entry(e);
  if (!e->stored) array.unpacked = DV_WHOLE;
  array.seekable = e->stored;
  return dv_archive_add(&f->base, &array, error);
}

static dvbf_status add_entries(npz_file *f, int descriptor, dvbf_error *error) {
  struct stat about;
  zip_int64_t count = zip_get_num_entries(f->zip, 0);
  zip_uint64_t total = 0;
  if (count <= 0) return dv_fail_file(error, f->base.path, "is an empty archive; numpy.savez fills one");
  if (count > MOST_ENTRIES)
    return dv_fail_file(error, f->base.path, "holds more than %d arrays; split it over several files",
                        MOST_ENTRIES);
  f->entries = dv_calloc((size_t)count, sizeof *f->entries);
  if (!f->entries) return dv_fail_memory(error, "reading data");
  dvbf_status status = DVBF_OK;
  for (zip_int64_t i = 0; i < count && !status; i++) status = add_entry(f, (zip_uint64_t)i, &total, error);
  /* Entries that share their bytes would make much of little. */
  if (!status && (fstat(descriptor, &about) || total > (zip_uint64_t)about.st_size))
    status = dv_fail_file(error, f->base.path,
                          "its arrays overlap in the file; make the file again with numpy.savez");
  return status;
}

/* The file as libzip reads it; NULL: memory is short. */
static zip_source_t *source_of(int descriptor) {
  int own = dup(descriptor);
  FILE *stream = own < 0 ? NULL : fdopen(own, "rb");
  zip_source_t *source = stream ? zip_source_filep_create(stream, 0, -1, NULL) : NULL;
  if (!source && stream) fclose(stream);
  if (!stream && own >= 0) close(own);
  return source;
}

static bool recognises(int descriptor, const unsigned char *bytes, size_t size) {
  return size >= 4 && (!memcmp(bytes, "PK\3\4", 4) || !memcmp(bytes, "PK\5\6", 4));
}

static dvbf_status npz_open(dv_archive *a, int descriptor, const dv_data_settings *how, dvbf_error *error) {
  npz_file *f = (npz_file *)a;
  pthread_mutex_init(&f->lock, NULL);
  zip_source_t *source = source_of(descriptor);
  if (!source) return dv_fail_memory(error, "reading data");
  if (dv_sandbox_enter()) f->zip = zip_open_from_source(source, ZIP_RDONLY, NULL);
  if (!f->zip) zip_source_free(source);
  if (!f->zip)
    return dv_fail_file(error, a->path, "is a damaged or truncated archive; make or copy it again");
  return add_entries(f, descriptor, error);
}

const dv_format dv_format_npz = {.name = "NPZ",
                                 .endings = ".npz",
                                 .sandboxed = true,
                                 .recognises = recognises,
                                 .archive = sizeof(npz_file),
                                 .open = npz_open,
                                 .read = npz_read,
                                 .close = npz_close};

/* ---- Writing ---- */

/* An NPY file is a line of text about type and shape, padded to a multiple of 64 bytes, and the values. */

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

/* Memory of an array until the archive is closed. */
typedef struct written_entry {
  unsigned char header[HEADER];
  uint32_t *characters; /* of texts */
} written_entry;

/* Adds an array; the archive reads header and values when it is closed. */
static bool add_written(zip_t *archive, const dvbf_array *a, written_entry *e) {
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

static dvbf_status write_archive(const char *temporary, const char *path, const dvbf_array *arrays,
                                 size_t count, written_entry *entries /* [count] */, dvbf_error *error) {
  int code = 0;
  zip_t *archive = zip_open(temporary, ZIP_CREATE | ZIP_TRUNCATE, &code);
  bool done = archive;
  for (size_t i = 0; i < count && done; i++) done = add_written(archive, &arrays[i], &entries[i]);
  if (done && !zip_close(archive)) return DVBF_OK;
  zip_error_t reason;
  zip_error_init_with_code(&reason, code);
  dv_report(error, DVBF_IO, "%.200s: cannot be written: %.200s; any earlier file is unchanged", path,
            zip_error_strerror(archive ? zip_get_error(archive) : &reason));
  zip_error_fini(&reason);
  zip_discard(archive);
  unlink(temporary);
  return DVBF_IO;
}

dvbf_status dv_arrays_write_npz(const char *path, const dvbf_array *arrays, size_t count, dvbf_error *error) {
  char temporary[4128];
  dvbf_status status = dv_temporary_name(temporary, sizeof temporary, path, error);
  if (status) return status;
  written_entry *entries = dv_calloc(count, sizeof *entries);
  status = entries ? write_archive(temporary, path, arrays, count, entries, error)
                   : dv_fail_memory(error, "writing arrays");
  for (size_t i = 0; entries && i < count; i++) dv_free(entries[i].characters);
  dv_free(entries);
  return status ? status : dv_publish(temporary, path, error);
}
