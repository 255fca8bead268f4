/* ln p(x | z) of each row.
 *
 *   Gaussian:   -sum_i [ (x_i - mean_i)^2 / (2 sigma_i^2) + ln sigma_i + ln(2 pi) / 2 ],
 *               ln sigma = max(log_sigma, floor); below the floor it has no gradient
 *   Bernoulli:   sum_i [ x_i l_i - ln(1 + exp l_i) ]
 *
 * The mask has one entry for a row or, where a row may be seen in part, one for each x_i. Rows that are seen
 * in part have plain loops here, as few data have them; all others go through the kernels. */
#include "op/op.h"

#include "base/arithmetic.h"

#include <math.h>

static int all_rows(dvbf_value v) {
  return v.steps * v.rows;
}

static size_t count_of(dvbf_value v) {
  return (size_t)v.steps * v.stride;
}

/* The lowest ln sigma of a Gaussian, whose data is the scalar. */
static double floor_of(const dvbf_op *op, const dvbf_run *run) {
  return run->scalars[*(const int *)op->data];
}

static void apply_mask(dvbf_real *out, const dvbf_real *mask, int rows) {
  for (int r = 0; r < rows; r++)
    if (!(mask[r] > 0)) out[r] = 0;
}

/* ---- Rows seen in part ---- */

static bool in_part(dvbf_value x, dvbf_value mask) {
  return mask.cols == x.cols && x.cols > 1;
}

/* ln sigma of entry i of row r, from one number, one for each column, or one for each entry. */
static size_t sigma_at(dvbf_value log_sigma, int n, int r, int i) {
  size_t count = count_of(log_sigma);
  return count == 1 ? 0 : count > (size_t)n ? (size_t)r * (size_t)n + (size_t)i : (size_t)i;
}

static void gaussian_part_forward(const dvbf_op *op, dvbf_run *run) {
  int n = op->in[0].cols;
  const dvbf_real *x = dv_at(run, op->in[0]), *mean = dv_at(run, op->in[1]);
  const dvbf_real *log_sigma = dv_at(run, op->in[2]), *seen = dv_at(run, op->in[3]);
  dvbf_real *out = dv_at(run, op->out[0]);
  for (int r = 0; r < all_rows(op->in[0]); r++, x += n, mean += n, seen += n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
      if (!(seen[i] > 0)) continue;
      double ls = fmax((double)log_sigma[sigma_at(op->in[2], n, r, i)], floor_of(op, run));
      double e = (double)(x[i] - mean[i]) * dv_exp(-ls);
      sum -= 0.5 * e * e + ls + 0.918938533204672741780;
    }
    out[r] = (dvbf_real)sum;
  }
}

static void gaussian_part_backward(const dvbf_op *op, dvbf_run *run) {
  int n = op->in[0].cols;
  double floor = floor_of(op, run);
  const dvbf_real *x = dv_at(run, op->in[0]), *mean = dv_at(run, op->in[1]);
  const dvbf_real *log_sigma = dv_at(run, op->in[2]), *seen = dv_at(run, op->in[3]);
  const dvbf_real *g = dvbf_gradient_at(run, op->out[0]);
  dvbf_real *d_mean = dvbf_gradient_at(run, op->in[1]), *d_log_sigma = dvbf_gradient_at(run, op->in[2]);
  for (int r = 0; r < all_rows(op->in[0]); r++, x += n, mean += n, seen += n, d_mean += n)
    for (int i = 0; i < n; i++) {
      if (!(seen[i] > 0)) continue;
      size_t at = sigma_at(op->in[2], n, r, i);
      double inverse = dv_exp(-fmax((double)log_sigma[at], floor)), e = (double)(x[i] - mean[i]) * inverse;
      d_mean[i] += (dvbf_real)((double)g[r] * e * inverse);
      if (d_log_sigma && (double)log_sigma[at] > floor)
        d_log_sigma[at] += (dvbf_real)((double)g[r] * (e * e - 1));
    }
}

static void bernoulli_part_forward(const dvbf_op *op, dvbf_run *run) {
  int n = op->in[0].cols;
  const dvbf_real *x = dv_at(run, op->in[0]), *logit = dv_at(run, op->in[1]), *seen;
  dvbf_real *out = dv_at(run, op->out[0]);
  seen = dv_at(run, op->in[2]);
  for (int r = 0; r < all_rows(op->in[0]); r++, x += n, logit += n, seen += n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
      double l = (double)logit[i];
      if (seen[i] > 0) sum += (double)x[i] * l - fmax(l, 0) - dv_log1p(dv_exp(-fabs(l)));
    }
    out[r] = (dvbf_real)sum;
  }
}

