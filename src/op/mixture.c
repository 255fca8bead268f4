/* Mixture of linear systems:
 *
 *   s = (z, u, 1, w)     parts[j][i] = sum_k s_k v[k][j][i]     next_j = [z_j +] sum_i alpha_i parts[j][i]
 *
 * with the systems i innermost in v, so that one row's work is a few long vector operations. Backward,
 *
 *   dalpha_i += sum_j dnext_j parts[j][i]      dparts[j][i] = dnext_j alpha_i (in place of parts)
 *   ds_k += sum_ji dparts[j][i] v[k][j][i]     dv[k][j][i] += sum over rows of s_k dparts[j][i]
 *
 * and the last of these is one product over all steps, made by `open` after the steps have run back.
 */
#include "engine/engine.h"
#include "op/emit.h"

#include <string.h>

/* in: z, u, w, alpha, v; out: next, parts. A step lists its own step of each. */
enum { Z, U, W, ALPHA, V };
enum { NEXT, PARTS };

typedef struct mixture_data {
  int systems;
  bool residual, affine;
} mixture_data;

/* The parts of s with their rows of v. */
typedef struct part {
  dvbf_value x;
  size_t row;
} part;

static size_t constant_row(const dvbf_op *op) {
  return (size_t)op->in[Z].cols + (op->in[U].buffer >= 0 ? (size_t)op->in[U].cols : 0);
}

static int parts_of_s(const dvbf_op *op, part out[3]) {
  const mixture_data *d = op->data;
  int n = 0;
  out[n++] = (part){op->in[Z], 0};
  if (op->in[U].buffer >= 0) out[n++] = (part){op->in[U], (size_t)op->in[Z].cols};
  out[n++] = (part){op->in[W], constant_row(op) + d->affine};
  return n;
}

static void step_forward(const dvbf_op *op, dvbf_run *run) {
  const mixture_data *d = op->data;
  int rows = op->in[Z].rows, n = op->out[NEXT].cols, width = op->out[PARTS].cols;
  const dvbf_real *v = dv_at(run, op->in[V]), *z = dv_at(run, op->in[Z]); /* v: [n_in][n][M] */
  dvbf_real *sums = dv_at(run, op->out[PARTS]), *next = dv_at(run, op->out[NEXT]);
  const dvbf_real *start = d->affine ? v + constant_row(op) * width : NULL;
  if (!start) memset(sums, 0, (size_t)rows * (size_t)width * sizeof *sums);
  part s[3];
  for (int i = 0, count = parts_of_s(op, s); i < count; i++, start = NULL)
    run->product->nn(sums, start, dv_at(run, s[i].x), v + s[i].row * width, rows, width, s[i].x.cols);
  for (int i = 0; i < rows * n; i++) next[i] = d->residual ? z[i] : 0;
  run->k->mix(next, dv_at(run, op->in[ALPHA]), sums, rows, n, d->systems);
}

static void step_backward(const dvbf_op *op, dvbf_run *run) {
  const mixture_data *d = op->data;
  int rows = op->in[Z].rows, n = op->out[NEXT].cols, width = op->out[PARTS].cols;
  dvbf_value alpha = op->in[ALPHA];
  const dvbf_real *v = dv_at(run, op->in[V]), *d_next = dvbf_gradient_at(run, op->out[NEXT]);
  dvbf_real *sums = dv_at(run, op->out[PARTS]);
  run->k->mix_backward(dvbf_gradient_at(run, alpha), sums, d_next, dv_at(run, alpha), rows, n, d->systems);
  part s[3];
  for (int i = 0, count = parts_of_s(op, s); i < count; i++) {
    dvbf_real *ds = dvbf_gradient_at(run, s[i].x);
    if (ds) run->product->nt(ds, true, sums, v + s[i].row * width, rows, width, s[i].x.cols);
  }
  dvbf_real *dz = dvbf_gradient_at(run, op->in[Z]);
  if (d->residual && dz) run->k->add(dz, d_next, (size_t)rows * (size_t)n);
}

/* dv over the steps first .. first + count - 1, which share the values at `v`. */
static void weight_gradient(dvbf_run *run, const dvbf_op *op, dvbf_value v, int first, int count) {
  const mixture_data *d = op->data;
  dvbf_real *dv = dvbf_gradient_at(run, v);
  if (!dv) return;
  dvbf_value parts = op->out[PARTS];
  int width = parts.cols, rows = count * parts.rows;
  const dvbf_real *d_parts = dv_at(run, dvbf_steps(parts, first, count));
  part s[3];
  for (int i = 0, n = parts_of_s(op, s); i < n; i++)
    run->product->tn(dv + s[i].row * width, true, dv_at(run, dvbf_steps(s[i].x, first, count)), d_parts, rows,
                     width, s[i].x.cols);
  if (d->affine) run->k->column_sum(dv + constant_row(op) * width, d_parts, rows, width);
}

