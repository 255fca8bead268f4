/* Sequences in numbers, for people. */
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

#include <math.h>
#include <stdlib.h>

static dvbf_column column_of(const dv_statistics *s, size_t k) {
  if (!s->seen[k]) return (dvbf_column){0, NAN, NAN, NAN, NAN};
  return (dvbf_column){s->seen[k], s->least[k], s->most[k], s->mean[k], sqrt(s->variance[k])};
}

/* The moments of all columns together: the mean of the means and, about it, that of the squares,
 * m = sum_k n_k m_k / n,  v = sum_k n_k (v_k + (m_k - m)^2) / n. */
static dvbf_column together(const dv_statistics *s, size_t width) {
  double n = 0, mean = 0, variance = 0;
  uint64_t seen = 0;
  for (size_t k = 0; k < width; k++) seen += s->seen[k];
  if (!seen) return (dvbf_column){0, NAN, NAN, NAN, NAN};
  n = (double)seen;
  for (size_t k = 0; k < width; k++) mean += (double)s->seen[k] / n * s->mean[k];
  for (size_t k = 0; k < width; k++) {
    double e = s->mean[k] - mean;
    variance += (double)s->seen[k] / n * (s->variance[k] + e * e);
  }
  return (dvbf_column){seen, s->low, s->high, mean, sqrt(variance)};
}

typedef dvbf_status measure_fn(dv_statistics *out, const dvbf_sequences *s, dvbf_error *error);

static dvbf_status describe(dvbf_columns *out, const dvbf_sequences *s, size_t width, measure_fn *measure,
                            dvbf_error *error) {
  dv_statistics all;
  if (!width) return DVBF_OK;
  dvbf_status status = measure(&all, s, error);
  if (status) return status;
  dvbf_column *column = dv_calloc(width, sizeof *column);
  if (column) {
    for (size_t k = 0; k < width; k++) column[k] = column_of(&all, k);
    *out = (dvbf_columns){width, together(&all, width), column, all.whole, false};
    out->binary = all.binary && out->all.seen;
  }
  dv_statistics_free(&all);
  return column ? DVBF_OK : dv_fail_memory(error, "describing the data");
}

static int compare(const void *a, const void *b) {
  size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

static dvbf_status describe_lengths(dvbf_sequences_info *info, const dvbf_sequences *s, dvbf_error *error) {
  size_t n = s->count, *sorted = dv_calloc(n, sizeof *sorted);
  if (!n || !sorted) {
    dv_free(sorted);
    return sorted ? DVBF_OK : dv_fail_memory(error, "describing the data");
  }
  for (size_t i = 0; i < n; i++) sorted[i] = dvbf_sequence_length(s, i);
  qsort(sorted, n, sizeof *sorted, compare);
  info->frames = dv_sequences_frames(s);
  info->shortest = sorted[0];
  info->longest = sorted[n - 1];
  size_t below = sorted[(n - 1) / 2], above = sorted[n / 2]; /* the same where n is odd */
  info->median = ((double)below + (double)above) / 2;
  dv_free(sorted);
  return DVBF_OK;
}

dvbf_status dvbf_sequences_describe(dvbf_sequences_info **out, const dvbf_sequences *s, dvbf_error *error) {
  dvbf_status status = dv_sequences_filled(s, "data", "", error);
  if (status) return status;
  dvbf_sequences_info *info = dv_calloc(1, sizeof *info);
  if (!info) return dv_fail_memory(error, "describing the data");
  status = describe_lengths(info, s, error);
  if (!status) status = describe(&info->x, s, s->n_x, dv_statistics_of_x, error);
  if (!status) status = describe(&info->u, s, s->n_u, dv_statistics_of_u, error);
  if (!status) status = describe(&info->state, s, s->n_s, dv_statistics_of_state, error);
  if (status)
    dvbf_sequences_info_free(info);
  else
    *out = info;
  return status;
}

void dvbf_sequences_info_free(dvbf_sequences_info *info) {
  if (!info) return;
  DV_FREE(info->x.column, info->u.column, info->state.column, info);
}
