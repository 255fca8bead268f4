/* Binary frames from a mixture of a network's own frame and M patterns that all frames share: ln p
 * (dv_record_patterns) and the mean (dv_record_patterns_mean), with gradients for whole and partly observed
 * rows. */

/* l_0 = sum_i x_i o_i - ln(1 + exp o_i)        l_m = sum_i x_i V_im - ln(1 + exp V_im),  m = 1 .. M
 *
 *   ln p(x) = ln sum_m exp(a_m + l_m) - ln sum_m exp a_m
 *
 * With r = softmax(a + l) and pi = softmax(a) its derivatives are
 *
 *   a_m  r_m - pi_m      o_i  r_0 (x_i - sigmoid(o_i))      V_im  r_m (x_i - sigmoid(V_im))
 *
 * and the mean of x is
 *
 *   y_i = pi_0 sigmoid(o_i) + sum_m pi_m sigmoid(V_im).
 *
 * V is DV_PATTERN_GAIN times its parameter, so that an optimiser with equal steps for all parameters soon
 * reaches large logits. Most x are 0, and sums over x skip them. V has a row for each column of x. */
#include "math/portable.h"
#include "ops/emit.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

static double sigmoid(double x) {
  return 1 / (1 + dv_exp(-x));
}

static double softplus(double x) {
  return fmax(x, 0) + dv_log1p(dv_exp(-fabs(x)));
}

static double logit(const dvbf_real *v, size_t k) {
  return DV_PATTERN_GAIN * (double)v[k];
}

static bool in_part(const dvbf_op *op) {
  return dv_is_partial(op->in[0], op->in[4]);
}

static bool bit_seen(const dvbf_op *op, const dvbf_real *seen, size_t r, size_t i) {
  return !in_part(op) || seen[r * (size_t)op->in[0].cols + i] > 0;
}

/* p [count] = softmax(a); returns ln sum exp a. */
static double soften(const dvbf_real *a, dvbf_real *p, size_t count) {
  double most = -INFINITY, sum = 0;
  for (size_t m = 0; m < count; m++) most = fmax(most, (double)a[m]);
  for (size_t m = 0; m < count; m++) {
    double e = dv_exp((double)a[m] - most);
    p[m] = (dvbf_real)e;
    sum += e;
  }
  for (size_t m = 0; m < count; m++) p[m] = (dvbf_real)((double)p[m] / sum);
  return most + dv_log(sum);
}

/* ---- ln p ----
 *
 * in: x, o, a, V, mask; out: ln p, r [..][1 + M], ln(1 + exp V) and behind it its sums [M], room for a
 * number of each row. */
enum { PATTERN_X, O, PATTERN_A, PATTERN_V, PATTERN_MASK };

/* ln(1 + exp V), and the sum of it over the columns of x. */
static void prepare(const dvbf_op *op, dvbf_run *run) {
  const dvbf_real *v = dv_at(run, op->in[PATTERN_V]);
  size_t n = (size_t)op->in[PATTERN_X].cols, count = (size_t)op->in[PATTERN_V].cols;
  dvbf_real *soft = dv_at(run, op->out[2]), *sum = soft + n * count;
  memset(sum, 0, count * sizeof *sum);
  for (size_t i = 0; i < n; i++)
    for (size_t m = 0; m < count; m++) {
      soft[i * count + m] = (dvbf_real)softplus(logit(v, i * count + m));
      sum[m] += soft[i * count + m];
    }
}

/* l_0 of row r that is seen in part. */
static double own_in_part(const dvbf_op *op, const dvbf_run *run, size_t r) {
  size_t n = (size_t)op->in[PATTERN_X].cols;
  const dvbf_real *x = dv_at(run, op->in[PATTERN_X]) + r * n, *o = dv_at(run, op->in[O]) + r * n;
  const dvbf_real *seen = dv_at(run, op->in[PATTERN_MASK]);
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    if (bit_seen(op, seen, r, i)) sum += (double)x[i] * (double)o[i] - softplus((double)o[i]);
  return sum;
}

