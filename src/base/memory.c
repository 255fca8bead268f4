/* Checked allocation, zeroed unless an array grows. The library allocates only here, so that tests can count
 * allocations and let them fail. Entry points: memory.h. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static atomic_ulong allocations;

bool dv_multiply(size_t a, size_t b, size_t *out) {
  if (b && a > SIZE_MAX / b) return false;
  *out = a * b;
  return true;
}

void *dv_calloc(size_t count, size_t size) {
  atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
  return calloc(count ? count : 1, size ? size : 1);
}

void *dv_calloc_aligned(size_t count, size_t size) {
  size_t bytes;
  atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
  if (!dv_multiply(count, size, &bytes) || bytes > SIZE_MAX - 64) return NULL;
  bytes = bytes ? (bytes + 63) / 64 * 64 : 64;
  void *memory = aligned_alloc(64, bytes);
  if (memory) memset(memory, 0, bytes);
  return memory;
}

void *dv_realloc(void *old, size_t count, size_t size) {
  size_t bytes;
  atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
  if (!dv_multiply(count, size, &bytes)) return NULL;
  return realloc(old, bytes ? bytes : 1);
}

void *dv_grow(void *list, size_t count, size_t size) {
  enum { LEAST = 16 };
  bool full = !count || (count >= LEAST && !(count & (count - 1)));
  return full ? dv_realloc(list, count ? 2 * count : LEAST, size) : list;
}

size_t dv_place(double *block, const dv_extent *parts, size_t count) {
  size_t used = 0;
  for (size_t i = 0; i < count; used += parts[i++].size) *parts[i].at = block ? block + used : NULL;
  return used;
}

char *dv_strdup(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = dv_calloc(size, 1);
  if (copy) memcpy(copy, text, size);
  return copy;
}

void dv_free(void *memory) {
  free(memory);
}

void dv_free_all(void *const *list, size_t count) {
  for (size_t i = 0; i < count; i++) dv_free(list[i]);
}

unsigned long dv_allocations(void) {
  return atomic_load_explicit(&allocations, memory_order_relaxed);
}
