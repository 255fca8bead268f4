/* Mixtures of linear systems: the step of locally linear transitions (dvbf_mixture_open, dvbf_mixture_step),
 * the contraction of systems so that no mixture of them expands (dv_record_contract), and states that cannot
 * leave their range (dvbf_saturate). Contraction cuts only singular values above the limit: scaling a whole
 * matrix would shorten its slow modes too. */
#include "base/memory.h"
#include "engine/statements.h"
#include "math/algebra.h"
#include "math/portable.h"
#include "ops/emit.h"
#include "ops/ops.h"

#include <float.h>
#include <math.h>
#include <string.h>

/*   s = (z, u, 1, w)     parts[j][i] = sum_k s_k v[k][j][i]     next_j = [z_j +] sum_i alpha_i parts[j][i]
 *
 * with the systems i innermost in v, so that one row's work is a few long vector operations. Backward,
 *
 *   dalpha_i += sum_j dnext_j parts[j][i]      dparts[j][i] = dnext_j alpha_i (in place of parts)
 *   ds_k += sum_ji dparts[j][i] v[k][j][i]     dv[k][j][i] += sum over rows of s_k dparts[j][i]
 *
 * and the last of these is one product over all steps, made by `open` after the steps have run back. */

/* in: z, u, w, alpha, v; out: next, parts. A step lists its own step of each. */
enum { MIX_Z, MIX_U, MIX_W, ALPHA, V };
enum { NEXT, SUMS };

typedef struct mixture_data {
  int systems;
  bool residual, affine;
} mixture_data;

/* The parts of s with their rows of v. */
typedef struct input_part {
  dvbf_value x;
  size_t row;
} input_part;

static size_t constant_row(const dvbf_op *op) {
  return (size_t)op->in[MIX_Z].cols + (op->in[MIX_U].buffer >= 0 ? (size_t)op->in[MIX_U].cols : 0);
}

static int parts_of_s(const dvbf_op *op, input_part out[3]) {
  const mixture_data *d = op->data;
  int n = 0;
  out[n++] = (input_part){op->in[MIX_Z], 0};
  if (op->in[MIX_U].buffer >= 0) out[n++] = (input_part){op->in[MIX_U], (size_t)op->in[MIX_Z].cols};
  out[n++] = (input_part){op->in[MIX_W], constant_row(op) + d->affine};
  return n;
}

static void step_forward(const dvbf_op *op, dvbf_run *run) {
  const mixture_data *d = op->data;
  int rows = op->in[MIX_Z].rows, n = op->out[NEXT].cols, width = op->out[SUMS].cols;
  const dvbf_real *v = dv_at(run, op->in[V]), *z = dv_at(run, op->in[MIX_Z]); /* v: [n_in][n][M] */
  dvbf_real *sums = dv_at(run, op->out[SUMS]), *next = dv_at(run, op->out[NEXT]);
  const dvbf_real *start = d->affine ? v + constant_row(op) * width : NULL;
  if (!start) memset(sums, 0, (size_t)rows * (size_t)width * sizeof *sums);
  input_part s[3];
  for (int i = 0, count = parts_of_s(op, s); i < count; i++, start = NULL)
    run->product->nn(sums, start, dv_at(run, s[i].x), v + s[i].row * width, rows, width, s[i].x.cols);
  for (int i = 0; i < rows * n; i++) next[i] = d->residual ? z[i] : 0;
  run->k->mix(next, dv_at(run, op->in[ALPHA]), sums, rows, n, d->systems);
}

