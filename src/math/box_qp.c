/* Quadratic program with box constraints by the projected Newton method of Tassa, Mansard and Todorov (2014),
 * which iLQR solves for each step of a plan. Entry point dv_box_solve; memory is the caller's. */
#include "math/box_qp.h"

#include "math/algebra.h"

#include <math.h>
#include <string.h>

enum { MOST_BOX_STEPS = 100 };

static double value_of(const double *x, const double *h, const double *g, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += x[i] * (g[i] + 0.5 * dv_dot(h + (size_t)i * (size_t)n, x, (size_t)n));
  return sum;
}

/* Marks dimensions that the gradient presses against a limit; returns how many are free. */
static int hold(bool *held, const double *x, const double *gradient, const double *low, const double *high,
                int n) {
  int free_ones = 0;
  for (int i = 0; i < n; i++) {
    held[i] =
        (x[i] <= low[i] && gradient[i] > 0) || (x[i] >= high[i] && gradient[i] < 0) || !(low[i] < high[i]);
    free_ones += !held[i];
  }
  return free_ones;
}

/* U of the rows and columns of h that are free. */
static bool factorise(double *factor, const double *h, const bool *held, int n, int count) {
  int at = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (!held[i] && !held[j]) factor[at++] = h[(size_t)i * (size_t)n + (size_t)j];
  return !count || dv_cholesky(factor, count);
}

/* step [n] = -H^-1 gradient in the free dimensions, 0 in the others. */
static void newton(double *step, const double *factor, const double *gradient, const bool *held, int n,
                   int count, double *packed) {
  int at = 0;
  for (int i = 0; i < n; i++)
    if (!held[i]) packed[at++] = -gradient[i];
  dv_solve_lower(factor, count, packed, 1);
  dv_solve_upper(factor, count, packed, 1);
  at = 0;
  for (int i = 0; i < n; i++) step[i] = held[i] ? 0 : packed[at++];
}

/* A Newton step cut by limits may lead upwards; the projected gradient never does. */
static void steepest(double *step, const double *gradient, const double *h, int n) {
  double trace = 0;
  for (int i = 0; i < n; i++) trace += h[(size_t)i * (size_t)n + (size_t)i];
  for (int i = 0; i < n; i++) step[i] = -gradient[i] / trace;
}

/* Moves x along the step, projected into the box, as far as Armijo's rule allows; false if it cannot. */
static bool descend(double *x, const double *step, const double *gradient, const double *h, const double *g,
                    const double *low, const double *high, int n, double *trial) {
  double before = value_of(x, h, g, n);
  double length = 1;
  for (int halved = 0; halved < 40; halved++, length *= 0.5) {
    double expected = 0;
    for (int i = 0; i < n; i++) trial[i] = x[i] + length * step[i];
    dv_into_limits(trial, low, high, n);
    for (int i = 0; i < n; i++) expected += gradient[i] * (trial[i] - x[i]);
    if (!(expected < -1e-16 * fabs(before))) return false; /* rounding alone is left */
    if (value_of(trial, h, g, n) - before <= 0.1 * expected) {
      memcpy(x, trial, (size_t)n * sizeof *x);
      return true;
    }
  }
  return false;
}

int dv_box_solve(double *x, bool *held, double *factor, const double *h, const double *g, const double *low,
                 const double *high, int n, double *scratch) {
  double *gradient = scratch, *step = scratch + n, *trial = scratch + 2 * n;
  bool before[DV_BOX_SIZE];
  int count = -1;
  if (n < 1) return 0;
  dv_into_limits(x, low, high, n);
  for (int i = 0; i < MOST_BOX_STEPS; i++) {
    memcpy(gradient, g, (size_t)n * sizeof *gradient);
    dv_apply(gradient, h, x, n, n);
    int left = hold(held, x, gradient, low, high, n);
    if (count < 0 || memcmp(before, held, (size_t)n * sizeof *held) != 0) {
      memcpy(before, held, (size_t)n * sizeof *held);
      if (!factorise(factor, h, held, n, left)) return -1;
    }
    count = left;
    if (!count) break;
    newton(step, factor, gradient, held, n, count, trial);
    if (descend(x, step, gradient, h, g, low, high, n, trial)) continue;
    steepest(step, gradient, h, n);
    if (!descend(x, step, gradient, h, g, low, high, n, trial)) break;
  }
  return count;
}
