/* Fast dropout (Wang and Manning 2013; for recurrent networks Bayer et al. 2013): instead of drawing masks,
 * the mean and variance that they cause are propagated, with units taken as independent and sums as Gaussian.
 *
 * Dropout is inverted: d = 1 / (1 - p) with probability 1 - p, else 0, so E[d a] = E[a] and weights mean the
 * same with and without it. For a of mean m and variance s
 *
 *   Var[d a] = (s + p m^2) / (1 - p)
 *
 * which is p / (1 - p) x^2 for an input x that is known. A layer's sums before its activation then are
 *
 *   mu_j = b_j + sum_i m_i W_ij        nu_j = sum_i Var[d_i a_i] W_ij^2
 *
 * two layers of layer.c, the second with the squared weights. Here are the squares and the moments of an
 * activation f of N(mu, nu):
 *
 * - Rectifier, exactly. With sigma^2 = nu, alpha = mu / sigma, Phi and phi of the standard normal at alpha:
 *     m = mu Phi + sigma phi     s = nu (Phi + alpha^2 Phi (1 - Phi) + alpha phi (1 - 2 Phi) - phi^2)
 *     dm/dmu = Phi     dm/dnu = phi / (2 sigma)     ds/dmu = 2 m (1 - Phi)     ds/dnu = Phi - m phi / sigma
 * - Sigmoid. With kappa = (1 + pi nu / 8)^(-1/2) (MacKay 1992; Wang and Manning's mean), r = 1 - kappa^2:
 *     m = sigmoid(kappa mu), off by at most 0.016
 *     s = q G (4 q + (1 - 4 q) (G + G^2) / 2)     q = m (1 - m)
 *     G = 1 - kappa (1 + (1/2 - 2/pi) r + 0.04 r^2)
 *   G is (2/pi) asin(r) to 0.001, which for mu = 0 gives the variance of a normal distribution function in
 * the place of the sigmoid. The form is right at both ends, s = nu f'(mu)^2 for small nu and q for large; it
 * is off by at most 0.0071, and for nu < 0.1 and |mu| < 4 by at most 11 %. Wang and Manning's difference of
 * two sigmoids is off by up to 0.017, at nu = 0 too, where it is not 0.
 * - tanh(a) = 2 sigmoid(2 a) - 1. Identity: m = mu, s = nu.
 *
 * DV_VARIANCE_FLOOR is added to nu. */
#include "op/op.h"

#include <math.h>

static size_t count_of(dvbf_value v) {
  return (size_t)v.steps * v.stride;
}

/* ---- out = c x^2 ---- */

static void square_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_real c = (dvbf_real) * (const double *)op->data;
  run->k->square(dv_at(run, op->out[0]), dv_at(run, op->in[0]), c, count_of(op->in[0]));
}

static void square_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_real c = (dvbf_real) * (const double *)op->data, *dx = dvbf_gradient_at(run, op->in[0]);
  const dvbf_real *dy = dvbf_gradient_at(run, op->out[0]);
  if (dx && dy) run->k->square_backward(dx, dv_at(run, op->in[0]), dy, c, count_of(op->in[0]));
}

static const dvbf_op_class square_class = {"square", square_forward, square_backward};

void dv_record_square(dvbf_graph *g, dvbf_value out, dvbf_value x, double c) {
  if (count_of(out) != count_of(x))
    dvbf_refuse(g, "squares of %zu numbers do not fill %zu", count_of(x), count_of(out));
  dvbf_record(g, &square_class, 1, &x, 1, &out, &c, sizeof c);
}

/* ---- Moments of an activation ---- */

typedef struct moments_data {
  dvbf_activation activation;
  double p;
} moments_data;

/* in: mu, nu; out: mean, dropped. */
static void moments_forward(const dvbf_op *op, dvbf_run *run) {
  const moments_data *m = op->data;
  run->k->moments(m->activation, dv_at(run, op->out[0]), dv_at(run, op->out[1]), dv_at(run, op->in[0]),
                  dv_at(run, op->in[1]), (dvbf_real)m->p, count_of(op->out[0]));
}

static void moments_backward(const dvbf_op *op, dvbf_run *run) {
  const moments_data *m = op->data;
  run->k->moments_backward(m->activation, dvbf_gradient_at(run, op->in[0]), dvbf_gradient_at(run, op->in[1]),
                           dv_at(run, op->in[0]), dv_at(run, op->in[1]), dvbf_gradient_at(run, op->out[0]),
                           dvbf_gradient_at(run, op->out[1]), (dvbf_real)m->p, count_of(op->out[0]));
}

static const dvbf_op_class moments_class = {"moments", moments_forward, moments_backward};

void dv_record_moments(dvbf_graph *g, const dv_moments *moments, int t) {
  dv_moments m = *moments;
  dvbf_value *all[] = {&m.mu, &m.nu, &m.mean, &m.dropped};
  for (int i = 0; i < 4; i++) {
    *all[i] = dvbf_steps(*all[i], t, 1);
    if (all[i]->stride != moments->mean.stride)
      dvbf_refuse(g, "moments of %d and %d units do not fit", all[i]->cols, m.mean.cols);
  }
  if (m.activation == DVBF_SOFTMAX) dvbf_refuse(g, "fast dropout has no moments for a softmax");
  moments_data data = {m.activation, m.p};
  dvbf_record(g, &moments_class, 2, (dvbf_value[]){m.mu, m.nu}, 2, (dvbf_value[]){m.mean, m.dropped}, &data,
              sizeof data);
}

/* ---- (mean, variance) as the head of a Gaussian: d variance = d ln sigma / (2 variance) ---- */

static void head_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_real *head = dv_at(run, op->out[0]);
  const dvbf_real *mean = dv_at(run, op->in[0]), *variance = dv_at(run, op->in[1]);
  int n = op->in[0].cols, rows = op->in[0].steps * op->in[0].rows;
  for (int r = 0; r < rows; r++, head += n)
    for (int i = 0; i < n; i++, head++) {
      head[0] = *mean++;
      head[n] = (dvbf_real)(0.5 * log((double)*variance++ + DV_VARIANCE_FLOOR));
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

static const dvbf_op_class head_class = {"moments-head", head_forward, head_backward};

void dv_record_moments_head(dvbf_graph *g, dvbf_value head, dvbf_value mean, dvbf_value variance) {
  if (head.cols != 2 * mean.cols || count_of(mean) != count_of(variance) || head.steps != mean.steps)
    dvbf_refuse(g, "%d means and %d variances do not make a head of %d", mean.cols, variance.cols, head.cols);
  dvbf_record(g, &head_class, 2, (dvbf_value[]){mean, variance}, 1, &head, NULL, 0);
}
