/* Reading the frames of sequences from the arrays of a file: loading, and a cache. */
#pragma once

#include "data/dataset.h"
#include "io/archive.h"

#include <dvbf/core.h>

/* One of x, u, state and mask. A frame is a row of each part, side by side. */
typedef struct dv_columns {
  size_t parts, width;           /* 0 when there is none */
  size_t *widths;                /* [parts] columns of each part, `width` in all */
  const dv_named_array **arrays; /* [blocks][parts] */
} dv_columns;

/* `count` sequences of `steps` steps in their own arrays [count][steps][width]; u may have one step fewer in
 * each. */
typedef struct dv_block {
  size_t first; /* frame of all */
  size_t count, steps;
} dv_block;

typedef struct dv_frames {
  size_t blocks, count;               /* all frames */
  dv_block *block;                    /* [blocks] */
  dv_columns columns[DV_ROLE_LENGTH]; /* of x, u, state and mask */
  bool numbers;                       /* bytes of x are numbers as they are, not pixels */
  bool marked;                        /* values of x that are `mark` are missing */
  float mark;
} dv_frames;

/* Allocates `blocks` blocks and the parts of their columns, whose numbers are set. */
dvbf_status dv_frames_allocate(dv_frames *f, size_t blocks, dvbf_error *error);
void dv_frames_free(dv_frames *f);

/* Fills x, u and state of *s, whose other fields are set. If x needs more than how->memory megabytes and its
 * array is seekable, it stays in the file; s->source then takes over *f, which is left empty. Bytes of x
 * are pixels from 0 to 255 and become 0 to 1, but for f->numbers. */
dvbf_status dv_frames_load(dvbf_sequences *s, dv_frames *f, dv_archive *a, const dv_data_settings *how,
                           dvbf_error *error);

/* Whether an array of bytes holds only 0 and 1; true for other types. A larger value ends the reading; large
 * arrays (dv_large) are sampled. Unreadable values are reported when they are used. */
bool dv_array_is_bits(dv_archive *a, const dv_named_array *array);

/* Index of the last of `count` parts that begins at or before `place`. Their sorted beginnings are `apart`
 * bytes from each other, like a field of an array of structs. */
size_t dv_part_at(const size_t *first, size_t apart, size_t count, size_t place);

/* ---- Cache ---- */

typedef struct dv_cache dv_cache;

/* A cache of decoded frames of `width` numbers, of which there are `frames`, within `bytes`; NULL (no cache)
 * if too few would fit to save time, or memory is short. */
dv_cache *dv_cache_new(size_t width, size_t frames, size_t bytes);
void dv_cache_free(dv_cache *cache);

/* Frames first .. first + count - 1 into out, from the cache or by `read`, which gets whole blocks of frames;
 * several threads may ask at once. False if `read` fails. */
typedef bool dv_cache_fn(void *user, size_t first, size_t count, float *out);
bool dv_cache_read(dv_cache *cache, size_t first, size_t count, float *out, dv_cache_fn *read, void *user);
