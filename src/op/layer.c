/* Layers: y = activation(b + sum_k x_k W_k).
 *
 * A layer inside a recurrence is two kinds of op. `open` multiplies what does not depend on the recurrence
 * for all steps at once; `step` adds the sequential products of its step and activates. Backward, `step`
 * turns dy into the gradient before the activation, in place, and sends it on to its sequential inputs;
 * `open`, which runs after all of them, makes every weight's gradient in one product over all steps.
 *
 *   dp = dy * activation'(y)      dx_k += dp W_k^T      dW_k += x_k^T dp      db += sum over rows of dp
 */
#include "engine/engine.h"

#include <string.h>

typedef struct step_data {
  int t;
  dvbf_layer layer;
} step_data;

static int all_rows(dvbf_value v) {
  return v.steps * v.rows;
}

/* One matrix for all steps, or one for each. */
static bool per_step(dvbf_value w) {
  return w.steps > 1;
}

static bool shared(const dvbf_layer *l, int i) {
  return l->in[i].x.rows < l->out.rows;
}

static dvbf_value weight_of(dvbf_value w, int t) {
  return per_step(w) ? dvbf_steps(w, t, 1) : w;
}

/* y = start + x W, x being the same for all rows of a step: made for the first of them. */
static void multiply_shared(dvbf_run *run, dvbf_value y, const dvbf_real *start, dvbf_value x, dvbf_value w) {
  for (int t = 0; t < y.steps; t++) {
    dvbf_real *first = dv_at(run, dvbf_steps(y, t, 1));
    run->product->nn(first, start, dv_at(run, dvbf_steps(x, t, 1)), dv_at(run, weight_of(w, t)), 1, y.cols,
                     x.cols);
    for (int r = 1; r < y.rows; r++)
      memcpy(first + (size_t)r * y.cols, first, (size_t)y.cols * sizeof *first);
  }
}

/* y = start + x W over the rows of both views, or y += x W without start. */
static void multiply(dvbf_run *run, dvbf_value y, const dvbf_real *start, dvbf_value x, dvbf_value w) {
  if (!per_step(w)) {
    run->product->nn(dv_at(run, y), start, dv_at(run, x), dv_at(run, w), all_rows(y), y.cols, x.cols);
    return;
  }
  for (int t = 0; t < y.steps; t++)
    multiply(run, dvbf_steps(y, t, 1), start, dvbf_steps(x, t, 1), dvbf_steps(w, t, 1));
}

/* dx += dp W^T over the rows of both views. */
static void send_back(dvbf_run *run, dvbf_value y, dvbf_value x, dvbf_value w) {
  if (!per_step(w)) {
    bool add;
    dvbf_real *dx = dv_gradient_into(run, x, &add);
    if (dx) run->product->nt(dx, add, dvbf_gradient_at(run, y), dv_at(run, w), all_rows(y), y.cols, x.cols);
    return;
  }
  for (int t = 0; t < y.steps; t++)
    send_back(run, dvbf_steps(y, t, 1), dvbf_steps(x, t, 1), dvbf_steps(w, t, 1));
}

/* dW += x^T dp over the rows of both views. */
static void learn(dvbf_run *run, dvbf_value y, dvbf_value x, dvbf_value w) {
  if (!per_step(w)) {
    bool add;
    dvbf_real *dw = dv_gradient_into(run, w, &add);
    if (dw) run->product->tn(dw, add, dv_at(run, x), dvbf_gradient_at(run, y), all_rows(y), y.cols, x.cols);
    return;
  }
  for (int t = 0; t < y.steps; t++) learn(run, dvbf_steps(y, t, 1), dvbf_steps(x, t, 1), dvbf_steps(w, t, 1));
}

/* Whether `open` makes a product, which can bring the bias along. */
static bool multiplies_at_once(const dvbf_layer *l) {
  bool any = false;
  for (int i = 0; i < l->n_in; i++) any |= !l->in[i].sequential;
  return any;
}

/* Every row of y starts as the bias, where no product can bring it along. */
static void fill_with_bias(dvbf_run *run, dvbf_value y, dvbf_value bias) {
  dvbf_real *at = dv_at(run, y);
  const dvbf_real *b = dv_at(run, bias);
  size_t width = (size_t)y.cols * sizeof *at;
  for (int r = 0; r < all_rows(y); r++, at += y.cols) b ? memcpy(at, b, width) : memset(at, 0, width);
}

