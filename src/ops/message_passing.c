/* Message passing along the chain of a linear Gaussian system (Johnson et al. 2016): the exact posterior,
 * samples, moments and KL of a structured autoencoder, with gradients by hand (dv_record_messages); and one
 * step of a Kalman filter along the same chain (dv_record_kalman_step). In terms of w no noise is ever
 * inverted, and K >= I is well conditioned. Backward walks a sequence again instead of keeping its forward
 * pass. */
#include "math/algebra.h"
#include "math/portable.h"
#include "ops/ops.h"

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

/* ---- Matrices [n][n], row-major, in double precision ---- */

/* out += f a b; either may be transposed. Loops run along rows of out and, unless b is transposed, of b. */
static void add_product(double *out, double f, const double *a, bool a_transposed, const double *b,
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

/* out = a b */
static void set_product(double *out, const double *a, bool a_transposed, const double *b, bool b_transposed,
                        int n) {
  memset(out, 0, (size_t)n * (size_t)n * sizeof *out);
  add_product(out, 1, a, a_transposed, b, b_transposed, n);
}

/* out += f a v */
static void add_applied(double *out, double f, const double *a, bool transposed, const double *v, int n) {
  for (int i = 0; i < n; i++) {
    double sum = 0;
    for (int k = 0; k < n; k++) sum += a[transposed ? k * n + i : i * n + k] * v[k];
    out[i] += f * sum;
  }
}

/* out = a v */
static void set_applied(double *out, const double *a, bool transposed, const double *v, int n) {
  memset(out, 0, (size_t)n * sizeof *out);
  add_applied(out, 1, a, transposed, v, n);
}

/* out += f a b' */
static void add_outer(double *out, double f, const double *a, const double *b, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) out[i * n + j] += f * a[i] * b[j];
}

/* a = (a + a') / 2 */
static void symmetrise(double *a, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++) a[i * n + j] = a[j * n + i] = 0.5 * (a[i * n + j] + a[j * n + i]);
}

void dv_factor_read(double *l, const dvbf_real *from, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      l[i * n + j] = j > i ? 0 : j == i ? dv_exp((double)from[i * n + j]) : (double)from[i * n + j];
}

/* Adds the gradient of such a parameter from that of its factor. */
static void factor_gradient(dvbf_real *back, const double *l, const double *l_back, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++)
      back[i * n + j] += (dvbf_real)(l_back[i * n + j] * (j == i ? l[i * n + j] : 1));
}

/* The potential of a frame from its head (mu, ln sigma): D = sigma^-2 and d = D mu; 0 if it is not seen. */
static void potential_read(double *d_matrix, double *d, const dvbf_real *head, double low, double high,
                           bool seen, int n) {
  for (int i = 0; i < n; i++) {
    d_matrix[i] = seen ? dv_exp(-2 * (double)dv_clamp(head[n + i], low, high)) : 0;
    d[i] = seen ? d_matrix[i] * (double)head[i] : 0;
  }
}

/* K = I + L'G with K = U'U, and X = K^-1. If G is not finite, neither is U. Returns ln det K. */
static double chain_factor(double *u, double *x, const double *l, const double *g, int n) {
  double log_det = 0;
  set_product(u, l, true, g, false, n);
  for (int i = 0; i < n; i++) u[i * n + i] += 1;
  if (!dv_cholesky(u, n))
    for (int i = 0; i < n; i++) u[i * n + i] = (double)NAN;
  for (int i = 0; i < n; i++) {
    log_det += 2 * dv_log(u[i * n + i]);
    for (int j = 0; j < n; j++) x[i * n + j] = i == j;
  }
  dv_solve_lower(u, n, x, n);
  dv_solve_upper(u, n, x, n);
  symmetrise(x, n);
  return log_det;
}

