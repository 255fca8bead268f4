#include "infer/weights.h"

#include "base/arithmetic.h"

#include <math.h>

/* ---- Densities ---- */

/* sum_k ln N(eps_k; 0, 1) - ln sigma_k, less n/2 ln 2 pi: ln q of what eps gave. head = (mu, ln sigma). */
static double log_q(const dvbf_model *m, const dvbf_real *head, const dvbf_real *eps, int n) {
  const dv_train_settings *s = m->settings;
  double sum = 0;
  for (int k = 0; k < n; k++)
    sum -= 0.5 * (double)eps[k] * (double)eps[k] +
           (double)dv_clamp(head[n + k], s->log_sigma_min, s->log_sigma_max);
  return sum;
}

/* ln N(x; 0, I), less n/2 ln 2 pi. */
static double log_standard(const dvbf_real *x, int n) {
  double sum = 0;
  for (int k = 0; k < n; k++) sum -= 0.5 * (double)x[k] * (double)x[k];
  return sum;
}

/* ln N(z; mu, sigma^2) with head = (mu, ln sigma), less n/2 ln 2 pi. */
static double log_state(const dvbf_model *m, const dvbf_real *z, const dvbf_real *head, int n) {
  double sum = 0;
  for (int k = 0; k < n; k++) {
    double ls = (double)dv_clamp(head[n + k], m->settings->log_sigma_min, m->settings->log_sigma_max);
    double apart = ((double)z[k] - (double)head[k]) * dv_exp(-ls);
    sum -= 0.5 * apart * apart + ls;
  }
  return sum;
}

/* Row r of step t of a value. */
static const dvbf_real *row_of(const dvbf_run *run, dvbf_value value, int t, int r) {
  return dvbf_at(run, dvbf_steps(value, t, 1)) + (size_t)r * (size_t)value.cols;
}

/* ln prior - ln q of row r of step t of what is drawn; 0 where it comes from the prior. */
static double log_ratio(const dvbf_drawn *d, const dv_worker *w, int t, int r) {
  const dvbf_run *run = &w->run;
  const dvbf_model *m = w->model;
  int n = d->value.cols;
  bool from_q =
      d->head.buffer >= 0 && t < d->head.steps && (d->use.buffer < 0 || *row_of(run, d->use, t, r) > 0);
  if (!from_q) return 0;
  const dvbf_real *value = row_of(run, d->value, t, r);
  double prior =
      d->prior.buffer < 0 ? log_standard(value, n) : log_state(m, value, row_of(run, d->prior, t, r), n);
  return prior - log_q(m, row_of(run, d->head, t, r), row_of(run, d->noise, t, r), n);
}

double dv_log_ratio_first(const dv_worker *w, int r) {
  return log_ratio(&w->program->first, w, 0, r);
}

double dv_log_ratio(const dv_worker *w, int t, int r) {
  return log_ratio(&w->program->later, w, t, r);
}

double dv_frame_jacobian(const dv_worker *w, double whole, int t, int r) {
  const dvbf_program *p = w->program;
  const dvbf_model *m = w->model;
  size_t n = (size_t)m->n_x, frame = (size_t)t * (size_t)p->rows + (size_t)r;
  if (!(dvbf_at(&w->run, p->mask)[frame] > 0)) return 0;
  if (!p->gaps || n == 1) return whole;
  const dvbf_real *seen = dvbf_at(&w->run, p->seen) + frame * n;
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    if (seen[i] > 0) sum += dv_log((double)m->x.scale[i]);
  return sum;
}

/* ---- Weights ---- */

double dv_log_sum_exp(const double *x, size_t n) {
  double most = -INFINITY, sum = 0;
  for (size_t i = 0; i < n; i++)
    if (x[i] > most) most = x[i];
  if (!isfinite(most)) return most;
  for (size_t i = 0; i < n; i++)
    if (!isnan(x[i])) sum += dv_exp(x[i] - most);
  return most + dv_log(sum);
}

double dv_normalise(const double *x, double *weight, size_t n) {
  double all = dv_log_sum_exp(x, n);
  for (size_t i = 0; i < n; i++)
    weight[i] = !isfinite(all) ? 1 / (double)n : isnan(x[i]) ? 0 : dv_exp(x[i] - all);
  return all;
}

void dv_resample(const double *weight, size_t n, double uniform, uint32_t *index, size_t m) {
  double sum = 0, total = 0;
  size_t at = 0;
  for (size_t i = 0; i < n; i++) total += weight[i];
  sum = weight[0];
  for (size_t i = 0; i < m; i++) {
    double place = ((double)i + uniform) / (double)m * total;
    while (place > sum && at + 1 < n) sum += weight[++at];
    index[i] = (uint32_t)at;
  }
}
