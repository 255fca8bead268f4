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
#include "base/arithmetic.h"
#include "op/emit.h"
#include "op/op.h"

#include <math.h>

typedef struct state_data {
  double low, high;
  int seen;        /* KL: steps that q has heads for */
  int temperature; /* KL: scalar */
} state_data;

/* The head that z of row r comes from; its gradient with `back`. in: q, p, noise, use; out: z. A step past
 * those that q has seen has no q, a sample that takes all steps from q no `use`. */
static dvbf_real *head_of(const dvbf_run *run, const dvbf_op *op, int r, bool back) {
  const dvbf_real *use = dv_at(run, op->in[3]);
  bool q = op->in[0].buffer >= 0 && (!use || use[r] > 0);
  dvbf_value head = op->in[q ? 0 : 1];
  return (back ? dvbf_gradient_at(run, head) : dv_at(run, head)) + (size_t)r * 2 * op->out[0].cols;
}

/* 0 where filter dropout asks for the mean of the prior, else 1. */
static dvbf_real noise_factor(const dvbf_run *run, const dvbf_op *op, int r) {
  const dvbf_real *use = dv_at(run, op->in[3]);
  return use && use[r] < 0 ? 0 : 1;
}

static void sample_forward(const dvbf_op *op, dvbf_run *run) {
  const state_data *d = op->data;
  int n = op->out[0].cols, rows = op->out[0].steps * op->out[0].rows;
  dvbf_real *z = dv_at(run, op->out[0]);
  const dvbf_real *eps = dv_at(run, op->in[2]);
  for (int r = 0; r < rows; r++, z += n, eps += n) {
    const dvbf_real *head = head_of(run, op, r, false), factor = noise_factor(run, op, r);
    for (int k = 0; k < n; k++)
      z[k] = head[k] + (dvbf_real)dv_exp(dv_clamp(head[n + k], d->low, d->high)) * factor * eps[k];
  }
}

static void sample_backward(const dvbf_op *op, dvbf_run *run) {
  const state_data *d = op->data;
  int n = op->out[0].cols, rows = op->out[0].steps * op->out[0].rows;
  const dvbf_real *dz = dvbf_gradient_at(run, op->out[0]), *eps = dv_at(run, op->in[2]);
  for (int r = 0; r < rows; r++, dz += n, eps += n) {
    const dvbf_real *head = head_of(run, op, r, false);
    dvbf_real *back = head_of(run, op, r, true), factor = noise_factor(run, op, r);
    for (int k = 0; k < n; k++) {
      back[k] += dz[k];
      if (head[n + k] < d->low || head[n + k] > d->high) continue;
      back[n + k] += dz[k] * (dvbf_real)dv_exp(head[n + k]) * factor * eps[k];
    }
  }
}

/* mu + sigma eps of a head */
static dvbf_expr emit_drawn(const dvbf_op *op, dvbf_code *code, dvbf_value head) {
  const state_data *d = op->data;
  dvbf_value raw = head;
  raw.offset += (size_t)op->out[0].cols;
  dvbf_expr sigma = dvbf_code_unary(code, DVBF_EXP_OF, dv_within(code, dv_read(code, raw), d->low, d->high));
  return dv_plus(code, dv_read(code, head), dv_times(code, sigma, dv_read(code, op->in[2])));
}

static void sample_emit(const dvbf_op *op, dvbf_code *code) {
  bool q = op->in[0].buffer >= 0, p = op->in[1].buffer >= 0, use = op->in[3].buffer >= 0;
  if (q && p && use)
    dv_emit(code, op->out[0],
            dvbf_code_choose(code, dv_read_column(code, op->in[3]), emit_drawn(op, code, op->in[0]),
                             emit_drawn(op, code, op->in[1])));
  else
    dv_emit(code, op->out[0], emit_drawn(op, code, op->in[q ? 0 : 1]));
}

static const dvbf_op_class sample_class = {"state-sample", sample_forward, sample_backward, sample_emit};

static bool state_fits(dvbf_graph *g, const dvbf_state *s) {
  int n = s->z.cols;
  bool fits = s->p.cols == 2 * n && s->noise.cols == n && (!s->seen || s->q.cols == 2 * n) &&
              s->seen <= s->z.steps && (!s->seen || s->q.steps >= s->seen);
  if (!fits)
    dvbf_refuse(g, "heads [%d][%d] and [%d][%d] cannot give %d steps of %d states", s->q.steps, s->q.cols,
                s->p.steps, s->p.cols, s->z.steps, n);
  return fits;
}

