/* Layers, y = activation(b + sum_k x_k W_k): dvbf_layer_open, dvbf_layer_step and dvbf_layer_whole. All that
 * does not depend on a recurrence is one large product over all steps. */

/* A layer inside a recurrence is two kinds of op. `open` multiplies what does not depend on the recurrence
 * for all steps at once; `step` adds the sequential products of its step and activates. Backward, `step`
 * turns dy into the gradient before the activation, in place, and sends it on to its sequential inputs;
 * `open`, which runs after all of them, makes every weight's gradient in one product over all steps.
 *
 *   dp = dy * activation'(y)      dx_k += dp W_k^T      dW_k += x_k^T dp      db += sum over rows of dp */
#include "ops/emit.h"
#include "ops/ops.h"

#include <string.h>

/* An op lists x, w and w transposed of each input, then the bias. */
typedef struct layer_data {
  int n_in;
  dvbf_activation activation;
  bool sequential[4];
} layer_data;

typedef struct layer_input {
  dvbf_value x, w, transposed;
} layer_input;

static layer_input input_of(const dvbf_op *op, int i) {
  return (layer_input){op->in[3 * i], op->in[3 * i + 1], op->in[3 * i + 2]};
}

static dvbf_value bias_of(const dvbf_op *op) {
  return op->in[op->n_in - 1];
}

/* One matrix for all steps, or one for each. */
static bool per_step(dvbf_value w) {
  return w.steps > 1;
}

static dvbf_value weight_at(dvbf_value w, int t) {
  return per_step(w) ? dvbf_steps(w, t, 1) : w;
}

/* Steps of y that are one product. */
static int together(dvbf_value y, dvbf_value w) {
  return per_step(w) ? 1 : y.steps;
}

/* y = start + x W for an x that all rows of a step share: computed for the first row. */
static void multiply_shared(dvbf_run *run, dvbf_value y, const dvbf_real *start, dvbf_value x, dvbf_value w) {
  for (int t = 0; t < y.steps; t++) {
    dvbf_real *first = dv_at(run, dvbf_steps(y, t, 1));
    run->product->nn(first, start, dv_at(run, dvbf_steps(x, t, 1)), dv_at(run, weight_at(w, t)), 1, y.cols,
                     x.cols);
    for (int r = 1; r < y.rows; r++)
      memcpy(first + (size_t)r * y.cols, first, (size_t)y.cols * sizeof *first);
  }
}

/* y = start + x W over the rows of both views, or y += x W without start. */
static void multiply_rows(dvbf_run *run, dvbf_value y, const dvbf_real *start, dvbf_value x, dvbf_value w) {
  for (int t = 0, n = together(y, w); t < y.steps; t += n)
    run->product->nn(dv_at(run, dvbf_steps(y, t, n)), start, dv_at(run, dvbf_steps(x, t, n)),
                     dv_at(run, weight_at(w, t)), n * y.rows, y.cols, x.cols);
}

/* dx += dp W^T over the rows of both views. */
static void input_gradient(dvbf_run *run, dvbf_value y, dvbf_value x, dvbf_value w) {
  for (int t = 0, n = together(y, w); t < y.steps; t += n) {
    bool add;
    dvbf_real *dx = dv_gradient_into(run, dvbf_steps(x, t, n), &add);
    if (dx)
      run->product->nt(dx, add, dvbf_gradient_at(run, dvbf_steps(y, t, n)), dv_at(run, weight_at(w, t)),
                       n * y.rows, y.cols, x.cols);
  }
}

/* dW += x^T dp over the rows of both views. */
static void weight_gradient(dvbf_run *run, dvbf_value y, dvbf_value x, dvbf_value w) {
  for (int t = 0, n = together(y, w); t < y.steps; t += n) {
    bool add;
    dvbf_real *dw = dv_gradient_into(run, weight_at(w, t), &add);
    if (dw)
      run->product->tn(dw, add, dv_at(run, dvbf_steps(x, t, n)), dvbf_gradient_at(run, dvbf_steps(y, t, n)),
                       n * y.rows, y.cols, x.cols);
  }
}

/* Whether `open` makes a product, which can add the bias. */
static bool multiplies_at_once(const layer_data *d) {
  bool any = false;
  for (int i = 0; i < d->n_in; i++) any |= !d->sequential[i];
  return any;
}

/* A narrow result is made from W^T, as sums along the rows of both. */
static bool narrow(dvbf_value w) {
  return w.cols < 16 && w.rows > 16;
}

/* transposed = W^T, for the products of steps. */
static void transpose_layer(dvbf_run *run, dvbf_value w, dvbf_value transposed) {
  for (int t = 0; t < w.steps; t++) {
    const dvbf_real *from = dv_at(run, dvbf_steps(w, t, 1));
    dvbf_real *to = dv_at(run, dvbf_steps(transposed, t, 1));
    for (int i = 0; i < w.cols; i++)
      for (int j = 0; j < w.rows; j++) *to++ = from[(size_t)j * w.cols + i];
  }
}

