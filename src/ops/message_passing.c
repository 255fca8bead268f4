/* Message passing along the chain of a linear Gaussian system (Johnson et al. 2016): the exact posterior,
 * samples, moments and KL of a structured autoencoder, with gradients by hand (dv_record_messages); and
 * matrix helpers shared with kalman_step.c (chain.h). In terms of w no noise is ever inverted, and K >= I is
 * well conditioned. Backward walks a sequence again instead of keeping its forward pass. */
#include "math/algebra.h"
#include "math/portable.h"
#include "ops/chain.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* The chain z_1 = m + L_1 w_1, z_t = A z_{t-1} + c_t + L w_t with w ~ N(0, I), has a potential exp(-z'D_t z /
 * 2 + d_t'z) with diagonal D_t for every observed frame. Messages go backwards in time, samples and moments
 * forwards:
 *
 *   J_t = D_t + A'J~A    h_t = d_t + A'(h~ - J~c)    of t + 1: all that is known of z_t from frame t on
 *   G = J L    K = I + L'G = U'U    X = K^-1    J~ = J - G X G'    h~ = h - G X L'h
 *
 *   q(w_t | z_{t-1}) = N(X (L'h - G'y), X)    y = A z_{t-1} + c_t, at t = 1 m
 *   z_t = y + L (X (L'h - G'y) + U^-1 eps)
 *
 * With mean a = A m_{t-1} + c and covariance B = A P_{t-1} A' of y, e = X (L'h - G'a) and F = I - L X G':
 *
 *   m_t = a + L e    P_t = F B F' + L X L'
 *   kl_t = [tr X - n + ln det K + e'e + tr(X G'B G X)] / 2 = E KL(q(w_t | z_{t-1}) || N(0, I))
 *
 * Outputs are the state (z_t, m_t, P_t), kl, w and what weighs a path: the mean of q(w_t | z_{t-1}) and -ln
 * of the diagonal of U, whose sum is half of -ln det K.
 *
 * Gradients: d of a value is that of the objective by it, Y symmetric where the value is. Backwards in time,
 * from dz, dm, dP and k = d kl_t with the temperature c on all but ln det K:
 *
 *   dw = L'dz                v = L'h - G'y          dv = X dw
 *   dX += dw v'              dU -= U'^-1 dw (U^-1 eps)'
 *   dL += dz w' + h dv'      dh += L dv             dG -= y dv'         dy = dz - G dv
 *   the same of the mean, where de = L'dm + c k e
 *   dB = F'dP F + c k N N' / 2, N = G X             dF = 2 dP F B
 *   dL += 2 dP L X - dF G X                         dG += c k B N X - dF'L X
 *   dX += L'dP L - L'dF G + c k (G'B N + I / 2)     dK += k X / 2
 *   dA += da m' + dy z' + 2 dB A P                  dc = da + dy
 *   of t - 1: dz = A'dy, dm = A'da, dP = A'dB A
 *
 * Then forwards in time, along the messages:
 *
 *   dJ~ = A dJ A' - A dh c'    dh~ = A dh    dc -= J~A dh    dA += 2 J~A dJ + (h~ - J~c) dh'      of t - 1
 *   dJ += dJ~    dG -= 2 dJ~G X + dh~ (X L'h)'    dX -= G'dJ~G + G'dh~ (L'h)'    dk = -X G'dh~
 *   dL += h dk'  dh += dh~ + L dk
 *   dK += -X dX X + U^-1 S U'^-1, S = lower half of U dU', its diagonal halved, symmetrised
 *   dG += L dK   dL += G dK + J dG   dJ += dG L'
 *   of the head: dmu = D dh, d ln sigma = -2 D (dJ_ii + mu dh), 0 outside its limits */

enum { HEAD, DRIFT, FROM_Z, NOISE, START, SPREAD, EPS, USE, ROOM, INPUTS };
enum { STATE, KL, W, Q, OUTPUTS };

typedef struct messages_data {
  int n;
  double low, high;
  int temperature;
} messages_data;

/* ---- Memory ---- */

/* Memory of a step: matrices [n][n], then vectors [n]. */
enum { M_J, M_G, M_X, M_U, M_JT, M_P, M_B, D_G, D_X, D_K, D_U, MATRICES };
enum { V_D, V_H, V_HT, V_Z, V_M, V_Y, V_A, V_W, V_E, V_S, V_MU, D_H, D_C, VECTORS };
/* Memory of a chain: A, L, L_1 and m with their gradients, gradients that go from step to step, and work. */
enum { A, L, L1, D_A, D_L, D_L1, D_P, D_B, D_JT, D_J, WORK, CHAIN_MATRICES = WORK + 4 };
enum { M1, D_M1, D_Z, D_M, D_Y, D_MEAN, D_HT, WORK_VECTOR, CHAIN_VECTORS = WORK_VECTOR + 3 };

static size_t step_size(int n) {
  return (size_t)MATRICES * (size_t)n * (size_t)n + (size_t)VECTORS * (size_t)n + 1;
}

static size_t chain_size(int n, int steps) {
  return step_size(n) * (size_t)steps + (size_t)CHAIN_MATRICES * (size_t)n * (size_t)n +
         (size_t)CHAIN_VECTORS * (size_t)n;
}

typedef struct chain {
  const dvbf_op *op;
  const dvbf_run *run;
  const messages_data *data;
  double *room;
  int n, steps, row;
} chain;

static double *matrix(const chain *c, int t, int which) {
  return c->room + step_size(c->n) * (size_t)t + (size_t)which * (size_t)c->n * (size_t)c->n;
}

static double *vector(const chain *c, int t, int which) {
  return matrix(c, t, MATRICES) + (size_t)which * (size_t)c->n;
}

static double *log_det(const chain *c, int t) {
  return vector(c, t, VECTORS);
}

static double *common(const chain *c, int which) {
  return c->room + step_size(c->n) * (size_t)c->steps + (size_t)which * (size_t)c->n * (size_t)c->n;
}

static double *common_vector(const chain *c, int which) {
  return common(c, CHAIN_MATRICES) + (size_t)which * (size_t)c->n;
}

static const double *factor(const chain *c, int t) {
  return common(c, t ? L : L1);
}

static void clear(double *values, int count) {
  memset(values, 0, (size_t)count * sizeof *values);
}

/* The row of step t of a value, or of its gradient; NULL if there is none. */
static dvbf_real *at(const chain *c, dvbf_value v, int t) {
  return v.buffer < 0 ? NULL : dv_at(c->run, dvbf_steps(v, t, 1)) + (size_t)c->row * (size_t)v.cols;
}

static dvbf_real *back_at(const chain *c, dvbf_value v, int t) {
  dvbf_real *back = v.buffer < 0 ? NULL : dvbf_gradient_at(c->run, dvbf_steps(v, t, 1));
  return back ? back + (size_t)c->row * (size_t)v.cols : NULL;
}

static bool is_seen(const chain *c, int t) {
  const dvbf_value *in = c->op->in;
  return t < in[HEAD].steps && at(c, in[USE], t)[0] > 0;
}

static void add_reals(double *out, const dvbf_real *from, int n) {
  for (int i = 0; i < n; i++) out[i] += (double)from[i];
}

/* c_t, which is the drift of the step into t. */
static void add_drift(const chain *c, double *out, int t) {
  const dvbf_real *drift = at(c, c->op->in[DRIFT], t - 1);
  if (drift) add_reals(out, drift, c->n);
}

static chain begin_chain(const dvbf_op *op, const dvbf_run *run) {
  const messages_data *d = op->data;
  int n = d->n;
  chain c = {.op = op, .run = run, .data = d, .n = n, .steps = op->out[STATE].steps};
  c.room = (double *)(void *)dv_at(run, op->in[ROOM]);
  const dvbf_real *from = dv_at(run, op->in[FROM_Z]);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) common(&c, A)[i * n + j] = from ? (double)from[j * n + i] : 0;
  if (from) dv_factor_read(common(&c, L), dv_at(run, op->in[NOISE]), n);
  dv_factor_read(common(&c, L1), dv_at(run, op->in[SPREAD]), n);
  clear(common_vector(&c, M1), n);
  add_reals(common_vector(&c, M1), dv_at(run, op->in[START]), n);
  return c;
}

/* ---- Forward ---- */

/* J_t and h_t, from the messages of t + 1. */
static void gather(const chain *c, int t) {
  int n = c->n;
  double *j = matrix(c, t, M_J), *h = vector(c, t, V_H), *d = vector(c, t, V_D), *mu = vector(c, t, V_MU);
  double *work = common(c, WORK), *q = common_vector(c, WORK_VECTOR);
  bool seen = is_seen(c, t);
  clear(j, n * n);
  dv_potential_read(d, h, seen ? at(c, c->op->in[HEAD], t) : NULL, c->data->low, c->data->high, seen, n);
  for (int i = 0; i < n; i++) {
    j[i * n + i] = d[i];
    mu[i] = seen ? h[i] / d[i] : 0;
  }
  if (t + 1 == c->steps) return;
  const double *later = matrix(c, t + 1, M_JT), *from_z = common(c, A);
  dv_set_product(work, later, false, from_z, false, n);
  dv_add_product(j, 1, from_z, true, work, false, n);
  dv_symmetrise(j, n);
  double *drift = q + n;
  clear(drift, n);
  add_drift(c, drift, t + 1);
  memcpy(q, vector(c, t + 1, V_HT), (size_t)n * sizeof *q);
  dv_add_applied(q, -1, later, false, drift, n);
  dv_add_applied(h, 1, from_z, true, q, n);
}

/* G, K, X and what is passed on. */
static void pass_message(const chain *c, int t) {
  int n = c->n;
  const double *l = factor(c, t), *j = matrix(c, t, M_J), *h = vector(c, t, V_H);
  double *g = matrix(c, t, M_G), *x = matrix(c, t, M_X), *jt = matrix(c, t, M_JT), *ht = vector(c, t, V_HT);
  double *work = common(c, WORK), *k = common_vector(c, WORK_VECTOR), *xk = k + n;
  dv_set_product(g, j, false, l, false, n);
  *log_det(c, t) = dv_chain_factor(matrix(c, t, M_U), x, l, g, n);
  dv_set_product(work, g, false, x, false, n);
  memcpy(jt, j, (size_t)n * (size_t)n * sizeof *jt);
  dv_add_product(jt, -1, work, false, g, true, n);
  dv_symmetrise(jt, n);
  clear(k, 2 * n);
  dv_add_applied(k, 1, l, true, h, n);
  dv_add_applied(xk, 1, x, false, k, n);
  memcpy(ht, h, (size_t)n * sizeof *ht);
  dv_add_applied(ht, -1, g, false, xk, n);
}

/* out = X (L'h - G'y) */
static void mean_of_w(const chain *c, int t, const double *y, double *out) {
  int n = c->n;
  double *v = common_vector(c, WORK_VECTOR);
  clear(v, n);
  clear(out, n);
  dv_add_applied(v, 1, factor(c, t), true, vector(c, t, V_H), n);
  dv_add_applied(v, -1, matrix(c, t, M_G), true, y, n);
  dv_add_applied(out, 1, matrix(c, t, M_X), false, v, n);
}

/* y, and its mean and covariance. */
static void move_on(const chain *c, int t) {
  int n = c->n;
  double *y = vector(c, t, V_Y), *a = vector(c, t, V_A), *b = matrix(c, t, M_B), *work = common(c, WORK);
  const double *from_z = common(c, A);
  clear(y, n);
  clear(a, n);
  clear(b, n * n);
  if (!t) {
    memcpy(y, common_vector(c, M1), (size_t)n * sizeof *y);
    memcpy(a, y, (size_t)n * sizeof *a);
    return;
  }
  dv_add_applied(y, 1, from_z, false, vector(c, t - 1, V_Z), n);
  dv_add_applied(a, 1, from_z, false, vector(c, t - 1, V_M), n);
  add_drift(c, y, t);
  add_drift(c, a, t);
  dv_set_product(work, from_z, false, matrix(c, t - 1, M_P), false, n);
  dv_add_product(b, 1, work, false, from_z, true, n);
}

/* F = I - L X G' */
static void find_f(const chain *c, int t, double *f, double *work) {
  int n = c->n;
  dv_set_product(work, factor(c, t), false, matrix(c, t, M_X), false, n);
  clear(f, n * n);
  for (int i = 0; i < n; i++) f[i * n + i] = 1;
  dv_add_product(f, -1, work, false, matrix(c, t, M_G), true, n);
}

/* z, m and P of step t. */
static void draw(const chain *c, int t) {
  int n = c->n;
  double *w = vector(c, t, V_W), *z = vector(c, t, V_Z), *m = vector(c, t, V_M), *e = vector(c, t, V_E);
  double *noise = vector(c, t, V_S), *p = matrix(c, t, M_P), *f = common(c, WORK), *work = f + n * n;
  const double *l = factor(c, t);
  mean_of_w(c, t, vector(c, t, V_Y), w);
  mean_of_w(c, t, vector(c, t, V_A), e);
  clear(noise, n);
  add_reals(noise, at(c, c->op->in[EPS], t), n);
  dv_chain_unfactor(matrix(c, t, M_U), noise, n);
  for (int i = 0; i < n; i++) w[i] += noise[i];
  memcpy(z, vector(c, t, V_Y), (size_t)n * sizeof *z);
  memcpy(m, vector(c, t, V_A), (size_t)n * sizeof *m);
  dv_add_applied(z, 1, l, false, w, n);
  dv_add_applied(m, 1, l, false, e, n);
  find_f(c, t, f, work); /* leaves L X in work */
  clear(p, n * n);
  dv_add_product(p, 1, work, false, l, true, n);
  dv_set_product(work, f, false, matrix(c, t, M_B), false, n);
  dv_add_product(p, 1, work, false, f, true, n);
  dv_symmetrise(p, n);
}

static double divergence(const chain *c, int t) {
  int n = c->n;
  const double *x = matrix(c, t, M_X), *e = vector(c, t, V_E);
  double *gx = common(c, WORK), *bgx = gx + n * n, sum = *log_det(c, t) - n;
  dv_set_product(gx, matrix(c, t, M_G), false, x, false, n);
  dv_set_product(bgx, matrix(c, t, M_B), false, gx, false, n);
  for (int i = 0; i < n; i++) sum += x[i * n + i] + e[i] * e[i];
  for (int i = 0; i < n * n; i++) sum += gx[i] * bgx[i];
  return 0.5 * sum;
}

static void walk(const chain *c) {
  for (int t = c->steps - 1; t >= 0; t--) {
    gather(c, t);
    pass_message(c, t);
  }
  for (int t = 0; t < c->steps; t++) {
    move_on(c, t);
    draw(c, t);
  }
}

static void forward(const dvbf_op *op, dvbf_run *run) {
  chain c = begin_chain(op, run);
  int n = c.n;
  for (c.row = 0; c.row < op->out[STATE].rows; c.row++) {
    walk(&c);
    for (int t = 0; t < c.steps; t++) {
      const double *w = vector(&c, t, V_W), *noise = vector(&c, t, V_S), *u = matrix(&c, t, M_U);
      dvbf_real *q = at(&c, op->out[Q], t);
      dv_chain_write(at(&c, op->out[STATE], t), vector(&c, t, V_Z), vector(&c, t, V_M), matrix(&c, t, M_P),
                     n);
      *at(&c, op->out[KL], t) = (dvbf_real)divergence(&c, t);
      for (int i = 0; i < n; i++) {
        at(&c, op->out[W], t)[i] = (dvbf_real)w[i];
        q[i] = (dvbf_real)(w[i] - noise[i]);
        q[n + i] = (dvbf_real)-dv_log(u[i * n + i]);
      }
    }
  }
}

/* ---- Backward ---- */

static double *factor_back(const chain *c, int t) {
  return common(c, t ? D_L : D_L1);
}

/* Adds the gradients of the state that others have left. */
static void add_outer_gradients(const chain *c, int t) {
  const dvbf_real *from = back_at(c, c->op->out[STATE], t);
  int n = c->n;
  double *dp = common(c, D_P);
  add_reals(common_vector(c, D_Z), from, n);
  add_reals(common_vector(c, D_M), from + n, n);
  from += 2 * n;
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++, from++) {
      dp[i * n + j] += 0.5 * (double)*from;
      dp[j * n + i] += 0.5 * (double)*from;
    }
}

/* Of w = X (L'h - G'y) with gradient dw; adds to dy. */
static void mean_back(const chain *c, int t, const double *y, const double *dw, double *dy) {
  int n = c->n;
  const double *l = factor(c, t), *h = vector(c, t, V_H), *x = matrix(c, t, M_X), *g = matrix(c, t, M_G);
  double *v = common_vector(c, WORK_VECTOR), *dv = v + n;
  clear(v, 2 * n);
  dv_add_applied(v, 1, l, true, h, n);
  dv_add_applied(v, -1, g, true, y, n);
  dv_add_applied(dv, 1, x, false, dw, n);
  dv_add_outer(matrix(c, t, D_X), 1, dw, v, n);
  dv_add_outer(factor_back(c, t), 1, h, dv, n);
  dv_add_applied(vector(c, t, D_H), 1, l, false, dv, n);
  dv_add_outer(matrix(c, t, D_G), -1, y, dv, n);
  dv_add_applied(dy, -1, g, false, dv, n);
}

/* Of z and m, to y and a; k is the gradient of kl, annealed. */
static void draw_back(const chain *c, int t, double k) {
  int n = c->n;
  const double *l = factor(c, t), *e = vector(c, t, V_E), *dz = common_vector(c, D_Z),
               *dm = common_vector(c, D_M);
  double *dw = common_vector(c, WORK_VECTOR + 2), *dy = common_vector(c, D_Y), *da = common_vector(c, D_MEAN);
  clear(dw, n);
  memcpy(dy, dz, (size_t)n * sizeof *dy);
  memcpy(da, dm, (size_t)n * sizeof *da);
  dv_add_applied(dw, 1, l, true, dz, n);
  dv_add_outer(factor_back(c, t), 1, dz, vector(c, t, V_W), n);
  mean_back(c, t, vector(c, t, V_Y), dw, dy);
  dv_solve_lower(matrix(c, t, M_U), n, dw, 1);
  dv_add_outer(matrix(c, t, D_U), -1, dw, vector(c, t, V_S), n);
  for (int i = 0; i < n; i++) dw[i] = k * e[i];
  dv_add_applied(dw, 1, l, true, dm, n);
  dv_add_outer(factor_back(c, t), 1, dm, e, n);
  mean_back(c, t, vector(c, t, V_A), dw, da);
}

/* Of P and of what kl has of X and B, to B. */
static void spread_back(const chain *c, int t, double k) {
  int n = c->n;
  const double *dp = common(c, D_P);
  const double *l = factor(c, t), *x = matrix(c, t, M_X), *g = matrix(c, t, M_G), *b = matrix(c, t, M_B);
  double *db = common(c, D_B), *f = common(c, WORK), *df = common(c, WORK + 1), *one = common(c, WORK + 2),
         *gx = common(c, WORK + 3), *dx = matrix(c, t, D_X), *dg = matrix(c, t, D_G), *dl = factor_back(c, t);
  find_f(c, t, f, one); /* leaves L X in one */
  dv_add_product(dl, 2, dp, false, one, false, n);
  dv_set_product(gx, dp, false, f, false, n);
  dv_set_product(db, f, true, gx, false, n);
  dv_set_product(df, gx, false, b, false, n);
  for (int i = 0; i < n * n; i++) df[i] *= 2;
  dv_add_product(dg, -1, df, true, one, false, n);
  dv_set_product(one, dp, false, l, false, n);
  dv_add_product(dx, 1, l, true, one, false, n);
  dv_set_product(one, df, false, g, false, n);
  dv_add_product(dx, -1, l, true, one, false, n);
  dv_add_product(dl, -1, one, false, x, false, n);
  dv_set_product(gx, g, false, x, false, n);
  dv_set_product(one, b, false, gx, false, n);
  dv_add_product(db, 0.5 * k, gx, false, gx, true, n);
  dv_add_product(dg, k, one, false, x, false, n);
  dv_add_product(dx, k, g, true, one, false, n);
  for (int i = 0; i < n; i++) dx[i * n + i] += 0.5 * k;
}

/* Of y, a and B: to the step before, or to the first state. */
static void move_back(const chain *c, int t) {
  int n = c->n;
  const double *from_z = common(c, A), *dy = common_vector(c, D_Y), *da = common_vector(c, D_MEAN);
  double *work = common(c, WORK), *dc = vector(c, t, D_C), *db = common(c, D_B);
  clear(common_vector(c, D_Z), 2 * n);
  clear(common(c, D_P), n * n);
  for (int i = 0; i < n; i++) dc[i] = dy[i] + da[i];
  if (!t) {
    for (int i = 0; i < n; i++) common_vector(c, D_M1)[i] += dc[i];
    return;
  }
  dv_symmetrise(db, n);
  dv_add_outer(common(c, D_A), 1, dy, vector(c, t - 1, V_Z), n);
  dv_add_outer(common(c, D_A), 1, da, vector(c, t - 1, V_M), n);
  dv_set_product(work, db, false, from_z, false, n);
  dv_add_product(common(c, D_A), 2, work, false, matrix(c, t - 1, M_P), false, n);
  dv_add_product(common(c, D_P), 1, from_z, true, work, false, n);
  dv_add_applied(common_vector(c, D_Z), 1, from_z, true, dy, n);
  dv_add_applied(common_vector(c, D_M), 1, from_z, true, da, n);
}

/* Backwards in time, through samples and moments. */
static void samples_back(const chain *c) {
  int n = c->n;
  double temperature = c->run->scalars[c->data->temperature];
  clear(common_vector(c, D_Z), 2 * n);
  clear(common(c, D_P), n * n);
  for (int t = c->steps - 1; t >= 0; t--) {
    double k = (double)*back_at(c, c->op->out[KL], t);
    clear(matrix(c, t, D_G), 4 * n * n);
    clear(vector(c, t, D_H), 2 * n);
    add_outer_gradients(c, t);
    draw_back(c, t, temperature * k);
    spread_back(c, t, temperature * k);
    for (int i = 0; i < n * n; i++) matrix(c, t, D_K)[i] += 0.5 * k * matrix(c, t, M_X)[i];
    move_back(c, t);
  }
}

/* dJ~ and dh~ of step t from dJ and dh of the step before. */
static void gather_back(const chain *c, int t) {
  int n = c->n;
  const double *from_z = common(c, A), *dj = common(c, D_J), *dh = vector(c, t - 1, D_H),
               *jt = matrix(c, t, M_JT);
  double *djt = common(c, D_JT), *dht = common_vector(c, D_HT), *work = common(c, WORK),
         *drift = common_vector(c, WORK_VECTOR), *q = common_vector(c, WORK_VECTOR + 1);
  dv_set_product(work, from_z, false, dj, false, n);
  dv_set_product(djt, work, false, from_z, true, n);
  dv_add_product(common(c, D_A), 2, jt, false, work, false, n);
  clear(dht, n);
  dv_add_applied(dht, 1, from_z, false, dh, n);
  clear(drift, n);
  add_drift(c, drift, t);
  dv_add_outer(djt, -1, dht, drift, n);
  dv_symmetrise(djt, n);
  dv_add_applied(vector(c, t, D_C), -1, jt, false, dht, n);
  memcpy(q, vector(c, t, V_HT), (size_t)n * sizeof *q);
  dv_add_applied(q, -1, jt, false, drift, n);
  dv_add_outer(common(c, D_A), 1, q, dh, n);
}

/* To J, h, G, X and L of step t from dJ~ and dh~. */
static void pass_back(const chain *c, int t) {
  int n = c->n;
  const double *djt = common(c, D_JT), *dht = common_vector(c, D_HT), *g = matrix(c, t, M_G),
               *x = matrix(c, t, M_X), *l = factor(c, t), *h = vector(c, t, V_H);
  double *work = common(c, WORK), *dg = matrix(c, t, D_G), *dx = matrix(c, t, D_X), *dh = vector(c, t, D_H),
         *k = common_vector(c, WORK_VECTOR), *other = k + n, *dk = other + n;
  dv_set_product(work, djt, false, g, false, n);
  dv_add_product(dg, -2, work, false, x, false, n);
  dv_add_product(dx, -1, g, true, work, false, n);
  clear(k, 3 * n);
  dv_add_applied(k, 1, l, true, h, n);
  dv_add_applied(other, 1, x, false, k, n); /* X L'h */
  dv_add_outer(dg, -1, dht, other, n);
  clear(other, n);
  dv_add_applied(other, 1, g, true, dht, n); /* G'dh~ */
  dv_add_outer(dx, -1, other, k, n);
  dv_add_applied(dk, -1, x, false, other, n);
  dv_add_outer(factor_back(c, t), 1, h, dk, n);
  for (int i = 0; i < n; i++) dh[i] += dht[i];
  dv_add_applied(dh, 1, l, false, dk, n);
}

/* From X and U to K, to G and to J, which is left in D_J. */
static void factor_chain_back(const chain *c, int t) {
  int n = c->n;
  const double *x = matrix(c, t, M_X), *u = matrix(c, t, M_U), *l = factor(c, t), *g = matrix(c, t, M_G);
  double *s = common(c, WORK), *work = common(c, WORK + 1), *dk = matrix(c, t, D_K), *dg = matrix(c, t, D_G),
         *dj = common(c, D_J), *dl = factor_back(c, t);
  dv_set_product(work, x, false, matrix(c, t, D_X), false, n);
  dv_add_product(dk, -1, work, false, x, false, n);
  dv_set_product(s, u, false, matrix(c, t, D_U), true, n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) s[i * n + j] *= j > i ? 0 : j == i ? 0.5 : 1;
  dv_solve_upper(u, n, s, n); /* U^-1 S, then the same from the other side */
  dv_transpose(work, s, n, n);
  dv_solve_upper(u, n, work, n);
  for (int i = 0; i < n * n; i++) dk[i] += work[i];
  dv_symmetrise(dk, n);
  dv_add_product(dg, 1, l, false, dk, false, n);
  dv_add_product(dl, 1, g, false, dk, false, n);
  dv_add_product(dl, 1, matrix(c, t, M_J), false, dg, false, n);
  dv_set_product(dj, dg, false, l, true, n);
  if (t)
    for (int i = 0; i < n * n; i++) dj[i] += common(c, D_JT)[i];
  dv_symmetrise(dj, n);
}

/* To the head and the drift of step t. */
static void inputs_back(const chain *c, int t) {
  int n = c->n;
  const double *d = vector(c, t, V_D), *mu = vector(c, t, V_MU), *dh = vector(c, t, D_H),
               *dj = common(c, D_J);
  dvbf_real *drift = t ? back_at(c, c->op->in[DRIFT], t - 1) : NULL;
  for (int i = 0; i < n && drift; i++) drift[i] += (dvbf_real)vector(c, t, D_C)[i];
  if (!is_seen(c, t)) return;
  const dvbf_real *head = at(c, c->op->in[HEAD], t);
  dvbf_real *back = back_at(c, c->op->in[HEAD], t);
  for (int i = 0; i < n; i++) {
    back[i] += (dvbf_real)(d[i] * dh[i]);
    if ((double)head[n + i] < c->data->low || (double)head[n + i] > c->data->high) continue;
    back[n + i] -= (dvbf_real)(2 * d[i] * (dj[i * n + i] + mu[i] * dh[i]));
  }
}

/* Forwards in time, along the messages. */
static void messages_back(const chain *c) {
  for (int t = 0; t < c->steps; t++) {
    if (t) gather_back(c, t);
    if (t) pass_back(c, t);
    factor_chain_back(c, t);
    inputs_back(c, t);
  }
}

static void parameters_back(const chain *c) {
  int n = c->n;
  const dvbf_op *op = c->op;
  dvbf_real *from_z = dvbf_gradient_at(c->run, op->in[FROM_Z]),
            *start = dvbf_gradient_at(c->run, op->in[START]);
  for (int i = 0; i < n && from_z; i++)
    for (int j = 0; j < n; j++) from_z[j * n + i] += (dvbf_real)common(c, D_A)[i * n + j];
  for (int i = 0; i < n; i++) start[i] += (dvbf_real)common_vector(c, D_M1)[i];
  if (from_z) dv_factor_gradient(dvbf_gradient_at(c->run, op->in[NOISE]), common(c, L), common(c, D_L), n);
  dv_factor_gradient(dvbf_gradient_at(c->run, op->in[SPREAD]), common(c, L1), common(c, D_L1), n);
}

/* The steps of a row are computed once more: nothing of them is kept. */
static void backward(const dvbf_op *op, dvbf_run *run) {
  chain c = begin_chain(op, run);
  clear(common(&c, D_A), 3 * c.n * c.n);
  clear(common_vector(&c, D_M1), c.n);
  for (c.row = 0; c.row < op->out[STATE].rows; c.row++) {
    walk(&c);
    samples_back(&c);
    messages_back(&c);
  }
  parameters_back(&c);
}

static const dvbf_op_class messages_class = {"messages", forward, backward, NULL};

void dv_record_messages(dvbf_graph *g, const dv_messages *m) {
  int n = m->noise.cols, steps = m->state.steps;
  size_t room = chain_size(n, steps) * (sizeof(double) / sizeof(dvbf_real));
  messages_data data = {n, m->low, m->high, dvbf_scalar(g, DVBF_TEMPERATURE, 1)};
  if (m->state.cols != dv_chain_state(n) || room > INT_MAX) {
    dvbf_refuse(g, "messages of %d states cannot be passed along %d steps; fewer of either can", n, steps);
    return;
  }
  dvbf_value in[INPUTS] = {
      [HEAD] = m->head,     [DRIFT] = m->drift, [FROM_Z] = m->from_z, [NOISE] = m->factor, [START] = m->start,
      [SPREAD] = m->spread, [EPS] = m->noise,   [USE] = m->use,       [ROOM] = DVBF_NONE};
  dvbf_value out[OUTPUTS] = {[STATE] = m->state, [KL] = m->kl, [W] = m->w, [Q] = m->q};
  in[ROOM] = dvbf_slab_shared_constant(g, 1, (int)room);
  dvbf_record(g, &messages_class, INPUTS, in, OUTPUTS, out, &data, sizeof data);
}

/* ---- Matrices of a chain ---- */

/* Loops run along rows of out and, but for a transposed b, of b. */
void dv_add_product(double *out, double f, const double *a, bool a_transposed, const double *b,
                    bool b_transposed, int n) {
  for (int i = 0; i < n; i++) {
    double *restrict row = out + (size_t)i * (size_t)n;
    for (int k = 0; k < n; k++) {
      double by = f * (a_transposed ? a[k * n + i] : a[i * n + k]);
      const double *from = b_transposed ? b + k : b + (size_t)k * (size_t)n;
      if (by == 0) continue; /* factors are triangular */
      if (b_transposed)
        for (int j = 0; j < n; j++) row[j] += by * from[(size_t)j * (size_t)n];
      else
        for (int j = 0; j < n; j++) row[j] += by * from[j];
    }
  }
}

void dv_set_product(double *out, const double *a, bool a_transposed, const double *b, bool b_transposed,
                    int n) {
  memset(out, 0, (size_t)n * (size_t)n * sizeof *out);
  dv_add_product(out, 1, a, a_transposed, b, b_transposed, n);
}

void dv_symmetrise(double *a, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++) a[i * n + j] = a[j * n + i] = 0.5 * (a[i * n + j] + a[j * n + i]);
}

