/* The file of the fuzzer without the kernel, for fuzzers that are built to be fast: opening, asking, reading
 * and closing it takes longer than what most readers do. The linker sends these calls here (--wrap); those
 * about other files go on. */
#include "input.h"

#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>
#include <zip.h>

enum { OURS = 1 << 20 }; /* a descriptor that the kernel does not give */
static const char name[] = "/fuzzed";
static const uint8_t *content;
static size_t length;

const char *memory_file(const uint8_t *bytes, size_t size) {
  content = bytes;
  length = size;
  return name;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, unsigned mode);
int __real_close(int descriptor);
int __wrap_close(int descriptor);
int __real_dup(int descriptor);
int __wrap_dup(int descriptor);
int __real_stat(const char *path, struct stat *about);
int __wrap_stat(const char *path, struct stat *about);
int __real_fstat(int descriptor, struct stat *about);
int __wrap_fstat(int descriptor, struct stat *about);
ssize_t __real_pread(int descriptor, void *to, size_t size, off_t at);
ssize_t __wrap_pread(int descriptor, void *to, size_t size, off_t at);
FILE *__real_fdopen(int descriptor, const char *mode);
FILE *__wrap_fdopen(int descriptor, const char *mode);
zip_source_t *__wrap_zip_source_filep_create(FILE *stream, zip_uint64_t from, zip_int64_t size,
                                             zip_error_t *error);

int __wrap_open(const char *path, int flags, unsigned mode) {
  return strcmp(path, name) ? __real_open(path, flags, mode) : OURS;
}

int __wrap_close(int descriptor) {
  return descriptor == OURS ? 0 : __real_close(descriptor);
}

int __wrap_dup(int descriptor) {
  return descriptor == OURS ? OURS : __real_dup(descriptor);
}

static int tell(struct stat *about) {
  memset(about, 0, sizeof *about);
  about->st_mode = S_IFREG | 0600;
  about->st_size = (off_t)length;
  about->st_nlink = 1;
  return 0;
}

int __wrap_stat(const char *path, struct stat *about) {
  return strcmp(path, name) ? __real_stat(path, about) : tell(about);
}

int __wrap_fstat(int descriptor, struct stat *about) {
  return descriptor == OURS ? tell(about) : __real_fstat(descriptor, about);
}

ssize_t __wrap_pread(int descriptor, void *to, size_t size, off_t at) {
  if (descriptor != OURS) return __real_pread(descriptor, to, size, at);
  if (at < 0 || (size_t)at >= length) return 0;
  size_t rest = length - (size_t)at, n = size < rest ? size : rest;
  memcpy(to, content + at, n);
  return (ssize_t)n;
}

/* Streams only read: what they read from is not changed. */
FILE *__wrap_fdopen(int descriptor, const char *mode) {
  return descriptor == OURS ? fmemopen((void *)(uintptr_t)content, length, "rb")
                            : __real_fdopen(descriptor, mode);
}

/* libzip asks the kernel about the file of a stream. */
zip_source_t *__wrap_zip_source_filep_create(FILE *stream, zip_uint64_t from, zip_int64_t size,
                                             zip_error_t *error) {
  (void)from, (void)size;
  zip_source_t *source = zip_source_buffer_create(content, length, 0, error);
  if (source) fclose(stream);
  return source;
}

/* Compressing a picture is nine tenths of drawing it, and nothing of what is read reaches it but colours. */
int __wrap_cairo_surface_write_to_png_stream(void *surface,
                                             int (*write)(void *, const unsigned char *, unsigned), void *to);
int __wrap_cairo_surface_write_to_png_stream(void *surface,
                                             int (*write)(void *, const unsigned char *, unsigned),
                                             void *to) {
  (void)surface;
  return write(to, (const unsigned char *)"png", 3);
}

/* Memory that was freed is kept for the next file. */
__attribute__((constructor)) static void keep_memory(void) {
  mallopt(M_MMAP_THRESHOLD, 1 << 25); /* else pictures are mapped and cleared anew for each file */
  mallopt(M_TRIM_THRESHOLD, 1 << 28);
  mallopt(M_TOP_PAD, 1 << 22);
}
