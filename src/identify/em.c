/* Expectation maximisation for a linear system with independent noises (dv_em; equations and priors are in
 * identify.h), from the subspace model (dv_em_begin). Steps in A end before an eigenvalue leaves the unit
 * circle, so every iteration raises the likelihood. */
#include "identify/identify.h"

#include "base/error.h"
#include "base/memory.h"
#include "math/algebra.h"
#include "math/kalman.h"
#include "math/portable.h"

#include <math.h>
#include <string.h>

/* Sums over steps of the moments of outputs o and of the regressors y_t = (z_t, 1, u_t). */
typedef struct regression {
  int n_o, n_y;
  double rows;
  double *yy; /* [n_y][n_y] */
  double *oy; /* [n_o][n_y] */
  double *oo; /* [n_o][n_o] */
} regression;

/* A frame whose missing values are x = G z + g + N(0, C); G and C are 0 if they are seen. */
typedef struct frame {
  double *g;        /* [n_x] */
  double *slope;    /* [n_x][n_z] G */
  double *spread;   /* [n_x][n_x] C */
  double *factor;   /* [n_x][n_x] of R over what is seen */
  double *gain;     /* [n_x][n_x] [seen][missing] */
  int *seen, *gone; /* [n_x] columns */
  int n_seen, n_gone;
} frame;

typedef struct em {
  dv_state_space *s;
  const dv_recordings *r;
  const dv_em_options *o;
  dv_state_space
      before; /* the system that the sums belong to; restored where an iteration lowers the objective */
  regression move, emit;
  double *first, *first_square;      /* [n_z], [n_z][n_z] sums over sequences */
  double *prior_mean, *prior_square; /* the same of N(m_0, P_0) */
  frame frame;
  dv_smoothed smoothed;
  double *y;                   /* [n_y] */
  double *old, *new, *scratch; /* [n_o][n_y] of the larger regression, [3 n n], n the largest of all sizes */
  double *memory;
} em;

/* ---- Memory ---- */

static size_t place_regression(regression *g, double *memory, int n_o, int n_y) {
  size_t o = (size_t)n_o, y = (size_t)n_y;
  *g = (regression){.n_o = n_o, .n_y = n_y};
  if (memory) g->yy = memory, g->oy = g->yy + y * y, g->oo = g->oy + o * y;
  return y * y + o * y + o * o;
}

/* Counts the parts (e->memory = NULL), or places them. */
static size_t place(em *e) {
  int n_z = e->s->n_z, n_u = e->s->n_u, n_x = e->s->n_x, n_y = n_z + 1 + n_u;
  size_t z = (size_t)n_z, x = (size_t)n_x, y = (size_t)n_y, most = y > x ? y : x, used = 0;
  double *move = NULL, *emit = NULL, *seen = NULL, *gone = NULL;
  struct {
    double **part;
    size_t size;
  } parts[] = {{&move, place_regression(&e->move, NULL, n_z, n_y)},
               {&emit, place_regression(&e->emit, NULL, n_x, n_y)},
               {&e->first, z},
               {&e->first_square, z * z},
               {&e->prior_mean, z},
               {&e->prior_square, z * z},
               {&e->frame.g, x},
               {&e->frame.slope, x * z},
               {&e->frame.spread, x * x},
               {&e->frame.factor, x * x},
               {&e->frame.gain, x * x},
               {&seen, x},
               {&gone, x},
               {&e->y, y},
               {&e->old, most * y},
               {&e->new, most *y},
               {&e->scratch, 3 * most * most}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (e->memory) *parts[i].part = e->memory + used;
    used += parts[i].size;
  }
  if (!e->memory) return used;
  place_regression(&e->move, move, n_z, n_y);
  place_regression(&e->emit, emit, n_x, n_y);
  e->frame.seen = (int *)(void *)seen;
  e->frame.gone = (int *)(void *)gone;
  return used;
}

