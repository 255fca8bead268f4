/* The Deep Variational Bayes Filter (Karl et al. 2017): recognition q(w_t | z_t, x_{t+1}, u_t) = N(mu,
 * sigma^2), also of later frames, universal parameters q(v), and the transition's steps z_{t+1} = f(z_t, u_t,
 * w_t, v). Its bound:
 *
 *   sum_t ln p(x_t | z_t) - KL(q(w_1)) - sum_t KL(q(w_t)) - KL(q(v) || p(v)) / N
 *
 * The parts are recorded by networks.c and transition.c; dv_model_dvbf is the class. */
#include "base/memory.h"
#include "math/portable.h"
#include "math/random.h"
#include "model/networks.h"
#include "model/program.h"

#include <math.h>
#include <stdio.h>

#define UNIVERSAL_SIGMA 0.0183 /* first standard deviation of v */

static double first_normal(size_t k, void *random) {
  dv_random r = dv_random_at(*(uint64_t *)random, DV_STREAM_INITIALISE, UINT32_MAX, (uint32_t)k);
  return dv_random_normal(&r);
}

/* v ~ q(v) = N(mean, sigma^2) per entry, or v = mean; none if the transition has no universal parameters.
 */
static dvbf_value universal(dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  size_t n = m->transition->universal
                 ? m->transition->universal(m->transition, m->settings_object, m->n_z, m->n_u, m->n_w)
                 : 0;
  if (!n) return DVBF_NONE;
  double *first = n > 1 << 24 ? NULL : dv_calloc(n, sizeof *first);
  if (n > 1 << 24)
    dvbf_refuse(g, "%zu universal parameters are too many; use fewer systems or latent dimensions", n);
  else if (!first)
    dv_graph_refuse_memory(g);
  if (!first) return DVBF_NONE;
  uint64_t seed = m->parameters.seed;
  m->transition->first(m->transition, m->settings_object, m->n_z, m->n_u, m->n_w, first, first_normal, &seed);
  dvbf_value mean = dvbf_parameter(g, "universal.mean", 1, (int)n, (dvbf_first){.values = first});
  dv_free(first);
  if (p->given_v) return p->v = dvbf_slab_shared_constant(g, 1, (int)n);
  if (s->universal == DV_POINT || p->mean_v) return mean;
  int steps = s->universal_noise == DV_PER_STEP ? p->steps - 1 : 1;
  double log_sigma = dv_log(UNIVERSAL_SIGMA), prior_first[] = {0, dv_log(0.3)};
  dvbf_universal u = {.v = dvbf_slab_shared(g, steps, (int)n), .mean = mean, .weight = p->weight};
  u.noise = dvbf_slab_shared_constant(g, steps, (int)n);
  u.log_sigma = dvbf_parameter(g, "universal.log_sigma", 1, (int)n, (dvbf_first){.mean = log_sigma});
  u.prior = dvbf_parameter(g, "universal.prior", 1, 2, (dvbf_first){.values = prior_first});
  p->noise_v = u.noise;
  dvbf_noise(g, u.noise, true);
  dvbf_universal_sample(g, &u);
  return u.v;
}

/* v with its linear systems contracted, whether it is drawn or given. */
static dvbf_value contracted(dvbf_program *p, const dvbf_model *m, dvbf_value v) {
  dv_systems systems;
  if (!(m->settings->contraction > 0) || v.buffer < 0 || !dv_model_systems(m, &systems)) return v;
  dvbf_value out = dvbf_slab_shared(p->graph, v.steps, v.cols);
  dv_record_contract(p->graph, out, v, &systems);
  return out;
}

/* Inputs of the transition, with that w. */
static dvbf_transition_values values_of(dvbf_program *p, const dvbf_model *m, dvbf_value w) {
  int steps = p->steps - 1;
  return (dvbf_transition_values){.steps = steps,
                                  .n_z = m->n_z,
                                  .n_u = m->n_u,
                                  .n_w = m->n_w,
                                  .z = p->z,
                                  .next = dvbf_steps(p->z, 1, steps),
                                  .u = p->u,
                                  .w = w,
                                  .v = contracted(p, m, universal(p, m))};
}

/* The layer reads x in low rank: first the coordinates, then what they give. */
static void read_plane(dvbf_program *p, dvbf_layer *l) {
  dvbf_graph *g = p->graph;
  dvbf_value x = l->in[0].x, inside = dvbf_slab_shared(g, x.steps, p->rank);
  p->plane_in = dvbf_slab_shared_constant(g, 1, x.cols * p->rank);
  p->plane_out = dvbf_slab_shared_constant(g, 1, p->rank * l->out.cols);
  dvbf_layer coordinates = {.out = inside, .bias = DVBF_NONE, .activation = DVBF_LINEAR};
  dv_layer_see(&coordinates, x, dvbf_matrix(p->plane_in, 0, x.cols, p->rank), false);
  dvbf_layer_whole(g, &coordinates);
  l->in[0].x = inside;
  l->in[0].w = dvbf_matrix(p->plane_out, 0, p->rank, l->out.cols);
  dvbf_keep(g, p->plane_in);
  dvbf_keep(g, p->plane_out);
}

