/* A model: settings, parameters, scaling of the data; and the programs that record its equations. */
#pragma once

#include "data/dataset.h"
#include "model/train_settings.h"
#include "ops/ops.h"

#include <dvbf/graph.h>

/* x is centred and scaled on the way in, u too, and x back on the way out: x' = (x - shift) * scale. */
typedef struct dv_scaling {
  float *shift, *scale; /* [n] */
} dv_scaling;

struct dvbf_model {
  dvbf_settings *settings_object;
  const dv_train_settings *settings; /* values of settings_object */
  const dvbf_model_class *type;
  const dvbf_transition *transition; /* NULL: the model takes none */
  const struct dv_density *density;  /* of x given z (density.h) */
  int n_x, n_u, n_z, n_w;
  dv_scaling x, u;
  double x_spread;        /* total variance of a scaled frame, which sets first weights */
  double *first_patterns; /* [n_x][patterns] of a density that has such; NULL: it starts without */
  double *first_output;   /* [n_x] of the emission: that of the mean frame, its first bias */
  dv_parameters parameters;
  uint64_t updates;       /* done */
  double sequences;       /* N, in training */
  double log_sigma_floor; /* reached by training */
  double seconds;
  bool segments;       /* training programs of long sequences recompute values, in less memory */
  dvbf_model *linear;  /* the best linear model of the same data; NULL: unknown */
  dvbf_model **others; /* [n_others] further members of a committee, of which this model is the best */
  int n_others;
  bool no_forecasts;   /* a member that takes no part in forecasts one step ahead, */
  bool no_predictions; /* or in predictions further ahead and in samples; none is both */
};

/* For DV_COMPUTE. */
static inline bool dv_model_portable(const dvbf_model *m) {
  return m->settings->arithmetic == DV_ARITHMETIC_PORTABLE;
}

enum { DV_MOST_MEMBERS = 64 }; /* of a committee, the best one included */
/* A checksum of the numbers of the model and its members. */
uint64_t dv_model_fingerprint(const dvbf_model *model);

/* Members of the committee; number 0 is the model itself. */
static inline int dv_model_members(const dvbf_model *m) {
  return 1 + m->n_others;
}
static inline const dvbf_model *dv_model_member(const dvbf_model *m, int number) {
  return number ? m->others[number - 1] : m;
}
/* Whether a member serves this kind of request. */
static inline bool dv_model_takes_part(const dvbf_model *member, bool forecast) {
  return forecast ? !member->no_forecasts : !member->no_predictions;
}
/* Takes ownership of a member, or of the best linear model in place of a former one, also after a failure. It
 * must have no user-defined parts and the same n_x and n_u. */
dvbf_status dv_model_add_member(dvbf_model *model, dvbf_model *other, dvbf_error *error);
dvbf_status dv_model_set_linear(dvbf_model *model, dvbf_model *linear, dvbf_error *error);

/* User-defined parts of a model; NULL: those of the settings. */
typedef struct dv_own {
  const dvbf_model_class *type;
  const dvbf_transition *transition;
} dv_own;
/* The user-defined parts of a model. */
dv_own dv_model_own(const dvbf_model *model);

/* A model for sequences like `train` (or windows of them), with first values, scaled by statistics of the
 * training data. `own` may be NULL. */
dvbf_status dv_model_of(dvbf_model **out, const dvbf_settings *settings, const dv_own *own,
                        const dv_measured *data, const dvbf_sequences *train, uint64_t seed,
                        dvbf_error *error);
/* The same; `train` itself is measured. */
dvbf_status dv_model_new(dvbf_model **out, const dvbf_settings *settings, const dv_own *own,
                         const dvbf_sequences *train, uint64_t seed, dvbf_error *error);
/* An empty model, to be filled from a file. */
dvbf_status dv_model_empty(dvbf_model **out, const dvbf_settings *settings, const dv_own *own, int n_x,
                           int n_u, dvbf_error *error);

/* Ends the making of a model with *out = m; where that has failed, it is freed. Returns the status. */
dvbf_status dv_model_give(dvbf_model **out, dvbf_model *m, dvbf_status status);

