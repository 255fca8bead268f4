/* The locally linear step of embed to control (Watter et al. 2015; dv_record_local), the divergence between
 * where it takes q and q of the next frame (dv_record_divergence), which the determinant lemma makes cheap,
 * and a choice between two values (dv_record_choose). */

/* z' = A z + B u + o with A = I + v r'. v, r, o and B [n][n_u] are the columns of `parts`, one system for
 * each row.
 *
 *   z'_i = z_i + v_i s + o_i + sum_k B_ik u_k,   s = r'z
 *
 *   with d = d z', e = v'd:   d z += d + e r    d v += s d    d r += e z    d o += d    d B_ik += d_i u_k
 *                             d u_k += sum_i B_ik d_i
 *
 * How far the step takes q(z) = N(mu, sigma^2) from q'(z') = N(mu', sigma'^2) of the next frame:
 *
 *   kl = KL(N(a, A diag(sigma^2) A') || q')
 *      = sum_i [(V_i + c_i^2) / sigma'_i^2 - 1] / 2 + ln sigma'_i - ln sigma_i   - ln |1 + v'r|
 *
 *   a = A mu + B u + o,   c = a - mu',   V_i = sigma_i^2 (1 + 2 v_i r_i) + v_i^2 R,   R = sum_j r_j^2
 * sigma_j^2
 *
 *   with g = 1 + v'r, p_i = 1 / sigma'_i^2, b_i = c_i p_i, e = v'b, w = sum_j p_j v_j^2:
 *
 *   mu_i        b_i + e r_i                     mu'_i        -b_i
 *   ln sigma_i  sigma_i^2 (p_i (1 + 2 v_i r_i) + w r_i^2) - 1
 *   ln sigma'_i 1 - (V_i + c_i^2) p_i
 *   v_i         b_i r'mu + p_i (sigma_i^2 r_i + v_i R) - r_i / g
 *   r_i         e mu_i + sigma_i^2 (p_i v_i + r_i w) - v_i / g
 *   o_i         b_i                             B_ik         b_i u_k
 *
 * It is 0 if q of either step is not used. Every ln sigma is kept inside [low, high]. */
#include "ops/ops.h"

#include "math/portable.h"

#include <math.h>

static double dot(const dvbf_real *a, const dvbf_real *b, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
  return sum;
}

/* o_i + sum_k B_ik u_k */
static double shift_of(const dvbf_real *parts, const dvbf_real *u, int n, int n_u, int i) {
  return (double)parts[2 * n + i] + (n_u ? dot(parts + 3 * n + i * n_u, u, n_u) : 0);
}

/* Adds the gradient `by` of entry i of the shift to those of o, B and u. */
static void shift_back(dvbf_real *d_parts, dvbf_real *d_u, const dvbf_real *parts, const dvbf_real *u, int n,
                       int n_u, int i, double by) {
  d_parts[2 * n + i] += (dvbf_real)by;
  for (int k = 0; k < n_u; k++) {
    d_parts[3 * n + i * n_u + k] += (dvbf_real)(by * (double)u[k]);
    if (d_u) d_u[k] += (dvbf_real)(by * (double)parts[3 * n + i * n_u + k]);
  }
}

/* ---- The step; in: z, u, parts; out: next ---- */

static void local_forward(const dvbf_op *op, dvbf_run *run) {
  int n = op->out[0].cols, n_u = op->in[1].cols;
  dvbf_real *next = dv_at(run, op->out[0]);
  for (int r = 0; r < op->out[0].rows; r++, next += n) {
    const dvbf_real *z = dv_row(run, op->in[0], r), *u = dv_row(run, op->in[1], r);
    const dvbf_real *parts = dv_row(run, op->in[2], r);
    double s = dot(parts + n, z, n);
    for (int i = 0; i < n; i++)
      next[i] = (dvbf_real)((double)z[i] + (double)parts[i] * s + shift_of(parts, u, n, n_u, i));
  }
}

