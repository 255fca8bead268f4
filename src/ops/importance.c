/* Bounds of several samples: importance weighting (Burda, Grosse and Salakhutdinov 2016; dv_record_ln_ratio,
 * dv_record_importance) and resampling (dv_record_resample), as particle filters do it. Rows come in groups
 * of K samples of one sequence. */
#include "math/portable.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

/* With the weight of a row,
 *
 *   l = sum_t ln p(x_t | z_t) - sum_t r_t,    r_t = ln q(w_t) - ln p(w_t) at the drawn w_t,
 *
 * each group gives ln 1/K sum_k exp l_k. Its derivative by l_k is s_k = exp l_k / sum_j exp l_j. */

/* ---- r, of w = mu + sigma eps under q and N(m, s^2) under p ----
 *
 *   r = sum_n -eps^2 / 2 - ln sigma + (w - m)^2 / (2 s^2) + ln s
 *
 * Annealed with inverse temperature c, derivatives are those of ln q - c ln p:
 *
 *   w  c (w - m) / s^2      ln sigma  -1      m  -c (w - m) / s^2      ln s  c (1 - (w - m)^2 / s^2) */

typedef struct ratio_data {
  double low, high; /* of ln sigma and ln s */
  int temperature;  /* scalar */
} ratio_data;

/* in: w, head of q, noise, use, head of p; out: r. */
typedef struct ratio_row {
  const dvbf_real *w, *q, *eps, *p; /* p may be NULL: N(0, I) */
} ratio_row;

/* False if w is not from q: there p and q are the same. */
static bool row_at(const dvbf_op *op, const dvbf_run *run, size_t r, ratio_row *out) {
  const dvbf_value *in = op->in;
  size_t n = (size_t)in[0].cols, seen = (size_t)in[1].steps * (size_t)in[0].rows;
  const dvbf_real *q = dv_at(run, in[1]), *use = dv_at(run, in[3]), *p = dv_at(run, in[4]);
  if (!q || r >= seen || (use && !(use[r] > 0))) return false;
  *out = (ratio_row){dv_at(run, in[0]) + r * n, q + r * 2 * n, dv_at(run, in[2]) + r * n,
                     p ? p + r * 2 * n : NULL};
  return true;
}

static void ratio_forward(const dvbf_op *op, dvbf_run *run) {
  const ratio_data *d = op->data;
  int n = op->in[0].cols;
  dvbf_real *out = dv_at(run, op->out[0]);
  for (int r = 0; r < dv_rows(op->out[0]); r++) {
    ratio_row row;
    double sum = 0;
    bool drawn = row_at(op, run, (size_t)r, &row);
    for (int k = 0; drawn && k < n; k++) {
      double ln_s = row.p ? (double)dv_clamp(row.p[n + k], d->low, d->high) : 0;
      double apart = (double)(row.w[k] - (row.p ? row.p[k] : 0)) * dv_exp(-ln_s), eps = (double)row.eps[k];
      sum += 0.5 * (apart * apart - eps * eps) + ln_s - (double)dv_clamp(row.q[n + k], d->low, d->high);
    }
    out[r] = (dvbf_real)sum;
  }
}

static void ratio_backward(const dvbf_op *op, dvbf_run *run) {
  const ratio_data *d = op->data;
  int n = op->in[0].cols;
  double c = run->scalars[d->temperature];
  const dvbf_real *g = dvbf_gradient_at(run, op->out[0]);
  dvbf_real *d_w = dvbf_gradient_at(run, op->in[0]), *d_q = dvbf_gradient_at(run, op->in[1]);
  dvbf_real *d_p = dvbf_gradient_at(run, op->in[4]);
  for (int r = 0; r < dv_rows(op->out[0]); r++) {
    ratio_row row;
    bool drawn = row_at(op, run, (size_t)r, &row);
    size_t at = (size_t)r * (size_t)n;
    for (size_t k = 0, m = (size_t)n; drawn && k < m; k++) {
      double ln_s = row.p ? (double)dv_clamp(row.p[m + k], d->low, d->high) : 0;
      double apart = (double)(row.w[k] - (row.p ? row.p[k] : 0)) * dv_exp(-ln_s);
      dvbf_real by_w = (dvbf_real)((double)g[r] * c * apart * dv_exp(-ln_s));
      d_w[at + k] += by_w;
      if ((double)row.q[m + k] >= d->low && (double)row.q[m + k] <= d->high) d_q[2 * at + m + k] -= g[r];
      if (!row.p) continue;
      d_p[2 * at + k] -= by_w;
      if ((double)row.p[m + k] >= d->low && (double)row.p[m + k] <= d->high)
        d_p[2 * at + m + k] += (dvbf_real)((double)g[r] * c * (1 - apart * apart));
    }
  }
}

static const dvbf_op_class ratio_class = {"ln-ratio", ratio_forward, ratio_backward, NULL};

void dv_record_ln_ratio(dvbf_graph *g, dvbf_value out, const dvbf_drawn *d, double low, double high) {
  ratio_data data = {low, high, dvbf_scalar(g, DVBF_TEMPERATURE, 1)};
  dvbf_value in[] = {d->value, d->head, d->noise, d->use, d->prior};
  dvbf_record(g, &ratio_class, 5, in, 1, &out, &data, sizeof data);
}

/* ---- The bound of the groups ---- */

typedef struct groups_data {
  int samples, term, temperature;
} groups_data;

