#include "train/projection.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/status.h"
#include "train/places.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Where it holds ---- */

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
                   "projection = %g: must be 0, or at least 1e-7, as less cannot be told from rounding",
                   s->projection);
  if (!m->density->normal) return refuse(m, "likelihood", "gaussian", error);
  if (s->mean != DV_MEAN_IDENTITY) return refuse(m, "mean", "identity", error);
  if (s->sigma != DV_SIGMA_FIXED && s->sigma != DV_SIGMA_GLOBAL)
    return refuse(m, "sigma", "fixed or global", error);
  if (s->initial == DV_INITIAL_FAST_DROPOUT) return refuse(m, "initial", "mlp or birnn", error);
  if (s->network == DV_NETWORK_CONV) return refuse(m, "network", "dense", error);
  if (s->shift) return refuse(m, "shift", "0", error);
  if (s->mask_input == DV_MASK_DIMENSION) return refuse(m, "mask-input", "off or step", error);
  return DVBF_OK;
}

/* ---- The density ---- */

/* Data of the op. */
typedef struct dropped {
  int count;     /* dimensions that x has and its components have not */
  double square; /* their squared length, on average over the frames */
  int floor;     /* scalar: lowest ln sigma */
} dropped;

/* What they add to ln p of every frame that is seen, and its derivative by ln sigma:
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

/* ---- Data ---- */

dvbf_status dv_projection_init(dv_projection *p, dvbf_model *whole, const dvbf_data *data,
                               dvbf_error *error) {
  *p = (dv_projection){.density = *whole->density, .whole = whole};
  p->density.record = record;
  dv_components ramps = {0};
  bool places = whole->settings->start == DV_START_PLACES;
  dvbf_status status = check(whole, error);
  if (!status && places) status = dv_places_ramps(&ramps, whole, data, error);
  if (!status)
    status = dv_components_find(&p->components, &data->train, whole, whole->settings->projection,
                                (int)whole->settings->components, places ? &ramps : NULL, error);
  dv_components_free(&ramps);
  if (!status) status = dv_components_project(&p->data.train, &p->components, &data->train, whole, error);
  if (!status && data->valid.count)
    status = dv_components_project(&p->data.valid, &p->components, &data->valid, whole, error);
  return status;
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

/* ---- The model of the components ---- */

/* What the components have of a frame [n_x]. */
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
  status = dv_model_first_values(m, steps, seed, error);
  if (status)
    dvbf_model_free(m);
  else
    *out = m;
  return status;
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
