/* The structured variational autoencoder of Johnson et al. (2016) with a linear dynamical system and
 * controls. The exact posterior of prior and recognised potentials comes from messages
 * (ops/message_passing.c): whole sequences are smoothed, and a filter takes Kalman steps. The system has
 * plain gradients, exact and scaled by Adam, instead of the paper's natural ones. */

/*   z_1 = m + L_1 w_1    z_{t+1} = A z_t + B u_t + b + L w_t    w_t ~ N(0, I)      prior
 *   psi(z_t | x_t) = N(mu_t; z_t, diag(sigma_t^2))                                 recognition of a frame
 *   q(z) ~ p(z | u) prod_t psi(z_t | x_t)                                          exact, by messages
 *   p(x_t | z_t)                                                                   emission
 *   bound = sum_t E ln p(x_t | z_t) - KL(q(z) || p(z | u))
 *
 * The state of the program is z_t and mean and covariance of q(z_t); the emission sees z_t. */
#include "base/error.h"
#include "base/memory.h"
#include "math/portable.h"
#include "model/networks.h"

#include <math.h>

enum { MOST_LATENT = 64 }; /* each step costs a few dozen products of latent by latent */

/* (mu, ln sigma) of `steps` frames from `first` on; none if there are none. */
static dvbf_value potentials(dvbf_program *p, const dvbf_model *m, int first, int steps) {
  if (!steps) return DVBF_NONE;
  dvbf_value head = dvbf_slab(p->graph, steps, 2 * dv_latent_of(m));
  dv_recognise_frames(p, m, head, first, true);
  return head;
}

/* ---- The system ---- */

/* First values: I on the diagonal, of A or of the logarithms of a factor times `on`. */
static dvbf_value square_parameter(dvbf_graph *g, const char *name, int n, double on, double scale) {
  double *values = dv_calloc((size_t)n * (size_t)n, sizeof *values);
  if (!values) {
    dvbf_refuse(g, "out of memory while recording a system of %d states", n);
    return DVBF_NONE;
  }
  for (int i = 0; i < n; i++) values[i * n + i] = on;
  dvbf_value parameter = dvbf_parameter(g, name, n, n, (dvbf_first){.values = values, .scale = scale});
  dv_free(values);
  return parameter;
}

typedef struct linear_system {
  dvbf_value from_z, factor,
      drift; /* drift [T - 1] = B u + b; none without controls: z has no origin of its own */
} linear_system;

static linear_system record_system(dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  int steps = p->steps - 1, n = dv_latent_of(m);
  linear_system s = {DVBF_NONE, DVBF_NONE, DVBF_NONE};
  if (!steps) return s;
  s.from_z = square_parameter(g, "transition.z", n, 1, 0.1 / sqrt((double)n));
  s.factor = square_parameter(g, "noise.factor", n, dv_log(0.3), 0);
  if (!m->n_u) return s;
  s.drift = dvbf_slab(g, steps, n);
  dvbf_layer layer = dv_dense(g, "transition", s.drift, DVBF_LINEAR, (dvbf_first){0},
                              (dv_dense_in[4]){{"u", dvbf_steps(p->u, 0, steps), 0.1, false}});
  dvbf_layer_whole(g, &layer);
  return s;
}

/* ---- Recorders ---- */

/* Noise and, with `frames`, what is drawn from it. */
static dvbf_drawn make_drawn(dvbf_graph *g, int steps, int n, bool frames) {
  dvbf_drawn d = {.value = DVBF_NONE, .head = DVBF_NONE, .use = DVBF_NONE, .prior = DVBF_NONE};
  if (frames) d.value = dvbf_slab_constant(g, steps, n);
  if (frames) d.head = dvbf_slab_constant(g, steps, 2 * n);
  d.noise = dvbf_slab_constant(g, steps, n);
  if (frames) dvbf_noise(g, d.noise, false);
  return d;
}

/* A whole sequence, or its first frame if the program has no more. */
static void whole(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  int n = dv_latent_of(m);
  dvbf_drawn all = make_drawn(g, p->steps, n, true);
  linear_system s = record_system(p, m);
  dv_messages messages = {.head = potentials(p, m, 0, p->observe < p->steps ? p->observe : p->steps),
                          .drift = s.drift,
                          .from_z = s.from_z,
                          .factor = s.factor,
                          .start = dvbf_parameter(g, "start.mean", 1, n, (dvbf_first){0}),
                          .spread = square_parameter(g, "start.factor", n, 0, 0),
                          .noise = all.noise,
                          .use = p->mask,
                          .state = p->z,
                          .kl = p->kl,
                          .w = all.value,
                          .q = all.head,
                          .low = DV_LOG_SIGMA_MIN,
                          .high = DV_LOG_SIGMA_MAX};
  dv_record_messages(g, &messages);
  p->first = dv_drawn_steps(&all, 0, 1);
  if (p->steps > 1) p->later = dv_drawn_steps(&all, 1, p->steps - 1);
}

/* From z[0] to z[1], with the frame or, without `frame`, by the system alone. */
static void one_step(dvbf_program *p, const dvbf_model *m, bool frame) {
  dvbf_graph *g = p->graph;
  dvbf_drawn drawn = make_drawn(g, 1, dv_latent_of(m), frame);
  linear_system s = record_system(p, m);
  dv_kalman_step step = {.given = dvbf_steps(p->z, 0, 1),
                         .state = dvbf_steps(p->z, 1, 1),
                         .head = frame ? potentials(p, m, 1, 1) : DVBF_NONE,
                         .use = frame ? dvbf_steps(p->mask, 1, 1) : DVBF_NONE,
                         .drift = s.drift,
                         .from_z = s.from_z,
                         .factor = s.factor,
                         .noise = drawn.noise,
                         .w = drawn.value,
                         .q = drawn.head,
                         .low = DV_LOG_SIGMA_MIN,
                         .high = DV_LOG_SIGMA_MAX,
                         .particles = p->given_v};
  dv_record_kalman_step(g, &step);
  p->later = drawn;
}

static void step(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  one_step(p, m, true);
}

static void move(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  one_step(p, m, false);
}

static int states(const dvbf_model_class *self, const dvbf_settings *settings) {
  int n = dv_latent(self, settings);
  return dv_chain_state(n < MOST_LATENT ? n : MOST_LATENT);
}

static dvbf_status settle(const dvbf_model_class *self, dvbf_settings *settings, size_t steps,
                          dvbf_error *error) {
  int n = dv_latent(self, settings);
  if (n <= MOST_LATENT) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT, "latent = %d: model = svae allows at most %d; 3 to 8 work well", n,
                 MOST_LATENT);
}

const dvbf_model_class dv_model_svae = {.name = "svae",
                                        .settings = "training pictures",
                                        .innovations = dv_latent,
                                        .start_frames = dv_one_frame,
                                        .settle = settle,
                                        .whole = whole,
                                        .start = whole,
                                        .step = step,
                                        .move = move,
                                        .states = states,
                                        .emits = dv_latent};