/* A parameter, and its values; NULL: there is none of the name. */
static inline const dv_parameter *dv_model_find(const dvbf_model *m, const char *name) {
  return dv_parameters_find(&m->parameters, name);
}
static inline dvbf_real *dv_model_values(const dvbf_model *m, const char *name) {
  const dv_parameter *p = dv_model_find(m, name);
  return p ? m->parameters.values + p->offset : NULL;
}

/* Records the model once, for sequences of this many steps, which makes its parameters with first values. */
dvbf_status dv_model_first_values(dvbf_model *model, size_t steps, uint64_t seed, dvbf_error *error);

/* Flags of a program: gradients of parameters; frames with gaps; v given, with emission and densities; all
 * rows of a step see the same x; derivatives by z and u, none by parameters; the objective is ln p of each
 * frame as predicted from the one before, instead of the bound. */
enum { DV_BACKWARD = 1, DV_GAPS = 2, DV_PARTICLES = 4, DV_ONE_X = 8, DV_DERIVATIVES = 16, DV_ONE_STEP = 32 };

/* `observe` is the number of frames that may be seen (T in training): the initial network sees no more. 0
 * makes z_1 from the prior. `flags` are those above. */
dvbf_status dv_program_record(dvbf_program *program, const dvbf_model *model, int steps, int rows,
                              int observe, int flags, dvbf_error *error);
/* The bound of a particle filter, whose particles are groups of `samples` rows. */
dvbf_status dv_program_record_particles(dvbf_program *program, const dvbf_model *model, int steps, int rows,
                                        int samples, int flags, dvbf_error *error);
/* One step of the recurrence for `rows` samples of one sequence: z[0] is given, z[1] is the result, with v at
 * its mean. With DV_PARTICLES v is given, and output and ln_p [1][rows][...] belong to z[1]. */
dvbf_status dv_program_record_step(dvbf_program *program, const dvbf_model *model, int rows, int rank,
                                   int flags, dvbf_error *error);
/* The initial network alone, on `frames` frames: z[0] is the result, and with DV_PARTICLES has output and
 * ln_p.
 */
dvbf_status dv_program_record_start(dvbf_program *program, const dvbf_model *model, int rows, int frames,
                                    int flags, dvbf_error *error);
/* The transition alone: z[0], u[0], later.noise and v are given, z[1] is the result. With DV_DERIVATIVES v is
 * at its mean, and gradients can be seeded at z and read at z and u. */
dvbf_status dv_program_record_move(dvbf_program *program, const dvbf_model *model, int rows, int flags,
                                   dvbf_error *error);
/* The emission alone: output of z[0], which is given, and with feedthrough of u[0]. */
dvbf_status dv_program_record_emission(dvbf_program *program, const dvbf_model *model, int rows, int flags,
                                       dvbf_error *error);
void dv_program_clear(dvbf_program *program);

/* The flag for sequences that may have gaps. */
static inline int dv_gaps_of(const dvbf_sequences *s) {
  return s->gaps ? DV_GAPS : 0;
}

/* Shipped model number `index`; NULL behind the last. That of the setting `model`. */
const dvbf_model_class *dv_model_class_at(size_t index);
const dvbf_model_class *dv_model_class_of(const dv_train_settings *s);
/* A model that reads its frames back. */
const dvbf_model_class *dv_model_reading(void);
/* Name of a model whose sequences may have a single step. */
const char *dv_model_timeless(void);
/* Steps that a sequence must have at least. */
int dv_model_least_steps(const dvbf_model *m);
/* Properties of the model's class (dvbf_model_class), with defaults. */
int dv_model_frames_needed(const dvbf_model *m);
int dv_model_start_frames(const dvbf_model *m);
/* The first frame, counted from 0, that recognition sees. In programs of single steps the scalar
 * DVBF_FILTER_WAIT must be 1 before that frame, and 0 from then on. */
