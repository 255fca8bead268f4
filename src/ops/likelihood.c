/* Likelihood ops: ln p of Gaussian and Bernoulli frames, whole or partly observed (dv_record_gaussian,
 * dv_record_bernoulli), the choice between two sigmas (dv_record_free_sigma), and the innovation x - mean
 * (dv_record_residual). */
#include "math/portable.h"
#include "ops/emit.h"
#include "ops/ops.h"

#include <math.h>

/*   Gaussian:   -sum_i [ (x_i - mean_i)^2 / (2 sigma_i^2) + ln sigma_i + ln(2 pi) / 2 ],
 *               ln sigma = max(log_sigma, floor); below the floor it has no gradient
 *   Bernoulli:   sum_i [ x_i l_i - ln(1 + exp l_i) ]
 *
 * The mask has one entry for a row or, if rows may be partly observed, one for each x_i. Such rows have plain
 * loops here, since few data have them; all others go through the kernels. */

/* The lowest ln sigma of a Gaussian, whose data is the scalar. */
static double floor_of(const dvbf_op *op, const dvbf_run *run) {
  return run->scalars[*(const int *)op->data];
}

static void apply_mask(dvbf_real *out, const dvbf_real *mask, int rows) {
  for (int r = 0; r < rows; r++)
    if (!(mask[r] > 0)) out[r] = 0;
}

/* ---- Partly observed rows ---- */

static void gaussian_part_forward(const dvbf_op *op, dvbf_run *run) {
  int n = op->in[0].cols;
  const dvbf_real *x = dv_at(run, op->in[0]), *mean = dv_at(run, op->in[1]);
  const dvbf_real *log_sigma = dv_at(run, op->in[2]), *seen = dv_at(run, op->in[3]);
  dvbf_real *out = dv_at(run, op->out[0]);
  for (int r = 0; r < dv_rows(op->in[0]); r++, x += n, mean += n, seen += n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
      if (!(seen[i] > 0)) continue;
      double ls = fmax((double)log_sigma[dv_entry_at(op->in[2], n, r, i)], floor_of(op, run));
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
  for (int r = 0; r < dv_rows(op->in[0]); r++, x += n, mean += n, seen += n, d_mean += n)
    for (int i = 0; i < n; i++) {
      if (!(seen[i] > 0)) continue;
      size_t at = dv_entry_at(op->in[2], n, r, i);
      double inverse = dv_exp(-fmax((double)log_sigma[at], floor)), e = (double)(x[i] - mean[i]) * inverse;
      d_mean[i] += (dvbf_real)((double)g[r] * e * inverse);
      if (d_log_sigma && (double)log_sigma[at] > floor)
        d_log_sigma[at] += (dvbf_real)((double)g[r] * (e * e - 1));
    }
}

/* A value of a Bernoulli frame. The slope rounds as the kernel does. */
static double bernoulli_ln_p(double x, double l) {
  return x * l - fmax(l, 0) - dv_log1p(dv_exp(-fabs(l)));
}

static double bernoulli_slope(double x, double l) {
  return (double)((dvbf_real)x - (dvbf_real)(1 / (1 + dv_exp(-l))));
}

/* ---- Whole rows ---- */

/* in: x, mean, log_sigma, mask; out: ln p. */
static void gaussian_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value x = op->in[0];
  dvbf_real *out = dv_at(run, op->out[0]);
  run->k->gaussian(out, dv_at(run, x), dv_at(run, op->in[1]), dv_at(run, op->in[2]), dv_count(op->in[2]),
                   (dvbf_real)floor_of(op, run), dv_rows(x), x.cols);
  apply_mask(out, dv_at(run, op->in[3]), dv_rows(x));
}

static void gaussian_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value x = op->in[0];
  dvbf_real *g = dvbf_gradient_at(run, op->out[0]);
  bool add;
  dvbf_real *d_mean = dv_gradient_into(run, op->in[1], &add);
  apply_mask(g, dv_at(run, op->in[3]), dv_rows(x));
  run->k->gaussian_backward(d_mean, add, dvbf_gradient_at(run, op->in[2]), g, dv_at(run, x),
                            dv_at(run, op->in[1]), dv_at(run, op->in[2]), dv_count(op->in[2]),
                            (dvbf_real)floor_of(op, run), dv_rows(x), x.cols);
}

