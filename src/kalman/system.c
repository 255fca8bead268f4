#include "kalman/system.h"

#include "base/algebra.h"
#include "base/memory.h"
#include "base/status.h"

#include <string.h>

/* Places the parts one after the other; returns their size. */
static size_t place(dv_system *s, double *values) {
  size_t z = (size_t)s->n_z, u = (size_t)s->n_u, x = (size_t)s->n_x, used = 0;
  struct {
    double **part;
    size_t size;
  } parts[] = {{&s->a, z * z},   {&s->b, z * u},   {&s->h, x * z},  {&s->d, x * u},
               {&s->shift_z, z}, {&s->shift_x, x}, {&s->q, z * z},  {&s->r, x * x},
               {&s->s, z * x},   {&s->mean, z},    {&s->cov, z * z}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    *parts[i].part = values ? values + used : NULL;
    used += parts[i].size;
  }
  return used;
}

size_t dv_system_size(int n_z, int n_u, int n_x) {
  dv_system s = {.n_z = n_z, .n_u = n_u, .n_x = n_x};
  return place(&s, NULL);
}

dv_system dv_system_at(double *values, int n_z, int n_u, int n_x) {
  dv_system s = {.n_z = n_z, .n_u = n_u, .n_x = n_x};
  place(&s, values);
  return s;
}

dvbf_status dv_system_new(dv_system *out, int n_z, int n_u, int n_x, dvbf_error *error) {
  double *values = dv_calloc(dv_system_size(n_z, n_u, n_x), sizeof *values);
  if (!values) return dv_fail_memory(error, "making a linear system");
  *out = dv_system_at(values, n_z, n_u, n_x);
  return DVBF_OK;
}

dvbf_status dv_system_copy(dv_system *out, const dv_system *from, dvbf_error *error) {
  dvbf_status status = dv_system_new(out, from->n_z, from->n_u, from->n_x, error);
  if (!status) memcpy(out->a, from->a, dv_system_size(from->n_z, from->n_u, from->n_x) * sizeof *from->a);
  return status;
}

void dv_system_clear(dv_system *s) {
  dv_free(s->a);
  *s = (dv_system){0};
}

/* out [n] = shift + m z + w u */
static void affine(double *out, int n, const double *shift, const double *m, const double *z, int n_z,
                   const double *w, const double *u, int n_u) {
  memcpy(out, shift, (size_t)n * sizeof *out);
  dv_apply(out, m, z, n, n_z);
  if (n_u) dv_apply(out, w, u, n, n_u);
}

void dv_system_move(const dv_system *s, const double *z, const double *u, double *next) {
  affine(next, s->n_z, s->shift_z, s->a, z, s->n_z, s->b, u, s->n_u);
}

void dv_system_emit(const dv_system *s, const double *z, const double *u, double *x) {
  affine(x, s->n_x, s->shift_x, s->h, z, s->n_z, s->d, u, s->n_u);
}

void dv_system_set_gain(dv_system *s, const double *k) {
  dv_product(s->s, k, s->r, s->n_z, s->n_x, s->n_x);
  dv_product_transposed(s->q, s->s, k, s->n_z, s->n_x, s->n_z);
}
