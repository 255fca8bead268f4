/* Frames that were read and decoded, kept for the next time. */
#ifndef DV_CACHE_H
#define DV_CACHE_H

#include <dvbf/core.h>

typedef struct dv_cache dv_cache;

/* Room for frames of `width` numbers, of which there are `frames`, within `bytes`. NULL where so little of
 * them would fit that keeping them would only take time, or where memory is short: then there is none. */
dv_cache *dv_cache_new(size_t width, size_t frames, size_t bytes);
void dv_cache_free(dv_cache *cache);

/* Frames first .. first + count - 1 into out, from the cache or by `read`, which gets whole blocks of frames;
 * several threads may ask at once. False where `read` fails. */
typedef bool dv_cache_fn(void *user, size_t first, size_t count, float *out);
bool dv_cache_read(dv_cache *cache, size_t first, size_t count, float *out, dv_cache_fn *read, void *user);

#endif