/* A narrow result is made from W^T, as sums along the rows of both. */
static bool narrow(dvbf_value w) {
  return w.cols < 16 && w.rows > 16;
}

/* y += x W in step t of the sequential input i. */
static void multiply_step(dvbf_run *run, const dvbf_layer *l, int i, int t) {
  dvbf_value y = dvbf_steps(l->out, t, 1), x = dvbf_steps(l->in[i].x, t, 1), w = weight_of(l->in[i].w, t);
  if (narrow(w))
    run->product->nt(dv_at(run, y), true, dv_at(run, x), dv_at(run, weight_of(l->in[i].turned, t)), y.rows,
                     x.cols, y.cols);
  else
    multiply(run, y, NULL, x, w);
}

/* turned = W^T, for the products of steps. */
static void turn(dvbf_run *run, dvbf_value w, dvbf_value turned) {
  for (int t = 0; t < w.steps; t++) {
    const dvbf_real *from = dv_at(run, dvbf_steps(w, t, 1));
    dvbf_real *to = dv_at(run, dvbf_steps(turned, t, 1));
    for (int i = 0; i < w.cols; i++)
      for (int j = 0; j < w.rows; j++) *to++ = from[(size_t)j * w.cols + i];
  }
}

/* What an op makes may differ from run to run, whatever is said of weights. */
static bool turned_before(const dvbf_run *run, dvbf_value w) {
  dv_buffer_kind kind = run->buffers[w.buffer].kind;
  return run->same_weights && (kind == DV_BUFFER_PARAMETER || kind == DV_BUFFER_FROZEN);
}

static void open_forward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_layer *l = op->data;
  const dvbf_real *start = dv_at(run, l->bias);
  if (!start || !multiplies_at_once(l)) {
    fill_with_bias(run, l->out, l->bias);
    start = NULL;
  }
  for (int i = 0; i < l->n_in; i++) {
    if (l->in[i].turned.buffer >= 0 && !turned_before(run, l->in[i].w))
      turn(run, l->in[i].w, l->in[i].turned);
    if (l->in[i].sequential) continue;
    if (shared(l, i))
      multiply_shared(run, l->out, start, l->in[i].x, l->in[i].w);
    else
      multiply(run, l->out, start, l->in[i].x, l->in[i].w);
    start = NULL;
  }
}

static void open_backward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_layer *l = op->data;
  for (int i = 0; i < l->n_in; i++) {
    learn(run, l->out, l->in[i].x, l->in[i].w);
    if (!l->in[i].sequential) send_back(run, l->out, l->in[i].x, l->in[i].w);
  }
  dvbf_real *db = dvbf_gradient_at(run, l->bias);
  if (db) run->k->column_sum(db, dvbf_gradient_at(run, l->out), all_rows(l->out), l->out.cols);
}

static void step_forward(const dvbf_op *op, dvbf_run *run) {
  const step_data *d = op->data;
  const dvbf_layer *l = &d->layer;
  dvbf_value y = dvbf_steps(l->out, d->t, 1);
  for (int i = 0; i < l->n_in; i++)
    if (l->in[i].sequential) multiply_step(run, l, i, d->t);
  run->k->activate(l->activation, dv_at(run, y), y.rows, y.cols);
}

static void step_backward(const dvbf_op *op, dvbf_run *run) {
  const step_data *d = op->data;
  const dvbf_layer *l = &d->layer;
  dvbf_value y = dvbf_steps(l->out, d->t, 1);
  run->k->activate_backward(l->activation, dvbf_gradient_at(run, y), dv_at(run, y), y.rows, y.cols);
  for (int i = 0; i < l->n_in; i++) {
    dvbf_value x = dvbf_steps(l->in[i].x, d->t, 1), turned = l->in[i].turned;
    dvbf_real *dx = l->in[i].sequential ? dvbf_gradient_at(run, x) : NULL;
    if (!dx) continue;
    if (turned.buffer < 0)
      send_back(run, y, x, weight_of(l->in[i].w, d->t));
    else
      run->product->nn(dx, NULL, dvbf_gradient_at(run, y), dv_at(run, weight_of(turned, d->t)), y.rows,
                       x.cols, y.cols);
  }
}

static void whole_forward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_layer *l = op->data;
  open_forward(op, run);
  run->k->activate(l->activation, dv_at(run, l->out), all_rows(l->out), l->out.cols);
}

