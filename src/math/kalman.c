/* Linear Gaussian systems: the exact Kalman filter with missing values (dv_kalman_observe, dv_kalman_move),
 * gains shared by many sequences (dv_kalman_gains_new), and samples (dv_draw_step). Correlated noises are
 * allowed, so the innovation form is the same class. Covariances that no longer change are not computed
 * again. Equations: kalman.h; smoother: kalman_smoother.c. */
#include "math/kalman.h"

#include "base/error.h"
#include "base/memory.h"
#include "math/algebra.h"
#include "math/portable.h"

#include <math.h>
#include <string.h>

static size_t place_system(dv_state_space *s, double *values) {
  size_t z = (size_t)s->n_z, u = (size_t)s->n_u, x = (size_t)s->n_x;
  const dv_extent parts[] = {{&s->a, z * z},   {&s->b, z * u},   {&s->h, x * z},  {&s->d, x * u},
                             {&s->shift_z, z}, {&s->shift_x, x}, {&s->q, z * z},  {&s->r, x * x},
                             {&s->s, z * x},   {&s->mean, z},    {&s->cov, z * z}};
  return dv_place(values, parts, sizeof parts / sizeof *parts);
}

size_t dv_system_size(int n_z, int n_u, int n_x) {
  dv_state_space s = {.n_z = n_z, .n_u = n_u, .n_x = n_x};
  return place_system(&s, NULL);
}

dv_state_space dv_system_at(double *values, int n_z, int n_u, int n_x) {
  dv_state_space s = {.n_z = n_z, .n_u = n_u, .n_x = n_x};
  place_system(&s, values);
  return s;
}

dvbf_status dv_system_new(dv_state_space *out, int n_z, int n_u, int n_x, dvbf_error *error) {
  double *values = dv_calloc(dv_system_size(n_z, n_u, n_x), sizeof *values);
  if (!values) return dv_fail_memory(error, "making a linear system");
  *out = dv_system_at(values, n_z, n_u, n_x);
  return DVBF_OK;
}

dvbf_status dv_system_copy(dv_state_space *out, const dv_state_space *from, dvbf_error *error) {
  dvbf_status status = dv_system_new(out, from->n_z, from->n_u, from->n_x, error);
  if (!status) memcpy(out->a, from->a, dv_system_size(from->n_z, from->n_u, from->n_x) * sizeof *from->a);
  return status;
}

void dv_system_clear(dv_state_space *s) {
  dv_free(s->a);
  *s = (dv_state_space){0};
}

/* out [n] = shift + m z + w u */
static void affine(double *out, int n, const double *shift, const double *m, const double *z, int n_z,
                   const double *w, const double *u, int n_u) {
  memcpy(out, shift, (size_t)n * sizeof *out);
  dv_apply(out, m, z, n, n_z);
  if (n_u) dv_apply(out, w, u, n, n_u);
}

void dv_system_move(const dv_state_space *s, const double *z, const double *u, double *next) {
  affine(next, s->n_z, s->shift_z, s->a, z, s->n_z, s->b, u, s->n_u);
}

void dv_system_emit(const dv_state_space *s, const double *z, const double *u, double *x) {
  affine(x, s->n_x, s->shift_x, s->h, z, s->n_z, s->d, u, s->n_u);
}

void dv_system_set_gain(dv_state_space *s, const double *k) {
  dv_product(s->s, k, s->r, s->n_z, s->n_x, s->n_x);
  dv_product_transposed(s->q, s->s, k, s->n_z, s->n_x, s->n_z);
}

/* ---- Filter ---- */

static size_t place_filter(dv_kalman *k, double *memory, int n_z, int n_x) {
  size_t z = (size_t)n_z, x = (size_t)n_x, most = z > x ? z : x;
  double *which;
  const dv_extent parts[] = {{&k->mean, z},
                             {&k->cov, z * z},
                             {&k->filtered, z},
                             {&k->filtered_cov, z * z},
                             {&which, x},
                             {&k->innovation, x},
                             {&k->u_factor, x * x},
                             {&k->state_gain, z * x},
                             {&k->move_gain, z * x},
                             {&k->scratch, 2 * most * most}};
  size_t used = dv_place(memory, parts, sizeof parts / sizeof *parts);
  k->which = (int *)(void *)which;
  return used;
}

size_t dv_kalman_size(int n_z, int n_x) {
  dv_kalman k;
  return place_filter(&k, NULL, n_z, n_x);
}

dv_kalman dv_kalman_begin(const dv_state_space *s, double *memory) {
  dv_kalman k = {.system = s};
  size_t z = (size_t)s->n_z;
  place_filter(&k, memory, s->n_z, s->n_x);
  memcpy(k.mean, s->mean, z * sizeof *k.mean);
  memcpy(k.cov, s->cov, z * z * sizeof *k.cov);
  return k;
}

