/* Networks of a model recorded as layers: dense layers and hidden stacks, DVBF's initial network and initial
 * transition (dv_record_initial), the backward network over later frames (dv_record_backward_network), and
 * the predicted state and innovation that recognition may see (dv_expected_*). */
#include "model/networks.h"

#include "ops/ops.h"

#include <math.h>
#include <stdio.h>

dvbf_layer dv_dense(dvbf_graph *g, const char *layer, dvbf_value out, dvbf_activation activation,
                    dvbf_first bias, const dv_dense_in in[4]) {
  char name[64];
  dvbf_layer l = {.out = out, .activation = activation};
  for (int i = 0; i < 4 && in[i].name; i++) {
    if (in[i].x.buffer < 0) continue;
    snprintf(name, sizeof name, "%s.%s", layer, in[i].name);
    dv_layer_see(&l, in[i].x,
                 dvbf_parameter(g, name, in[i].x.cols, out.cols, (dvbf_first){.scale = in[i].scale}),
                 in[i].sequential);
  }
  snprintf(name, sizeof name, "%s.bias", layer);
  l.bias = dvbf_parameter(g, name, 1, out.cols, bias);
  return l;
}

dvbf_drawn dv_drawn_of(dvbf_program *p, int first, dvbf_value value, dvbf_value head) {
  dvbf_drawn d = {.value = value, .head = head, .prior = DVBF_NONE};
  d.noise = dvbf_slab_constant(p->graph, value.steps, value.cols);
  d.use = dvbf_steps(p->mask, first, value.steps);
  dvbf_noise(p->graph, d.noise, false);
  return d;
}

dvbf_drawn dv_drawn_steps(const dvbf_drawn *all, int first, int steps) {
  return (dvbf_drawn){.value = dvbf_steps(all->value, first, steps),
                      .head = dvbf_steps(all->head, first, steps),
                      .noise = dvbf_steps(all->noise, first, steps),
                      .use = dvbf_steps(all->use, first, steps),
                      .prior = dvbf_steps(all->prior, first, steps)};
}

dvbf_innovation dv_innovation_of(const dvbf_drawn *drawn, dvbf_value kl) {
  return (dvbf_innovation){.w = drawn->value,
                           .kl = kl,
                           .head = drawn->head,
                           .noise = drawn->noise,
                           .use = drawn->use,
                           .low = DV_LOG_SIGMA_MIN,
                           .high = DV_LOG_SIGMA_MAX};
}

dvbf_state dv_state_of(const dvbf_drawn *drawn, dvbf_value kl) {
  return (dvbf_state){.z = drawn->value,
                      .kl = kl,
                      .q = drawn->head,
                      .p = drawn->prior,
                      .noise = drawn->noise,
                      .use = drawn->use,
                      .seen = drawn->head.buffer < 0 ? 0 : drawn->head.steps,
                      .low = DV_LOG_SIGMA_MIN,
                      .high = DV_LOG_SIGMA_MAX};
}

dvbf_activation dv_hidden_activation(const dv_train_settings *s) {
  static const dvbf_activation of[] = {
      [DV_HIDDEN_RELU] = DVBF_RELU, [DV_HIDDEN_TANH] = DVBF_TANH, [DV_HIDDEN_SIGMOID] = DVBF_SIGMOID};
  return of[s->activation];
}

int dv_one_frame(const dvbf_model_class *self, const dvbf_settings *settings) {
  return 1;
}

int dv_latent(const dvbf_model_class *self, const dvbf_settings *settings) {
  return (int)dv_settings_train(settings, NULL)->latent;
}

dvbf_value dv_linear_path(const dvbf_model *m, dvbf_value value) {
  return m->settings->linear_paths ? value : DVBF_NONE;
}

