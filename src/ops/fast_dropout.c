/* Fast dropout (Wang and Manning 2013; for recurrent networks Bayer et al. 2013): the mean and variance
 * caused by dropout go through the network instead of sampled masks. Two ordinary layers do it, the second
 * with squared weights; here are the squares (dv_record_square), the moments of activations
 * (dv_record_moments) and the Gaussian head. Compared with sampled masks, means are within 0.03 deviations,
 * variances within 4 % (tests/ops/test_fast_dropout.c). */

/* Units count as independent and sums as Gaussian. Dropout is inverted: d = 1 / (1 - p) with probability 1 -
 * p, else 0, so E[d a] = E[a]. For a of mean m and variance s, and for the sums of a layer before its
 * activation,
 *
 *   Var[d a] = (s + p m^2) / (1 - p)        p / (1 - p) x^2 for a known input x
 *   mu_j = b_j + sum_i m_i W_ij             nu_j = sum_i Var[d_i a_i] W_ij^2
 *
 * Moments of an activation f of N(mu, nu), where DV_VARIANCE_FLOOR is added to nu:
 *
 *   Rectifier, exactly. With sigma^2 = nu, alpha = mu / sigma, Phi and phi of the standard normal at alpha:
 *     m = mu Phi + sigma phi     s = nu (Phi + alpha^2 Phi (1 - Phi) + alpha phi (1 - 2 Phi) - phi^2)
 *     dm/dmu = Phi     dm/dnu = phi / (2 sigma)     ds/dmu = 2 m (1 - Phi)     ds/dnu = Phi - m phi / sigma
 *   Sigmoid. With kappa = (1 + pi nu / 8)^(-1/2) (MacKay 1992; Wang and Manning's mean), r = 1 - kappa^2:
 *     m = sigmoid(kappa mu), off by at most 0.016
 *     s = q G (4 q + (1 - 4 q) (G + G^2) / 2)     q = m (1 - m)
 *     G = 1 - kappa (1 + (1/2 - 2/pi) r + 0.04 r^2)
 *   tanh(a) = 2 sigmoid(2 a) - 1. Identity: m = mu, s = nu.
 *
 * G is (2/pi) asin(r) to 0.001, which for mu = 0 gives the variance of a normal distribution function in
 * place of the sigmoid. The form is right at both ends, s = nu f'(mu)^2 for small nu and q for large; it is
 * off by at most 0.0071, and for nu < 0.1 and |mu| < 4 by at most 11 %. Wang and Manning's difference of two
 * sigmoids is off by up to 0.017, even at nu = 0. */
#include "math/portable.h"
#include "ops/emit.h"
#include "ops/ops.h"

#include <math.h>

/* ---- out = c x^2 ---- */

static void square_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_real c = (dvbf_real) * (const double *)op->data;
  run->k->square(dv_at(run, op->out[0]), dv_at(run, op->in[0]), c, dv_count(op->in[0]));
}

static void square_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_real c = (dvbf_real) * (const double *)op->data, *dx = dvbf_gradient_at(run, op->in[0]);
  const dvbf_real *dy = dvbf_gradient_at(run, op->out[0]);
  if (dx && dy) run->k->square_backward(dx, dv_at(run, op->in[0]), dy, c, dv_count(op->in[0]));
}

/* The table of x as it is, or the whole of a parameter in one row. */
static void square_emit(const dvbf_op *op, dvbf_code *code) {
  dvbf_value x = op->in[0], y = op->out[0];
  dvbf_place from = {x.buffer, x.offset, x.stride, 1}, to = {y.buffer, y.offset, x.stride, 1};
  dvbf_expr at = dvbf_code_read(code, from), c = dv_number(code, *(const double *)op->data);
  dvbf_code_each(code, to, x.steps, (int)x.stride, dv_times(code, c, dv_times(code, at, at)));
}

static const dvbf_op_class square_class = {"square", square_forward, square_backward, square_emit};

void dv_record_square(dvbf_graph *g, dvbf_value out, dvbf_value x, double c) {
  if (dv_count(out) != dv_count(x))
    dvbf_refuse(g, "squares of %zu numbers do not fill %zu", dv_count(x), dv_count(out));
  dvbf_record(g, &square_class, 1, &x, 1, &out, &c, sizeof c);
}

/* ---- Moments of an activation ---- */

/* in: mu, nu; out: mean, dropped; the data is the request. */
static void moments_forward(const dvbf_op *op, dvbf_run *run) {
  const dv_moments *m = op->data;
  run->k->moments(m->activation, dv_at(run, op->out[0]), dv_at(run, op->out[1]), dv_at(run, op->in[0]),
                  dv_at(run, op->in[1]), (dvbf_real)m->p, dv_count(op->out[0]));
}

static void moments_backward(const dvbf_op *op, dvbf_run *run) {
  const dv_moments *m = op->data;
  run->k->moments_backward(m->activation, dvbf_gradient_at(run, op->in[0]), dvbf_gradient_at(run, op->in[1]),
                           dv_at(run, op->in[0]), dv_at(run, op->in[1]), dvbf_gradient_at(run, op->out[0]),
                           dvbf_gradient_at(run, op->out[1]), (dvbf_real)m->p, dv_count(op->out[0]));
}