/* l [M] of row r. */
static void weigh_patterns(const dvbf_op *op, const dvbf_run *run, size_t r, dvbf_real *l) {
  size_t n = (size_t)op->in[PATTERN_X].cols, count = (size_t)op->in[PATTERN_V].cols;
  const dvbf_real *x = dv_at(run, op->in[PATTERN_X]) + r * n, *v = dv_at(run, op->in[PATTERN_V]);
  const dvbf_real *soft = dv_at(run, op->out[2]), *sum = soft + n * count;
  const dvbf_real *seen = dv_at(run, op->in[PATTERN_MASK]);
  for (size_t m = 0; m < count; m++) l[m] = -sum[m];
  for (size_t i = 0; i < n; i++) {
    const dvbf_real *w = v + i * count, *s = soft + i * count, at = x[i];
    if (!bit_seen(op, seen, r, i))
      for (size_t m = 0; m < count; m++) l[m] += s[m];
    else if (at != 0)
      for (size_t m = 0; m < count; m++) l[m] += DV_PATTERN_GAIN * at * w[m];
  }
}

static void patterns_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value x = op->in[PATTERN_X];
  size_t rows = dv_rows(x), all = (size_t)op->in[PATTERN_A].cols;
  const dvbf_real *a = dv_at(run, op->in[PATTERN_A]), *mask = dv_at(run, op->in[PATTERN_MASK]);
  dvbf_real *out = dv_at(run, op->out[0]), *r = dv_at(run, op->out[1]), *own = dv_at(run, op->out[3]);
  prepare(op, run);
  if (!in_part(op)) run->k->bernoulli(own, dv_at(run, x), dv_at(run, op->in[O]), (int)rows, x.cols);
  for (size_t k = 0; k < rows; k++, a += all, r += all) {
    if (in_part(op)) own[k] = (dvbf_real)own_in_part(op, run, k);
    double before = soften(a, r, all);
    weigh_patterns(op, run, k, r + 1);
    r[0] = own[k];
    for (size_t m = 0; m < all; m++) r[m] += a[m];
    out[k] = (dvbf_real)(soften(r, r, all) - before);
    if (!in_part(op) && !(mask[k] > 0)) out[k] = 0;
  }
}

/* d V of row k, without the term common to all rows, whose share g r_m is added to `shares`. Parameters that
 * are fixed have no gradient. */
static void patterns_back(const dvbf_op *op, dvbf_run *run, size_t k, double g, const dvbf_real *r,
                          dvbf_real *d_v, double *shares) {
  size_t n = (size_t)op->in[PATTERN_X].cols, count = (size_t)op->in[PATTERN_V].cols;
  const dvbf_real *x = dv_at(run, op->in[PATTERN_X]) + k * n, *seen = dv_at(run, op->in[PATTERN_MASK]);
  const dvbf_real *v = dv_at(run, op->in[PATTERN_V]);
  for (size_t m = 0; m < count; m++) shares[m] += g * (double)r[m];
  for (size_t i = 0; i < n && d_v; i++) {
    dvbf_real *d = d_v + i * count, by = DV_PATTERN_GAIN * (dvbf_real)g * x[i];
    if (!bit_seen(op, seen, k, i))
      for (size_t m = 0; m < count; m++)
        d[m] += (dvbf_real)(DV_PATTERN_GAIN * g * (double)r[m] * sigmoid(logit(v, i * count + m)));
    else if (x[i] != 0)
      for (size_t m = 0; m < count; m++) d[m] += by * r[m];
  }
}

/* d o of row k, seen in part. */
static void own_back(const dvbf_op *op, dvbf_run *run, size_t k, double g, dvbf_real *d_o) {
  size_t n = (size_t)op->in[PATTERN_X].cols;
  const dvbf_real *x = dv_at(run, op->in[PATTERN_X]) + k * n, *o = dv_at(run, op->in[O]) + k * n;
  const dvbf_real *seen = dv_at(run, op->in[PATTERN_MASK]);
  for (size_t i = 0; i < n; i++)
    if (bit_seen(op, seen, k, i)) d_o[k * n + i] += (dvbf_real)(g * ((double)x[i] - sigmoid((double)o[i])));
}

