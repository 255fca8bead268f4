/* The variational recurrent neural network of Chung et al. (2015), with controls. The recurrent unit h is
 * part of the state, (h_{t-1}, z_t), so filter, particles and predictions need no special cases. Where x_t
 * was not observed, the step to t + 1 reads a frame that the model generates. */

/* Model and bound:
 *
 *   p(z_t | h_{t-1}, u_{t-1}) = N(mu_p, sigma_p^2)          prior
 *   q(z_t | x_t, h_{t-1}, u_{t-1}) = N(mu_q, sigma_q^2)     encoder
 *   p(x_t | z_t, h_{t-1})                                   emission
 *   h_t = GRU(h_{t-1}; x_t, z_t, u_t)                       from h_0 = 0
 *
 *   bound = sum_t ln p(x_t | z_t, h_{t-1}) - KL(q(z_t) || p(z_t))
 *
 * x_t is emitted from the state; the step to t + 1 reads x_t once more, for h_t. */
#include "model/networks.h"
#include "model/program.h"

#include <math.h>
#include <stdio.h>

/* A network that sees (x, h, u) of some steps and gives (mu, ln sigma). */
static dv_stack make_head(dvbf_program *p, const dvbf_model *m, const char *name, int steps,
                          const dv_dense_in in[4]) {
  dvbf_graph *g = p->graph;
  char output[40];
  dv_stack head = dv_hidden(g, m->settings, name, steps, (dvbf_first){0}, in);
  snprintf(output, sizeof output, "%s.output", name);
  dv_stack_output(g, &head, output, dvbf_slab(g, steps, 2 * dv_latent_of(m)), (dvbf_first){0}, 0.1);
  dv_stack_open(g, &head);
  return head;
}

/* Steps first .. first + steps - 1, where `before` [steps] is h_{t-1} of each. u is none at the first. */
typedef struct prior_part {
  int first, steps;
  dvbf_value before, u;
  dvbf_value z; /* [steps][rows][latent] */
  dv_stack prior, encoder;
  dvbf_drawn drawn;
  dvbf_state state;
} prior_part;

static void open_prior(dvbf_program *p, const dvbf_model *m, prior_part *a) {
  double scale = 1 / sqrt((double)dv_units_of(m));
  a->prior =
      make_head(p, m, "prior", a->steps,
                (dv_dense_in[4]){{"h", a->before, scale, true}, {"u", a->u, DV_SCALE_RECOGNITION, false}});
}

/* An input that all rows share must be the first of a layer. */
static void open_prior_part(dvbf_program *p, const dvbf_model *m, prior_part *a) {
  dvbf_value told = dv_mask_input(p, m);
  open_prior(p, m, a);
  a->encoder = make_head(
      p, m, "encoder", a->steps,
      (dv_dense_in[4]){{"x", dvbf_steps(p->x, a->first, a->steps), 1 / sqrt(m->x_spread), false},
                       {"h", a->before, 1 / sqrt((double)dv_units_of(m)), true},
                       {"u", a->u, DV_SCALE_RECOGNITION, false},
                       {"mask", dvbf_steps(told, a->first, a->steps), DV_SCALE_RECOGNITION, false}});
  a->drawn = dv_drawn_of(p, a->first, a->z, dv_stack_top(&a->encoder));
  a->drawn.prior = dv_stack_top(&a->prior);
  a->state = dv_state_of(&a->drawn, dvbf_steps(p->kl, a->first, a->steps));
}

static void step_prior_part(dvbf_graph *g, const prior_part *a, int t) {
  dv_stack_step(g, &a->prior, t);
  dv_stack_step(g, &a->encoder, t);
  dvbf_state_sample(g, &a->state, t);
}

/* The state of one step for the program, or of all. */
static void join_pair(dvbf_program *p, dvbf_value h, dvbf_value z, int first, int steps) {
  dvbf_value parts[] = {dvbf_steps(h, first, steps), dvbf_steps(z, first, steps)};
  dv_record_join(p->graph, dvbf_steps(p->z, first, steps), 2, parts);
}

/* h_0 = 0 and z_1. */
static void first_pair(dvbf_program *p, const dvbf_model *m, dvbf_value h, dvbf_value z) {
  dvbf_graph *g = p->graph;
  prior_part a = {.steps = 1, .before = dvbf_steps(h, 0, 1), .u = DVBF_NONE, .z = dvbf_steps(z, 0, 1)};
  dvbf_zero(g, a.before);
  open_prior_part(p, m, &a);
  step_prior_part(g, &a, 0);
  dvbf_state_kl(g, &a.state);
  p->first = a.drawn;
}

