/* For authors of ops, transitions and models: how equations become a program.
 *
 * A model *records* its equations once, as coarse ops over slabs of values [steps][rows][cols] (time,
 * sequence, dimension). The graph then plans one arena, and running is a loop over the ops; backward is the
 * same loop reversed. Recording functions do not return failures: the graph keeps the first one and reports
 * it to the caller that started the recording, so equations need no checks between them.
 *
 *   dvbf_value h = dvbf_slab(g, T, 64);
 *   dvbf_layer layer = {.out = h, .activation = DVBF_RELU, .bias = b, .n_in = 1, .in = {{.x = z, .w = w}}};
 *   dvbf_layer_whole(g, &layer);
 */
#ifndef DVBF_GRAPH_H
#define DVBF_GRAPH_H

#include <dvbf/core.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef DV_DOUBLE
typedef double dvbf_real; /* gradient checks build the library this way */
#else
typedef float dvbf_real;
#endif

typedef struct dvbf_graph dvbf_graph;
typedef struct dvbf_run dvbf_run;

/* ---- Values ---------------------------------------------------------------------------------------------
 */

/* A view of a buffer: [steps][rows][cols]; each step is contiguous. buffer < 0 is "no value". */
typedef struct dvbf_value {
  int buffer, steps, rows, cols;
  size_t offset, stride; /* in reals: from the start of the buffer, and from step to step */
} dvbf_value;

static inline dvbf_value dvbf_none(void) {
  dvbf_value none = {-1, 0, 0, 0, 0, 0};
  return none;
}
#define DVBF_NONE dvbf_none()

/* [steps][rows of the shard][cols] with a gradient. */
DVBF_API dvbf_value dvbf_slab(dvbf_graph *g, int steps, int cols);
/* The same without a gradient: inputs, noise, scratch. */
DVBF_API dvbf_value dvbf_slab_constant(dvbf_graph *g, int steps, int cols);
/* [steps][1][count], shared by all sequences, with a gradient. */
DVBF_API dvbf_value dvbf_slab_shared(dvbf_graph *g, int steps, int count);
/* The same without a gradient. */
DVBF_API dvbf_value dvbf_slab_shared_constant(dvbf_graph *g, int steps, int count);
/* Keeps the buffer readable after a forward run; otherwise its memory may be used again. */
DVBF_API void dvbf_keep(dvbf_graph *g, dvbf_value value);
/* Keeps the gradient during the whole backward run and readable after it, for gradients that are seeded or
 * read. */
DVBF_API void dvbf_keep_gradient(dvbf_graph *g, dvbf_value value);

/* Steps first .. first + count - 1 of a value. */
static inline dvbf_value dvbf_steps(dvbf_value value, int first, int count) {
  value.offset += (size_t)first * value.stride;
  value.steps = count;
  return value;
}
/* The matrix [rows][cols] that begins `offset` reals into each step of a shared slab. */
DVBF_API dvbf_value dvbf_matrix(dvbf_value shared, size_t offset, int rows, int cols);

/* Initial values of a parameter: normal with mean `mean` and standard deviation `scale`; exactly `mean` if
 * the scale is 0. */
typedef struct dvbf_first {
  double mean, scale;
  bool frozen;          /* never trained */
  const double *values; /* [rows][cols] instead of `mean` for each entry, or NULL; read while recording */
} dvbf_first;

/* A parameter of the model. Programs of other shapes recorded for the same model find it by name. */
DVBF_API dvbf_value dvbf_parameter(dvbf_graph *g, const char *name, int rows, int cols, dvbf_first first);

/* Makes the recording fail with a sentence. */
DVBF_API void dvbf_refuse(dvbf_graph *g, const char *format, ...);

/* ---- Ops ------------------------------------------------------------------------------------------------
 */

enum { DVBF_MAX_IN = 15, DVBF_MAX_OUT = 4 };

typedef struct dvbf_op dvbf_op;
typedef struct dvbf_code dvbf_code;

/* forward writes the values of `out` from those of `in`; backward *adds* to the gradients of `in` from those
 * of `out`. Either may be NULL. emit describes forward for one row in simple statements (see "Export"
 * below); a program with an op without it cannot be exported. */
