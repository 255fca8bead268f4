/* The Deep Kalman Filter (Krishnan, Shalit and Sontag 2015). z_t comes from q(z_t | all frames), and the
 * transition enters through the KL alone, so without filter dropout all z are drawn at once and each of its
 * layers is one product. Unobserved steps come from the transition. It uses later frames, so it cannot
 * filter; it has no w and no v.
 *
 *   p(z_1) = N(0, I)    p(z_t | z_{t-1}, u_{t-1}) = N(mu_p, sigma_p^2)        transition network
 *   q(z_t | x_1 .. x_K, u_1 .. u_K) = N(mu_q, sigma_q^2)                      recurrent network
 *   bound = sum_t ln p(x_t | z_t) - KL(q(z_1) || p(z_1)) - sum_t KL(q(z_t) || p(z_t | z_{t-1}, u_{t-1})) */
#include "base/memory.h"
#include "model/program.h"

#include <math.h>

/* (mu_q, ln sigma_q) of every frame that may be seen, [observe][rows][2 n_z]. */
static dvbf_value recognition(dvbf_program *p, const dvbf_model *m) {
  dv_birnn net = dv_birnn_on(p, m, "recognition", p->observe, true);
  net.layers = (int)m->settings->layers;
  dv_birnn_states states = dv_record_birnn(p->graph, &net);
  dvbf_value head = dvbf_slab(p->graph, p->observe, 2 * m->n_z);
  dv_record_birnn_output(p->graph, &net, &states, head);
  return head;
}

/* z_1 ~ q(z_1), with its KL to N(0, I). */
static void first_state(dvbf_program *p, const dvbf_model *m, dvbf_value head) {
  p->first = dv_drawn_of(p, 0, dvbf_steps(p->z, 0, 1), head.steps ? dvbf_steps(head, 0, 1) : DVBF_NONE);
  p->first.use = DVBF_NONE;
  dvbf_innovation first = dv_innovation_of(&p->first, dvbf_steps(p->kl, 0, 1));
  dvbf_innovation_step(p->graph, &first, -1);
}

typedef struct transition {
  dv_stack network; /* its output is (mu_p, ln sigma_p) */
  dvbf_value range; /* that mu_p keeps to, so that z never leaves it by more than its noise */
} transition;

/* In residual form mu_p = z + net(z, u): z is added to the output through the fixed matrix (I, 0). */
static void add_residual(dvbf_graph *g, dvbf_layer *output, dvbf_value z) {
  size_t n = (size_t)z.cols;
  double *identity = dv_calloc(n, 2 * n * sizeof *identity);
  if (!identity) {
    dvbf_refuse(g, "out of memory while recording a transition of %d states", z.cols);
    return;
  }
  for (size_t i = 0; i < n; i++) identity[i * 2 * n + i] = 1;
  dvbf_first first = {.frozen = true, .values = identity};
  dv_layer_see(output, z, dvbf_parameter(g, "transition.output.residual", z.cols, 2 * z.cols, first), true);
  dv_free(identity);
}

/* `prior` [steps] receives its output, for all steps but the first of the program. */
static transition make_transition(dvbf_program *p, const dvbf_model *m, dvbf_value prior) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  int steps = p->steps - 1;
  dvbf_value z = dvbf_steps(p->z, 0, steps), u = dvbf_steps(p->u, 0, steps);
  transition t;
  t.network = dv_hidden(
      g, s, "transition", steps, (dvbf_first){.scale = 0.5},
      (dv_dense_in[4]){{"z", z, DV_SCALE_RECOGNITION, true}, {"u", u, DV_SCALE_RECOGNITION, false}});
  dv_stack_output(g, &t.network, "transition.output", prior, (dvbf_first){0}, s->scale_transition);
  if (s->residual) add_residual(g, &t.network.layer[t.network.count - 1], z);
  t.range = dvbf_state_range(g, m);
  return t;
}

static void step_transition(dvbf_graph *g, const transition *f, int t) {
  dv_stack_step(g, &f->network, t);
  dvbf_saturate(g, dvbf_steps(dv_stack_top(&f->network), t, 1), f->range);
}

/* Training without filter dropout takes every z_t that counts from q, which does not depend on z: all of them
 * are drawn at once, and the transition is one product over all steps. (Past the end of a short sequence z
 * would come from p, but nothing there counts.) */
