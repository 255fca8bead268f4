/* The stochastic recurrent network of Bayer and Osendorfer (2014), with controls: z_t ~ N(0, I) at every step
 * and a recurrent unit h carries the past. A second unit g reads the frames for recognition. The paper's
 * recognition may look ahead; this one does not, so that it can filter. */

/*   p(z_t) = N(0, I)                                                        at every step
 *   h_t = GRU(h_{t-1}; x_{t-1}, z_t, u_{t-1})                               generating network, from zeros
 *   p(x_t | h_t)                                                            emission
 *   g_t = GRU(g_{t-1}; x_t, u_{t-1})                                        recognition network, from g_0 = 0
 *   q(z_t | x_1 .. x_t, u_1 .. u_{t-1}) = N(mu, sigma^2)                    from g_t
 *   bound = sum_t ln p(x_t | h_t) - KL(q(z_t) || N(0, I))
 *
 * The state of the program is (h_t, z_t, g_t), of which the emission sees h_t. The step to t + 1 reads x_t
 * once more, or, if it was not observed, a frame that the model generates. The recognition network reads
 * zeros for unobserved frames, since q of such steps is not used. */
#include "model/networks.h"
#include "model/program.h"

#include <math.h>

/* States of some steps; h and g have one more step in front, which is 0 or given. */
typedef struct states {
  dvbf_value h, z, g; /* [steps + 1], [steps], [steps + 1] */
} states;

static states new_states(dvbf_graph *g, const dvbf_model *m, int steps) {
  return (states){.h = dvbf_slab(g, steps + 1, dv_units_of(m)),
                  .z = dvbf_slab(g, steps, dv_latent_of(m)),
                  .g = dvbf_slab(g, steps + 1, dv_units_of(m))};
}

/* Parts recorded for steps first .. first + steps - 1 of the program. */
typedef struct gru_part {
  int first, steps;
  states s;
  dvbf_value x, u; /* [steps] what the generating network reads of the step before; none: zeros */
  bool x_step;
  dv_gru generating, recognition;
  dv_stack encoder;
  dvbf_drawn drawn;
  dvbf_innovation innovation;
} gru_part;

static void open_generating(dvbf_program *p, const dvbf_model *m, gru_part *a) {
  a->generating = (dv_gru){.name = "generating",
                           .x = a->x,
                           .u = a->u,
                           .z = a->s.z,
                           .x_step = a->x_step,
                           .z_step = true,
                           .h = a->s.h};
  dv_gru_open(p->graph, m, &a->generating);
}

/* The input of recognition that all rows share comes first in the layer, as it must. In place of z it reads
 * the mask. */
static void open_gru_part(dvbf_program *p, const dvbf_model *m, gru_part *a) {
  dvbf_graph *g = p->graph;
  open_generating(p, m, a);
  a->recognition = (dv_gru){.name = "reading",
                            .x = dvbf_steps(p->x, a->first, a->steps),
                            .u = a->u,
                            .z = dvbf_steps(dv_mask_input(p, m), a->first, a->steps),
                            .h = a->s.g};
  dv_gru_open(g, m, &a->recognition);
  a->encoder = dv_hidden(
      g, m->settings, "encoder", a->steps, (dvbf_first){0},
      (dv_dense_in[4]){{"g", dvbf_steps(a->s.g, 1, a->steps), 1 / sqrt((double)dv_units_of(m)), true}});
  dv_stack_output(g, &a->encoder, "encoder.output", dvbf_slab(g, a->steps, 2 * dv_latent_of(m)),
                  (dvbf_first){0}, 0.1);
  dv_stack_open(g, &a->encoder);
  a->drawn = dv_drawn_of(p, a->first, a->s.z, dv_stack_top(&a->encoder));
  a->innovation = dv_innovation_of(&a->drawn, dvbf_steps(p->kl, a->first, a->steps));
}

static void step_gru_part(dvbf_graph *g, const gru_part *a, int t) {
  dv_gru_step(g, &a->recognition, t);
  dv_stack_step(g, &a->encoder, t);
  dvbf_innovation_step(g, &a->innovation, t);
  dv_gru_step(g, &a->generating, t);
}

/* States first .. first + steps - 1 of the program, which begin at step `at` of `s`. */
static void join(dvbf_program *p, const states *s, int first, int at, int steps) {
  dvbf_value parts[] = {dvbf_steps(s->h, at + 1, steps), dvbf_steps(s->z, at, steps),
                        dvbf_steps(s->g, at + 1, steps)};
  dv_record_join(p->graph, dvbf_steps(p->z, first, steps), 3, parts);
}

static states states_from(const states *s, int first, int steps) {
  return (states){dvbf_steps(s->h, first, steps + 1), dvbf_steps(s->z, first, steps),
                  dvbf_steps(s->g, first, steps + 1)};
}