static void write_state(dvbf_real *state, const double *z, const double *mean, const double *cov, int n) {
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

/* ---- A chain ---- */

enum { HEADS, DRIFT, MOVE, FACTOR, EPS, USE, MEMORY, PRIOR, SCATTER, CHAIN_IN, GIVEN = PRIOR, STEP_INPUTS };
enum { BELIEF, WHITE, Q, DIVERGENCE, CHAIN_OUT, STEP_OUTPUTS = DIVERGENCE };

typedef struct chain_data {
  int n;
  double low, high; /* of ln sigma */
  int temperature;  /* scalar, of messages */
  bool particles;   /* of a step */
} chain_data;

/* Memory of a step: matrices [n][n], then vectors [n]. */
enum { M_J, M_G, M_X, M_U, M_JT, M_P, M_B, D_G, D_X, D_K, D_U, MATRICES };
enum { V_D, V_H, V_HT, V_Z, V_M, V_Y, V_A, V_W, V_E, V_S, V_MU, D_H, D_C, LOG_DET, VECTORS = LOG_DET };
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
  const chain_data *data;
  double *room;
  int n, steps, row;
} chain;

static double *matrix(const chain *c, int t, int which) {
  return c->room + step_size(c->n) * (size_t)t + (size_t)which * (size_t)c->n * (size_t)c->n;
}

static double *vector(const chain *c, int t, int which) {
  return matrix(c, t, MATRICES) + (size_t)which * (size_t)c->n;
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
  return dv_row(c->run, dvbf_steps(v, t, 1), c->row);
}

static dvbf_real *back_at(const chain *c, dvbf_value v, int t) {
  return dv_row_gradient(c->run, dvbf_steps(v, t, 1), c->row);
}

static bool frame_seen(const chain *c, int t) {
  const dvbf_value *in = c->op->in;
  return t < in[HEADS].steps && at(c, in[USE], t)[0] > 0;
}

static void add_reals(double *out, const dvbf_real *from, int n) {
  for (int i = 0; i < n; i++) out[i] += (double)from[i];
}

/* c_t, which is the drift of the step into t. */
static void add_drift(const chain *c, double *out, int t) {
  const dvbf_real *drift = at(c, c->op->in[DRIFT], t - 1);
  if (drift) add_reals(out, drift, c->n);
}

/* steps = 0: for a single step of the filter. */
static chain begin_chain(const dvbf_op *op, const dvbf_run *run, int steps) {
  const chain_data *d = op->data;
  int n = d->n;
  chain c = {.op = op, .run = run, .data = d, .n = n, .steps = steps};
  c.room = (double *)(void *)dv_at(run, op->in[MEMORY]);
  const dvbf_real *from = dv_at(run, op->in[MOVE]);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) common(&c, A)[i * n + j] = from ? (double)from[j * n + i] : 0;
  if (from) dv_factor_read(common(&c, L), dv_at(run, op->in[FACTOR]), n);
  if (!steps) return c;
  dv_factor_read(common(&c, L1), dv_at(run, op->in[SCATTER]), n);
  clear(common_vector(&c, M1), n);
  add_reals(common_vector(&c, M1), dv_at(run, op->in[PRIOR]), n);
  return c;
}

/* ---- Forward ---- */

/* h~ - J~c of step t; c_t stands behind it. */
static const double *passed_on(const chain *c, int t) {
  int n = c->n;
  double *q = common_vector(c, WORK_VECTOR), *drift = q + n;
  clear(drift, n);
  add_drift(c, drift, t);
  memcpy(q, vector(c, t, V_HT), (size_t)n * sizeof *q);
  add_applied(q, -1, matrix(c, t, M_JT), false, drift, n);
  return q;
}

/* J_t and h_t, from the messages of t + 1. */
static void gather(const chain *c, int t) {
  int n = c->n;
  double *j = matrix(c, t, M_J), *h = vector(c, t, V_H), *d = vector(c, t, V_D), *mu = vector(c, t, V_MU);
  double *work = common(c, WORK);
  bool seen = frame_seen(c, t);
  clear(j, n * n);
  potential_read(d, h, seen ? at(c, c->op->in[HEADS], t) : NULL, c->data->low, c->data->high, seen, n);
  for (int i = 0; i < n; i++) {
    j[i * n + i] = d[i];
    mu[i] = seen ? h[i] / d[i] : 0;
  }
  if (t + 1 == c->steps) return;
  const double *from_z = common(c, A);
  set_product(work, matrix(c, t + 1, M_JT), false, from_z, false, n);
  add_product(j, 1, from_z, true, work, false, n);
  symmetrise(j, n);
  add_applied(h, 1, from_z, true, passed_on(c, t + 1), n);
}

