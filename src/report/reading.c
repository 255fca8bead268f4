#include "report/reading.h"

#include "base/algebra.h"
#include "base/memory.h"
#include "base/status.h"
#include "evaluate/regression.h"

#include <math.h>
#include <string.h>

/* ---- Readings ---- */

dvbf_status dv_reading_make(dv_reading *out, const float *z, size_t points, size_t n_z, const float *truth,
                            size_t stride, dvbf_error *error) {
  double log_likelihood;
  *out = (dv_reading){.direction = dv_calloc(n_z + 1, sizeof(double)),
                      .truth = dv_calloc(points, sizeof(double)),
                      .predicted = dv_calloc(points, sizeof(double))};
  if (!out->direction || !out->truth || !out->predicted)
    return dv_fail_memory(error, "reading latent samples");
  for (size_t i = 0; i < points; i++) out->truth[i] = truth[i * stride];
  if (points < n_z + 2) return DVBF_OK;
  dvbf_status status =
      dv_regress(z, points, n_z, truth, stride, &out->r2, &log_likelihood, out->direction, error);
  if (status) return status;
  out->fitted = true;
  dv_view_plane_project(out->predicted, out->direction, z, points, n_z);
  for (size_t i = 0; i < points; i++) out->predicted[i] += out->direction[n_z];
  return DVBF_OK;
}

void dv_reading_clear(dv_reading *reading) {
  DV_FREE(reading->direction, reading->truth, reading->predicted);
  memset(reading, 0, sizeof *reading);
}

/* ---- Planes ---- */

/* Makes `axis` a unit vector that is orthogonal to `other` (may be NULL); false if it is almost parallel. */
static bool normalise(double *axis, const double *other, size_t n) {
  double length = sqrt(dv_dot(axis, axis, n));
  if (!isfinite(length) || length < 1e-150) return false;
  for (size_t j = 0; j < n; j++) axis[j] /= length;
  if (!other) return true;
  double share = dv_dot(axis, other, n);
  for (size_t j = 0; j < n; j++) axis[j] -= share * other[j];
  length = sqrt(dv_dot(axis, axis, n));
  if (length < 1e-3) return false;
  for (size_t j = 0; j < n; j++) axis[j] /= length;
  return true;
}

/* The coordinate axis with the smallest component along `other`. */
static void take_coordinate(double *axis, const double *other, size_t n) {
  size_t least = 0;
  for (size_t j = 1; other && j < n; j++)
    if (fabs(other[j]) < fabs(other[least])) least = j;
  for (size_t j = 0; j < n; j++) axis[j] = j == least;
  normalise(axis, other, n);
}

static void take(double *axis, const dv_reading *reading, const double *other, size_t n) {
  if (reading) memcpy(axis, reading->direction, n * sizeof *axis);
  if (!reading || !normalise(axis, other, n)) take_coordinate(axis, other, n);
}

dvbf_status dv_view_plane_make(dv_view_plane *out, size_t n, const dv_reading *first,
                               const dv_reading *second, dvbf_error *error) {
  *out = (dv_view_plane){dv_calloc(n, sizeof(double)), dv_calloc(n, sizeof(double))};
  if (!out->first || !out->second) return dv_fail_memory(error, "projecting latent samples");
  take(out->first, first, NULL, n);
  take(out->second, second, out->first, n);
  return DVBF_OK;
}

void dv_view_plane_clear(dv_view_plane *plane) {
  DV_FREE(plane->first, plane->second);
  memset(plane, 0, sizeof *plane);
}

void dv_view_plane_project(double *out, const double *axis, const float *z, size_t points, size_t n) {
  for (size_t i = 0; i < points; i++) {
    out[i] = 0;
    for (size_t j = 0; j < n; j++) out[i] += axis[j] * z[i * n + j];
  }
}
