/* Finds and reads the frames of sequences in the arrays of a file. */
#ifndef DV_FRAMES_H
#define DV_FRAMES_H

#include "data/dataset.h"
#include "format/archive.h"

/* One of x, u, state and mask. A frame is a row of each part, side by side. */
typedef struct dv_columns {
  size_t parts, width;     /* 0 when there is none */
  size_t *widths;          /* [parts] columns of each part, `width` in all */
  const dv_array **arrays; /* [blocks][parts] */
} dv_columns;

/* `count` sequences of `steps` steps in their own arrays [count][steps][width]; u may have one step fewer in
 * each. */
typedef struct dv_block {
  size_t first; /* frame of all */
  size_t count, steps;
} dv_block;

typedef struct dv_frames {
  size_t blocks, count; /* all frames */
  dv_block *block;      /* [blocks] */
  dv_columns x, u, state, mask;
  bool numbers; /* bytes of x are numbers as they are, not pixels */
  bool marked;  /* values of x that are `mark` are missing */
  float mark;
} dv_frames;

/* Allocates room for `blocks` blocks, and for the `parts` of each of their columns. */
dvbf_status dv_frames_allocate(dv_frames *f, size_t blocks, dvbf_error *error);
dvbf_status dv_columns_allocate(dv_columns *c, size_t blocks, size_t parts, dvbf_error *error);
void dv_frames_free(dv_frames *f);

/* Fills x, u and state of *s, whose other fields are set. If x needs more than how->memory megabytes and its
 * array is seekable, it stays in the file; s->source then takes over *f, which is left empty. Bytes of x
 * are pixels from 0 to 255 and become 0 to 1, but for f->numbers. */
dvbf_status dv_frames_load(dvbf_sequences *s, dv_frames *f, dv_archive *a, const dv_data_settings *how,
                           dvbf_error *error);

/* Whether an array of bytes holds nothing but 0 and 1; true for other types. A single large value ends the
 * reading, so that only data of bits are read as a whole, or in part where they are large (dv_large). What
 * cannot be read is reported when it is used. */
bool dv_array_is_bits(dv_archive *a, const dv_array *array);

/* Index of the last of `count` parts that begins at or before `place`. Their beginnings are sorted; they are
 * `apart` bytes from each other, like a field of an array of structs. */
size_t dv_part_at(const size_t *first, size_t apart, size_t count, size_t place);

#endif