int dv_model_recognises_from(const dvbf_model *m);
/* x_t depends on u_t directly: an online filter takes x and u of the same row of the data. */
bool dv_model_feeds_through(const dvbf_model *m);
/* The same for a committee: whether any member does. */
bool dv_model_same_row(const dvbf_model *m);
bool dv_model_can_filter(const dvbf_model *m);
/* Steps that must be seen before all members of a committee can predict, or forecast one step ahead. */
int dv_model_predicts_from(const dvbf_model *m);
int dv_model_forecasts_from(const dvbf_model *m);
/* Refuses a model that cannot; `instead` is the end of the sentence. */
dvbf_status dv_model_needs_filter(const dvbf_model *m, const char *instead, dvbf_error *error);

/* Refuses sequences of another shape than the model's, or with values that are not finite. */
dvbf_status dv_model_takes(const dvbf_model *model, const dvbf_sequences *sequences, dvbf_error *error);
/* How a trained model runs, with noise of `seed`: no temperature, no dropout. */
dv_conditions dv_model_conditions(const dvbf_model *model, uint64_t seed);

/* Back to the units of the data: the mean x [n_x] of one frame from the emission's output. */
void dv_model_unscale(const dvbf_model *model, const dvbf_real *output, float *x);
/* The scaling term of ln p(x) of frames of which seen[i] values are there, sum of seen_i ln scale_i; NULL: of
 * one whole frame. */
double dv_model_log_jacobian_of(const dvbf_model *model, const uint64_t *seen /* [n_x] */);
static inline double dv_model_log_jacobian(const dvbf_model *model) {
  return dv_model_log_jacobian_of(model, NULL);
}

/* ---- Parts, each recording its equations ---- */

/* An input of a dense layer; its weights are normal with standard deviation `scale`. */
typedef struct dv_dense_in {
  const char *name; /* of the weights: LAYER.NAME */
  dvbf_value x;
  double scale;
  bool sequential;
} dv_dense_in;

/* Adds an input to a layer. */
static inline void dv_layer_see(dvbf_layer *layer, dvbf_value x, dvbf_value w, bool sequential) {
  layer->in[layer->n_in].x = x;
  layer->in[layer->n_in].w = w;
  layer->in[layer->n_in++].sequential = sequential;
}
/* Makes the parameters of a layer, LAYER.NAME for each input and LAYER.bias. n_in ends at the first unnamed.
 */
dvbf_layer dv_dense(dvbf_graph *g, const char *layer, dvbf_value out, dvbf_activation activation,
                    dvbf_first bias, const dv_dense_in in[4]);
dvbf_activation dv_hidden_activation(const dv_train_settings *s);
/* The value as a further input of a network's output, if the networks have linear paths; else none. */
dvbf_value dv_linear_path(const dvbf_model *m, dvbf_value value);

/* The controls that the emission of steps first .. first + steps - 1 sees: none without feedthrough. */
dvbf_value dv_emission_control(const dvbf_program *p, const dvbf_model *m, int first, int steps);

/* Records the emission of `steps` steps from `first` on, of a z [steps][rows][n_z] that has been written; its
 * values are in the program returned. */
dvbf_program dv_record_emission_of(const dvbf_program *p, const dvbf_model *m, int first, int steps,
                                   dvbf_value z);
/* Refuses a model whose paths have no weights. */
dvbf_status dv_model_needs_weights(const dvbf_model *m, dvbf_error *error);

/* Layers on top of each other, of which the last gives the output. dv_hidden begins with the hidden layers of
 * a network, NAME.hidden and NAME.hidden-2; dv_stack_output adds the linear layer NAME to them, whose first
 * weights have the standard deviation scale / sqrt(hidden). */
enum { DV_MOST_LAYERS = 3 };
typedef struct dv_stack {
  int count;
  dvbf_layer layer[DV_MOST_LAYERS];
} dv_stack;
dv_stack dv_hidden(dvbf_graph *g, const dv_train_settings *s, const char *name, int steps, dvbf_first bias,
                   const dv_dense_in in[4]);
