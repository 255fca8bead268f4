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

#include <string.h>

typedef struct step_data {
  int t;
  dvbf_mixture mixture;
} step_data;

/* The parts of s with their rows of v. */
typedef struct part {
  dvbf_value x;
  size_t row;
} part;

static int parts_of_s(const dvbf_mixture *m, part out[3]) {
  int n = 0;
  size_t row = 0;
  out[n++] = (part){m->z, row};
  row += (size_t)m->z.cols;
  if (m->u.buffer >= 0) {
    out[n++] = (part){m->u, row};
    row += (size_t)m->u.cols;
  }
  out[n++] = (part){m->w, row + m->affine};
  return n;
}

static size_t constant_row(const dvbf_mixture *m) {
  return (size_t)m->z.cols + (m->u.buffer >= 0 ? (size_t)m->u.cols : 0);
}

static dvbf_value universal_at(const dvbf_mixture *m, int t) {
  return m->v.steps > 1 ? dvbf_steps(m->v, t, 1) : m->v;
}

static void step_forward(const dvbf_op *op, dvbf_run *run) {
  const step_data *d = op->data;
  const dvbf_mixture *m = &d->mixture;
  int rows = m->z.rows, n = m->next.cols, width = m->parts.cols, t = d->t;
  const dvbf_real *v = dv_at(run, universal_at(m, t)); /* [n_in][n][M] */
  const dvbf_real *z = dv_at(run, dvbf_steps(m->z, t, 1));
  dvbf_real *sums = dv_at(run, dvbf_steps(m->parts, t, 1)), *next = dv_at(run, dvbf_steps(m->next, t, 1));
  const dvbf_real *start = m->affine ? v + constant_row(m) * width : NULL;
  if (!start) memset(sums, 0, (size_t)rows * (size_t)width * sizeof *sums);
  part s[3];
  for (int i = 0, count = parts_of_s(m, s); i < count; i++, start = NULL)
    run->product->nn(sums, start, dv_at(run, dvbf_steps(s[i].x, t, 1)), v + s[i].row * width, rows, width,
                     s[i].x.cols);
  for (int i = 0; i < rows * n; i++) next[i] = m->residual ? z[i] : 0;
  run->k->mix(next, dv_at(run, m->alpha.buffer < 0 ? m->alpha : dvbf_steps(m->alpha, t, 1)), sums, rows, n,
              m->systems);
}

static void step_backward(const dvbf_op *op, dvbf_run *run) {
  const step_data *d = op->data;
  const dvbf_mixture *m = &d->mixture;
  int rows = m->z.rows, n = m->next.cols, width = m->parts.cols, t = d->t;
  dvbf_value alpha = m->alpha.buffer < 0 ? m->alpha : dvbf_steps(m->alpha, t, 1);
  const dvbf_real *v = dv_at(run, universal_at(m, t));
  const dvbf_real *d_next = dvbf_gradient_at(run, dvbf_steps(m->next, t, 1));
  dvbf_real *sums = dv_at(run, dvbf_steps(m->parts, t, 1));
  run->k->mix_backward(dvbf_gradient_at(run, alpha), sums, d_next, dv_at(run, alpha), rows, n, m->systems);
  part s[3];
  for (int i = 0, count = parts_of_s(m, s); i < count; i++) {
    dvbf_real *ds = dvbf_gradient_at(run, dvbf_steps(s[i].x, t, 1));
    if (ds) run->product->nt(ds, true, sums, v + s[i].row * width, rows, width, s[i].x.cols);
  }
  dvbf_real *dz = dvbf_gradient_at(run, dvbf_steps(m->z, t, 1));
  if (m->residual && dz) run->k->add(dz, d_next, (size_t)rows * (size_t)n);
}

/* dv over the steps first .. first + count - 1, which share the values at `v`. */
static void learn(dvbf_run *run, const dvbf_mixture *m, dvbf_value v, int first, int count) {
  dvbf_real *dv = dvbf_gradient_at(run, v);
  if (!dv) return;
  int width = m->parts.cols, rows = count * m->parts.rows;
  const dvbf_real *d_parts = dv_at(run, dvbf_steps(m->parts, first, count));
  part s[3];
  for (int i = 0, n = parts_of_s(m, s); i < n; i++)
    run->product->tn(dv + s[i].row * width, true, dv_at(run, dvbf_steps(s[i].x, first, count)), d_parts, rows,
                     width, s[i].x.cols);
  if (m->affine) run->k->column_sum(dv + constant_row(m) * width, d_parts, rows, width);
}

static void open_backward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_mixture *m = op->data;
  if (m->v.steps == 1)
    learn(run, m, m->v, 0, m->parts.steps);
  else
    for (int t = 0; t < m->parts.steps; t++) learn(run, m, dvbf_steps(m->v, t, 1), t, 1);
}

static const dvbf_op_class open_class = {"mixture-open", NULL, open_backward};
static const dvbf_op_class step_class = {"mixture-step", step_forward, step_backward};

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

static void record(dvbf_graph *g, const dvbf_op_class *type, const dvbf_mixture *m, const void *data,
                   size_t size) {
  dvbf_value in[] = {m->z, m->u, m->w, m->alpha, m->v}, out[] = {m->next, m->parts};
  if (fits(g, m)) dvbf_record(g, type, 5, in, 2, out, data, size);
}

void dvbf_mixture_open(dvbf_graph *g, const dvbf_mixture *mixture) {
  record(g, &open_class, mixture, mixture, sizeof *mixture);
  dv_graph_count_flops(g, (dv_graph_training(g) ? 3.0 : 1.0) * 2 * mixture->parts.steps *
                              mixture->parts.rows * mixture->v.cols);
}

void dvbf_mixture_step(dvbf_graph *g, const dvbf_mixture *mixture, int t) {
  step_data data = {t, *mixture};
  record(g, &step_class, mixture, &data, sizeof data);
}
