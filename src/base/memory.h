/* Allocation with checked sizes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* *out = a * b; false on overflow. */
bool dv_multiply(size_t a, size_t b, size_t *out);

/* Zeroed memory for count * size bytes, also for 0; NULL when that overflows or memory is short. */
void *dv_calloc(size_t count, size_t size);

/* Zeroed memory aligned to 64 bytes; free it with dv_free too. */
void *dv_calloc_aligned(size_t count, size_t size);

/* Grows an array to count * size bytes and keeps its content; NULL: the old array is still valid. */
void *dv_realloc(void *old, size_t count, size_t size);

/* The same for one more than `count` elements, in an array that grew by this function alone, from NULL. */
void *dv_grow(void *list, size_t count, size_t size);

/* A part of a block of doubles: where its address goes, and its size. */
typedef struct dv_extent {
  double **at;
  size_t size;
} dv_extent;
/* Places parts one after the other, or none of them if the block is NULL; returns their size together. */
size_t dv_place(double *block, const dv_extent *parts, size_t count);

char *dv_strdup(const char *text);
void dv_free(void *memory);
/* Frees all that are listed. */
#define DV_FREE(...) dv_free_all((void *[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))
void dv_free_all(void *const *list, size_t count);

/* Calls to the functions above since the start of the process, over all threads. */
unsigned long dv_allocations(void);