dv_stack dv_hidden(dvbf_graph *g, const dv_train_settings *s, const char *name, int steps, dvbf_first bias,
                   const dv_dense_in in[4]) {
  dv_stack stack = {.count = (int)s->layers};
  bool sequential = false;
  for (int i = 0; i < 4 && in[i].name; i++) sequential |= in[i].sequential;
  for (int i = 0; i < stack.count; i++) {
    char layer[40];
    dv_dense_in below[4] = {{0}};
    if (i) below[0] = (dv_dense_in){"h", stack.layer[i - 1].out, 1 / sqrt((double)s->hidden), sequential};
    snprintf(layer, sizeof layer, i ? "%s.hidden-%d" : "%s.hidden", name, i + 1);
    stack.layer[i] = dv_dense(g, layer, dvbf_slab(g, steps, (int)s->hidden), dv_hidden_activation(s), bias,
                              i ? below : in);
  }
  return stack;
}

void dv_stack_add(dv_stack *stack, dvbf_layer layer) {
  stack->layer[stack->count++] = layer;
}

void dv_stack_output(dvbf_graph *g, dv_stack *stack, const char *name, dvbf_value out, dvbf_first bias,
                     double scale) {
  dvbf_value h = dv_stack_top(stack);
  dv_stack_add(stack, dv_dense(g, name, out, DVBF_LINEAR, bias,
                               (dv_dense_in[4]){{"h", h, scale / sqrt((double)h.cols), true}}));
}

dvbf_value dv_stack_top(const dv_stack *stack) {
  return stack->layer[stack->count - 1].out;
}

void dv_stack_whole(dvbf_graph *g, dv_stack *stack) {
  for (int i = 0; i < stack->count; i++) dvbf_layer_whole(g, &stack->layer[i]);
}

void dv_stack_open(dvbf_graph *g, dv_stack *stack) {
  for (int i = 0; i < stack->count; i++) dvbf_layer_open(g, &stack->layer[i]);
}

void dv_stack_step(dvbf_graph *g, const dv_stack *stack, int t) {
  for (int i = 0; i < stack->count; i++) dvbf_layer_step(g, &stack->layer[i], t);
}

/* ---- Initial network ---- */

/* The initial network q(w_1 | x_1 .. x_K) = N(mu_1, sigma_1^2) and the initial transition z_1(w_1). */

/* All frames of a value side by side; none if there is none. */
static dvbf_value beside(dvbf_graph *g, dvbf_value frames) {
  if (frames.buffer < 0) return frames;
  int cols = frames.steps * frames.cols;
  dvbf_value out = dv_graph_has_gradient(g, frames) ? dvbf_slab(g, 1, cols) : dvbf_slab_constant(g, 1, cols);
  dvbf_side_by_side(g, out, frames);
  return out;
}

/* head = (mu_1, ln sigma_1), affine in f(x_1 W_1 + .. + x_K W_K + b). */
static void mlp(dvbf_program *p, const dvbf_model *m, int frames, dvbf_value head) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  dvbf_value hidden = dvbf_slab(g, 1, (int)s->hidden);
  dv_image_encoder sight = dv_image_encoder_of(p, m, 0, frames);
  int width = sight.value.cols;
  if ((int64_t)frames * (width > m->n_u ? width : m->n_u) > INT32_MAX) {
    dvbf_refuse(g, "initial-frames = %d: too many for frames of %d numbers; initial = birnn takes any number",
                frames, width);
    return;
  }
  dvbf_value x = beside(g, sight.value),
             u = s->initial_control ? beside(g, dvbf_steps(p->u, 0, frames)) : DVBF_NONE,
             mask = beside(g, dvbf_steps(dv_mask_input(p, m), 0, frames));
  dvbf_layer layer = dv_dense(g, "initial.hidden", hidden, dv_hidden_activation(s), (dvbf_first){0},
                              (dv_dense_in[4]){{sight.name, x, 1 / sqrt(sight.spread * frames), false},
                                               {"u", u, DV_SCALE_RECOGNITION / sqrt(frames), false},
                                               {"mask", mask, DV_SCALE_RECOGNITION / sqrt(frames), false}});
  dvbf_layer output = dv_dense(g, "initial.output", head, DVBF_LINEAR, (dvbf_first){0},
                               (dv_dense_in[4]){{"h", hidden, 1 / sqrt((double)s->hidden), false},
                                                {"x", dv_linear_path(m, x), 0, false},
                                                {"u", dv_linear_path(m, u), 0, false}});
  dvbf_layer_whole(g, &layer);
  dvbf_layer_whole(g, &output);
}