/* Lists the observed values; returns whether the covariances of the step before can be reused. */
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
static bool factorise_innovation(dv_kalman *k) {
  const dv_state_space *s = k->system;
  size_t n = (size_t)s->n_z, o = (size_t)k->seen;
  double *cross = k->scratch; /* [seen][n_z] H P */
  for (size_t i = 0; i < o; i++)
    dv_product(cross + i * n, s->h + (size_t)k->which[i] * n, k->cov, 1, s->n_z, s->n_z);
  for (size_t i = 0; i < o; i++)
    for (size_t j = 0; j < o; j++) {
      size_t a = (size_t)k->which[i], b = (size_t)k->which[j];
      k->u_factor[i * o + j] = s->r[a * (size_t)s->n_x + b] + dv_dot(cross + i * n, s->h + b * n, n);
    }
  if (!dv_cholesky(k->u_factor, k->seen)) return false;
  k->log_det = 0;
  for (size_t i = 0; i < o; i++) k->log_det += dv_log(k->u_factor[i * (o + 1)]);
  dv_solve_lower(k->u_factor, k->seen, cross, s->n_z);
  dv_transpose(k->state_gain, cross, k->seen, s->n_z);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      k->filtered_cov[i * n + j] =
          k->cov[i * n + j] - dv_dot(k->state_gain + i * o, k->state_gain + j * o, o);
  return true;
}

/* (A P H' + S) U^-1 */
static void find_move_gain(dv_kalman *k) {
  const dv_state_space *s = k->system;
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
  const dv_state_space *s = k->system;
  int n = s->n_z;
  bool again = look(k, x);
  if (!again && !factorise_innovation(k)) return false;
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

/* cov = A cov A' + Q - G F G', exactly symmetric. */
static void move_cov(dv_kalman *k) {
  const dv_state_space *s = k->system;
  size_t n = (size_t)s->n_z, o = (size_t)k->seen;
  double *half = k->scratch, *next = k->scratch + n * n, apart = 0, size = 0;
  dv_product(half, s->a, k->cov, s->n_z, s->n_z, s->n_z);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j <= i; j++) {
      double value = s->q[i * n + j] + dv_dot(half + i * n, s->a + j * n, n) -
                     dv_dot(k->move_gain + i * o, k->move_gain + j * o, o);
      next[i * n + j] = next[j * n + i] = value;
      apart = fmax(apart, fabs(value - k->cov[i * n + j]));
      size = fmax(size, fabs(s->q[i * n + j]) + fabs(value));
    }
  memcpy(k->cov, next, n * n * sizeof *next);
  k->steady = k->seen == s->n_x && apart <= 1e-14 * size;
}

void dv_kalman_move(dv_kalman *k, const double *u) {
  const dv_state_space *s = k->system;
  int n = s->n_z, o = k->seen;
  double *next = k->scratch;
  dv_system_move(s, k->mean, u, next);
  dv_apply(next, k->move_gain, k->innovation, n, o);
  memcpy(k->mean, next, (size_t)n * sizeof *next);
  if (!k->steady) move_cov(k);
}

void dv_kalman_x_variance(const dv_state_space *s, const double *cov, bool noise, double *variance) {
  size_t n = (size_t)s->n_z;
  for (size_t i = 0; i < (size_t)s->n_x; i++) {
    const double *h = s->h + i * n;
    double sum = noise ? s->r[i * (size_t)(s->n_x + 1)] : 0;
    for (size_t j = 0; j < n; j++) sum += h[j] * dv_dot(cov + j * n, h, n);
    variance[i] = sum > 0 ? sum : 0;
  }
}

/* ---- Gains by the filter ---- */

/* Runs a filter over zeros: covariances do not depend on the observations. */
static dvbf_status filter_zeros(dv_kalman_gains *g, size_t most, dvbf_error *error) {
  const dv_state_space *s = g->system;
  size_t each = (size_t)s->n_z * (size_t)s->n_x, both = (size_t)s->n_x + (size_t)s->n_u;
  double *memory = dv_calloc(dv_kalman_size(s->n_z, s->n_x) + both + each, sizeof *memory);
  if (!memory) return dv_fail_memory(error, "filtering by a linear model");
  double *zeros = memory + dv_kalman_size(s->n_z, s->n_x), *turned = zeros + both;
  dv_kalman k = dv_kalman_begin(s, memory);
  while (g->steps < most && !g->rest && dv_kalman_observe(&k, zeros, zeros)) {
    /* G from G U', where F = U'U: U G' = (G U')' */
    dv_transpose(turned, k.move_gain, s->n_z, s->n_x);
    dv_solve_upper(k.u_factor, s->n_x, turned, s->n_z);
    dv_transpose(g->gains + g->steps++ * each, turned, s->n_x, s->n_z);
    dv_kalman_move(&k, zeros);
    memset(k.mean, 0, (size_t)s->n_z * sizeof *k.mean);
    g->rest = k.steady;
  }
  dv_free(memory);
  return DVBF_OK;
}