void dv_factor_read(double *l, const dvbf_real *from, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      l[i * n + j] = j > i ? 0 : j == i ? dv_exp((double)from[i * n + j]) : (double)from[i * n + j];
}

void dv_factor_gradient(dvbf_real *back, const double *l, const double *l_back, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++)
      back[i * n + j] += (dvbf_real)(l_back[i * n + j] * (j == i ? l[i * n + j] : 1));
}

void dv_potential_read(double *d_matrix, double *d, const dvbf_real *head, double low, double high, bool seen,
                       int n) {
  for (int i = 0; i < n; i++) {
    d_matrix[i] = seen ? dv_exp(-2 * (double)dv_clamp(head[n + i], low, high)) : 0;
    d[i] = seen ? d_matrix[i] * (double)head[i] : 0;
  }
}

double dv_chain_factor(double *u, double *x, const double *l, const double *g, int n) {
  double log_det = 0;
  dv_set_product(u, l, true, g, false, n);
  for (int i = 0; i < n; i++) u[i * n + i] += 1;
  if (!dv_cholesky(u, n))
    for (int i = 0; i < n; i++) u[i * n + i] = (double)NAN;
  for (int i = 0; i < n; i++) {
    log_det += 2 * dv_log(u[i * n + i]);
    for (int j = 0; j < n; j++) x[i * n + j] = i == j;
  }
  dv_solve_lower(u, n, x, n);
  dv_solve_upper(u, n, x, n);
  dv_symmetrise(x, n);
  return log_det;
}

void dv_chain_unfactor(const double *u, double *v, int n) {
  dv_solve_upper(u, n, v, 1);
}

void dv_chain_write(dvbf_real *state, const double *z, const double *mean, const double *cov, int n) {
  for (int i = 0; i < n; i++) *state++ = (dvbf_real)z[i];
  for (int i = 0; i < n; i++) *state++ = (dvbf_real)mean[i];
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) *state++ = (dvbf_real)cov[i * n + j];
}

void dv_chain_read(const dvbf_real *state, double *z, double *mean, double *cov, int n) {
  for (int i = 0; i < n; i++) z[i] = (double)*state++;
  for (int i = 0; i < n; i++) mean[i] = (double)*state++;
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) cov[i * n + j] = cov[j * n + i] = (double)*state++;
}