typedef struct dvbf_op_class {
  const char *name;
  void (*forward)(const dvbf_op *op, dvbf_run *run);
  void (*backward)(const dvbf_op *op, dvbf_run *run);
  void (*emit)(const dvbf_op *op, dvbf_code *code);
} dvbf_op_class;

struct dvbf_op {
  const dvbf_op_class *type;
  const void *data; /* the op's own constants, copied when recorded */
  int number;       /* position in the program */
  int n_in, n_out;
  dvbf_value in[DVBF_MAX_IN], out[DVBF_MAX_OUT];
};

/* Records an op. in and out list every value that the op reads or writes, forward or backward, and it must
 * take them from there when it runs: a debug build ends the process if an op touches another value. data may
 * be NULL. */
DVBF_API void dvbf_record(dvbf_graph *g, const dvbf_op_class *type, int n_in, const dvbf_value *in, int n_out,
                          const dvbf_value *out, const void *data, size_t data_size);

/* While running: the memory of a value, and of its gradient (NULL when it has none). */
DVBF_API dvbf_real *dvbf_at(const dvbf_run *run, dvbf_value value);
DVBF_API dvbf_real *dvbf_gradient_at(const dvbf_run *run, dvbf_value value);

/* ---- Export ---------------------------------------------------------------------------------------------
 */

/* A trained program can be written in another language, as a list of simple statements over tables of
 * numbers. `emit` adds the statements of an op, for a program of one row, so a value [steps][1][cols] is a
 * table of `steps` rows. Derivatives are computed from the statements. Like recording functions, these return
 * no failures: the code keeps the first one. Values used only in training, such as a KL, are left out.
 *
 *   static void double_emit(const dvbf_op *op, dvbf_code *code) {    // out = 2 x
 *     dvbf_expr x = dvbf_code_read(code, dvbf_place_of(op->in[0])), two = dvbf_code_number(code, 2);
 *     dvbf_code_each(code, dvbf_place_of(op->out[0]), op->in[0].steps, op->in[0].cols,
 *                    dvbf_code_binary(code, DVBF_MULTIPLY, two, x));
 *   }
 */

/* Location of a table: (r, c) is `offset + r * by_row + c * by_col` reals into a buffer. */
typedef struct dvbf_place {
  int buffer;
  size_t offset, by_row, by_col;
} dvbf_place;

static inline dvbf_place dvbf_place_of(dvbf_value value) {
  dvbf_place place = {value.buffer, value.offset, value.stride, 1};
  return place;
}
/* A temporary table, not part of any value of the program. */
DVBF_API dvbf_place dvbf_code_room(dvbf_code *code, int rows, int cols);

/* An expression in the numbers at (r, c) of several tables. */
typedef int dvbf_expr;

typedef enum dvbf_function {
  DVBF_ADD,
  DVBF_SUBTRACT,
  DVBF_MULTIPLY,
  DVBF_DIVIDE,
  DVBF_LARGER,
  DVBF_SMALLER, /* DVBF_LARGER, _SMALLER: maximum and minimum; the following functions have one argument */
  DVBF_EXP_OF,
  DVBF_LOG_OF,
  DVBF_SQRT_OF,
  DVBF_TANH_OF,
  DVBF_SIGMOID_OF,
  DVBF_SIN_OF,
  DVBF_COS_OF,
  DVBF_SIZE_OF /* |a| */
} dvbf_function;

DVBF_API dvbf_expr dvbf_code_read(dvbf_code *code, dvbf_place place);
DVBF_API dvbf_expr dvbf_code_number(dvbf_code *code, double number);
DVBF_API dvbf_expr dvbf_code_unary(dvbf_code *code, dvbf_function function, dvbf_expr a);
DVBF_API dvbf_expr dvbf_code_binary(dvbf_code *code, dvbf_function function, dvbf_expr a, dvbf_expr b);
/* yes if test > 0, else no. */
DVBF_API dvbf_expr dvbf_code_choose(dvbf_code *code, dvbf_expr test, dvbf_expr yes, dvbf_expr no);