static dvbf_status init(em *e, dvbf_error *error) {
  size_t longest = 0;
  for (size_t i = 0; i < e->r->count; i++)
    if (e->r->whole[i].steps > longest) longest = e->r->whole[i].steps;
  e->memory = dv_calloc(place(e), sizeof *e->memory);
  if (!e->memory) return dv_fail_memory(error, "fitting a linear model");
  place(e);
  dvbf_status status = dv_system_copy(&e->before, e->s, error);
  if (!status) status = dv_smoothed_init(&e->smoothed, e->s, (int)longest, error);
  return status;
}

/* ---- Expectation step ---- */

/* to [n][m] += a [n] b [m]' */
static void add_outer(double *to, size_t width, const double *a, int n, const double *b, int m) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) to[(size_t)i * width + (size_t)j] += a[i] * b[j];
}

static void add_block(double *to, size_t width, const double *block, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) to[(size_t)i * width + (size_t)j] += block[i * n + j];
}

/* y = (E z_t, 1, u_t), and the moments of y_t. */
static void add_regressors(em *e, regression *g, const double *cov) {
  add_outer(g->yy, (size_t)g->n_y, e->y, g->n_y, e->y, g->n_y);
  add_block(g->yy, (size_t)g->n_y, cov, e->s->n_z);
  g->rows++;
}

static void add_move(em *e, size_t t) {
  size_t n = (size_t)e->s->n_z;
  const double *next = e->smoothed.mean + (t + 1) * n;
  regression *g = &e->move;
  add_regressors(e, g, e->smoothed.cov + t * n * n);
  add_outer(g->oy, (size_t)g->n_y, next, g->n_o, e->y, g->n_y);
  add_block(g->oy, (size_t)g->n_y, e->smoothed.pair + t * n * n, g->n_o);
  add_outer(g->oo, n, next, g->n_o, next, g->n_o);
  add_block(g->oo, n, e->smoothed.cov + (t + 1) * n * n, g->n_o);
}

/* Missing values of x given z and the rest of the frame. False if nothing is observed. */
static bool complete(em *e, const double *x, const double *u) {
  const dv_state_space *s = e->s;
  frame *f = &e->frame;
  int n_x = s->n_x, n_z = s->n_z;
  f->n_seen = f->n_gone = 0;
  for (int i = 0; i < n_x; i++) *(isnan(x[i]) ? f->gone + f->n_gone++ : f->seen + f->n_seen++) = i;
  memcpy(f->g, x, (size_t)n_x * sizeof *x);
  if (!f->n_gone || !f->n_seen) return f->n_seen > 0;
  int o = f->n_seen, m = f->n_gone;
  double *apart = e->scratch;
  dv_system_emit(s, e->y, u, f->g); /* of the mean of z: slope takes it out again */
  for (int i = 0; i < o; i++) {
    apart[i] = x[f->seen[i]] - f->g[f->seen[i]];
    for (int j = 0; j < o; j++) f->factor[i * o + j] = s->r[f->seen[i] * n_x + f->seen[j]];
    for (int j = 0; j < m; j++) f->gain[i * m + j] = s->r[f->seen[i] * n_x + f->gone[j]];
  }
  if (!dv_cholesky(f->factor, o)) return false;
  dv_solve_lower(f->factor, o, f->gain, m);
  memset(f->slope, 0, (size_t)n_x * (size_t)n_z * sizeof *f->slope);
  memset(f->spread, 0, (size_t)n_x * (size_t)n_x * sizeof *f->spread);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++) {
      double *to = f->spread + f->gone[i] * n_x + f->gone[j];
      *to = s->r[f->gone[i] * n_x + f->gone[j]];
      for (int k = 0; k < o; k++) *to -= f->gain[k * m + i] * f->gain[k * m + j];
    }
  dv_solve_upper(f->factor, o, f->gain, m);
  for (int i = 0; i < m; i++) {
    double *slope = f->slope + f->gone[i] * n_z;
    memcpy(slope, s->h + f->gone[i] * n_z, (size_t)n_z * sizeof *slope);
    for (int k = 0; k < o; k++) {
      double by = f->gain[k * m + i];
      f->g[f->gone[i]] += by * apart[k];
      for (int j = 0; j < n_z; j++) slope[j] -= by * s->h[f->seen[k] * n_z + j];
    }
  }
  for (int k = 0; k < o; k++) f->g[f->seen[k]] = x[f->seen[k]];
  return true;
}

