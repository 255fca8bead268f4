/* ln p of each row, for a density under which the values of x are independent:
 *
 *   out = sum_i m_i ln p(x_i, o_i)        d out / d o_i = m_i slope(x_i, o_i)
 *
 * The mask m has one entry for a row, or one for each value. */
#include "op/op.h"

static bool is_seen(const dvbf_op *op, const dvbf_real *mask, size_t value, size_t row) {
  return mask[op->in[2].cols == op->in[0].cols ? value : row] > 0;
}

/* in: x, o, mask; out: ln p. */
static void values_forward(const dvbf_op *op, dvbf_run *run) {
  const dv_value_density *density = op->data;
  size_t n = (size_t)op->in[0].cols, rows = (size_t)op->in[0].steps * (size_t)op->in[0].rows;
  const dvbf_real *x = dv_at(run, op->in[0]), *o = dv_at(run, op->in[1]), *mask = dv_at(run, op->in[2]);
  dvbf_real *out = dv_at(run, op->out[0]);
  for (size_t r = 0; r < rows; r++) {
    double sum = 0;
    for (size_t i = r * n; i < (r + 1) * n; i++)
      if (is_seen(op, mask, i, r)) sum += density->ln_p((double)x[i], (double)o[i]);
    out[r] = (dvbf_real)sum;
  }
}

static void values_backward(const dvbf_op *op, dvbf_run *run) {
  const dv_value_density *density = op->data;
  size_t n = (size_t)op->in[0].cols, rows = (size_t)op->in[0].steps * (size_t)op->in[0].rows;
  const dvbf_real *x = dv_at(run, op->in[0]), *o = dv_at(run, op->in[1]), *mask = dv_at(run, op->in[2]);
  const dvbf_real *g = dvbf_gradient_at(run, op->out[0]);
  dvbf_real *d = dvbf_gradient_at(run, op->in[1]);
  for (size_t r = 0; r < rows; r++)
    for (size_t i = r * n; i < (r + 1) * n; i++)
      if (is_seen(op, mask, i, r))
        d[i] += (dvbf_real)((double)g[r] * density->slope((double)x[i], (double)o[i]));
}

static const dvbf_op_class values_class = {"values", values_forward, values_backward, NULL};

void dv_record_values(dvbf_graph *g, dvbf_value out, dvbf_value x, dvbf_value parameter, dvbf_value mask,
                      dv_value_density density) {
  dvbf_value in[] = {x, parameter, mask};
  dvbf_record(g, &values_class, 3, in, 1, &out, &density, sizeof density);
}