/* out(r, c) = e(r, c). `out` may be read at the same (r, c). */
DVBF_API void dvbf_code_each(dvbf_code *code, dvbf_place out, int rows, int cols, dvbf_expr e);
/* out(r, 0) = sum, or maximum, over c of e(r, c); `out` must not be read. */
DVBF_API void dvbf_code_sum(dvbf_code *code, dvbf_place out, int rows, int cols, dvbf_expr e);
DVBF_API void dvbf_code_most(dvbf_code *code, dvbf_place out, int rows, int cols, dvbf_expr e);
/* out [rows][n] += x [rows][m] w [m][n]. w is contiguous, row after row. */
DVBF_API void dvbf_code_product(dvbf_code *code, dvbf_place out, dvbf_place x, dvbf_place w, int rows, int m,
                                int n);
/* out [steps][1][n] are standard normal numbers of stream `number` of the program. */
DVBF_API void dvbf_code_noise(dvbf_code *code, dvbf_value out, int number, bool shared);
/* Makes the export fail with a sentence. */
DVBF_API void dvbf_code_refuse(dvbf_code *code, const char *format, ...);

/* ---- Scalars and terms ----------------------------------------------------------------------------------
 */

/* A number that changes between runs. Returns its index in the program, by which an op asks for it when it
 * runs. It is `otherwise` unless a value is given. */
DVBF_API int dvbf_scalar(dvbf_graph *g, const char *name, double otherwise);
DVBF_API double dvbf_scalar_at(const dvbf_run *run, int scalar);
/* Scalars set by training. */
#define DVBF_TEMPERATURE "temperature"          /* c of the annealed bound */
#define DVBF_LOG_SIGMA_FLOOR "log-sigma-floor"  /* lowest ln sigma of the emission */
#define DVBF_FILTER_DROPOUT "filter-dropout"    /* fraction of the steps whose w comes from the prior */
#define DVBF_FILTER_DROPOUT_RUN "dropout-run"   /* mean number of dropped steps in a row */
#define DVBF_FILTER_DROPOUT_ZERO "dropout-zero" /* 1: w of dropped steps is 0 instead */
#define DVBF_FILTER_WAIT "filter-wait"          /* first step at which q is used */
#define DVBF_LOOK_AHEAD_DROPOUT "look-ahead" /* fraction of the sequences whose q(w) sees no later frames */
#define DVBF_SEQUENCES "sequences"           /* N, the number of sequences in the data */

/* A term of the objective: training minimises the sum over terms of factor * term. Returns its index; the
 * same name gives the same term. Terms of the built-in models: */
#define DVBF_RECONSTRUCTION "reconstruction" /* ln p(x | z), with factor -1 */
#define DVBF_IMPORTANCE "importance"         /* ln of the mean weight of several samples, with factor -1 */
#define DVBF_KL_W "kl_w"                     /* KL of w or z */
#define DVBF_KL_V "kl_v"                     /* KL of v / N */
#define DVBF_ONE_STEP "one_step"             /* ln p(x_{t+1} | z_{t+1} with w = 0), with factor -1 */
DVBF_API int dvbf_term(dvbf_graph *g, const char *name, double factor);
/* Adds value [steps][rows][1], weighted by weight [1][rows][1], to a term. In the objective it is multiplied
 * by the scalar with that index; -1: by none. */
DVBF_API void dvbf_sum(dvbf_graph *g, int term, dvbf_value value, dvbf_value weight, int scalar);
/* For ops that contribute to a term: dvbf_term_add adds to it in the forward run; dvbf_term_factor is the
 * derivative of the objective with respect to the term, for the backward run. */
DVBF_API void dvbf_term_add(dvbf_run *run, int term, double value);
DVBF_API double dvbf_term_factor(const dvbf_run *run, int term);

/* ---- Built-in ops ----------------------------------------------------------------------------------------
 */

typedef enum dvbf_activation {
  DVBF_LINEAR,
  DVBF_RELU,
  DVBF_TANH,
  DVBF_SIGMOID,
  DVBF_SOFTMAX /* over each row */
} dvbf_activation;

