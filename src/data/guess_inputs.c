/* Finds columns of x that look like inputs, by Granger causality: least squares on LAGS past frames of
 * standardised columns, with and without the others. Entry point dv_exogenous. */
#include "data/checks.h"

#include "base/error.h"
#include "base/memory.h"
#include "math/algebra.h"

#include <math.h>
#include <string.h>

enum { LAGS = 3, GUESSED_COLUMNS = 16, LEAST_ROWS = 150, GUESSED_ROWS = 20000 };

/* Second moments of (a frame, the LAGS frames before it), of columns brought to unit variance. */
typedef struct moments {
  size_t n, width;            /* columns, and n (1 + LAGS) + 1 for the mean */
  const double *mean, *scale; /* [n] */
  double *sum;                /* [width][width] */
  double *row;                /* [width] */
  size_t rows;
} moments;

static void add_row(moments *m, const float *frame /* [n], behind those before it */) {
  for (size_t lag = 0; lag <= LAGS; lag++)
    for (size_t k = 0; k < m->n; k++) {
      float value = frame[(ptrdiff_t)k - (ptrdiff_t)(lag * m->n)];
      if (!isfinite(value)) return;
      m->row[lag * m->n + k] = ((double)value - m->mean[k]) * m->scale[k];
    }
  m->row[m->width - 1] = 1;
  for (size_t i = 0; i < m->width; i++)
    for (size_t j = i; j < m->width; j++) m->sum[i * m->width + j] += m->row[i] * m->row[j];
  m->rows++;
}

static double moment(const moments *m, size_t i, size_t j) {
  return m->sum[i < j ? i * m->width + j : j * m->width + i];
}

/* Mean square error of column `target` as predicted from the lags of the columns that `use` marks. */
static double residual(const moments *m, size_t target, const bool *use, double *scratch) {
  const double ridge = 1e-6;
  size_t list[GUESSED_COLUMNS * LAGS + 1];
  int n = 0;
  for (size_t lag = 1; lag <= LAGS; lag++)
    for (size_t k = 0; k < m->n; k++)
      if (use[k]) list[n++] = lag * m->n + k;
  list[n++] = m->width - 1;
  double *a = scratch, *b = scratch + n * n;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++)
      a[i * n + j] = moment(m, list[i], list[j]) + (i == j ? ridge * (double)m->rows : 0);
    b[i] = moment(m, list[i], target);
  }
  if (!dv_cholesky(a, n)) return NAN;
  dv_solve_lower(a, n, b, 1);
  double error = moment(m, target, target);
  for (int i = 0; i < n; i++) error -= b[i] * b[i];
  return fmax(error, 0) / (double)m->rows;
}

/* Whether the past of the others does not help to predict column k, while its own helps to predict them. */
static bool is_exogenous(const moments *m, size_t k, double *scratch) {
  const double nothing = 0.01, much = 0.25, noise = 1e-4;
  bool all[GUESSED_COLUMNS], own[GUESSED_COLUMNS] = {0}, others[GUESSED_COLUMNS];
  for (size_t i = 0; i < m->n; i++) {
    all[i] = true;
    others[i] = i != k;
  }
  own[k] = true;
  double alone = residual(m, k, own, scratch), together = residual(m, k, all, scratch);
  /* A degree of freedom explains 1 / rows by chance. */
  double chance = 3.0 * LAGS * (double)m->n / (double)m->rows;
  if (!(together >= (1 - nothing - chance) * alone) || alone < noise) return false;
  for (size_t i = 0; i < m->n; i++) {
    if (i == k) continue;
    double without = residual(m, i, others, scratch), with = residual(m, i, all, scratch);
    if (without > noise && with < (1 - much) * without) return true;
  }
  return false;
}

static dvbf_status measure(moments *m, const dvbf_sequences *s, dvbf_error *error) {
  size_t frames = dv_sequences_frames(s), apart = frames / GUESSED_ROWS + 1, seen = 0;
  m->sum = dv_calloc(m->width * m->width, sizeof *m->sum);
  m->row = dv_calloc(m->width, sizeof *m->row);
  if (!m->sum || !m->row) return dv_fail_memory(error, "looking at the data");
  for (size_t i = 0; i < s->count; i++)
    for (size_t t = LAGS; t < dvbf_sequence_length(s, i); t++)
      if (seen++ % apart == 0) add_row(m, s->x + (dvbf_sequence_start(s, i) + t) * s->n_x);
  return DVBF_OK;
}

dvbf_status dv_exogenous(bool *out, const dvbf_sequences *s, dvbf_error *error) {
  dv_statistics x;
  double scale[GUESSED_COLUMNS];
  memset(out, 0, s->n_x * sizeof *out);
  if (s->n_x < 2 || s->n_x > GUESSED_COLUMNS || !s->x || dv_sequences_frames(s) < LEAST_ROWS) return DVBF_OK;
  dvbf_status status = dv_statistics_of_x(&x, s, error);
  if (status) return status;
  for (size_t k = 0; k < s->n_x; k++) scale[k] = dv_statistics_vary(&x, k) ? 1 / sqrt(x.variance[k]) : 0;
  moments m = {.n = s->n_x, .width = s->n_x * (1 + LAGS) + 1, .mean = x.mean, .scale = scale};
  double *scratch = dv_calloc((m.width + 1) * m.width, sizeof *scratch);
  status = scratch ? measure(&m, s, error) : dv_fail_memory(error, "looking at the data");
  for (size_t k = 0; k < s->n_x && !status && m.rows >= LEAST_ROWS; k++)
    out[k] = scale[k] > 0 && is_exogenous(&m, k, scratch);
  DV_FREE(scratch, m.sum, m.row);
  dv_statistics_free(&x);
  return status;
}
