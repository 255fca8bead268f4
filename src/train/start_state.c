/* First values of a model whose state is x itself (dv_start_state; start.h): z_1 = x_1, x = z, and the
 * transition's linear paths by ridge regression of the next x on x and u. Also parameters by name
 * (dv_part_named), used by other starts. */
#include "train/start.h"

#include "base/error.h"
#include "base/memory.h"
#include "math/least_squares.h"
#include "math/portable.h"
#include "model/density.h"

#include <math.h>
#include <string.h>

static dvbf_status check_state_start(const dvbf_model *m, dvbf_error *error) {
  const dv_train_settings *s = m->settings;
  const char *why = NULL;
  if (!m->transition || m->transition != dv_transition_of(s) || s->transition != DV_MLP_TRANSITION ||
      s->linear_paths != DV_PATHS_ALL)
    why = "it needs transition = mlp and linear-paths = all";
  else if (s->initial != DV_INITIAL_MLP)
    why = "it needs initial = mlp";
  else if (!m->density->sigma || !m->density->scales(s))
    why = "it needs likelihood = gaussian or student-t around a mean that is linear";
  else if (s->emission_sees && s->emission_sees < m->n_x)
    why = "it needs all of z in the emission, emission-sees = 0";
  else if (!dv_model_find(m, "emission.mean.z") || !dv_model_find(m, "initial.output.x"))
    why = "it needs network = dense";
  else if (m->n_z < m->n_x)
    why = "latent is smaller than the number of columns of x, which form the state";
  return why ? dv_fail(error, DVBF_ARGUMENT, "start = state: %s; or set start = random", why) : DVBF_OK;
}

/* ---- Parameters ---- */

dvbf_status dv_part_named(dv_part *out, const dvbf_model *m, const char *const *beginnings,
                          dvbf_error *error) {
  *out = (dv_part){.spans = dv_calloc(m->parameters.count, sizeof *out->spans)};
  if (!out->spans) return dv_fail_memory(error, "preparing training");
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *p = &m->parameters.list[i];
    bool wanted = false;
    for (int k = 0; beginnings[k]; k++) wanted |= !strncmp(p->name, beginnings[k], strlen(beginnings[k]));
    if (wanted && !p->frozen)
      out->spans[out->count++] = (dv_span){p->offset, (size_t)p->rows * (size_t)p->cols};
  }
  return DVBF_OK;
}

dvbf_real *dv_state_clear(const dvbf_model *m, const char *name) {
  const dv_parameter *p = dv_model_find(m, name);
  if (!p) return NULL;
  dvbf_real *values = m->parameters.values + p->offset;
  return memset(values, 0, (size_t)p->rows * (size_t)p->cols * sizeof *values);
}

void dv_state_plain_start(const dvbf_model *m, double deviation) {
  static const char *const zeros[] = {"initial.output.x",
                                      "initial.output.u",
                                      "initial.output.h",
                                      "initial.output.bias",
                                      "initial-transition.output.h",
                                      "initial-transition.output.w",
                                      "initial-transition.output.bias"};
  for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) dv_state_clear(m, zeros[i]);
  dvbf_real *bias = dv_model_values(m, "initial.output.bias"),
            *w = dv_model_values(m, "initial-transition.output.w");
  for (int k = 0; k < m->n_z; k++) {
    bias[m->n_z + k] = (dvbf_real)dv_log(deviation);
    w[k * (m->n_z + 1)] = 1;
  }
}

/* x of the first frame is z_1, and z is x. */
static void set_identity(const dvbf_model *m) {
  const double exact = 1e-3;
  dv_state_plain_start(m, exact);
  const dv_parameter *first = dv_model_find(m, "initial.output.x");
  dvbf_real *x = m->parameters.values + first->offset, *h = dv_state_clear(m, "emission.mean.z");
  dv_state_clear(m, "emission.mean.h");
  dv_state_clear(m, "emission.mean.u");
  dv_state_clear(m, "emission.mean.bias");
  for (int k = 0; k < m->n_x; k++) {
    x[k * first->cols + k] = 1;
    h[k * (m->n_x + 1)] = 1;
  }
}

/* ---- Least squares of the next x on x and u ---- */

/* In units of the model; false if a value is missing. */
static bool put(double *to, const float *from, const dv_scaling *scaling, int n) {
  bool whole = true;
  for (int i = 0; i < n; i++) {
    to[i] = ((double)from[i] - (double)scaling->shift[i]) * (double)scaling->scale[i];
    whole &= !isnan(to[i]);
  }
  return whole;
}

static dvbf_status add_pairs(dv_ridge *g, const dvbf_model *m, const dvbf_sequences *s, dvbf_error *error) {
  float *buffer = NULL;
  dvbf_status status = dv_sequence_buffer(&buffer, s, s->steps, error);
  size_t n_x = s->n_x, n_u = s->n_u;
  for (size_t i = 0; i < s->count && !status; i++) {
    size_t length = dvbf_sequence_length(s, i), first = dvbf_sequence_start(s, i);
    const float *x = dv_sequence_x(s, i, 0, length, buffer);
    for (size_t t = 0; t + 1 < length; t++) {
      bool whole = put(g->row + 1, x + t * n_x, &m->x, m->n_x);
      whole &= put(g->target, x + (t + 1) * n_x, &m->x, m->n_x);
      if (n_u) put(g->row + 1 + n_x, s->u + (first + t) * n_u, &m->u, m->n_u);
      for (size_t k = 0; k < n_x && m->settings->residual; k++) g->target[k] -= g->row[1 + k];
      if (whole) dv_ridge_add(g);
    }
  }
  dv_free(buffer);
  return status ? status : dv_sequences_intact(s, error);
}

/* In v the linear paths of the mlp transition, [n_z + n_u][n_z], follow the hidden units, which have no
 * effect yet. */
static void put_paths(const dvbf_model *m, const dv_ridge *g) {
  size_t n_x = (size_t)m->n_x, n_z = (size_t)m->n_z, hidden = (size_t)m->settings->transition_hidden;
  dvbf_real *v = dv_model_values(m, "universal.mean") + hidden * (2 * n_z + (size_t)m->n_u),
            *bias = dv_model_values(m, "transition.output.bias");
  size_t out = n_z * hidden;
  memset(v - out, 0, out * sizeof *v);
  for (size_t i = 0; i < g->inputs; i++)
    for (size_t k = 0; k < n_x; k++) {
      size_t row = i <= n_x ? i - 1 : n_z + i - 1 - n_x;
      dvbf_real value = (dvbf_real)g->coefficients[i * n_x + k];
      if (i)
        v[row * n_z + k] = value;
      else
        bias[k] = value;
    }
}

dvbf_status dv_start_state(dvbf_model *m, const dvbf_sequences *train, dvbf_error *error) {
  dv_ridge g = {0};
  dvbf_status status = check_state_start(m, error);
  if (status) return status;
  status = dv_ridge_init(&g, 1 + (size_t)m->n_x + (size_t)m->n_u, (size_t)m->n_x, error);
  if (!status) status = add_pairs(&g, m, train, error);
  if (!status) {
    dv_ridge_solve(&g, 1e-6);
    set_identity(m);
    put_paths(m, &g);
  }
  dv_ridge_clear(&g);
  return status;
}
