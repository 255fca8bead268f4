/* Failures on demand. The linker sends every call of the library to an allocating or writing function through
 * the wrappers below (`--wrap` in CMakeLists.txt), which can make the n-th one fail as it would on a machine
 * without memory or with a full disk, or end the process there as a kill would. */
#ifndef FAULTS_H
#define FAULTS_H

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

enum { KILLED = 99 }; /* exit status of a process that ended at its fault */

/* Counts down to the fault, on one thread; 0: none is planned. */
static struct {
  unsigned long memory, files;
  unsigned long space; /* one more than the bytes that the disk has left; 0: without end */
  bool full;           /* a write had no place on it */
  bool deadly;
} fault;

static bool strikes(unsigned long *left) {
  if (!*left || --*left) return false;
  if (fault.deadly) _exit(KILLED);
  return true;
}

/* ---- Memory ---- */

/* The allocations of a run, each as a hash of the stack it was made from. */
static struct {
  bool recording;
  size_t count;
  uint64_t stack[1 << 14];
} allocations;

static void record_allocation(void) {
  void *frames[32];
  int depth = backtrace(frames, 32);
  uint64_t hash = 0;
  for (int i = 0; i < depth; i++) hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * 0x9e3779b97f4a7c15u;
  if (allocations.count < sizeof allocations.stack / sizeof *allocations.stack)
    allocations.stack[allocations.count] = hash;
  allocations.count++;
}

/* Whether allocation i is the first or the last one from its stack. The others of a loop fail alike. */
static inline bool is_worth_failing(size_t i) {
  bool before = false, after = false;
  for (size_t k = 0; k < allocations.count; k++)
    if (allocations.stack[k] == allocations.stack[i]) before |= k<i, after |= k> i;
  return !before || !after;
}

static bool memory_fails(void) {
  if (allocations.recording && fault.memory) record_allocation();
  return strikes(&fault.memory);
}

void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_calloc(size_t count, size_t size) {
  return memory_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size) {
  return memory_fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  return memory_fails() ? NULL : __real_aligned_alloc(alignment, size);
}

static inline void *json_memory(size_t size) {
  return memory_fails() ? NULL : malloc(size);
}

/* Jansson's reader (2.14) is not safe without memory; the library sees to it that there is some. */
json_t *__real_json_loadb(const char *text, size_t length, size_t flags, json_error_t *trouble);
json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *trouble);

json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *trouble) {
  unsigned long left = fault.memory;
  fault.memory = 0;
  json_t *json = __real_json_loadb(text, length, flags, trouble);
  fault.memory = left;
  return json;
}

/* ---- Files ---- */

FILE *__real_fopen(const char *path, const char *mode);
int __real_open(const char *path, int flags, ...);
int __real_rename(const char *from, const char *to);
int __real_truncate(const char *path, off_t length);
int __real_unlink(const char *path);
int __real_mkdir(const char *path, mode_t mode);
FILE *__real_fdopen(int descriptor, const char *mode);
int __real_openat(int at, const char *path, int flags, ...);
int __real_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __real_ftruncate(int descriptor, off_t length);
int __real_unlinkat(int at, const char *path, int flags);
FILE *__wrap_fdopen(int descriptor, const char *mode);
int __wrap_openat(int at, const char *path, int flags, ...);
int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __wrap_ftruncate(int descriptor, off_t length);
int __wrap_unlinkat(int at, const char *path, int flags);
FILE *__wrap_fopen(const char *path, const char *mode);
int __wrap_open(const char *path, int flags, ...);
int __wrap_fsync(int descriptor);
int __wrap_rename(const char *from, const char *to);
int __wrap_truncate(const char *path, off_t length);
int __wrap_unlink(const char *path);
int __wrap_mkdir(const char *path, mode_t mode);

static bool refused(int reason) {
  if (!strikes(&fault.files)) return false;
  errno = reason;
  return true;
}

/* Bytes of a write that the disk takes. */
static size_t taken(size_t size) {
  if (!fault.space) return size;
  if (size >= fault.space) {
    fault.full = true;
    size = fault.space - 1;
  }
  fault.space -= size;
  return size;
}

/* A stream whose writes reach the system one by one; half of a write that fails is on the disk. */
static ssize_t stream_write(void *cookie, const char *from, size_t size) {
  FILE *file = cookie;
  if (fault.files == 1) {
    fwrite(from, 1, size / 2, file);
    fflush(file);
  }
  if (refused(ENOSPC)) return 0;
  size_t most = taken(size);
  if (most < size) errno = ENOSPC;
  return fwrite(from, 1, most, file) == size && !fflush(file) ? (ssize_t)size : 0;
}

static ssize_t stream_read(void *cookie, char *to, size_t size) {
  FILE *file = cookie;
  return refused(EIO) ? -1 : (ssize_t)fread(to, 1, size, file);
}

static int stream_seek(void *cookie, off64_t *offset, int whence) {
  FILE *file = cookie;
  if (fseek(file, (long)*offset, whence)) return -1;
  *offset = ftell(file);
  return 0;
}

static int stream_close(void *cookie) {
  int failed = refused(EDQUOT);
  FILE *file = cookie;
  return fclose(file) || failed ? -1 : 0;
}

static FILE *faulty(FILE *file, const char *mode) {
  if (!fault.files && !fault.space)
    return file; /* nothing can fail, and libraries may ask for the descriptor */
  cookie_io_functions_t functions = {stream_read, stream_write, stream_seek, stream_close};
  FILE *stream = file ? fopencookie(file, mode, functions) : NULL;
  if (stream) setvbuf(stream, NULL, _IOFBF, 1 << 13);
  return stream;
}

FILE *__wrap_fopen(const char *path, const char *mode) {
  return refused(EMFILE) ? NULL : faulty(__real_fopen(path, mode), mode);
}

FILE *__wrap_fdopen(int descriptor, const char *mode) {
  return refused(ENOMEM) ? NULL : faulty(__real_fdopen(descriptor, mode), mode);
}

int __wrap_open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return refused(EMFILE) ? -1 : __real_open(path, flags, mode);
}

int __wrap_openat(int at, const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return refused(EMFILE) ? -1 : __real_openat(at, path, flags, mode);
}

/* Nothing here outlives the machine, and waiting for the disk takes most of the time. */
int __wrap_fsync(int descriptor) {
  (void)descriptor;
  return refused(EIO) ? -1 : 0;
}

int __wrap_rename(const char *from, const char *to) {
  return refused(ENOSPC) ? -1 : __real_rename(from, to);
}

int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to) {
  return refused(ENOSPC) ? -1 : __real_renameat(from_folder, from, to_folder, to);
}

int __wrap_ftruncate(int descriptor, off_t length) {
  return refused(EIO) ? -1 : __real_ftruncate(descriptor, length);
}

int __wrap_unlinkat(int at, const char *path, int flags) {
  return refused(EACCES) ? -1 : __real_unlinkat(at, path, flags);
}

int __wrap_truncate(const char *path, off_t length) {
  return refused(EIO) ? -1 : __real_truncate(path, length);
}

int __wrap_unlink(const char *path) {
  return refused(EACCES) ? -1 : __real_unlink(path);
}

int __wrap_mkdir(const char *path, mode_t mode) {
  return refused(ENOSPC) ? -1 : __real_mkdir(path, mode);
}

#endif