/* head = (mu_1, ln sigma_1) from the forward state of the last frame and the backward state of the first,
 * which have seen all frames. w_1 has the dimension of z. */
static void birnn(dvbf_program *p, const dvbf_model *m, int frames, dvbf_value head) {
  dv_birnn net = dv_birnn_on(p, m, "initial", frames, m->settings->initial_control);
  dv_birnn_states all = dv_record_birnn(p->graph, &net);
  dv_birnn_states last = {dvbf_steps(all.forward, frames - 1, 1), dvbf_steps(all.backward, 0, 1),
                          dvbf_steps(all.forward_variance, frames - 1, 1),
                          dvbf_steps(all.backward_variance, 0, 1)};
  dv_record_birnn_output(p->graph, &net, &last, head);
}

static int frames_seen(dvbf_program *p, const dvbf_model *m) {
  int observe = p->observe;
  int64_t asked = m->settings->initial_frames;
  bool fixed = m->settings->initial == DV_INITIAL_MLP && asked > 0;
  if (fixed && asked > observe)
    dvbf_refuse(p->graph,
                "the initial network needs %d frames (initial-frames) but only %d are observed; observe "
                "more, or train with fewer",
                (int)asked, observe);
  return asked > 0 && asked < observe ? (int)asked : observe;
}

void dv_record_initial(dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  int n = (int)s->hidden;
  dvbf_value noise = dvbf_slab_constant(g, 1, m->n_z);
  dvbf_value w = dvbf_slab(g, 1, m->n_z), hidden = dvbf_slab(g, 1, n);
  dvbf_value head = DVBF_NONE;
  if (p->observe) {
    int frames = frames_seen(p, m);
    head = dvbf_slab(g, 1, 2 * m->n_z);
    (s->initial == DV_INITIAL_MLP ? mlp : birnn)(p, m, frames, head);
  }
  p->first = (dvbf_drawn){.value = w, .head = head, .noise = noise, .use = DVBF_NONE, .prior = DVBF_NONE};
  dvbf_noise(g, noise, false);
  dvbf_innovation first = dv_innovation_of(&p->first, dvbf_steps(p->kl, 0, 1));
  dvbf_innovation_step(g, &first, -1);

  dvbf_layer inner = dv_dense(g, "initial-transition.hidden", hidden, dv_hidden_activation(s),
                              (dvbf_first){.scale = 0.5}, (dv_dense_in[4]){{"w", w, 1, false}});
  dvbf_layer outer =
      dv_dense(g, "initial-transition.output", dvbf_steps(p->z, 0, 1), DVBF_LINEAR, (dvbf_first){0},
               (dv_dense_in[4]){{"h", hidden, 1 / sqrt(n), false}, {"w", dv_linear_path(m, w), 0, false}});
  dvbf_layer_whole(g, &inner);
  dvbf_layer_whole(g, &outer);
  dvbf_saturate(g, dvbf_steps(p->z, 0, 1), dvbf_state_range(g, m));
}

/* ---- Later frames ---- */

/* With recognition = smoothing a network reads the later frames backwards,
 *
 *   b_t = f(x_t W + u_{t-1} U + b_{t+1} R + c)      from b_{K+1} = 0 behind the last frame that may be seen
 *
 * and q(w_t | z_t, x_{t+1}, .., x_K, u) sees b_{t+2}. A filter sees 0 instead; so that it is trained for
 * this, training leaves b out for a share of the sequences (look-ahead-dropout). */

