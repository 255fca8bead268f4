/* Fixed-interval smoother of a linear Gaussian system: means, covariances and lag-one covariances by the
 * recursion of Bryson and Frazier (de Jong 1989). Entry point dv_smooth; equations in kalman.h. All memory is
 * allocated by dv_smoothed_init. */
#include "math/kalman.h"

#include "base/error.h"
#include "base/memory.h"
#include "math/algebra.h"

#include <math.h>
#include <string.h>

/* What the backward pass needs of each step. m, cov and loop are stored in the results. */
typedef struct parts {
  double *m, *cov;      /* [steps][n_z], [steps][n_z][n_z] before x_t */
  double *pull, *curve; /* [steps][n_z] H' F^-1 e, [steps][n_z][n_z] H' F^-1 H */
  double *loop;         /* [steps][n_z][n_z] L */
  double *r, *n;        /* [n_z], [n_z][n_z] */
  char *same;           /* [steps] whether the covariances of a step are those of the step before */
  double *pair;         /* [n_z][n_z] */
  double *scratch;      /* [2][n_z][most of n_z, n_x] */
} parts;

static size_t place(dv_smoothed *s, parts *p, int n_z, int n_x, int steps) {
  size_t z = (size_t)n_z, t = (size_t)steps, wide = (size_t)(n_x > n_z ? n_x : n_z);
  double *filter, *same;
  const dv_extent all[] = {{&filter, dv_kalman_size(n_z, n_x)},
                           {&s->mean, t * z},
                           {&s->cov, t * z * z},
                           {&s->pair, t * z * z},
                           {&p->pull, t * z},
                           {&p->curve, t * z * z},
                           {&p->r, z},
                           {&p->n, z * z},
                           {&p->pair, z * z},
                           {&p->scratch, 2 * z * wide},
                           {&same, t / sizeof *same + 1}};
  size_t used = dv_place(s->memory, all, sizeof all / sizeof *all);
  p->m = s->mean;
  p->cov = s->cov;
  p->loop = s->pair;
  p->same = (char *)same;
  return used;
}

dvbf_status dv_smoothed_init(dv_smoothed *out, const dv_state_space *s, int steps, dvbf_error *error) {
  parts p;
  *out = (dv_smoothed){.steps = steps, .n_z = s->n_z};
  size_t size = place(out, &p, s->n_z, s->n_x, steps);
  out->memory = dv_calloc(size, sizeof *out->memory);
  if (!out->memory) return dv_fail_memory(error, "smoothing a long sequence");
  return DVBF_OK;
}

void dv_smoothed_clear(dv_smoothed *s) {
  dv_free(s->memory);
  *s = (dv_smoothed){0};
}

/* Keeps the filter's values of step t. */
static void keep(const dv_kalman *k, parts *p, int t) {
  const dv_state_space *s = k->system;
  size_t n = (size_t)s->n_z, o = (size_t)k->seen, square = n * n;
  memcpy(p->m + (size_t)t * n, k->mean, n * sizeof *k->mean);
  memcpy(p->cov + (size_t)t * square, k->cov, square * sizeof *k->cov);
  double *whitened = p->scratch; /* [seen][n_z] U'^-1 H; stays there while nothing changes */
  double *pull = p->pull + (size_t)t * n, *curve = p->curve + (size_t)t * square,
         *loop = p->loop + (size_t)t * square;
  p->same[t] = k->steady && t;
  for (size_t i = 0; i < o && !p->same[t]; i++)
    memcpy(whitened + i * n, s->h + (size_t)k->which[i] * n, n * sizeof *whitened);
  if (!p->same[t]) dv_solve_lower(k->u_factor, (int)o, whitened, (int)n);
  dv_product(pull, k->innovation, whitened, 1, (int)o, (int)n);
  if (p->same[t]) {
    memcpy(curve, curve - square, square * sizeof *curve);
    memcpy(loop, loop - square, square * sizeof *loop);
    return;
  }
  memset(curve, 0, square * sizeof *curve);
  for (size_t i = 0; i < o; i++)
    for (size_t a = 0; a < n; a++)
      for (size_t b = 0; b < n; b++) curve[a * n + b] += whitened[i * n + a] * whitened[i * n + b];
  dv_product(loop, k->move_gain, whitened, (int)n, (int)o, (int)n);
  for (size_t i = 0; i < square; i++) loop[i] = s->a[i] - loop[i];
}