static void open_forward(const dvbf_op *op, dvbf_run *run) {
  const layer_data *d = op->data;
  dvbf_value y = op->out[0];
  const dvbf_real *start = dv_at(run, bias_of(op));
  if (!start || !multiplies_at_once(d)) {
    dv_fill(dv_at(run, y), dv_count(y), start, (size_t)y.cols); /* no product can add the bias */
    start = NULL;
  }
  for (int i = 0; i < d->n_in; i++) {
    layer_input in = input_of(op, i);
    if (in.transposed.buffer >= 0 && !dv_is_unchanged(run, in.w)) transpose_layer(run, in.w, in.transposed);
    if (d->sequential[i]) continue;
    (in.x.rows < y.rows ? multiply_shared : multiply_rows)(run, y, start, in.x, in.w);
    start = NULL;
  }
}

static void open_backward(const dvbf_op *op, dvbf_run *run) {
  const layer_data *d = op->data;
  dvbf_value y = op->out[0];
  for (int i = 0; i < d->n_in; i++) {
    layer_input in = input_of(op, i);
    weight_gradient(run, y, in.x, in.w);
    if (!d->sequential[i]) input_gradient(run, y, in.x, in.w);
  }
  dvbf_real *db = dvbf_gradient_at(run, bias_of(op));
  if (db) run->k->column_sum(db, dvbf_gradient_at(run, y), dv_rows(y), y.cols);
}

/* A step lists its own step of everything, of its sequential inputs alone. */
static void step_forward(const dvbf_op *op, dvbf_run *run) {
  const layer_data *d = op->data;
  dvbf_value y = op->out[0];
  for (int i = 0; i < d->n_in; i++) {
    layer_input in = input_of(op, i);
    if (narrow(in.w))
      run->product->nt(dv_at(run, y), true, dv_at(run, in.x), dv_at(run, in.transposed), y.rows, in.x.cols,
                       y.cols);
    else
      multiply_rows(run, y, NULL, in.x, in.w);
  }
  run->k->activate(d->activation, dv_at(run, y), y.rows, y.cols);
}

static void step_backward(const dvbf_op *op, dvbf_run *run) {
  const layer_data *d = op->data;
  dvbf_value y = op->out[0];
  run->k->activate_backward(d->activation, dvbf_gradient_at(run, y), dv_at(run, y), y.rows, y.cols);
  for (int i = 0; i < d->n_in; i++) {
    layer_input in = input_of(op, i);
    dvbf_real *dx = dvbf_gradient_at(run, in.x);
    if (!dx) continue;
    if (in.transposed.buffer < 0)
      input_gradient(run, y, in.x, in.w);
    else
      run->product->nn(dx, NULL, dvbf_gradient_at(run, y), dv_at(run, in.transposed), y.rows, in.x.cols,
                       y.cols);
  }
}

static void whole_forward(const dvbf_op *op, dvbf_run *run) {
  const layer_data *d = op->data;
  open_forward(op, run);
  run->k->activate(d->activation, dv_at(run, op->out[0]), dv_rows(op->out[0]), op->out[0].cols);
}

static void whole_backward(const dvbf_op *op, dvbf_run *run) {
  const layer_data *d = op->data;
  run->k->activate_backward(d->activation, dvbf_gradient_at(run, op->out[0]), dv_at(run, op->out[0]),
                            dv_rows(op->out[0]), op->out[0].cols);
  open_backward(op, run);
}

/* ---- Export ---- */

/* y += x W */
static void emit_product(dvbf_code *code, dvbf_value y, layer_input in) {
  for (int t = 0, n = together(y, in.w); t < y.steps; t += n)
    dvbf_code_product(code, dvbf_place_of(dvbf_steps(y, t, n)), dvbf_place_of(dvbf_steps(in.x, t, n)),
                      dvbf_place_of(weight_at(in.w, t)), n, in.x.cols, y.cols);
}

/* y = exp(y - most) / sum of these, row by row */
static void emit_softmax(dvbf_code *code, dvbf_value y) {
  dvbf_value most = dv_emit_room(code, y.steps, 1), sum = dv_emit_room(code, y.steps, 1);
  dvbf_code_most(code, dvbf_place_of(most), y.steps, y.cols, dv_read(code, y));
  dv_emit(code, y,
          dvbf_code_unary(code, DVBF_EXP_OF, dv_minus(code, dv_read(code, y), dv_read_column(code, most))));
  dvbf_code_sum(code, dvbf_place_of(sum), y.steps, y.cols, dv_read(code, y));
  dv_emit(code, y, dv_over(code, dv_read(code, y), dv_read_column(code, sum)));
}

