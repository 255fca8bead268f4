#include "train/projection.h"

#include "base/memory.h"
#include "base/status.h"
#include "model/density.h"

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
  if (!m->density->projects) return refuse(m, "likelihood", "gaussian", error);
  if (s->mean != DV_MEAN_IDENTITY) return refuse(m, "mean", "identity", error);
  if (s->sigma != DV_SIGMA_FIXED && s->sigma != DV_SIGMA_GLOBAL)
    return refuse(m, "sigma", "fixed or global", error);
  if (s->initial == DV_INITIAL_FAST_DROPOUT) return refuse(m, "initial", "mlp or birnn", error);
  if (s->mask_input == DV_MASK_DIMENSION) return refuse(m, "mask-input", "off or step", error);
  return DVBF_OK;
}

dvbf_status dv_projection_init(dv_projection *p, dvbf_model *whole, const dvbf_data *data,
                               dvbf_error *error) {
  *p = (dv_projection){.whole = whole};
  dvbf_status status = check(whole, error);
  if (!status)
    status = dv_components_find(&p->components, &data->train, whole, whole->settings->projection, error);
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

/* ---- The model of the components ---- */

/* What the components have of a frame [n_x]. */
static void project_frame(double *out, const dv_components *c, const double *frame) {
  for (int i = 0; i < c->count; i++) {
    const dvbf_real *axis = c->axes + (size_t)i * (size_t)c->n_x;
    out[i] = 0;
    for (int j = 0; j < c->n_x; j++) out[i] += (double)axis[j] * frame[j];
  }
}

/* Scaling is done with before x is projected. */
static void take_over(dvbf_model *m, const dv_projection *p) {
  const dvbf_model *whole = p->whole;
  const dv_components *c = &p->components;
  memcpy(m->u.shift, whole->u.shift, (size_t)m->n_u * sizeof *m->u.shift);
  memcpy(m->u.scale, whole->u.scale, (size_t)m->n_u * sizeof *m->u.scale);
  m->x_spread = whole->x_spread;
  project_frame(m->first_output, c, whole->first_output);
  m->left_out = (dv_left_out){c->n_x - c->count, c->left_out};
  m->left_out_jacobian = dv_model_log_jacobian(whole);
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
void dv_projection_fold(dv_projection *p, const dvbf_model *m) {
  const dv_components *c = &p->components;
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
}
