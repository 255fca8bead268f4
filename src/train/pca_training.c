/* Training on principal components (dv_projection_*) and from coarse to fine (dv_coarse_*); equations and
 * reasons are in pca_training.h. Of the files only the checkpoint has the small weights. */
#include "train/pca_training.h"

#include "base/error.h"
#include "base/memory.h"
#include "math/portable.h"
#include "train/start.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Conditions ---- */

static dvbf_status refuse(const dvbf_model *m, const char *setting, const char *needed, dvbf_error *error) {
  char value[64] = "";
  dvbf_settings_get(m->settings_object, setting, value, sizeof value, NULL);
  return dv_fail(error, DVBF_ARGUMENT,
                 "projection = %g needs %s = %s; it is %s; change it, or set projection = 0",
                 m->settings->projection, setting, needed, value);
}

static dvbf_status check(const dvbf_model *m, dvbf_error *error) {
  const dv_train_settings *s = m->settings;
  if (s->projection < 1e-7)
    return dv_fail(error, DVBF_ARGUMENT,
                   "projection = %g: must be 0, or at least 1e-7, as smaller values cannot be distinguished "
                   "from rounding",
                   s->projection);
  if (!m->density->normal) return refuse(m, "likelihood", "gaussian", error);
  if (s->mean != DV_MEAN_IDENTITY) return refuse(m, "mean", "identity", error);
  if (s->sigma != DV_SIGMA_FIXED && s->sigma != DV_SIGMA_GLOBAL)
    return refuse(m, "sigma", "fixed or global", error);
  if (s->initial == DV_INITIAL_FAST_DROPOUT) return refuse(m, "initial", "mlp or birnn", error);
  if (s->network == DV_NETWORK_CONV) return refuse(m, "network", "dense", error);
  if (s->mask_input == DV_MASK_DIMENSION) return refuse(m, "mask-input", "off or step", error);
  return DVBF_OK;
}

/* ---- Density ---- */

/* Data of the op. */
typedef struct dropped {
  int count;     /* dimensions that x has and its components have not */
  double square; /* their squared length, on average over the frames */
  int floor;     /* scalar: lowest ln sigma */
} dropped;

/* Dropped dimensions still count in the likelihood, since sigma is learned from them too. For every observed
 * frame they add to ln p, with derivative by ln sigma,
 *
 *   -square / (2 sigma^2) - count (ln sigma + ln(2 pi) / 2)        square / sigma^2 - count */
typedef struct addition {
  double ln_p, slope;
} addition;

/* Place of ln sigma of a frame: one for all, or one for each value, which all are the same. */
static size_t sigma_at(const dvbf_op *op, int frame) {
  dvbf_value s = op->in[1];
  return s.steps * s.rows > 1 ? (size_t)frame * (size_t)s.cols : 0;
}

static addition addition_of(const dvbf_op *op, const dvbf_run *run, int frame) {
  const dropped *d = op->data;
  double log_sigma = (double)dvbf_at(run, op->in[1])[sigma_at(op, frame)],
         floor = dvbf_scalar_at(run, d->floor);
  double ls = fmax(log_sigma, floor), square = d->square * dv_exp(-2 * ls);
  return (addition){-0.5 * square - d->count * (ls + 0.918938533204672741780),
                    log_sigma > floor ? square - d->count : 0};
}

/* in: ln p of the components, ln sigma, mask; out: ln p of x. */
static void dropped_forward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_real *ln_p = dvbf_at(run, op->in[0]), *mask = dvbf_at(run, op->in[2]);
  dvbf_real *out = dvbf_at(run, op->out[0]);
  int frames = op->out[0].steps * op->out[0].rows;
  for (int i = 0; i < frames; i++)
    out[i] = mask[i] > 0 ? ln_p[i] + (dvbf_real)addition_of(op, run, i).ln_p : 0;
}

