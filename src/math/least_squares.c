/* Least squares on plain arrays: the Levenberg-Marquardt method with derivatives by differences
 * (dv_levenberg_run) and ridge regression by normal equations (dv_ridge_*). */
#include "math/least_squares.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/settings.h"
#include "math/algebra.h"

#include <math.h>
#include <string.h>

/* ---- Levenberg-Marquardt ---- */

/* Memory of a run, in one block. */
typedef struct levenberg {
  const dv_levenberg *how;
  double *first, *next; /* [n] */
  double *now, *moved;  /* [rows] residuals */
  double *slopes;       /* [n][rows] of each parameter */
  double *square, *to;  /* [n][n] and [n]: normal equations */
  double *factor, *step;
  double sum, damping;
} levenberg;

/* The sum of squares at theta, whose residuals go to `out`; infinite if theta is not allowed. */
static double squares_at(const levenberg *l, const double *theta, double *out) {
  const dv_levenberg *how = l->how;
  if (!how->allowed(theta, how->user)) return INFINITY;
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

/* One step, with more damping until the sum falls; returns the decrease, 0 if there is none. */
static double improve(levenberg *l, double *theta) {
  enum { MOST_DAMPINGS = 10 };
  const double more = 4, least = 1e-8;
  size_t n = (size_t)l->how->n;
  for (int k = 0; k < MOST_DAMPINGS; k++, l->damping *= more) {
    memcpy(l->factor, l->square, n * n * sizeof *l->factor);
    memcpy(l->step, l->to, n * sizeof *l->step);
    for (size_t i = 0; i < n; i++) l->factor[i * (n + 1)] += l->damping;
    if (!dv_solve_definite(l->factor, (int)n, l->step, 1)) continue;
    for (size_t i = 0; i < n; i++) l->next[i] = theta[i] + l->step[i];
    double sum = squares_at(l, l->next, l->moved), fall = l->sum - sum;
    if (!(fall > 0)) continue;
    memcpy(theta, l->next, n * sizeof *theta);
    memcpy(l->now, l->moved, l->how->rows * sizeof *l->now);
    l->damping = fmax(l->damping / more, least);
    l->sum = sum;
    return fall;
  }
  return 0;
}

dvbf_status dv_levenberg_run(double *theta, const dv_levenberg *how, dvbf_error *error) {
  enum { ITERATIONS = 40 };
  const double enough = 1e-4; /* it ends where a step lowers the sum by less than this share */
  size_t n = (size_t)how->n, rows = how->rows;
  levenberg l = {.how = how, .damping = 1e-2};
  const dv_extent parts[] = {{&l.first, n},  {&l.next, n},       {&l.to, n},
                             {&l.step, n},   {&l.square, n * n}, {&l.factor, n * n},
                             {&l.now, rows}, {&l.moved, rows},   {&l.slopes, n * rows}};
  const size_t count = sizeof parts / sizeof *parts;
  dv_place(dv_calloc(dv_place(NULL, parts, count), sizeof *l.first), parts, count);
  if (!l.first) return dv_fail_memory(error, "fitting free runs");
  memcpy(l.first, theta, n * sizeof *theta);
  l.sum = squares_at(&l, theta, l.now);
  bool stopped = false;
  for (int i = 0; i < ITERATIONS && isfinite(l.sum); i++) {
    stopped = dv_interrupted(how->interrupt);
    if (stopped) break;
    differentiate(&l, theta);
    double before = l.sum;
    if (improve(&l, theta) <= enough * before) break;
  }
  dv_free(l.first);
  return stopped ? dv_fail_stopped(error) : DVBF_OK;
}

/* ---- Ridge regression ---- */

dvbf_status dv_ridge_init(dv_ridge *g, size_t inputs, size_t targets, dvbf_error *error) {
  *g = (dv_ridge){.inputs = inputs, .targets = targets};
  g->total = dv_calloc(inputs, inputs * sizeof *g->total);
  g->coefficients = dv_calloc(inputs, targets * sizeof *g->coefficients);
  g->row = dv_calloc(inputs, sizeof *g->row);
  g->target = dv_calloc(targets, sizeof *g->target);
  if (!g->total || !g->coefficients || !g->row || !g->target) return dv_fail_memory(error, "regressing");
  g->row[0] = 1;
  return DVBF_OK;
}

void dv_ridge_clear(dv_ridge *g) {
  DV_FREE(g->total, g->coefficients, g->row, g->target);
  *g = (dv_ridge){0};
}

void dv_ridge_add(dv_ridge *g) {
  for (size_t i = 0; i < g->inputs; i++) {
    for (size_t j = i; j < g->inputs; j++) g->total[i * g->inputs + j] += g->row[i] * g->row[j];
    for (size_t k = 0; k < g->targets; k++) g->coefficients[i * g->targets + k] += g->row[i] * g->target[k];
  }
  g->rows += 1;
}

void dv_ridge_solve(dv_ridge *g, double share) {
  int n = (int)g->inputs, targets = (int)g->targets;
  for (size_t i = 1; i < g->inputs; i++) g->total[i * (g->inputs + 1)] += share * (g->rows + 1);
  g->total[0] += 1e-9;
  if (!dv_solve_definite(g->total, n, g->coefficients, targets))
    memset(g->coefficients, 0, g->inputs * g->targets * sizeof *g->coefficients);
}

double dv_ridge_guess(const dv_ridge *g, size_t k) {
  double guess = 0;
  for (size_t j = 0; j < g->inputs; j++) guess += g->row[j] * g->coefficients[j * g->targets + k];
  return guess;
}
