/* The engine: a program is recorded (include/dvbf/graph.h), planned, and run. This header has parameters,
 * programs, planning, runs and seeds for backward. */
#pragma once

#include "engine/kernels.h"

#include <dvbf/graph.h>

/* ---- Parameters: all values of a model in one vector ---- */

typedef struct dv_parameter {
  char name[48];
  int rows, cols;
  size_t offset;
  bool frozen;
} dv_parameter;

typedef struct dv_parameters {
  dv_parameter *list;
  size_t count;
  dvbf_real *values; /* [size] */
  size_t size, room;
  size_t most;   /* reals that all together may have, being those of a file; 0: no limit */
  bool complete; /* no further parameter may be added: they come from a file or are in training */
  uint64_t seed; /* of first values */
} dv_parameters;

void dv_parameters_free(dv_parameters *parameters);
dv_parameter *dv_parameters_find(const dv_parameters *parameters, const char *name); /* NULL: there is none */

/* ---- A program ---- */

enum { DV_MOST_SCALARS = 12, DV_MOST_TERMS = 8, DV_GRAPH_NAME = 24 };

/* Inputs of a run besides its values. Ops refer to scalars by name (dvbf_scalar); a scalar not listed here
 * keeps the value given when it was recorded. */
typedef struct dv_conditions {
  uint64_t seed; /* noise is keyed by seed, stream and update */
  uint32_t stream, update;
  bool noise_free; /* all noise is 0 */
  double scale;    /* of the objective */
  int n_scalars;
  struct {
    const char *name;
    double value;
  } scalars[DV_MOST_SCALARS];
} dv_conditions;

/* Sets a scalar, whose name must outlive the conditions; there is room for DV_MOST_SCALARS. */
void dv_conditions_set(dv_conditions *conditions, const char *name, double value);
/* 0 if it is not set. */
double dv_conditions_get(const dv_conditions *conditions, const char *name);

typedef enum dv_buffer_kind {
  DV_BUFFER_VALUE,
  DV_BUFFER_CONSTANT,
  DV_BUFFER_PARAMETER,
  DV_BUFFER_FROZEN
} dv_buffer_kind;

/* Memory of a value. Op i of the program runs forward at moment i and backward at moment 2n - 1 - i. */
typedef struct dv_buffer {
  dv_buffer_kind kind;
  bool keep, keep_gradient;
  size_t size;             /* reals */
  int first, last;         /* ops that mention it */
  int segment;             /* that alone mentions it; -1: none */
  size_t offset, gradient; /* in the arena, or in the parameter vector */
  int shares; /* the first buffer with the same gradient: a parameter may be mentioned by name again */
} dv_buffer;

/* A block that lives as long as the graph, such as the data of an op. */
typedef struct dv_remembered {
  struct dv_remembered *next;
  size_t size;
  _Alignas(16) unsigned char content[];
} dv_remembered;

typedef struct dv_segment {
  int first, last; /* ops; the last is before the first of the next */
} dv_segment;

/* A scalar, with its value where conditions set none, or a term, with its factor. */
typedef struct dv_named {
  char name[DV_GRAPH_NAME];
  double number;
} dv_named;

struct dvbf_graph {
  dv_parameters *parameters;
  int rows;
  bool training, fixed; /* fixed: parameters recorded from now on have no gradient */
  /* Number of the next noise stream, and its first step. A caller that records steps one after the other
   * resets both, so that the steps share streams. */
  int noise_numbers, noise_step;
  int n_scalars, n_terms;
  dv_named scalars[DV_MOST_SCALARS], terms[DV_MOST_TERMS];
  double flops; /* of the matrix products in one forward (and backward) run */
  dv_buffer *buffers;
  int n_buffers;
  dvbf_op *ops;
  int n_ops;
  dv_segment *segments;
  int n_segments;
  bool in_segment; /* ops that are recorded now belong to the last of them */
  dv_remembered *memory;
  size_t arena; /* reals */
  dvbf_status refused;
  char sentence[400];
};