/* ---- Gains for wide x ---- */

/* For x with more columns than z, only matrices of the size of z change from step to step:
 *
 *   K = S R^-1    V = H' R^-1    J = V H    A* = A - K H    Q* = Q - K S'
 *   filtered: C = (I + P J)^-1 P        G = K + A* C V        next: P = A* C A*' + Q* */
typedef struct wide {
  double *r;                           /* [n_x][n_x] U, where R = U'U */
  double *transposed, *k, *v;          /* [n_x][n_z], [n_z][n_x], [n_z][n_x] */
  double *j, *a, *a_transposed, *q;    /* [n_z][n_z] */
  double *p, *inverse, *c, *ac, *next; /* [n_z][n_z] */
  int *order;                          /* [n_z] */
} wide;

/* out [n_z][n_x] = (R^-1 transposed)' */
static void solve(const wide *w, const dv_state_space *s, double *out) {
  dv_solve_lower(w->r, s->n_x, w->transposed, s->n_z);
  dv_solve_upper(w->r, s->n_x, w->transposed, s->n_z);
  dv_transpose(out, w->transposed, s->n_x, s->n_z);
}

/* The constant parts; false if R is not positive definite. */
static bool wide_begin(wide *w, const dv_state_space *s) {
  int n = s->n_z, n_x = s->n_x;
  size_t all = (size_t)n * (size_t)n;
  memcpy(w->r, s->r, (size_t)n_x * (size_t)n_x * sizeof *w->r);
  if (!dv_cholesky(w->r, n_x)) return false;
  memcpy(w->transposed, s->h, (size_t)n * (size_t)n_x * sizeof *w->transposed);
  solve(w, s, w->v);
  dv_transpose(w->transposed, s->s, n, n_x);
  solve(w, s, w->k);
  dv_product(w->j, w->v, s->h, n, n_x, n);
  dv_product(w->a, w->k, s->h, n, n_x, n);
  dv_product_transposed(w->q, w->k, s->s, n, n_x, n);
  for (size_t i = 0; i < all; i++) w->a[i] = s->a[i] - w->a[i], w->q[i] = s->q[i] - w->q[i];
  dv_transpose(w->a_transposed, w->a, n, n);
  memcpy(w->p, s->cov, all * sizeof *w->p);
  return true;
}

/* One step: G, and P of the next. *rest: P has become constant. False if P is no longer finite. */
static bool wide_step(wide *w, const dv_state_space *s, double *gain, bool *rest) {
  int n = s->n_z;
  double apart = 0, size = 0;
  dv_product(w->inverse, w->p, w->j, n, n, n);
  for (int i = 0; i < n; i++) w->inverse[i * (n + 1)] += 1;
  if (isnan(dv_invert(w->inverse, n, 1e-300, w->order))) return false;
  dv_product(w->c, w->inverse, w->p, n, n, n);
  dv_product(w->ac, w->a, w->c, n, n, n);
  dv_product(gain, w->ac, w->v, n, n, s->n_x);
  for (int i = 0; i < n * s->n_x; i++) gain[i] += w->k[i];
  dv_product(w->next, w->ac, w->a_transposed, n, n, n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      double value = w->q[i * n + j] + (w->next[i * n + j] + w->next[j * n + i]) / 2;
      apart = fmax(apart, fabs(value - w->p[i * n + j]));
      size = fmax(size, fabs(s->q[i * n + j]) + fabs(value));
      w->p[i * n + j] = w->p[j * n + i] = value;
    }
  *rest = apart <= 1e-14 * size;
  return isfinite(size);
}

static dvbf_status fill_wide(dv_kalman_gains *g, size_t most, dvbf_error *error) {
  const dv_state_space *s = g->system;
  size_t z = (size_t)s->n_z, x = (size_t)s->n_x;
  wide w = {.order = dv_calloc(z, sizeof *w.order)};
  const dv_extent parts[] = {
      {&w.r, x * x}, {&w.transposed, x * z},   {&w.k, z * x},   {&w.v, z * x}, {&w.j, z * z},
      {&w.a, z * z}, {&w.a_transposed, z * z}, {&w.q, z * z},   {&w.p, z * z}, {&w.inverse, z * z},
      {&w.c, z * z}, {&w.ac, z * z},           {&w.next, z * z}};
  const size_t count = sizeof parts / sizeof *parts;
  dv_place(dv_calloc(dv_place(NULL, parts, count), sizeof *w.r), parts, count);
  bool made = w.r && w.order;
  if (made && wide_begin(&w, s))
    while (g->steps < most && !g->rest && wide_step(&w, s, g->gains + g->steps * z * x, &g->rest)) g->steps++;
  DV_FREE(w.r, w.order);
  return made ? DVBF_OK : dv_fail_memory(error, "filtering by a linear model");
}

