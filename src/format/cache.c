#include "format/cache.h"

#include "base/memory.h"

#include <pthread.h>
#include <string.h>

/* A block has about so many numbers, so that a read is worth its while. Less than one block in LEAST kept is
 * not worth the blocks that are read for a few frames of theirs. */
enum { NUMBERS = 1 << 14, LEAST = 8, LOCKS = 64 };

/* A block has one slot that it may be in, by its number. */
struct dv_cache {
  size_t width, frames, per_block, slots;
  size_t *block;                /* [slots] number of the block + 1; 0: none */
  float *values;                /* [slots][per_block][width] */
  pthread_mutex_t locks[LOCKS]; /* of slots modulo LOCKS */
};

dv_cache *dv_cache_new(size_t width, size_t frames, size_t bytes) {
  size_t per_block = width < NUMBERS ? NUMBERS / width : 1, blocks = (frames + per_block - 1) / per_block;
  size_t slots = bytes / sizeof(float) / width / per_block;
  if (slots > blocks) slots = blocks;
  if (!slots || slots < blocks / LEAST) return NULL;
  dv_cache *c = dv_calloc(1, sizeof *c);
  if (!c) return NULL;
  *c = (dv_cache){.width = width, .frames = frames, .per_block = per_block, .slots = slots};
  c->block = dv_calloc(slots, sizeof *c->block);
  c->values = dv_calloc(slots, per_block * width * sizeof *c->values);
  for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&c->locks[i], NULL);
  if (c->block && c->values) return c;
  dv_cache_free(c);
  return NULL;
}

void dv_cache_free(dv_cache *c) {
  if (!c) return;
  for (int i = 0; i < LOCKS; i++) pthread_mutex_destroy(&c->locks[i]);
  DV_FREE(c->block, c->values, c);
}

/* Frames from .. from + count - 1 of one block. */
static bool read_block(dv_cache *c, size_t block, size_t from, size_t count, float *out, dv_cache_fn *read,
                       void *user) {
  size_t slot = block % c->slots, first = block * c->per_block, left = c->frames - first;
  float *values = c->values + slot * c->per_block * c->width;
  pthread_mutex_t *lock = &c->locks[slot % LOCKS];
  pthread_mutex_lock(lock);
  bool there = c->block[slot] == block + 1;
  if (!there) {
    there = read(user, first, left < c->per_block ? left : c->per_block, values);
    c->block[slot] = there ? block + 1 : 0;
  }
  if (there) memcpy(out, values + from * c->width, count * c->width * sizeof *out);
  pthread_mutex_unlock(lock);
  return there;
}

bool dv_cache_read(dv_cache *c, size_t first, size_t count, float *out, dv_cache_fn *read, void *user) {
  bool good = true;
  while (count && good) {
    size_t block = first / c->per_block, from = first % c->per_block, part = c->per_block - from;
    if (part > count) part = count;
    good = read_block(c, block, from, part, out, read, user);
    out += part * c->width;
    first += part;
    count -= part;
  }
  return good;
}
