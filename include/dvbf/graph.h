/* For authors of ops, transitions and models: how equations become a program.
 *
 * A model *records* its equations once, as coarse ops over slabs of values [steps][rows][cols] (time,
 * sequence, dimension). The graph then plans one arena, and running is a loop over the ops; backward is the
 * same loop reversed. Recording functions do not return failures: the first one sticks to the graph and ends
 * up in the error of whoever asked for the recording, so equations read without checks between them.
 *
 *   dvbf_value h = dvbf_slab(g, T, 64);
 *   dvbf_layer layer = {.out = h, .activation = DVBF_RELU, .bias = b, .n_in = 1, .in = {{.x = z, .w = w}}};
 *   dvbf_layer_whole(g, &layer);
 */
#ifndef DVBF_GRAPH_H
#define DVBF_GRAPH_H

#include <dvbf/dvbf.h>

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

/* Steps first .. first + count - 1 of a value. */
static inline dvbf_value dvbf_steps(dvbf_value value, int first, int count) {
  value.offset += (size_t)first * value.stride;
  value.steps = count;
  return value;
}
/* The matrix [rows][cols] that begins `offset` reals into each step of a shared slab. */
DVBF_API dvbf_value dvbf_matrix(dvbf_value shared, size_t offset, int rows, int cols);

/* First values of a parameter: normal with standard deviation `scale` around `mean`. A scale of 0 is exact.
 */
typedef struct dvbf_first {
  double mean, scale;
  bool frozen;          /* never trained */
  const double *values; /* [rows][cols] instead of `mean` for each entry, or NULL; read while recording */
} dvbf_first;

/* A parameter of the model, found by name when a program of another shape is recorded for the same model. */
DVBF_API dvbf_value dvbf_parameter(dvbf_graph *g, const char *name, int rows, int cols, dvbf_first first);

/* Makes the recording fail with a sentence. */
DVBF_API void dvbf_refuse(dvbf_graph *g, const char *format, ...);

/* ---- Ops ------------------------------------------------------------------------------------------------
 */

enum { DVBF_MAX_IN = 14, DVBF_MAX_OUT = 4 };

typedef struct dvbf_op dvbf_op;

/* forward writes the values of `out` from those of `in`; backward *adds* to the gradients of `in` from those
 * of `out`. Either may be NULL. */
typedef struct dvbf_op_class {
  const char *name;
  void (*forward)(const dvbf_op *op, dvbf_run *run);
  void (*backward)(const dvbf_op *op, dvbf_run *run);
} dvbf_op_class;

struct dvbf_op {
  const dvbf_op_class *type;
  const void *data; /* the op's own constants, copied when recorded */
  int number;       /* position in the program */
  int n_in, n_out;
  dvbf_value in[DVBF_MAX_IN], out[DVBF_MAX_OUT];
};

/* Records an op. in and out list every value the op reads or writes, forward or backward; data may be NULL.
 */
DVBF_API void dvbf_record(dvbf_graph *g, const dvbf_op_class *type, int n_in, const dvbf_value *in, int n_out,
                          const dvbf_value *out, const void *data, size_t data_size);

/* While running: the memory of a value, and of its gradient (NULL when it has none). */
DVBF_API dvbf_real *dvbf_at(const dvbf_run *run, dvbf_value value);
DVBF_API dvbf_real *dvbf_gradient_at(const dvbf_run *run, dvbf_value value);

/* ---- Shipped ops ----------------------------------------------------------------------------------------
 */

typedef enum dvbf_activation {
  DVBF_LINEAR,
  DVBF_RELU,
  DVBF_TANH,
  DVBF_SIGMOID,
  DVBF_SOFTMAX /* over each row */
} dvbf_activation;

/* out = activation(bias + sum_k x_k w_k), step by step or for all steps at once, without concatenation.
 * A sequential input is multiplied when its step runs; all others for all steps at once, when the layer
 * opens. A weight of more than one step has a matrix for each step. */
typedef struct dvbf_layer {
  dvbf_value out;  /* [steps][rows][n] */
  dvbf_value bias; /* [1][n] or none */
  dvbf_activation activation;
  int n_in;
  struct {
    dvbf_value x; /* [steps][rows][m]; the first, without training and beside a bias, also [steps][1][m] */
    dvbf_value w; /* [m][n] */
    bool sequential;
    dvbf_value turned; /* w transposed; made when the layer is recorded */
  } in[4];
} dvbf_layer;

DVBF_API void dvbf_layer_whole(dvbf_graph *g, dvbf_layer *layer);
/* Opens a layer whose steps are then recorded one by one, in the order in which they run. */
DVBF_API void dvbf_layer_open(dvbf_graph *g, dvbf_layer *layer);
DVBF_API void dvbf_layer_step(dvbf_graph *g, const dvbf_layer *layer, int t);

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
/* out[b] = (x[0][b], x[1][b], ...): the steps of a slab side by side, [1][rows][steps * cols]. */
DVBF_API void dvbf_side_by_side(dvbf_graph *g, dvbf_value out, dvbf_value x);

/* ---- Transitions ----------------------------------------------------------------------------------------
 */

/* What a transition sees. z has one step more than it has steps to make: step t writes z[t + 1]. */
typedef struct dvbf_transition_values {
  int steps; /* to make: T - 1 */
  int n_z, n_u, n_w;
  dvbf_value z; /* [T][rows][n_z] */
  dvbf_value u; /* [T][rows][n_u] or none */
  dvbf_value w; /* [steps][rows][n_w] */
  dvbf_value v; /* [1 or steps][1][n_v] universal parameters, drawn for this update */
} dvbf_transition_values;

/* Dynamics z' = f(z, u, w, v) as a plug-in. */
typedef struct dvbf_transition {
  const char *name;
  void *user_data; /* handed to the functions below */
  /* Number n_v of universal parameters, may be 0. `settings` is of the table "train". */
  size_t (*universal)(const struct dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u,
                      int n_w);
  /* First means of v; normal(k) is a fixed standard normal number for entry k. NULL when n_v = 0. */
  void (*first)(const struct dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u, int n_w,
                double *mean, double (*normal)(size_t k, void *random), void *random);
  /* Records what all steps share. Returns memory for `step`, from dvbf_remember, or NULL. */
  void *(*open)(const struct dvbf_transition *self, dvbf_graph *g, const dvbf_settings *settings,
                const dvbf_transition_values *values);
  /* Records step t, which writes values->z step t + 1. */
  void (*step)(const struct dvbf_transition *self, dvbf_graph *g, const dvbf_transition_values *values,
               void *memory, int t);
} dvbf_transition;

/* Memory that lives as long as the graph. Never NULL for a size that fits; NULL makes the recording fail. */
DVBF_API void *dvbf_remember(dvbf_graph *g, const void *content, size_t size);

/* Trains a dvbf with a transition of one's own; a dkf takes none. It must outlive the model. */
DVBF_API dvbf_status dvbf_train_with(dvbf_model **out, const dvbf_transition *transition,
                                     const dvbf_settings *settings, const dvbf_data *data,
                                     const dvbf_train_options *options, dvbf_error *error);
/* Loads a model that was trained with one. */
DVBF_API dvbf_status dvbf_model_load_with(dvbf_model **out, const dvbf_transition *transition,
                                          const char *path, dvbf_error *error);

#ifdef __cplusplus
}
#endif
#endif
