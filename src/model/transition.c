/* The shipped transitions z' = f(z, u, w, v): mixtures of linear systems, a single one, and a network
 * (dv_transition_of). A user's own is written in the same way, outside the library. */
#include "model/model.h"

#include "math/portable.h"

#include <math.h>

#define SCALE_MIXING 0.5 /* of first weights of the mixing network and of the mlp transition */

/* ---- Locally linear: z' = [z +] sum_i alpha_i (A_i z + B_i u + b_i + C_i w), alpha = softmax(net(z, u))
 * ---- */

static int systems_of(const dv_train_settings *s) {
  return s->transition == DV_LINEAR ? 1 : (int)s->systems;
}

static int linear_systems(const dvbf_transition *self, const dvbf_settings *settings) {
  return systems_of(dv_settings_train(settings, NULL));
}

static size_t linear_universal(const dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u,
                               int n_w) {
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  size_t n_in = (size_t)n_z + (size_t)n_u + (s->affine ? 1 : 0) + (size_t)n_w;
  return n_in * (size_t)n_z * (size_t)systems_of(s);
}

static size_t linear_gain(const dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u,
                          int n_w) {
  return (size_t)n_w * (size_t)n_z * (size_t)systems_of(dv_settings_train(settings, NULL));
}

/* From a standard normal number to one whose logarithm is uniform between those of `low` and `high`. */
static double spread(double normal, double low, double high) {
  return low * dv_pow(high / low, 0.5 * dv_erfc(-normal / sqrt(2)));
}

/* Random modes: z[j] alone decays, or z[j] and z[j + 1] oscillate together, each with its own time constant
 * and frequency, and answers white controls of variance 1 with a variance of about 1. With A near the
 * identity instead, z hardly answers to u at first, and nonlinear functions of it, such as an amplitude, are
 * not found. */
typedef struct mode {
  double cosine, sine; /* of the matrix [cosine -sine; sine cosine]; a sine of 0: a decay */
  double gain;         /* of the controls */
  int partner;         /* of z[j]; j itself: it decays alone */
} mode;

static mode mode_at(int j, int n_z, double (*normal)(size_t k, void *random), void *random, size_t from) {
  const double shortest = 2, longest = 100, slowest = 0.03, fastest = 1;
  int pair = j / 2 * 2;
  bool alone = pair + 1 == n_z || normal(from + (size_t)pair, random) < -0.25; /* two of five */
  size_t own = from + (size_t)n_z + 2 * (size_t)(alone ? j : pair);
  double radius = dv_exp(-1 / spread(normal(own, random), shortest, longest));
  double angle = alone ? 0 : spread(normal(own + 1, random), slowest, fastest);
  return (mode){radius * dv_cos(angle), radius * dv_sin(angle) * (j == pair ? -1 : 1),
                sqrt(1 - radius * radius), alone ? j : pair + (j == pair)};
}

/* The entry that z[j] or u, in row `row`, has for z[j], in the form that is not residual. */
static double of_mode(mode m, int row, int j, int n_z, double drawn) {
  if (row >= n_z) return m.gain * drawn;
  return row == j ? m.cosine : row == m.partner ? m.sine : 0;
}

/* A and B at random (A around the identity, or around modes), b = 0, C a multiple of the identity. */
static void linear_first(const dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u,
                         int n_w, double *mean, double (*normal)(size_t k, void *random), void *random) {
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  int systems = systems_of(s), first_w = n_z + n_u + (s->affine ? 1 : 0);
  size_t k = 0, all = (size_t)(first_w + n_w) * (size_t)n_z * (size_t)systems;
  for (int row = 0; row < first_w + n_w; row++)
    for (int j = 0; j < n_z; j++) {
      double common = !s->residual && row == j ? 1 : 0;
      if (s->start == DV_START_MODES && row < n_z + n_u)
        common = of_mode(mode_at(j, n_z, normal, random, all), row, j, n_z,
                         normal(all + (size_t)(3 * n_z + row * n_z + j), random) / sqrt(fmax(1, n_u))) -
                 (s->residual && row == j ? 1 : 0);
      for (int i = 0; i < systems; i++, k++) {
        if (row < n_z + n_u)
          mean[k] = s->scale_transition * normal(k, random) + common;
        else
          mean[k] = row - first_w == j ? s->scale_innovation : 0;
      }
    }
}

