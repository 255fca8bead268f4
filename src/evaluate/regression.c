#include "evaluate/regression.h"

#include "base/algebra.h"
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>

static double fitted(const float *x, size_t k, const double *beta) {
  double sum = beta[k];
  for (size_t j = 0; j < k; j++) sum += beta[j] * (double)x[j];
  return sum;
}

dvbf_status dv_regress(const float *x, size_t n, size_t k, const float *y, size_t stride, double *r2,
                       double *log_likelihood, double *coefficients, dvbf_error *error) {
  size_t columns = k + 1;
  if (n < columns + 1)
    return dv_fail(error, DVBF_FORMAT, "%zu frames are too few to regress on %zu latent dimensions", n, k);
  double *a = dv_calloc(n, columns * sizeof *a), *b = dv_calloc(n, sizeof *b);
  double *scratch = dv_calloc(columns, (3 * columns + 2) * sizeof *scratch), mean = 0, rss = 0, tss = 0;
  dvbf_status status = a && b && scratch ? DVBF_OK : dv_fail_memory(error, "regressing");
  for (size_t i = 0; i < n && !status; i++) {
    for (size_t j = 0; j < k; j++) a[i * columns + j] = (double)x[i * k + j];
    a[i * columns + k] = 1;
    b[i] = (double)y[i * stride];
    mean += b[i] / (double)n;
  }
  /* Latent dimensions that were never used make the columns dependent. */
  if (!status) dv_least_squares(a, b, n, (int)columns, 1e-10, scratch);
  for (size_t i = 0; i < n && !status; i++) {
    double yi = (double)y[i * stride], e = yi - fitted(x + i * k, k, b);
    rss += e * e;
    tss += (yi - mean) * (yi - mean);
  }
  if (!status) {
    for (size_t j = 0; coefficients && j < columns; j++) coefficients[j] = b[j];
    *r2 = tss > 0 ? 1 - rss / tss : 0;
    *log_likelihood =
        -0.5 * (double)n * (dv_log(2 * 3.14159265358979323846 * fmax(rss, 1e-300) / (double)n) + 1);
  }
  DV_FREE(a, b, scratch);
  return status;
}

dvbf_status dvbf_regress(dvbf_regression *out, const float *z, size_t points, size_t n_z, const float *y,
                         size_t stride, dvbf_error *error) {
  return dv_regress(z, points, n_z, y, stride, &out->r2, &out->log_likelihood, NULL, error);
}