/* in: ln p, r of the first step, r of the others, weight; out: s [1][rows][1], here l before it is s. */
static void sum_rows(const dvbf_op *op, const dvbf_run *run, dvbf_real *l) {
  int rows = op->out[0].rows;
  for (int r = 0; r < rows; r++) l[r] = 0;
  for (int i = 0; i < 3; i++) {
    const dvbf_real *value = dv_at(run, op->in[i]), sign = i ? -1 : 1;
    for (int k = 0; value && k < op->in[i].steps * rows; k++) l[k % rows] += sign * value[k];
  }
}

static void groups_forward(const dvbf_op *op, dvbf_run *run) {
  const groups_data *d = op->data;
  dvbf_real *l = dv_at(run, op->out[0]);
  const dvbf_real *weight = dv_at(run, op->in[3]);
  sum_rows(op, run, l);
  for (int first = 0; first < op->out[0].rows; first += d->samples) {
    dvbf_real *group = l + first, most = group[0];
    double sum = 0, share = 0;
    for (int k = 1; k < d->samples; k++)
      if (group[k] > most) most = group[k];
    for (int k = 0; k < d->samples; k++) {
      group[k] = (dvbf_real)dv_exp((double)(group[k] - most));
      sum += (double)group[k];
      share += (double)weight[first + k];
    }
    for (int k = 0; k < d->samples; k++) group[k] = (dvbf_real)((double)group[k] / sum * share);
    dvbf_term_add(run, d->term, share * ((double)most + dv_log(sum / d->samples)));
  }
}

static void groups_backward(const dvbf_op *op, dvbf_run *run) {
  const groups_data *d = op->data;
  int rows = op->out[0].rows;
  const dvbf_real *s = dv_at(run, op->out[0]);
  double factor = dvbf_term_factor(run, d->term);
  for (int i = 0; i < 3; i++) {
    dvbf_real *gradient = dvbf_gradient_at(run, op->in[i]);
    double by = i ? -factor : factor * run->scalars[d->temperature];
    for (int k = 0; gradient && k < op->in[i].steps * rows; k++) gradient[k] += (dvbf_real)by * s[k % rows];
  }
}

static const dvbf_op_class groups_class = {"importance", groups_forward, groups_backward, NULL};

dvbf_value dv_record_importance(dvbf_graph *g, int term, int samples, dvbf_value ln_p, dvbf_value first,
                                dvbf_value later, dvbf_value weight) {
  groups_data data = {samples, term, dvbf_scalar(g, DVBF_TEMPERATURE, 1)};
  dvbf_value in[] = {ln_p, first, later, weight}, out = dvbf_slab_constant(g, 1, 1);
  if (weight.rows % samples) dvbf_refuse(g, "%d rows are not groups of %d samples", weight.rows, samples);
  dvbf_record(g, &groups_class, 4, in, 1, &out, &data, sizeof data);
  return out;
}

/* ---- Resampling ---- */

/* With weights s of a group and its number u in (0, 1), of which the first row's counts,
 *
 *   out_k = z_j,    j the first with s_1 + .. + s_j >= (k + u) / K (s_1 + .. + s_K),    k = 0 .. K - 1
 *   d z_j += d out_k
 *
 * The choice of j passes no gradient to s. Rows of equal weights stay as they are, and so does a group
 * without weight. */

/* in: z, s, u; out: z of the chosen rows, and which they were, counted from the first of their group. */
static void choose(const dvbf_real *s, double u, int n, dvbf_real *chosen) {
  double total = 0, sum = (double)s[0];
  int at = 0;
  for (int k = 0; k < n; k++) total += (double)s[k];
  for (int k = 0; k < n; k++) {
    double place = ((double)k + u) / n * total;
    while (place > sum && at + 1 < n) sum += (double)s[++at];
    chosen[k] = (dvbf_real)(total > 0 ? at : k);
  }
}

static void resample_forward(const dvbf_op *op, dvbf_run *run) {
  int rows = op->out[0].rows, samples = *(const int *)op->data;
  size_t n = (size_t)op->out[0].cols;
  const dvbf_real *z = dv_at(run, op->in[0]), *s = dv_at(run, op->in[1]), *u = dv_at(run, op->in[2]);
  dvbf_real *out = dv_at(run, op->out[0]), *chosen = dv_at(run, op->out[1]);
  for (int first = 0; first < rows; first += samples) {
    choose(s + first, (double)u[first], samples, chosen + first);
    for (int r = first; r < first + samples; r++)
      memcpy(out + (size_t)r * n, z + (size_t)(first + (int)chosen[r]) * n, n * sizeof *out);
  }
}

static void resample_backward(const dvbf_op *op, dvbf_run *run) {
  int samples = *(const int *)op->data;
  size_t n = (size_t)op->out[0].cols;
  const dvbf_real *d_out = dvbf_gradient_at(run, op->out[0]), *chosen = dv_at(run, op->out[1]);
  dvbf_real *d_z = dvbf_gradient_at(run, op->in[0]);
  for (int r = 0; r < op->out[0].rows; r++) {
    size_t from = (size_t)(r / samples * samples + (int)chosen[r]) * n, to = (size_t)r * n;
    for (size_t i = 0; i < n; i++) d_z[from + i] += d_out[to + i];
  }
}

static const dvbf_op_class resample_class = {"resample", resample_forward, resample_backward, NULL};

void dv_record_resample(dvbf_graph *g, dvbf_value out, dvbf_value z, dvbf_value s, int samples) {
  dvbf_value u = dvbf_slab_constant(g, 1, 1), chosen = dvbf_slab_constant(g, 1, 1);
  dvbf_value in[] = {z, s, u}, to[] = {out, chosen};
  if (z.rows % samples) dvbf_refuse(g, "%d rows are not groups of %d samples", z.rows, samples);
  dv_record_uniform(g, u);
  dvbf_record(g, &resample_class, 3, in, 2, to, &samples, sizeof samples);
}