static void bernoulli_part_backward(const dvbf_op *op, dvbf_run *run) {
  int n = op->in[0].cols;
  const dvbf_real *x = dv_at(run, op->in[0]), *logit = dv_at(run, op->in[1]), *seen;
  const dvbf_real *g = dvbf_gradient_at(run, op->out[0]);
  dvbf_real *d = dvbf_gradient_at(run, op->in[1]);
  seen = dv_at(run, op->in[2]);
  for (int r = 0; r < all_rows(op->in[0]); r++, x += n, logit += n, seen += n, d += n)
    for (int i = 0; i < n; i++)
      if (seen[i] > 0) d[i] += g[r] * (x[i] - (dvbf_real)(1 / (1 + dv_exp(-(double)logit[i]))));
}

/* ---- Whole rows ---- */

/* in: x, mean, log_sigma, mask; out: ln p. */
static void gaussian_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value x = op->in[0];
  dvbf_real *out = dv_at(run, op->out[0]);
  if (in_part(x, op->in[3])) {
    gaussian_part_forward(op, run);
    return;
  }
  run->k->gaussian(out, dv_at(run, x), dv_at(run, op->in[1]), dv_at(run, op->in[2]), count_of(op->in[2]),
                   (dvbf_real)floor_of(op, run), all_rows(x), x.cols);
  apply_mask(out, dv_at(run, op->in[3]), all_rows(x));
}

static void gaussian_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value x = op->in[0];
  dvbf_real *g = dvbf_gradient_at(run, op->out[0]);
  if (in_part(x, op->in[3])) {
    gaussian_part_backward(op, run);
    return;
  }
  bool add;
  dvbf_real *d_mean = dv_gradient_into(run, op->in[1], &add);
  apply_mask(g, dv_at(run, op->in[3]), all_rows(x));
  run->k->gaussian_backward(d_mean, add, dvbf_gradient_at(run, op->in[2]), g, dv_at(run, x),
                            dv_at(run, op->in[1]), dv_at(run, op->in[2]), count_of(op->in[2]),
                            (dvbf_real)floor_of(op, run), all_rows(x), x.cols);
}

static const dvbf_op_class gaussian_class = {"gaussian", gaussian_forward, gaussian_backward, NULL};

void dv_record_gaussian(dvbf_graph *g, dvbf_value out, dvbf_value x, dvbf_value mean, dvbf_value log_sigma,
                        dvbf_value mask) {
  dvbf_value in[] = {x, mean, log_sigma, mask};
  int floor = dvbf_scalar(g, DVBF_LOG_SIGMA_FLOOR, -1000);
  dvbf_record(g, &gaussian_class, 4, in, 1, &out, &floor, sizeof floor);
}

/* in: x, logits, mask; out: ln p. */
static void bernoulli_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value x = op->in[0];
  dvbf_real *out = dv_at(run, op->out[0]);
  if (in_part(x, op->in[2])) {
    bernoulli_part_forward(op, run);
    return;
  }
  run->k->bernoulli(out, dv_at(run, x), dv_at(run, op->in[1]), all_rows(x), x.cols);
  apply_mask(out, dv_at(run, op->in[2]), all_rows(x));
}

static void bernoulli_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value x = op->in[0];
  dvbf_real *g = dvbf_gradient_at(run, op->out[0]);
  if (in_part(x, op->in[2])) {
    bernoulli_part_backward(op, run);
    return;
  }
  apply_mask(g, dv_at(run, op->in[2]), all_rows(x));
  run->k->bernoulli_backward(dvbf_gradient_at(run, op->in[1]), g, dv_at(run, x), dv_at(run, op->in[1]),
                             all_rows(x), x.cols);
}

static const dvbf_op_class bernoulli_class = {"bernoulli", bernoulli_forward, bernoulli_backward, NULL};

void dv_record_bernoulli(dvbf_graph *g, dvbf_value out, dvbf_value x, dvbf_value logits, dvbf_value mask) {
  dvbf_value in[] = {x, logits, mask};
  dvbf_record(g, &bernoulli_class, 3, in, 1, &out, NULL, 0);
}