static void local_backward(const dvbf_op *op, dvbf_run *run) {
  int n = op->out[0].cols, n_u = op->in[1].cols;
  for (int r = 0; r < op->out[0].rows; r++) {
    const dvbf_real *z = dv_row(run, op->in[0], r), *u = dv_row(run, op->in[1], r);
    const dvbf_real *parts = dv_row(run, op->in[2], r), *d = dv_row_gradient(run, op->out[0], r);
    dvbf_real *d_z = dv_row_gradient(run, op->in[0], r), *d_u = dv_row_gradient(run, op->in[1], r);
    dvbf_real *d_parts = dv_row_gradient(run, op->in[2], r);
    double s = dot(parts + n, z, n), e = dot(parts, d, n);
    for (int i = 0; i < n; i++) {
      if (d_z) d_z[i] += (dvbf_real)((double)d[i] + e * (double)parts[n + i]);
      d_parts[i] += (dvbf_real)(s * (double)d[i]);
      d_parts[n + i] += (dvbf_real)(e * (double)z[i]);
      shift_back(d_parts, d_u, parts, u, n, n_u, i, (double)d[i]);
    }
  }
}

static const dvbf_op_class local_class = {"local-step", local_forward, local_backward, NULL};

void dv_record_local(dvbf_graph *g, dvbf_value next, dvbf_value z, dvbf_value u, dvbf_value parts) {
  dvbf_value in[] = {z, u, parts};
  if (parts.cols != (3 + u.cols) * z.cols || next.cols != z.cols)
    dvbf_refuse(g, "%d numbers do not make a locally linear system of %d states and %d controls", parts.cols,
                z.cols, u.cols);
  dvbf_record(g, &local_class, 3, in, 1, &next, NULL, 0);
}

/* ---- The divergence; in: parts, u, q, q', use, use'; out: kl ---- */

/* Parts of a row. */
typedef struct local_row {
  const dvbf_real *parts, *v, *r, *u, *q, *p;
  int n, n_u;
  double s, gap, spread; /* r'mu, 1 + v'r, R */
  const dv_divergence *limits;
} local_row;

static double square_of(const local_row *w, const dvbf_real *head, int i) {
  return dv_exp(2 * (double)dv_clamp(head[w->n + i], w->limits->low, w->limits->high));
}

static bool inside(const local_row *w, const dvbf_real *head, int i) {
  return head[w->n + i] >= w->limits->low && head[w->n + i] <= w->limits->high;
}

/* False if a q is not used. */
static bool local_row_at(local_row *w, const dvbf_op *op, const dvbf_run *run, int r) {
  if (!(*dv_row(run, op->in[4], r) > 0) || !(*dv_row(run, op->in[5], r) > 0)) return false;
  *w = (local_row){.parts = dv_row(run, op->in[0], r),
                   .u = dv_row(run, op->in[1], r),
                   .q = dv_row(run, op->in[2], r),
                   .p = dv_row(run, op->in[3], r),
                   .n = op->in[2].cols / 2,
                   .n_u = op->in[1].cols,
                   .limits = op->data};
  w->v = w->parts;
  w->r = w->parts + w->n;
  w->s = dot(w->r, w->q, w->n);
  w->gap = 1 + dot(w->v, w->r, w->n);
  if (fabs(w->gap) < 1e-6) w->gap = copysign(1e-6, w->gap);
  for (int i = 0; i < w->n; i++) w->spread += (double)w->r[i] * (double)w->r[i] * square_of(w, w->q, i);
  return true;
}

static double variance_of(const local_row *w, int i) {
  double v = (double)w->v[i];
  return square_of(w, w->q, i) * (1 + 2 * v * (double)w->r[i]) + v * v * w->spread;
}

static double apart_of(const local_row *w, int i) {
  return (double)w->q[i] + (double)w->v[i] * w->s + shift_of(w->parts, w->u, w->n, w->n_u, i) -
         (double)w->p[i];
}

static void divergence_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_real *kl = dv_at(run, op->out[0]);
  for (int r = 0; r < op->out[0].rows; r++) {
    local_row w;
    kl[r] = 0;
    if (!local_row_at(&w, op, run, r)) continue;
    double sum = -dv_log(fabs(w.gap));
    for (int i = 0; i < w.n; i++) {
      double c = apart_of(&w, i), after = square_of(&w, w.p, i);
      sum += 0.5 * ((variance_of(&w, i) + c * c) / after - 1 + dv_log(after) - dv_log(square_of(&w, w.q, i)));
    }
    kl[r] = (dvbf_real)sum;
  }
}

