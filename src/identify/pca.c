/* Principal components of x by subspace iteration (dv_components_find, dv_components_project). Q <-
 * orthonormal(C Q) moves random directions towards the largest eigenvectors of C = sum of x x^T. C itself is
 * never computed: C Q = X^T (X Q) is summed over chunks of frames, so x may be large and in a file. Then Q is
 * rotated to the eigenvectors of Q^T C Q, and another pass measures the variance along each. */
#include "identify/pca.h"

#include "base/error.h"
#include "base/memory.h"
#include "math/algebra.h"
#include "math/random.h"

#include <math.h>
#include <string.h>

enum {
  CHUNK_FRAMES = 256, /* frames at once */
  ROUNDS = 3,         /* of the iteration */
  FIRST_AXES = 64,    /* directions to begin with */
  MOST_AXES = 512,    /* directions at most */
  MULTIPLE = 16       /* the number that is kept is a multiple of this */
};

/* ---- Frames in chunks ---- */

typedef struct chunk {
  int count;
  dvbf_real *frames;           /* [count][n_x], scaled */
  size_t number[CHUNK_FRAMES]; /* of each among all frames */
} chunk;

typedef void chunk_fn(void *user, const chunk *chunk);

static bool seen_in_part(const float *x, int n) {
  int missing = 0;
  for (int i = 0; i < n; i++) missing += isnan(x[i]) != 0;
  return missing > 0 && missing < n;
}

static dvbf_status refuse_part(size_t sequence, size_t step, dvbf_error *error) {
  return dv_fail(error, DVBF_ARGUMENT,
                 "projection: step %zu of sequence %zu is partly missing, but only complete frames can be "
                 "projected; set projection = 0",
                 step, sequence);
}

/* Missing frames are left out. */
static void add_frame(chunk *c, const dv_kernels *k, const float *x, const dvbf_model *m, size_t number) {
  if (isnan(x[0])) return;
  k->standardise(c->frames + (size_t)c->count * (size_t)m->n_x, x, m->x.shift, m->x.scale, m->n_x);
  c->number[c->count++] = number;
}

static dvbf_status each_chunk(const dvbf_sequences *s, const dvbf_model *m, chunk_fn *fn, void *user,
                              dvbf_error *error) {
  const dv_kernels *kernels = dv_kernels_best();
  size_t n = (size_t)m->n_x, number = 0;
  float *buffer = NULL;
  chunk c = {.frames = dv_calloc_aligned(n, CHUNK_FRAMES * sizeof *c.frames)};
  dvbf_status status = c.frames ? dv_sequence_buffer(&buffer, s, CHUNK_FRAMES, error)
                                : dv_fail_memory(error, "finding the components of x");
  for (size_t i = 0; i < s->count && !status; i++)
    for (size_t t = 0, length = dvbf_sequence_length(s, i); t < length && !status; t += CHUNK_FRAMES) {
      size_t steps = length - t < CHUNK_FRAMES ? length - t : CHUNK_FRAMES;
      const float *x = dv_sequence_x(s, i, t, steps, buffer);
      for (size_t k = 0; k < steps && !status; k++, x += n) {
        if (s->gaps && seen_in_part(x, m->n_x)) status = refuse_part(i, t + k, error);
        add_frame(&c, kernels, x, m, number++);
        if (c.count < CHUNK_FRAMES) continue;
        fn(user, &c);
        c.count = 0;
      }
    }
  if (!status) status = dv_sequences_intact(s, error);
  if (!status && c.count) fn(user, &c);
  DV_FREE(c.frames, buffer);
  return status;
}

/* ---- Finding components ---- */

typedef struct axis_search {
  int n, directions;
  const dv_products *product;
  dvbf_real *q;      /* [directions][n], orthonormal rows */
  dvbf_real *cq;     /* [directions][n] */
  dvbf_real *inside; /* [CHUNK_FRAMES][directions], a chunk in these directions */
  dvbf_real *gram;   /* [directions][directions] of a chunk */
  double *matrix;    /* [directions][directions], the sum of them */
  double *vectors;   /* [directions][directions], its eigenvectors */
  double *wide;      /* [directions][n] */
  double *values;    /* [directions] */
  double all;        /* sum of squares of all frames */
  size_t frames;
} axis_search;

