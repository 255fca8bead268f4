#include "op/op.h"

#include <math.h>
#include <string.h>

/* ---- Innovations w ----
 *
 * Annealed with inverse temperature c, what training minimises is E_q[ln q(w) - c ln p(w)], whose derivatives
 * are c mu and c sigma^2 - 1 (by ln sigma); c = 1 gives those of the KL. The reported kl is never annealed.
 */

typedef struct innovation_data {
  dv_innovation i;
  int first, count; /* steps */
} innovation_data;

typedef struct innovation_row {
  int n;
  const dvbf_real *mu, *raw, *eps;
  bool use;
} innovation_row;

/* Row r, counted over the op's steps. */
static innovation_row row_at(const dvbf_run *run, const innovation_data *d, int r) {
  int n = d->i.w.cols;
  bool known = d->i.head.buffer >= 0;
  const dvbf_real *head =
      known ? dv_at(run, dvbf_steps(d->i.head, d->first, d->count)) + (size_t)r * 2 * n : NULL;
  const dvbf_real *eps = dv_at(run, dvbf_steps(d->i.noise, d->first, d->count)) + (size_t)r * n;
  const dvbf_real *use = d->i.use.buffer < 0 ? NULL : dv_at(run, dvbf_steps(d->i.use, d->first, d->count));
  return (innovation_row){n, head, known ? head + n : NULL, eps, known && (!use || use[r] > 0)};
}

static void innovation_forward(const dvbf_op *op, dvbf_run *run) {
  const innovation_data *d = op->data;
  int n = d->i.w.cols;
  dvbf_real *w = dv_at(run, dvbf_steps(d->i.w, d->first, d->count));
  dvbf_real *kl = dv_at(run, dvbf_steps(d->i.kl, d->first, d->count));
  for (int r = 0; r < d->count * d->i.w.rows; r++, w += n) {
    innovation_row row = row_at(run, d, r);
    kl[r] = 0;
    if (!row.use) {
      memcpy(w, row.eps, (size_t)n * sizeof *w);
      continue;
    }
    for (int k = 0; k < n; k++) {
      dvbf_real ls = dv_clamp(row.raw[k], d->i.low, d->i.high), sigma = (dvbf_real)exp(ls);
      w[k] = row.mu[k] + sigma * row.eps[k];
      kl[r] += (dvbf_real)0.5 * (row.mu[k] * row.mu[k] + sigma * sigma - 1) - ls;
    }
  }
}

static void innovation_backward(const dvbf_op *op, dvbf_run *run) {
  const innovation_data *d = op->data;
  int n = d->i.w.cols;
  dvbf_real c = (dvbf_real)run->schedule->temperature;
  const dvbf_real *dw = dvbf_gradient_at(run, dvbf_steps(d->i.w, d->first, d->count));
  const dvbf_real *dkl = dvbf_gradient_at(run, dvbf_steps(d->i.kl, d->first, d->count));
  dvbf_real *d_head = dvbf_gradient_at(run, dvbf_steps(d->i.head, d->first, d->count));
  for (int r = 0; r < d->count * d->i.w.rows; r++, dw += n, d_head += 2 * n) {
    innovation_row row = row_at(run, d, r);
    if (!row.use) continue;
    for (int k = 0; k < n; k++) {
      d_head[k] += dw[k] + dkl[r] * c * row.mu[k];
      if (row.raw[k] < d->i.low || row.raw[k] > d->i.high) continue;
      dvbf_real sigma = (dvbf_real)exp(row.raw[k]);
      d_head[n + k] += dw[k] * sigma * row.eps[k] + dkl[r] * (c * sigma * sigma - 1);
    }
  }
}

static const dvbf_op_class innovation_class = {"innovation", innovation_forward, innovation_backward};