static void dropped_backward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_real *g = dvbf_gradient_at(run, op->out[0]), *mask = dvbf_at(run, op->in[2]);
  dvbf_real *d_ln_p = dvbf_gradient_at(run, op->in[0]), *d_log_sigma = dvbf_gradient_at(run, op->in[1]);
  int frames = op->out[0].steps * op->out[0].rows;
  bool each = op->in[1].steps * op->in[1].rows > 1;
  double sum = 0;
  for (int i = 0; i < frames; i++) {
    if (!(mask[i] > 0)) continue;
    d_ln_p[i] += g[i];
    sum += (double)g[i];
    if (d_log_sigma && each)
      d_log_sigma[sigma_at(op, i)] += (dvbf_real)((double)g[i] * addition_of(op, run, i).slope);
  }
  if (d_log_sigma && !each) *d_log_sigma += (dvbf_real)(sum * addition_of(op, run, 0).slope);
}

static const dvbf_op_class dropped_class = {"dropped dimensions", dropped_forward, dropped_backward, NULL};

/* The density of a model of components is the first thing in its projection. */
static void record(dvbf_program *p, const dvbf_model *m, dvbf_value hidden, dvbf_value mask) {
  const dv_projection *projection = (const dv_projection *)m->density;
  const dv_components *c = &projection->components;
  projection->whole->density->record(p, m, hidden, mask);
  dropped data = {c->n_x - c->count, c->left_out, dvbf_scalar(p->graph, DVBF_LOG_SIGMA_FLOOR, -1000)};
  dvbf_value in[] = {p->ln_p, p->shape[0], p->mask};
  p->ln_p = dvbf_slab(p->graph, p->steps, 1);
  dvbf_record(p->graph, &dropped_class, 3, in, 1, &p->ln_p, &data, sizeof data);
}

/* ---- Projected data ---- */

dvbf_status dv_projection_init(dv_projection *p, dvbf_model *whole, const dvbf_data *data,
                               dvbf_error *error) {
  *p = (dv_projection){.density = *whole->density, .whole = whole};
  p->density.record = record;
  dv_components ramps = {0};
  bool places = whole->settings->start == DV_START_MOMENTS;
  dvbf_status status = check(whole, error);
  if (!status && places) status = dv_image_moments_ramps(&ramps, whole, data, error);
  if (!status)
    status = dv_components_find(&p->components, &data->train, whole, whole->settings->projection,
                                (int)whole->settings->components, places ? &ramps : NULL, error);
  dv_components_free(&ramps);
  return status ? status : dv_components_project(&p->data, &p->components, data, whole, error);
}

void dv_projection_clear(dv_projection *p) {
  dvbf_model_free(p->whole);
  dv_components_free(&p->components);
  dvbf_sequences_free(&p->data.train);
  dvbf_sequences_free(&p->data.valid);
  *p = (dv_projection){0};
}

double dv_projection_log_jacobian(const dv_projection *p) {
  return p->whole ? dv_model_log_jacobian(p->whole) : 0;
}

/* ---- Model of the components ---- */

/* A frame's coordinates in the components, from x [n_x]. */
static void project_frame(double *out, const dv_components *c, const double *frame) {
  for (int i = 0; i < c->count; i++) {
    const dvbf_real *axis = c->axes + (size_t)i * (size_t)c->n_x;
    out[i] = 0;
    for (int j = 0; j < c->n_x; j++) out[i] += (double)axis[j] * frame[j];
  }
}

/* x is scaled before it is projected, so that the model of the components scales only u. */
static void take_over(dvbf_model *m, const dv_projection *p) {
  const dvbf_model *whole = p->whole;
  const dv_components *c = &p->components;
  memcpy(m->u.shift, whole->u.shift, (size_t)m->n_u * sizeof *m->u.shift);
  memcpy(m->u.scale, whole->u.scale, (size_t)m->n_u * sizeof *m->u.scale);
  m->x_spread = whole->x_spread;
  project_frame(m->first_output, c, whole->first_output);
  m->sequences = whole->sequences;
  m->log_sigma_floor = whole->log_sigma_floor;
}

dvbf_status dv_projection_model(dvbf_model **out, const dv_projection *p, size_t steps, uint64_t seed,
                                dvbf_error *error) {
  const dvbf_model *whole = p->whole;
  dvbf_model *m = NULL;
  dv_own own = dv_model_own(whole);
  dvbf_status status =
      dv_model_empty(&m, whole->settings_object, &own, p->components.count, whole->n_u, error);
  if (status) return status;
  m->density = &p->density;
  take_over(m, p);
  return dv_model_give(out, m, dv_model_first_values(m, steps, seed, error));
}

/* ---- Folding ---- */