static void open_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value v = op->in[V];
  int steps = op->out[PARTS].steps;
  if (v.steps == 1)
    weight_gradient(run, op, v, 0, steps);
  else
    for (int t = 0; t < steps; t++) weight_gradient(run, op, dvbf_steps(v, t, 1), t, 1);
}

static void step_emit(const dvbf_op *op, dvbf_code *code) {
  const mixture_data *d = op->data;
  dvbf_value z = op->in[Z], v = op->in[V], alpha = op->in[ALPHA], sums = op->out[PARTS], next = op->out[NEXT];
  size_t width = (size_t)sums.cols, systems = (size_t)d->systems;
  dvbf_place constant = {v.buffer, v.offset + constant_row(op) * width, 0, 1};
  dv_emit(code, sums, d->affine ? dvbf_code_read(code, constant) : dv_number(code, 0));
  part s[3];
  for (int i = 0, count = parts_of_s(op, s); i < count; i++)
    dvbf_code_product(code, dvbf_place_of(sums), dvbf_place_of(s[i].x),
                      (dvbf_place){v.buffer, v.offset + s[i].row * width, width, 1}, 1, s[i].x.cols,
                      sums.cols);
  dvbf_place each = {sums.buffer, sums.offset, systems, 1};
  if (alpha.buffer >= 0)
    dvbf_code_sum(code, (dvbf_place){next.buffer, next.offset, 1, 1}, next.cols, d->systems,
                  dv_times(code, dv_read_row(code, alpha), dvbf_code_read(code, each)));
  else
    dv_emit(code, next, dv_read(code, sums));
  if (d->residual) dv_emit(code, next, dv_plus(code, dv_read(code, z), dv_read(code, next)));
}

static const dvbf_op_class open_class = {"mixture-open", NULL, open_backward, NULL};
static const dvbf_op_class step_class = {"mixture-step", step_forward, step_backward, step_emit};

static bool fits(dvbf_graph *g, const dvbf_mixture *m) {
  int n_in = m->z.cols + (m->u.buffer >= 0 ? m->u.cols : 0) + m->affine + m->w.cols;
  bool good = m->z.buffer >= 0 && m->w.buffer >= 0 && m->v.buffer >= 0 && m->next.buffer >= 0 &&
              m->parts.cols == m->next.cols * m->systems && m->v.cols == n_in * m->parts.cols &&
              (m->alpha.buffer >= 0 ? m->alpha.cols == m->systems : m->systems == 1) &&
              (m->alpha.buffer < 0 || !dv_graph_training(g) || dv_graph_has_gradient(g, m->alpha)) &&
              (!m->residual || m->z.cols == m->next.cols) &&
              (m->v.steps == 1 || m->v.steps == m->parts.steps);
  if (!good) dvbf_refuse(g, "the shapes of a mixture of %d systems do not fit together", m->systems);
  return good;
}

/* All steps, or step t. */
static void record(dvbf_graph *g, const dvbf_op_class *type, const dvbf_mixture *m, int t) {
  mixture_data data = {m->systems, m->residual, m->affine};
  dvbf_value in[] = {m->z, m->u, m->w, m->alpha, m->v}, out[] = {m->next, m->parts};
  for (int i = 0; t >= 0 && i < 5; i++)
    if (i != V || m->v.steps > 1) in[i] = dvbf_steps(in[i], t, 1);
  for (int i = 0; t >= 0 && i < 2; i++) out[i] = dvbf_steps(out[i], t, 1);
  if (fits(g, m)) dvbf_record(g, type, 5, in, 2, out, &data, sizeof data);
}

void dvbf_mixture_open(dvbf_graph *g, const dvbf_mixture *mixture) {
  record(g, &open_class, mixture, -1);
  dv_graph_count_flops(g, (dv_graph_training(g) ? 3.0 : 1.0) * 2 * mixture->parts.steps *
                              mixture->parts.rows * mixture->v.cols);
}

void dvbf_mixture_step(dvbf_graph *g, const dvbf_mixture *mixture, int t) {
  record(g, &step_class, mixture, t);
}
