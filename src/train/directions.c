#include "train/directions.h"

#include "base/algebra.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>

typedef struct sums {
  const dv_statistics *x;
  size_t n_x;
  double *products; /* [n_x][n_x] of the standardised values of each pair of columns, its upper half */
  double *row;      /* [n_x] */
} sums;

static dvbf_status add_row(void *user, size_t sequence, size_t step, const float *row, dvbf_error *error) {
  (void)sequence, (void)step, (void)error;
  const sums *s = user;
  for (size_t k = 0; k < s->n_x; k++) {
    bool seen = dv_statistics_vary(s->x, k) && !isnan(row[k]);
    s->row[k] = seen ? ((double)row[k] - s->x->mean[k]) / sqrt(s->x->variance[k]) : 0;
  }
  for (size_t i = 0; i < s->n_x; i++)
    for (size_t k = i; k < s->n_x; k++) s->products[i * s->n_x + k] += s->row[i] * s->row[k];
  return DVBF_OK;
}

/* Entries of the diagonal [n][n], the largest first, until they make up the share of all. */
static size_t count_largest(const double *matrix, size_t n, double *left, double share) {
  double all = 0, sum = 0;
  size_t count = 0;
  for (size_t k = 0; k < n; k++) all += left[k] = matrix[k * n + k];
  while (count < n && sum < share * all) {
    size_t largest = 0;
    for (size_t k = 1; k < n; k++)
      if (left[k] > left[largest]) largest = k;
    sum += left[largest];
    left[largest] = -1;
    count++;
  }
  return count;
}

dvbf_status dv_directions(size_t *out, const dvbf_sequences *s, const dv_statistics *x, double share,
                          dvbf_error *error) {
  size_t n = s->n_x;
  *out = n;
  if (n > DV_DIRECTIONS_MOST) return DVBF_OK;
  double *products = dv_calloc(n * n, sizeof *products), *vectors = dv_calloc(n * n, sizeof *vectors);
  sums to = {x, n, products, vectors};
  dvbf_status status = products && vectors ? dv_each_row(s, NULL, n, add_row, &to, error)
                                           : dv_fail_memory(error, "looking at the data");
  if (!status) {
    for (size_t i = 0; i < n; i++)
      for (size_t k = 0; k < i; k++) products[i * n + k] = products[k * n + i];
    dv_diagonalise(products, vectors, (int)n);
    *out = count_largest(products, n, vectors, share);
  }
  DV_FREE(products, vectors);
  return status;
}