/* G, K, X and what is passed on. */
static void pass_message(const chain *c, int t) {
  int n = c->n;
  const double *l = factor(c, t), *j = matrix(c, t, M_J), *h = vector(c, t, V_H);
  double *g = matrix(c, t, M_G), *x = matrix(c, t, M_X), *jt = matrix(c, t, M_JT), *ht = vector(c, t, V_HT);
  double *work = common(c, WORK), *k = common_vector(c, WORK_VECTOR), *xk = k + n;
  set_product(g, j, false, l, false, n);
  *vector(c, t, LOG_DET) = chain_factor(matrix(c, t, M_U), x, l, g, n);
  set_product(work, g, false, x, false, n);
  memcpy(jt, j, (size_t)n * (size_t)n * sizeof *jt);
  add_product(jt, -1, work, false, g, true, n);
  symmetrise(jt, n);
  set_applied(k, l, true, h, n);
  set_applied(xk, x, false, k, n);
  memcpy(ht, h, (size_t)n * sizeof *ht);
  add_applied(ht, -1, g, false, xk, n);
}

/* out = X (L'h - G'y) */
static void mean_of_w(const chain *c, int t, const double *y, double *out) {
  int n = c->n;
  double *v = common_vector(c, WORK_VECTOR);
  set_applied(v, factor(c, t), true, vector(c, t, V_H), n);
  add_applied(v, -1, matrix(c, t, M_G), true, y, n);
  set_applied(out, matrix(c, t, M_X), false, v, n);
}

/* y, and its mean and covariance. The mean stands behind the sample, as it does in all that follows. */
static void move_on(const chain *c, int t) {
  int n = c->n;
  double *y = vector(c, t, V_Y), *b = matrix(c, t, M_B), *work = common(c, WORK);
  const double *from_z = common(c, A);
  clear(b, n * n);
  for (int k = 0; k < 2; k++, y += n) {
    if (t)
      set_applied(y, from_z, false, vector(c, t - 1, V_Z + k), n);
    else
      memcpy(y, common_vector(c, M1), (size_t)n * sizeof *y);
    if (t) add_drift(c, y, t);
  }
  if (!t) return;
  set_product(work, from_z, false, matrix(c, t - 1, M_P), false, n);
  add_product(b, 1, work, false, from_z, true, n);
}

/* F = I - L X G' */
static void find_f(const chain *c, int t, double *f, double *work) {
  int n = c->n;
  set_product(work, factor(c, t), false, matrix(c, t, M_X), false, n);
  clear(f, n * n);
  for (int i = 0; i < n; i++) f[i * n + i] = 1;
  add_product(f, -1, work, false, matrix(c, t, M_G), true, n);
}

/* z, m and P of step t. */
static void draw(const chain *c, int t) {
  int n = c->n;
  double *w = vector(c, t, V_W), *noise = vector(c, t, V_S), *p = matrix(c, t, M_P), *f = common(c, WORK),
         *work = f + n * n;
  const double *l = factor(c, t);
  for (int k = 0; k < 2; k++) mean_of_w(c, t, vector(c, t, V_Y + k), w + k * n);
  clear(noise, n);
  add_reals(noise, at(c, c->op->in[EPS], t), n);
  dv_solve_upper(matrix(c, t, M_U), n, noise, 1);
  for (int i = 0; i < n; i++) w[i] += noise[i];
  memcpy(vector(c, t, V_Z), vector(c, t, V_Y), 2 * (size_t)n * sizeof *w);
  for (int k = 0; k < 2; k++) add_applied(vector(c, t, V_Z + k), 1, l, false, w + k * n, n);
  find_f(c, t, f, work); /* leaves L X in work */
  clear(p, n * n);
  add_product(p, 1, work, false, l, true, n);
  set_product(work, f, false, matrix(c, t, M_B), false, n);
  add_product(p, 1, work, false, f, true, n);
  symmetrise(p, n);
}