void dv_record_innovation(dvbf_graph *g, const dv_innovation *i, int t) {
  innovation_data data = {*i, t < 0 ? 0 : t, t < 0 ? i->w.steps : 1};
  dvbf_value in[] = {i->head, i->noise, i->use}, out[] = {i->w, i->kl};
  if ((i->head.buffer >= 0 && i->head.cols != 2 * i->w.cols) || i->noise.cols != i->w.cols)
    dvbf_refuse(g, "a head of %d outputs cannot give %d innovations", i->head.cols, i->w.cols);
  dvbf_record(g, &innovation_class, 3, in, 2, out, &data, sizeof data);
}

/* ---- Universal parameters v ----
 *
 *   KL = sum_n ln s - ln sigma + (sigma^2 + (mu - m)^2) / (2 s^2) - 1/2
 *
 * It belongs to the data set, so each of N sequences carries a share of 1 / N; it is not annealed. */

static double shard_weight(const dvbf_run *run, dvbf_value weight) {
  const dvbf_real *w = dv_at(run, weight);
  double sum = 0;
  for (int r = 0; r < weight.rows; r++) sum += (double)w[r];
  return sum;
}

static void universal_forward(const dvbf_op *op, dvbf_run *run) {
  const dv_universal *u = op->data;
  int n = u->mean.cols;
  const dvbf_real *mean = dv_at(run, u->mean), *ls = dv_at(run, u->log_sigma), *prior = dv_at(run, u->prior);
  const dvbf_real *eps = dv_at(run, u->noise);
  dvbf_real *v = dv_at(run, u->v);
  double kl = 0, m = (double)prior[0], log_s = (double)prior[1], precision = exp(-2 * log_s);
  for (int k = 0; k < n; k++) {
    double sigma = exp((double)ls[k]), apart = (double)mean[k] - m;
    for (int t = 0; t < u->v.steps; t++)
      v[(size_t)t * n + k] = mean[k] + (dvbf_real)sigma * eps[(size_t)t * n + k];
    kl += log_s - (double)ls[k] + 0.5 * precision * (sigma * sigma + apart * apart) - 0.5;
  }
  run->terms[DV_KL_V] += kl / run->schedule->sequences * shard_weight(run, u->weight);
}

static void universal_backward(const dvbf_op *op, dvbf_run *run) {
  const dv_universal *u = op->data;
  int n = u->mean.cols;
  const dvbf_real *mean = dv_at(run, u->mean), *ls = dv_at(run, u->log_sigma), *prior = dv_at(run, u->prior);
  const dvbf_real *eps = dv_at(run, u->noise), *dv = dvbf_gradient_at(run, u->v);
  dvbf_real *d_mean = dvbf_gradient_at(run, u->mean), *d_ls = dvbf_gradient_at(run, u->log_sigma);
  dvbf_real *d_prior = dvbf_gradient_at(run, u->prior);
  double g = run->schedule->scale * shard_weight(run, u->weight) / run->schedule->sequences;
  double m = (double)prior[0], precision = exp(-2 * (double)prior[1]);
  for (int k = 0; k < n; k++) {
    double sigma = exp((double)ls[k]), apart = (double)mean[k] - m, by_mean = g * precision * apart;
    double by_ls = g * (precision * sigma * sigma - 1), to_mean = by_mean;
    for (int t = 0; t < u->v.steps; t++) {
      double d = (double)dv[(size_t)t * n + k];
      to_mean += d;
      by_ls += d * sigma * (double)eps[(size_t)t * n + k];
    }
    d_mean[k] += (dvbf_real)to_mean;
    d_ls[k] += (dvbf_real)by_ls;
    d_prior[0] -= (dvbf_real)by_mean;
    d_prior[1] += (dvbf_real)(g * (1 - precision * (sigma * sigma + apart * apart)));
  }
}

static const dvbf_op_class universal_class = {"universal", universal_forward, universal_backward};

void dv_record_universal(dvbf_graph *g, const dv_universal *u) {
  dvbf_value in[] = {u->mean, u->log_sigma, u->prior, u->noise, u->weight};
  dvbf_record(g, &universal_class, 5, in, 1, &u->v, u, sizeof *u);
}