void dv_stack_add(dv_stack *stack, dvbf_layer layer);
void dv_stack_output(dvbf_graph *g, dv_stack *stack, const char *name, dvbf_value out, dvbf_first bias,
                     double scale);
dvbf_value dv_stack_top(const dv_stack *stack); /* [steps][rows][...] */
void dv_stack_whole(dvbf_graph *g, dv_stack *stack);
void dv_stack_open(dvbf_graph *g, dv_stack *stack);
void dv_stack_step(dvbf_graph *g, const dv_stack *stack, int t);

/* A bidirectional recurrent network (recurrent.c). Parameters are NAME.forward.x, .h, .u, .bias, the same of
 * NAME.backward, and NAME.forward-2.forward, .backward, .h, .bias of a second layer. */
typedef struct dv_birnn {
  const char *name;
  dvbf_value x, u, mask;   /* [frames][rows][...]; u and mask may be none */
  double scale_x, scale_u; /* standard deviations of the first weights from x, and from u and mask */
  int hidden, layers;      /* units of each direction; 1 or 2 layers */
  dvbf_activation activation;
  bool fast_dropout; /* of rate `dropout`, on x and on the states */
  double dropout;
  const dvbf_model *model; /* whose settings say how long sequences are recorded (model/program.h) */
} dv_birnn;

/* States of every step, of the last layer. forward[frames - 1] and backward[0] have seen all frames. */
typedef struct dv_birnn_states {
  dvbf_value forward, backward;                   /* [frames][rows][hidden], means with fast dropout */
  dvbf_value forward_variance, backward_variance; /* of the dropped states, or none */
} dv_birnn_states;
/* The mask that a network on x reads; none if it reads none. */
dvbf_value dv_mask_input(const dvbf_program *p, const dvbf_model *m);
/* Rows of a training program that are samples of one sequence; 1 for models without that setting. */
int dv_program_samples(const dvbf_model *m);
/* Whether they are resampled at every step. */
bool dv_program_resamples(const dvbf_model *m);
/* The network of the settings, with one layer, on the first `frames` frames and, if wanted, their
 * controls. */
dv_birnn dv_birnn_on(dvbf_program *p, const dvbf_model *m, const char *name, int frames, bool control);
dv_birnn_states dv_record_birnn(dvbf_graph *g, const dv_birnn *net);
/* Backwards alone, without fast dropout: the states of every step and, behind the last, the zero state. */
dvbf_value dv_record_backward(dvbf_graph *g, const dv_birnn *net);
/* Input of q(w_t) of steps 0 .. T - 2 from frames after t + 1, [T - 1][rows][hidden]. */
dvbf_value dv_record_backward_network(dvbf_program *p, const dvbf_model *m);
/* head [steps][rows][2n] = (mu, ln sigma) from the states, which may be a view of some steps. Parameters are
 * NAME.output.forward, .backward and .bias or, if sigma^2 is propagated, .h and .bias of (h_t + g_t) W +
 * b. */
void dv_record_birnn_output(dvbf_graph *g, const dv_birnn *net, const dv_birnn_states *states,
                            dvbf_value head);

#define MODEL(object, name) extern const dvbf_model_class dv_model_##object;
#include "model/models.def"
#undef MODEL

/* Most dimensions of z (setting `latent`). */
enum { DV_MOST_LATENT = 1024 };
/* Centre and limit of every dimension of z, [2][n_z] (dvbf_state_range); NULL if the state has no limits.
 */
dvbf_real *dv_model_range(const dvbf_model *m);
/* Sets them so that z is unchanged within `multiple` times the range low .. high [n_z] around its middle. A
 * dimension that hardly moves gets a hundredth of the widest one, so that training can still use it. */
void dv_model_set_range(dvbf_model *m, const dvbf_real *low, const dvbf_real *high, double multiple);
/* Widens low .. high [n] to hold z; they begin as infinity and -infinity. */
void dv_model_widen_range(dvbf_real *low, dvbf_real *high, const dvbf_real *z, int n);

