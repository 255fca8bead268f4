#include "identify/reduce.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>

enum {
  MANY = 64, /* columns that are still taken as they are */
  MOST = 32  /* components */
};

/* Share of the variance that components may leave out. */
static const double share = 0.01;

static dvbf_status project(dv_reduction *r, const dvbf_model *scaling, const dvbf_data *data,
                           dvbf_error *error) {
  dvbf_status status = dv_components_find(&r->components, &data->train, scaling, share, MOST, NULL, error);
  if (!status) status = dv_components_project(&r->data.train, &r->components, &data->train, scaling, error);
  if (!status && data->valid.count)
    status = dv_components_project(&r->data.valid, &r->components, &data->valid, scaling, error);
  return status;
}

bool dv_reduction_helps(size_t n_x) {
  return n_x > MANY;
}

dvbf_status dv_reduction_init(dv_reduction *out, const dvbf_model *scaling, const dvbf_data *data,
                              dvbf_error *error) {
  dvbf_error inner = {0};
  *out = (dv_reduction){0};
  dvbf_status status = project(out, scaling, data, &inner);
  if (status == DVBF_ARGUMENT) { /* frames that are seen in part */
    dv_reduction_clear(out);
    return DVBF_OK;
  }
  if (status && error) *error = inner;
  return status;
}

void dv_reduction_clear(dv_reduction *r) {
  dv_components_free(&r->components);
  dvbf_sequences_free(&r->data.train);
  dvbf_sequences_free(&r->data.valid);
  *r = (dv_reduction){0};
}

/* s^2; not 0, as no likelihood has it. */
static double outside(const dv_components *c) {
  double all = c->left_out, least = 1e-8;
  for (int i = 0; i < c->count; i++) all += c->variance[i];
  return fmax(c->left_out, least * all) / (c->n_x - c->count);
}

double dv_reduction_log_p(const dv_reduction *r) {
  const dv_components *c = &r->components;
  double variance = outside(c);
  return -0.5 * ((c->n_x - c->count) * dv_log(6.283185307179586477 * variance) + c->left_out / variance);
}

static double axis(const dv_components *c, int component, int column) {
  return (double)c->axes[(size_t)component * (size_t)c->n_x + (size_t)column];
}

/* out [n_x][n] = P' from [count][n] */
static void lift_rows(double *out, const double *from, const dv_components *c, int n) {
  for (int i = 0; i < c->n_x; i++)
    for (int k = 0; k < c->count; k++)
      for (int j = 0; j < n; j++) out[i * n + j] += axis(c, k, i) * from[k * n + j];
}

/* out [n][n_x] = from [n][count] P */
static void lift_columns(double *out, const double *from, const dv_components *c, int n) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < c->count; k++)
      for (int j = 0; j < c->n_x; j++) out[i * c->n_x + j] += from[i * c->count + k] * axis(c, k, j);
}

/* out [n_x][n_x] = P' R P + s^2 (I - P'P), which is P' (R - s^2 I) P + s^2 I. */
static void lift_noise(double *out, const double *noise, const dv_components *c, double *half) {
  double variance = outside(c);
  for (int k = 0; k < c->count; k++)
    for (int j = 0; j < c->n_x; j++) {
      double sum = -variance * axis(c, k, j);
      for (int l = 0; l < c->count; l++) sum += noise[k * c->count + l] * axis(c, l, j);
      half[k * c->n_x + j] = sum;
    }
  lift_rows(out, half, c, c->n_x);
  for (int i = 0; i < c->n_x; i++) out[i * (c->n_x + 1)] += variance;
}

/* What does not speak of x is copied. */
static void lift_rest(dv_system *out, const dv_system *from) {
  size_t z = (size_t)from->n_z, u = (size_t)from->n_u;
  for (size_t i = 0; i < z * z; i++)
    out->a[i] = from->a[i], out->q[i] = from->q[i], out->cov[i] = from->cov[i];
  for (size_t i = 0; i < z * u; i++) out->b[i] = from->b[i];
  for (size_t i = 0; i < z; i++) out->shift_z[i] = from->shift_z[i], out->mean[i] = from->mean[i];
}

dvbf_status dv_reduction_lift(dv_system *system, const dv_reduction *r, dvbf_error *error) {
  const dv_components *c = &r->components;
  dv_system out = {0};
  double *half = dv_calloc((size_t)c->count, (size_t)c->n_x * sizeof *half);
  dvbf_status status = half ? dv_system_new(&out, system->n_z, system->n_u, c->n_x, error)
                            : dv_fail_memory(error, "making a linear model");
  if (!status) {
    lift_rest(&out, system);
    lift_rows(out.h, system->h, c, system->n_z);
    lift_rows(out.d, system->d, c, system->n_u);
    lift_rows(out.shift_x, system->shift_x, c, 1);
    lift_columns(out.s, system->s, c, system->n_z);
    lift_noise(out.r, system->r, c, half);
    dv_system_clear(system);
    *system = out;
  }
  dv_free(half);
  return status;
}
