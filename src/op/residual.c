/* e = x - mean(output) where a value is seen, and 0 where not:
 *
 *   d output -= mean'(output) d e */
#include "op/emit.h"
#include "op/op.h"

/* in: x, output, mask; out: e. The data of the op is the function `mean`, twice; NULL: the output is the
 * mean. */
typedef struct residual_data {
  double (*mean)(double output);
  dvbf_expr (*emit_mean)(dvbf_code *code, dvbf_expr output);
} residual_data;

/* x may be the same for all rows, mask one value for a whole frame. */
static const dvbf_real *row_of(const dvbf_run *run, dvbf_value value, int r) {
  return dv_at(run, value) + (value.rows > 1 ? (size_t)r * (size_t)value.cols : 0);
}

static bool is_seen(const dvbf_real *mask, int cols, int i) {
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
      to[i] = is_seen(mask, op->in[2].cols, i) ? x[i] - mean : 0;
    }
  }
}

/* Every mean is smooth, and differences are exact to 1e-9. */
static dvbf_real slope_of(double (*mean)(double), double output) {
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
      if (is_seen(mask, op->in[2].cols, i)) d_output[i] -= slope_of(d->mean, (double)output[i]) * g[i];
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
