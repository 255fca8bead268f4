#include "report/cloud.h"

#include "base/algebra.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

static bool finite_row(const float *row, size_t n) {
  for (size_t j = 0; j < n; j++)
    if (!isfinite(row[j])) return false;
  return true;
}

/* Mean [n] and covariance [n][n] of the finite points; zeros when there are none. */
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
      for (size_t k = 0; k < n; k++)
        covariance[j * n + k] += (row[j] - mean[j]) * (row[k] - mean[k]) / (double)count;
  }
}

/* An eigenvector's sign is arbitrary: its largest entry is made positive, so that figures can be repeated. */
static double sign_of(const double *vector, size_t n) {
  double largest = 0;
  for (size_t j = 0; j < n; j++)
    if (fabs(vector[j]) > fabs(largest)) largest = vector[j];
  return largest < 0 ? -1 : 1;
}

/* Coordinates along a vector [n]. */
static void project(double *out, const float *z, size_t points, size_t n, const double *mean,
                    const double *vector) {
  double sign = sign_of(vector, n);
  for (size_t i = 0; i < points; i++) {
    double sum = 0;
    for (size_t j = 0; j < n; j++) sum += (z[i * n + j] - mean[j]) * vector[j];
    out[i] = isfinite(sum) ? sign * sum : NAN;
  }
}

/* The axis of the largest variance that is not taken yet; its variance becomes negative, so that it is. */
static size_t take_largest(double *matrix, size_t n, double *variance) {
  size_t best = 0;
  for (size_t j = 1; j < n; j++)
    if (matrix[j * n + j] > matrix[best * n + best]) best = j;
  *variance = matrix[best * n + best];
  matrix[best * n + best] = -INFINITY;
  return best;
}

static void rotate(dv_cloud *out, const float *z, size_t n, double *mean, double *matrix, double *vectors) {
  double total = 0, variance;
  moments(z, out->points, n, mean, matrix);
  dv_diagonalise(matrix, vectors, (int)n);
  for (size_t j = 0; j < n; j++) total += matrix[j * n + j];
  for (size_t k = 0; k < out->axes; k++) {
    size_t axis = take_largest(matrix, n, &variance);
    project(out->at[k], z, out->points, n, mean, vectors + axis * n);
    out->share[k] = total > 0 ? fmax(variance, 0) / total : 0;
  }
}

dvbf_status dv_cloud_make(dv_cloud *out, const float *z, size_t points, size_t n, dvbf_error *error) {
  *out = (dv_cloud){.points = points, .axes = n < 3 ? n : 3, .rotated = n > 2};
  bool short_of_memory = false;
  for (size_t k = 0; k < out->axes; k++) {
    out->at[k] = dv_calloc(points, sizeof *out->at[k]);
    short_of_memory |= !out->at[k];
  }
  size_t square;
  double *work = dv_multiply(n, 2 * n + 1, &square) ? dv_calloc(square, sizeof *work) : NULL;
  dvbf_status status = DVBF_OK;
  if (short_of_memory || !work)
    status = dv_fail_memory(error, "projecting the latent space");
  else if (out->rotated)
    rotate(out, z, n, work, work + n, work + n + n * n);
  else
    for (size_t i = 0; i < points * n; i++) out->at[i % n][i / n] = isfinite(z[i]) ? z[i] : NAN;
  dv_free(work);
  return status;
}

void dv_cloud_clear(dv_cloud *cloud) {
  for (size_t k = 0; k < DV_CLOUD_AXES; k++) dv_free(cloud->at[k]);
  memset(cloud, 0, sizeof *cloud);
}