/* A table of the op's shape that holds e. */
static dvbf_expr emit_kept(dvbf_code *code, const dvbf_op *op, dvbf_expr e) {
  dvbf_value room = dv_emit_room(code, op->out[0].steps, op->out[0].cols);
  dv_emit(code, room, e);
  return dv_read(code, room);
}

/* The ratio of Phi(-a) to phi(a), a >= 0: the polynomial of the kernel. */
static dvbf_expr emit_tail_ratio(dvbf_code *code, const dvbf_op *op, dvbf_expr a) {
  static const double by[] = {0.09215355, -0.40549537, 0.53712347, -0.15302804,
                              0.33213873, 0.24740773,  0.3031808,  0.29983316};
  dvbf_expr one = dv_number(code, 1), size = dv_plus(code, one, dv_times(code, dv_number(code, 0.3), a));
  dvbf_expr t = emit_kept(code, op, dv_over(code, one, size)), p = dv_number(code, by[0]);
  for (size_t i = 1; i < sizeof by / sizeof *by; i++)
    p = dv_plus(code, dv_times(code, p, t), dv_number(code, by[i]));
  return dv_times(code, p, t);
}

/* Mean and variance of an activation. */
typedef struct both {
  dvbf_expr m, s;
} both;

static both emit_relu(dvbf_code *code, const dvbf_op *op, dvbf_expr mu, dvbf_expr nu) {
  dvbf_expr one = dv_number(code, 1), zero = dv_number(code, 0), half = dv_number(code, -0.5);
  dvbf_expr sigma = emit_kept(code, op, dvbf_code_unary(code, DVBF_SQRT_OF, nu));
  dvbf_expr alpha = emit_kept(code, op, dv_within(code, dv_over(code, mu, sigma), -12, 12));
  dvbf_expr size = emit_kept(code, op, dvbf_code_unary(code, DVBF_SIZE_OF, alpha));
  dvbf_expr power = dv_times(code, half, dv_times(code, alpha, alpha));
  dvbf_expr phi = emit_kept(
      code, op,
      dv_times(code, dv_number(code, 0.398942280401432677940), dvbf_code_unary(code, DVBF_EXP_OF, power)));
  dvbf_expr tail = emit_kept(code, op, dv_times(code, emit_tail_ratio(code, op, size), phi));
  dvbf_expr below = emit_kept(code, op, dvbf_code_choose(code, alpha, dv_minus(code, one, tail), tail));
  dvbf_expr m = dv_plus(code, dv_times(code, mu, below), dv_times(code, sigma, phi));
  dvbf_expr inner =
      dv_minus(code, dv_times(code, size, dv_times(code, tail, dv_minus(code, one, tail))),
               dv_times(code, phi, dv_minus(code, one, dv_times(code, dv_number(code, 2), tail))));
  dvbf_expr s = dv_minus(code, dv_plus(code, below, dv_times(code, size, inner)), dv_times(code, phi, phi));
  return (both){dvbf_code_binary(code, DVBF_LARGER, m, zero),
                dv_times(code, nu, dvbf_code_binary(code, DVBF_LARGER, s, zero))};
}

static both emit_sigmoid(dvbf_code *code, const dvbf_op *op, dvbf_expr mu, dvbf_expr nu) {
  dvbf_expr one = dv_number(code, 1), four = dv_number(code, 4), half = dv_number(code, 0.5);
  dvbf_expr wide = dv_times(code, dv_number(code, 0.392699081698724154808), nu); /* pi / 8 nu */
  dvbf_expr root = dvbf_code_unary(code, DVBF_SQRT_OF, dv_plus(code, one, wide));
  dvbf_expr kappa = emit_kept(code, op, dv_over(code, one, root));
  dvbf_expr m = emit_kept(code, op, dvbf_code_unary(code, DVBF_SIGMOID_OF, dv_times(code, kappa, mu)));
  dvbf_expr q = emit_kept(code, op, dv_times(code, m, dv_minus(code, one, m)));
  dvbf_expr r = emit_kept(code, op, dv_times(code, wide, dv_times(code, kappa, kappa)));
  dvbf_expr curve = dv_plus(code, dv_number(code, -0.136619772367581343076), /* 1/2 - 2/pi */
                            dv_times(code, dv_number(code, 0.04), r));
  dvbf_expr inner =
      dv_minus(code, dv_over(code, one, dv_plus(code, one, kappa)), dv_times(code, kappa, curve));
  dvbf_expr g = emit_kept(code, op, dv_times(code, r, inner));
  dvbf_expr share = dv_times(code, half, dv_times(code, g, dv_plus(code, one, g)));
  dvbf_expr mixed = dv_plus(code, dv_times(code, four, q),
                            dv_times(code, dv_minus(code, one, dv_times(code, four, q)), share));
  dvbf_expr s = dv_times(code, dv_times(code, q, g), mixed);
  return (both){m, dvbf_code_binary(code, DVBF_LARGER, s, dv_number(code, 0))};
}

