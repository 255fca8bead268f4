/* Recurrent parts of models: bidirectional networks over K frames with one or two layers and fast dropout
 * (dv_record_birnn), gated recurrent units (dv_gru_open, dv_gru_step), and frames that a model reads back,
 * generated where they were not observed (dv_record_imputation). */
#include "math/random.h"
#include "model/networks.h"
#include "model/program.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Bidirectional networks ---- */

/* forward   h_t = f(x_t W + u_t U + h_{t-1} R + b)      from h_0     = 0
 *   backward  g_t = f(x_t W' + u_t U' + g_{t+1} R' + b')  from g_{K+1} = 0
 *
 * The second layer has (h_t, g_t) of the first in place of (x_t, u_t), so each of its states has seen all K
 * frames. This is how we read the paper's "Fast dropout BiRNN" with two hidden layers.
 *
 * With fast dropout (ops/fast_dropout.c) x and every state are dropped, independently at every step and for
 * every reader. u and biases are not: there are few controls and each is needed. A state is then a mean and
 * the variance of the dropped state. */

dv_birnn dv_birnn_on(dvbf_program *p, const dvbf_model *m, const char *name, int frames, bool control) {
  const dv_train_settings *s = m->settings;
  bool fast = s->initial == DV_INITIAL_FAST_DROPOUT;
  dv_image_encoder sight = dv_image_encoder_of(p, m, 0, frames);
  return (dv_birnn){.name = name,
                    .x = sight.value,
                    .u = control ? dvbf_steps(p->u, 0, frames) : DVBF_NONE,
                    .mask = dvbf_steps(dv_mask_input(p, m), 0, frames),
                    .scale_x = 1 / sqrt(sight.spread),
                    .scale_u = DV_SCALE_RECOGNITION,
                    .hidden = (int)s->hidden,
                    .layers = 1,
                    .activation = dv_hidden_activation(s),
                    .fast_dropout = fast,
                    .dropout = 0.1, /* the paper's rate */
                    .model = m};
}

/* A value and, with fast dropout, its variance when dropped; none if it is certain. */
typedef struct uncertain_value {
  dvbf_value mean, variance;
} uncertain_value;

typedef struct source {
  const char *name;
  uncertain_value from;
  double scale; /* of its first weights */
} source;

static dv_dense_in dense_in(source s) {
  return (dv_dense_in){s.name, s.from.mean, s.scale, false};
}

/* nu = sum_i variance_i W_i^2 for the inputs of `mean` whose variance is given. */
static dvbf_layer variance_layer(dvbf_graph *g, const dvbf_layer *mean, dvbf_value nu,
                                 const dvbf_value *variance) {
  dvbf_layer l = {.out = nu, .bias = DVBF_NONE, .activation = DVBF_LINEAR};
  for (int i = 0; i < mean->n_in; i++) {
    dvbf_value w = mean->in[i].w, squares;
    if (variance[i].buffer < 0 || w.buffer < 0) continue;
    if ((int64_t)w.rows * w.cols > INT32_MAX) {
      dvbf_refuse(
          g, "a layer of %d x %d weights is too large for fast dropout; hidden units or pixels must be fewer",
          w.rows, w.cols);
      continue;
    }
    squares = dvbf_slab_shared(g, 1, w.rows * w.cols);
    dv_record_square(g, squares, w, 1);
    dv_layer_see(&l, variance[i], dvbf_matrix(squares, 0, w.rows, w.cols), mean->in[i].sequential);
  }
  return l;
}

/* Room for the states of all steps and, at one end, for the zero state. */
static dvbf_value states_of(dvbf_graph *g, const dv_birnn *net, bool reverse) {
  dvbf_value states = dvbf_slab(g, net->x.steps + 1, net->hidden);
  dvbf_zero(g, dvbf_steps(states, reverse ? net->x.steps : 0, 1));
  return states;
}

static uncertain_value some(uncertain_value of, int first, int steps) {
  return (uncertain_value){dvbf_steps(of.mean, first, steps), dvbf_steps(of.variance, first, steps)};
}

/* One direction of one layer. */
typedef struct direction {
  const char *name; /* of its parameters */
  source in[3];
  bool reverse;
  uncertain_value h, last; /* the states of all steps, and those that each begins with */
} direction;