static bool search_allocate(axis_search *s, int n, int directions) {
  size_t d = (size_t)directions, width = (size_t)n;
  *s = (axis_search){.n = n, .directions = directions, .product = dv_kernels_best()->product};
  s->q = dv_calloc_aligned(width, d * sizeof *s->q);
  s->cq = dv_calloc_aligned(width, d * sizeof *s->cq);
  s->inside = dv_calloc_aligned(d, CHUNK_FRAMES * sizeof *s->inside);
  s->gram = dv_calloc_aligned(d, d * sizeof *s->gram);
  s->matrix = dv_calloc(d, d * sizeof *s->matrix);
  s->vectors = dv_calloc(d, d * sizeof *s->vectors);
  s->wide = dv_calloc(width, d * sizeof *s->wide);
  s->values = dv_calloc(d, sizeof *s->values);
  return s->q && s->cq && s->inside && s->gram && s->matrix && s->vectors && s->wide && s->values;
}

static void look_inside(axis_search *s, const chunk *c) {
  s->product->nt(s->inside, false, c->frames, s->q, c->count, s->n, s->directions);
}

static void add_products(void *user, const chunk *c) {
  axis_search *s = user;
  look_inside(s, c);
  s->product->tn(s->cq, true, s->inside, c->frames, c->count, s->n, s->directions);
}

static void add_gram(void *user, const chunk *c) {
  axis_search *s = user;
  size_t d = (size_t)s->directions;
  look_inside(s, c);
  s->product->tn(s->gram, false, s->inside, s->inside, c->count, s->directions, s->directions);
  for (size_t i = 0; i < d * d; i++) s->matrix[i] += (double)s->gram[i];
}

static void add_squares(void *user, const chunk *c) {
  axis_search *s = user;
  look_inside(s, c);
  const dvbf_real *inside = s->inside, *frames = c->frames;
  for (int r = 0; r < c->count; r++, inside += s->directions, frames += s->n) {
    for (int i = 0; i < s->directions; i++) s->values[i] += (double)inside[i] * (double)inside[i];
    for (int i = 0; i < s->n; i++) s->all += (double)frames[i] * (double)frames[i];
  }
  s->frames += (size_t)c->count;
}

/* q = orthonormal rows with the span of the rows of `wide`. */
static void orthonormalise(axis_search *s) {
  dv_orthonormalise(s->wide, s->directions, s->n);
  for (size_t i = 0; i < (size_t)s->directions * (size_t)s->n; i++) s->q[i] = (dvbf_real)s->wide[i];
}

/* Rotates the rows of q to the eigenvectors of `matrix`, the largest first. */
static void rotate_to_axes(axis_search *s) {
  int d = s->directions, n = s->n;
  dv_diagonalise(s->matrix, s->vectors, d);
  memset(s->wide, 0, (size_t)d * (size_t)n * sizeof *s->wide);
  for (int i = 0; i < d; i++) {
    const double *vector = s->vectors + (size_t)dv_take_largest(s->matrix, d, NULL) * (size_t)d;
    double *to = s->wide + (size_t)i * (size_t)n;
    for (int j = 0; j < d; j++) {
      const dvbf_real *from = s->q + (size_t)j * (size_t)n;
      for (int k = 0; k < n; k++) to[k] += vector[j] * (double)from[k];
    }
  }
  orthonormalise(s);
}

/* Finds the directions, sorted by variance, and the variance along each. */
static dvbf_status run_search(axis_search *s, const dvbf_sequences *from, const dvbf_model *m,
                              dvbf_error *error) {
  size_t size = (size_t)s->directions * (size_t)s->n;
  dv_any_directions(s->wide, s->directions, s->n);
  orthonormalise(s);
  dvbf_status status = DVBF_OK;
  for (int round = 0; round < ROUNDS && !status; round++) {
    memset(s->cq, 0, size * sizeof *s->cq);
    status = each_chunk(from, m, add_products, s, error);
    for (size_t i = 0; i < size; i++) s->wide[i] = (double)s->cq[i];
    orthonormalise(s);
  }
  if (!status) status = each_chunk(from, m, add_gram, s, error);
  if (!status) rotate_to_axes(s);
  memset(s->values, 0, (size_t)s->directions * sizeof *s->values);
  return status ? status : each_chunk(from, m, add_squares, s, error);
}