/* f->g is E x_t. Its covariance is G P G' + C, and its covariance with z_t is G P. */
static void add_emit(em *e, const double *x, const double *u, const double *cov) {
  regression *g = &e->emit;
  frame *f = &e->frame;
  int n_z = e->s->n_z;
  if (!complete(e, x, u)) return;
  add_regressors(e, g, cov);
  add_outer(g->oy, (size_t)g->n_y, f->g, g->n_o, e->y, g->n_y);
  add_outer(g->oo, (size_t)g->n_o, f->g, g->n_o, f->g, g->n_o);
  if (!f->n_gone) return;
  double *half = e->scratch, *whole = half + (size_t)g->n_o * (size_t)n_z;
  dv_product(half, f->slope, cov, g->n_o, n_z, n_z);
  for (int i = 0; i < g->n_o; i++)
    for (int j = 0; j < n_z; j++) g->oy[i * g->n_y + j] += half[i * n_z + j];
  dv_product_transposed(whole, half, f->slope, g->n_o, n_z, g->n_o);
  add_block(g->oo, (size_t)g->n_o, whole, g->n_o);
  add_block(g->oo, (size_t)g->n_o, f->spread, g->n_o);
}

static void add_sequence(em *e, const dv_piece *piece) {
  size_t n = (size_t)e->s->n_z, n_u = (size_t)e->s->n_u;
  const dv_smoothed *z = &e->smoothed;
  for (size_t t = 0; t < piece->steps; t++) {
    const double *x = e->r->x + (piece->first + t) * (size_t)e->s->n_x,
                 *u = e->r->u + (piece->first + t) * n_u;
    memcpy(e->y, z->mean + t * n, n * sizeof *e->y);
    e->y[n] = 1;
    memcpy(e->y + n + 1, u, n_u * sizeof *e->y);
    if (!t) {
      add_outer(e->first_square, n, e->y, (int)n, e->y, (int)n);
      add_block(e->first_square, n, z->cov, (int)n);
      for (size_t i = 0; i < n; i++) e->first[i] += e->y[i];
    }
    if (e->o->start_only) return;
    if (t + 1 < piece->steps) add_move(e, t);
    add_emit(e, x, u, z->cov + t * n * n);
  }
}

static void forget(regression *g) {
  double *memory = g->yy;
  memset(memory, 0, place_regression(g, memory, g->n_o, g->n_y) * sizeof *memory);
}

/* All sums, and ln p(x); NaN if there is none. */
static double expect(em *e) {
  size_t n = (size_t)e->s->n_z;
  double log_p = 0;
  forget(&e->move);
  forget(&e->emit);
  memset(e->first, 0, n * sizeof *e->first);
  memset(e->first_square, 0, n * n * sizeof *e->first_square);
  for (size_t i = 0; i < e->r->count; i++) {
    const dv_piece *p = &e->r->whole[i];
    if (!p->steps) continue;
    if (!dv_smooth(&e->smoothed, e->s, e->r->x + p->first * (size_t)e->s->n_x,
                   e->r->u + p->first * (size_t)e->s->n_u, (int)p->steps))
      return (double)NAN;
    log_p += e->smoothed.log_p;
    add_sequence(e, p);
  }
  return log_p;
}

/* ---- Priors ---- */

