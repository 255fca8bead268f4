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

static void add_row(const sums *s, const float *row) {
  for (size_t k = 0; k < s->n_x; k++) {
    bool seen = dv_statistics_vary(s->x, k) && !isnan(row[k]);
    s->row[k] = seen ? ((double)row[k] - s->x->mean[k]) / sqrt(s->x->variance[k]) : 0;
  }
  for (size_t i = 0; i < s->n_x; i++)
    for (size_t k = i; k < s->n_x; k++) s->products[i * s->n_x + k] += s->row[i] * s->row[k];
}

/* Pieces of the sequences, evenly spread: a large file is not read through once more for this. */
static dvbf_status add_pieces(const sums *to, const dvbf_sequences *s, dvbf_error *error) {
  enum { PIECE = 512, PIECES = 6 };
  size_t frames = dv_sequences_frames(s), pieces = frames / PIECE + 1, sequence = 0, before = 0;
  float *buffer = NULL;
  dvbf_status status = dv_sequence_buffer(&buffer, s, PIECE, error);
  if (status) return status;
  if (pieces > PIECES) pieces = PIECES;
  for (size_t p = 0; p < pieces; p++) {
    size_t at = frames * p / pieces, length;
    while (length = dvbf_sequence_length(s, sequence), at >= before + length) before += length, sequence++;
    size_t end = frames * (p + 1) / pieces, first = at - before, steps = end - at < PIECE ? end - at : PIECE;
    if (steps > length - first) steps = length - first;
    const float *rows = dv_sequence_x(s, sequence, first, steps, buffer);
    for (size_t t = 0; t < steps; t++) add_row(to, rows + t * s->n_x);
  }
  dv_free(buffer);
  return dv_sequences_intact(s, error);
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
  dvbf_status status =
      products && vectors ? add_pieces(&to, s, error) : dv_fail_memory(error, "looking at the data");
  if (!status) {
    for (size_t i = 0; i < n; i++)
      for (size_t k = 0; k < i; k++) products[i * n + k] = products[k * n + i];
    dv_diagonalise(products, vectors, (int)n);
    *out = count_largest(products, n, vectors, share);
  }
  DV_FREE(products, vectors);
  return status;
}
