/* Values side by side, and parts of them:
 *
 *   join      out = (a, b, ...)          d a += the columns of d out that are a's
 *   columns   out = columns first .. first + n - 1 of x          these columns of d x += d out */
#include "op/emit.h"
#include "op/op.h"

#include <string.h>

static size_t rows_of(dvbf_value v) {
  return (size_t)v.steps * (size_t)v.rows;
}

/* Copies columns between tables of other widths. */
static void copy_columns(dvbf_real *to, size_t to_width, const dvbf_real *from, size_t from_width,
                         size_t rows, size_t n) {
  for (size_t r = 0; r < rows; r++) memcpy(to + r * to_width, from + r * from_width, n * sizeof *to);
}

static void add_columns(const dvbf_run *run, dvbf_real *to, size_t to_width, const dvbf_real *from,
                        size_t from_width, size_t rows, size_t n) {
  for (size_t r = 0; to && from && r < rows; r++) run->k->add(to + r * to_width, from + r * from_width, n);
}

/* ---- join ---- */

static void join_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value out = op->out[0];
  dvbf_real *to = dv_at(run, out);
  for (int i = 0; i < op->n_in; to += op->in[i++].cols)
    copy_columns(to, (size_t)out.cols, dv_at(run, op->in[i]), (size_t)op->in[i].cols, rows_of(out),
                 (size_t)op->in[i].cols);
}

static void join_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value out = op->out[0];
  const dvbf_real *from = dvbf_gradient_at(run, out);
  for (int i = 0; from && i < op->n_in; from += op->in[i++].cols)
    add_columns(run, dvbf_gradient_at(run, op->in[i]), (size_t)op->in[i].cols, from, (size_t)out.cols,
                rows_of(out), (size_t)op->in[i].cols);
}

static void join_emit(const dvbf_op *op, dvbf_code *code) {
  dvbf_place to = dvbf_place_of(op->out[0]);
  for (int i = 0; i < op->n_in; to.offset += (size_t)op->in[i++].cols)
    dvbf_code_each(code, to, op->in[i].steps, op->in[i].cols, dv_read(code, op->in[i]));
}

static const dvbf_op_class join_class = {"join", join_forward, join_backward, join_emit};

void dv_record_join(dvbf_graph *g, dvbf_value out, int count, const dvbf_value *parts) {
  int cols = 0;
  bool fits = count <= DVBF_MAX_IN;
  for (int i = 0; i < count; i++) {
    cols += parts[i].cols;
    fits = fits && rows_of(parts[i]) == rows_of(out);
  }
  if (!fits || cols != out.cols) dvbf_refuse(g, "%d columns cannot be joined to %d", cols, out.cols);
  dvbf_record(g, &join_class, count, parts, 1, &out, NULL, 0);
}

/* ---- columns ---- */

static void columns_forward(const dvbf_op *op, dvbf_run *run) {
  const int *first = op->data;
  dvbf_value out = op->out[0], x = op->in[0];
  copy_columns(dv_at(run, out), (size_t)out.cols, dv_at(run, x) + *first, (size_t)x.cols, rows_of(out),
               (size_t)out.cols);
}

static void columns_backward(const dvbf_op *op, dvbf_run *run) {
  const int *first = op->data;
  dvbf_value out = op->out[0], x = op->in[0];
  dvbf_real *to = dvbf_gradient_at(run, x);
  if (to)
    add_columns(run, to + *first, (size_t)x.cols, dvbf_gradient_at(run, out), (size_t)out.cols, rows_of(out),
                (size_t)out.cols);
}

static void columns_emit(const dvbf_op *op, dvbf_code *code) {
  const int *first = op->data;
  dvbf_value x = op->in[0];
  x.offset += (size_t)*first;
  dv_emit(code, op->out[0], dv_read(code, x));
}

static const dvbf_op_class columns_class = {"columns", columns_forward, columns_backward, columns_emit};

void dv_record_columns(dvbf_graph *g, dvbf_value out, dvbf_value x, int first) {
  if (first < 0 || first + out.cols > x.cols || rows_of(out) != rows_of(x))
    dvbf_refuse(g, "columns %d to %d are not among %d", first, first + out.cols - 1, x.cols);
  dvbf_record(g, &columns_class, 1, &x, 1, &out, &first, sizeof first);
}