/* A block of its steps. The zero state, with which the first begins, adds nothing and gets no gradient. */
static void make_states(dvbf_graph *g, const dv_birnn *net, const direction *d, const dv_step_blocks *s) {
  bool fast = net->fast_dropout;
  int n = net->hidden;
  uncertain_value h = some(d->h, s->first, s->steps), last = some(d->last, s->first, s->steps);
  source in[3] = {d->in[0], d->in[1], d->in[2]};
  for (int i = 0; i < 3; i++) in[i].from = some(in[i].from, s->first, s->steps);
  dvbf_value mu = fast ? dvbf_slab(g, s->steps, n) : h.mean,
             nu = fast ? dvbf_slab(g, s->steps, n) : DVBF_NONE;
  dvbf_layer mean =
      dv_dense(g, d->name, mu, fast ? DVBF_LINEAR : net->activation, (dvbf_first){0},
               (dv_dense_in[4]){
                   dense_in(in[0]), {"h", last.mean, 0.7 / sqrt(n), true}, dense_in(in[1]), dense_in(in[2])});
  dvbf_layer variance = {0};
  dv_moments f = {h.mean, h.variance, mu, nu, net->activation, net->dropout};
  dvbf_layer_open(g, &mean);
  if (fast) {
    variance = variance_layer(
        g, &mean, nu, (dvbf_value[4]){in[0].from.variance, last.variance, in[1].from.variance, DVBF_NONE});
    dvbf_layer_open(g, &variance);
  }
  for (int i = 0; i < s->steps; i++) {
    int t = d->reverse ? s->steps - 1 - i : i;
    mean.in[1].sequential = variance.in[1].sequential = i > 0 || s->begun > 1;
    dvbf_layer_step(g, &mean, t);
    if (!fast) continue;
    dvbf_layer_step(g, &variance, t);
    dv_record_moments(g, &f, t);
  }
}

static uncertain_value room_of(dvbf_graph *g, const dv_birnn *net, bool reverse) {
  dvbf_value mean = states_of(g, net, reverse);
  return (uncertain_value){mean, net->fast_dropout ? states_of(g, net, reverse) : DVBF_NONE};
}

/* All of its steps, into that memory. Returns their states, the only values of blocks without fast
 * dropout. */
static uncertain_value record_direction(dvbf_graph *g, const dv_birnn *net, const char *name,
                                        const source in[3], bool reverse, uncertain_value all) {
  int frames = net->x.steps;
  dv_step_blocks blocks = dv_blocks_of(g, net->model, frames);
  blocks.reverse = reverse;
  blocks.segments = blocks.segments && net->fast_dropout;
  direction d = {.name = name,
                 .in = {in[0], in[1], in[2]},
                 .reverse = reverse,
                 .h = some(all, reverse ? 0 : 1, frames),
                 .last = some(all, reverse ? 1 : 0, frames)};
  while (dv_next_block(g, &blocks)) make_states(g, net, &d, &blocks);
  return d.h;
}

static dv_birnn_states both(dvbf_graph *g, const dv_birnn *net, const char *number, const source in[3]) {
  char forward[64], backward[64];
  snprintf(forward, sizeof forward, "%s.forward%s", net->name, number);
  snprintf(backward, sizeof backward, "%s.backward%s", net->name, number);
  uncertain_value h = record_direction(g, net, forward, in, false, room_of(g, net, false));
  uncertain_value b = record_direction(g, net, backward, in, true, room_of(g, net, true));
  return (dv_birnn_states){h.mean, b.mean, h.variance, b.variance};
}

/* Variance of x times dropout; x itself is known. */
static dvbf_value dropped_x(dvbf_graph *g, const dv_birnn *net) {
  int n = net->x.cols, frames = net->x.steps;
  dvbf_value variance =
      dv_graph_has_gradient(g, net->x) ? dvbf_slab(g, frames, n) : dvbf_slab_constant(g, frames, n);
  dv_record_square(g, variance, net->x, net->dropout / (1 - net->dropout));
  return variance;
}

dv_birnn_states dv_record_birnn(dvbf_graph *g, const dv_birnn *net) {
  double scale = 1 / sqrt(2.0 * net->hidden);
  source x = {"x", {net->x, net->fast_dropout ? dropped_x(g, net) : DVBF_NONE}, net->scale_x};
  dv_birnn_states s =
      both(g, net, "",
           (source[3]){
               x, {"u", {net->u, DVBF_NONE}, net->scale_u}, {"mask", {net->mask, DVBF_NONE}, net->scale_u}});
  if (net->layers < 2) return s;
  return both(g, net, "-2",
              (source[3]){{"forward", {s.forward, s.forward_variance}, scale},
                          {"backward", {s.backward, s.backward_variance}, scale},
                          {NULL, {DVBF_NONE, DVBF_NONE}, 0}});
}

