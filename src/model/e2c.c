/* Embed to control (Watter et al. 2015), with stacked frames:
 *
 *   q(z_t | x_{t-1}, x_t) = N(mu, sigma^2)                                    encoder
 *   z'_{t+1} = A z_t + B u_t + o,  A = I + v r',  v, r, B, o functions of z_t    transition, without noise
 *   q'(z_{t+1}) = N(A mu_t + B u_t + o, A diag(sigma_t^2) A')                 where it takes q(z_t)
 *
 *   objective = sum_t ln p(x_t | z_t) + ln p(x_t | z'_t) - KL(q(z_t) || N(0, I))
 *                     - lambda KL(q'(z_t) || q(z_t | x_{t-1}, x_t))
 *
 * That is no bound on ln p(x): each frame counts twice, and the last term is weighted. What is reported as
 * bound is that of an autoencoder, ln p(x_t | z_t) - KL(q(z_t) || N(0, I)). Where a frame is not seen, z_t =
 * z'_t. */
#include "model/blocks.h"
#include "model/feedback.h"

#include <math.h>

/* Steps first .. first + steps - 1. */
typedef struct part {
  int first, steps;
  dvbf_value before; /* [steps] the frames before; none at the first */
  bool before_step;
  dv_stack hidden;
  dvbf_layer output;
  dvbf_drawn drawn;
  dvbf_innovation innovation;
} part;

/* An input that all rows share must be the first of a layer. */
static void open_encoder(dvbf_program *p, const dvbf_model *m, part *a) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  double scale = 1 / sqrt(m->x_spread);
  a->hidden = dv_hidden(g, s, "encoder", a->steps, (dvbf_first){0},
                        (dv_dense_in[4]){{"x", dvbf_steps(p->x, a->first, a->steps), scale, false},
                                         {"before", a->before, scale, a->before_step},
                                         {"mask", dvbf_steps(dv_mask_input(p, m), a->first, a->steps),
                                          s->scale_recognition, false}});
  a->output = dv_dense(g, "encoder.output", dvbf_slab(g, a->steps, 2 * m->n_z), DVBF_LINEAR, (dvbf_first){0},
                       (dv_dense_in[4]){{"h", dv_stack_top(&a->hidden), 1 / sqrt((double)s->hidden), true}});
  (a->before_step ? dv_stack_open : dv_stack_whole)(g, &a->hidden);
  (a->before_step ? dvbf_layer_open : dvbf_layer_whole)(g, &a->output);
}

static void open_part(dvbf_program *p, const dvbf_model *m, part *a) {
  dvbf_graph *g = p->graph;
  open_encoder(p, m, a);
  a->drawn = (dvbf_drawn){.value = dvbf_slab(g, a->steps, m->n_z),
                          .head = a->output.out,
                          .noise = dvbf_slab_constant(g, a->steps, m->n_z),
                          .use = dvbf_steps(p->mask, a->first, a->steps),
                          .prior = DVBF_NONE};
  a->innovation = dv_innovation_of(m, &a->drawn, dvbf_steps(p->kl, a->first, a->steps));
  dvbf_noise(g, a->drawn.noise, false);
}

static void step_part(dvbf_graph *g, const part *a, int t) {
  if (a->before_step) dv_stack_step(g, &a->hidden, t);
  if (a->before_step) dvbf_layer_step(g, &a->output, t);
  dvbf_innovation_step(g, &a->innovation, t);
}

/* z_1 from the first frame, or from N(0, I). */
static void first_state(dvbf_program *p, const dvbf_model *m) {
  part a = {.steps = 1, .before = DVBF_NONE};
  open_part(p, m, &a);
  step_part(p->graph, &a, 0);
  dv_record_join(p->graph, dvbf_steps(p->z, 0, 1), 1, &a.drawn.value);
  p->first = a.drawn;
}

typedef struct transition {
  dv_stack hidden;
  dvbf_layer output; /* (v, r, o, B) of each step */
  dvbf_value z, u, next, range;
} transition;

static transition open_transition(dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  int steps = p->steps - 1;
  transition f = {.z = dvbf_steps(p->z, 0, steps),
                  .u = m->n_u ? dvbf_steps(p->u, 0, steps) : DVBF_NONE,
                  .next = dvbf_slab(g, steps, m->n_z),
                  .range = dvbf_state_range(g, m)};
  f.hidden = dv_hidden(g, s, "transition", steps, (dvbf_first){.scale = 0.5},
                       (dv_dense_in[4]){{"z", f.z, s->scale_recognition, true}});
  f.output = dv_dense(g, "transition.output", dvbf_slab(g, steps, (3 + m->n_u) * m->n_z), DVBF_LINEAR,
                      (dvbf_first){.scale = 0.1},
                      (dv_dense_in[4]){{"h", dv_stack_top(&f.hidden), 0.1 / sqrt((double)s->hidden), true}});
  dv_stack_open(g, &f.hidden);
  dvbf_layer_open(g, &f.output);
  return f;
}

