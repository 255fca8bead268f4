#include "kalman/gains.h"

#include "base/algebra.h"
#include "base/memory.h"
#include "base/status.h"
#include "kalman/filter.h"

#include <math.h>
#include <string.h>

/* ---- By the filter ---- */

/* G [n_z][n_x] from G U', where F = U'U: U G' = (G U')'. */
static void find_gain(double *out, const dv_kalman *k, double *transposed) {
  int n = k->system->n_z, n_x = k->system->n_x;
  dv_transpose(transposed, k->move_gain, n, n_x);
  dv_solve_upper(k->u_factor, n_x, transposed, n);
  dv_transpose(out, transposed, n_x, n);
}

/* Runs a filter over zeros, since covariances do not depend on what is seen. */
static dvbf_status filter_zeros(dv_gains *g, size_t most, dvbf_error *error) {
  const dv_system *s = g->system;
  size_t each = (size_t)s->n_z * (size_t)s->n_x, both = (size_t)s->n_x + (size_t)s->n_u;
  double *memory = dv_calloc(dv_kalman_size(s->n_z, s->n_x) + both + each, sizeof *memory);
  if (!memory) return dv_fail_memory(error, "filtering by a linear model");
  double *zeros = memory + dv_kalman_size(s->n_z, s->n_x);
  dv_kalman k = dv_kalman_begin(s, memory);
  while (g->steps < most && !g->rest && dv_kalman_observe(&k, zeros, zeros)) {
    find_gain(g->gains + g->steps++ * each, &k, zeros + both);
    dv_kalman_move(&k, zeros);
    memset(k.mean, 0, (size_t)s->n_z * sizeof *k.mean);
    g->rest = k.steady;
  }
  dv_free(memory);
  return DVBF_OK;
}

/* ---- For wide x ---- */

/* Where x has more columns than z, matrices of the size of z alone change from step to step:
 *
 *   K = S R^-1    V = H' R^-1    J = V H    A* = A - K H    Q* = Q - K S'
 *   filtered: C = (I + P J)^-1 P        G = K + A* C V        next: P = A* C A*' + Q* */
typedef struct wide {
  double *r;                           /* [n_x][n_x] U, where R = U'U */
  double *transposed, *k, *v;          /* [n_x][n_z], [n_z][n_x], [n_z][n_x] */
  double *j, *a, *a_transposed, *q;    /* [n_z][n_z] */
  double *p, *inverse, *c, *ac, *next; /* [n_z][n_z] */
  int *order;                          /* [n_z] */
  double *memory;
} wide;

static dvbf_status wide_new(wide *w, int n_z, int n_x, dvbf_error *error) {
  size_t z = (size_t)n_z, x = (size_t)n_x, used = x * x + 3 * z * x;
  double **squares[] = {&w->j, &w->a, &w->a_transposed, &w->q, &w->p, &w->inverse, &w->c, &w->ac, &w->next};
  size_t count = sizeof squares / sizeof *squares;
  w->memory = dv_calloc(used + count * z * z, sizeof *w->memory);
  w->order = dv_calloc(z, sizeof *w->order);
  if (!w->memory || !w->order) return dv_fail_memory(error, "filtering by a linear model");
  w->r = w->memory;
  w->transposed = w->r + x * x;
  w->k = w->transposed + z * x;
  w->v = w->k + z * x;
  for (size_t i = 0; i < count; i++) *squares[i] = w->memory + used + i * z * z;
  return DVBF_OK;
}

/* out [n_z][n_x] = (R^-1 transposed)' */
static void solve(const wide *w, const dv_system *s, double *out) {
  dv_solve_lower(w->r, s->n_x, w->transposed, s->n_z);
  dv_solve_upper(w->r, s->n_x, w->transposed, s->n_z);
  dv_transpose(out, w->transposed, s->n_x, s->n_z);
}

/* What does not change; false where R is not positive definite. */
static bool wide_begin(wide *w, const dv_system *s) {
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

/* One step: G, and P of the next. *rest: P has become constant. False where P is not finite any more. */
static bool wide_step(wide *w, const dv_system *s, double *gain, bool *rest) {
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

static dvbf_status fill_wide(dv_gains *g, size_t most, dvbf_error *error) {
  const dv_system *s = g->system;
  size_t each = (size_t)s->n_z * (size_t)s->n_x;
  wide w = {0};
  dvbf_status status = wide_new(&w, s->n_z, s->n_x, error);
  if (!status && wide_begin(&w, s))
    while (g->steps < most && !g->rest && wide_step(&w, s, g->gains + g->steps * each, &g->rest)) g->steps++;
  dv_free(w.memory);
  dv_free(w.order);
  return status;
}

/* ---- All of it ---- */

dvbf_status dv_gains_new(dv_gains *out, const dv_system *s, size_t steps, dvbf_error *error) {
  const size_t room = (size_t)1 << 21; /* 16 MB */
  size_t each = (size_t)s->n_z * (size_t)s->n_x, most = steps < room / each ? steps : room / each;
  dv_gains g = {.system = s, .gains = dv_calloc(most, each * sizeof *g.gains)};
  dvbf_status status = g.gains ? DVBF_OK : dv_fail_memory(error, "filtering by a linear model");
  if (!status) status = s->n_x > s->n_z ? fill_wide(&g, most, error) : filter_zeros(&g, most, error);
  if (status)
    dv_gains_clear(&g);
  else
    *out = g;
  return status;
}

void dv_gains_clear(dv_gains *g) {
  dv_free(g->gains);
  *g = (dv_gains){0};
}

bool dv_gains_reach(const dv_gains *g, size_t steps) {
  return g->rest || steps <= g->steps;
}

void dv_gains_move(const dv_gains *g, size_t t, double *mean, const double *apart, const double *u,
                   double *scratch) {
  const dv_system *s = g->system;
  size_t at = t < g->steps ? t : g->steps - 1;
  dv_system_move(s, mean, u, scratch);
  dv_apply(scratch, g->gains + at * (size_t)s->n_z * (size_t)s->n_x, apart, s->n_z, s->n_x);
  memcpy(mean, scratch, (size_t)s->n_z * sizeof *mean);
}