/* Ranges of the vector of parameters, in rising order. */
typedef struct dv_span {
  size_t first, count;
} dv_span;
typedef struct dv_part {
  dv_span *spans;
  size_t count;
} dv_part;
/* Frees the spans. */
void dv_part_clear(dv_part *part);

/* The linear gain of a filter (filter_gain.c). Refuses a model without one. */
dvbf_status dv_filter_gain_check(const dvbf_model *m, dvbf_error *error);
/* Its parameters and the spread of x or, once it is there, those of the spread of q(w) and of x. Free runs
 * without noise depend on none of them. */
dvbf_status dv_filter_gain_part(dv_part *out, const dvbf_model *m, bool spread, dvbf_error *error);
/* Before the training of a gain: keeps the gain of a linear start, as training left it, or starts with
 * none. */
void dv_filter_gain_begin(dvbf_model *m);
/* No gain, from which a gain can be learned: the mean of q(w) is e, as far as w has dimensions, and C = 0. */
void dv_filter_gain_clear(dvbf_model *m);
/* Makes the variance of the mean of q(w) 1, as that of the prior, and changes C so that the gain stays the
 * same; spreads get first values. e [n_x][n_x] are the second moments of the innovation. */
void dv_filter_gain_normalise(dvbf_model *m, const double *e);

/* The same as dvbf_saturate, for a z [n] of double precision; the deviations of a covariance [n][n] become at
 * most the limits, and its correlations stay. Nothing if range is NULL. */
void dv_range_bend(const dvbf_real *range, double *z, int n);
void dv_range_narrow(const dvbf_real *range, double *cov, int n);

/* The linear systems that make z' from z, and their limit, the setting `contraction`; false if the model
 * is not made of such. */
bool dv_model_systems(const dvbf_model *m, dv_systems *out);
/* Where they begin in its parameters: of a transition these are the means of v. */
dvbf_real *dv_model_systems_at(const dvbf_model *m);

/* The transition's prediction if recognition sees it, recorded step by step; with recognition-input =
 * innovation also the innovation e [T - 1][rows][n_x]. */
typedef struct dv_expected {
  dvbf_transition_values values; /* of the transition with w = 0 */
  void *memory;
  dv_stack emission; /* of e; without layers if there is none */
  dvbf_value e, range;
} dv_expected;
dv_expected dv_expected_open(dvbf_program *p, const dvbf_model *m, const dvbf_transition_values *values);
void dv_expected_step(dvbf_program *p, const dvbf_model *m, const dv_expected *expected, int t);

/* ---- Universal parameters outside of any program ---- */

/* Whether the model has a distribution q(v), and whether v is drawn from it at every step. */
bool dv_universal_drawn(const dvbf_model *model);
bool dv_universal_each_step(const dvbf_model *model);
/* KL(q(v) || p(v)) / N, the share of one sequence; 0 for point estimates. */
double dv_universal_kl(const dvbf_model *model);
/* v [n_v] ~ q(v), a draw of its own for each seed and step; the means if v is a point. */
void dv_universal_draw(const dvbf_model *model, uint64_t seed, uint32_t step, dvbf_real *v, size_t n_v);
void dv_universal_mean(const dvbf_model *model, dvbf_real *v, size_t n_v);

/* A draw for the steps from `first` on, with noise, used where the mask says so, and without a prior. */
dvbf_drawn dv_drawn_of(dvbf_program *p, int first, dvbf_value value, dvbf_value head);
/* Some of its steps. */
dvbf_drawn dv_drawn_steps(const dvbf_drawn *all, int first, int steps);
/* How a draw, or a state with a prior, follows from its heads and noise, with limits of the settings. */
dvbf_innovation dv_innovation_of(const dvbf_drawn *drawn, dvbf_value kl);
dvbf_state dv_state_of(const dvbf_drawn *drawn, dvbf_value kl);

/* DVBF's initial network and initial transition: z[0] and its kl. */
void dv_record_initial(dvbf_program *p, const dvbf_model *m);

/* The shipped transition of that setting. */
const dvbf_transition *dv_transition_of(const dv_train_settings *s);
