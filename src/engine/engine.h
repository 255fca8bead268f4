/* Record → plan → run. See include/dvbf/graph.h for how a program is recorded; this is how it is run. */
#ifndef DV_GRAPH_H
#define DV_GRAPH_H

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
  size_t count, capacity;
  dvbf_real *values; /* [size] */
  size_t size, room;
  size_t most;   /* reals that all together may have, being those of a file; 0: no limit */
  bool complete; /* no further parameter may be added: they come from a file or are in training */
  uint64_t seed; /* of first values */
} dv_parameters;

void dv_parameters_free(dv_parameters *parameters);

/* ---- A program ---- */

/* What changes from update to update. */
typedef struct dv_schedule {
  uint64_t seed;
  uint32_t stream; /* dv_stream of the noise */
  uint32_t update;
  double temperature;     /* c */
  double log_sigma_floor; /* of the emission */
  double filter_dropout;
  double filter_dropout_run; /* mean length of a run of dropped steps */
  double sequences;          /* N, that divides the KL of v */
  double scale;              /* of the objective: 1 / (batch * steps) */
  bool mean_path;            /* noise is 0 */
} dv_schedule;

enum { DV_RECONSTRUCTION, DV_KL_W, DV_KL_V, DV_TERMS };

typedef enum dv_buffer_kind {
  DV_BUFFER_VALUE,
  DV_BUFFER_CONSTANT,
  DV_BUFFER_PARAMETER,
  DV_BUFFER_FROZEN
} dv_buffer_kind;

/* Memory of a value. Moments of the program: op i runs forward at moment i and backward at moment 2n - 1 - i.
 */
typedef struct dv_buffer {
  dv_buffer_kind kind;
  bool keep;
  size_t size;             /* reals */
  int first, last;         /* ops that mention it */
  size_t offset, gradient; /* in the arena, or in the parameter vector */
  int shares; /* the first buffer with the same gradient: a parameter may be mentioned by name again */
} dv_buffer;

/* An executor: one program, one private arena. Several run at the same time, each on its own shard. */
struct dvbf_run {
  const dvbf_graph *graph;
  const dv_buffer *buffers; /* of the graph */
  const dv_kernels *k;
  const dv_products *product; /* those of k, or what the setting `products` asks for */
  dvbf_real *arena;
  const dvbf_real *parameters;
  dvbf_real *gradient; /* [parameters], NULL for a program without backward */
  const dv_schedule *schedule;
  const uint32_t *sequence; /* [rows] keys the noise */
  bool same_weights;        /* as in the last run: what was made from them alone is still there */
  float *buffer;            /* [steps][n_x] for frames that come from a file, else NULL */
  bool *begun;              /* [buffers] whether a gradient holds anything yet on this way back */
  double terms[DV_TERMS];   /* of the bound, summed over the shard's sequences and steps */
};

/* `training` plans gradients. rows is the number of sequences in a shard. */
dvbf_graph *dv_graph_new(dv_parameters *parameters, int rows, bool training);
void dv_graph_free(dvbf_graph *g);
int dv_graph_rows(const dvbf_graph *g);
/* Like dvbf_refuse, for lack of memory. */
void dv_graph_refuse_memory(dvbf_graph *g);
/* Number of the next stream of noise that an op asks for. */
int dv_graph_noise_number(dvbf_graph *g);
/* Ends recording: checks, lifetimes, arena. The sentence of a refused recording goes into error. */
dvbf_status dv_graph_plan(dvbf_graph *g, dvbf_error *error);
size_t dv_graph_arena_size(const dvbf_graph *g); /* in reals */
/* Multiplications and additions of one forward (and backward) run, counted over the matrix products. */
double dv_graph_flops(const dvbf_graph *g);
void dv_graph_count_flops(dvbf_graph *g, double flops);
bool dv_graph_training(const dvbf_graph *g);
bool dv_graph_has_gradient(const dvbf_graph *g, dvbf_value value);

/* A planned program as one block of memory, for a run that must not touch the heap. */
size_t dv_graph_packed_size(const dvbf_graph *g);
const dvbf_graph *dv_graph_pack(const dvbf_graph *g, void *memory);

/* A run whose arena is the caller's. */
dvbf_run dv_run_in(const dvbf_graph *g, dvbf_real *arena);
dvbf_status dv_run_init(dvbf_run *run, const dvbf_graph *g, dvbf_error *error);
void dv_run_clear(dvbf_run *run);
void dv_run_forward(dvbf_run *run);
/* Writes run->gradient, zeros where no op reaches; that of frozen parameters is left as it is. */
void dv_run_backward(dvbf_run *run);
/* dvbf_gradient_at for an op that can write a gradient as well as add to it: where *add is false, what is
 * there counts for nothing and all of it must be written. */
dvbf_real *dv_gradient_into(const dvbf_run *run, dvbf_value value, bool *add);

/* dvbf_at for ops of the library: inlined, because a small program spends more time on finding values than on
 * computing with them. */
static inline dvbf_real *dv_at(const dvbf_run *run, dvbf_value value) {
#ifdef __clang_analyzer__
  return dvbf_at(run, value); /* seen inside, any value might be none to the analyser */
#endif
  if (value.buffer < 0) return NULL;
  const dv_buffer *b = &run->buffers[value.buffer];
  bool in_arena = b->kind == DV_BUFFER_VALUE || b->kind == DV_BUFFER_CONSTANT;
  /* Parameters are not written while a program runs; the cast spares every op a second accessor. */
  dvbf_real *base = in_arena ? run->arena : (dvbf_real *)run->parameters;
  return base + b->offset + value.offset;
}

#endif
