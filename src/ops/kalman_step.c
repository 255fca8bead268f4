/* One step of a Kalman filter as an op (dv_record_kalman_step), with which a structured autoencoder filters;
 * over whole sequences message_passing.c smooths. Double precision. Parameters get no gradient here. */

/* The state (z, m, P) of the next frame, where z' = A z + c + L w, w ~ N(0, I), and an observed frame has a
 * potential exp(-z'D z / 2 + d'z):
 *
 *   a = A m + c    B = A P A' + L L' = C C'                        before the frame
 *   K = I + C'D C = U'U    X = K^-1    e = X C'(d - D a)
 *   m' = a + C e    P' = C X C'    z' = a + C (e + U^-1 eps)       after it
 *   m' = a          P' = B         z' = A z + c + L eps            if it is not observed
 *
 * With particles z' is drawn given z: the same with y = A z + c in place of a, and L in place of C.
 *
 * Without a frame: dz += A'dz'    dm += A'dm'    dP += A'dP'A    dc += dz' + dm'. */
#include "ops/chain.h"

#include "math/algebra.h"
#include "math/portable.h"

#include <math.h>
#include <string.h>

enum { GIVEN, HEAD, DRIFT, FROM_Z, NOISE, EPS, USE, ROOM, INPUTS };
enum { STATE, W, Q, OUTPUTS };

typedef struct kalman_data {
  int n;
  double low, high;
  bool particles;
} kalman_data;

enum { A, L, P, B, C, G, U, X, MATRICES };
enum { Z, M, MEAN, Y, DRIFTED, D_DIAGONAL, D_MU, OMEGA, EPSILON, WORK, VECTORS };

typedef struct filter {
  const dvbf_op *op;
  const dvbf_run *run;
  const kalman_data *data;
  double *room;
  int n, row;
} filter;

static double *matrix(const filter *f, int which) {
  return f->room + (size_t)which * (size_t)f->n * (size_t)f->n;
}

static double *vector(const filter *f, int which) {
  return matrix(f, MATRICES) + (size_t)which * (size_t)f->n;
}

static void clear(double *values, int count) {
  memset(values, 0, (size_t)count * sizeof *values);
}

static dvbf_real *at(const filter *f, dvbf_value v) {
  return v.buffer < 0 ? NULL : dv_at(f->run, v) + (size_t)f->row * (size_t)v.cols;
}

static filter begin_filter(const dvbf_op *op, const dvbf_run *run) {
  const kalman_data *d = op->data;
  filter f = {.op = op, .run = run, .data = d, .n = d->n};
  f.room = (double *)(void *)dv_at(run, op->in[ROOM]);
  const dvbf_real *from = dv_at(run, op->in[FROM_Z]);
  for (int i = 0; i < f.n; i++)
    for (int j = 0; j < f.n; j++) matrix(&f, A)[i * f.n + j] = (double)from[j * f.n + i];
  dv_factor_read(matrix(&f, L), dv_at(run, op->in[NOISE]), f.n);
  return f;
}

/* a, y and B. */
static void predict(const filter *f) {
  int n = f->n;
  const double *a = matrix(f, A), *l = matrix(f, L);
  const dvbf_real *drift = at(f, f->op->in[DRIFT]);
  double *work = matrix(f, G), *b = matrix(f, B), *mean = vector(f, MEAN), *y = vector(f, Y);
  dv_chain_read(at(f, f->op->in[GIVEN]), vector(f, Z), vector(f, M), matrix(f, P), n);
  for (int i = 0; i < n; i++) mean[i] = y[i] = drift ? (double)drift[i] : 0;
  dv_add_applied(mean, 1, a, false, vector(f, M), n);
  dv_add_applied(y, 1, a, false, vector(f, Z), n);
  dv_set_product(work, a, false, matrix(f, P), false, n);
  dv_set_product(b, work, false, a, true, n);
  dv_add_product(b, 1, l, false, l, true, n);
  dv_symmetrise(b, n);
}

/* U, X and the mean of w in OMEGA, given that z = y + factor w. */
static void observe(const filter *f, const double *y, const double *factor) {
  int n = f->n;
  const double *diagonal = vector(f, D_DIAGONAL), *d = vector(f, D_MU);
  double *g = matrix(f, G), *rest = vector(f, WORK), *v = vector(f, EPSILON), *omega = vector(f, OMEGA);
  for (int i = 0; i < n; i++) {
    rest[i] = d[i] - diagonal[i] * y[i];
    for (int j = 0; j < n; j++) g[i * n + j] = diagonal[i] * factor[i * n + j];
  }
  dv_chain_factor(matrix(f, U), matrix(f, X), factor, g, n);
  clear(v, n);
  clear(omega, n);
  dv_add_applied(v, 1, factor, true, rest, n);
  dv_add_applied(omega, 1, matrix(f, X), false, v, n);
}

/* z from y, the factor of its noise and the result of `observe`; writes w and q. */
static void draw(const filter *f, const double *y, const double *factor) {
  int n = f->n;
  const dvbf_real *eps = at(f, f->op->in[EPS]);
  const double *u = matrix(f, U), *omega = vector(f, OMEGA);
  double *w = vector(f, EPSILON), *z = vector(f, Z);
  dvbf_real *w_out = at(f, f->op->out[W]), *q = at(f, f->op->out[Q]);
  for (int i = 0; i < n; i++) w[i] = (double)eps[i];
  dv_chain_unfactor(u, w, n);
  for (int i = 0; i < n; i++) {
    w[i] += omega[i];
    z[i] = y[i];
    w_out[i] = (dvbf_real)w[i];
    q[i] = (dvbf_real)omega[i];
    q[n + i] = (dvbf_real)-dv_log(u[i * n + i]);
  }
  dv_add_applied(z, 1, factor, false, w, n);
}

