/* Bidirectional recurrent networks over K frames, one layer or two:
 *
 *   forward   h_t = f(x_t W + u_t U + h_{t-1} R + b)      from h_0     = 0
 *   backward  g_t = f(x_t W' + u_t U' + g_{t+1} R' + b')  from g_{K+1} = 0
 *
 * The second layer has the same form with (h_t, g_t) of the first in the place of (x_t, u_t), so that each
 * of its states has seen all K frames.
 *
 * With fast dropout (op/moments.c) x and every state are dropped, anew at every step and by everyone
 * who uses them: either direction, the next step, the second layer, the output. u and biases are not, because
 * there are few controls and each is needed. A state is then a mean and the variance of the dropped state. */
#include "model/blocks.h"
#include "model/picture.h"

#include <math.h>
#include <stdio.h>

dv_birnn dv_birnn_on(dvbf_program *p, const dvbf_model *m, const char *name, int frames, bool control) {
  const dv_train_settings *s = m->settings;
  bool fast = s->initial == DV_INITIAL_FAST_DROPOUT;
  dv_sight sight = dv_sight_of(p, m, 0, frames);
  return (dv_birnn){.name = name,
                    .x = sight.value,
                    .u = control && m->n_u ? dvbf_steps(p->u, 0, frames) : DVBF_NONE,
                    .mask = dvbf_steps(dv_mask_input(p, m), 0, frames),
                    .scale_x = 1 / sqrt(sight.spread),
                    .scale_u = s->scale_recognition,
                    .hidden = (int)s->hidden,
                    .layers = 1,
                    .activation = dv_hidden_activation(s),
                    .fast_dropout = fast,
                    .propagated = fast && s->initial_variance == DV_VARIANCE_PROPAGATED,
                    .dropout = s->dropout,
                    .model = m};
}

/* A value and, with fast dropout, its variance when dropped; none where it is certain. */
typedef struct moments {
  dvbf_value mean, variance;
} moments;

typedef struct source {
  const char *name;
  moments from;
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
    l.in[l.n_in].x = variance[i];
    l.in[l.n_in].w = dvbf_matrix(squares, 0, w.rows, w.cols);
    l.in[l.n_in++].sequential = mean->in[i].sequential;
  }
  return l;
}

/* Room for the states of all steps and, at one end, for the zero state. */
static dvbf_value states_of(dvbf_graph *g, const dv_birnn *net, bool reverse) {
  dvbf_value states = dvbf_slab(g, net->x.steps + 1, net->hidden);
  dvbf_zero(g, dvbf_steps(states, reverse ? net->x.steps : 0, 1));
  return states;
}

static moments some(moments of, int first, int steps) {
  return (moments){dvbf_steps(of.mean, first, steps), dvbf_steps(of.variance, first, steps)};
}

/* One direction of one layer. */
typedef struct direction {
  const char *name; /* of its parameters */
  source in[3];
  bool reverse;
  moments h, last; /* the states of all steps, and those that each begins with */
} direction;

/* A block of its steps. From the zero state, with which the first begins, nothing comes, and nothing need go
 * back to it. */
static void make_states(dvbf_graph *g, const dv_birnn *net, const direction *d, dv_stretch s, bool begins) {
  bool fast = net->fast_dropout;
  int n = net->hidden;
  moments h = some(d->h, s.first, s.steps), last = some(d->last, s.first, s.steps);
  source in[3] = {d->in[0], d->in[1], d->in[2]};
  for (int i = 0; i < 3; i++) in[i].from = some(in[i].from, s.first, s.steps);
  dvbf_value mu = fast ? dvbf_slab(g, s.steps, n) : h.mean, nu = fast ? dvbf_slab(g, s.steps, n) : DVBF_NONE;
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
  for (int i = 0; i < s.steps; i++) {
    int t = d->reverse ? s.steps - 1 - i : i;
    mean.in[1].sequential = variance.in[1].sequential = i > 0 || !begins;
    dvbf_layer_step(g, &mean, t);
    if (!fast) continue;
    dvbf_layer_step(g, &variance, t);
    dv_record_moments(g, &f, t);
  }
}

static moments room_of(dvbf_graph *g, const dv_birnn *net, bool reverse) {
  dvbf_value mean = states_of(g, net, reverse);
  return (moments){mean, net->fast_dropout ? states_of(g, net, reverse) : DVBF_NONE};
}

/* All of its steps, into that room. Returns their states. Without fast dropout blocks have no values but
 * these. */
static moments record_direction(dvbf_graph *g, const dv_birnn *net, const char *name, const source in[3],
                                bool reverse, moments all) {
  int frames = net->x.steps;
  dv_blocks blocks = dv_blocks_of(g, net->model, frames);
  blocks.segments = blocks.segments && net->fast_dropout;
  direction d = {.name = name,
                 .in = {in[0], in[1], in[2]},
                 .reverse = reverse,
                 .h = some(all, reverse ? 0 : 1, frames),
                 .last = some(all, reverse ? 1 : 0, frames)};
  for (int i = 0; i < blocks.count; i++) {
    dv_block_begin(g, &blocks);
    make_states(g, net, &d, dv_block_at(&blocks, reverse ? blocks.count - 1 - i : i), i == 0);
    dv_block_end(g, &blocks);
  }
  return d.h;
}

static dv_birnn_states both(dvbf_graph *g, const dv_birnn *net, const char *number, const source in[3]) {
  char forward[64], backward[64];
  snprintf(forward, sizeof forward, "%s.forward%s", net->name, number);
  snprintf(backward, sizeof backward, "%s.backward%s", net->name, number);
  moments h = record_direction(g, net, forward, in, false, room_of(g, net, false));
  moments b = record_direction(g, net, backward, in, true, room_of(g, net, true));
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
  moments all = room_of(g, net, true);
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

/* head = h_t W + g_t W' + b */
static void affine_output(dvbf_graph *g, const char *name, const dv_birnn_states *s, dvbf_value head) {
  double scale = 1 / sqrt(s->forward.cols);
  dvbf_layer output = dv_dense(
      g, name, head, DVBF_LINEAR, (dvbf_first){0},
      (dv_dense_in[4]){{"forward", s->forward, scale, false}, {"backward", s->backward, scale, false}});
  dvbf_layer_whole(g, &output);
}

void dv_record_birnn_output(dvbf_graph *g, const dv_birnn *net, const dv_birnn_states *s, dvbf_value head) {
  char name[64];
  snprintf(name, sizeof name, "%s.output", net->name);
  if (!net->propagated) {
    affine_output(g, name, s, head);
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