/* ---- Gains of a system ---- */

dvbf_status dv_kalman_gains_new(dv_kalman_gains *out, const dv_state_space *s, size_t steps,
                                dvbf_error *error) {
  const size_t room = (size_t)1 << 21; /* 16 MB */
  size_t each = (size_t)s->n_z * (size_t)s->n_x, most = steps < room / each ? steps : room / each;
  dv_kalman_gains g = {.system = s, .gains = dv_calloc(most, each * sizeof *g.gains)};
  dvbf_status status = g.gains ? DVBF_OK : dv_fail_memory(error, "filtering by a linear model");
  if (!status) status = s->n_x > s->n_z ? fill_wide(&g, most, error) : filter_zeros(&g, most, error);
  if (status)
    dv_kalman_gains_clear(&g);
  else
    *out = g;
  return status;
}

void dv_kalman_gains_clear(dv_kalman_gains *g) {
  dv_free(g->gains);
  *g = (dv_kalman_gains){0};
}

bool dv_kalman_gains_reach(const dv_kalman_gains *g, size_t steps) {
  return g->rest || steps <= g->steps;
}

void dv_kalman_gains_move(const dv_kalman_gains *g, size_t t, double *mean, const double *apart,
                          const double *u, double *scratch) {
  const dv_state_space *s = g->system;
  size_t at = t < g->steps ? t : g->steps - 1;
  dv_system_move(s, mean, u, scratch);
  dv_apply(scratch, g->gains + at * (size_t)s->n_z * (size_t)s->n_x, apart, s->n_z, s->n_x);
  memcpy(mean, scratch, (size_t)s->n_z * sizeof *mean);
}

/* ---- Samples ---- */

void dv_add_noise(double *out, const double *factor, int n, dv_random *random, double *scratch) {
  for (int i = 0; i < n; i++) scratch[i] = dv_random_normal(random);
  dv_apply(out, factor, scratch, n, n);
}

void dv_noise_factors_of(const dv_state_space *s, dv_noise_factors *f) {
  int n_x = s->n_x, n_z = s->n_z;
  memcpy(f->x, s->r, (size_t)n_x * (size_t)n_x * sizeof *f->x);
  dv_factor(f->x, n_x);
  for (int i = 0; i < n_z; i++) /* M Lx' = S, row by row */
    for (int j = 0; j < n_x; j++) {
      double sum = s->s[i * n_x + j], root = f->x[j * (n_x + 1)];
      for (int k = 0; k < j; k++) sum -= f->shared[i * n_x + k] * f->x[j * n_x + k];
      f->shared[i * n_x + j] = root > 0 ? sum / root : 0;
    }
  for (int i = 0; i < n_z; i++) {
    const double *row = f->shared + (size_t)i * (size_t)n_x;
    for (int j = 0; j < n_z; j++)
      f->z[i * n_z + j] = s->q[i * n_z + j] - dv_dot(row, f->shared + (size_t)j * (size_t)n_x, (size_t)n_x);
  }
  /* In the innovation form only rounding is left. */
  double largest = 0, left = 0;
  for (int i = 0; i < n_z; i++)
    largest = fmax(largest, s->q[i * (n_z + 1)]), left = fmax(left, f->z[i * (n_z + 1)]);
  if (left <= 1e-12 * largest) memset(f->z, 0, (size_t)n_z * (size_t)n_z * sizeof *f->z);
  dv_factor(f->z, n_z);
}

void dv_draw_step(const dv_state_space *s, const dv_noise_factors *f, double *z, const double *u, double *x,
                  bool noise, dv_random *random, double *scratch) {
  size_t n_x = (size_t)s->n_x, n_z = (size_t)s->n_z;
  double *next = scratch, *shared = next + n_z, *own = shared + n_x;
  for (size_t i = 0; i < n_x; i++) shared[i] = dv_random_normal(random);
  dv_system_emit(s, z, u, x);
  if (noise) dv_apply(x, f->x, shared, s->n_x, s->n_x);
  dv_system_move(s, z, u, next);
  dv_apply(next, f->shared, shared, s->n_z, s->n_x);
  dv_add_noise(next, f->z, s->n_z, random, own);
  memcpy(z, next, n_z * sizeof *z);
}