/* tr C^-1 M and ln det C; false if C is singular. M = NULL: the identity. */
static bool trace(const double *c, const double *m, int n, double *scratch, double *out, double *log_det) {
  double *factor = scratch, *solved = scratch + n * n;
  memcpy(factor, c, (size_t)n * (size_t)n * sizeof *c);
  for (int i = 0; i < n * n; i++) solved[i] = m ? m[i] : i % (n + 1) == 0;
  if (!dv_solve_definite(factor, n, solved, n)) return false;
  *out = *log_det = 0;
  for (int i = 0; i < n; i++) {
    *out += solved[i * (n + 1)];
    *log_det += 2 * dv_log(factor[i * (n + 1)]);
  }
  return true;
}

/* The priors' part of ln p; NaN if a covariance is singular that may not be. */
static double log_prior(em *e) {
  const dv_state_space *s = e->s;
  int n = s->n_z;
  double sum = 0, value, log_det;
  if (e->o->floor > 0) {
    if (!trace(s->q, NULL, n, e->scratch, &value, &log_det)) return (double)NAN;
    sum -= e->o->floor / 2 * e->move.rows * value;
    if (!trace(s->r, NULL, s->n_x, e->scratch, &value, &log_det)) return (double)NAN;
    sum -= e->o->floor / 2 * e->emit.rows * value;
  }
  if (!(e->o->starts > 0)) return sum;
  double *about = e->scratch + 2 * n * n; /* second moments of N(m_0, P_0) about m */
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      about[i * n + j] = e->prior_square[i * n + j] - s->mean[i] * e->prior_mean[j] -
                         e->prior_mean[i] * s->mean[j] + s->mean[i] * s->mean[j];
  if (!trace(s->cov, about, n, e->scratch, &value, &log_det)) return (double)NAN;
  return sum - e->o->starts / 2 * (n * dv_log(2 * M_PI) + log_det + value);
}

/* ---- Maximisation step ---- */

/* new = old + (oy - old yy) (yy + ridge)^-1 over the first n_y regressors: least squares in which dependent
 * regressors keep their coefficients. */
static void solve(const em *e, const regression *g, int n_y) {
  double *normal = e->scratch, *right = normal + n_y * n_y, largest = 0;
  for (int i = 0; i < n_y; i++) largest = fmax(largest, g->yy[i * (g->n_y + 1)]);
  for (int i = 0; i < n_y; i++)
    for (int j = 0; j < n_y; j++)
      normal[i * n_y + j] = g->yy[i * g->n_y + j] + (i == j ? 1e-12 * largest + 1e-300 : 0);
  for (int o = 0; o < g->n_o; o++)
    for (int i = 0; i < n_y; i++) {
      double sum = g->oy[o * g->n_y + i];
      for (int j = 0; j < n_y; j++) sum -= e->old[o * n_y + j] * g->yy[j * g->n_y + i];
      right[i * g->n_o + o] = sum;
    }
  memcpy(e->new, e->old, (size_t)g->n_o * (size_t)n_y * sizeof *e->new);
  if (!dv_solve_definite(normal, n_y, right, g->n_o)) return;
  for (int o = 0; o < g->n_o; o++)
    for (int i = 0; i < n_y; i++) e->new[o * n_y + i] += right[i * g->n_o + o];
}

/* Covariance of the residuals, plus the floor. */
static void leave(const em *e, const regression *g, int n_y, double *out) {
  double *half = e->scratch;
  for (int o = 0; o < g->n_o; o++)
    for (int i = 0; i < n_y; i++) {
      double sum = -2 * g->oy[o * g->n_y + i];
      for (int j = 0; j < n_y; j++) sum += e->new[o * n_y + j] * g->yy[j * g->n_y + i];
      half[o * n_y + i] = sum;
    }
  for (int a = 0; a < g->n_o; a++)
    for (int b = 0; b <= a; b++) {
      double one = dv_dot(half + a * n_y, e->new + b *n_y, (size_t)n_y),
             other = dv_dot(half + b * n_y, e->new + a *n_y, (size_t)n_y),
             value = (g->oo[a * g->n_o + b] + g->oo[b * g->n_o + a] + one + other) / 2 / g->rows;
      out[a * g->n_o + b] = out[b * g->n_o + a] = value + (a == b ? e->o->floor : 0);
    }
}