/* From N_t to N_{t-1}; returns whether they are the same. */
static bool step_back(parts *p, int n, int t) {
  size_t z = (size_t)n, square = z * z;
  const double *loop = p->loop + (size_t)t * square, *curve = p->curve + (size_t)t * square;
  double *half = p->scratch, *whole = p->scratch + square, apart = 0, size = 0;
  dv_product(half, p->n, loop, n, n, n);
  memcpy(whole, curve, square * sizeof *whole);
  for (size_t k = 0; k < z; k++)
    for (size_t i = 0; i < z; i++)
      for (size_t j = 0; j < z; j++) whole[i * z + j] += loop[k * z + i] * half[k * z + j];
  for (size_t i = 0; i < z; i++)
    for (size_t j = 0; j < z; j++) {
      double value = (whole[i * z + j] + whole[j * z + i]) / 2;
      apart = fmax(apart, fabs(value - p->n[i * z + j]));
      size = fmax(size, fabs(value));
      p->n[i * z + j] = value;
    }
  return apart <= 1e-14 * size;
}

/* Cov(z_{t+1}, z_t | x), with N_t, P_{t+1} and P_t as the filter had them. */
static void pair_up(parts *p, int n, int t, const double *next_cov) {
  size_t square = (size_t)n * (size_t)n;
  double *moved = p->scratch, *other = p->scratch + square;
  dv_product(moved, p->loop + (size_t)t * square, p->cov + (size_t)t * square, n, n, n); /* L P_t */
  dv_product(other, p->n, moved, n, n, n);
  dv_product(p->pair, next_cov, other, n, n, n);
  for (size_t i = 0; i < square; i++) p->pair[i] = moved[i] - p->pair[i];
}

/* The smoothed covariance of z_t replaces the predicted one. */
static void update_cov(parts *p, int n, int t) {
  size_t z = (size_t)n, square = z * z;
  double *cov = p->cov + (size_t)t * square, *half = p->scratch, *whole = half + square;
  dv_product(half, p->n, cov, n, n, n);
  dv_product(whole, cov, half, n, n, n);
  for (size_t i = 0; i < z; i++)
    for (size_t j = 0; j <= i; j++) {
      double value = cov[i * z + j] - (whole[i * z + j] + whole[j * z + i]) / 2;
      whole[i * z + j] = whole[j * z + i] = value;
    }
  memcpy(cov, whole, square * sizeof *cov);
}

/* The backward pass. If neither the filter's covariances nor N change from one step to the next, the results
 * of the later step are reused, so that most steps of a long sequence are cheap. */
static void go_back(parts *p, int n, int steps, double *later, double *before) {
  size_t z = (size_t)n, square = z * z;
  bool rests = false;
  for (int t = steps - 1; t >= 0; t--) {
    double *cov = p->cov + (size_t)t * square, *loop = p->loop + (size_t)t * square, *moved = p->scratch;
    bool same = t + 2 < steps && p->same[t + 1] && p->same[t + 2], again = same && rests;
    dv_product(moved, p->r, loop, 1, n, n); /* from r_t to r_{t-1}, and the mean */
    for (size_t i = 0; i < z; i++) p->r[i] = p->pull[(size_t)t * z + i] + moved[i];
    dv_apply(p->m + (size_t)t * z, cov, p->r, n, n);
    if (again) {
      memcpy(cov, cov + square, square * sizeof *cov);
      memcpy(loop, loop + square, square * sizeof *loop);
      continue;
    }
    memcpy(before, cov, square * sizeof *before);
    /* The pair takes the place of L, which the step back still needs, so it is first computed elsewhere. */
    if (t + 1 < steps) pair_up(p, n, t, later);
    rests = step_back(p, n, t) && same;
    if (t + 1 < steps) memcpy(loop, p->pair, square * sizeof *p->pair);
    update_cov(p, n, t);
    memcpy(later, before, square * sizeof *later);
  }
}

bool dv_smooth(dv_smoothed *out, const dv_state_space *s, const double *x, const double *u, int steps) {
  parts p;
  size_t n = (size_t)s->n_z, square = n * n;
  place(out, &p, s->n_z, s->n_x, out->steps);
  dv_kalman *k = &out->filter;
  *k = dv_kalman_begin(s, out->memory);
  out->log_p = 0;
  for (int t = 0; t < steps; t++, x += s->n_x, u = u ? u + s->n_u : NULL) {
    if (!dv_kalman_observe(k, x, u)) return false;
    out->log_p += k->log_p;
    keep(k, &p, t);
    dv_kalman_move(k, u);
  }
  memset(p.r, 0, n * sizeof *p.r);
  memset(p.n, 0, square * sizeof *p.n);
  /* The filter's memory now holds P_{t+1} and P_t, which the results overwrite. */
  go_back(&p, s->n_z, steps, k->cov, k->filtered_cov);
  return true;
}