/* out = activation(bias + sum_k x_k w_k), step by step or for all steps at once, without concatenation.
 * A sequential input is multiplied when its step runs, all others for all steps at once when the layer
 * opens. A weight of more than one step has one matrix per step. */
typedef struct dvbf_layer {
  dvbf_value out;  /* [steps][rows][n] */
  dvbf_value bias; /* [1][n] or none */
  dvbf_activation activation;
  int n_in;
  struct {
    dvbf_value x; /* [steps][rows][m]; the first may be [steps][1][m] in programs without gradients whose
                     layer has a bias */
    dvbf_value w; /* [m][n] */
    bool sequential;
    dvbf_value transposed; /* of w; made when the layer is recorded */
  } in[4];
} dvbf_layer;

DVBF_API void dvbf_layer_whole(dvbf_graph *g, dvbf_layer *layer);
/* Opens a layer whose steps are then recorded one by one, in the order in which they run. */
DVBF_API void dvbf_layer_open(dvbf_graph *g, dvbf_layer *layer);
DVBF_API void dvbf_layer_step(dvbf_graph *g, const dvbf_layer *layer, int t);

/* The pixels of an image are the columns of a value, line by line, with the channels of a pixel adjacent. */
typedef struct dvbf_image {
  int height, width, channels;
} dvbf_image;

/* out = activation(bias + w * x): a strided convolution from the image `large` to a small image with
 * `channels` channels, or its transpose, from the small image to the large one. */
typedef struct dvbf_convolution {
  dvbf_value x, out; /* [steps][rows][pixels of one image], [steps][rows][pixels of the other] */
  dvbf_value w;      /* [size * size * channels of the large image][channels] */
  dvbf_value bias;   /* [1][channels of out], [1][pixels of out] or none */
  dvbf_image large;
  int channels; /* of the small image */
  int size, stride, padding;
  bool transposed;
  dvbf_activation activation; /* not softmax */
} dvbf_convolution;

/* Size of the small image. */
DVBF_API dvbf_image dvbf_convolved(dvbf_image large, int size, int stride, int padding, int channels);
DVBF_API void dvbf_convolve(dvbf_graph *g, const dvbf_convolution *convolution);

/* Mixture of linear systems: next = [z +] sum_i alpha_i (A_i z + B_i u + b_i + C_i w).
 * v holds the systems as [n_in][n_next][M], rows of z, then u, then the constant (if any), then w. */
typedef struct dvbf_mixture {
  dvbf_value z, u, w; /* [steps][rows][...]; u may be none */
  dvbf_value alpha;   /* [steps][rows][M], or none for M = 1 */
  dvbf_value v;       /* [1 or steps][1][n_in * n_next * M] */
  dvbf_value next;    /* [steps][rows][n_next] */
  dvbf_value parts;   /* [steps][rows][n_next * M] scratch without gradient */
  int systems;
  bool residual, affine;
} dvbf_mixture;

DVBF_API void dvbf_mixture_open(dvbf_graph *g, const dvbf_mixture *mixture);
DVBF_API void dvbf_mixture_step(dvbf_graph *g, const dvbf_mixture *mixture, int t);

/* out = a + b, same shape. */
DVBF_API void dvbf_add(dvbf_graph *g, dvbf_value out, dvbf_value a, dvbf_value b);
/* out = 0. */
DVBF_API void dvbf_zero(dvbf_graph *g, dvbf_value out);
/* Limits each entry of the gradient that flows back through `value` to plus or minus `limit`. */
DVBF_API void dvbf_clip_gradient(dvbf_graph *g, dvbf_value value, double limit);
/* Limits the first n columns of `value` in place, by range [2][n] with centre c and limit L: the identity
 * (bit for bit) within L of c, bent smoothly and monotonically beyond, never further than 2 L. An op that
 * writes `value` before must not read it in the backward run (mixtures, sums and linear layers do not). Does
 * nothing if range is none. */
DVBF_API void dvbf_saturate(dvbf_graph *g, dvbf_value value, dvbf_value range);
/* out[b] = (x[0][b], x[1][b], ...): concatenates the steps of a slab, [1][rows][steps * cols]. */
DVBF_API void dvbf_side_by_side(dvbf_graph *g, dvbf_value out, dvbf_value x);