/* Coefficients of (z, 1, u) from their three parts, or the other way round. */
static void join(double *all, int n_o, int n_y, double *z, int n_z, double *shift, double *u, bool back) {
  for (int o = 0; o < n_o; o++)
    for (int i = 0; i < n_y; i++) {
      double *part = i < n_z ? z + o * n_z + i : i == n_z ? shift + o : u + o * (n_y - n_z - 1) + i - n_z - 1;
      if (back)
        *part = all[o * n_y + i];
      else
        all[o * n_y + i] = *part;
    }
}

/* The likelihood rises all along the line from the old A to the new one; the step ends before an eigenvalue
 * leaves the unit circle. */
static void stay_stable(em *e, int n_y) {
  int n = e->s->n_z, all = n * n_y;
  double low = 0, high = 1, *a = e->scratch, *rest = a + n * n;
  for (int k = 0; k < 30; k++) {
    double by = k ? (low + high) / 2 : 1;
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        a[i * n + j] = e->old[i * n_y + j] + by * (e->new[i * n_y + j] - e->old[i * n_y + j]);
    bool stable = dv_spectral_radius(a, n, rest) <= 1;
    if (!k && stable) return;
    *(stable ? &low : &high) = by;
  }
  for (int i = 0; i < all; i++) e->new[i] = e->old[i] + low *(e->new[i] - e->old[i]);
}

static void set_start(em *e) {
  dv_state_space *s = e->s;
  int n = s->n_z;
  double more = e->o->starts, rows = more;
  for (size_t i = 0; i < e->r->count; i++) rows += e->r->whole[i].steps > 0;
  if (!(rows > 0)) return;
  for (int i = 0; i < n; i++) s->mean[i] = (e->first[i] + more * e->prior_mean[i]) / rows;
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      double sum = e->first_square[i * n + j] + more * e->prior_square[i * n + j];
      s->cov[i * n + j] = s->cov[j * n + i] = sum / rows - s->mean[i] * s->mean[j];
    }
}

static void maximise(em *e) {
  dv_state_space *s = e->s;
  int n_z = s->n_z, n_y = n_z + 1 + s->n_u;
  if (e->move.rows > 0) {
    join(e->old, n_z, n_y, s->a, n_z, s->shift_z, s->b, false);
    solve(e, &e->move, n_y);
    stay_stable(e, n_y);
    leave(e, &e->move, n_y, s->q);
    join(e->new, n_z, n_y, s->a, n_z, s->shift_z, s->b, true);
  }
  if (e->emit.rows > 0) {
    int n = e->o->feedthrough ? n_y : n_z + 1;
    join(e->old, s->n_x, n, s->h, n_z, s->shift_x, s->d, false);
    solve(e, &e->emit, n);
    leave(e, &e->emit, n, s->r);
    join(e->new, s->n_x, n, s->h, n_z, s->shift_x, s->d, true);
  }
  set_start(e);
}

/* ---- Iterations ---- */

static void keep_prior(em *e) {
  int n = e->s->n_z;
  for (int i = 0; i < n; i++) {
    e->prior_mean[i] = e->s->mean[i];
    for (int j = 0; j < n; j++)
      e->prior_square[i * n + j] = e->s->cov[i * n + j] + e->s->mean[i] * e->s->mean[j];
  }
}

static void copy(dv_state_space *to, const dv_state_space *from) {
  memcpy(to->a, from->a, dv_system_size(from->n_z, from->n_u, from->n_x) * sizeof *from->a);
}

