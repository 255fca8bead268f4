/* Low-rank factors of recognition's weights from x, as training on principal components leaves them
 * (dv_low_rank_find): W = in out, by Gram-Schmidt on the rows of W, always taking the longest remainder. Most
 * models have none, which a part of W shows cheaply, since no part has a higher rank than W. The weights
 * alone decide, not the settings. */
#include "infer/online.h"

#include "base/error.h"
#include "base/memory.h"
#include "math/algebra.h"

#include <math.h>
#include <string.h>

enum {
  MULTIPLE = 16,
  MOST_RANK = 512
}; /* the rank is a multiple of 16, which products like, and at most this */

/* The largest rank for which two products take no more than half the time of one. */
static int most_of(int rows, int n) {
  double most = 0.5 * rows * n / ((double)rows + n);
  if (most > MOST_RANK) most = MOST_RANK;
  if (most * rows > INT32_MAX) return 0;
  return (int)most / MULTIPLE * MULTIPLE;
}

/* Remainders of the rows, and the rows taken. */
typedef struct rank_search {
  size_t rows, n, taken;
  double *rest;  /* [rows][n] */
  double *basis; /* [most][n] */
} rank_search;

static bool begin(rank_search *s, size_t rows, size_t n, size_t most) {
  *s = (rank_search){.rows = rows, .n = n};
  s->rest = dv_calloc(rows, n * sizeof *s->rest);
  s->basis = dv_calloc(most, n * sizeof *s->basis);
  return s->rest && s->basis;
}

/* Sum of squares of the remainders; *longest is the row with the largest. */
static double left_over(const rank_search *s, size_t *longest) {
  double sum = 0, most = -1;
  for (size_t r = 0; r < s->rows; r++) {
    double square = dv_dot(s->rest + r * s->n, s->rest + r * s->n, s->n);
    sum += square;
    if (square > most) most = square, *longest = r;
  }
  return sum;
}

static void take_row(rank_search *s, size_t row) {
  double *unit = s->basis + s->taken++ * s->n;
  memcpy(unit, s->rest + row * s->n, s->n * sizeof *unit);
  double by = 1 / sqrt(dv_dot(unit, unit, s->n));
  for (size_t i = 0; i < s->n; i++) unit[i] *= by;
  for (size_t r = 0; r < s->rows; r++) {
    double *rest = s->rest + r * s->n, along = dv_dot(rest, unit, s->n);
    for (size_t i = 0; i < s->n; i++) rest[i] -= along * unit[i];
  }
}

/* in = W out^T; rows of `out` from s->taken on are 0. */
static void factor(dv_low_rank *p, const rank_search *s, const dvbf_real *w) {
  for (size_t i = 0; i < s->taken * s->n; i++) p->out[i] = (dvbf_real)s->basis[i];
  for (size_t r = 0; r < s->rows; r++)
    for (size_t k = 0; k < s->taken; k++) {
      double sum = 0;
      for (size_t i = 0; i < s->n; i++) sum += (double)w[r * s->n + i] * s->basis[k * s->n + i];
      p->in[r * (size_t)p->rank + k] = (dvbf_real)sum;
    }
}

/* Takes rows until less than `enough` remains or `most` are taken; returns the remaining sum of squares. */
static double take_rows(rank_search *s, size_t most, double enough) {
  size_t longest = 0;
  double left = left_over(s, &longest);
  for (; s->taken < most && left > enough; left = left_over(s, &longest)) take_row(s, longest);
  return left;
}

static double squares(const dvbf_real *w, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (double)w[i] * (double)w[i];
  return sum;
}

/* Whether a part of W, rows and columns spread evenly over it, already has a rank above `most`. */
static bool is_full(const dv_parameter *p, const dvbf_real *w, size_t most, double enough, bool *is) {
  size_t rows = (size_t)p->rows, n = (size_t)p->cols, side = most + MULTIPLE;
  size_t some = side < rows ? side : rows, few = side < n ? side : n;
  rank_search s;
  bool done = begin(&s, some, few, most);
  for (size_t r = 0; r < some && done; r++)
    for (size_t i = 0; i < few; i++) s.rest[r * few + i] = (double)w[r * rows / some * n + i * n / few];
  *is =
      done && take_rows(&s, most, enough) > 1e3 * enough; /* clearly: the rows taken are not the best ones */
  DV_FREE(s.rest, s.basis);
  return done;
}

static bool find(dv_low_rank *p, rank_search *s, const dvbf_real *w, size_t most, double enough) {
  for (size_t i = 0; i < s->rows * s->n; i++) s->rest[i] = (double)w[i];
  if (take_rows(s, most, enough) > enough) return true; /* there is none */
  p->rank = (int)((s->taken + MULTIPLE - 1) / MULTIPLE * MULTIPLE);
  p->in = dv_calloc(s->rows, (size_t)p->rank * sizeof *p->in);
  p->out = dv_calloc(s->n, (size_t)p->rank * sizeof *p->out);
  if (!p->in || !p->out) return false;
  factor(p, s, w);
  return true;
}

dvbf_status dv_low_rank_find(dv_low_rank *p, const dvbf_model *m, dvbf_error *error) {
  const dv_parameter *of = dv_parameters_find(&m->parameters, "recognition.hidden.x");
  *p = (dv_low_rank){0};
  if (!of) return DVBF_OK;
  const dvbf_real *w = m->parameters.values + of->offset;
  size_t most = (size_t)most_of(of->rows, of->cols);
  double enough = most ? 1e-12 * squares(w, (size_t)of->rows * (size_t)of->cols) : 0;
  rank_search s = {0};
  bool full = true, done = !(enough > 0) || is_full(of, w, most, enough, &full);
  if (done && !full)
    done = begin(&s, (size_t)of->rows, (size_t)of->cols, most) && find(p, &s, w, most, enough);
  DV_FREE(s.rest, s.basis);
  if (done) return DVBF_OK;
  dv_low_rank_free(p);
  return dv_fail_memory(error, "preparing a filter");
}

void dv_low_rank_free(dv_low_rank *p) {
  DV_FREE(p->in, p->out);
  *p = (dv_low_rank){0};
}