static void step_backward(const dvbf_op *op, dvbf_run *run) {
  const mixture_data *d = op->data;
  int rows = op->in[MIX_Z].rows, n = op->out[NEXT].cols, width = op->out[SUMS].cols;
  dvbf_value alpha = op->in[ALPHA];
  const dvbf_real *v = dv_at(run, op->in[V]), *d_next = dvbf_gradient_at(run, op->out[NEXT]);
  dvbf_real *sums = dv_at(run, op->out[SUMS]);
  run->k->mix_backward(dvbf_gradient_at(run, alpha), sums, d_next, dv_at(run, alpha), rows, n, d->systems);
  input_part s[3];
  for (int i = 0, count = parts_of_s(op, s); i < count; i++) {
    dvbf_real *ds = dvbf_gradient_at(run, s[i].x);
    if (ds) run->product->nt(ds, true, sums, v + s[i].row * width, rows, width, s[i].x.cols);
  }
  dvbf_real *dz = dvbf_gradient_at(run, op->in[MIX_Z]);
  if (d->residual && dz) run->k->add(dz, d_next, (size_t)rows * (size_t)n);
}

/* dv over the steps first .. first + count - 1, which share the values at `v`. */
static void systems_gradient(dvbf_run *run, const dvbf_op *op, dvbf_value v, int first, int count) {
  const mixture_data *d = op->data;
  dvbf_real *dv = dvbf_gradient_at(run, v);
  if (!dv) return;
  dvbf_value parts = op->out[SUMS];
  int width = parts.cols, rows = count * parts.rows;
  const dvbf_real *d_parts = dv_at(run, dvbf_steps(parts, first, count));
  input_part s[3];
  for (int i = 0, n = parts_of_s(op, s); i < n; i++)
    run->product->tn(dv + s[i].row * width, true, dv_at(run, dvbf_steps(s[i].x, first, count)), d_parts, rows,
                     width, s[i].x.cols);
  if (d->affine) run->k->column_sum(dv + constant_row(op) * width, d_parts, rows, width);
}

static void open_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value v = op->in[V];
  int steps = op->out[SUMS].steps, together = v.steps > 1 ? 1 : steps;
  for (int t = 0; t < steps; t += together)
    systems_gradient(run, op, v.steps > 1 ? dvbf_steps(v, t, 1) : v, t, together);
}