static void emit_activation(dvbf_code *code, dvbf_activation a, dvbf_value y) {
  if (a == DVBF_RELU)
    dv_emit(code, y, dvbf_code_binary(code, DVBF_LARGER, dv_read(code, y), dv_number(code, 0)));
  else if (a == DVBF_TANH)
    dv_emit(code, y, dvbf_code_unary(code, DVBF_TANH_OF, dv_read(code, y)));
  else if (a == DVBF_SIGMOID)
    dv_emit(code, y, dvbf_code_unary(code, DVBF_SIGMOID_OF, dv_read(code, y)));
  else if (a == DVBF_SOFTMAX)
    emit_softmax(code, y);
}

static void open_emit(const dvbf_op *op, dvbf_code *code) {
  const layer_data *d = op->data;
  dvbf_value y = op->out[0], bias = bias_of(op);
  dv_emit(code, y, bias.buffer < 0 ? dv_number(code, 0) : dv_read_row(code, bias));
  for (int i = 0; i < d->n_in; i++)
    if (!d->sequential[i]) emit_product(code, y, input_of(op, i));
}

static void step_emit(const dvbf_op *op, dvbf_code *code) {
  const layer_data *d = op->data;
  for (int i = 0; i < d->n_in; i++) emit_product(code, op->out[0], input_of(op, i));
  emit_activation(code, d->activation, op->out[0]);
}

static void whole_emit(const dvbf_op *op, dvbf_code *code) {
  const layer_data *d = op->data;
  open_emit(op, code);
  emit_activation(code, d->activation, op->out[0]);
}

static const dvbf_op_class open_class = {"layer-open", open_forward, open_backward, open_emit};
static const dvbf_op_class step_class = {"layer-step", step_forward, step_backward, step_emit};
static const dvbf_op_class whole_class = {"layer", whole_forward, whole_backward, whole_emit};

/* An input that all rows share adds the bias, which must exist, and has no gradient. */
static bool shares_well(const dvbf_graph *g, const dvbf_layer *l, int i) {
  return i == 0 && l->in[i].x.rows == 1 && !l->in[i].sequential && l->bias.buffer >= 0 &&
         !dv_graph_training(g);
}

static bool layer_fits(dvbf_graph *g, const dvbf_layer *l) {
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
    double one = 2.0 * dv_rows(l->in[i].x) * l->out.cols * l->in[i].x.cols;
    bool back = dv_graph_has_gradient(g, l->in[i].x);
    g->flops += one * (dv_graph_training(g) ? 2 + back : 1);
  }
}

/* Records the layer: all of it, or step t of its sequential inputs. */
static void record(dvbf_graph *g, const dvbf_op_class *type, const dvbf_layer *l, int t) {
  dvbf_value in[DVBF_MAX_IN], out = t < 0 ? l->out : dvbf_steps(l->out, t, 1);
  layer_data data = {.activation = l->activation};
  if (!layer_fits(g, l)) return;
  for (int i = 0; i < l->n_in; i++) {
    if (t >= 0 && !l->in[i].sequential) continue;
    dvbf_value *to = in + 3 * data.n_in;
    to[0] = t < 0 ? l->in[i].x : dvbf_steps(l->in[i].x, t, 1);
    to[1] = t < 0 ? l->in[i].w : weight_at(l->in[i].w, t);
    to[2] = t < 0 ? l->in[i].transposed : weight_at(l->in[i].transposed, t);
    data.sequential[data.n_in++] = l->in[i].sequential;
  }
  in[3 * data.n_in] = l->bias;
  dvbf_record(g, type, 3 * data.n_in + 1, in, 1, &out, &data, sizeof data);
}

/* A sequential weight is used once per step, and once more backward. It is transposed once per run, so that
 * each backward product reads it in rows (unless there are too few rows to matter), as does each forward
 * product of a narrow result. */
static void plan_transposes(dvbf_graph *g, dvbf_layer *l, bool steps) {
  for (int i = 0; i < l->n_in; i++) {
    dvbf_value w = l->in[i].w;
    if (!steps) l->in[i].sequential = false; /* all steps at once know no order */
    bool back = dv_graph_has_gradient(g, l->in[i].x) && w.rows > 16;
    bool wanted = l->in[i].sequential && (back || narrow(w));
    l->in[i].transposed = wanted ? dvbf_slab_shared_constant(g, w.steps, w.rows * w.cols) : DVBF_NONE;
    if (!dv_graph_training(g)) dvbf_keep(g, l->in[i].transposed); /* for runs with the same weights */
  }
}

static void begin(dvbf_graph *g, const dvbf_op_class *type, dvbf_layer *layer, bool steps) {
  if (!layer_fits(g, layer)) return;
  plan_transposes(g, layer, steps);
  count_flops(g, layer);
  record(g, type, layer, -1);
}

void dvbf_layer_open(dvbf_graph *g, dvbf_layer *layer) {
  begin(g, &open_class, layer, true);
}

void dvbf_layer_step(dvbf_graph *g, const dvbf_layer *layer, int t) {
  record(g, &step_class, layer, t);
}

void dvbf_layer_whole(dvbf_graph *g, dvbf_layer *layer) {
  begin(g, &whole_class, layer, false);
}