/* Replaces the last of the kept directions by others, and measures all again. */
static dvbf_status take_in(axis_search *s, int kept, const dv_components *also, const dvbf_sequences *from,
                           const dvbf_model *m, double *left_out, dvbf_error *error) {
  size_t width = (size_t)s->n, first = (size_t)(kept - also->count) * width;
  for (size_t i = 0; i < (size_t)s->directions * width; i++) s->wide[i] = (double)s->q[i];
  for (size_t i = 0; i < (size_t)also->count * width; i++) s->wide[first + i] = (double)also->axes[i];
  dv_orthonormalise(s->wide, kept, s->n);
  for (size_t i = 0; i < (size_t)kept * width; i++) s->q[i] = (dvbf_real)s->wide[i];
  memset(s->values, 0, (size_t)s->directions * sizeof *s->values);
  s->all = 0, s->frames = 0;
  dvbf_status status = each_chunk(from, m, add_squares, s, error);
  double left = s->all;
  for (int i = 0; i < kept; i++) left -= s->values[i];
  if (!status) *left_out = fmax(0, left / (double)s->frames);
  return status;
}

/* The smallest multiple of MULTIPLE directions that leave out at most `allowed`; 0: more are needed. */
static int enough(const axis_search *s, double allowed, double *left_out) {
  double left = s->all;
  for (int i = 0; i < s->directions; i++) {
    left -= s->values[i];
    *left_out = fmax(0, left / (double)s->frames);
    if ((i + 1) % MULTIPLE == 0 && *left_out <= allowed) return i + 1;
  }
  return 0;
}

/* Rotates the first `kept` axes at random within their plane; out has the rotation and the variances. */
static bool mix_axes(axis_search *s, int kept, dv_components *out) {
  size_t n = (size_t)kept, size = n * (size_t)s->n;
  out->variance = dv_calloc(n, sizeof *out->variance);
  out->rotation = dv_calloc_aligned(n, n * sizeof *out->rotation);
  if (!out->variance || !out->rotation) return false;
  dv_any_directions(s->wide, kept, kept);
  dv_orthonormalise(s->wide, kept, kept);
  for (size_t i = 0; i < n * n; i++) out->rotation[i] = (dvbf_real)s->wide[i];
  memset(s->cq, 0, size * sizeof *s->cq);
  s->product->nn(s->cq, NULL, out->rotation, s->q, kept, s->n, kept);
  memcpy(s->q, s->cq, size * sizeof *s->q);
  for (int i = 0; i < kept; i++) out->variance[i] = s->values[i] / (double)s->frames;
  return true;
}

dvbf_status dv_components_find(dv_components *out, const dvbf_sequences *from, const dvbf_model *m,
                               double share, int limit, const dv_components *also, dvbf_error *error) {
  int most = m->n_x / 2 / MULTIPLE * MULTIPLE, kept = 0;
  if (most > MOST_AXES) most = MOST_AXES;
  if (limit && limit < most) most = limit / MULTIPLE * MULTIPLE > 0 ? limit / MULTIPLE * MULTIPLE : MULTIPLE;
  dvbf_status status = DVBF_OK;
  *out = (dv_components){.n_x = m->n_x};
  if (!most)
    return dv_fail(error, DVBF_ARGUMENT,
                   "projection = %g: x has %d dimensions, but projection saves no time with fewer than %d; "
                   "set projection = 0",
                   share, m->n_x, 2 * MULTIPLE);
  for (int d = FIRST_AXES < most ? FIRST_AXES : most; !status && !kept; d = 2 * d < most ? 2 * d : most) {
    axis_search s;
    bool room = search_allocate(&s, m->n_x, d);
    status = room ? run_search(&s, from, m, error) : dv_fail_memory(error, "finding the components of x");
    if (!status) kept = enough(&s, share * m->x_spread, &out->left_out);
    if (!status && !kept && limit && d == most) kept = most;
    if (!status && also && kept > also->count)
      status = take_in(&s, kept, also, from, m, &out->left_out, error);
    if (kept && !mix_axes(&s, kept, out)) status = dv_fail_memory(error, "finding the components of x");
    if (!status && !kept && d == most)
      status = dv_fail(error, DVBF_ARGUMENT,
                       "projection = %g: leaving out only that share of the variance needs more than %d of "
                       "the %d dimensions of x, which is too many; set projection = 0, or a larger share",
                       share, most, m->n_x);
    out->count = kept;
    out->axes = kept ? s.q : NULL;
    if (kept) s.q = NULL;
    DV_FREE(s.q, s.cq, s.inside, s.gram, s.matrix, s.vectors, s.wide, s.values);
  }
  return status;
}

