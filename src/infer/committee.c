/* What a committee says: the samples of all its members count alike. */
#include "base/memory.h"
#include "base/status.h"
#include "infer/draws.h"
#include "infer/estimate.h"

#include <math.h>
#include <string.h>

/* The mean of the members' means, and the deviation of all their samples together:
 * variance = mean of (deviation^2 + mean^2) - (mean of means)^2, without the loss of digits. */
static void pool_moments(dvbf_estimates *out, dvbf_estimates *const *members, size_t n) {
  for (size_t i = 0; i < out->count * out->steps * out->n_x; i++) {
    double mean = 0, variance = 0;
    for (size_t k = 0; k < n; k++) mean += (double)members[k]->x[i] / (double)n;
    for (size_t k = 0; k < n; k++) {
      double apart = (double)members[k]->x[i] - mean, deviation = (double)members[k]->x_std[i];
      variance += (apart * apart + deviation * deviation) / (double)n;
    }
    out->x[i] = (float)mean;
    out->x_std[i] = (float)sqrt(variance);
  }
}

static dvbf_status pool_quantiles(dvbf_estimates *out, dvbf_estimates *const *members, size_t n,
                                  dvbf_error *error) {
  size_t samples = out->samples, values = out->steps * out->n_x;
  const float **rows = dv_calloc(n * samples, sizeof *rows);
  float *columns = dv_calloc(n * samples, DV_SORTED * sizeof *columns);
  for (size_t i = 0; rows && columns && i < out->count; i++) {
    for (size_t r = 0; r < n * samples; r++)
      rows[r] = members[r / samples]->x_samples + (i * samples + r % samples) * values;
    dv_quantiles_of(out->x_quantiles + i * values, out->count * values, out->quantiles, out->n_quantiles,
                    rows, n * samples, values, columns);
  }
  dvbf_status status = rows && columns ? DVBF_OK : dv_fail_memory(error, "pooling quantiles");
  DV_FREE(rows, columns);
  return status;
}

/* Members take turns, sequence by sequence and sample by sample. */
static void pool_samples(dvbf_estimates *out, dvbf_estimates *const *members, size_t n) {
  size_t values = out->steps * out->n_x;
  for (size_t s = 0; s < out->count * out->samples; s++)
    if (members[s % n] != out)
      memcpy(out->x_samples + s * values, members[s % n]->x_samples + s * values, values * sizeof(float));
}

dvbf_status dv_estimates_pool(dvbf_estimates *out, dvbf_estimates *const *members, size_t n,
                              const dv_request *asked, dvbf_error *error) {
  dvbf_status status = out->n_quantiles ? pool_quantiles(out, members, n, error) : DVBF_OK;
  if (!asked->single) pool_moments(out, members, n);
  if (asked->keep_x) pool_samples(out, members, n);
  if (asked->single) memcpy(out->x, out->x_samples, out->count * out->steps * out->n_x * sizeof *out->x);
  if (!asked->keep_x) {
    dv_free(out->x_samples);
    out->x_samples = NULL;
  }
  return status;
}
