#include "engine/engine.h"
#include "op/emit.h"

#include <string.h>

static size_t count_of(dvbf_value v) {
  return (size_t)v.steps * v.stride;
}

/* ---- out = a + b ---- */

static void add_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_real *out = dv_at(run, op->out[0]);
  memcpy(out, dv_at(run, op->in[0]), count_of(op->out[0]) * sizeof *out);
  run->k->add(out, dv_at(run, op->in[1]), count_of(op->out[0]));
}

static void add_backward(const dvbf_op *op, dvbf_run *run) {
  for (int i = 0; i < 2; i++) {
    dvbf_real *d = dvbf_gradient_at(run, op->in[i]);
    if (d) run->k->add(d, dvbf_gradient_at(run, op->out[0]), count_of(op->out[0]));
  }
}

static void add_emit(const dvbf_op *op, dvbf_code *code) {
  dv_emit(code, op->out[0], dv_plus(code, dv_read(code, op->in[0]), dv_read(code, op->in[1])));
}

static const dvbf_op_class add_class = {"add", add_forward, add_backward, add_emit};

void dvbf_add(dvbf_graph *g, dvbf_value out, dvbf_value a, dvbf_value b) {
  dvbf_value in[] = {a, b};
  if (count_of(a) != count_of(out) || count_of(b) != count_of(out))
    dvbf_refuse(g, "values of different shapes cannot be added");
  dvbf_record(g, &add_class, 2, in, 1, &out, NULL, 0);
}

/* ---- out = 0 ---- */

static void zero_forward(const dvbf_op *op, dvbf_run *run) {
  memset(dv_at(run, op->out[0]), 0, count_of(op->out[0]) * sizeof(dvbf_real));
}

static void zero_emit(const dvbf_op *op, dvbf_code *code) {
  dv_emit(code, op->out[0], dv_number(code, 0));
}

static const dvbf_op_class zero_class = {"zero", zero_forward, NULL, zero_emit};

void dvbf_zero(dvbf_graph *g, dvbf_value out) {
  dvbf_record(g, &zero_class, 0, NULL, 1, &out, NULL, 0);
}

/* ---- The identity, whose gradient is clipped. The limit is in units of one sequence's share of the
 * objective per frame, whatever the batch size. ---- */

static void clip_backward(const dvbf_op *op, dvbf_run *run) {
  const double *limit = op->data;
  dvbf_real *d = dvbf_gradient_at(run, op->in[0]), top = (dvbf_real)(*limit * run->conditions->scale);
  if (!d) return;
  for (size_t i = 0, n = count_of(op->in[0]); i < n; i++) d[i] = d[i] > top ? top : d[i] < -top ? -top : d[i];
}

static const dvbf_op_class clip_class = {"clip-gradient", NULL, clip_backward, NULL};

void dvbf_clip_gradient(dvbf_graph *g, dvbf_value value, double limit) {
  dvbf_record(g, &clip_class, 1, &value, 0, NULL, &limit, sizeof limit);
}

/* ---- Steps side by side ---- */

static void side_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value x = op->in[0];
  const dvbf_real *from = dv_at(run, x);
  dvbf_real *to = dv_at(run, op->out[0]);
  size_t width = (size_t)x.cols;
  for (int t = 0; t < x.steps; t++)
    for (int r = 0; r < x.rows; r++, from += width)
      memcpy(to + ((size_t)r * x.steps + t) * width, from, width * sizeof *to);
}

static void side_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value x = op->in[0];
  dvbf_real *d = dvbf_gradient_at(run, x);
  const dvbf_real *from = dvbf_gradient_at(run, op->out[0]);
  size_t width = (size_t)x.cols;
  if (!d || !from) return;
  for (int t = 0; t < x.steps; t++)
    for (int r = 0; r < x.rows; r++, d += width)
      run->k->add(d, from + ((size_t)r * x.steps + t) * width, width);
}

static void side_emit(const dvbf_op *op, dvbf_code *code) {
  dvbf_place out = {op->out[0].buffer, op->out[0].offset, (size_t)op->in[0].cols, 1};
  dvbf_code_each(code, out, op->in[0].steps, op->in[0].cols, dv_read(code, op->in[0]));
}

static const dvbf_op_class side_class = {"side-by-side", side_forward, side_backward, side_emit};

void dvbf_side_by_side(dvbf_graph *g, dvbf_value out, dvbf_value x) {
  if (out.cols != x.steps * x.cols)
    dvbf_refuse(g, "%d steps of %d do not make %d columns", x.steps, x.cols, out.cols);
  dvbf_record(g, &side_class, 1, &x, 1, &out, NULL, 0);
}