void dv_components_free(dv_components *c) {
  DV_FREE(c->axes, c->rotation, c->variance);
  *c = (dv_components){0};
}

/* ---- Projecting ---- */

/* Allocates sequences of the same lengths, one after the other, with `width` zeros for each x; copies u. */
static dvbf_status make_room(dvbf_sequences *to, const dvbf_sequences *from, int width, dvbf_error *error) {
  size_t frames = dv_sequences_frames(from), at = 0, size = 0;
  *to = (dvbf_sequences){
      .count = from->count, .steps = from->steps, .n_x = (size_t)width, .n_u = from->n_u, .gaps = from->gaps};
  to->start = dv_calloc(from->count, sizeof *to->start);
  to->length = dv_calloc(from->count, sizeof *to->length);
  if (dv_multiply(frames, to->n_x, &size)) to->x = dv_calloc(size, sizeof *to->x);
  if (from->n_u) to->u = dv_calloc(frames, from->n_u * sizeof *to->u);
  if (!to->start || !to->length || !to->x || (from->n_u && !to->u)) {
    dvbf_sequences_free(to);
    return dv_fail_memory(error, "projecting x");
  }
  for (size_t i = 0; i < from->count; i++) {
    size_t length = dvbf_sequence_length(from, i), n = from->n_u;
    to->start[i] = at;
    to->length[i] = (uint32_t)length;
    if (n) memcpy(to->u + at * n, from->u + dvbf_sequence_start(from, i) * n, length * n * sizeof *to->u);
    at += length;
  }
  return DVBF_OK;
}

typedef struct projecting {
  const dv_components *c;
  float *to;         /* [frames][count] */
  dvbf_real *inside; /* [CHUNK_FRAMES][count] */
} projecting;

static void put_coordinates(void *user, const chunk *from) {
  projecting *p = user;
  size_t width = (size_t)p->c->count;
  dv_kernels_best()->product->nt(p->inside, false, from->frames, p->c->axes, from->count, p->c->n_x,
                                 p->c->count);
  for (int r = 0; r < from->count; r++)
    for (size_t i = 0; i < width; i++)
      p->to[from->number[r] * width + i] = (float)p->inside[(size_t)r * width + i];
}

static dvbf_status project(dvbf_sequences *out, const dv_components *c, const dvbf_sequences *from,
                           const dvbf_model *m, dvbf_error *error) {
  dvbf_status status = make_room(out, from, c->count, error);
  if (status) return status;
  size_t size = dv_sequences_frames(out) * out->n_x;
  for (size_t i = 0; from->gaps && i < size; i++)
    out->x[i] = NAN; /* frames that are not written below stay missing */
  projecting p = {c, out->x, dv_calloc_aligned((size_t)c->count, CHUNK_FRAMES * sizeof *p.inside)};
  status = p.inside ? each_chunk(from, m, put_coordinates, &p, error) : dv_fail_memory(error, "projecting x");
  dv_free(p.inside);
  if (status) dvbf_sequences_free(out);
  return status;
}

dvbf_status dv_components_project(dvbf_data *out, const dv_components *c, const dvbf_data *from,
                                  const dvbf_model *m, dvbf_error *error) {
  dvbf_status status = project(&out->train, c, &from->train, m, error);
  return status || !from->valid.count ? status : project(&out->valid, c, &from->valid, m, error);
}