/* ---- Ops of a bound -------------------------------------------------------------------------------------
 */

/* out [steps][rows][cols] = standard normal numbers, keyed by seed, update, sequence, op and step, or
 * shared: the same for all sequences. 0 in a run without noise. */
DVBF_API void dvbf_noise(dvbf_graph *g, dvbf_value out, bool shared);

/* use [steps][rows][1] = 1 if q sees an observation (mask = 1) and filter dropout does not drop the step; -1
 * if filter dropout drops it and w is to be 0; else 0, also in the first steps that wait (DVBF_FILTER_WAIT).
 */
DVBF_API void dvbf_filter_use(dvbf_graph *g, dvbf_value use, dvbf_value mask);

/* A Gaussian innovation: head [steps][rows][2n] = (mu, ln sigma), ln sigma kept inside [low, high].
 *   w = mu + sigma eps      kl = sum_n (mu^2 + sigma^2 - 1) / 2 - ln sigma
 * With use = 0, or without a head: w = eps, from the prior, and kl = 0. With use < 0: w = 0, kl = 0. */
typedef struct dvbf_innovation {
  dvbf_value w, kl;            /* [steps][rows][n], [steps][rows][1] */
  dvbf_value head, noise, use; /* use may be none: always from q */
  double low, high;
} dvbf_innovation;
/* Step t, or all steps with t < 0. */
DVBF_API void dvbf_innovation_step(dvbf_graph *g, const dvbf_innovation *innovation, int t);

/* A Gaussian state. q and its prior p have heads: p [steps][rows][2n] = (mu_p, ln sigma_p), q likewise;
 * every ln sigma is kept inside [low, high].
 *   use = 1:  z = mu_q + sigma_q eps    kl = KL(N(mu_q, sigma_q^2) || N(mu_p, sigma_p^2))
 *   use = 0:  z = mu_p + sigma_p eps    kl = 0
 *   use < 0:  z = mu_p                  kl = 0 */
typedef struct dvbf_state {
  dvbf_value z, kl; /* [steps][rows][n], [steps][rows][1] */
  dvbf_value q, p, noise, use;
  int seen; /* q has heads for steps 0 .. seen - 1; later steps come from p, whatever `use` is */
  double low, high;
} dvbf_state;
/* z of step t. With t < 0: z of all steps from q alone, without p and `use`. */
DVBF_API void dvbf_state_sample(dvbf_graph *g, const dvbf_state *state, int t);
/* kl of all steps. */
DVBF_API void dvbf_state_kl(dvbf_graph *g, const dvbf_state *state);

/* ln_p [steps][rows][1] = sum_i ln N(x_i; mean_i, sigma_i^2), 0 where mask = 0, with ln sigma = log_sigma
 * ([1][1], [1][n] or as x), but never below the scalar DVBF_LOG_SIGMA_FLOOR. mask is [steps][rows][1], or
 * shaped as x if frames may be partly observed. x and mask have no gradient. */
DVBF_API void dvbf_gaussian(dvbf_graph *g, dvbf_value ln_p, dvbf_value x, dvbf_value mean,
                            dvbf_value log_sigma, dvbf_value mask);

/* Universal parameters: v [1 or steps][1][n] = mu + sigma eps, with KL(q(v) || p(v)) / N as the term "kl_v"
 * of the objective. prior [1][2] = (m, ln s). */
typedef struct dvbf_universal {
  dvbf_value v, mean, log_sigma, prior, noise;
  dvbf_value weight; /* [1][rows][1] sequences of the shard */
} dvbf_universal;
DVBF_API void dvbf_universal_sample(dvbf_graph *g, const dvbf_universal *universal);

/* ---- Transitions ----------------------------------------------------------------------------------------
 */

/* Values of a transition. Step t reads z[t], u[t] and w[t] and writes next[t], which is z[t + 1], or its
 * prediction if w is 0. */