/* Recognition q(w_t | z_t, x_{t+1}, u_t), and what it expects x_{t+1} to be. */
typedef struct recognition {
  dv_expected expected;
  dv_stack network;
} recognition;

/* It sees the innovation, and not the frame. */
static bool innovates(const dvbf_model *m) {
  return m->settings->recognition_input == DV_INPUT_INNOVATION;
}

/* It sees what the transition predicts. */
static bool foresees(const dvbf_model *m) {
  return m->settings->recognition_input != DV_INPUT_FRAME;
}

/* `later` is its input from frames after the next, or none. */
static recognition open_recognition(dvbf_program *p, const dvbf_model *m, const dvbf_transition_values *x,
                                    dvbf_value later) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  bool innovation = innovates(m);
  recognition r = {0};
  if (foresees(m)) r.expected = dv_expected_open(p, m, x);
  if (innovation) p->innovation = r.expected.e;
  dv_image_encoder sight = innovation ? (dv_image_encoder){"e", r.expected.e, m->x_spread}
                                      : dv_image_encoder_of(p, m, 1, x->steps);
  dv_dense_in sees = {sight.name, sight.value, 1 / sqrt(sight.spread), innovation};
  dvbf_value z = dvbf_steps(p->z, 0, x->steps);
  dvbf_value u = dvbf_steps(p->u, 0, x->steps);
  /* With linear paths also z and the predicted z, so that w may be the distance of a frame from either. */
  bool both = foresees(m) && !innovation;
  dvbf_value before = both ? dv_linear_path(m, z) : DVBF_NONE,
             after = both ? dv_linear_path(m, r.expected.values.next) : DVBF_NONE;
  /* If nothing of x is seen, q is not used: only gaps within a frame matter. */
  dvbf_value mask =
      s->mask_input == DV_MASK_DIMENSION && m->n_x > 1 ? dvbf_steps(p->seen, 1, x->steps) : DVBF_NONE;
  dv_dense_in more = {"mask", mask, DV_SCALE_RECOGNITION, false};
  if (later.buffer >= 0) more = (dv_dense_in){"later", later, 0.5 / sqrt((double)s->hidden), false};
  if (s->recognition == DV_SMOOTHING && mask.buffer >= 0)
    dvbf_refuse(g, "recognition = smoothing needs mask-input = off or step, not dimension");
  r.network =
      dv_hidden(g, s, "recognition", x->steps, (dvbf_first){0},
                (dv_dense_in[4]){
                    sees, {"z", z, DV_SCALE_RECOGNITION, true}, {"u", u, DV_SCALE_RECOGNITION, false}, more});
  /* An input that all rows share must be the first of a layer. */
  dv_stack_add(&r.network,
               dv_dense(g, "recognition.output", p->later.head, DVBF_LINEAR, (dvbf_first){0},
                        (dv_dense_in[4]){{sees.name, dv_linear_path(m, sees.x), 0, sees.sequential},
                                         {"h", dv_stack_top(&r.network), 0.1 / sqrt((double)s->hidden), true},
                                         {"z", before, 0, true},
                                         {"predicted", after, 0, true}}));
  return r;
}

static void step_recognition(dvbf_program *p, const dvbf_model *m, const recognition *r, int t) {
  if (foresees(m)) dv_expected_step(p, m, &r->expected, t);
  dv_stack_step(p->graph, &r->network, t);
}

static void draw_noise(dvbf_program *p) {
  dvbf_noise(p->graph, p->later.noise, false);
  dvbf_filter_use(p->graph, p->later.use, dvbf_steps(p->mask, 1, p->steps - 1));
}

/* All steps of a program that has its noise. */
static void record_steps(dvbf_program *p, const dvbf_model *m, const dvbf_transition_values *values,
                         recognition *q, dvbf_value range) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  dvbf_innovation innovation = dv_innovation_of(&p->later, dvbf_steps(p->kl, 1, values->steps));
  if (p->rank) read_plane(p, &q->network.layer[0]);
  dv_stack_open(g, &q->network);
  void *memory = m->transition->open(m->transition, g, m->settings_object, values);
  for (int t = 0; t < values->steps; t++) {
    step_recognition(p, m, q, t);
    dvbf_innovation_step(g, &innovation, t);
    m->transition->step(m->transition, g, values, memory, t);
    dvbf_saturate(g, dvbf_steps(p->z, t + 1, 1), range);
    if (s->clip_z > 0) dvbf_clip_gradient(g, dvbf_steps(p->z, t + 1, 1), s->clip_z);
  }
}