static const dvbf_op_class gaussian_class = {"gaussian", gaussian_forward, gaussian_backward, NULL};
static const dvbf_op_class part_class = {"gaussian", gaussian_part_forward, gaussian_part_backward, NULL};

void dvbf_gaussian(dvbf_graph *g, dvbf_value ln_p, dvbf_value x, dvbf_value mean, dvbf_value log_sigma,
                   dvbf_value mask) {
  dvbf_value in[] = {x, mean, log_sigma, mask};
  int floor = dvbf_scalar(g, DVBF_LOG_SIGMA_FLOOR, -1000);
  dvbf_record(g, dv_is_partial(x, mask) ? &part_class : &gaussian_class, 4, in, 1, &ln_p, &floor,
              sizeof floor);
}

/* in: x, logits, mask; out: ln p. */
static void bernoulli_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value x = op->in[0];
  dvbf_real *out = dv_at(run, op->out[0]);
  run->k->bernoulli(out, dv_at(run, x), dv_at(run, op->in[1]), dv_rows(x), x.cols);
  apply_mask(out, dv_at(run, op->in[2]), dv_rows(x));
}

static void bernoulli_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value x = op->in[0];
  dvbf_real *g = dvbf_gradient_at(run, op->out[0]);
  apply_mask(g, dv_at(run, op->in[2]), dv_rows(x));
  run->k->bernoulli_backward(dvbf_gradient_at(run, op->in[1]), g, dv_at(run, x), dv_at(run, op->in[1]),
                             dv_rows(x), x.cols);
}

static const dvbf_op_class bernoulli_class = {"bernoulli", bernoulli_forward, bernoulli_backward, NULL};

void dv_record_bernoulli(dvbf_graph *g, dvbf_value out, dvbf_value x, dvbf_value logits, dvbf_value mask) {
  dvbf_value in[] = {x, logits, mask};
  if (dv_is_partial(x, mask))
    dv_record_values(g, out, x, logits, mask, (dv_value_density){bernoulli_ln_p, bernoulli_slope});
  else
    dvbf_record(g, &bernoulli_class, 3, in, 1, &out, NULL, 0);
}

/* ---- Sigma of frames that the filter has not seen ---- */

/*   out_i = free_i where use < 0, and in the first frames, else own_i
 *   d free_i, d own_i += d out_i, whichever it was */

/* in: own, free, use; the data is the number of frames at the beginning that are free. */

/* Row r is of the frame after the step to which its `use` belongs. The first frames may have none. */
static bool is_free(const dvbf_run *run, const dvbf_op *op, int r) {
  int first = *(const int *)op->data, rows = op->out[0].rows,
      none = rows * (op->out[0].steps - op->in[2].steps);
  return r < first * rows || (r >= none && dv_at(run, op->in[2])[r - none] < 0);
}

static void free_sigma_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value out = op->out[0];
  dvbf_real *to = dv_at(run, out);
  for (int r = 0; r < out.steps * out.rows; r++, to += out.cols) {
    dvbf_value source = op->in[is_free(run, op, r) ? 1 : 0];
    const dvbf_real *from = dv_at(run, source);
    for (int i = 0; i < out.cols; i++) to[i] = from[dv_entry_at(source, out.cols, r, i)];
  }
}

static void free_sigma_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value out = op->out[0];
  const dvbf_real *g = dvbf_gradient_at(run, out);
  for (int r = 0; r < out.steps * out.rows; r++, g += out.cols) {
    dvbf_value source = op->in[is_free(run, op, r) ? 1 : 0];
    dvbf_real *to = dvbf_gradient_at(run, source);
    for (int i = 0; i < out.cols; i++) to[dv_entry_at(source, out.cols, r, i)] += g[i];
  }
}