dvbf_value dv_record_backward(dvbf_graph *g, const dv_birnn *net) {
  char name[64];
  snprintf(name, sizeof name, "%s.backward", net->name);
  uncertain_value all = room_of(g, net, true);
  record_direction(g, net, name,
                   (source[3]){{"x", {net->x, DVBF_NONE}, net->scale_x},
                               {"u", {net->u, DVBF_NONE}, net->scale_u},
                               {"mask", {net->mask, DVBF_NONE}, net->scale_u}},
                   true, all);
  return all.mean;
}

/* a + b */
static dvbf_value sum(dvbf_graph *g, dvbf_value a, dvbf_value b) {
  dvbf_value out = dvbf_slab(g, a.steps, a.cols);
  dvbf_add(g, out, a, b);
  return out;
}

void dv_record_birnn_output(dvbf_graph *g, const dv_birnn *net, const dv_birnn_states *s, dvbf_value head) {
  char name[64];
  snprintf(name, sizeof name, "%s.output", net->name);
  if (!net->fast_dropout) {
    double scale = 1 / sqrt(s->forward.cols);
    dvbf_layer output = dv_dense(
        g, name, head, DVBF_LINEAR, (dvbf_first){0},
        (dv_dense_in[4]){{"forward", s->forward, scale, false}, {"backward", s->backward, scale, false}});
    dvbf_layer_whole(g, &output);
    return;
  }
  dvbf_value mu = dvbf_slab(g, head.steps, head.cols / 2), nu = dvbf_slab(g, head.steps, head.cols / 2);
  dvbf_value h = sum(g, s->forward, s->backward),
             variance = sum(g, s->forward_variance, s->backward_variance);
  dvbf_layer mean = dv_dense(g, name, mu, DVBF_LINEAR, (dvbf_first){0},
                             (dv_dense_in[4]){{"h", h, 1 / sqrt(net->hidden), false}});
  dvbf_layer spread = variance_layer(g, &mean, nu, &variance);
  dvbf_layer_whole(g, &mean);
  dvbf_layer_whole(g, &spread);
  dv_record_moments_head(g, head, mu, nu);
}

/* ---- Gated recurrent units ---- */

static dvbf_layer layer_of(dvbf_graph *g, const dvbf_model *m, const dv_gru *u, const char *part,
                           dvbf_value out, dvbf_value h, dvbf_activation activation) {
  char name[40];
  snprintf(name, sizeof name, "%s.%s", u->name, part);
  return dv_dense(g, name, out, activation, (dvbf_first){0},
                  (dv_dense_in[4]){{"x", u->x, 1 / sqrt(m->x_spread), u->x_step},
                                   {"u", u->u, DV_SCALE_RECOGNITION, false},
                                   {"z", u->z, DV_SCALE_RECOGNITION, u->z_step},
                                   {"h", h, 1 / sqrt((double)h.cols), true}});
}

void dv_gru_open(dvbf_graph *g, const dvbf_model *m, dv_gru *u) {
  int steps = u->h.steps - 1, n = u->h.cols;
  dvbf_value before = dvbf_steps(u->h, 0, steps);
  u->reset = dvbf_slab(g, steps, n);
  u->gates = layer_of(g, m, u, "gates", dvbf_slab(g, steps, 2 * n), before, DVBF_SIGMOID);
  u->candidate = layer_of(g, m, u, "candidate", dvbf_slab(g, steps, n), u->reset, DVBF_TANH);
  dvbf_layer_open(g, &u->gates);
  dvbf_layer_open(g, &u->candidate);
}

void dv_gru_step(dvbf_graph *g, const dv_gru *u, int t) {
  dvbf_value gates = dvbf_steps(u->gates.out, t, 1), h = dvbf_steps(u->h, t, 1);
  dvbf_layer_step(g, &u->gates, t);
  dv_record_reset(g, dvbf_steps(u->reset, t, 1), gates, h);
  dvbf_layer_step(g, &u->candidate, t);
  dv_record_blend(g, dvbf_steps(u->h, t + 1, 1), gates, h, dvbf_steps(u->candidate.out, t, 1));
}

/* ---- Imputed frames ---- */

/* A value that was not observed is drawn from p(x_t | z_t), as the model would generate it, or its mean in
 * programs with gradients and in runs without noise.
 *
 *   out = x where seen, else mean(output) or a draw      d output += mean'(output) d out where not seen */

typedef struct feedback_data {
  const dvbf_model *model;
  int t;      /* step of the program, which keys the draw */
  bool draws; /* as far as the run has noise */
} feedback_data;

/* in: output, shape[0], shape[1], x, seen; out: the frame, work. Without x nothing is seen. */
enum { OUTPUT, SHAPE, FEEDBACK_X = 3, FEEDBACK_SEEN };

