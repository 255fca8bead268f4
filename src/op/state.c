/* States z with a learned prior:
 *
 *   kl = sum_n ln sigma_p - ln sigma_q + (sigma_q^2 + d^2) / (2 sigma_p^2) - 1/2,   d = mu_q - mu_p
 *
 * Annealed with inverse temperature c, what training minimises is E_q[ln q(z) - c ln p(z)]. Its derivatives:
 *
 *   mu_q         c d / sigma_p^2
 *
 *   ln sigma_q   c sigma_q^2 / sigma_p^2 - 1
 *
 *   mu_p        -c d / sigma_p^2
 *
 *   ln sigma_p   c (1 - (sigma_q^2 + d^2) / sigma_p^2)
 *
 * The reported kl is never annealed. */
#include "op/op.h"

#include <math.h>

typedef struct sample_data {
  dv_state s;
  int first, count; /* steps */
  bool from_q;      /* whatever `use` says */
} sample_data;

/* The head that z of row r of step t comes from; its gradient with `back`. */
static dvbf_real *head_of(const dvbf_run *run, const sample_data *d, int t, int r, bool back) {
  const dv_state *s = &d->s;
  bool q = d->from_q || (t < s->seen && dv_at(run, dvbf_steps(s->use, t, 1))[r] > 0);
  dvbf_value head = dvbf_steps(q ? s->q : s->p, t, 1);
  return (back ? dvbf_gradient_at(run, head) : dv_at(run, head)) + (size_t)r * 2 * s->z.cols;
}

static void sample_forward(const dvbf_op *op, dvbf_run *run) {
  const sample_data *d = op->data;
  int n = d->s.z.cols;
  for (int t = d->first; t < d->first + d->count; t++) {
    dvbf_real *z = dv_at(run, dvbf_steps(d->s.z, t, 1));
    const dvbf_real *eps = dv_at(run, dvbf_steps(d->s.noise, t, 1));
    for (int r = 0; r < d->s.z.rows; r++, z += n, eps += n) {
      const dvbf_real *head = head_of(run, d, t, r, false);
      for (int k = 0; k < n; k++)
        z[k] = head[k] + (dvbf_real)exp(dv_clamp(head[n + k], d->s.low, d->s.high)) * eps[k];
    }
  }
}

static void sample_backward(const dvbf_op *op, dvbf_run *run) {
  const sample_data *d = op->data;
  int n = d->s.z.cols;
  for (int t = d->first; t < d->first + d->count; t++) {
    const dvbf_real *dz = dvbf_gradient_at(run, dvbf_steps(d->s.z, t, 1));
    const dvbf_real *eps = dv_at(run, dvbf_steps(d->s.noise, t, 1));
    for (int r = 0; r < d->s.z.rows; r++, dz += n, eps += n) {
      const dvbf_real *head = head_of(run, d, t, r, false);
      dvbf_real *back = head_of(run, d, t, r, true);
      for (int k = 0; k < n; k++) {
        back[k] += dz[k];
        if (head[n + k] < d->s.low || head[n + k] > d->s.high) continue;
        back[n + k] += dz[k] * (dvbf_real)exp(head[n + k]) * eps[k];
      }
    }
  }
}

static const dvbf_op_class sample_class = {"state-sample", sample_forward, sample_backward};

static bool state_fits(dvbf_graph *g, const dv_state *s) {
  int n = s->z.cols;
  bool fits = s->p.cols == 2 * n && s->noise.cols == n && (!s->seen || s->q.cols == 2 * n) &&
              s->seen <= s->z.steps && (!s->seen || s->q.steps >= s->seen);
  if (!fits)
    dvbf_refuse(g, "heads [%d][%d] and [%d][%d] cannot give %d steps of %d states", s->q.steps, s->q.cols,
                s->p.steps, s->p.cols, s->z.steps, n);
  return fits;
}

