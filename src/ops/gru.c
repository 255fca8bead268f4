/* The elementwise parts of a gated recurrent unit (Cho et al. 2014), with gates (r, k) [rows][2n]:
 *
 *   reset    out = r h                      d r += h d out      d h += r d out
 *
 *   blend    next = h + k (c - h)           d h += (1 - k) d next      d c += k d next
 *                                           d k += (c - h) d next */
#include "ops/emit.h"
#include "ops/ops.h"

/* ---- reset; in: gates, h ---- */

static void reset_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value out = op->out[0];
  int n = out.cols, rows = out.steps * out.rows;
  const dvbf_real *gate = dv_at(run, op->in[0]), *h = dv_at(run, op->in[1]);
  dvbf_real *to = dv_at(run, out);
  for (int r = 0; r < rows; r++, gate += 2 * n, h += n, to += n)
    for (int i = 0; i < n; i++) to[i] = gate[i] * h[i];
}

static void reset_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value out = op->out[0];
  int n = out.cols, rows = out.steps * out.rows;
  const dvbf_real *gate = dv_at(run, op->in[0]), *h = dv_at(run, op->in[1]);
  const dvbf_real *d = dvbf_gradient_at(run, out);
  dvbf_real *d_gate = dvbf_gradient_at(run, op->in[0]), *d_h = dvbf_gradient_at(run, op->in[1]);
  for (int r = 0; r < rows; r++, gate += 2 * n, h += n, d += n, d_gate += 2 * n, d_h += n)
    for (int i = 0; i < n; i++) {
      d_gate[i] += h[i] * d[i];
      d_h[i] += gate[i] * d[i];
    }
}

static void reset_emit(const dvbf_op *op, dvbf_code *code) {
  dv_emit(code, op->out[0], dv_times(code, dv_read(code, op->in[0]), dv_read(code, op->in[1])));
}

static const dvbf_op_class reset_class = {"gate-reset", reset_forward, reset_backward, reset_emit};

void dv_record_reset(dvbf_graph *g, dvbf_value out, dvbf_value gates, dvbf_value h) {
  dvbf_value in[] = {gates, h};
  if (gates.cols != 2 * out.cols || h.cols != out.cols)
    dvbf_refuse(g, "%d gates do not fit a state of %d", gates.cols, h.cols);
  dvbf_record(g, &reset_class, 2, in, 1, &out, NULL, 0);
}

/* ---- blend; in: gates, h, c ---- */

static void blend_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value out = op->out[0];
  int n = out.cols, rows = out.steps * out.rows;
  const dvbf_real *gate = dv_at(run, op->in[0]) + n, *h = dv_at(run, op->in[1]), *c = dv_at(run, op->in[2]);
  dvbf_real *to = dv_at(run, out);
  for (int r = 0; r < rows; r++, gate += 2 * n, h += n, c += n, to += n)
    for (int i = 0; i < n; i++) to[i] = h[i] + gate[i] * (c[i] - h[i]);
}

static void blend_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value out = op->out[0];
  int n = out.cols, rows = out.steps * out.rows;
  const dvbf_real *gate = dv_at(run, op->in[0]) + n, *h = dv_at(run, op->in[1]), *c = dv_at(run, op->in[2]);
  const dvbf_real *d = dvbf_gradient_at(run, out);
  dvbf_real *d_gate = dvbf_gradient_at(run, op->in[0]) + n, *d_h = dvbf_gradient_at(run, op->in[1]);
  dvbf_real *d_c = dvbf_gradient_at(run, op->in[2]);
  for (int r = 0; r < rows; r++, gate += 2 * n, h += n, c += n, d += n, d_gate += 2 * n, d_h += n, d_c += n)
    for (int i = 0; i < n; i++) {
      d_h[i] += (1 - gate[i]) * d[i];
      d_c[i] += gate[i] * d[i];
      d_gate[i] += (c[i] - h[i]) * d[i];
    }
}

static void blend_emit(const dvbf_op *op, dvbf_code *code) {
  dvbf_value gate = op->in[0];
  gate.offset += (size_t)op->out[0].cols;
  dvbf_expr h = dv_read(code, op->in[1]), c = dv_read(code, op->in[2]);
  dv_emit(code, op->out[0], dv_plus(code, h, dv_times(code, dv_read(code, gate), dv_minus(code, c, h))));
}

static const dvbf_op_class blend_class = {"gate-blend", blend_forward, blend_backward, blend_emit};

void dv_record_blend(dvbf_graph *g, dvbf_value next, dvbf_value gates, dvbf_value h, dvbf_value c) {
  dvbf_value in[] = {gates, h, c};
  if (gates.cols != 2 * next.cols || h.cols != next.cols || c.cols != next.cols)
    dvbf_refuse(g, "%d gates do not fit a state of %d", gates.cols, h.cols);
  dvbf_record(g, &blend_class, 3, in, 1, &next, NULL, 0);
}
