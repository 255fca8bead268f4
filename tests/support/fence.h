/* Memory whose last byte is the last one of a page, behind which nothing can be read or written: a reader
 * that passes the end of what it has allocated crashes, without a sanitizer. The linker sends the calls of
 * the library here (`--wrap` in CMakeLists.txt). Sizes are multiples of what their elements must be aligned
 * to. */
#ifndef FENCE_H
#define FENCE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FENCE_PAGE = 4096 };
static const size_t fence_size = (size_t)1 << 36; /* addresses, not memory; none is used twice */
static char *fence_begin, *fence_next;

static inline bool fence_owns(const void *memory) {
  const char *at = memory;
  return fence_begin && at >= fence_begin && at < fence_begin + fence_size;
}

/* In front of the bytes stands their number, in a page of its own. */
static inline size_t fence_bytes(const void *memory) {
  size_t bytes;
  uintptr_t page = (uintptr_t)memory / FENCE_PAGE * FENCE_PAGE;
  memcpy(&bytes, (const char *)memory - ((uintptr_t)memory - page) - FENCE_PAGE, sizeof bytes);
  return bytes;
}

static inline void *fence_new(size_t bytes) {
  if (!fence_begin) {
    void *all = mmap(NULL, fence_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) abort();
    fence_begin = fence_next = all;
  }
  size_t used = (bytes + FENCE_PAGE - 1) / FENCE_PAGE * FENCE_PAGE, all = FENCE_PAGE + used;
  if (used < bytes || all + FENCE_PAGE > (size_t)(fence_begin + fence_size - fence_next) ||
      mprotect(fence_next, all, PROT_READ | PROT_WRITE)) {
    errno = ENOMEM;
    return NULL;
  }
  char *memory = fence_next + all - bytes;
  uintptr_t page = (uintptr_t)memory / FENCE_PAGE * FENCE_PAGE;
  memcpy(memory - ((uintptr_t)memory - page) - FENCE_PAGE, &bytes, sizeof bytes);
  fence_next += all + FENCE_PAGE;
  return memory;
}

static inline void fence_free(void *memory) {
  size_t bytes = fence_bytes(memory), used = (bytes + FENCE_PAGE - 1) / FENCE_PAGE * FENCE_PAGE;
  char *begin = (char *)memory + bytes - used - FENCE_PAGE;
  if (mmap(begin, used + FENCE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
           0) == MAP_FAILED)
    abort();
}

void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__real_realloc(void *old, size_t size);
void __wrap_free(void *memory);
void __real_free(void *memory);

void *__wrap_calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  return fence_new(bytes ? bytes : 1);
}

void *__wrap_realloc(void *old, size_t size) {
  if (old && !fence_owns(old)) return __real_realloc(old, size);
  void *memory = fence_new(size ? size : 1);
  if (!memory || !old) return memory;
  size_t before = fence_bytes(old);
  memcpy(memory, old, before < size ? before : size);
  fence_free(old);
  return memory;
}

void __wrap_free(void *memory) {
  if (fence_owns(memory))
    fence_free(memory);
  else
    __real_free(memory);
}

#endif