/* The update by an observed frame. */
static void see(const filter *f) {
  int n = f->n;
  double *mean = vector(f, MEAN), *c = matrix(f, C), *work = matrix(f, G);
  dv_potential_read(vector(f, D_DIAGONAL), vector(f, D_MU), at(f, f->op->in[HEAD]), f->data->low,
                    f->data->high, true, n);
  if (f->data->particles) {
    observe(f, vector(f, Y), matrix(f, L));
    draw(f, vector(f, Y), matrix(f, L));
  }
  memcpy(c, matrix(f, B), (size_t)n * (size_t)n * sizeof *c);
  dv_factor(c, n);
  observe(f, mean, c);
  if (!f->data->particles) draw(f, mean, c);
  dv_add_applied(mean, 1, c, false, vector(f, OMEGA), n);
  dv_set_product(work, c, false, matrix(f, X), false, n);
  dv_set_product(matrix(f, B), work, false, c, true, n);
}

/* The step of z without a frame. */
static void go_on(const filter *f) {
  int n = f->n;
  const dvbf_real *eps = at(f, f->op->in[EPS]);
  double *w = vector(f, EPSILON), *z = vector(f, Z);
  dvbf_real *w_out = at(f, f->op->out[W]), *q = at(f, f->op->out[Q]);
  for (int i = 0; i < n; i++) w[i] = (double)eps[i];
  memcpy(z, vector(f, Y), (size_t)n * sizeof *z);
  dv_add_applied(z, 1, matrix(f, L), false, w, n);
  for (int i = 0; i < n && w_out; i++) {
    w_out[i] = eps[i];
    q[i] = q[n + i] = 0;
  }
}

static void forward(const dvbf_op *op, dvbf_run *run) {
  filter f = begin_filter(op, run);
  for (f.row = 0; f.row < op->out[STATE].rows; f.row++) {
    const dvbf_real *use = at(&f, op->in[USE]);
    predict(&f);
    (op->in[HEAD].buffer >= 0 && (!use || *use > 0) ? see : go_on)(&f);
    dv_chain_write(at(&f, op->out[STATE]), vector(&f, Z), vector(&f, MEAN), matrix(&f, B), f.n);
  }
}

static void backward(const dvbf_op *op, dvbf_run *run) {
  filter f = begin_filter(op, run);
  int n = f.n, half = n * (n + 1) / 2;
  const dvbf_real *from = dvbf_gradient_at(run, op->out[STATE]);
  dvbf_real *to = dvbf_gradient_at(run, op->in[GIVEN]), *drift = dvbf_gradient_at(run, op->in[DRIFT]);
  double *dz = vector(&f, Z), *dm = vector(&f, M), *dp = matrix(&f, P), *work = matrix(&f, G),
         *back = matrix(&f, B), *sum = vector(&f, WORK);
  for (int r = 0; r < op->out[STATE].rows; r++, from += 2 * n + half, to += 2 * n + half) {
    dv_chain_read(from, dz, dm, dp, n); /* entries off the diagonal stand for two */
    for (int i = 0; i < n * n; i++) dp[i] *= i % (n + 1) ? 0.5 : 1;
    for (int i = 0; i < n && drift; i++) drift[r * n + i] += (dvbf_real)(dz[i] + dm[i]);
    for (int k = 0; k < 2; k++) {
      clear(sum, n);
      dv_add_applied(sum, 1, matrix(&f, A), true, k ? dm : dz, n);
      for (int i = 0; i < n; i++) to[k * n + i] += (dvbf_real)sum[i];
    }
    dv_set_product(work, matrix(&f, A), true, dp, false, n);
    dv_set_product(back, work, false, matrix(&f, A), false, n);
    dvbf_real *cov = to + 2 * n;
    for (int i = 0; i < n; i++)
      for (int j = 0; j <= i; j++)
        *cov++ += (dvbf_real)(j == i ? back[i * n + i] : back[i * n + j] + back[j * n + i]);
  }
}

static const dvbf_op_class filter_class = {"kalman-step", forward, NULL, NULL};
static const dvbf_op_class move_class = {"kalman-move", forward, backward, NULL};

void dv_record_kalman_step(dvbf_graph *g, const dv_kalman_step *s) {
  int n = s->noise.cols;
  size_t room = (size_t)MATRICES * (size_t)n * (size_t)n + (size_t)VECTORS * (size_t)n;
  kalman_data data = {n, s->low, s->high, s->particles};
  dvbf_value in[INPUTS] = {[GIVEN] = s->given,  [HEAD] = s->head, [DRIFT] = s->drift, [FROM_Z] = s->from_z,
                           [NOISE] = s->factor, [EPS] = s->noise, [USE] = s->use,     [ROOM] = DVBF_NONE};
  dvbf_value out[OUTPUTS] = {[STATE] = s->state, [W] = s->w, [Q] = s->q};
  in[ROOM] = dvbf_slab_shared_constant(g, 1, (int)(room * (sizeof(double) / sizeof(dvbf_real))));
  dvbf_record(g, s->head.buffer < 0 ? &move_class : &filter_class, INPUTS, in, OUTPUTS, out, &data,
              sizeof data);
}