typedef struct linear_memory {
  dv_stack mixing; /* without layers if there is one system */
  dvbf_mixture mixture;
} linear_memory;

/* Shapes and parameters of alpha(z, u): affine, or with a hidden layer. */
static void open_alpha(dvbf_graph *g, const dv_train_settings *s, const dvbf_transition_values *x,
                       linear_memory *m) {
  dvbf_value z = dvbf_steps(x->z, 0, x->steps);
  dvbf_value u = s->mixing_control ? dvbf_steps(x->u, 0, x->steps) : DVBF_NONE;
  dv_dense_in in[4] = {{"z", z, SCALE_MIXING, true}, {"u", u, SCALE_MIXING, false}};
  if (s->mixing_hidden) {
    dvbf_value h = dvbf_slab(g, x->steps, (int)s->mixing_hidden);
    dv_stack_add(&m->mixing,
                 dv_dense(g, "mixing.hidden", h, dv_hidden_activation(s), (dvbf_first){.scale = 0.5}, in));
    in[0] = (dv_dense_in){"h", h, 1 / sqrt((double)s->mixing_hidden), true};
    in[1] = (dv_dense_in){0};
  }
  dvbf_value alpha = dvbf_slab(g, x->steps, systems_of(s));
  dv_stack_add(&m->mixing, dv_dense(g, "mixing.alpha", alpha, DVBF_SOFTMAX, (dvbf_first){0}, in));
  dv_stack_open(g, &m->mixing);
  m->mixture.alpha = alpha;
}

static void *linear_open(const dvbf_transition *self, dvbf_graph *g, const dvbf_settings *settings,
                         const dvbf_transition_values *x) {
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  int systems = systems_of(s);
  linear_memory m = {0};
  m.mixture = (dvbf_mixture){.z = dvbf_steps(x->z, 0, x->steps),
                             .u = dvbf_steps(x->u, 0, x->steps),
                             .w = x->w,
                             .alpha = DVBF_NONE,
                             .v = x->v,
                             .next = x->next,
                             .parts = dvbf_slab_constant(g, x->steps, x->n_z * systems),
                             .systems = systems,
                             .residual = s->residual,
                             .affine = s->affine};
  if (systems > 1) open_alpha(g, s, x, &m);
  dvbf_mixture_open(g, &m.mixture);
  return dvbf_remember(g, &m, sizeof m);
}

static void linear_step(const dvbf_transition *self, dvbf_graph *g, const dvbf_transition_values *x,
                        void *memory, int t) {
  const linear_memory *m = memory;
  if (!m) return;
  dv_stack_step(g, &m->mixing, t);
  dvbf_mixture_step(g, &m->mixture, t);
}

static const dvbf_transition locally_linear = {
    "locally-linear", NULL, linear_universal, linear_first,  linear_open,
    linear_step,      true, linear_gain,      linear_systems};
static const dvbf_transition linear = {"linear",    NULL, linear_universal, linear_first,  linear_open,
                                       linear_step, true, linear_gain,      linear_systems};

/* ---- Network: z' = [z +] f(z Z + u U + b) O [+ z P + u Q] + w C + c. v = (Z, U, O, [P, Q,] C). ---- */

/* Entries of P and Q, the linear paths. */
static size_t mlp_paths(const dv_train_settings *s, int n_z, int n_u) {
  return s->linear_paths == DV_PATHS_ALL ? ((size_t)n_z + (size_t)n_u) * (size_t)n_z : 0;
}

static size_t mlp_universal(const dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u,
                            int n_w) {
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  size_t hidden = (size_t)s->transition_hidden;
  return ((size_t)n_z + (size_t)n_u) * hidden + (hidden + (size_t)n_w) * (size_t)n_z + mlp_paths(s, n_z, n_u);
}

static size_t mlp_gain(const dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u,
                       int n_w) {
  return (size_t)n_w * (size_t)n_z;
}