static bool is_observed(const dvbf_run *run, const dvbf_op *op, int r, int i) {
  dvbf_value seen = op->in[FEEDBACK_SEEN];
  const dvbf_real *mask = dv_at(run, seen);
  return mask && mask[(size_t)r * (size_t)seen.cols + (size_t)(seen.cols > 1 ? i : 0)] > 0;
}

/* x as the density draws it, as the model sees it: work = (mean, x), floats in units of the data. */
static void draw_feedback(const dvbf_op *op, dvbf_run *run, int r, const dvbf_real *output, dvbf_real *to) {
  const feedback_data *d = op->data;
  const dvbf_model *m = d->model;
  void *work = dv_at(run, op->out[1]);
  float *mean = work, *x = mean + m->n_x;
  dvbf_program program = {.output = op->in[OUTPUT], .shape = {op->in[SHAPE], op->in[SHAPE + 1]}};
  const dv_conditions *c = run->conditions;
  dv_density_frame frame = {.model = m,
                            .program = &program,
                            .run = run,
                            .row = r,
                            .mean = mean,
                            .seed = c->seed ^ ((uint64_t)DV_STREAM_EMISSION << 32),
                            .sequence = run->sequence[r],
                            .sample = c->update,
                            .t = (uint32_t)d->t};
  dv_model_unscale(m, output, mean);
  m->density->draw(&frame, x);
  for (int i = 0; i < m->n_x; i++)
    if (!is_observed(run, op, r, i)) to[i] = (dvbf_real)((x[i] - m->x.shift[i]) * m->x.scale[i]);
}

static void feedback_forward(const dvbf_op *op, dvbf_run *run) {
  const feedback_data *d = op->data;
  const dvbf_model *m = d->model;
  dvbf_value out = op->out[0];
  const dvbf_real *output = dv_at(run, op->in[OUTPUT]), *x = dv_at(run, op->in[FEEDBACK_X]);
  dvbf_real *to = dv_at(run, out);
  for (int r = 0; r < out.rows; r++, to += out.cols, output += out.cols) {
    const dvbf_real *row = x ? x + (op->in[FEEDBACK_X].rows > 1 ? (size_t)r * (size_t)out.cols : 0) : NULL;
    bool whole = true;
    for (int i = 0; i < out.cols; i++) {
      bool seen = row && is_observed(run, op, r, i);
      to[i] = seen ? row[i] : (dvbf_real)dv_density_mean(m->density, (double)output[i]);
      whole &= seen;
    }
    if (d->draws && !run->conditions->noise_free && !whole) draw_feedback(op, run, r, output, to);
  }
}

static void feedback_backward(const dvbf_op *op, dvbf_run *run) {
  const feedback_data *d = op->data;
  dvbf_value out = op->out[0];
  const dvbf_real *output = dv_at(run, op->in[OUTPUT]), *g = dvbf_gradient_at(run, out);
  dvbf_real *back = dvbf_gradient_at(run, op->in[OUTPUT]);
  for (int r = 0; r < out.rows; r++, output += out.cols, g += out.cols, back += out.cols)
    for (int i = 0; i < out.cols; i++)
      if (!is_observed(run, op, r, i))
        back[i] += dv_mean_slope(d->model->density->mean, (double)output[i]) * g[i];
}

static const dvbf_op_class feedback_class = {"feedback", feedback_forward, feedback_backward, NULL};

void dv_record_imputation(dvbf_program *p, const dvbf_model *m, dvbf_value out, int t, bool unseen) {
  dvbf_graph *g = p->graph;
  dvbf_program any = *p;
  if (p->one_x) { /* ln p, which nobody reads here, is of one frame for each row */
    any.x = dvbf_slab_constant(g, p->steps, m->n_x);
    dvbf_zero(g, any.x);
  }
  dvbf_program one = dv_record_emission_of(&any, m, t, 1, dvbf_steps(p->z, t, 1));
  feedback_data data = {m, t, !dv_graph_training(g)};
  dvbf_value none = DVBF_NONE, seen = dvbf_steps(p->gaps ? p->seen : p->mask, t, 1);
  dvbf_value in[] = {one.output, one.shape[0], one.shape[1], unseen ? none : dvbf_steps(p->x, t, 1),
                     unseen ? none : seen};
  dvbf_value to[] = {out, dvbf_slab_shared_constant(g, 1, 2 * m->n_x)};
  dvbf_record(g, &feedback_class, 5, in, 2, to, &data, sizeof data);
}

bool dv_imputation_of_step(const dvbf_program *p) {
  return !dv_graph_training(p->graph) || dv_imputation_needed(p);
}

bool dv_imputation_needed(const dvbf_program *p) {
  return p->gaps || p->observe < p->steps;
}