/* Weights from x: for each frame that they read, [n_c][cols] becomes [n_x][cols] = P^T W_c. */
static void fold_rows(dvbf_real *to, const dvbf_real *from, int frames, int cols, const dv_components *c) {
  for (int i = 0; i < frames;
       i++, to += (size_t)c->n_x * (size_t)cols, from += (size_t)c->count * (size_t)cols)
    dv_kernels_best()->product->tn(to, false, c->axes, from, c->count, cols, c->n_x);
}

/* Weights to x: [rows][n_c] becomes [rows][n_x] = V_c P. */
static void fold_columns(dvbf_real *to, const dvbf_real *from, int rows, const dv_components *c) {
  memset(to, 0, (size_t)rows * (size_t)c->n_x * sizeof *to);
  dv_kernels_best()->product->nn(to, NULL, from, c->axes, rows, c->n_x, c->count);
}

/* Both models have recorded the same parameters in the same order. */
dvbf_model *dv_projection_fold(dv_projection *p, dvbf_model *m) {
  const dv_components *c = &p->components;
  if (!p->whole) return m;
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *from = &m->parameters.list[i], *to = &p->whole->parameters.list[i];
    const dvbf_real *given = m->parameters.values + from->offset;
    dvbf_real *made = p->whole->parameters.values + to->offset;
    if (from->rows == to->rows && from->cols == to->cols)
      memcpy(made, given, (size_t)to->rows * (size_t)to->cols * sizeof *made);
    else if (from->cols == to->cols)
      fold_rows(made, given, from->rows / c->count, from->cols, c);
    else
      fold_columns(made, given, from->rows, c);
  }
  return p->whole;
}

/* ---- Levels of coarse training ---- */

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
  uint64_t held = i - i % (uint64_t)s->validate_every, hold = (uint64_t)round(0.4 * (double)s->updates);
  uint64_t end = (uint64_t)round(0.7 * (double)s->updates);
  if (!s->coarse || held >= end) return 0;
  if (held <= hold) return DV_COARSE_LEVELS;
  uint64_t left = (end - held) * DV_COARSE_LEVELS / (end - hold);
  return left ? (unsigned)left : 1;
}

/* ---- Coarse data ---- */

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

/* out[count]: the factor of each principal axis in a level. */
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

enum { FILTERED_ROWS = 256 }; /* frames at once */

/* to = from times the filter; in, out: [FILTERED_ROWS][count]. */
static void apply(float *to, const float *from, size_t frames, const dvbf_real *filter, int count,
                  dvbf_real *in, dvbf_real *out) {
  size_t n = (size_t)count;
  for (size_t f = 0; f < frames; f += FILTERED_ROWS) {
    size_t rows = frames - f < FILTERED_ROWS ? frames - f : FILTERED_ROWS;
    for (size_t i = 0; i < rows * n; i++) in[i] = (dvbf_real)from[f * n + i];
    dv_kernels_best()->product->nt(out, false, in, filter, (int)rows, count, count);
    for (size_t i = 0; i < rows * n; i++) to[f * n + i] = (float)out[i];
  }
}

dvbf_status dv_coarse_set(dv_coarse *c, unsigned level, dvbf_error *error) {
  if (!(c->power > 0) || level == c->level) return DVBF_OK;
  c->level = level;
  for (int i = 0; i < 2 && !level; i++)
    if (c->fine[i]) memcpy(part_of(c, i)->x, c->fine[i], size_of(part_of(c, i)) * sizeof *c->fine[i]);
  if (!level) return DVBF_OK;
  const dv_components *from = &c->projection->components;
  size_t n = (size_t)from->count;
  dvbf_real *filter = dv_calloc_aligned(n, n * sizeof *filter),
            *work = dv_calloc_aligned(n, n * sizeof *work);
  dvbf_real *in = dv_calloc_aligned(n, FILTERED_ROWS * sizeof *in),
            *out = dv_calloc_aligned(n, FILTERED_ROWS * sizeof *out);
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

/* ---- Models between levels ---- */

/* Memory to change weights in. */
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

/* The emission has learned the share w = signal / (signal + sigma^2) of component j and is scaled by it. The
 * new sigma^2 is the mean square of the noise it makes and the signal it misses. Returns its root. */
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

/* Changes ln sigma of that name if it is learned; c->scale becomes that of the emission. */
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