typedef struct dvbf_transition_values {
  int steps; /* to record: T - 1 */
  int n_z, n_u, n_w;
  dvbf_value z;    /* [T][rows][n_z] */
  dvbf_value next; /* [steps][rows][n_z] */
  dvbf_value u;    /* [T][rows][n_u] or none */
  dvbf_value w;    /* [steps][rows][n_w] */
  dvbf_value v;    /* [1 or steps][1][n_v] universal parameters, drawn for this update */
} dvbf_transition_values;

/* Dynamics z' = f(z, u, w, v) as a plug-in. */
typedef struct dvbf_transition {
  const char *name;
  void *user_data; /* passed to the functions below */
  /* Number n_v of universal parameters, may be 0. `settings` is of the table "train". */
  size_t (*universal)(const struct dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u,
                      int n_w);
  /* Initial means of v; normal(k) is a fixed standard normal number for entry k. NULL if n_v = 0. */
  void (*first)(const struct dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u, int n_w,
                double *mean, double (*normal)(size_t k, void *random), void *random);
  /* Records what all steps share. Returns memory for `step`, allocated by dvbf_remember, or NULL. */
  void *(*open)(const struct dvbf_transition *self, dvbf_graph *g, const dvbf_settings *settings,
                const dvbf_transition_values *values);
  /* Records step t, which writes step t of values->next. */
  void (*step)(const struct dvbf_transition *self, dvbf_graph *g, const dvbf_transition_values *values,
               void *memory, int t);
  /* z' is an affine function of w for given z, u and v. Smoothing then knows p(z' | z, u, v) if w has as
   * many dimensions as z. */
  bool affine_in_w;
  /* Number of the last entries of v that have no effect if w = 0, such as those of C; NULL: none. The last
   * phase of training (gain-updates) trains these alone. */
  size_t (*gain)(const struct dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u,
                 int n_w);
  /* Number M of linear systems, if z' = sum_i alpha_i S_i z + terms without z, the alpha_i >= 0 add up to 1,
   * and v begins with A_1 .. A_M as [n_z][n_z][M] (z' = z A_i with z a row): S_i = A_i or, with the setting
   * `residual`, I + A_i. The setting `contraction` then bounds them. NULL: there are none. */
  int (*systems)(const struct dvbf_transition *self, const dvbf_settings *settings);
} dvbf_transition;

/* Memory that lives as long as the graph. Never NULL for a valid size; NULL makes the recording fail. */
DVBF_API void *dvbf_remember(dvbf_graph *g, const void *content, size_t size);

/* Loads a model that was trained with a custom transition (dvbf_train_with of <dvbf/dvbf.h>). The transition
 * must outlive the model. */
DVBF_API dvbf_status dvbf_model_load_with(dvbf_model **out, const dvbf_transition *transition,
                                          const char *path, dvbf_error *error);

/* ---- Models ---------------------------------------------------------------------------------------------
 */

/* What a model draws at every step: from q if x is observed, else from the prior. */
typedef struct dvbf_drawn {
  dvbf_value value; /* [steps][rows][n] */
  dvbf_value head;  /* (mu, ln sigma) of q, [steps or fewer][rows][2n]; none: always from the prior */
  dvbf_value noise; /* [steps][rows][n] standard normal */
  dvbf_value use;   /* [steps][rows][1], > 0 if drawn from q; none: always */
  dvbf_value prior; /* (mu, ln sigma), [steps][rows][2n]; none: N(0, I) */
} dvbf_drawn;

/* A model's equations for sequences of T steps. The recording functions of a model read the inputs
 * and write the results here; results that a model does not have stay none. */
