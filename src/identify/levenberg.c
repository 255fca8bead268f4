#include "identify/levenberg.h"

#include "base/algebra.h"
#include "base/memory.h"
#include "base/settings.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

/* All that a run needs, in one block of memory. */
typedef struct levenberg {
  const dv_levenberg *how;
  double *first, *next; /* [n] */
  double *now, *moved;  /* [rows] residuals */
  double *slopes;       /* [n][rows] of each parameter */
  double *square, *to;  /* [n][n] and [n]: normal equations */
  double *factor, *step;
  double sum, damping;
} levenberg;

static bool place(levenberg *l, double **block) {
  size_t n = (size_t)l->how->n, rows = l->how->rows;
  double *at = *block = dv_calloc(4 * n + 2 * n * n + (n + 2) * rows, sizeof **block);
  if (!at) return false;
  l->first = at;
  l->next = l->first + n;
  l->to = l->next + n;
  l->step = l->to + n;
  l->square = l->step + n;
  l->factor = l->square + n * n;
  l->now = l->factor + n * n;
  l->moved = l->now + rows;
  l->slopes = l->moved + rows;
  return true;
}

/* The sum at theta, whose residuals go to `out`; infinite where it is not allowed. */
static double look(const levenberg *l, const double *theta, double *out) {
  const dv_levenberg *how = l->how;
  if (how->allowed && !how->allowed(theta, how->user)) return INFINITY;
  how->residuals(out, theta, how->user);
  double sum = dv_dot(out, out, how->rows);
  for (int i = 0; i < how->n; i++) sum += how->ridge * (theta[i] - l->first[i]) * (theta[i] - l->first[i]);
  return isfinite(sum) ? sum : INFINITY;
}

static void differentiate(levenberg *l, const double *theta) {
  const double by = 1e-6;
  const dv_levenberg *how = l->how;
  size_t n = (size_t)how->n, rows = how->rows;
  memcpy(l->next, theta, n * sizeof *theta);
  for (size_t i = 0; i < n; i++) {
    double *slope = l->slopes + i * rows;
    l->next[i] = theta[i] + by;
    how->residuals(slope, l->next, how->user);
    l->next[i] = theta[i];
    for (size_t k = 0; k < rows; k++) slope[k] = (slope[k] - l->now[k]) / by;
  }
  for (size_t i = 0; i < n; i++) {
    for (size_t j = i; j < n; j++)
      l->square[i * n + j] = dv_dot(l->slopes + i * rows, l->slopes + j * rows, rows);
    l->square[i * n + i] += how->ridge;
    l->to[i] = -dv_dot(l->slopes + i * rows, l->now, rows) - how->ridge * (theta[i] - l->first[i]);
  }
}

/* One step, with more damping until the sum falls; returns by how much, 0 where it does not. */
static double improve(levenberg *l, double *theta) {
  enum { TRIES = 10 };
  const double more = 4, least = 1e-8;
  size_t n = (size_t)l->how->n;
  for (int k = 0; k < TRIES; k++, l->damping *= more) {
    memcpy(l->factor, l->square, n * n * sizeof *l->factor);
    memcpy(l->step, l->to, n * sizeof *l->step);
    for (size_t i = 0; i < n; i++) l->factor[i * (n + 1)] += l->damping;
    if (!dv_cholesky(l->factor, (int)n)) continue;
    dv_solve_lower(l->factor, (int)n, l->step, 1);
    dv_solve_upper(l->factor, (int)n, l->step, 1);
    for (size_t i = 0; i < n; i++) l->next[i] = theta[i] + l->step[i];
    double sum = look(l, l->next, l->moved), fall = l->sum - sum;
    if (!(fall > 0)) continue;
    memcpy(theta, l->next, n * sizeof *theta);
    memcpy(l->now, l->moved, l->how->rows * sizeof *l->now);
    l->damping = fmax(l->damping / more, least);
    l->sum = sum;
    return fall;
  }
  return 0;
}

dvbf_status dv_levenberg_run(double *theta, double *sum, const dv_levenberg *how, dvbf_error *error) {
  levenberg l = {.how = how, .damping = 1e-2};
  double *block = NULL;
  dvbf_status status = place(&l, &block) ? DVBF_OK : dv_fail_memory(error, "fitting free runs");
  if (!status) {
    memcpy(l.first, theta, (size_t)how->n * sizeof *theta);
    l.sum = look(&l, theta, l.now);
  }
  for (int i = 0; i < how->steps && !status && isfinite(l.sum); i++) {
    if (dv_interrupted(how->interrupt)) {
      status = dv_fail_stopped(error);
      break;
    }
    differentiate(&l, theta);
    double before = l.sum;
    if (improve(&l, theta) <= how->enough * before) break;
  }
  if (sum) *sum = l.sum;
  dv_free(block);
  return status;
}