static void step_emit(const dvbf_op *op, dvbf_code *code) {
  const mixture_data *d = op->data;
  dvbf_value z = op->in[MIX_Z], v = op->in[V], alpha = op->in[ALPHA], sums = op->out[SUMS],
             next = op->out[NEXT];
  size_t width = (size_t)sums.cols, systems = (size_t)d->systems;
  dvbf_place constant = {v.buffer, v.offset + constant_row(op) * width, 0, 1};
  dv_emit(code, sums, d->affine ? dvbf_code_read(code, constant) : dv_number(code, 0));
  input_part s[3];
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

static bool mixture_fits(dvbf_graph *g, const dvbf_mixture *m) {
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
static void record_mixture(dvbf_graph *g, const dvbf_op_class *type, const dvbf_mixture *m, int t) {
  mixture_data data = {m->systems, m->residual, m->affine};
  dvbf_value in[] = {m->z, m->u, m->w, m->alpha, m->v}, out[] = {m->next, m->parts};
  for (int i = 0; t >= 0 && i < 5; i++)
    if (i != V || m->v.steps > 1) in[i] = dvbf_steps(in[i], t, 1);
  for (int i = 0; t >= 0 && i < 2; i++) out[i] = dvbf_steps(out[i], t, 1);
  if (mixture_fits(g, m)) dvbf_record(g, type, 5, in, 2, out, &data, sizeof data);
}

void dvbf_mixture_open(dvbf_graph *g, const dvbf_mixture *mixture) {
  record_mixture(g, &open_class, mixture, -1);
  g->flops +=
      (dv_graph_training(g) ? 3.0 : 1.0) * 2 * mixture->parts.steps * mixture->parts.rows * mixture->v.cols;
}

void dvbf_mixture_step(dvbf_graph *g, const dvbf_mixture *mixture, int t) {
  record_mixture(g, &step_class, mixture, t);
}

/* ---- Contraction ---- */

/* Linear systems that cannot expand. With the singular values of S_i = A_i, or I + A_i in residual form,
 *
 *   S = sum_k s_k u_k v_k'      S' = sum_k f_k u_k v_k'      f_k = min(s_k, r)
 *
 * takes the place of S: the nearest matrix of norm r, and S itself, bit for bit, where none of its singular
 * values is above r. Mixtures of such systems, with weights that add up to 1, have no larger norm.
 *
 * Backward, with G the gradient of S', and R_kl = u_k' G v_l,
 *
 *   dS += G + sum_kl (a_kl R_kl + b_kl R_lk) u_k v_l'
 *   a_kl = (p + q) / 2 - 1              b_kl = (p - q) / 2
 *   p = (f_k - f_l) / (s_k - s_l)       q = (f_k + f_l) / (s_k + s_l)
 *
 * where p = 0 if both are above r, and a = b = 0 if neither is. So no gradient moves a singular value that is
 * above r; the updater therefore brings the means of v back to r after each update. */

/* ---- One system ---- */

/* Work arrays of a system. */
typedef struct system_arrays {
  double *matrix, *s, *u, *v; /* [n][n], [n], [n][n], [n][n] */
} system_arrays;

enum { SQUARES = 5 }; /* matrix, u, v, and two for the way back */

size_t dv_contract_room(int n) {
  return SQUARES * (size_t)n * (size_t)n + (size_t)n;
}

static system_arrays room_at(double *at, int n) {
  size_t square = (size_t)n * (size_t)n;
  return (system_arrays){at, at + SQUARES * square, at + square, at + 2 * square};
}

static size_t place(const dv_systems *s, size_t entry, int i) {
  return entry * (size_t)s->count + (size_t)i;
}

/* 1 on the diagonal of a residual system. */
static double identity(const dv_systems *s, size_t entry) {
  return s->residual && entry % ((size_t)s->n + 1) == 0 ? 1 : 0;
}

void dv_systems_read(const dv_systems *systems, int i, const dvbf_real *from, double *s) {
  size_t square = (size_t)systems->n * (size_t)systems->n;
  for (size_t k = 0; k < square; k++) s[k] = (double)from[place(systems, k, i)] + identity(systems, k);
}

/* The limit of singular values, less the error that rounding A may add to the norm. */
static double cut_to(const dv_systems *s) {
#ifdef DV_DOUBLE
  const double rounding = DBL_EPSILON;
#else
  const double rounding = FLT_EPSILON;
#endif
  return s->most - rounding * sqrt((double)s->n) * (1 + s->most);
}

int dv_contract_system(const dv_systems *s, int i, const dvbf_real *from, dvbf_real *to, double *memory) {
  system_arrays w = room_at(memory, s->n);
  size_t n = (size_t)s->n, square = n * n;
  double most = cut_to(s);
  int cut = 0;
  dv_systems_read(s, i, from, w.matrix);
  if (dv_norm_within(w.matrix, s->n, s->most, w.u)) {
    for (size_t k = 0; k < square && to != from; k++) to[place(s, k, i)] = from[place(s, k, i)];
    return 0;
  }
  dv_singular_values(w.matrix, s->n, w.u, w.s, w.v);
  for (; cut < s->n && w.s[cut] > most; cut++) {
    const double *u = w.u + (size_t)cut * n, *v = w.v + (size_t)cut * n;
    for (size_t k = 0; k < square; k++) w.matrix[k] -= (w.s[cut] - most) * u[k / n] * v[k % n];
  }
  for (size_t k = 0; k < square; k++) to[place(s, k, i)] = (dvbf_real)(w.matrix[k] - identity(s, k));
  return cut;
}

/* ---- The op. in: v; out: v', and for backward of each system: number of cut singular values, s, u, v; and
 * room ---- */

enum { OUT, KEPT, CONTRACT_ROOM };

static size_t kept_size(const dv_systems *s) {
  size_t n = (size_t)s->n;
  return 1 + n + 2 * n * n;
}

static void keep(const dv_systems *s, double cut, system_arrays w, dvbf_real *to) {
  size_t n = (size_t)s->n;
  *to++ = (dvbf_real)cut;
  for (size_t k = 0; k < n && cut > 0; k++) *to++ = (dvbf_real)w.s[k];
  for (size_t k = 0; k < n * n && cut > 0; k++) *to++ = (dvbf_real)w.u[k];
  for (size_t k = 0; k < n * n && cut > 0; k++) *to++ = (dvbf_real)w.v[k];
}

static void contract_forward(const dvbf_op *op, dvbf_run *run) {
  const dv_systems *s = op->data;
  dvbf_value v = op->in[0];
  double *memory = (double *)(void *)dv_at(run, op->out[CONTRACT_ROOM]);
  if (dv_is_unchanged(run, v)) return; /* as in the steps of an online filter */
  for (int t = 0; t < v.steps; t++) {
    const dvbf_real *from = dv_at(run, dvbf_steps(v, t, 1));
    dvbf_real *to = dv_at(run, dvbf_steps(op->out[OUT], t, 1));
    dvbf_real *kept = dv_at(run, dvbf_steps(op->out[KEPT], t, 1));
    size_t systems = (size_t)s->n * (size_t)s->n * (size_t)s->count;
    memcpy(to + systems, from + systems, ((size_t)v.cols - systems) * sizeof *to);
    for (int i = 0; i < s->count; i++) {
      int cut = dv_contract_system(s, i, from, to, memory);
      if (kept) keep(s, cut, room_at(memory, s->n), kept + (size_t)i * kept_size(s));
    }
  }
}

/* out [n][n] = sum_k u_k row_k', the rows of u and rows [n][n]. */
static void sum_outer(double *out, const double *u, const double *rows, int n) {
  memset(out, 0, (size_t)n * (size_t)n * sizeof *out);
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) out[i * n + j] += u[k * n + i] * rows[k * n + j];
}

/* r [n][n] becomes a_kl R_kl + b_kl R_lk. */
static void weigh(double *r, const double *s, int n, int cut, double most) {
  for (int k = 0; k < n; k++)
    for (int l = k; l < n; l++) { /* s_k >= s_l */
      double one = r[k * n + l], other = r[l * n + k], a = 0, b = 0;
      if (k < cut) {
        double f = l < cut ? most : s[l], p = l < cut ? 0 : (most - f) / (s[k] - f),
               q = (most + f) / (s[k] + s[l]);
        a = (p + q) / 2 - 1;
        b = (p - q) / 2;
      }
      r[k * n + l] = a * one + b * other;
      r[l * n + k] = a * other + b * one;
    }
}

/* Adds to the gradient of one system the part due to cutting its singular values. */
static void add_cut(const dv_systems *s, int i, const dvbf_real *kept, const dvbf_real *g, dvbf_real *d,
                    double *memory) {
  int n = s->n, cut = (int)kept[0];
  size_t size = (size_t)n, square = size * size;
  system_arrays w = room_at(memory, n);
  double *r = w.v + square, *scratch = r + square;
  if (!cut) return;
  for (size_t k = 0; k < size; k++) w.s[k] = (double)kept[1 + k];
  for (size_t k = 0; k < square; k++) w.u[k] = (double)kept[1 + size + k];
  for (size_t k = 0; k < square; k++) w.v[k] = (double)kept[1 + size + square + k];
  for (size_t k = 0; k < square; k++) w.matrix[k] = (double)g[place(s, k, i)];
  dv_product(scratch, w.u, w.matrix, n, n, n);
  dv_product_transposed(r, scratch, w.v, n, n, n);
  weigh(r, w.s, n, cut, cut_to(s));
  dv_product(scratch, r, w.v, n, n, n);
  sum_outer(w.matrix, w.u, scratch, n);
  for (size_t k = 0; k < square; k++) d[place(s, k, i)] += (dvbf_real)w.matrix[k];
}

static void contract_backward(const dvbf_op *op, dvbf_run *run) {
  const dv_systems *s = op->data;
  dvbf_value v = op->in[0];
  double *memory = (double *)(void *)dv_at(run, op->out[CONTRACT_ROOM]);
  for (int t = 0; t < v.steps; t++) {
    dvbf_real *d = dvbf_gradient_at(run, dvbf_steps(v, t, 1));
    const dvbf_real *g = dvbf_gradient_at(run, dvbf_steps(op->out[OUT], t, 1));
    const dvbf_real *kept = dv_at(run, dvbf_steps(op->out[KEPT], t, 1));
    if (!d) return; /* derivatives by z and u ask for none by v */
    run->k->add(d, g, (size_t)v.cols);
    for (int i = 0; i < s->count; i++) add_cut(s, i, kept + (size_t)i * kept_size(s), g, d, memory);
  }
}

/* A trained v is constant, and then S' is too. */
static void contract_emit(const dvbf_op *op, dvbf_code *code) {
  const dv_systems *s = op->data;
  dvbf_value v = op->in[0];
  size_t systems = (size_t)s->n * (size_t)s->n * (size_t)s->count, all = (size_t)v.cols;
  const dv_code_buffer *from = &code->buffers[v.buffer];
  if (!from->constant || v.steps != 1) {
    dvbf_code_refuse(code,
                     "systems that contract cannot be exported where their parameters are not constant");
    return;
  }
  const dvbf_real *at = from->constant + v.offset;
  dvbf_real *to = dv_code_make_constant(code, op->out[OUT], from->name);
  double *memory = dv_calloc(dv_contract_room(s->n), sizeof *memory);
  if (!memory) dvbf_code_refuse(code, "out of memory while writing a model as code");
  for (int i = 0; i < s->count && to && memory; i++) dv_contract_system(s, i, at, to, memory);
  if (to) memcpy(to + systems, at + systems, (all - systems) * sizeof *to);
  dv_free(memory);
}

static const dvbf_op_class contract_class = {"contract", contract_forward, contract_backward, contract_emit};

void dv_record_contract(dvbf_graph *g, dvbf_value out, dvbf_value v, const dv_systems *s) {
  size_t per = sizeof(double) / sizeof(dvbf_real), square = (size_t)s->n * (size_t)s->n;
  if (out.buffer < 0 || v.buffer < 0) return;
  if ((size_t)v.cols < square * (size_t)s->count || out.cols != v.cols || out.steps != v.steps) {
    dvbf_refuse(g, "%d systems of %d states do not fit into %d universal parameters", s->count, s->n, v.cols);
    return;
  }
  if (square > 1 << 24 || (size_t)s->count * kept_size(s) > 1 << 28) {
    dvbf_refuse(g, "contraction of %d systems of %d states takes too much memory; use fewer", s->count, s->n);
    return;
  }
  bool back = dv_graph_training(g);
  dvbf_value kept =
      back ? dvbf_slab_shared_constant(g, v.steps, (int)((size_t)s->count * kept_size(s))) : DVBF_NONE;
  dvbf_value results[] = {out, kept, dvbf_slab_shared_constant(g, 1, (int)(dv_contract_room(s->n) * per))};
  if (!back) dvbf_keep(g, out); /* for runs with the same weights */
  dvbf_record(g, &contract_class, 1, &v, 3, results, s, sizeof *s);
}

/* ---- Saturation ---- */

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

static void saturate_forward(const dvbf_op *op, dvbf_run *run) {
  int n = op->in[1].cols, cols = op->in[0].cols;
  const dvbf_real *centre = dv_at(run, op->in[1]), *limit = centre + n;
  dvbf_real *z = dv_at(run, op->in[0]);
  for (int r = 0; r < dv_rows(op->in[0]); r++, z += cols)
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
  for (int r = 0; r < dv_rows(op->in[0]); r++, y += cols, d += cols)
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