static void whole_backward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_layer *l = op->data;
  run->k->activate_backward(l->activation, dvbf_gradient_at(run, l->out), dv_at(run, l->out),
                            all_rows(l->out), l->out.cols);
  open_backward(op, run);
}

static const dvbf_op_class open_class = {"layer-open", open_forward, open_backward};
static const dvbf_op_class step_class = {"layer-step", step_forward, step_backward};
static const dvbf_op_class whole_class = {"layer", whole_forward, whole_backward};

/* An input that all rows share brings the bias along, which must be there, and nothing is learned from it. */
static bool shares_well(const dvbf_graph *g, const dvbf_layer *l, int i) {
  return i == 0 && l->in[i].x.rows == 1 && !l->in[i].sequential && l->bias.buffer >= 0 &&
         !dv_graph_training(g);
}

static bool fits(dvbf_graph *g, const dvbf_layer *l) {
  if (l->n_in < 1 || l->n_in > 4) {
    dvbf_refuse(g, "a layer takes 1 to 4 inputs, not %d", l->n_in);
    return false;
  }
  for (int i = 0; i < l->n_in; i++) {
    dvbf_value x = l->in[i].x, w = l->in[i].w;
    if (x.buffer < 0 || w.buffer < 0 || w.rows != x.cols || w.cols != l->out.cols ||
        x.steps != l->out.steps || (x.rows != l->out.rows && !shares_well(g, l, i)) ||
        (per_step(w) && w.steps != l->out.steps)) {
      dvbf_refuse(g, "input %d of a layer is [%d][%d][%d] times [%d][%d] for an output [%d][%d][%d]", i,
                  x.steps, x.rows, x.cols, w.rows, w.cols, l->out.steps, l->out.rows, l->out.cols);
      return false;
    }
  }
  return true;
}

/* Products of a run: forward, weights, and back to inputs that have a gradient (all but constants). */
static void count_flops(dvbf_graph *g, const dvbf_layer *l) {
  for (int i = 0; i < l->n_in; i++) {
    double one = 2.0 * all_rows(l->in[i].x) * l->out.cols * l->in[i].x.cols;
    bool back = dv_graph_has_gradient(g, l->in[i].x);
    dv_graph_count_flops(g, one * (dv_graph_training(g) ? 2 + back : 1));
  }
}

static int list_inputs(const dvbf_layer *l, dvbf_value *in) {
  int n = 0;
  for (int i = 0; i < l->n_in; i++) {
    in[n++] = l->in[i].x;
    in[n++] = l->in[i].w;
    in[n++] = l->in[i].turned;
  }
  in[n++] = l->bias;
  return n;
}

static void record(dvbf_graph *g, const dvbf_op_class *type, const dvbf_layer *l, const void *data,
                   size_t size) {
  dvbf_value in[DVBF_MAX_IN];
  if (fits(g, l)) dvbf_record(g, type, list_inputs(l, in), in, 1, &l->out, data, size);
}

/* A sequential weight is used once per step, and backward once more. Turned round once per run, each backward
 * product reads it in rows, unless there are so few that it can be read as it is; and each forward product of
 * a narrow result does. */
static void plan_turning(dvbf_graph *g, dvbf_layer *l, bool steps) {
  for (int i = 0; i < l->n_in; i++) {
    dvbf_value w = l->in[i].w;
    if (!steps) l->in[i].sequential = false; /* all steps at once know no order */
    bool back = dv_graph_has_gradient(g, l->in[i].x) && w.rows > 16;
    bool wanted = l->in[i].sequential && (back || narrow(w));
    l->in[i].turned = wanted ? dvbf_slab_shared_constant(g, w.steps, w.rows * w.cols) : DVBF_NONE;
    if (!dv_graph_training(g)) dvbf_keep(g, l->in[i].turned); /* for runs with the same weights */
  }
}

void dvbf_layer_open(dvbf_graph *g, dvbf_layer *layer) {
  if (!fits(g, layer)) return;
  plan_turning(g, layer, true);
  count_flops(g, layer);
  record(g, &open_class, layer, layer, sizeof *layer);
}

void dvbf_layer_step(dvbf_graph *g, const dvbf_layer *layer, int t) {
  step_data data = {t, *layer};
  record(g, &step_class, layer, &data, sizeof data);
}

void dvbf_layer_whole(dvbf_graph *g, dvbf_layer *layer) {
  if (!fits(g, layer)) return;
  plan_turning(g, layer, false);
  count_flops(g, layer);
  record(g, &whole_class, layer, layer, sizeof *layer);
}