void dv_record_state_sample(dvbf_graph *g, const dv_state *s, int t) {
  sample_data data = {*s, t < 0 ? 0 : t, t < 0 ? s->z.steps : 1, t < 0};
  dvbf_value in[] = {s->q, s->p, s->noise, s->use};
  if (t < 0 && s->seen < s->z.steps) dvbf_refuse(g, "q has seen %d of %d steps", s->seen, s->z.steps);
  if (t < 0) in[1] = in[3] = DVBF_NONE; /* p is written later */
  if (state_fits(g, s)) dvbf_record(g, &sample_class, 4, in, 1, &s->z, &data, sizeof data);
}

/* Where the heads of row r begin, in each step. */
static size_t row_of(const dv_state *s, int r) {
  return (size_t)r * 2 * (size_t)s->z.cols;
}

static bool uses_q(const dvbf_run *run, const dv_state *s, int t, int r) {
  return t < s->seen && dv_at(run, dvbf_steps(s->use, t, 1))[r] > 0;
}

static void state_kl_forward(const dvbf_op *op, dvbf_run *run) {
  const dv_state *s = op->data;
  int n = s->z.cols;
  dvbf_real *kl = dv_at(run, s->kl);
  for (int t = 0; t < s->kl.steps; t++)
    for (int r = 0; r < s->kl.rows; r++, kl++) {
      *kl = 0;
      if (!uses_q(run, s, t, r)) continue;
      const dvbf_real *q = dv_at(run, dvbf_steps(s->q, t, 1)) + row_of(s, r);
      const dvbf_real *p = dv_at(run, dvbf_steps(s->p, t, 1)) + row_of(s, r);
      for (int k = 0; k < n; k++) {
        dvbf_real lq = dv_clamp(q[n + k], s->low, s->high), lp = dv_clamp(p[n + k], s->low, s->high);
        dvbf_real d = (q[k] - p[k]) * (dvbf_real)exp(-lp), ratio = (dvbf_real)exp(2 * (lq - lp));
        *kl += lp - lq + (dvbf_real)0.5 * (ratio + d * d - 1);
      }
    }
}

static void state_kl_backward(const dvbf_op *op, dvbf_run *run) {
  const dv_state *s = op->data;
  int n = s->z.cols;
  dvbf_real c = (dvbf_real)run->schedule->temperature;
  const dvbf_real *dkl = dvbf_gradient_at(run, s->kl);
  for (int t = 0; t < s->kl.steps; t++)
    for (int r = 0; r < s->kl.rows; r++, dkl++) {
      if (!uses_q(run, s, t, r)) continue;
      const dvbf_real *q = dv_at(run, dvbf_steps(s->q, t, 1)) + row_of(s, r);
      const dvbf_real *p = dv_at(run, dvbf_steps(s->p, t, 1)) + row_of(s, r);
      dvbf_real *dq = dvbf_gradient_at(run, dvbf_steps(s->q, t, 1)) + row_of(s, r);
      dvbf_real *dp = dvbf_gradient_at(run, dvbf_steps(s->p, t, 1)) + row_of(s, r);
      for (int k = 0; k < n; k++) {
        dvbf_real lq = dv_clamp(q[n + k], s->low, s->high), lp = dv_clamp(p[n + k], s->low, s->high);
        dvbf_real d = q[k] - p[k], precision = (dvbf_real)exp(-2 * lp);
        dvbf_real ratio = (dvbf_real)exp(2 * (lq - lp)), by_mean = *dkl * c * d * precision;
        dq[k] += by_mean;
        dp[k] -= by_mean;
        if (q[n + k] >= s->low && q[n + k] <= s->high) dq[n + k] += *dkl * (c * ratio - 1);
        if (p[n + k] >= s->low && p[n + k] <= s->high)
          dp[n + k] += *dkl * c * (1 - ratio - d * d * precision);
      }
    }
}

static const dvbf_op_class state_kl_class = {"state-kl", state_kl_forward, state_kl_backward};

void dv_record_state_kl(dvbf_graph *g, const dv_state *s) {
  dvbf_value in[] = {s->q, s->p, s->use};
  if (state_fits(g, s)) dvbf_record(g, &state_kl_class, 3, in, 1, &s->kl, s, sizeof *s);
}