/* The steps of a block. */
static void record_block(const dvbf_program *p, const dvbf_model *m, const dvbf_transition_values *all,
                         dvbf_value later, dvbf_value range, const dv_step_blocks *s) {
  dvbf_program part = dv_part_of(p, s->first, s->steps + 1);
  dvbf_transition_values values = *all;
  values.steps = s->steps;
  values.z = part.z;
  values.next = dvbf_steps(all->next, s->first, s->steps);
  values.u = part.u;
  values.w = dvbf_steps(all->w, s->first, s->steps);
  if (all->v.steps > 1) values.v = dvbf_steps(all->v, s->first, s->steps);
  later = dvbf_steps(later, s->first, s->steps);
  recognition q = open_recognition(&part, m, &values, later);
  record_steps(&part, m, &values, &q, range);
}

/* Recognition and transition: z[1 .. T-1] and their kl. q is not used in the first `wait` steps. */
static void dynamics(dvbf_program *p, const dvbf_model *m, int wait, bool whole_sequence) {
  dvbf_graph *g = p->graph;
  int steps = p->steps - 1;
  dv_step_blocks blocks = dv_blocks_of(g, m, steps);
  dvbf_value head = dvbf_slab(g, steps, 2 * m->n_w), range = dvbf_state_range(g, m);
  dvbf_value noise = dvbf_slab_constant(g, steps, m->n_w), use = dvbf_slab_constant(g, steps, 1);
  dvbf_transition_values values = values_of(p, m, dvbf_slab(g, steps, m->n_w));
  p->later = (dvbf_drawn){.value = values.w, .head = head, .noise = noise, .use = use, .prior = DVBF_NONE};
  if (foresees(m)) p->predicted = dvbf_slab(g, steps, m->n_z);
  /* Later frames are known in programs of whole sequences. */
  bool smoothing = whole_sequence && m->settings->recognition == DV_SMOOTHING;
  dvbf_value later = smoothing ? dv_record_backward_network(p, m) : DVBF_NONE;
  if (blocks.count > 1) {
    /* Blocks share the convolutional features of x, and what is known of later frames. */
    if (!innovates(m)) dv_image_encoder_of(p, m, 0, p->steps);
    draw_noise(p);
    while (dv_next_block(g, &blocks)) record_block(p, m, &values, later, range, &blocks);
  } else {
    recognition q = open_recognition(p, m, &values, later);
    draw_noise(p);
    record_steps(p, m, &values, &q, range);
  }
  dvbf_scalar(g, DVBF_FILTER_WAIT, wait);
}

static void whole(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dv_record_initial(p, m);
  dynamics(p, m, dv_model_recognises_from(m) - 1, true);
}

static void start(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dv_record_initial(p, m);
}

static void step(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dynamics(p, m, 0, false);
}

static void move(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dvbf_transition_values values = values_of(p, m, dvbf_slab_constant(p->graph, p->steps - 1, m->n_w));
  dvbf_value range = dvbf_state_range(p->graph, m);
  p->later.noise = values.w; /* w is a standard normal number if nothing is seen */
  void *memory = m->transition->open(m->transition, p->graph, m->settings_object, &values);
  for (int t = 0; t < values.steps; t++) {
    m->transition->step(m->transition, p->graph, &values, memory, t);
    dvbf_saturate(p->graph, dvbf_steps(p->z, t + 1, 1), range);
  }
}

/* ---- Properties ---- */

static int emits(const dvbf_model_class *self, const dvbf_settings *settings) {
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  return (int)(s->emission_sees && s->emission_sees < s->latent ? s->emission_sees : s->latent);
}

static int start_frames(const dvbf_model_class *self, const dvbf_settings *settings) {
  return (int)dv_settings_train(settings, NULL)->initial_frames;
}

/* A network on frames has weights for a fixed number of them. */
static int frames_needed(const dvbf_model_class *self, const dvbf_settings *settings) {
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  return s->initial == DV_INITIAL_MLP && s->initial_frames ? (int)s->initial_frames : 1;
}

static bool rows_share(const dvbf_model_class *self, const dvbf_settings *settings) {
  return dv_settings_train(settings, NULL)->universal == DV_BAYESIAN;
}

/* "All" frames of a network that has weights for each are those of the training data. */
static dvbf_status settle(const dvbf_model_class *self, dvbf_settings *settings, size_t steps,
                          dvbf_error *error) {
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  char text[32];
  if (s->initial != DV_INITIAL_MLP || s->initial_frames) return DVBF_OK;
  snprintf(text, sizeof text, "%zu", steps);
  return dvbf_settings_set(settings, "initial-frames", text, error);
}

const dvbf_model_class dv_model_dvbf = {.name = "dvbf",
                                        .settings = "training dynamics limits dvbf pictures samples",
                                        .takes_transition = true,
                                        .innovations = dv_latent,
                                        .emits = emits,
                                        .start_frames = start_frames,
                                        .frames_needed = frames_needed,
                                        .rows_share = rows_share,
                                        .settle = settle,
                                        .whole = whole,
                                        .start = start,
                                        .step = step,
                                        .move = move};