static void mlp_first(const dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u, int n_w,
                      double *mean, double (*normal)(size_t k, void *random), void *random) {
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  size_t hidden = (size_t)s->transition_hidden, k = 0, inner = ((size_t)n_z + (size_t)n_u) * hidden;
  double out_scale = (s->residual ? s->scale_transition : 1) / sqrt((double)hidden);
  /* A state that is x has values of any size, each about 1 once scaled. */
  double in_scale =
      s->start == DV_START_STATE ? floor(1e4 / sqrt((double)(n_z + n_u)) + 0.5) / 1e4 : SCALE_MIXING;
  for (; k < inner; k++) mean[k] = in_scale * normal(k, random);
  for (; k < inner + hidden * (size_t)n_z; k++) mean[k] = out_scale * normal(k, random);
  for (size_t path = 0, paths = mlp_paths(s, n_z, n_u); path < paths; path++, k++)
    mean[k] = !s->residual && path % ((size_t)n_z + 1) == 0 && path < (size_t)n_z * (size_t)n_z ? 1 : 0;
  for (int i = 0; i < n_w; i++)
    for (int j = 0; j < n_z; j++, k++) mean[k] = i == j ? s->scale_innovation : 0;
}

typedef struct mlp_memory {
  dv_stack network;
  bool residual;
} mlp_memory;

static void *mlp_open(const dvbf_transition *self, dvbf_graph *g, const dvbf_settings *settings,
                      const dvbf_transition_values *x) {
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  int n = (int)s->transition_hidden, n_z = x->n_z, n_in = n_z + x->n_u;
  mlp_memory m = {.residual = s->residual};
  dvbf_value h = dvbf_slab(g, x->steps, n), z = dvbf_steps(x->z, 0, x->steps),
             u = dvbf_steps(x->u, 0, x->steps);
  dvbf_layer hidden = {.out = h, .activation = dv_hidden_activation(s)};
  hidden.bias = dvbf_parameter(g, "transition.hidden.bias", 1, n, (dvbf_first){.scale = 0.5});
  dv_layer_see(&hidden, z, dvbf_matrix(x->v, 0, n_z, n), true);
  if (x->n_u) dv_layer_see(&hidden, u, dvbf_matrix(x->v, (size_t)n_z * (size_t)n, x->n_u, n), false);
  dvbf_layer output = {.out = s->residual ? dvbf_slab(g, x->steps, n_z) : x->next, .activation = DVBF_LINEAR};
  output.bias = dvbf_parameter(g, "transition.output.bias", 1, n_z, (dvbf_first){0});
  /* O, then P and Q, then C */
  size_t at = (size_t)(n_in + n_z) * (size_t)n, paths = mlp_paths(s, n_z, x->n_u);
  dv_layer_see(&output, h, dvbf_matrix(x->v, (size_t)n_in * (size_t)n, n, n_z), true);
  dv_layer_see(&output, x->w, dvbf_matrix(x->v, at + paths, x->n_w, n_z), true);
  if (paths) dv_layer_see(&output, z, dvbf_matrix(x->v, at, n_z, n_z), true);
  if (paths && x->n_u)
    dv_layer_see(&output, u, dvbf_matrix(x->v, at + (size_t)n_z * (size_t)n_z, x->n_u, n_z), false);
  dv_stack_add(&m.network, hidden);
  dv_stack_add(&m.network, output);
  dv_stack_open(g, &m.network);
  return dvbf_remember(g, &m, sizeof m);
}

static void mlp_step(const dvbf_transition *self, dvbf_graph *g, const dvbf_transition_values *x,
                     void *memory, int t) {
  const mlp_memory *m = memory;
  if (!m) return;
  dv_stack_step(g, &m->network, t);
  if (m->residual)
    dvbf_add(g, dvbf_steps(x->next, t, 1), dvbf_steps(x->z, t, 1),
             dvbf_steps(dv_stack_top(&m->network), t, 1));
}

static const dvbf_transition mlp = {"mlp",    NULL, mlp_universal, mlp_first, mlp_open,
                                    mlp_step, true, mlp_gain,      NULL};

const dvbf_transition *dv_transition_of(const dv_train_settings *s) {
  static const dvbf_transition *const shipped[] = {&locally_linear, &linear, &mlp};
  return shipped[s->transition];
}