static double divergence(const chain *c, int t) {
  int n = c->n;
  const double *x = matrix(c, t, M_X), *e = vector(c, t, V_E);
  double *gx = common(c, WORK), *bgx = gx + n * n, sum = *vector(c, t, LOG_DET) - n;
  set_product(gx, matrix(c, t, M_G), false, x, false, n);
  set_product(bgx, matrix(c, t, M_B), false, gx, false, n);
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
  chain c = begin_chain(op, run, op->out[BELIEF].steps);
  int n = c.n;
  for (c.row = 0; c.row < op->out[BELIEF].rows; c.row++) {
    walk(&c);
    for (int t = 0; t < c.steps; t++) {
      const double *w = vector(&c, t, V_W), *noise = vector(&c, t, V_S), *u = matrix(&c, t, M_U);
      dvbf_real *q = at(&c, op->out[Q], t);
      write_state(at(&c, op->out[BELIEF], t), vector(&c, t, V_Z), vector(&c, t, V_M), matrix(&c, t, M_P), n);
      *at(&c, op->out[DIVERGENCE], t) = (dvbf_real)divergence(&c, t);
      for (int i = 0; i < n; i++) {
        at(&c, op->out[WHITE], t)[i] = (dvbf_real)w[i];
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
  const dvbf_real *from = back_at(c, c->op->out[BELIEF], t);
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
  set_applied(v, l, true, h, n);
  add_applied(v, -1, g, true, y, n);
  set_applied(dv, x, false, dw, n);
  add_outer(matrix(c, t, D_X), 1, dw, v, n);
  add_outer(factor_back(c, t), 1, h, dv, n);
  add_applied(vector(c, t, D_H), 1, l, false, dv, n);
  add_outer(matrix(c, t, D_G), -1, y, dv, n);
  add_applied(dy, -1, g, false, dv, n);
}

/* Of z and m, to y and a; by is the gradient of kl, annealed. */
static void draw_back(const chain *c, int t, double by) {
  int n = c->n;
  double *dw = common_vector(c, WORK_VECTOR + 2);
  for (int k = 0; k < 2; k++) {
    const double *l = factor(c, t), *dz = common_vector(c, D_Z + k), *w = vector(c, t, V_W + k);
    double *dy = common_vector(c, D_Y + k);
    for (int i = 0; i < n; i++) dw[i] = k ? by * w[i] : 0;
    memcpy(dy, dz, (size_t)n * sizeof *dy);
    add_applied(dw, 1, l, true, dz, n);
    add_outer(factor_back(c, t), 1, dz, w, n);
    mean_back(c, t, vector(c, t, V_Y + k), dw, dy);
    if (k) break;
    dv_solve_lower(matrix(c, t, M_U), n, dw, 1);
    add_outer(matrix(c, t, D_U), -1, dw, vector(c, t, V_S), n);
  }
}

/* Of P and of what kl has of X and B, to B. */
static void spread_back(const chain *c, int t, double k) {
  int n = c->n;
  const double *dp = common(c, D_P);
  const double *l = factor(c, t), *x = matrix(c, t, M_X), *g = matrix(c, t, M_G), *b = matrix(c, t, M_B);
  double *db = common(c, D_B), *f = common(c, WORK), *df = common(c, WORK + 1), *one = common(c, WORK + 2),
         *gx = common(c, WORK + 3), *dx = matrix(c, t, D_X), *dg = matrix(c, t, D_G), *dl = factor_back(c, t);
  find_f(c, t, f, one); /* leaves L X in one */
  add_product(dl, 2, dp, false, one, false, n);
  set_product(gx, dp, false, f, false, n);
  set_product(db, f, true, gx, false, n);
  set_product(df, gx, false, b, false, n);
  for (int i = 0; i < n * n; i++) df[i] *= 2;
  add_product(dg, -1, df, true, one, false, n);
  set_product(one, dp, false, l, false, n);
  add_product(dx, 1, l, true, one, false, n);
  set_product(one, df, false, g, false, n);
  add_product(dx, -1, l, true, one, false, n);
  add_product(dl, -1, one, false, x, false, n);
  set_product(gx, g, false, x, false, n);
  set_product(one, b, false, gx, false, n);
  add_product(db, 0.5 * k, gx, false, gx, true, n);
  add_product(dg, k, one, false, x, false, n);
  add_product(dx, k, g, true, one, false, n);
  for (int i = 0; i < n; i++) dx[i * n + i] += 0.5 * k;
}

/* Of y, a and B: to the step before, or to the first state. */
static void move_back(const chain *c, int t) {
  int n = c->n;
  const double *from_z = common(c, A), *dy = common_vector(c, D_Y);
  double *work = common(c, WORK), *dc = vector(c, t, D_C), *db = common(c, D_B);
  clear(common_vector(c, D_Z), 2 * n);
  clear(common(c, D_P), n * n);
  for (int i = 0; i < n; i++) dc[i] = dy[i] + dy[n + i];
  if (!t) {
    for (int i = 0; i < n; i++) common_vector(c, D_M1)[i] += dc[i];
    return;
  }
  symmetrise(db, n);
  for (int k = 0; k < 2; k++) {
    add_outer(common(c, D_A), 1, dy + k * n, vector(c, t - 1, V_Z + k), n);
    add_applied(common_vector(c, D_Z + k), 1, from_z, true, dy + k * n, n);
  }
  set_product(work, db, false, from_z, false, n);
  add_product(common(c, D_A), 2, work, false, matrix(c, t - 1, M_P), false, n);
  add_product(common(c, D_P), 1, from_z, true, work, false, n);
}

/* Backwards in time, through samples and moments. */
static void samples_back(const chain *c) {
  int n = c->n;
  double temperature = c->run->scalars[c->data->temperature];
  clear(common_vector(c, D_Z), 2 * n);
  clear(common(c, D_P), n * n);
  for (int t = c->steps - 1; t >= 0; t--) {
    double k = (double)*back_at(c, c->op->out[DIVERGENCE], t);
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
               *jt = matrix(c, t, M_JT), *q = passed_on(c, t);
  double *djt = common(c, D_JT), *dht = common_vector(c, D_HT), *work = common(c, WORK);
  set_product(work, from_z, false, dj, false, n);
  set_product(djt, work, false, from_z, true, n);
  add_product(common(c, D_A), 2, jt, false, work, false, n);
  set_applied(dht, from_z, false, dh, n);
  add_outer(djt, -1, dht, q + n, n);
  symmetrise(djt, n);
  add_applied(vector(c, t, D_C), -1, jt, false, dht, n);
  add_outer(common(c, D_A), 1, q, dh, n);
}

/* To J, h, G, X and L of step t from dJ~ and dh~. */
static void pass_back(const chain *c, int t) {
  int n = c->n;
  const double *djt = common(c, D_JT), *dht = common_vector(c, D_HT), *g = matrix(c, t, M_G),
               *x = matrix(c, t, M_X), *l = factor(c, t), *h = vector(c, t, V_H);
  double *work = common(c, WORK), *dg = matrix(c, t, D_G), *dx = matrix(c, t, D_X), *dh = vector(c, t, D_H),
         *k = common_vector(c, WORK_VECTOR), *other = k + n, *dk = other + n;
  set_product(work, djt, false, g, false, n);
  add_product(dg, -2, work, false, x, false, n);
  add_product(dx, -1, g, true, work, false, n);
  set_applied(k, l, true, h, n);
  set_applied(other, x, false, k, n); /* X L'h */
  add_outer(dg, -1, dht, other, n);
  set_applied(other, g, true, dht, n); /* G'dh~ */
  add_outer(dx, -1, other, k, n);
  clear(dk, n);
  add_applied(dk, -1, x, false, other, n);
  add_outer(factor_back(c, t), 1, h, dk, n);
  for (int i = 0; i < n; i++) dh[i] += dht[i];
  add_applied(dh, 1, l, false, dk, n);
}

/* From X and U to K, to G and to J, which is left in D_J. */
static void factor_chain_back(const chain *c, int t) {
  int n = c->n;
  const double *x = matrix(c, t, M_X), *u = matrix(c, t, M_U), *l = factor(c, t), *g = matrix(c, t, M_G);
  double *s = common(c, WORK), *work = common(c, WORK + 1), *dk = matrix(c, t, D_K), *dg = matrix(c, t, D_G),
         *dj = common(c, D_J), *dl = factor_back(c, t);
  set_product(work, x, false, matrix(c, t, D_X), false, n);
  add_product(dk, -1, work, false, x, false, n);
  set_product(s, u, false, matrix(c, t, D_U), true, n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) s[i * n + j] *= j > i ? 0 : j == i ? 0.5 : 1;
  dv_solve_upper(u, n, s, n); /* U^-1 S, then the same from the other side */
  dv_transpose(work, s, n, n);
  dv_solve_upper(u, n, work, n);
  for (int i = 0; i < n * n; i++) dk[i] += work[i];
  symmetrise(dk, n);
  add_product(dg, 1, l, false, dk, false, n);
  add_product(dl, 1, g, false, dk, false, n);
  add_product(dl, 1, matrix(c, t, M_J), false, dg, false, n);
  set_product(dj, dg, false, l, true, n);
  if (t)
    for (int i = 0; i < n * n; i++) dj[i] += common(c, D_JT)[i];
  symmetrise(dj, n);
}

/* To the head and the drift of step t. */
static void inputs_back(const chain *c, int t) {
  int n = c->n;
  const double *d = vector(c, t, V_D), *mu = vector(c, t, V_MU), *dh = vector(c, t, D_H),
               *dj = common(c, D_J);
  dvbf_real *drift = t ? back_at(c, c->op->in[DRIFT], t - 1) : NULL;
  for (int i = 0; i < n && drift; i++) drift[i] += (dvbf_real)vector(c, t, D_C)[i];
  if (!frame_seen(c, t)) return;
  const dvbf_real *head = at(c, c->op->in[HEADS], t);
  dvbf_real *back = back_at(c, c->op->in[HEADS], t);
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
  dvbf_real *from_z = dvbf_gradient_at(c->run, op->in[MOVE]),
            *start = dvbf_gradient_at(c->run, op->in[PRIOR]);
  for (int i = 0; i < n && from_z; i++)
    for (int j = 0; j < n; j++) from_z[j * n + i] += (dvbf_real)common(c, D_A)[i * n + j];
  for (int i = 0; i < n; i++) start[i] += (dvbf_real)common_vector(c, D_M1)[i];
  if (from_z) factor_gradient(dvbf_gradient_at(c->run, op->in[FACTOR]), common(c, L), common(c, D_L), n);
  factor_gradient(dvbf_gradient_at(c->run, op->in[SCATTER]), common(c, L1), common(c, D_L1), n);
}

/* The steps of a row are computed once more: nothing of them is kept. */
static void backward(const dvbf_op *op, dvbf_run *run) {
  chain c = begin_chain(op, run, op->out[BELIEF].steps);
  clear(common(&c, D_A), 3 * c.n * c.n);
  clear(common_vector(&c, D_M1), c.n);
  for (c.row = 0; c.row < op->out[BELIEF].rows; c.row++) {
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
  chain_data data = {n, m->low, m->high, dvbf_scalar(g, DVBF_TEMPERATURE, 1), false};
  if (m->state.cols != dv_chain_state(n) || room > INT_MAX) {
    dvbf_refuse(g, "messages of %d states along %d steps are too large; use fewer of either", n, steps);
    return;
  }
  dvbf_value in[CHAIN_IN] = {
      [HEADS] = m->head,    [DRIFT] = m->drift, [MOVE] = m->from_z,
      [FACTOR] = m->factor, [PRIOR] = m->start, [SCATTER] = m->spread,
      [EPS] = m->noise,     [USE] = m->use,     [MEMORY] = dvbf_slab_shared_constant(g, 1, (int)room)};
  dvbf_value out[CHAIN_OUT] = {[BELIEF] = m->state, [DIVERGENCE] = m->kl, [WHITE] = m->w, [Q] = m->q};
  dvbf_record(g, &messages_class, CHAIN_IN, in, CHAIN_OUT, out, &data, sizeof data);
}

/* ---- One step of a Kalman filter along the chain ---- */

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

/* Memory of a step, in that of a chain; A and L are the same. */
enum { P = L1, B, C, G, STEP_U, STEP_X };
enum { STEP_Z, M, MEAN, Y, D_DIAGONAL, D_MU, OMEGA, EPSILON, STEP_REST };

/* a, y and B. */
static void predict_step(const chain *f) {
  int n = f->n;
  const double *a = common(f, A), *l = common(f, L);
  const dvbf_real *drift = at(f, f->op->in[DRIFT], 0);
  double *work = common(f, G), *b = common(f, B), *mean = common_vector(f, MEAN), *y = common_vector(f, Y);
  dv_chain_read(at(f, f->op->in[GIVEN], 0), common_vector(f, STEP_Z), common_vector(f, M), common(f, P), n);
  for (int i = 0; i < n; i++) mean[i] = y[i] = drift ? (double)drift[i] : 0;
  add_applied(mean, 1, a, false, common_vector(f, M), n);
  add_applied(y, 1, a, false, common_vector(f, STEP_Z), n);
  set_product(work, a, false, common(f, P), false, n);
  set_product(b, work, false, a, true, n);
  add_product(b, 1, l, false, l, true, n);
  symmetrise(b, n);
}

/* U, X and the mean of w in OMEGA, given that z = y + factor w. */
static void observe_step(const chain *f, const double *y, const double *factor) {
  int n = f->n;
  const double *diagonal = common_vector(f, D_DIAGONAL), *d = common_vector(f, D_MU);
  double *g = common(f, G), *rest = common_vector(f, STEP_REST), *v = common_vector(f, EPSILON),
         *omega = common_vector(f, OMEGA);
  for (int i = 0; i < n; i++) {
    rest[i] = d[i] - diagonal[i] * y[i];
    for (int j = 0; j < n; j++) g[i * n + j] = diagonal[i] * factor[i * n + j];
  }
  chain_factor(common(f, STEP_U), common(f, STEP_X), factor, g, n);
  set_applied(v, factor, true, rest, n);
  set_applied(omega, common(f, STEP_X), false, v, n);
}

/* z from y, the factor of its noise and the result of `observe`; writes w and q. */
static void draw_step(const chain *f, const double *y, const double *factor) {
  int n = f->n;
  const dvbf_real *eps = at(f, f->op->in[EPS], 0);
  const double *u = common(f, STEP_U), *omega = common_vector(f, OMEGA);
  double *w = common_vector(f, EPSILON), *z = common_vector(f, STEP_Z);
  dvbf_real *w_out = at(f, f->op->out[WHITE], 0), *q = at(f, f->op->out[Q], 0);
  for (int i = 0; i < n; i++) w[i] = (double)eps[i];
  dv_solve_upper(u, n, w, 1);
  for (int i = 0; i < n; i++) {
    w[i] += omega[i];
    z[i] = y[i];
    w_out[i] = (dvbf_real)w[i];
    q[i] = (dvbf_real)omega[i];
    q[n + i] = (dvbf_real)-dv_log(u[i * n + i]);
  }
  add_applied(z, 1, factor, false, w, n);
}

/* The update by an observed frame. */
static void see_step(const chain *f) {
  int n = f->n;
  double *mean = common_vector(f, MEAN), *c = common(f, C), *work = common(f, G);
  potential_read(common_vector(f, D_DIAGONAL), common_vector(f, D_MU), at(f, f->op->in[HEADS], 0),
                 f->data->low, f->data->high, true, n);
  if (f->data->particles) {
    observe_step(f, common_vector(f, Y), common(f, L));
    draw_step(f, common_vector(f, Y), common(f, L));
  }
  memcpy(c, common(f, B), (size_t)n * (size_t)n * sizeof *c);
  dv_factor(c, n);
  observe_step(f, mean, c);
  if (!f->data->particles) draw_step(f, mean, c);
  add_applied(mean, 1, c, false, common_vector(f, OMEGA), n);
  set_product(work, c, false, common(f, STEP_X), false, n);
  set_product(common(f, B), work, false, c, true, n);
}

/* The step of z without a frame. */
static void skip_step(const chain *f) {
  int n = f->n;
  const dvbf_real *eps = at(f, f->op->in[EPS], 0);
  double *w = common_vector(f, EPSILON), *z = common_vector(f, STEP_Z);
  dvbf_real *w_out = at(f, f->op->out[WHITE], 0), *q = at(f, f->op->out[Q], 0);
  for (int i = 0; i < n; i++) w[i] = (double)eps[i];
  memcpy(z, common_vector(f, Y), (size_t)n * sizeof *z);
  add_applied(z, 1, common(f, L), false, w, n);
  for (int i = 0; i < n && w_out; i++) {
    w_out[i] = eps[i];
    q[i] = q[n + i] = 0;
  }
}

static void step_forward(const dvbf_op *op, dvbf_run *run) {
  chain f = begin_chain(op, run, 0);
  for (f.row = 0; f.row < op->out[BELIEF].rows; f.row++) {
    const dvbf_real *use = at(&f, op->in[USE], 0);
    predict_step(&f);
    (op->in[HEADS].buffer >= 0 && (!use || *use > 0) ? see_step : skip_step)(&f);
    write_state(at(&f, op->out[BELIEF], 0), common_vector(&f, STEP_Z), common_vector(&f, MEAN), common(&f, B),
                f.n);
  }
}

static void step_backward(const dvbf_op *op, dvbf_run *run) {
  chain f = begin_chain(op, run, 0);
  int n = f.n, half = n * (n + 1) / 2;
  const dvbf_real *from = dvbf_gradient_at(run, op->out[BELIEF]);
  dvbf_real *to = dvbf_gradient_at(run, op->in[GIVEN]), *drift = dvbf_gradient_at(run, op->in[DRIFT]);
  double *dz = common_vector(&f, STEP_Z), *dm = common_vector(&f, M), *dp = common(&f, P),
         *work = common(&f, G), *back = common(&f, B), *sum = common_vector(&f, STEP_REST);
  for (int r = 0; r < op->out[BELIEF].rows; r++, from += 2 * n + half, to += 2 * n + half) {
    dv_chain_read(from, dz, dm, dp, n); /* entries off the diagonal stand for two */
    for (int i = 0; i < n * n; i++) dp[i] *= i % (n + 1) ? 0.5 : 1;
    for (int i = 0; i < n && drift; i++) drift[r * n + i] += (dvbf_real)(dz[i] + dm[i]);
    for (int k = 0; k < 2; k++) {
      set_applied(sum, common(&f, A), true, k ? dm : dz, n);
      for (int i = 0; i < n; i++) to[k * n + i] += (dvbf_real)sum[i];
    }
    set_product(work, common(&f, A), true, dp, false, n);
    set_product(back, work, false, common(&f, A), false, n);
    dvbf_real *cov = to + 2 * n;
    for (int i = 0; i < n; i++)
      for (int j = 0; j <= i; j++)
        *cov++ += (dvbf_real)(j == i ? back[i * n + i] : back[i * n + j] + back[j * n + i]);
  }
}

static const dvbf_op_class filter_class = {"kalman-step", step_forward, NULL, NULL};
static const dvbf_op_class move_class = {"kalman-move", step_forward, step_backward, NULL};

void dv_record_kalman_step(dvbf_graph *g, const dv_kalman_step *s) {
  int n = s->noise.cols;
  chain_data data = {n, s->low, s->high, 0, s->particles};
  dvbf_value in[STEP_INPUTS] = {
      [GIVEN] = s->given,   [HEADS] = s->head, [DRIFT] = s->drift, [MOVE] = s->from_z,
      [FACTOR] = s->factor, [EPS] = s->noise,  [USE] = s->use,     [MEMORY] = DVBF_NONE};
  dvbf_value out[STEP_OUTPUTS] = {[BELIEF] = s->state, [WHITE] = s->w, [Q] = s->q};
  in[MEMORY] =
      dvbf_slab_shared_constant(g, 1, (int)(chain_size(n, 0) * (sizeof(double) / sizeof(dvbf_real))));
  dvbf_record(g, s->head.buffer < 0 ? &move_class : &filter_class, STEP_INPUTS, in, STEP_OUTPUTS, out, &data,
              sizeof data);
}
