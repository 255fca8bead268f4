#include "base/arithmetic.h"
#include "op/emit.h"
#include "op/op.h"

#include <math.h>
#include <string.h>

/* ---- Innovations w ----
 *
 * Annealed with inverse temperature c, what training minimises is E_q[ln q(w) - c ln p(w)], whose derivatives
 * are c mu and c sigma^2 - 1 (by ln sigma); c = 1 gives those of the KL. The reported kl is never annealed.
 */

typedef struct innovation_data {
  double low, high;
  int temperature; /* scalar */
} innovation_data;

/* in: head, noise, use; out: w, kl. */
typedef struct innovation_row {
  const dvbf_real *mu, *raw, *eps;
  bool use, zero;
} innovation_row;

/* Row r, counted over the op's steps. */
static innovation_row row_at(const dvbf_run *run, const dvbf_op *op, int r) {
  int n = op->out[0].cols;
  const dvbf_real *head = dv_at(run, op->in[0]), *use = dv_at(run, op->in[2]);
  const dvbf_real *mu = head ? head + (size_t)r * 2 * n : NULL;
  return (innovation_row){mu, head ? mu + n : NULL, dv_at(run, op->in[1]) + (size_t)r * n,
                          head && (!use || use[r] > 0), use && use[r] < 0};
}

static void innovation_forward(const dvbf_op *op, dvbf_run *run) {
  const innovation_data *d = op->data;
  int n = op->out[0].cols, rows = op->out[0].steps * op->out[0].rows;
  dvbf_real *w = dv_at(run, op->out[0]), *kl = dv_at(run, op->out[1]);
  for (int r = 0; r < rows; r++, w += n) {
    innovation_row row = row_at(run, op, r);
    kl[r] = 0;
    if (row.zero) memset(w, 0, (size_t)n * sizeof *w);
    if (!row.use && !row.zero) memcpy(w, row.eps, (size_t)n * sizeof *w);
    if (!row.use) continue;
    for (int k = 0; k < n; k++) {
      dvbf_real ls = dv_clamp(row.raw[k], d->low, d->high), sigma = (dvbf_real)dv_exp(ls);
      w[k] = row.mu[k] + sigma * row.eps[k];
      kl[r] += (dvbf_real)0.5 * (row.mu[k] * row.mu[k] + sigma * sigma - 1) - ls;
    }
  }
}

static void innovation_backward(const dvbf_op *op, dvbf_run *run) {
  const innovation_data *d = op->data;
  int n = op->out[0].cols, rows = op->out[0].steps * op->out[0].rows;
  dvbf_real c = (dvbf_real)run->scalars[d->temperature];
  const dvbf_real *dw = dvbf_gradient_at(run, op->out[0]), *dkl = dvbf_gradient_at(run, op->out[1]);
  dvbf_real *d_head = dvbf_gradient_at(run, op->in[0]);
  for (int r = 0; r < rows; r++, dw += n, d_head += 2 * n) {
    innovation_row row = row_at(run, op, r);
    if (!row.use) continue;
    for (int k = 0; k < n; k++) {
      d_head[k] += dw[k] + dkl[r] * c * row.mu[k];
      if (row.raw[k] < d->low || row.raw[k] > d->high) continue;
      dvbf_real sigma = (dvbf_real)dv_exp(row.raw[k]);
      d_head[n + k] += dw[k] * sigma * row.eps[k] + dkl[r] * (c * sigma * sigma - 1);
    }
  }
}

/* w alone: the kl is of the bound, which no exported program has. */
static void innovation_emit(const dvbf_op *op, dvbf_code *code) {
  const innovation_data *d = op->data;
  dvbf_value head = op->in[0], raw = head, w = op->out[0];
  dvbf_expr eps = dv_read(code, op->in[1]);
  if (head.buffer < 0) {
    dv_emit(code, w, eps);
    return;
  }
  raw.offset += (size_t)w.cols;
  dvbf_expr sigma = dvbf_code_unary(code, DVBF_EXP_OF, dv_within(code, dv_read(code, raw), d->low, d->high));
  dvbf_expr drawn = dv_plus(code, dv_read(code, head), dv_times(code, sigma, eps));
  if (op->in[2].buffer >= 0) drawn = dvbf_code_choose(code, dv_read_column(code, op->in[2]), drawn, eps);
  dv_emit(code, w, drawn);
}

static const dvbf_op_class innovation_class = {"innovation", innovation_forward, innovation_backward,
                                               innovation_emit};

