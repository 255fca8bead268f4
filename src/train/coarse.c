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

/* out[count]: what a level scales each principal axis by. */
static void factors(double *out, const dv_coarse *coarse, unsigned level) {
  const dv_components *c = &coarse->projection->components;
  double p = coarse->power * level / DV_COARSE_LEVELS, before = 0, after = 0;
  for (int j = 0; j < c->count; j++) {
    before += variance_at(c, j, 0);
    after += variance_at(c, j, p);
  }
  for (int j = 0; j < c->count; j++)
    out[j] = sqrt(before / after) * dv_pow(fmax(0, c->variance[j]) / c->variance[0], p);
}

/* out [count][count] = R diag(f) R^T, which scales what lies along principal axis j by f_j; coordinates are R
 * times those along the principal axes. work: [count][count]. */
static void make_filter(dvbf_real *out, dvbf_real *work, const dv_components *c, const double *f) {
  size_t n = (size_t)c->count;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) work[i * n + j] = (dvbf_real)((double)c->rotation[i * n + j] * f[j]);
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
  double *f = dv_calloc(n, sizeof *f);
  bool room = filter && work && in && out && f;
  if (room) factors(f, c, level);
  if (room) make_filter(filter, work, from, f);
  for (int i = 0; i < 2 && room; i++) {
    dvbf_sequences *s = part_of(c, i);
    if (c->fine[i]) apply(s->x, c->fine[i], dv_sequences_frames(s), filter, from->count, in, out);
  }
  DV_FREE(filter, work, in, out, f);
  return room ? DVBF_OK : dv_fail_memory(error, "making coarse data");
}

/* ---- Models ---- */

/* Room to change weights in. */
typedef struct change {
  int count;
  double *from, *to, *scale; /* [count] factors of both levels, and what the filter scales by */
  dvbf_real *filter, *work;  /* [count][count] */
} change;

static bool make_change(change *c, int count) {
  size_t n = (size_t)count;
  *c = (change){.count = count};
  c->from = dv_calloc(3 * n, sizeof *c->from);
  c->filter = dv_calloc_aligned(n, n * sizeof *c->filter);
  c->work = dv_calloc_aligned(n, n * sizeof *c->work);
  if (!c->from || !c->filter || !c->work) return false;
  c->to = c->from + n;
  c->scale = c->to + n;
  return true;
}

/* W [rows / count][count][cols], which reads x: filter W for each frame. */
static bool change_reading(const change *c, dvbf_real *w, int rows, int cols) {
  size_t block = (size_t)c->count * (size_t)cols;
  dvbf_real *copy = dv_calloc_aligned(block, sizeof *copy);
  for (int i = 0; copy && i < rows / c->count; i++, w += block) {
    memcpy(copy, w, block * sizeof *copy);
    dv_kernels_best()->product->tn(w, false, c->filter, copy, c->count, cols, c->count);
  }
  dv_free(copy);
  return copy;
}

/* V [rows][count], which makes x: V filter. */
static bool change_emission(const change *c, dvbf_real *v, int rows) {
  size_t size = (size_t)rows * (size_t)c->count;
  dvbf_real *copy = dv_calloc_aligned(size, sizeof *copy);
  if (copy) {
    memcpy(copy, v, size * sizeof *copy);
    dv_kernels_best()->product->nt(v, false, copy, c->filter, rows, c->count, c->count);
  }
  dv_free(copy);
  return copy;
}

/* Of component j the emission has learned the share w = signal / (signal + sigma^2): it is scaled by that.
 * What sigma^2 becomes is the mean square of what it makes of the noise and of what it misses. Returns its
 * root. */
static double change_sigma(const change *c, const dv_components *from, double sigma) {
  double sum = (from->n_x - c->count) * sigma * sigma;
  for (int j = 0; j < c->count; j++) {
    double signal = c->from[j] * c->from[j] * from->variance[j], w = signal / (signal + sigma * sigma);
    double ratio = c->from[j] > 0 ? c->to[j] / c->from[j] : 0, missed = c->to[j] * (1 - w);
    c->scale[j] = w * ratio;
    sum += sigma * sigma * c->scale[j] * c->scale[j] + missed * missed * from->variance[j];
  }
  return sqrt(sum / from->n_x);
}

/* Changes ln sigma of that name, where it is learned; c->scale becomes that of the emission. */
static void change_log_sigma(const change *c, const dv_components *from, const dv_parameters *p,
                             const char *name) {
  const dv_parameter *at = dv_parameters_find(p, name);
  if (!at) return;
  dvbf_real *log_sigma = p->values + at->offset;
  double after = change_sigma(c, from, dv_exp((double)*log_sigma));
  if (!at->frozen) *log_sigma = (dvbf_real)dv_log(after);
}

/* Weights that make x, or those that read it. Both models have the same parameters in the same order. */
static bool change_weights(const change *c, const dv_parameters *p, const dv_parameters *whole,
                           bool reading) {
  bool room = true;
  for (size_t i = 0; i < p->count && room; i++) {
    const dv_parameter *a = &p->list[i], *b = &whole->list[i];
    if (reading && a->rows != b->rows) room = change_reading(c, p->values + a->offset, a->rows, a->cols);
    if (!reading && a->cols != b->cols) room = change_emission(c, p->values + a->offset, a->rows);
  }
  return room;
}

dvbf_status dv_coarse_refocus(const dv_coarse *coarse, dvbf_model *m, unsigned from, unsigned to,
                              dvbf_error *error) {
  if (!(coarse->power > 0) || from == to) return DVBF_OK;
  const dv_components *components = &coarse->projection->components;
  const dv_parameters *p = &m->parameters, *whole = &coarse->projection->whole->parameters;
  change c;
  bool room = make_change(&c, components->count);
  if (room) {
    factors(c.from, coarse, from);
    factors(c.to, coarse, to);
    change_log_sigma(&c, components, p, "emission.free_log_sigma");
    change_log_sigma(&c, components, p, "emission.log_sigma");
    make_filter(c.filter, c.work, components, c.scale);
    room = change_weights(&c, p, whole, false);
    for (int j = 0; j < c.count; j++) c.scale[j] = c.to[j] > 0 ? c.from[j] / c.to[j] : 0;
    make_filter(c.filter, c.work, components, c.scale);
    room = room && change_weights(&c, p, whole, true);
  }
  DV_FREE(c.from, c.filter, c.work);
  return room ? DVBF_OK : dv_fail_memory(error, "sharpening a model");
}
