/* A particle filter on one sequence at a time: particles are the rows of a program, moved by the recognition
 * model and weighed by how much likelier they are under the model. See docs/design.md. */
#ifndef DV_PARTICLES_H
#define DV_PARTICLES_H

#include "exec/worker.h"
#include "infer/watch.h"

typedef struct dv_particles {
  const dvbf_model *model;
  size_t count, most; /* particles, and steps of the longest sequence */
  dvbf_program start_program, step_program;
  dv_worker start, step;
  dv_conditions conditions;
  uint32_t *zeros, *key; /* [count] rows load the only sequence of a view, and have noise of their own */
  dvbf_real *v;          /* [n_v], NULL where there is none */
  size_t n_v;
  double *log_weight;            /* [count] */
  double jacobian;               /* of a whole frame */
  const volatile int *interrupt; /* NULL, or a flag that ends a run: what it found means nothing then */
  dv_watch *watch;               /* NULL, or what counts the steps that are done */
  /* What the filter found in the sequence it ran on last. */
  size_t steps;
  uint64_t seed;
  dvbf_sequences sequence; /* a view of it alone */
  double log_likelihood;   /* of x_1 .. x_T, in units of the data, given v */
  dvbf_real *z;            /* [most][count][n_z] */
  double *weight;          /* [most][count], of which each step's sum is 1 */
  uint32_t *parent;        /* [most][count] particle of the step before */
} dv_particles;

/* For sequences like those of `s`; `initial` frames may be seen when z_1 is made. Free with
 * dv_particles_clear, also after a failure. */
dvbf_status dv_particles_init(dv_particles *particles, const dvbf_model *model, const dvbf_sequences *s,
                              size_t count, int initial, dvbf_error *error);
void dv_particles_clear(dv_particles *particles);

/* Runs over sequence i. Allocates nothing; the result depends on seed and i alone. */
void dv_particles_run(dv_particles *particles, const dvbf_sequences *s, size_t i, uint64_t seed);

/* v of the step from t. */
void dv_particles_universal(dv_particles *particles, size_t t);

/* A seed of its own for each sequence. */
uint64_t dv_sequence_seed(uint64_t seed, size_t sequence);
/* A view of sequence i alone, which is only read; `buffer` as in dv_sequence_x. */
dvbf_sequences dv_sequence_alone(const dvbf_sequences *s, size_t i, float *buffer);
/* Steps t .. t + count - 1 of a sequence that is alone in its view. */
dvbf_sequences dv_view(const dvbf_sequences *sequence, size_t t, size_t count);

#endif