void dvbf_innovation_step(dvbf_graph *g, const dvbf_innovation *i, int t) {
  innovation_data data = {i->low, i->high, dvbf_scalar(g, DVBF_TEMPERATURE, 1)};
  int first = t < 0 ? 0 : t, count = t < 0 ? i->w.steps : 1;
  dvbf_value in[] = {dvbf_steps(i->head, first, count), dvbf_steps(i->noise, first, count),
                     dvbf_steps(i->use, first, count)};
  dvbf_value out[] = {dvbf_steps(i->w, first, count), dvbf_steps(i->kl, first, count)};
  if ((i->head.buffer >= 0 && i->head.cols != 2 * i->w.cols) || i->noise.cols != i->w.cols)
    dvbf_refuse(g, "a head of %d outputs cannot give %d innovations", i->head.cols, i->w.cols);
  dvbf_record(g, &innovation_class, 3, in, 2, out, &data, sizeof data);
}

/* ---- Universal parameters v ----
 *
 *   KL = sum_n ln s - ln sigma + (sigma^2 + (mu - m)^2) / (2 s^2) - 1/2
 *
 * It belongs to the data set, so each of N sequences carries a share of 1 / N; it is not annealed. */

typedef struct universal_data {
  int term, sequences; /* KL(q(v) || p(v)) / N, and the scalar N */
} universal_data;

static double shard_weight(const dvbf_run *run, dvbf_value weight) {
  const dvbf_real *w = dv_at(run, weight);
  double sum = 0;
  for (int r = 0; r < weight.rows; r++) sum += (double)w[r];
  return sum;
}

/* in: mean, log_sigma, prior, noise, weight; out: v. */
static void universal_forward(const dvbf_op *op, dvbf_run *run) {
  const universal_data *d = op->data;
  int n = op->in[0].cols, steps = op->out[0].steps;
  const dvbf_real *mean = dv_at(run, op->in[0]), *ls = dv_at(run, op->in[1]), *prior = dv_at(run, op->in[2]);
  const dvbf_real *eps = dv_at(run, op->in[3]);
  dvbf_real *v = dv_at(run, op->out[0]);
  double kl = 0, m = (double)prior[0], log_s = (double)prior[1], precision = dv_exp(-2 * log_s);
  for (int k = 0; k < n; k++) {
    double sigma = dv_exp((double)ls[k]), apart = (double)mean[k] - m;
    for (int t = 0; t < steps; t++)
      v[(size_t)t * n + k] = mean[k] + (dvbf_real)sigma * eps[(size_t)t * n + k];
    kl += log_s - (double)ls[k] + 0.5 * precision * (sigma * sigma + apart * apart) - 0.5;
  }
  dvbf_term_add(run, d->term, kl / run->scalars[d->sequences] * shard_weight(run, op->in[4]));
}

static void universal_backward(const dvbf_op *op, dvbf_run *run) {
  const universal_data *d = op->data;
  int n = op->in[0].cols, steps = op->out[0].steps;
  const dvbf_real *mean = dv_at(run, op->in[0]), *ls = dv_at(run, op->in[1]), *prior = dv_at(run, op->in[2]);
  const dvbf_real *eps = dv_at(run, op->in[3]), *dv = dvbf_gradient_at(run, op->out[0]);
  dvbf_real *d_mean = dvbf_gradient_at(run, op->in[0]), *d_ls = dvbf_gradient_at(run, op->in[1]);
  dvbf_real *d_prior = dvbf_gradient_at(run, op->in[2]);
  double g = dvbf_term_factor(run, d->term) * shard_weight(run, op->in[4]) / run->scalars[d->sequences];
  double m = (double)prior[0], precision = dv_exp(-2 * (double)prior[1]);
  for (int k = 0; k < n; k++) {
    double sigma = dv_exp((double)ls[k]), apart = (double)mean[k] - m, by_mean = g * precision * apart;
    double by_ls = g * (precision * sigma * sigma - 1), to_mean = by_mean;
    for (int t = 0; t < steps; t++) {
      double dvk = (double)dv[(size_t)t * n + k];
      to_mean += dvk;
      by_ls += dvk * sigma * (double)eps[(size_t)t * n + k];
    }
    d_mean[k] += (dvbf_real)to_mean;
    d_ls[k] += (dvbf_real)by_ls;
    d_prior[0] -= (dvbf_real)by_mean;
    d_prior[1] += (dvbf_real)(g * (1 - precision * (sigma * sigma + apart * apart)));
  }
}

static const dvbf_op_class universal_class = {"universal", universal_forward, universal_backward, NULL};

void dvbf_universal_sample(dvbf_graph *g, const dvbf_universal *u) {
  universal_data data = {dvbf_term(g, DVBF_KL_V, 1), dvbf_scalar(g, DVBF_SEQUENCES, 1)};
  dvbf_value in[] = {u->mean, u->log_sigma, u->prior, u->noise, u->weight};
  dvbf_record(g, &universal_class, 5, in, 1, &u->v, &data, sizeof data);
}