static void patterns_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value x = op->in[PATTERN_X];
  size_t rows = dv_rows(x), all = (size_t)op->in[PATTERN_A].cols, count = all - 1;
  const dvbf_real *a = dv_at(run, op->in[PATTERN_A]), *mask = dv_at(run, op->in[PATTERN_MASK]),
                  *v = dv_at(run, op->in[PATTERN_V]);
  const dvbf_real *r = dv_at(run, op->out[1]), *g = dvbf_gradient_at(run, op->out[0]);
  dvbf_real *d_a = dvbf_gradient_at(run, op->in[PATTERN_A]), *d_o = dvbf_gradient_at(run, op->in[O]);
  dvbf_real *d_v = dvbf_gradient_at(run, op->in[PATTERN_V]), *own = dv_at(run, op->out[3]);
  double shares[DV_MOST_PATTERNS] = {0};
  dvbf_real pi[DV_MOST_PATTERNS + 1];
  for (size_t k = 0; k < rows; k++, a += all, r += all, d_a += all) {
    double by = in_part(op) || mask[k] > 0 ? (double)g[k] : 0;
    own[k] = (dvbf_real)by * r[0];
    if (!(fabs(by) > 0)) continue;
    soften(a, pi, all);
    for (size_t m = 0; m < all; m++) d_a[m] += (dvbf_real)by * (r[m] - pi[m]);
    patterns_back(op, run, k, by, r + 1, d_v, shares);
    if (in_part(op)) own_back(op, run, k, (double)own[k], d_o);
  }
  if (!in_part(op))
    run->k->bernoulli_backward(d_o, own, dv_at(run, x), dv_at(run, op->in[O]), (int)rows, x.cols);
  for (size_t i = 0; i < (size_t)x.cols && d_v; i++)
    for (size_t m = 0; m < count; m++)
      d_v[i * count + m] -= (dvbf_real)(DV_PATTERN_GAIN * shares[m] * sigmoid(logit(v, i * count + m)));
}

static const dvbf_op_class patterns_class = {"patterns", patterns_forward, patterns_backward, NULL};

void dv_record_patterns(dvbf_graph *g, dvbf_value out, const dv_patterns *p, dvbf_value x, dvbf_value mask) {
  int n = x.cols, count = p->patterns.cols, steps = x.steps;
  dvbf_value in[] = {x, p->own, p->scores, p->patterns, mask};
  dvbf_value to[] = {out, dvbf_slab_constant(g, steps, count + 1),
                     dvbf_slab_shared_constant(g, 1, (n + 1) * count), dvbf_slab_constant(g, steps, 1)};
  if (count > DV_MOST_PATTERNS || p->scores.cols != count + 1 || p->own.cols != n)
    dvbf_refuse(g, "%d patterns do not fit %d scores", count, p->scores.cols);
  dvbf_record(g, &patterns_class, 5, in, 4, to, NULL, 0);
}

/* ---- The mean ----
 *
 * in: o, a, V; out: y, sigmoid(V). With q_0 = sum_i d y_i sigmoid(o_i), q_m = sum_i d y_i sigmoid(V_im):
 *
 *   a_m  pi_m (q_m - sum_k pi_k q_k)      o_i  d y_i pi_0 sigmoid'(o_i)      V_im  d y_i pi_m sigmoid'(V_im)
 */

static void mean_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value y = op->out[0];
  size_t rows = dv_rows(y), n = (size_t)y.cols, count = (size_t)op->in[2].cols;
  const dvbf_real *o = dv_at(run, op->in[0]), *a = dv_at(run, op->in[1]), *v = dv_at(run, op->in[2]);
  dvbf_real *out = dv_at(run, y), *p = dv_at(run, op->out[1]), pi[DV_MOST_PATTERNS + 1];
  for (size_t i = 0; i < n * count; i++) p[i] = (dvbf_real)sigmoid(logit(v, i));
  for (size_t k = 0; k < rows; k++, o += n, a += count + 1, out += n) {
    soften(a, pi, count + 1);
    for (size_t i = 0; i < n; i++) {
      double sum = (double)pi[0] * sigmoid((double)o[i]);
      for (size_t m = 0; m < count; m++) sum += (double)(pi[m + 1] * p[i * count + m]);
      out[i] = (dvbf_real)sum;
    }
  }
}