static bool all_from_q(const dvbf_program *p, const dv_train_settings *s) {
  return dv_graph_training(p->graph) && !p->gaps && s->filter_dropout <= 0 && s->filter_dropout_end <= 0;
}

/* The steps of a part of the program, whose states are `state`. */
static void make_steps(dvbf_program *p, const dvbf_model *m, const dvbf_state *state) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  transition f = make_transition(p, m, state->p);
  if (all_from_q(p, s)) {
    dv_stack_whole(g, &f.network);
    dvbf_saturate(g, state->p, f.range);
    return;
  }
  dv_stack_open(g, &f.network);
  for (int t = 0; t < state->z.steps; t++) {
    step_transition(g, &f, t);
    dvbf_state_sample(g, state, t);
    if (s->clip_z > 0) dvbf_clip_gradient(g, dvbf_steps(state->z, t, 1), s->clip_z);
  }
}

/* The steps of a block. */
static void make_block(const dvbf_program *p, const dvbf_model *m, const dvbf_state *all,
                       const dv_step_blocks *s) {
  dvbf_program part = dv_part_of(p, s->first, s->steps + 1);
  dvbf_state state = *all;
  dvbf_value *of[] = {&state.z, &state.kl, &state.p, &state.noise, &state.use};
  for (int i = 0; i < 5; i++) *of[i] = dvbf_steps(*of[i], s->first, s->steps);
  state.seen = all->seen - s->first < 0          ? 0
               : all->seen - s->first < s->steps ? all->seen - s->first
                                                 : s->steps;
  state.q = state.seen ? dvbf_steps(all->q, s->first, state.seen) : DVBF_NONE;
  make_steps(&part, m, &state);
}

static void later_states(dvbf_program *p, const dvbf_model *m, dvbf_value head) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  int steps = p->steps - 1, seen = p->observe > 1 ? p->observe - 1 : 0;
  p->later = (dvbf_drawn){.value = dvbf_steps(p->z, 1, steps),
                          .head = seen ? dvbf_steps(head, 1, seen) : DVBF_NONE,
                          .noise = dvbf_slab_constant(g, steps, m->n_z),
                          .use = dvbf_slab_constant(g, steps, 1),
                          .prior = dvbf_slab(g, steps, 2 * m->n_z)};
  dvbf_state state = dv_state_of(&p->later, dvbf_steps(p->kl, 1, steps));
  dvbf_noise(g, p->later.noise, false);
  dvbf_filter_use(g, state.use, dvbf_steps(p->mask, 1, steps));
  if (all_from_q(p, s)) {
    dvbf_state_sample(g, &state, -1);
    if (s->clip_z > 0) dvbf_clip_gradient(g, state.z, s->clip_z);
  }
  for (dv_step_blocks b = dv_blocks_of(g, m, steps); dv_next_block(g, &b);) make_block(p, m, &state, &b);
  dvbf_state_kl(g, &state);
}

static void record_all_steps(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dvbf_value head = p->observe ? recognition(p, m) : DVBF_NONE;
  first_state(p, m, head);
  later_states(p, m, head);
}

static void move(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  p->later.prior = dvbf_slab(g, 1, 2 * m->n_z);
  transition f = make_transition(p, m, p->later.prior);
  p->later.noise = dvbf_slab_constant(g, 1, m->n_z);
  dvbf_value none = DVBF_NONE;
  dvbf_drawn drawn = {dvbf_steps(p->z, 1, 1), none, p->later.noise, none, p->later.prior};
  dvbf_state state = dv_state_of(&drawn, none);
  dv_stack_open(g, &f.network);
  step_transition(g, &f, 0);
  dvbf_state_sample(g, &state, 0);
}

/* q(z_t) has a head for each of any number of frames, so its network is recurrent. */
static dvbf_status settle(const dvbf_model_class *self, dvbf_settings *settings, size_t steps,
                          dvbf_error *error) {
  bool recurrent = dv_settings_train(settings, NULL)->initial != DV_INITIAL_MLP;
  return recurrent ? DVBF_OK : dvbf_settings_set(settings, "initial", "birnn", error);
}

const dvbf_model_class dv_model_dkf = {.name = "dkf",
                                       .settings = "training dynamics limits pictures samples",
                                       .no_filter = "its q(z_t) needs the frames after t",
                                       .settle = settle,
                                       .whole = record_all_steps,
                                       .move = move};