typedef struct dvbf_program {
  dvbf_graph *graph;
  int steps, rows; /* T, and sequences of a shard */
  int observe;     /* frames that may be observed: x of later steps must not be used; 0: none */
  bool mean_v;     /* v stays at its mean */
  bool given_v;    /* v is an input */
  bool gaps;       /* frames may be partly observed */
  bool one_x;      /* x is the same for all rows */
  int rank;        /* of the low-rank input layer plane_in, plane_out; 0: all of x is read */
  /* Inputs. */
  dvbf_value x;      /* [T][rows][n_x], or [T][1][n_x] */
  dvbf_value u;      /* [T][rows][n_u] or none */
  dvbf_value mask;   /* [T][rows][1], 1 where any of x is observed */
  dvbf_value seen;   /* [T][rows][n_x], 1 for each observed value; none unless requested */
  dvbf_value weight; /* [1][rows][1], 0 for rows that pad a shard */
  dvbf_value sight;  /* convolutional features of x, [T][rows][...]; none until requested */
  /* Results: z must be written, kl unless the model has none. */
  dvbf_value z;                   /* [T][rows][n_z] */
  dvbf_value kl;                  /* [T][rows][1] of what is drawn at each step */
  dvbf_drawn first, later;        /* at step 0, and at steps 1 .. T - 1 */
  dvbf_value v, noise_v;          /* universal parameters [1][1][n_v] if given, else their noise */
  dvbf_value plane_in, plane_out; /* [n_x][rank] and [rank][hidden], each in one row */
  /* If recognition sees the innovation: z_{t+1} [T - 1][rows][n_z] with w = 0, and x_{t+1} minus the mean of
   * its emission, [T - 1][rows][n_x]. */
  dvbf_value predicted, innovation;
  /* Values of the emission, which the library records. */
  dvbf_value output;   /* [T][rows][n_x]: means, or what the density computes them from */
  dvbf_value shape[2]; /* further parameters of the density: one frame for all steps, or one per step */
  dvbf_value ln_p;     /* [T][rows][1] */
} dvbf_program;

/* The range [2][n_z] of z, for dvbf_saturate: a parameter that training measures and no gradient changes.
 * None if the setting `state-limit` is 0. */
DVBF_API dvbf_value dvbf_state_range(dvbf_graph *g, const dvbf_model *m);

/* The observations that z_t and x_t are conditioned on. */
typedef enum dvbf_given {
  DVBF_GIVEN_BEFORE, /* x of the steps before t */
  DVBF_GIVEN_UP_TO,  /* x of the steps up to t */
  DVBF_GIVEN_ALL     /* x of all steps */
} dvbf_given;

/* A request for exact inference on one sequence. x and u are in units of the data. */
typedef struct dvbf_exact {
  const float *x; /* [observe][n_x], NaN where missing */
  const float *u; /* [steps][n_u] */
  int steps, observe;
  int first; /* results are for steps first .. steps - 1 */
  dvbf_given given;
  bool noise;           /* x_deviation and x_samples include the observation noise */
  size_t samples, room; /* paths to draw, and steps allocated for each in z and x_samples */
  uint64_t seed;
  uint32_t sequence; /* part of the key of the samples */
  /* Results; arrays that are NULL are not computed. */
  float *z_mean, *z_deviation; /* [steps - first][n_z] */
  float *x_mean, *x_deviation; /* [steps - first][n_x] */
  float *z, *x_samples;        /* [samples][room][n_z], [samples][room][n_x] */
  double *ln_p;                /* [steps - first] ln p(x_t | x before t), 0 without an observation */
} dvbf_exact;

struct dv_state_space; /* inside the library */

/* A model class: how z follows from x and u. The library adds the emission, the bound, training and
 * inference. */
