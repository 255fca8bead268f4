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
#include "op/op.h"

#include "base/algebra.h"
#include "base/memory.h"
#include "engine/code.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- One system ---- */

/* What a system is worked on with. */
typedef struct room {
  double *matrix, *s, *u, *v; /* [n][n], [n], [n][n], [n][n] */
} room;

enum { SQUARES = 5 }; /* matrix, u, v, and two for the way back */

size_t dv_contract_room(int n) {
  return SQUARES * (size_t)n * (size_t)n + (size_t)n;
}

static room room_at(double *at, int n) {
  size_t square = (size_t)n * (size_t)n;
  return (room){at, at + SQUARES * square, at + square, at + 2 * square};
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

/* What singular values are cut to: the limit, less what rounding the entries of A may add to the norm. */
static double cut_to(const dv_systems *s) {
#ifdef DV_DOUBLE
  const double rounding = DBL_EPSILON;
#else
  const double rounding = FLT_EPSILON;
#endif
  return s->most - rounding * sqrt((double)s->n) * (1 + s->most);
}

int dv_contract_system(const dv_systems *s, int i, const dvbf_real *from, dvbf_real *to, double *memory) {
  room w = room_at(memory, s->n);
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

/* ---- The op. in: v; out: v', and for each system what the way back needs: how many singular values were
 * cut, s, u, v; and room ---- */

enum { OUT, KEPT, ROOM };

static size_t kept_size(const dv_systems *s) {
  size_t n = (size_t)s->n;
  return 1 + n + 2 * n * n;
}

static void keep(const dv_systems *s, double cut, room w, dvbf_real *to) {
  size_t n = (size_t)s->n;
  *to++ = (dvbf_real)cut;
  for (size_t k = 0; k < n && cut > 0; k++) *to++ = (dvbf_real)w.s[k];
  for (size_t k = 0; k < n * n && cut > 0; k++) *to++ = (dvbf_real)w.u[k];
  for (size_t k = 0; k < n * n && cut > 0; k++) *to++ = (dvbf_real)w.v[k];
}

/* Of parameters that have not changed, as in the steps of an online filter, the result is still there. */
static bool made_before(const dvbf_run *run, dvbf_value v) {
  dv_buffer_kind kind = run->buffers[v.buffer].kind;
  return run->same_weights && (kind == DV_BUFFER_PARAMETER || kind == DV_BUFFER_FROZEN);
}

static void contract_forward(const dvbf_op *op, dvbf_run *run) {
  const dv_systems *s = op->data;
  dvbf_value v = op->in[0];
  double *memory = (double *)(void *)dv_at(run, op->out[ROOM]);
  if (made_before(run, v)) return;
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

/* Adds to the gradient of one system what cutting its singular values changes. */
static void add_cut(const dv_systems *s, int i, const dvbf_real *kept, const dvbf_real *g, dvbf_real *d,
                    double *memory) {
  int n = s->n, cut = (int)kept[0];
  size_t size = (size_t)n, square = size * size;
  room w = room_at(memory, n);
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
  double *memory = (double *)(void *)dv_at(run, op->out[ROOM]);
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
    dvbf_refuse(g, "contraction of %d systems of %d states takes too much memory; fewer need less", s->count,
                s->n);
    return;
  }
  bool back = dv_graph_training(g);
  dvbf_value kept =
      back ? dvbf_slab_shared_constant(g, v.steps, (int)((size_t)s->count * kept_size(s))) : DVBF_NONE;
  dvbf_value results[] = {out, kept, dvbf_slab_shared_constant(g, 1, (int)(dv_contract_room(s->n) * per))};
  if (!back) dvbf_keep(g, out); /* for runs with the same weights */
  dvbf_record(g, &contract_class, 1, &v, 3, results, s, sizeof *s);
}