static bool any(const dvbf_real *x, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (x[i] != 0) return true;
  return false;
}

static void mean_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value y = op->out[0];
  size_t rows = dv_rows(y), n = (size_t)y.cols, count = (size_t)op->in[2].cols;
  const dvbf_real *o = dv_at(run, op->in[0]), *a = dv_at(run, op->in[1]), *p = dv_at(run, op->out[1]);
  const dvbf_real *d_y = dvbf_gradient_at(run, y);
  dvbf_real *d_o = dvbf_gradient_at(run, op->in[0]), *d_a = dvbf_gradient_at(run, op->in[1]);
  dvbf_real *d_v = dvbf_gradient_at(run, op->in[2]), pi[DV_MOST_PATTERNS + 1];
  for (size_t k = 0; k < rows; k++, o += n, a += count + 1, d_y += n, d_o += n, d_a += count + 1) {
    if (!any(d_y, n)) continue;
    double q[DV_MOST_PATTERNS + 1] = {0}, mean = 0;
    soften(a, pi, count + 1);
    for (size_t i = 0; i < n; i++) {
      double own = sigmoid((double)o[i]), by = (double)d_y[i];
      q[0] += by * own;
      d_o[i] += (dvbf_real)(by * (double)pi[0] * own * (1 - own));
      for (size_t m = 0; m < count; m++) {
        double at = (double)p[i * count + m];
        q[m + 1] += by * at;
        if (d_v) d_v[i * count + m] += (dvbf_real)(DV_PATTERN_GAIN * by * (double)pi[m + 1] * at * (1 - at));
      }
    }
    for (size_t m = 0; m <= count; m++) mean += (double)pi[m] * q[m];
    for (size_t m = 0; m <= count; m++) d_a[m] += (dvbf_real)((double)pi[m] * (q[m] - mean));
  }
}

static void mean_emit(const dvbf_op *op, dvbf_code *code) {
  dvbf_value o = op->in[0], a = op->in[1], y = op->out[0];
  int n = y.cols, count = op->in[2].cols;
  dvbf_value most = dv_emit_room(code, y.steps, 1), sum = dv_emit_room(code, y.steps, 1);
  dvbf_value pi = dv_emit_room(code, y.steps, count + 1);
  dvbf_place each = dvbf_code_room(code, count, n), v = dvbf_place_of(op->in[2]);
  v.by_row = 1, v.by_col = (size_t)count; /* V stands the other way round */
  dvbf_expr apart = dv_minus(code, dv_read(code, a), dv_read_column(code, most));
  dvbf_expr e = dvbf_code_unary(code, DVBF_EXP_OF, apart);
  dvbf_code_most(code, dvbf_place_of(most), y.steps, count + 1, dv_read(code, a));
  dvbf_code_sum(code, dvbf_place_of(sum), y.steps, count + 1, e);
  dv_emit(code, pi, dvbf_code_binary(code, DVBF_DIVIDE, e, dv_read_column(code, sum)));
  dvbf_expr logits = dv_times(code, dv_number(code, DV_PATTERN_GAIN), dvbf_code_read(code, v));
  dvbf_code_each(code, each, count, n, dvbf_code_unary(code, DVBF_SIGMOID_OF, logits));
  dvbf_value first = pi;
  first.cols = 1;
  dv_emit(
      code, y,
      dv_times(code, dv_read_column(code, first), dvbf_code_unary(code, DVBF_SIGMOID_OF, dv_read(code, o))));
  dvbf_place others = dvbf_place_of(pi);
  others.offset += 1;
  dvbf_code_product(code, dvbf_place_of(y), others, each, y.steps, count, n);
}

static const dvbf_op_class mean_class = {"mean of patterns", mean_forward, mean_backward, mean_emit};

void dv_record_patterns_mean(dvbf_graph *g, dvbf_value out, const dv_patterns *p) {
  dvbf_value in[] = {p->own, p->scores, p->patterns};
  dvbf_value to[] = {out, dvbf_slab_shared_constant(g, 1, out.cols * p->patterns.cols)};
  dvbf_record(g, &mean_class, 3, in, 2, to, NULL, 0);
}