/* Programs of single steps, which are those that are exported, have no such frames. */
static const dvbf_op_class free_sigma_class = {"free-sigma", free_sigma_forward, free_sigma_backward, NULL};

void dv_record_free_sigma(dvbf_graph *g, const dv_free_sigma *s) {
  dvbf_value in[] = {s->own, s->free, s->use};
  dvbf_record(g, &free_sigma_class, 3, in, 1, &s->out, &s->first, sizeof s->first);
}

/* ---- Innovation: e = x - mean(output) of observed values, else 0;  d output -= mean'(output) d e ---- */

/* in: x, output, mask; out: e. Without `mean` (NULL) the output is the mean. */
typedef struct residual_data {
  double (*mean)(double output);
  dvbf_expr (*emit_mean)(dvbf_code *code, dvbf_expr output);
} residual_data;

/* x may be the same for all rows, mask one value for a whole frame. */
static const dvbf_real *row_of(const dvbf_run *run, dvbf_value value, int r) {
  return dv_row(run, value, value.rows > 1 ? r : 0);
}

static bool in_mask(const dvbf_real *mask, int cols, int i) {
  return mask[cols > 1 ? i : 0] > 0;
}

static void residual_forward(const dvbf_op *op, dvbf_run *run) {
  const residual_data *d = op->data;
  dvbf_value e = op->out[0];
  dvbf_real *to = dv_at(run, e);
  const dvbf_real *output = dv_at(run, op->in[1]);
  for (int r = 0; r < e.rows; r++, to += e.cols, output += e.cols) {
    const dvbf_real *x = row_of(run, op->in[0], r), *mask = row_of(run, op->in[2], r);
    for (int i = 0; i < e.cols; i++) {
      dvbf_real mean = d->mean ? (dvbf_real)d->mean((double)output[i]) : output[i];
      to[i] = in_mask(mask, op->in[2].cols, i) ? x[i] - mean : 0;
    }
  }
}

dvbf_real dv_mean_slope(double (*mean)(double), double output) {
  const double step = 1e-4;
  return mean ? (dvbf_real)((mean(output + step) - mean(output - step)) / (2 * step)) : 1;
}

static void residual_backward(const dvbf_op *op, dvbf_run *run) {
  const residual_data *d = op->data;
  dvbf_value e = op->out[0];
  dvbf_real *d_output = dvbf_gradient_at(run, op->in[1]);
  const dvbf_real *g = dvbf_gradient_at(run, e), *output = dv_at(run, op->in[1]);
  if (!d_output) return;
  for (int r = 0; r < e.rows; r++, g += e.cols, output += e.cols, d_output += e.cols) {
    const dvbf_real *mask = row_of(run, op->in[2], r);
    for (int i = 0; i < e.cols; i++)
      if (in_mask(mask, op->in[2].cols, i)) d_output[i] -= dv_mean_slope(d->mean, (double)output[i]) * g[i];
  }
}

static void residual_emit(const dvbf_op *op, dvbf_code *code) {
  const residual_data *d = op->data;
  dvbf_value mask = op->in[2];
  dvbf_expr output = dv_read(code, op->in[1]), mean = d->mean ? d->emit_mean(code, output) : output;
  dvbf_expr seen = mask.cols > 1 ? dv_read(code, mask) : dv_read_column(code, mask);
  dv_emit(code, op->out[0],
          dvbf_code_choose(code, seen, dv_minus(code, dv_read(code, op->in[0]), mean), dv_number(code, 0)));
}

static const dvbf_op_class residual_class = {"residual", residual_forward, residual_backward, residual_emit};

void dv_record_residual(dvbf_graph *g, dvbf_value e, dvbf_value x, dvbf_value output, dvbf_value mask,
                        double (*mean)(double output),
                        dvbf_expr (*emit_mean)(dvbf_code *code, dvbf_expr output)) {
  residual_data data = {mean, emit_mean};
  dvbf_value in[] = {x, output, mask};
  dvbf_record(g, &residual_class, 3, in, 1, &e, &data, sizeof data);
}