typedef struct dvbf_model_class {
  const char *name; /* as in --model */
  void *user_data;
  /* Sets of settings that it uses, separated by spaces, as `SET` and `FOR` name them in the tables of
   * settings: "networks", "training", "dynamics". A setting of another set is refused if the user names it.
   * NULL: it may use all. */
  const char *settings;
  bool timeless;         /* the model has no dynamics: a sequence may have one step */
  bool takes_transition; /* a dvbf_transition can be plugged in */
  const char *system;    /* parameter A [n_z][n_z] of a model with z' = z A + terms without z; NULL: none */
  /* If `step` is NULL, the reason why it cannot filter: the end of the sentence "the model NAME cannot
   * filter: ..."
   */
  const char *no_filter;
  /* Dimension of the innovation w; NULL: there is none, and z itself is drawn. */
  int (*innovations)(const struct dvbf_model_class *self, const dvbf_settings *settings);
  /* Number of frames that z_1 is computed from; NULL or 0: any number. Number of frames to observe before
   * anything can be predicted; NULL: 1. */
  int (*start_frames)(const struct dvbf_model_class *self, const dvbf_settings *settings);
  int (*frames_needed)(const struct dvbf_model_class *self, const dvbf_settings *settings);
  /* Whether the rows of a program share a draw, such as one v; NULL: they do not. */
  bool (*rows_share)(const struct dvbf_model_class *self, const dvbf_settings *settings);
  /* Completes settings that depend on the training data, whose sequences have up to `steps` steps; may be
   * NULL. */
  dvbf_status (*settle)(const struct dvbf_model_class *self, dvbf_settings *settings, size_t steps,
                        dvbf_error *error);
  /* Recording functions. whole: a whole sequence. start: z[0] from all frames of the program. step: z[1]
   * from z[0], u[0] and x[1]. move: z[1] from z[0], u[0] and later.noise, which it creates and the caller
   * fills. All but the first may be NULL. */
  void (*whole)(const struct dvbf_model_class *self, dvbf_program *p, const dvbf_model *m);
  void (*start)(const struct dvbf_model_class *self, dvbf_program *p, const dvbf_model *m);
  void (*step)(const struct dvbf_model_class *self, dvbf_program *p, const dvbf_model *m);
  void (*move)(const struct dvbf_model_class *self, dvbf_program *p, const dvbf_model *m);
  /* Records p->output from z and u, if the emission is not the library's network. It also records p->ln_p
   * and p->shape, as the density wants them: `gaussian` has ln sigma in shape[0]. With `exact` it leaves
   * these out, and `whole` records ln_p. */
  void (*emission)(const struct dvbf_model_class *self, dvbf_program *p, const dvbf_model *m);
  /* Exact inference, for a model that needs no samples; all five functions are then required. The online
   * filter lives in `online_size` bytes of memory of the caller. online_begin initialises it. online_step
   * takes x [n_x], NULL if missing, and u [n_u], as dvbf_filter_step does: the control since the previous
   * step or, with the setting feedthrough, that of the same row; results are mean [n_z], deviation [n_z] and
   * samples z [samples][n_z] of z_t. online_ahead advances by one step without x and gives moments of z and
   * of x, the latter with observation noise on request. The caller restores the memory afterwards. */
  dvbf_status (*exact)(const struct dvbf_model_class *self, const dvbf_model *m, const dvbf_exact *asked,
                       dvbf_error *error);
  size_t (*online_size)(const struct dvbf_model_class *self, const dvbf_model *m);
  void (*online_begin)(const struct dvbf_model_class *self, const dvbf_model *m, void *memory, uint64_t seed);
  void (*online_step)(const struct dvbf_model_class *self, const dvbf_model *m, void *memory, const float *x,
                      const float *u, size_t samples, float *mean, float *deviation, float *z);
  void (*online_ahead)(const struct dvbf_model_class *self, const dvbf_model *m, void *memory, const float *u,
                       bool noise, float *mean, float *deviation, double *x_mean, double *x_variance);
  /* For built-in models that are linear systems with normal noise: that system, for export. */
  void (*exact_system)(const dvbf_model *m, struct dv_state_space *out);
  /* Dimension of the state z; NULL: the setting `latent`. The emission sees the first `emits` dimensions;
   * NULL: all. */
  int (*states)(const struct dvbf_model_class *self, const dvbf_settings *settings);
  int (*emits)(const struct dvbf_model_class *self, const dvbf_settings *settings);
  /* `step` also reads x[0], from which z[0] was computed. */
  bool reads_frame;
  /* The reason why paths cannot be weighted, so that there are no particles: the end of the sentence "the
   * model NAME has no particles: ..." NULL: they can. */
  const char *no_weights;
} dvbf_model_class;

/* Loads a model of a custom class (dvbf_train_own of <dvbf/dvbf.h>). The class must outlive the model. */
DVBF_API dvbf_status dvbf_model_load_own(dvbf_model **out, const dvbf_model_class *own, const char *path,
                                         dvbf_error *error);

#ifdef __cplusplus
}
#endif
#endif