/* e and w of the formula. */
static void sums_of(const local_row *w, double *along, double *weight) {
  *along = *weight = 0;
  for (int i = 0; i < w->n; i++) {
    double p = 1 / square_of(w, w->p, i), v = (double)w->v[i];
    *along += v * apart_of(w, i) * p;
    *weight += p * v * v;
  }
}

static void divergence_backward(const dvbf_op *op, dvbf_run *run) {
  for (int row = 0; row < op->out[0].rows; row++) {
    local_row w;
    if (!local_row_at(&w, op, run, row)) continue;
    dvbf_real *d_parts = dv_row_gradient(run, op->in[0], row), *d_u = dv_row_gradient(run, op->in[1], row);
    dvbf_real *d_q = dv_row_gradient(run, op->in[2], row), *d_p = dv_row_gradient(run, op->in[3], row);
    double by = (double)*dv_row_gradient(run, op->out[0], row), e, weight;
    sums_of(&w, &e, &weight);
    for (int i = 0, n = w.n; i < n; i++) {
      double c = apart_of(&w, i), p = 1 / square_of(&w, w.p, i), b = c * p, square = square_of(&w, w.q, i);
      double v = (double)w.v[i], r = (double)w.r[i];
      d_q[i] += (dvbf_real)(by * (b + e * r));
      d_p[i] -= (dvbf_real)(by * b);
      if (inside(&w, w.q, i))
        d_q[n + i] += (dvbf_real)(by * (square * (p * (1 + 2 * v * r) + weight * r * r) - 1));
      if (inside(&w, w.p, i)) d_p[n + i] += (dvbf_real)(by * (1 - (variance_of(&w, i) + c * c) * p));
      d_parts[i] += (dvbf_real)(by * (b * w.s + p * (square * r + v * w.spread) - r / w.gap));
      d_parts[n + i] += (dvbf_real)(by * (e * (double)w.q[i] + square * (p * v + r * weight) - v / w.gap));
      shift_back(d_parts, d_u, w.parts, w.u, n, w.n_u, i, by * b);
    }
  }
}

static const dvbf_op_class divergence_class = {"local-divergence", divergence_forward, divergence_backward,
                                               NULL};

void dv_record_divergence(dvbf_graph *g, const dv_divergence *d) {
  dvbf_value in[] = {d->parts, d->u, d->q, d->next, d->use, d->next_use};
  dvbf_record(g, &divergence_class, 6, in, 1, &d->kl, d, sizeof *d);
}

/* ---- out = a where use > 0, else b;   d a += d out, or d b += d out. in: a, b, use ---- */

static void choose_forward(const dvbf_op *op, dvbf_run *run) {
  int n = op->out[0].cols;
  dvbf_real *out = dv_at(run, op->out[0]);
  for (int r = 0; r < op->out[0].rows; r++, out += n) {
    const dvbf_real *from = dv_row(run, op->in[*dv_row(run, op->in[2], r) > 0 ? 0 : 1], r);
    for (int i = 0; i < n; i++) out[i] = from[i];
  }
}

static void choose_backward(const dvbf_op *op, dvbf_run *run) {
  int n = op->out[0].cols;
  for (int r = 0; r < op->out[0].rows; r++) {
    const dvbf_real *d = dv_row_gradient(run, op->out[0], r);
    dvbf_real *to = dv_row_gradient(run, op->in[*dv_row(run, op->in[2], r) > 0 ? 0 : 1], r);
    for (int i = 0; i < n; i++) to[i] += d[i];
  }
}

static const dvbf_op_class choose_class = {"choose", choose_forward, choose_backward, NULL};

void dv_record_choose(dvbf_graph *g, dvbf_value out, dvbf_value a, dvbf_value b, dvbf_value use) {
  dvbf_value in[] = {a, b, use};
  dvbf_record(g, &choose_class, 3, in, 1, &out, NULL, 0);
}
