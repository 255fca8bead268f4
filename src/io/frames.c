/* Frames of sequences read from the arrays of a file (dv_frames_load): parts side by side, masks as NaN,
 * bytes as pixels. If x needs more than `memory`, it stays in the file behind a source with a cache of
 * decoded blocks (dv_cache_read), and several workers may read at once. */
#include "io/frames.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { AT_ONCE = 4096 }; /* numbers on the way from one place to another */

/* ---- Memory ---- */

dvbf_status dv_frames_allocate(dv_frames *f, size_t blocks, dvbf_error *error) {
  f->blocks = blocks;
  f->block = dv_calloc(blocks, sizeof *f->block);
  bool done = f->block;
  for (int role = 0; role < DV_ROLE_LENGTH && done; role++) {
    dv_columns *c = &f->columns[role];
    size_t arrays;
    c->widths = dv_calloc(c->parts, sizeof *c->widths);
    c->arrays = dv_multiply(blocks, c->parts, &arrays) ? dv_calloc(arrays, sizeof(dv_named_array *)) : NULL;
    done = c->widths && c->arrays;
  }
  return done ? DVBF_OK : dv_fail_memory(error, "reading data");
}

void dv_frames_free(dv_frames *f) {
  for (int role = 0; role < DV_ROLE_LENGTH; role++)
    DV_FREE(f->columns[role].widths, (void *)f->columns[role].arrays);
  dv_free(f->block);
  *f = (dv_frames){0};
}

bool dv_array_is_bits(dv_archive *a, const dv_named_array *array) {
  float buffer[AT_ONCE];
  size_t apart = array->elements > dv_large ? (size_t)(64 * array->elements / dv_large) * AT_ONCE : AT_ONCE;
  for (size_t k = 0; array->bytes && !array->trouble && k < array->elements; k += apart) {
    size_t n = array->elements - k < AT_ONCE ? array->elements - k : AT_ONCE;
    if (dv_array_read(a, array, k, n, DV_FLOATS(buffer))) return true;
    for (size_t i = 0; i < n; i++)
      if (buffer[i] > 1) return false;
  }
  return true;
}

/* ---- Rows ---- */

static const char *read_part(dv_archive *a, const dv_named_array *array, size_t row, size_t rows,
                             size_t width, bool pixels, float *out) {
  const char *remedy = dv_array_read(a, array, row * width, rows * width, DV_FLOATS(out));
  for (size_t k = 0; pixels && array->bytes && !remedy && k < rows * width; k++) out[k] /= 255;
  return remedy;
}

/* The same into columns `at` .. of out [rows][stride]: narrow parts through a buffer, else row by row. */
static const char *read_beside(dv_archive *a, const dv_named_array *array, size_t row, size_t rows,
                               size_t width, bool pixels, float *out, size_t stride, size_t at) {
  float buffer[AT_ONCE];
  size_t piece = width < AT_ONCE ? AT_ONCE / width : 1;
  const char *remedy = NULL;
  for (size_t k = 0; k < rows && !remedy; k += piece) {
    size_t n = rows - k < piece ? rows - k : piece;
    float *to = out + k * stride + at;
    remedy = read_part(a, array, row + k, n, width, pixels, piece > 1 ? buffer : to);
    for (size_t i = 0; piece > 1 && !remedy && i < n; i++)
      memcpy(to + i * stride, buffer + i * width, width * sizeof *to);
  }
  return remedy;
}

/* Rows row .. of the arrays of one block into out [rows][width]. */
static const char *fetch_rows(dv_archive *a, const dv_columns *c, size_t block, size_t row, size_t rows,
                              bool pixels, float *out) {
  const dv_named_array *const *arrays = c->arrays + block * c->parts;
  if (c->parts == 1) return read_part(a, arrays[0], row, rows, c->width, pixels, out);
  const char *remedy = NULL;
  for (size_t k = 0, at = 0; k < c->parts && !remedy; at += c->widths[k++])
    remedy = read_beside(a, arrays[k], row, rows, c->widths[k], pixels, out, c->width, at);
  return remedy;
}

