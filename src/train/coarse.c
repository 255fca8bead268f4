#include "train/coarse.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

/* ---- How coarse ---- */

/* The variance along axis j of data with power p, up to a factor. */
static double variance_at(const dv_components *c, int j, double p) {
  return c->variance[0] > 0 ? dv_pow(fmax(0, c->variance[j]) / c->variance[0], 1 + 2 * p) : 0;
}

/* (sum v)^2 / sum v^2: n axes of equal variance count n. */
static double directions_at(const dv_components *c, double p) {
  double sum = 0, squares = 0;
  for (int j = 0; j < c->count; j++) {
    double v = variance_at(c, j, p);
    sum += v, squares += v * v;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

/* The number of directions falls as p rises. */
static double power_for(const dv_components *c, double directions) {
  double low = 0, high = 64;
  if (directions_at(c, 0) <= directions) return 0;
  for (int i = 0; i < 60; i++) {
    double middle = (low + high) / 2;
    *(directions_at(c, middle) > directions ? &low : &high) = middle;
  }
  return high;
}

unsigned dv_coarse_level(const dv_train_settings *s, uint64_t i) {
  uint64_t held = i - i % (uint64_t)s->validate_every, hold = (uint64_t)s->coarse_hold;
  uint64_t end = (uint64_t)s->coarse_updates;
  if (!(s->coarse > 0) || held >= end) return 0;
  if (held <= hold) return DV_COARSE_LEVELS;
  uint64_t left = (end - held) * DV_COARSE_LEVELS / (end - hold);
  return left ? (unsigned)left : 1;
}

/* ---- Data ---- */

static dvbf_sequences *part_of(const dv_coarse *c, int i) {
  return i ? &c->projection->data.valid : &c->projection->data.train;
}

static size_t size_of(const dvbf_sequences *s) {
  return dv_sequences_frames(s) * s->n_x;
}

dvbf_status dv_coarse_init(dv_coarse *c, dv_projection *p, double directions, dvbf_error *error) {
  *c = (dv_coarse){.projection = p, .power = power_for(&p->components, directions)};
  for (int i = 0; i < 2 && c->power > 0; i++) {
    const dvbf_sequences *s = part_of(c, i);
    if (!s->count) continue;
    c->fine[i] = dv_calloc(size_of(s), sizeof *c->fine[i]);
    if (!c->fine[i]) return dv_fail_memory(error, "preparing coarse data");
    memcpy(c->fine[i], s->x, size_of(s) * sizeof *s->x);
  }
  return DVBF_OK;
}

void dv_coarse_clear(dv_coarse *c) {
  DV_FREE(c->fine[0], c->fine[1]);
  *c = (dv_coarse){0};
}

/* out [count][count] = R diag(f) R^T, which scales what lies along principal axis j by f_j; coordinates are R
 * times those along the principal axes. work: [count][count]. */
static void make_filter(dvbf_real *out, dvbf_real *work, const dv_components *c, double p) {
  size_t n = (size_t)c->count;
  double before = 0, after = 0;
  for (int j = 0; j < c->count; j++) {
    before += variance_at(c, j, 0);
    after += variance_at(c, j, p);
  }
  double gain = sqrt(before / after);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) {
      double factor = gain * dv_pow(fmax(0, c->variance[j]) / c->variance[0], p);
      work[i * n + j] = (dvbf_real)((double)c->rotation[i * n + j] * factor);
    }
  dv_kernels_best()->product->nt(out, false, work, c->rotation, c->count, c->count, c->count);
}

enum { CHUNK = 256 }; /* frames at once */

/* to = from times the filter; in, out: [CHUNK][count]. */
static void apply(float *to, const float *from, size_t frames, const dvbf_real *filter, int count,
                  dvbf_real *in, dvbf_real *out) {
  size_t n = (size_t)count;
  for (size_t f = 0; f < frames; f += CHUNK) {
    size_t rows = frames - f < CHUNK ? frames - f : CHUNK;
    for (size_t i = 0; i < rows * n; i++) in[i] = (dvbf_real)from[f * n + i];
    dv_kernels_best()->product->nt(out, false, in, filter, (int)rows, count, count);
    for (size_t i = 0; i < rows * n; i++) to[f * n + i] = (float)out[i];
  }
}

static void restore(const dv_coarse *c) {
  for (int i = 0; i < 2; i++) {
    dvbf_sequences *s = part_of(c, i);
    if (c->fine[i]) memcpy(s->x, c->fine[i], size_of(s) * sizeof *s->x);
  }
}

dvbf_status dv_coarse_set(dv_coarse *c, unsigned level, dvbf_error *error) {
  if (!(c->power > 0) || level == c->level) return DVBF_OK;
  c->level = level;
  if (!level) {
    restore(c);
    return DVBF_OK;
  }
  const dv_components *from = &c->projection->components;
  size_t n = (size_t)from->count;
  dvbf_real *filter = dv_calloc_aligned(n, n * sizeof *filter),
            *work = dv_calloc_aligned(n, n * sizeof *work);
  dvbf_real *in = dv_calloc_aligned(n, CHUNK * sizeof *in), *out = dv_calloc_aligned(n, CHUNK * sizeof *out);
  bool room = filter && work && in && out;
  if (room) make_filter(filter, work, from, c->power * level / DV_COARSE_LEVELS);
  for (int i = 0; i < 2 && room; i++) {
    dvbf_sequences *s = part_of(c, i);
    if (c->fine[i]) apply(s->x, c->fine[i], dv_sequences_frames(s), filter, from->count, in, out);
  }
  DV_FREE(filter, work, in, out);
  return room ? DVBF_OK : dv_fail_memory(error, "making coarse data");
}
