/* A state that cannot leave its range. With d = z - c, c the centre and L the limit of its dimension,
 *
 *   y = z                                   where |d| <= L
 *   y = c + sign(d) L (1 + tanh(|d| / L - 1))     beyond
 *
 * in place of z: the identity, bit for bit, inside; smooth (twice differentiable at the limit) and rising
 * outside; and never further from c than 2 L, for infinite z too. NaN stays NaN.
 *
 *   dy/dz = 1 inside,   1 - t^2 with t = |y - c| / L - 1 outside
 *
 * depends on y alone, so that the op needs no copy of z. */
#include "base/arithmetic.h"
#include "engine/engine.h"
#include "op/emit.h"

#include <math.h>

static size_t rows_of(dvbf_value v) {
  return (size_t)v.steps * (size_t)v.rows;
}

static void saturate_forward(const dvbf_op *op, dvbf_run *run) {
  int n = op->in[1].cols, cols = op->in[0].cols;
  const dvbf_real *centre = dv_at(run, op->in[1]), *limit = centre + n;
  dvbf_real *z = dv_at(run, op->in[0]);
  for (size_t r = 0; r < rows_of(op->in[0]); r++, z += cols)
    for (int k = 0; k < n; k++) {
      dvbf_real far = (dvbf_real)fabs((double)(z[k] - centre[k]));
      if (!(far > limit[k])) continue;
      double bent = (double)limit[k] * (1 + dv_tanh((double)(far / limit[k]) - 1));
      z[k] = (dvbf_real)((double)centre[k] + copysign(bent, (double)(z[k] - centre[k])));
    }
}

/* The gradient of y becomes that of z, in place as well. */
static void saturate_backward(const dvbf_op *op, dvbf_run *run) {
  int n = op->in[1].cols, cols = op->in[0].cols;
  const dvbf_real *y = dv_at(run, op->in[0]), *centre = dv_at(run, op->in[1]), *limit = centre + n;
  dvbf_real *d = dvbf_gradient_at(run, op->in[0]);
  if (!d) return;
  for (size_t r = 0; r < rows_of(op->in[0]); r++, y += cols, d += cols)
    for (int k = 0; k < n; k++) {
      double beyond = fabs((double)(y[k] - centre[k])) / (double)limit[k] - 1;
      if (beyond > 0) d[k] *= (dvbf_real)fmax(0, 1 - beyond * beyond);
    }
}

static void saturate_emit(const dvbf_op *op, dvbf_code *code) {
  dvbf_value z = op->in[0], centre = op->in[1], limit = centre;
  limit.offset += (size_t)centre.cols;
  dvbf_expr at = dv_read(code, z), c = dv_read_row(code, centre), l = dv_read_row(code, limit);
  dvbf_expr d = dv_minus(code, at, c), far = dvbf_code_unary(code, DVBF_SIZE_OF, d), one = dv_number(code, 1);
  dvbf_expr beyond = dvbf_code_unary(code, DVBF_TANH_OF, dv_minus(code, dv_over(code, far, l), one));
  dvbf_expr bent = dv_times(code, l, dv_plus(code, one, beyond));
  dvbf_expr y = dvbf_code_choose(code, d, dv_plus(code, c, bent), dv_minus(code, c, bent));
  dvbf_code_each(code, dvbf_place_of(z), z.steps, centre.cols,
                 dvbf_code_choose(code, dv_minus(code, far, l), y, at));
}

static const dvbf_op_class saturate_class = {"saturate", saturate_forward, saturate_backward, saturate_emit};

void dvbf_saturate(dvbf_graph *g, dvbf_value value, dvbf_value range) {
  if (value.buffer < 0 || range.buffer < 0) return;
  if (range.rows != 2 || value.cols < range.cols)
    dvbf_refuse(g, "a range of [%d][%d] does not fit a state of %d dimensions", range.rows, range.cols,
                value.cols);
  dvbf_value in[] = {value, range};
  dvbf_record(g, &saturate_class, 2, in, 0, NULL, NULL, 0);
}