/* From h_0 = 0 and g_0 = 0, and nothing before. */
static void first_step(dvbf_program *p, const dvbf_model *m, const states *s) {
  dvbf_graph *g = p->graph;
  gru_part a = {.steps = 1, .s = states_from(s, 0, 1), .x = DVBF_NONE, .u = DVBF_NONE};
  dvbf_zero(g, dvbf_steps(s->h, 0, 1));
  dvbf_zero(g, dvbf_steps(s->g, 0, 1));
  open_gru_part(p, m, &a);
  step_gru_part(g, &a, 0);
  p->first = a.drawn;
  join(p, s, 0, 0, 1);
}

/* Steps 1 .. T - 1. `s` begins with the state of step 0. With `feed` unobserved values are generated. */
static void later_steps(dvbf_program *p, const dvbf_model *m, const states *s, bool feed) {
  dvbf_graph *g = p->graph;
  int steps = p->steps - 1;
  gru_part a = {.first = 1,
                .steps = steps,
                .s = *s,
                .x = feed ? dvbf_slab(g, steps, m->n_x) : dvbf_steps(p->x, 0, steps),
                .u = dvbf_steps(p->u, 0, steps),
                .x_step = feed};
  open_gru_part(p, m, &a);
  for (int t = 0; t < steps; t++) {
    if (feed) dv_record_imputation(p, m, dvbf_steps(a.x, t, 1), t, false);
    step_gru_part(g, &a, t);
    if (feed) join(p, s, t + 1, t, 1);
  }
  if (!feed) join(p, s, 1, 0, steps);
  p->later = a.drawn;
}

static void whole(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  states all = new_states(p->graph, m, p->steps);
  first_step(p, m, &all);
  for (dv_step_blocks b = dv_blocks_of(p->graph, m, p->steps - 1); dv_next_block(p->graph, &b);) {
    dvbf_program block = dv_part_of(p, b.first, b.steps + 1);
    states some = states_from(&all, b.first + 1, b.steps);
    later_steps(&block, m, &some, dv_imputation_needed(p));
    if (b.count == 1) p->later = block.later;
  }
}

static void start(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  states s = new_states(p->graph, m, 1);
  first_step(p, m, &s);
}

/* h and g of the step that is given. */
static void take_apart(dvbf_program *p, const states *s) {
  dvbf_value given = dvbf_steps(p->z, 0, 1);
  dv_record_columns(p->graph, dvbf_steps(s->h, 0, 1), given, 0);
  dv_record_columns(p->graph, dvbf_steps(s->g, 0, 1), given, s->h.cols + s->z.cols);
}

static void step(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  states s = new_states(p->graph, m, 1);
  take_apart(p, &s);
  later_steps(p, m, &s, dv_imputation_of_step(p));
}

/* x_t is generated by the model, and z_{t+1} comes from the prior. The recognition network, which only serves
 * to filter, reads nothing. */
static void move(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  states s = new_states(g, m, 1);
  gru_part a = {.first = 1, .steps = 1, .s = s, .x = dvbf_slab(g, 1, m->n_x), .u = dvbf_steps(p->u, 0, 1)};
  a.x_step = true;
  take_apart(p, &s);
  open_generating(p, m, &a);
  a.recognition =
      (dv_gru){.name = "reading", .x = dvbf_slab_constant(g, 1, m->n_x), .u = a.u, .z = DVBF_NONE, .h = s.g};
  dvbf_zero(g, a.recognition.x);
  dv_gru_open(g, m, &a.recognition);
  dv_record_imputation(p, m, a.x, 0, true);
  dvbf_value none = DVBF_NONE;
  p->later.noise = dvbf_slab_constant(g, 1, dv_latent_of(m));
  dvbf_innovation drawn =
      dv_innovation_of(&(dvbf_drawn){s.z, none, p->later.noise, none, none}, dvbf_slab(g, 1, 1));
  dvbf_innovation_step(g, &drawn, 0);
  dv_gru_step(g, &a.recognition, 0);
  dv_gru_step(g, &a.generating, 0);
  join(p, &s, 1, 0, 1);
}

static int emits(const dvbf_model_class *self, const dvbf_settings *settings) {
  return (int)dv_settings_train(settings, NULL)->units;
}

static int all_states(const dvbf_model_class *self, const dvbf_settings *settings) {
  return 2 * emits(self, settings) + (int)dv_settings_train(settings, NULL)->latent;
}

const dvbf_model_class dv_model_storn = {.name = "storn",
                                         .settings = "training recurrent samples",
                                         .states = all_states,
                                         .emits = emits,
                                         .start_frames = dv_one_frame,
                                         .whole = whole,
                                         .start = start,
                                         .step = step,
                                         .move = move,
                                         .reads_frame = true};