static both emit_moments_of(dvbf_code *code, const dvbf_op *op, dvbf_expr mu, dvbf_expr nu) {
  const dv_moments *d = op->data;
  dvbf_expr two = dv_number(code, 2), four = dv_number(code, 4);
  if (d->activation == DVBF_RELU) return emit_relu(code, op, mu, nu);
  if (d->activation == DVBF_SIGMOID) return emit_sigmoid(code, op, mu, nu);
  if (d->activation != DVBF_TANH) return (both){mu, nu};
  both of = emit_sigmoid(code, op, dv_times(code, two, mu), dv_times(code, four, nu));
  return (both){dv_minus(code, dv_times(code, two, of.m), dv_number(code, 1)), dv_times(code, four, of.s)};
}

static void moments_emit(const dvbf_op *op, dvbf_code *code) {
  const dv_moments *d = op->data;
  dvbf_expr floor = dv_number(code, DV_VARIANCE_FLOOR);
  both of =
      emit_moments_of(code, op, dv_read(code, op->in[0]), dv_plus(code, dv_read(code, op->in[1]), floor));
  dv_emit(code, op->out[0], of.m);
  dvbf_expr m = dv_read(code, op->out[0]), by = dv_number(code, 1 / (1 - d->p));
  dvbf_expr square = dv_times(code, dv_number(code, d->p), dv_times(code, m, m));
  dv_emit(code, op->out[1], dv_times(code, by, dv_plus(code, of.s, square)));
}

static const dvbf_op_class moments_class = {"moments", moments_forward, moments_backward, moments_emit};

void dv_record_moments(dvbf_graph *g, const dv_moments *moments, int t) {
  dv_moments m = *moments;
  dvbf_value *all[] = {&m.mu, &m.nu, &m.mean, &m.dropped};
  for (int i = 0; i < 4; i++) {
    *all[i] = dvbf_steps(*all[i], t, 1);
    if (all[i]->stride != moments->mean.stride)
      dvbf_refuse(g, "moments of %d and %d units do not fit", all[i]->cols, m.mean.cols);
  }
  if (m.activation == DVBF_SOFTMAX) dvbf_refuse(g, "fast dropout has no moments for a softmax");
  dvbf_record(g, &moments_class, 2, (dvbf_value[]){m.mu, m.nu}, 2, (dvbf_value[]){m.mean, m.dropped}, &m,
              sizeof m);
}

/* ---- (mean, variance) as the head of a Gaussian: d variance = d ln sigma / (2 variance) ---- */

static void head_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_real *head = dv_at(run, op->out[0]);
  const dvbf_real *mean = dv_at(run, op->in[0]), *variance = dv_at(run, op->in[1]);
  int n = op->in[0].cols, rows = op->in[0].steps * op->in[0].rows;
  for (int r = 0; r < rows; r++, head += n)
    for (int i = 0; i < n; i++, head++) {
      head[0] = *mean++;
      head[n] = (dvbf_real)(0.5 * dv_log((double)*variance++ + DV_VARIANCE_FLOOR));
    }
}

static void head_backward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_real *d_head = dvbf_gradient_at(run, op->out[0]), *variance = dv_at(run, op->in[1]);
  dvbf_real *d_mean = dvbf_gradient_at(run, op->in[0]), *d_variance = dvbf_gradient_at(run, op->in[1]);
  int n = op->in[0].cols, rows = op->in[0].steps * op->in[0].rows;
  for (int r = 0; r < rows; r++, d_head += n)
    for (int i = 0; i < n; i++, d_head++) {
      *d_mean++ += d_head[0];
      *d_variance++ += (dvbf_real)(0.5 * (double)d_head[n] / ((double)*variance++ + DV_VARIANCE_FLOOR));
    }
}

static void head_emit(const dvbf_op *op, dvbf_code *code) {
  dvbf_value mean = op->out[0], raw = mean;
  mean.cols = raw.cols = op->in[0].cols;
  raw.offset += (size_t)raw.cols;
  dvbf_expr variance = dv_plus(code, dv_read(code, op->in[1]), dv_number(code, DV_VARIANCE_FLOOR));
  dv_emit(code, mean, dv_read(code, op->in[0]));
  dv_emit(code, raw, dv_times(code, dv_number(code, 0.5), dvbf_code_unary(code, DVBF_LOG_OF, variance)));
}

static const dvbf_op_class head_class = {"moments-head", head_forward, head_backward, head_emit};

void dv_record_moments_head(dvbf_graph *g, dvbf_value head, dvbf_value mean, dvbf_value variance) {
  if (head.cols != 2 * mean.cols || dv_count(mean) != dv_count(variance) || head.steps != mean.steps)
    dvbf_refuse(g, "%d means and %d variances do not make a head of %d", mean.cols, variance.cols, head.cols);
  dvbf_record(g, &head_class, 2, (dvbf_value[]){mean, variance}, 1, &head, NULL, 0);
}
