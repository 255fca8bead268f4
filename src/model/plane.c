/* With the eigenvectors V of W^T W, W = (W V) V^T; columns of W V whose eigenvalue is next to nothing can go.
 */
#include "model/plane.h"

#include "base/memory.h"
#include "base/status.h"

#include <lapacke.h>
#include <string.h>

enum { MULTIPLE = 16 }; /* of which the rank is one: products like that */

static const dv_parameter *weights_of(const dvbf_model *m) {
  for (size_t i = 0; i < m->parameters.count; i++)
    if (!strcmp(m->parameters.list[i].name, "recognition.hidden.x")) return &m->parameters.list[i];
  return NULL;
}

/* gram [n][n] = W^T W, upper triangle. */
static void multiply(double *gram, const dvbf_real *w, int rows, int n) {
  for (int r = 0; r < rows; r++, w += n)
    for (int i = 0; i < n; i++) {
      double wi = (double)w[i];
      for (int j = i; j < n; j++) gram[(size_t)i * (size_t)n + (size_t)j] += wi * (double)w[j];
    }
}

/* How many of the largest values, which come last, hold all but 1e-12 of the sum; 0: so many that two
 * products would take more than half the time of one. */
static int rank_of(const double *values, int rows, int n) {
  double all = 0, rest = 0;
  int small = 0;
  for (int i = 0; i < n; i++) all += values[i] > 0 ? values[i] : 0;
  while (small < n && rest + values[small] <= 1e-12 * all) rest += values[small++];
  int rank = (n - small + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
  return all > 0 && 2.0 * rank * (rows + n) <= (double)rows * n ? rank : 0;
}

/* vectors [n][n] has one in each column. */
static void factor(dv_plane *p, const dvbf_real *w, const double *vectors, int rows, int n) {
  for (int k = 0; k < p->rank; k++)
    for (int j = 0; j < n; j++)
      p->out[(size_t)k * (size_t)n + (size_t)j] =
          (dvbf_real)vectors[(size_t)j * (size_t)n + (size_t)(n - 1 - k)];
  for (int r = 0; r < rows; r++, w += n)
    for (int k = 0; k < p->rank; k++) {
      double sum = 0;
      for (int j = 0; j < n; j++) sum += (double)w[j] * vectors[(size_t)j * (size_t)n + (size_t)(n - 1 - k)];
      p->in[(size_t)r * (size_t)p->rank + (size_t)k] = (dvbf_real)sum;
    }
}

static dvbf_status out_of_memory(dvbf_error *error) {
  return dv_fail_memory(error, "preparing a filter");
}

static dvbf_status find(dv_plane *p, const dvbf_real *w, int rows, int n, double *gram, double *values,
                        dvbf_error *error) {
  multiply(gram, w, rows, n);
  lapack_int info = LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'V', 'U', n, gram, n, values);
  if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR) return out_of_memory(error);
  if (!info) p->rank = rank_of(values, rows, n);
  if (!p->rank) return DVBF_OK; /* without a plane, or if none was found, all of x is read */
  p->in = dv_calloc((size_t)rows, (size_t)p->rank * sizeof *p->in);
  p->out = dv_calloc((size_t)n, (size_t)p->rank * sizeof *p->out);
  if (!p->in || !p->out) return out_of_memory(error);
  factor(p, w, gram, rows, n);
  return DVBF_OK;
}

dvbf_status dv_plane_find(dv_plane *p, const dvbf_model *m, dvbf_error *error) {
  const dv_parameter *w = weights_of(m);
  *p = (dv_plane){0};
  if (!w || w->rows < 4 * MULTIPLE || w->cols < 2 * MULTIPLE) return DVBF_OK; /* too few to save any */
  size_t n = (size_t)w->cols;
  double *gram = dv_calloc(n, n * sizeof *gram), *values = dv_calloc(n, sizeof *values);
  dvbf_status status = gram && values
                           ? find(p, m->parameters.values + w->offset, w->rows, w->cols, gram, values, error)
                           : out_of_memory(error);
  dv_free(gram);
  dv_free(values);
  if (status) dv_plane_free(p);
  return status;
}

void dv_plane_free(dv_plane *p) {
  dv_free(p->in);
  dv_free(p->out);
  *p = (dv_plane){0};
}