dvbf_value dv_record_backward_network(dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  int steps = p->steps - 1, frames = (p->observe < p->steps ? p->observe : p->steps) - 1;
  dvbf_value out = dvbf_slab(g, steps, (int)m->settings->hidden);
  if (frames < 1) {
    dvbf_zero(g, out);
    return out;
  }
  dv_birnn net = dv_birnn_on(p, m, "recognition", frames + 1, false);
  net.x = dvbf_steps(net.x, 1, frames);
  net.mask = dvbf_steps(net.mask, 1, frames);
  net.u = dvbf_steps(p->u, 0, frames);
  net.fast_dropout = false; /* that is the initial network's */
  /* b of the second frame exists only so that two frames, too, have all parameters. */
  dvbf_value b = dv_record_backward(g, &net);
  dv_record_row_dropout(g, dvbf_steps(out, 0, frames), dvbf_steps(b, 1, frames), DVBF_LOOK_AHEAD_DROPOUT);
  if (frames < steps) dvbf_zero(g, dvbf_steps(out, frames, steps - frames));
  return out;
}

/* ---- Prediction and innovation ---- */

/* Recognition may also see z as f(z_t, u_t, w = 0) predicts it or, instead of the frame, the innovation e_t =
 * x_{t+1} - mean of the emission there. The gain of a Kalman filter is then a linear function, w = K e. */

/* The emission there, and e. */
static void open_innovation(dvbf_program *p, const dvbf_model *m, dv_expected *e) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  int steps = e->values.steps;
  dvbf_value u = dv_emission_control(p, m, 1, steps);
  if (dv_convolves(m))
    dvbf_refuse(g, "recognition-input = innovation needs network = dense; recognition-input = frame works "
                   "with any network");
  if (s->emission_sees && s->emission_sees < m->n_z)
    dvbf_refuse(g,
                "emission-sees = %d: recognition-input = innovation needs all of z, emission-sees = 0; "
                "recognition-input = prediction works with any value",
                (int)s->emission_sees);
  if (m->density->joint)
    dvbf_refuse(g, "recognition-input = innovation needs a likelihood of single values, not of groups; "
                   "recognition-input = frame works with any likelihood");
  e->e = dvbf_slab(g, steps, m->n_x);
  e->emission = dv_hidden(
      g, s, "emission", steps, (dvbf_first){.scale = 0.5},
      (dv_dense_in[4]){{"z", e->values.next, s->scale_emission, true}, {"u", u, s->scale_emission, false}});
  dv_stack_add(&e->emission, dv_output_layer(g, m, dvbf_slab(g, steps, m->n_x), dv_stack_top(&e->emission),
                                             e->values.next, u));
  dv_stack_open(g, &e->emission);
}

/* A step of the prediction needs z of that step: all layers are sequential. */
dv_expected dv_expected_open(dvbf_program *p, const dvbf_model *m, const dvbf_transition_values *x) {
  dvbf_graph *g = p->graph;
  dv_expected e = {.values = *x, .e = DVBF_NONE, .range = dvbf_state_range(g, m)};
  e.values.next = p->predicted;
  e.values.w = dvbf_slab_constant(g, x->steps, m->n_w);
  dvbf_zero(g, e.values.w);
  e.memory = m->transition->open(m->transition, g, m->settings_object, &e.values);
  if (m->settings->recognition_input == DV_INPUT_INNOVATION) open_innovation(p, m, &e);
  return e;
}

void dv_expected_step(dvbf_program *p, const dvbf_model *m, const dv_expected *e, int t) {
  dvbf_graph *g = p->graph;
  m->transition->step(m->transition, g, &e->values, e->memory, t);
  dvbf_saturate(g, dvbf_steps(e->values.next, t, 1), e->range);
  if (e->e.buffer < 0) return;
  dv_stack_step(g, &e->emission, t);
  dv_record_residual(g, dvbf_steps(e->e, t, 1), dvbf_steps(p->x, t + 1, 1),
                     dvbf_steps(dv_stack_top(&e->emission), t, 1), dvbf_steps(p->seen, t + 1, 1),
                     m->density->mean, m->density->emit_mean);
}