/* x becomes NaN where the mask, with a value per frame or column, is 0. */
static const char *apply_mask(dv_archive *a, const dv_frames *f, size_t block, size_t row, size_t rows,
                              float *x) {
  float buffer[AT_ONCE];
  const dv_columns *c = &f->columns[DV_ROLE_MASK];
  size_t width = c->width, spread = width ? f->columns[DV_ROLE_X].width / width : 0;
  const dv_named_array *mask = width ? c->arrays[block] : NULL;
  for (size_t k = 0; k < rows * width; k += AT_ONCE) {
    size_t n = rows * width - k < AT_ONCE ? rows * width - k : AT_ONCE;
    const char *remedy = dv_array_read(a, mask, row * width + k, n, DV_FLOATS(buffer));
    if (remedy) return remedy;
    for (size_t i = 0; i < n; i++)
      for (size_t j = 0; buffer[i] == 0 && j < spread; j++) x[(k + i) * spread + j] = NAN;
  }
  return NULL;
}

size_t dv_part_at(const size_t *first, size_t apart, size_t count, size_t place) {
  size_t low = 0, high = count;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (*(const size_t *)((const char *)first + middle * apart) <= place)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* x of frames first .. first + n - 1. */
static const char *read_x(dv_archive *a, const dv_frames *f, size_t first, size_t n, float *out) {
  const dv_columns *x = &f->columns[DV_ROLE_X];
  const char *remedy = NULL;
  size_t block = dv_part_at(&f->block[0].first, sizeof *f->block, f->blocks, first);
  for (; n && !remedy; block++) {
    size_t row = first - f->block[block].first, rows = f->block[block].count * f->block[block].steps - row;
    if (rows > n) rows = n;
    remedy = fetch_rows(a, x, block, row, rows, !f->numbers, out);
    for (size_t k = 0; f->marked && !remedy && k < rows * x->width; k++)
      if (out[k] == f->mark) out[k] = NAN;
    if (!remedy) remedy = apply_mask(a, f, block, row, rows, out);
    out += rows * x->width;
    first += rows;
    n -= rows;
  }
  return remedy;
}

/* u or state of all frames. If each sequence has a step less, its last row stays 0; steps beyond x are left
 * out. */
static const char *read_all(dv_archive *a, const dv_frames *f, const dv_columns *c, float *out) {
  const char *remedy = NULL;
  for (size_t block = 0; block < f->blocks && !remedy; block++) {
    const dv_block *r = &f->block[block];
    size_t rows = c->arrays[block * c->parts]->elements / c->widths[0], each = rows / r->count;
    if (each == r->steps) remedy = fetch_rows(a, c, block, 0, rows, false, out + r->first * c->width);
    size_t taken = each < r->steps ? each : r->steps;
    for (size_t i = 0; each != r->steps && i < r->count && !remedy; i++)
      remedy = fetch_rows(a, c, block, i * each, taken, false, out + (r->first + i * r->steps) * c->width);
  }
  return remedy;
}

/* ---- Larger than memory ---- */

typedef struct frames_source {
  dvbf_source base;
  dv_archive *archive;
  dv_frames frames;
  dv_cache *cache; /* NULL: none */
} frames_source;

static bool read_file(void *source, size_t first, size_t frames, float *out) {
  frames_source *s = source;
  return !read_x(s->archive, &s->frames, first, frames, out);
}

static bool source_read(dvbf_source *source, uint64_t first, size_t frames, float *out) {
  frames_source *s = (frames_source *)source;
  if (s->cache) return dv_cache_read(s->cache, first, frames, out, read_file, s);
  return read_file(s, first, frames, out);
}

static void source_free(dvbf_source *source) {
  frames_source *s = (frames_source *)source;
  dv_frames_free(&s->frames);
  dv_archive_release(s->archive);
  dv_cache_free(s->cache);
  dv_free(s);
}

static dvbf_status make_source(dvbf_sequences *s, dv_frames *f, dv_archive *a, size_t megabytes,
                               dvbf_error *error) {
  frames_source *source = dv_calloc(1, sizeof *source);
  if (!source) return dv_fail_memory(error, "reading data");
  source->base = (dvbf_source){.read = source_read, .free = source_free};
  memcpy(source->base.path, a->path, sizeof source->base.path);
  source->archive = dv_archive_keep(a);
  source->frames = *f;
  source->cache = dv_cache_new(f->columns[DV_ROLE_X].width, f->count, megabytes << 20);
  *f = (dv_frames){0};
  s->source = &source->base;
  size_t thinned = dv_sequences_thinned(s);
  if (thinned > 1)
    dv_archive_note(a,
                    "x has %.3g numbers, more than %.3g, so it is not read completely: checks, statistics "
                    "and the fingerprint use one piece in %zu, spread evenly",
                    (double)dv_sequences_frames(s) * (double)s->n_x, (double)dv_large, thinned);
  return DVBF_OK;
}

static bool all_seekable(const dv_columns *c, size_t blocks) {
  for (size_t i = 0; i < blocks * c->parts; i++)
    if (!c->arrays[i]->seekable) return false;
  return true;
}

/* ---- Loading ---- */

/* Frames in memory that can be used in place, else NULL. Padding must be zero, which the caller's array need
 * not have. */
static float *in_place(const dvbf_sequences *s, const dv_frames *f, const dv_columns *c, dv_archive *a) {
  bool padded = s->length && !s->start;
  if (!a->format->floats || f->blocks != 1 || c->parts != 1 || padded) return NULL;
  if (c->arrays[0]->swapped || c->arrays[0]->elements != f->count * c->width)
    return NULL; /* u is a step less */
  return (float *)(uintptr_t)a->format->floats(a, c->arrays[0]);
}

/* x, u or state, copied unless they may be borrowed. */
static dvbf_status load_role(dvbf_sequences *s, dv_role role, const dv_frames *f, dv_archive *a, bool borrow,
                             dvbf_error *error) {
  static const char *const names[] = {"x", "u", "state"};
  static const unsigned flags[] = {DVBF_BORROWED_X, DVBF_BORROWED_U, DVBF_BORROWED_STATE};
  const dv_columns *c = &f->columns[role];
  float **const arrays[] = {&s->x, &s->u, &s->state}, **out = arrays[role];
  size_t size;
  if (!c->width) return DVBF_OK;
  *out = borrow ? in_place(s, f, c, a) : NULL;
  if (*out) {
    s->borrowed |= flags[role];
    return DVBF_OK;
  }
  *out = dv_multiply(f->count, c->width, &size) ? dv_calloc(size, sizeof **out) : NULL;
  if (!*out) return dv_fail_memory(error, "reading data");
  const char *remedy = role == DV_ROLE_X ? read_x(a, f, 0, f->count, *out) : read_all(a, f, c, *out);
  return remedy ? dv_fail_file(error, a->path, "%s cannot be read; %s", names[role], remedy) : DVBF_OK;
}

/* Inputs that continue beyond the outputs: u [.., steps + more, columns] for x [.., steps, columns]. Steps of
 * u in each sequence; 0: they do not. */
static size_t planned_steps(const dv_frames *f) {
  const dv_columns *u = &f->columns[DV_ROLE_U];
  if (f->blocks != 1 || !u->parts) return 0;
  size_t steps = u->arrays[0]->elements / u->widths[0] / f->block[0].count;
  return steps > f->block[0].steps ? steps : 0;
}

/* *values = [count][steps][width]: the old values begin each sequence, the others are NaN. */
static dvbf_status lengthen(float **values, const dvbf_sequences *s, size_t steps, size_t width,
                            dvbf_error *error) {
  size_t size;
  if (!width) return DVBF_OK;
  float *longer = dv_multiply(s->count, steps, &size) && dv_multiply(size, width, &size)
                      ? dv_calloc(size, sizeof *longer)
                      : NULL;
  if (!longer) return dv_fail_memory(error, "reading data");
  for (size_t k = 0; k < size; k++) longer[k] = NAN;
  for (size_t i = 0; i < s->count; i++)
    memcpy(longer + i * steps * width, *values + i * s->steps * width, s->steps * width * sizeof *longer);
  dv_free(*values);
  *values = longer;
  return DVBF_OK;
}

/* Makes the sequences as long as u, which is read as it is. */
static dvbf_status load_plan(dvbf_sequences *s, dv_frames *f, dv_archive *a, size_t steps,
                             dvbf_error *error) {
  if (s->start || s->length || s->count != f->block[0].count || steps > UINT32_MAX)
    return dv_fail_file(error, a->path,
                        "%.64s has more steps than x, which is allowed only if all sequences have the same "
                        "length; store each recording in a separate file",
                        f->columns[DV_ROLE_U].arrays[0]->name);
  dvbf_status status = lengthen(&s->x, s, steps, s->n_x, error);
  if (!status) status = lengthen(&s->state, s, steps, s->n_s, error);
  if (status) return status;
  s->gaps = true;
  s->steps = f->block[0].steps = steps;
  f->count = s->count * steps;
  return load_role(s, DV_ROLE_U, f, a, true, error);
}

static dvbf_status load_x(dvbf_sequences *s, dv_frames *f, dv_archive *a, const dv_data_settings *how,
                          bool borrow, dvbf_error *error) {
  const dv_columns *x = &f->columns[DV_ROLE_X], *mask = &f->columns[DV_ROLE_MASK];
  double needed = (double)f->count * (double)x->width * sizeof(float);
  bool plain = borrow && !mask->width && !f->marked;
  if (borrow && needed > (double)how->memory * 1048576 && !(plain && in_place(s, f, x, a)) &&
      all_seekable(x, f->blocks) && all_seekable(mask, f->blocks))
    return make_source(s, f, a, (size_t)how->memory, error);
  return load_role(s, DV_ROLE_X, f, a, plain, error);
}

dvbf_status dv_frames_load(dvbf_sequences *s, dv_frames *f, dv_archive *a, const dv_data_settings *how,
                           dvbf_error *error) {
  size_t planned = planned_steps(f);
  s->n_x = f->columns[DV_ROLE_X].width;
  s->n_u = f->columns[DV_ROLE_U].width;
  s->n_s = f->columns[DV_ROLE_STATE].width;
  s->gaps = f->columns[DV_ROLE_MASK].width || f->marked || !strcmp(how->missing, "nan");
  dvbf_status status = planned ? DVBF_OK : load_role(s, DV_ROLE_U, f, a, true, error);
  if (!status) status = load_role(s, DV_ROLE_STATE, f, a, !planned, error);
  if (!status) status = load_x(s, f, a, how, !planned, error);
  return !status && planned ? load_plan(s, f, a, planned, error) : status;
}

/* ---- Cache ---- */

/* Numbers of a block, large enough for an efficient read. With less than one block in LEAST_SHARE kept, the
 * cache is not worth the extra reading. */
enum { BLOCK_NUMBERS = 1 << 14, LEAST_SHARE = 8, LOCKS = 64 };

/* A block has one possible slot, by its number. */
struct dv_cache {
  size_t width, frames, per_block, slots;
  size_t *block;                /* [slots] number of the block + 1; 0: none */
  float *values;                /* [slots][per_block][width] */
  pthread_mutex_t locks[LOCKS]; /* of slots modulo LOCKS */
};

dv_cache *dv_cache_new(size_t width, size_t frames, size_t bytes) {
  size_t per_block = width < BLOCK_NUMBERS ? BLOCK_NUMBERS / width : 1,
         blocks = (frames + per_block - 1) / per_block;
  size_t slots = bytes / sizeof(float) / width / per_block;
  if (slots > blocks) slots = blocks;
  if (!slots || slots < blocks / LEAST_SHARE) return NULL;
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
