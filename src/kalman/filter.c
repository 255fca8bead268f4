#include "kalman/filter.h"

#include "base/algebra.h"
#include "base/arithmetic.h"

#include <math.h>
#include <string.h>

/* The same walk over the parts counts them (memory = NULL) and places them. */
static size_t place(dv_kalman *k, double *memory, int n_z, int n_x) {
  size_t z = (size_t)n_z, x = (size_t)n_x, most = z > x ? z : x, used = 0;
  double *which = NULL;
  struct {
    double **part;
    size_t size;
  } parts[] = {{&k->mean, z},
               {&k->cov, z * z},
               {&k->filtered, z},
               {&k->filtered_cov, z * z},
               {&which, x},
               {&k->innovation, x},
               {&k->u_factor, x * x},
               {&k->state_gain, z * x},
               {&k->move_gain, z * x},
               {&k->scratch, 2 * most * most}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (memory) *parts[i].part = memory + used;
    used += parts[i].size;
  }
  k->which = (int *)(void *)which;
  return used;
}

size_t dv_kalman_size(int n_z, int n_x) {
  dv_kalman k;
  return place(&k, NULL, n_z, n_x);
}

dv_kalman dv_kalman_begin(const dv_system *s, double *memory) {
  dv_kalman k = {.system = s};
  size_t z = (size_t)s->n_z;
  place(&k, memory, s->n_z, s->n_x);
  memcpy(k.mean, s->mean, z * sizeof *k.mean);
  memcpy(k.cov, s->cov, z * z * sizeof *k.cov);
  return k;
}

/* Lists what is seen; returns whether the covariances of the step before can be used again. */
static bool look(dv_kalman *k, const double *x) {
  int n_x = k->system->n_x;
  bool steady = k->steady && k->seen == n_x;
  k->seen = 0;
  for (int i = 0; x && i < n_x; i++)
    if (!isnan(x[i])) k->which[k->seen++] = i;
  k->steady = steady && k->seen == n_x;
  return k->steady;
}

/* F and its factor U, P H' U^-1 and the filtered covariance. */
static bool factorise(dv_kalman *k) {
  const dv_system *s = k->system;
  int n = s->n_z, o = k->seen;
  double *cross = k->scratch; /* [seen][n_z] H P */
  for (int i = 0; i < o; i++) {
    const double *h = s->h + (size_t)k->which[i] * (size_t)n;
    dv_product(cross + (size_t)i * (size_t)n, h, k->cov, 1, n, n);
  }
  for (int i = 0; i < o; i++)
    for (int j = 0; j < o; j++)
      k->u_factor[i * o + j] =
          s->r[(size_t)k->which[i] * (size_t)s->n_x + (size_t)k->which[j]] +
          dv_dot(cross + (size_t)i * (size_t)n, s->h + (size_t)k->which[j] * (size_t)n, (size_t)n);
  if (!dv_cholesky(k->u_factor, o)) return false;
  k->log_det = 0;
  for (int i = 0; i < o; i++) k->log_det += dv_log(k->u_factor[(size_t)i * (size_t)(o + 1)]);
  dv_solve_lower(k->u_factor, o, cross, n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < o; j++) k->state_gain[i * o + j] = cross[(size_t)j * (size_t)n + (size_t)i];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      k->filtered_cov[i * n + j] =
          k->cov[i * n + j] -
          dv_dot(k->state_gain + (size_t)i * (size_t)o, k->state_gain + (size_t)j * (size_t)o, (size_t)o);
  return true;
}

/* (A P H' + S) U^-1 */
static void find_move_gain(dv_kalman *k) {
  const dv_system *s = k->system;
  int n = s->n_z, o = k->seen;
  double *transposed = k->scratch; /* [seen][n_z] U'^-1 S' */
  for (int i = 0; i < o; i++)
    for (int j = 0; j < n; j++)
      transposed[i * n + j] = s->s[(size_t)j * (size_t)s->n_x + (size_t)k->which[i]];
  dv_solve_lower(k->u_factor, o, transposed, n);
  dv_product(k->move_gain, s->a, k->state_gain, n, n, o);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < o; j++) k->move_gain[i * o + j] += transposed[j * n + i];
}

bool dv_kalman_observe(dv_kalman *k, const double *x, const double *u) {
  const dv_system *s = k->system;
  int n = s->n_z;
  bool again = look(k, x);
  if (!again && !factorise(k)) return false;
  if (!again) find_move_gain(k);
  for (int i = 0; i < k->seen; i++) {
    size_t c = (size_t)k->which[i];
    k->innovation[i] = x[c] - s->shift_x[c] - dv_dot(s->h + c * (size_t)n, k->mean, (size_t)n);
    if (s->n_u) k->innovation[i] -= dv_dot(s->d + c * (size_t)s->n_u, u, (size_t)s->n_u);
  }
  dv_solve_lower(k->u_factor, k->seen, k->innovation, 1);
  k->log_p = -k->log_det;
  for (int i = 0; i < k->seen; i++)
    k->log_p -= 0.5 * (1.837877066409345483560659 + k->innovation[i] * k->innovation[i]);
  memcpy(k->filtered, k->mean, (size_t)n * sizeof *k->mean);
  dv_apply(k->filtered, k->state_gain, k->innovation, n, k->seen);
  return true;
}

/* cov = A cov A' + Q - G F G', symmetric to the last bit; tells whether it has come to rest. */
static void move_cov(dv_kalman *k) {
  const dv_system *s = k->system;
  int n = s->n_z, o = k->seen;
  double *half = k->scratch, *next = k->scratch + (size_t)n * (size_t)n, apart = 0, size = 0;
  dv_product(half, s->a, k->cov, n, n, n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      double value =
          s->q[i * n + j] + dv_dot(half + (size_t)i * (size_t)n, s->a + (size_t)j * (size_t)n, (size_t)n) -
          dv_dot(k->move_gain + (size_t)i * (size_t)o, k->move_gain + (size_t)j * (size_t)o, (size_t)o);
      next[i * n + j] = next[j * n + i] = value;
      apart = fmax(apart, fabs(value - k->cov[i * n + j]));
      size = fmax(size, fabs(s->q[i * n + j]) + fabs(value));
    }
  memcpy(k->cov, next, (size_t)n * (size_t)n * sizeof *next);
  k->steady = o == s->n_x && apart <= 1e-14 * size;
}

void dv_kalman_move(dv_kalman *k, const double *u) {
  const dv_system *s = k->system;
  int n = s->n_z, o = k->seen;
  double *next = k->scratch;
  dv_system_move(s, k->mean, u, next);
  dv_apply(next, k->move_gain, k->innovation, n, o);
  memcpy(k->mean, next, (size_t)n * sizeof *next);
  if (!k->steady) move_cov(k);
}

void dv_kalman_x_variance(const dv_system *s, const double *cov, bool noise, double *variance) {
  size_t n = (size_t)s->n_z;
  for (size_t i = 0; i < (size_t)s->n_x; i++) {
    const double *h = s->h + i * n;
    double sum = noise ? s->r[i * (size_t)(s->n_x + 1)] : 0;
    for (size_t j = 0; j < n; j++) sum += h[j] * dv_dot(cov + j * n, h, n);
    variance[i] = sum > 0 ? sum : 0;
  }
}
