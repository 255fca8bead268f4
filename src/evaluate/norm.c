/* The search is a descent. In the coordinates of the present T, with the singular values s and vectors u, v
 * of all matrices,
 *
 *   f_p = ln (sum s^2p) / 2p      which comes near the largest ln s where p is large,
 *
 * falls fastest along T exp(t G), G = sum w (u u' - v v'), w = s^2p / sum s^2p, and is a convex function of t
 * along every such path. So steps along G lead to the best norm; p grows on the way. */
#include "evaluate/norm.h"

#include "base/algebra.h"
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

/* Matrices in the coordinates of some T. */
typedef struct place {
  double *t;        /* [n][n] */
  double *matrices; /* [count][n][n] T^-1 S_i T */
  double *slope;    /* [n][n] G */
  double f, length; /* f_p, and the largest singular value */
} place;

typedef struct descent {
  int n, count;
  place now, next;
  double *scratch; /* [5][n][n] */
  double *best;    /* [n][n] the T with the smallest length so far */
  double least;    /* that length */
} descent;

static size_t square_of(const descent *d) {
  return (size_t)d->n * (size_t)d->n;
}

/* Fills f, length and slope. `unit` is a length near the largest singular value, against overflow. */
static void measure(const descent *d, place *at, double p, double unit) {
  size_t n = (size_t)d->n, square = square_of(d);
  double *u = d->scratch, *v = u + square, *s = v + square, sum = 0;
  memset(at->slope, 0, square * sizeof *at->slope);
  at->length = 0;
  for (int i = 0; i < d->count; i++) {
    dv_singular_values(at->matrices + (size_t)i * square, d->n, u, s, v);
    at->length = fmax(at->length, s[0]);
    for (size_t k = 0; k < n; k++) {
      double w = dv_pow(s[k] / unit, 2 * p);
      sum += w;
      for (size_t a = 0; a < n && w > 1e-12; a++)
        for (size_t b = 0; b < n; b++)
          at->slope[a * n + b] += w * (u[k * n + a] * u[k * n + b] - v[k * n + a] * v[k * n + b]);
    }
  }
  at->f = sum > 0 ? dv_log(unit) + dv_log(sum) / (2 * p) : -INFINITY;
  for (size_t k = 0; k < square && sum > 0; k++) at->slope[k] /= sum;
}

/* next = now with T exp(by G) in the place of T. */
static void step(descent *d, double by) {
  size_t n = (size_t)d->n, square = square_of(d);
  double *values = d->scratch, *vectors = values + square, *there = vectors + square, *back = there + square,
         *product = back + square;
  memcpy(values, d->now.slope, square * sizeof *values);
  dv_diagonalise(values, vectors, d->n);
  memset(there, 0, 2 * square * sizeof *there);
  for (size_t k = 0; k < n; k++)
    for (size_t a = 0; a < n; a++)
      for (size_t b = 0; b < n; b++) {
        double outer = vectors[k * n + a] * vectors[k * n + b];
        there[a * n + b] += dv_exp(by * values[k * (n + 1)]) * outer;
        back[a * n + b] += dv_exp(-by * values[k * (n + 1)]) * outer;
      }
  dv_product(d->next.t, d->now.t, there, d->n, d->n, d->n);
  for (size_t i = 0; i < (size_t)d->count; i++) {
    dv_product(product, back, d->now.matrices + i * square, d->n, d->n, d->n);
    dv_product(d->next.matrices + i * square, product, there, d->n, d->n, d->n);
  }
}

/* Takes the next place where f is smaller there; false where it is not. */
static bool go(descent *d, double p, double by) {
  step(d, by);
  measure(d, &d->next, p, d->now.length);
  if (!(d->next.f < d->now.f)) return false;
  place swap = d->now;
  d->now = d->next;
  d->next = swap;
  if (d->now.length < d->least) {
    d->least = d->now.length;
    memcpy(d->best, d->now.t, square_of(d) * sizeof *d->best);
  }
  return true;
}

/* At most so many steps with one p. */
static void descend(descent *d, double p, int steps) {
  double by = 1 / p;
  measure(d, &d->now, p, d->now.length);
  for (int k = 0; k < steps && by > 1e-4 / p && d->now.length > 0; k++) {
    double before = d->now.f;
    bool better = go(d, p, by);
    by *= better ? 1.5 : 0.3;
    if (better && before - d->now.f < 1e-7) break;
  }
}

double dv_length_in(const double *s, const double *t, const double *inverse, int n, double *scratch) {
  size_t square = (size_t)n * (size_t)n;
  double *product = scratch, *matrix = scratch + square, *u = matrix + square, *v = u + square;
  dv_product(product, inverse, s, n, n, n);
  dv_product(matrix, product, t, n, n, n);
  dv_singular_values(matrix, n, u, v + square, v);
  return isnan(v[square]) ? INFINITY : v[square];
}

/* The largest of the lengths in the norm of t, computed from the systems themselves. */
static double longest(const descent *d, const double *systems, const double *t, double *inverse, int *order) {
  size_t square = square_of(d);
  double most = 0;
  memcpy(inverse, t, square * sizeof *t);
  if (!isfinite(dv_invert(inverse, d->n, 1e-150, order))) return INFINITY;
  for (size_t i = 0; i < (size_t)d->count; i++)
    most = fmax(most, dv_length_in(systems + i * square, t, inverse, d->n, d->scratch));
  return most;
}

/* Large systems get fewer steps: about a second in all. */
static void search(descent *d, const double *systems) {
  static const double powers[] = {1, 4, 16, 64};
  double work = 60. * d->count * dv_pow(d->n, 3), steps = fmin(100, 4e8 / work);
  size_t square = square_of(d);
  memcpy(d->now.matrices, systems, (size_t)d->count * square * sizeof *systems);
  memcpy(d->now.t, d->best, square * sizeof *d->best);
  d->now.length = d->least;
  for (int i = 0; i < 4 && d->least > 0 && isfinite(d->least); i++) descend(d, powers[i], (int)steps);
}

dvbf_status dv_common_norm(double *length, double *t, double *inverse, const double *systems, int count,
                           int n, bool wanted, dvbf_error *error) {
  descent d = {.n = n, .count = count, .best = t};
  size_t square = square_of(&d), all = (size_t)count * square;
  double *memory = dv_calloc(2 * all + 9 * square, sizeof *memory);
  int *order = dv_calloc((size_t)n, sizeof *order);
  if (memory && order) {
    d.now = (place){memory, memory + square, memory + square + all, 0, 0};
    d.next =
        (place){memory + 2 * square + all, memory + 3 * square + all, memory + 3 * square + 2 * all, 0, 0};
    d.scratch = memory + 4 * square + 2 * all;
    for (size_t k = 0; k < square; k++) t[k] = k % ((size_t)n + 1) == 0;
    d.least = longest(&d, systems, t, inverse, order);
    if (wanted) search(&d, systems);
    *length = longest(&d, systems, t, inverse, order);
  }
  dvbf_status status = memory && order ? DVBF_OK : dv_fail_memory(error, "measuring linear systems");
  dv_free(memory);
  dv_free(order);
  return status;
}
