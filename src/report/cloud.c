#include "report/cloud.h"

#include "base/memory.h"
#include "base/status.h"

#include <lapacke.h>
#include <math.h>
#include <string.h>

static bool finite_row(const float *row, size_t n) {
  for (size_t j = 0; j < n; j++)
    if (!isfinite(row[j])) return false;
  return true;
}

/* Mean [n] and covariance [n][n], lower triangle, of the finite points; zeros when there are none. */
static void moments(const float *z, size_t points, size_t n, double *mean, double *covariance) {
  size_t count = 0;
  for (size_t i = 0; i < points; i++) {
    if (!finite_row(z + i * n, n)) continue;
    count++;
    for (size_t j = 0; j < n; j++) mean[j] += z[i * n + j];
  }
  if (!count) return;
  for (size_t j = 0; j < n; j++) mean[j] /= (double)count;
  for (size_t i = 0; i < points; i++) {
    const float *row = z + i * n;
    if (!finite_row(row, n)) continue;
    for (size_t j = 0; j < n; j++)
      for (size_t k = 0; k <= j; k++)
        covariance[j * n + k] += (row[j] - mean[j]) * (row[k] - mean[k]) / (double)count;
  }
}

/* An eigenvector's sign is arbitrary: its largest entry is made positive, so that figures can be repeated. */
static double sign_of(const double *vectors, size_t n, size_t column) {
  double largest = 0;
  for (size_t j = 0; j < n; j++)
    if (fabs(vectors[j * n + column]) > fabs(largest)) largest = vectors[j * n + column];
  return largest < 0 ? -1 : 1;
}

/* Coordinates along column `column` of vectors [n][n]. */
static void project(double *out, const float *z, size_t points, size_t n, const double *mean,
                    const double *vectors, size_t column) {
  double sign = sign_of(vectors, n, column);
  for (size_t i = 0; i < points; i++) {
    double sum = 0;
    for (size_t j = 0; j < n; j++) sum += (z[i * n + j] - mean[j]) * vectors[j * n + column];
    out[i] = isfinite(sum) ? sign * sum : NAN;
  }
}

static dvbf_status rotate(dv_cloud *out, const float *z, size_t n, double *mean, double *matrix,
                          double *variance, dvbf_error *error) {
  moments(z, out->points, n, mean, matrix);
  lapack_int info = LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'V', 'L', (lapack_int)n, matrix, (lapack_int)n, variance);
  if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR)
    return dv_fail_memory(error, "finding the principal axes of the latent space");
  if (info)
    return dv_fail(error, DVBF_NUMERIC, "the principal axes of the latent space were not found (dsyev: %d)",
                   (int)info);
  double total = 0;
  for (size_t j = 0; j < n; j++) total += variance[j];
  for (size_t k = 0; k < out->axes; k++) { /* dsyev sorts upwards */
    project(out->at[k], z, out->points, n, mean, matrix, n - 1 - k);
    out->share[k] = total > 0 ? fmax(variance[n - 1 - k], 0) / total : 0;
  }
  return DVBF_OK;
}

dvbf_status dv_cloud_make(dv_cloud *out, const float *z, size_t points, size_t n, dvbf_error *error) {
  *out = (dv_cloud){.points = points, .axes = n < 3 ? n : 3, .rotated = n > 2};
  bool short_of_memory = false;
  for (size_t k = 0; k < out->axes; k++) {
    out->at[k] = dv_calloc(points, sizeof *out->at[k]);
    short_of_memory |= !out->at[k];
  }
  size_t square;
  double *work = dv_multiply(n, n + 2, &square) ? dv_calloc(square, sizeof *work) : NULL;
  dvbf_status status = DVBF_OK;
  if (short_of_memory || !work)
    status = dv_fail_memory(error, "projecting the latent space");
  else if (out->rotated)
    status = rotate(out, z, n, work, work + 2 * n, work + n, error);
  else
    for (size_t i = 0; i < points * n; i++) out->at[i % n][i / n] = isfinite(z[i]) ? z[i] : NAN;
  dv_free(work);
  return status;
}

void dv_cloud_clear(dv_cloud *cloud) {
  for (size_t k = 0; k < DV_CLOUD_AXES; k++) dv_free(cloud->at[k]);
  memset(cloud, 0, sizeof *cloud);
}