static void step_transition(dvbf_graph *g, const transition *f, int t) {
  dv_stack_step(g, &f->hidden, t);
  dvbf_layer_step(g, &f->output, t);
  dv_record_local(g, dvbf_steps(f->next, t, 1), dvbf_steps(f->z, t, 1), dvbf_steps(f->u, t, 1),
                  dvbf_steps(f->output.out, t, 1));
  dvbf_saturate(g, dvbf_steps(f->next, t, 1), f->range);
}

/* Steps 1 .. T - 1. With `feed` a frame before that was not seen is one that the model makes. */
static part later_states(dvbf_program *p, const dvbf_model *m, const transition *f, bool feed) {
  dvbf_graph *g = p->graph;
  int steps = p->steps - 1;
  part a = {.first = 1, .steps = steps, .before = DVBF_NONE};
  bool stacked = m->settings->stacked > 1;
  a.before_step = stacked && feed;
  if (stacked) a.before = feed ? dvbf_slab(g, steps, m->n_x) : dvbf_steps(p->x, 0, steps);
  open_part(p, m, &a);
  for (int t = 0; t < steps; t++) {
    if (a.before_step) dv_record_feedback(p, m, dvbf_steps(a.before, t, 1), t, false);
    step_part(g, &a, t);
    step_transition(g, f, t);
    dv_record_choose(g, dvbf_steps(p->z, t + 1, 1), dvbf_steps(a.drawn.value, t, 1),
                     dvbf_steps(f->next, t, 1), dvbf_steps(a.drawn.use, t, 1));
  }
  p->later = a.drawn;
  return a;
}

/* The terms that join a frame to the next. */
static void record_terms(dvbf_program *p, const dvbf_model *m, const transition *f, const part *a) {
  dvbf_graph *g = p->graph;
  int steps = p->steps - 1;
  dvbf_value kl = dvbf_slab(g, steps, 1);
  for (int t = 0; t < steps; t++) {
    dv_divergence d = {.kl = dvbf_steps(kl, t, 1),
                       .parts = dvbf_steps(f->output.out, t, 1),
                       .u = dvbf_steps(f->u, t, 1),
                       .q = t ? dvbf_steps(a->drawn.head, t - 1, 1) : p->first.head,
                       .next = dvbf_steps(a->drawn.head, t, 1),
                       .use = dvbf_steps(p->mask, t, 1),
                       .next_use = dvbf_steps(p->mask, t + 1, 1),
                       .low = m->settings->log_sigma_min,
                       .high = m->settings->log_sigma_max};
    dv_record_divergence(g, &d);
  }
  dv_record_ln_p(p, m, 1, steps, f->next, dvbf_term(g, "predicted", -1), dvbf_scalar(g, DVBF_TEMPERATURE, 1));
  dvbf_sum(g, dvbf_term(g, "transition", m->settings->transition_weight), kl, p->weight, -1);
}

static void whole(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  (void)self;
  first_state(p, m);
  transition f = open_transition(p, m);
  part a = later_states(p, m, &f, p->gaps);
  if (dv_graph_training(p->graph)) record_terms(p, m, &f, &a);
}

static void start(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  (void)self;
  first_state(p, m);
}

static void step(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  (void)self;
  transition f = open_transition(p, m);
  later_states(p, m, &f, true);
}

static void move(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  (void)self;
  transition f = open_transition(p, m);
  step_transition(p->graph, &f, 0);
  dv_record_join(p->graph, dvbf_steps(p->z, 1, 1), 1, &f.next);
  p->later.noise = dvbf_slab_constant(p->graph, 1, m->n_z); /* which nothing reads */
}

static int one_frame(const dvbf_model_class *self, const dvbf_settings *settings) {
  (void)self, (void)settings;
  return 1;
}

const dvbf_model_class dv_model_e2c = {.name = "e2c",
                                       .settings = "networks training limits e2c",
                                       .no_weights =
                                           "its objective is no bound and its transition has no noise",
                                       .start_frames = one_frame,
                                       .whole = whole,
                                       .start = start,
                                       .step = step,
                                       .move = move,
                                       .reads_frame = true};