/* The unit that updates h. x is its input from the frames. */
static dv_gru recurrence(dvbf_program *p, const dvbf_model *m, dvbf_value h, dvbf_value z, dvbf_value x,
                         bool x_step) {
  int steps = h.steps - 1;
  dv_gru gru = {.name = "recurrent",
                .x = x,
                .u = dvbf_steps(p->u, 0, steps),
                .z = dvbf_steps(z, 0, steps),
                .x_step = x_step,
                .z_step = true,
                .h = h};
  dv_gru_open(p->graph, m, &gru);
  return gru;
}

/* h and z of steps 1 .. T - 1, from those of step 0. With `feed` unobserved values are generated. */
static void later_pairs(dvbf_program *p, const dvbf_model *m, dvbf_value h, dvbf_value z, bool feed) {
  dvbf_graph *g = p->graph;
  int steps = p->steps - 1;
  dvbf_value x = feed ? dvbf_slab(g, steps, m->n_x) : dvbf_steps(p->x, 0, steps);
  prior_part a = {.first = 1,
                  .steps = steps,
                  .before = dvbf_steps(h, 1, steps),
                  .u = dvbf_steps(p->u, 0, steps),
                  .z = dvbf_steps(z, 1, steps)};
  dv_gru gru = recurrence(p, m, h, z, x, feed);
  open_prior_part(p, m, &a);
  for (int t = 0; t < steps; t++) {
    if (feed) dv_record_imputation(p, m, dvbf_steps(x, t, 1), t, false);
    dv_gru_step(g, &gru, t);
    step_prior_part(g, &a, t);
    if (feed) join_pair(p, h, z, t + 1, 1);
  }
  if (!feed) join_pair(p, h, z, 1, steps);
  dvbf_state_kl(g, &a.state);
  p->later = a.drawn;
}

static void whole(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  dvbf_value h = dvbf_slab(g, p->steps, dv_units_of(m)), z = dvbf_slab(g, p->steps, dv_latent_of(m));
  first_pair(p, m, h, z);
  join_pair(p, h, z, 0, 1);
  for (dv_step_blocks b = dv_blocks_of(g, m, p->steps - 1); dv_next_block(g, &b);) {
    dvbf_program block = dv_part_of(p, b.first, b.steps + 1);
    later_pairs(&block, m, dvbf_steps(h, b.first, b.steps + 1), dvbf_steps(z, b.first, b.steps + 1),
                dv_imputation_needed(p));
    if (b.count == 1) p->later = block.later;
  }
}

static void start(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dvbf_value h = dvbf_slab(p->graph, 1, dv_units_of(m)), z = dvbf_slab(p->graph, 1, dv_latent_of(m));
  first_pair(p, m, h, z);
  join_pair(p, h, z, 0, 1);
}

/* h and z of the step that is given. */
static void split_pair(dvbf_program *p, dvbf_value h, dvbf_value z) {
  dvbf_value given = dvbf_steps(p->z, 0, 1);
  dv_record_columns(p->graph, dvbf_steps(h, 0, 1), given, 0);
  dv_record_columns(p->graph, dvbf_steps(z, 0, 1), given, h.cols);
}

static void step(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dvbf_value h = dvbf_slab(p->graph, 2, dv_units_of(m)), z = dvbf_slab(p->graph, 2, dv_latent_of(m));
  split_pair(p, h, z);
  later_pairs(p, m, h, z, dv_imputation_of_step(p));
}

/* x_t is generated by the model, and z_{t+1} comes from the prior. */
static void move(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  dvbf_value h = dvbf_slab(g, 2, dv_units_of(m)), z = dvbf_slab(g, 2, dv_latent_of(m)),
             x = dvbf_slab(g, 1, m->n_x);
  prior_part a = {.first = 1, .steps = 1, .before = dvbf_steps(h, 1, 1), .u = dvbf_steps(p->u, 0, 1)};
  split_pair(p, h, z);
  dv_gru gru = recurrence(p, m, h, z, x, true);
  open_prior(p, m, &a);
  dv_record_imputation(p, m, x, 0, true);
  dv_gru_step(g, &gru, 0);
  dv_stack_step(g, &a.prior, 0);
  dvbf_value noise = dvbf_slab_constant(g, 1, dv_latent_of(m)), none = DVBF_NONE;
  p->later.prior = dv_stack_top(&a.prior);
  p->later.noise = noise;
  dvbf_drawn drawn = {dvbf_steps(z, 1, 1), none, noise, none, p->later.prior};
  dvbf_state state = dv_state_of(&drawn, none);
  dvbf_state_sample(g, &state, 0);
  join_pair(p, h, z, 1, 1);
}

static int states(const dvbf_model_class *self, const dvbf_settings *settings) {
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  return (int)(s->units + s->latent);
}

const dvbf_model_class dv_model_vrnn = {.name = "vrnn",
                                        .settings = "training recurrent samples",
                                        .states = states,
                                        .start_frames = dv_one_frame,
                                        .whole = whole,
                                        .start = start,
                                        .step = step,
                                        .move = move,
                                        .reads_frame = true};