static void iterate(em *e, dv_em_progress *p) {
  for (bool goes_on = true; goes_on && p->iteration < e->o->iterations;) {
    copy(&e->before, e->s);
    maximise(e);
    double log_p = expect(e), objective = log_p + log_prior(e);
    if (!(objective > p->objective)) { /* as good as rounding allows */
      p->fall = p->objective - objective;
      copy(e->s, &e->before);
      return;
    }
    goes_on = objective - p->objective >= e->o->tolerance;
    p->iteration++;
    p->log_p = log_p;
    p->objective = objective;
    if (e->o->watch && !e->o->watch(p, e->o->user)) return;
  }
}

dvbf_status dv_em(dv_state_space *system, const dv_recordings *r, const dv_em_options *options,
                  dv_em_progress *last, dvbf_error *error) {
  em e = {.s = system, .r = r, .o = options};
  dv_em_progress p = {0};
  dvbf_status status = init(&e, error);
  if (!status) {
    keep_prior(&e);
    p.log_p = expect(&e);
    p.objective = p.log_p + log_prior(&e);
    if (!isfinite(p.objective))
      status = dv_fail(error, DVBF_FORMAT,
                       "these data have no likelihood under the linear model that EM starts from; use the "
                       "subspace model (linear-fit = subspace)");
  }
  if (!status && (!options->watch || options->watch(&p, options->user))) iterate(&e, &p);
  if (!status) *last = p;
  dv_smoothed_clear(&e.smoothed);
  dv_system_clear(&e.before);
  dv_free(e.memory);
  return status;
}

/* ---- First system ---- */

static double log_likelihood(const dv_state_space *s, const dv_recordings *r, double *memory) {
  double sum = 0;
  for (size_t i = 0; i < r->count; i++) {
    dv_kalman k = dv_kalman_begin(s, memory);
    for (size_t t = 0; t < r->whole[i].steps; t++) {
      const double *x = r->x + (r->whole[i].first + t) * (size_t)r->n_x,
                   *u = r->u + (r->whole[i].first + t) * (size_t)r->n_u;
      if (!dv_kalman_observe(&k, x, u)) return -(double)INFINITY;
      sum += k.log_p;
      dv_kalman_move(&k, u);
    }
  }
  return sum;
}

/* Of the first system: R = share of the innovations' covariance, Q = K R K' + own I. */
static void split_noise(dv_state_space *out, const dv_state_space *s, double share, double own) {
  copy(out, s);
  memset(out->s, 0, (size_t)s->n_z * (size_t)s->n_x * sizeof *s->s);
  for (int i = 0; i < s->n_x * s->n_x; i++) out->r[i] *= share;
  for (int i = 0; i < s->n_z; i++) out->q[i * (s->n_z + 1)] += own, out->cov[i * (s->n_z + 1)] += 1e-6;
}

dvbf_status dv_em_begin(dv_state_space *s, const dv_recordings *r, dvbf_error *error) {
  static const double shares[] = {1, 0.5, 0.25, 0.1, 0.03, 0.01}, owns[] = {1e-4, 1e-2, 0.1};
  double best = -(double)INFINITY, *memory = dv_calloc(dv_kalman_size(s->n_z, s->n_x), sizeof *memory);
  dv_state_space try = {0}, from = {0};
  dvbf_status status =
      memory ? dv_system_copy(&from, s, error) : dv_fail_memory(error, "fitting a linear model");
  if (!status) status = dv_system_copy(&try, s, error);
  for (size_t k = 0; k < sizeof shares / sizeof *shares && !status; k++)
    for (size_t l = 0; l < sizeof owns / sizeof *owns; l++) {
      split_noise(&try, &from, shares[k], owns[l]);
      double log_p = log_likelihood(&try, r, memory);
      if (!(k || l) || log_p > best) copy(s, &try), best = log_p;
    }
  dv_system_clear(&try);
  dv_system_clear(&from);
  dv_free(memory);
  return status;
}
