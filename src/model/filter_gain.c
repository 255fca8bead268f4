/* The linear gain of a filter: the mean of q(w_t) is G e_t, so that z moves by C G e_t; with w = 0 nothing of
 * the model depends on it. So the last phase of training can learn it alone, as ranges of the parameters
 * (dv_filter_gain_part), by one-step prediction errors: the bound stays near the sigma it
 * starts from. */
#include "base/error.h"
#include "base/memory.h"
#include "math/portable.h"
#include "model/density.h"

#include <math.h>
#include <string.h>

static size_t size_of(const dv_parameter *p) {
  return (size_t)p->rows * (size_t)p->cols;
}

/* Entries of v that matter only if w is not 0: the last ones. */
static size_t gain_entries(const dvbf_model *m) {
  const dvbf_transition *t = m->transition;
  return t && t->gain ? t->gain(t, m->settings_object, m->n_z, m->n_u, m->n_w) : 0;
}

dvbf_status dv_filter_gain_check(const dvbf_model *m, dvbf_error *error) {
  bool path = dv_model_find(m, "recognition.output.e"),
       c = gain_entries(m) && dv_model_find(m, "universal.mean");
  if (path && c) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT, "gain-updates = %lld: %s; or set it to 0",
                 (long long)m->settings->gain_updates,
                 c ? "a linear gain needs recognition-input = innovation and linear-paths = on"
                   : "the model has no transition with a gain for w that could be trained alone");
}

/* ---- Trained parts ---- */

static void add(dv_part *out, size_t first, size_t count) {
  if (count) out->spans[out->count++] = (dv_span){first, count};
}

/* The columns of mu or of ln sigma of a head. */
static void add_half(dv_part *out, const dv_parameter *p, bool sigma) {
  size_t half = (size_t)p->cols / 2;
  for (size_t row = 0; row < (size_t)p->rows; row++)
    add(out, p->offset + row * (size_t)p->cols + (sigma ? half : 0), half);
}

dvbf_status dv_filter_gain_part(dv_part *out, const dvbf_model *m, bool spread, dvbf_error *error) {
  size_t gain = gain_entries(m);
  *out = (dv_part){.spans = dv_calloc(m->parameters.count + (size_t)m->n_x, sizeof *out->spans)};
  if (!out->spans) return dv_fail_memory(error, "preparing training");
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *p = &m->parameters.list[i];
    if (p->frozen) continue;
    if (!strncmp(p->name, "emission.log_", 13)) add(out, p->offset, size_of(p));
    if (!spread && !strcmp(p->name, "universal.mean")) add(out, p->offset + size_of(p) - gain, gain);
    if (!spread && !strcmp(p->name, "recognition.output.e")) add_half(out, p, false);
    if (spread && !strcmp(p->name, "recognition.output.bias")) add_half(out, p, true);
  }
  return DVBF_OK;
}

void dv_part_clear(dv_part *part) {
  dv_free(part->spans);
  *part = (dv_part){0};
}

/* ---- Values ---- */

static void fill(const dvbf_model *m, const char *name, double value) {
  const dv_parameter *p = dv_model_find(m, name);
  for (size_t i = 0; p && !p->frozen && i < size_of(p); i++)
    m->parameters.values[p->offset + i] = (dvbf_real)value;
}

/* The entries of w_k in C; it has `count` for each k. */
static dvbf_real *gain_of(const dvbf_model *m, const char *name, int k, size_t *count) {
  const dv_parameter *v = dv_model_find(m, name);
  size_t gain = gain_entries(m);
  *count = gain / (size_t)m->n_w;
  return v ? m->parameters.values + v->offset + size_of(v) - gain + (size_t)k * *count : NULL;
}

static void set_bias(const dvbf_model *m, double sigma) {
  dvbf_real *values = dv_model_values(m, "recognition.output.bias");
  for (int k = 0; k < m->n_w; k++) values[k] = 0, values[m->n_w + k] = (dvbf_real)dv_log(sigma);
}

/* Only the linear path of the mean remains of recognition. */
void dv_filter_gain_begin(dvbf_model *m) {
  const dv_parameter *path = dv_model_find(m, "recognition.output.e");
  dvbf_real *g = m->parameters.values + path->offset;
  fill(m, "recognition.output.h", 0);
  for (int i = 0; i < path->rows; i++)
    for (int k = m->n_w; k < path->cols; k++) g[i * path->cols + k] = 0;
  set_bias(m, 1);
  if (m->settings->start != DV_START_LINEAR) dv_filter_gain_clear(m);
}

void dv_filter_gain_clear(dvbf_model *m) {
  const dv_parameter *path = dv_model_find(m, "recognition.output.e");
  dvbf_real *g = m->parameters.values + path->offset;
  size_t count;
  fill(m, "recognition.output.e", 0);
  for (int k = 0; k < m->n_w && k < m->n_x; k++) g[k * path->cols + k] = 1;
  for (int k = 0; k < m->n_w; k++) {
    dvbf_real *c = gain_of(m, "universal.mean", k, &count),
              *spread = gain_of(m, "universal.log_sigma", k, &count);
    for (size_t i = 0; i < count; i++) c[i] = 0;
    for (size_t i = 0; spread && i < count; i++) spread[i] = -7; /* far below the entries of a gain */
  }
}

/* Sets the spread of x, in units of the model, if the model has its own. */
static void set_sigma(dvbf_model *m, const double *e, double share) {
  const dv_parameter *p = dv_model_find(m, "emission.log_sigma");
  const dv_parameter *bias = p ? p : dv_model_find(m, "emission.log_sigma.bias");
  double mean = 0;
  for (int i = 0; i < m->n_x; i++) mean += e[i * (m->n_x + 1)] / m->n_x;
  fill(m, "emission.log_sigma.h", 0);
  for (int i = 0; bias && !bias->frozen && i < bias->cols; i++) {
    double square = bias->cols > 1 ? e[i * (m->n_x + 1)] : mean;
    m->parameters.values[bias->offset + (size_t)i] = (dvbf_real)dv_log(share * fmax(sqrt(square), 1e-6));
  }
}

void dv_filter_gain_normalise(dvbf_model *m, const double *e) {
  const dv_parameter *path = dv_model_find(m, "recognition.output.e");
  dvbf_real *g = m->parameters.values + path->offset;
  size_t count;
  for (int k = 0; k < m->n_w; k++) {
    double variance = 0;
    for (int i = 0; i < m->n_x; i++)
      for (int j = 0; j < m->n_x; j++)
        variance += (double)g[i * path->cols + k] * e[i * m->n_x + j] * (double)g[j * path->cols + k];
    double deviation = sqrt(fmax(variance, 0));
    if (!(deviation > 1e-12)) continue;
    dvbf_real *c = gain_of(m, "universal.mean", k, &count);
    for (int i = 0; i < m->n_x; i++)
      g[i * path->cols + k] = (dvbf_real)((double)g[i * path->cols + k] / deviation);
    for (size_t i = 0; i < count; i++) c[i] = (dvbf_real)((double)c[i] * deviation);
  }
  set_bias(m, 0.5);
  set_sigma(m, e, 0.7);
}
