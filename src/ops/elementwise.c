/* Simple ops: sums, zeros, gradient clipping, steps side by side, joining and selecting columns, ln p of
 * independent values, and terms of the objective. Public ones are in dvbf/graph.h, others in ops.h. */
#include "ops/emit.h"
#include "ops/ops.h"

#include <string.h>

/* ---- out = a + b ---- */

static void add_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_real *out = dv_at(run, op->out[0]);
  memcpy(out, dv_at(run, op->in[0]), dv_count(op->out[0]) * sizeof *out);
  run->k->add(out, dv_at(run, op->in[1]), dv_count(op->out[0]));
}

static void add_backward(const dvbf_op *op, dvbf_run *run) {
  for (int i = 0; i < 2; i++) {
    dvbf_real *d = dvbf_gradient_at(run, op->in[i]);
    if (d) run->k->add(d, dvbf_gradient_at(run, op->out[0]), dv_count(op->out[0]));
  }
}

static void add_emit(const dvbf_op *op, dvbf_code *code) {
  dv_emit(code, op->out[0], dv_plus(code, dv_read(code, op->in[0]), dv_read(code, op->in[1])));
}

static const dvbf_op_class add_class = {"add", add_forward, add_backward, add_emit};

void dvbf_add(dvbf_graph *g, dvbf_value out, dvbf_value a, dvbf_value b) {
  dvbf_value in[] = {a, b};
  if (dv_count(a) != dv_count(out) || dv_count(b) != dv_count(out))
    dvbf_refuse(g, "values of different shapes cannot be added");
  dvbf_record(g, &add_class, 2, in, 1, &out, NULL, 0);
}

/* ---- out = 0 ---- */

static void zero_forward(const dvbf_op *op, dvbf_run *run) {
  memset(dv_at(run, op->out[0]), 0, dv_count(op->out[0]) * sizeof(dvbf_real));
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
  for (size_t i = 0, n = dv_count(op->in[0]); i < n; i++) d[i] = d[i] > top ? top : d[i] < -top ? -top : d[i];
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

/* ---- Joining and selecting columns ---- */

/*   join      out = (a, b, ...)          d a += the columns of d out that are a's
 *   columns   out = columns first .. first + n - 1 of x          these columns of d x += d out */

/* Copies columns between tables of other widths. */
static void copy_columns(dvbf_real *to, size_t to_width, const dvbf_real *from, size_t from_width,
                         size_t rows, size_t n) {
  for (size_t r = 0; r < rows; r++) memcpy(to + r * to_width, from + r * from_width, n * sizeof *to);
}

static void add_columns(const dvbf_run *run, dvbf_real *to, size_t to_width, const dvbf_real *from,
                        size_t from_width, size_t rows, size_t n) {
  for (size_t r = 0; to && from && r < rows; r++) run->k->add(to + r * to_width, from + r * from_width, n);
}

static void join_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value out = op->out[0];
  dvbf_real *to = dv_at(run, out);
  for (int i = 0; i < op->n_in; to += op->in[i++].cols)
    copy_columns(to, (size_t)out.cols, dv_at(run, op->in[i]), (size_t)op->in[i].cols, dv_rows(out),
                 (size_t)op->in[i].cols);
}

static void join_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value out = op->out[0];
  const dvbf_real *from = dvbf_gradient_at(run, out);
  for (int i = 0; from && i < op->n_in; from += op->in[i++].cols)
    add_columns(run, dvbf_gradient_at(run, op->in[i]), (size_t)op->in[i].cols, from, (size_t)out.cols,
                dv_rows(out), (size_t)op->in[i].cols);
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
    fits = fits && dv_rows(parts[i]) == dv_rows(out);
  }
  if (!fits || cols != out.cols) dvbf_refuse(g, "%d columns cannot be joined to %d", cols, out.cols);
  dvbf_record(g, &join_class, count, parts, 1, &out, NULL, 0);
}

static void columns_forward(const dvbf_op *op, dvbf_run *run) {
  const int *first = op->data;
  dvbf_value out = op->out[0], x = op->in[0];
  copy_columns(dv_at(run, out), (size_t)out.cols, dv_at(run, x) + *first, (size_t)x.cols, dv_rows(out),
               (size_t)out.cols);
}

static void columns_backward(const dvbf_op *op, dvbf_run *run) {
  const int *first = op->data;
  dvbf_value out = op->out[0], x = op->in[0];
  dvbf_real *to = dvbf_gradient_at(run, x);
  if (to)
    add_columns(run, to + *first, (size_t)x.cols, dvbf_gradient_at(run, out), (size_t)out.cols, dv_rows(out),
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
  if (first < 0 || first + out.cols > x.cols || dv_rows(out) != dv_rows(x))
    dvbf_refuse(g, "columns %d to %d are not among %d", first, first + out.cols - 1, x.cols);
  dvbf_record(g, &columns_class, 1, &x, 1, &out, &first, sizeof first);
}

/* ---- ln p of independent values ---- */

/*   out = sum_i m_i ln p(x_i, o_i)        d out / d o_i = m_i slope(x_i, o_i)
 *
 * The mask m has one entry for a row, or one for each value. */

static bool is_seen(const dvbf_op *op, const dvbf_real *mask, size_t value, size_t row) {
  return mask[op->in[2].cols == op->in[0].cols ? value : row] > 0;
}

/* in: x, o, mask; out: ln p. */
static void values_forward(const dvbf_op *op, dvbf_run *run) {
  const dv_value_density *density = op->data;
  size_t n = (size_t)op->in[0].cols, rows = dv_rows(op->in[0]);
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
  size_t n = (size_t)op->in[0].cols, rows = dv_rows(op->in[0]);
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

/* ---- Terms of the objective ---- */

/*   term += sum over steps and rows of weight * value      d value += factor * scale [* scalar] * weight */

typedef struct term_data {
  int term, scalar; /* scalar -1: none */
} term_data;

static void term_forward(const dvbf_op *op, dvbf_run *run) {
  const term_data *d = op->data;
  dvbf_value v = op->in[0];
  const dvbf_real *value = dv_at(run, v), *weight = dv_at(run, op->in[1]);
  for (int r = 0; r < v.steps * v.rows; r++)
    run->terms[d->term] += (double)value[r] * (double)weight[r % v.rows];
}

static void term_backward(const dvbf_op *op, dvbf_run *run) {
  const term_data *d = op->data;
  dvbf_value v = op->in[0];
  double coefficient = dvbf_term_factor(run, d->term);
  if (d->scalar >= 0) coefficient *= run->scalars[d->scalar];
  const dvbf_real *weight = dv_at(run, op->in[1]);
  dvbf_real *gradient = dvbf_gradient_at(run, v);
  for (int r = 0; r < v.steps * v.rows; r++) gradient[r] += (dvbf_real)coefficient * weight[r % v.rows];
}

static const dvbf_op_class term_class = {"term", term_forward, term_backward, NULL};

void dvbf_sum(dvbf_graph *g, int term, dvbf_value value, dvbf_value weight, int scalar) {
  term_data data = {term, scalar};
  dvbf_value in[] = {value, weight};
  if (value.cols != 1 || weight.rows != value.rows || weight.cols != 1)
    dvbf_refuse(g, "a term takes [steps][rows][1] and weights [1][rows][1], not [%d][%d][%d] and [%d][%d]",
                value.steps, value.rows, value.cols, weight.rows, weight.cols);
  dvbf_record(g, &term_class, 2, in, 0, NULL, &data, sizeof data);
}