/* An executor: one program, one private arena. Several run at the same time, each on its own shard. */
struct dvbf_run {
  const dvbf_graph *graph;
  const dv_buffer *buffers; /* of the graph */
  const dv_kernels *k;
  const dv_products *product; /* those of k, or what the setting `products` asks for */
  dvbf_real *arena;
  const dvbf_real *parameters;
  dvbf_real *gradient; /* [parameters], NULL for a program without backward */
  const dv_conditions *conditions;
  const uint32_t *sequence;        /* [rows] keys the noise */
  const volatile int *interrupt;   /* NULL, or a flag that ends a run where it is: its values mean nothing */
  bool same_weights;               /* as in the last run: what was made from them alone is still there */
  bool *begun;                     /* [n_buffers] whether a gradient holds anything yet on this way back */
  double scalars[DV_MOST_SCALARS]; /* as the graph numbers them, looked up when a run begins */
  double terms[DV_MOST_TERMS];     /* of the objective, summed over rows and steps */
  const dvbf_op *op;               /* that runs now; NULL: none */
};

/* `training` plans gradients. rows is the number of sequences in a shard. */
dvbf_graph *dv_graph_new(dv_parameters *parameters, int rows, bool training);
void dv_graph_free(dvbf_graph *g);
/* Like dvbf_refuse, for lack of memory. */
void dv_graph_refuse_memory(dvbf_graph *g);
/* Ops recorded between these two form a segment. It runs forward again just before it runs backward, so that
 * a value used in it alone needs memory only while it runs; results have the same bits. Ops run again must
 * write what they wrote before: whatever one of them adds to must begin in the same segment. */
void dv_graph_segment_begin(dvbf_graph *g);
void dv_graph_segment_end(dvbf_graph *g);
/* Ends recording: checks, lifetimes, arena. The sentence of a refused recording goes into error. */
dvbf_status dv_graph_plan(dvbf_graph *g, dvbf_error *error);
static inline bool dv_graph_training(const dvbf_graph *g) {
  return g->training;
}
bool dv_graph_has_gradient(const dvbf_graph *g, dvbf_value value);

/* A planned program as one block of memory, for a run that must not touch the heap. */
size_t dv_graph_packed_size(const dvbf_graph *g);
const dvbf_graph *dv_graph_pack(const dvbf_graph *g, void *memory);

/* A run whose arena is the caller's. */
dvbf_run dv_run_in(const dvbf_graph *g, dvbf_real *arena);
dvbf_status dv_run_init(dvbf_run *run, const dvbf_graph *g, dvbf_error *error);
void dv_run_clear(dvbf_run *run);
void dv_run_forward(dvbf_run *run);
/* Writes run->gradient, zeros for parameters that no op reaches; frozen parameters keep theirs. */
void dv_run_backward(dvbf_run *run);

/* The same for sum over seeds of (gradient, value) in place of the objective, whose scale must be 0. Then
 * dvbf_gradient_at gives the gradient at values named by dvbf_keep_gradient, as seeds must be. */
typedef struct dv_seed {
  dvbf_value value;
  const dvbf_real *gradient; /* as many reals as the value has */
} dv_seed;
void dv_run_backward_from(dvbf_run *run, const dv_seed *seeds, int count);

/* Number of a term, -1 if the program has none of that name. */
int dv_graph_term(const dvbf_graph *g, const char *name);
/* What training maximises, from run->terms of one or several runs: minus the sum of factor times term. */
double dv_graph_bound(const dvbf_graph *g, const double terms[DV_MOST_TERMS]);
/* dvbf_gradient_at for an op that can write or add a gradient: if *add is false, it must write all of it. */
dvbf_real *dv_gradient_into(const dvbf_run *run, dvbf_value value, bool *add);

/* With DV_CHECK_OPS, as in debug builds and in the double-precision library of the tests, an op that touches
 * a value it did not list ends the process: the planner may have given its memory away. */
#ifdef DV_CHECK_OPS
void dv_check_listed(const dvbf_run *run, dvbf_value value);
#else
static inline void dv_check_listed(const dvbf_run *run, dvbf_value value) {}
#endif

/* dvbf_at inlined, because a small program spends more time finding values than computing. */
static inline dvbf_real *dv_at(const dvbf_run *run, dvbf_value value) {
#ifdef __clang_analyzer__
  return dvbf_at(run, value); /* seen inside, any value might be none to the analyser */
#endif
  if (value.buffer < 0) return NULL;
  dv_check_listed(run, value);
  const dv_buffer *b = &run->buffers[value.buffer];
  bool in_arena = b->kind == DV_BUFFER_VALUE || b->kind == DV_BUFFER_CONSTANT;
  /* Parameters are not written while a program runs; the cast spares every op a second accessor. */
  dvbf_real *base = in_arena ? run->arena : (dvbf_real *)run->parameters;
  return base + b->offset + value.offset;
}