void dvbf_state_sample(dvbf_graph *g, const dvbf_state *s, int t) {
  state_data data = {.low = s->low, .high = s->high};
  int first = t < 0 ? 0 : t, count = t < 0 ? s->z.steps : 1;
  dvbf_value none = DVBF_NONE, z = dvbf_steps(s->z, first, count);
  dvbf_value in[] = {first + count <= s->seen ? dvbf_steps(s->q, first, count) : none,
                     dvbf_steps(s->p, first, count), dvbf_steps(s->noise, first, count),
                     dvbf_steps(s->use, first, count)};
  if (t < 0 && s->seen < s->z.steps) dvbf_refuse(g, "q has seen %d of %d steps", s->seen, s->z.steps);
  if (t < 0) in[1] = in[3] = none; /* p is written later */
  if (state_fits(g, s)) dvbf_record(g, &sample_class, 4, in, 1, &z, &data, sizeof data);
}

/* in: q, p, use; out: kl. */
static bool uses_q(const dvbf_run *run, const dvbf_op *op, int t, int r) {
  const state_data *d = op->data;
  return t < d->seen && dv_at(run, dvbf_steps(op->in[2], t, 1))[r] > 0;
}

/* Row r of step t of a head, or of its gradient. */
static dvbf_real *head_at(const dvbf_run *run, dvbf_value head, int t, int r, bool back) {
  dvbf_value step = dvbf_steps(head, t, 1);
  return (back ? dvbf_gradient_at(run, step) : dv_at(run, step)) + (size_t)r * (size_t)head.cols;
}

static void state_kl_forward(const dvbf_op *op, dvbf_run *run) {
  const state_data *s = op->data;
  int n = op->in[1].cols / 2;
  dvbf_real *kl = dv_at(run, op->out[0]);
  for (int t = 0; t < op->out[0].steps; t++)
    for (int r = 0; r < op->out[0].rows; r++, kl++) {
      *kl = 0;
      if (!uses_q(run, op, t, r)) continue;
      const dvbf_real *q = head_at(run, op->in[0], t, r, false), *p = head_at(run, op->in[1], t, r, false);
      for (int k = 0; k < n; k++) {
        dvbf_real lq = dv_clamp(q[n + k], s->low, s->high), lp = dv_clamp(p[n + k], s->low, s->high);
        dvbf_real d = (q[k] - p[k]) * (dvbf_real)dv_exp(-lp), ratio = (dvbf_real)dv_exp(2 * (lq - lp));
        *kl += lp - lq + (dvbf_real)0.5 * (ratio + d * d - 1);
      }
    }
}

static void state_kl_backward(const dvbf_op *op, dvbf_run *run) {
  const state_data *s = op->data;
  int n = op->in[1].cols / 2;
  dvbf_real c = (dvbf_real)run->scalars[s->temperature];
  const dvbf_real *dkl = dvbf_gradient_at(run, op->out[0]);
  for (int t = 0; t < op->out[0].steps; t++)
    for (int r = 0; r < op->out[0].rows; r++, dkl++) {
      if (!uses_q(run, op, t, r)) continue;
      const dvbf_real *q = head_at(run, op->in[0], t, r, false), *p = head_at(run, op->in[1], t, r, false);
      dvbf_real *dq = head_at(run, op->in[0], t, r, true), *dp = head_at(run, op->in[1], t, r, true);
      for (int k = 0; k < n; k++) {
        dvbf_real lq = dv_clamp(q[n + k], s->low, s->high), lp = dv_clamp(p[n + k], s->low, s->high);
        dvbf_real d = q[k] - p[k], precision = (dvbf_real)dv_exp(-2 * lp);
        dvbf_real ratio = (dvbf_real)dv_exp(2 * (lq - lp)), by_mean = *dkl * c * d * precision;
        dq[k] += by_mean;
        dp[k] -= by_mean;
        if (q[n + k] >= s->low && q[n + k] <= s->high) dq[n + k] += *dkl * (c * ratio - 1);
        if (p[n + k] >= s->low && p[n + k] <= s->high)
          dp[n + k] += *dkl * c * (1 - ratio - d * d * precision);
      }
    }
}

static const dvbf_op_class state_kl_class = {"state-kl", state_kl_forward, state_kl_backward, NULL};

void dvbf_state_kl(dvbf_graph *g, const dvbf_state *s) {
  state_data data = {s->low, s->high, s->seen, dvbf_scalar(g, DVBF_TEMPERATURE, 1)};
  dvbf_value in[] = {s->q, s->p, s->use};
  if (state_fits(g, s)) dvbf_record(g, &state_kl_class, 3, in, 1, &s->kl, &data, sizeof data);
}
