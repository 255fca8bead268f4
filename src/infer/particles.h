/* Particle filter, importance weights of whole paths, and backward simulation, on one sequence at a time. */
#pragma once

#include "infer/estimate.h"
#include "model/batches.h"

/* ---- Particle filter ---- */

/* The start and one step of a model; the rows are samples of one sequence. */
typedef struct dv_stepper {
  dvbf_program start_program, step_program;
  dv_worker start, step;
  dv_conditions conditions;
  uint32_t *zeros, *key; /* [rows] rows load the only sequence of a view, and have noise of their own */
} dv_stepper;

/* For sequences like those of `s`, of which `initial` frames may be seen when z_1 is made. Free with
 * dv_stepper_clear, also after a failure. */
dvbf_status dv_stepper_init(dv_stepper *stepper, const dvbf_model *model, const dvbf_sequences *s,
                            size_t rows, int initial, dvbf_error *error);
void dv_stepper_clear(dv_stepper *stepper);
/* z_1 [rows][n_z] of a sequence that is alone in its view; conditions are the caller's, but for the update.
 */
const dvbf_real *dv_stepper_start(dv_stepper *stepper, const dvbf_sequences *sequence);
/* z [rows][n_z] of step t from z of the step before and v, which are in place. If x_t is not seen, w comes
 * from the prior; `update` is the key of its noise. */
const dvbf_real *dv_stepper_move(dv_stepper *stepper, const dvbf_sequences *sequence, size_t t, bool seen,
                                 uint32_t update);

/* Particles are such rows, moved by the recognition model and weighted by p / q. */

typedef struct dv_particles {
  const dvbf_model *model;
  size_t count, most; /* particles, and steps of the longest sequence */
  dv_stepper by;
  dvbf_real *v; /* [n_v], NULL if there is none */
  size_t n_v;
  double *log_weight;            /* [count] */
  double jacobian;               /* of a whole frame */
  const volatile int *interrupt; /* NULL, or a flag that ends a run: what it found means nothing then */
  dv_estimate_progress *watch;   /* NULL, or the counter of finished steps */
  /* Results for the sequence of the last run. */
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

/* A different seed for each sequence. */
uint64_t dv_sequence_seed(uint64_t seed, size_t sequence);
/* A view of sequence i alone, which is only read; `buffer` as in dv_sequence_x. */
dvbf_sequences dv_sequence_alone(const dvbf_sequences *s, size_t i, float *buffer);
/* Steps t .. t + count - 1 of a sequence that is alone in its view. */
dvbf_sequences dv_view(const dvbf_sequences *sequence, size_t t, size_t count);

/* ---- Weights ---- */

/* The scaling term of ln p of frame t of row r; 0 if it is not seen. `whole` is that of a whole frame. */
double dv_frame_jacobian(const dv_worker *worker, double whole, int t, int r);

/* Systematic resampling: index [m] of entries of weight [n], each drawn as often as m * weight, rounded down
 * or up; `uniform` in (0, 1). */
void dv_resample(const double *weight, size_t n, double uniform, uint32_t *index, size_t m);

/* ---- Importance weighting ---- */

/* Whole paths from q, weighted by p(x, w) / q(w). Works for every model. */

typedef struct dv_importance {
  const dvbf_model *model;
  size_t paths, most; /* paths, and steps of the longest sequence */
  dvbf_program program;
  dv_worker worker;
  dv_conditions conditions;
  uint32_t *index, *key; /* [rows] */
  double jacobian;       /* of a whole frame */
  double *weight;        /* [paths] of the last run; their sum is 1 */
  dvbf_real *z;          /* [paths][most][n_z], NULL if nobody asks */
} dv_importance;

/* For sequences like those of `s`. Free with dv_importance_clear, also after a failure. */
dvbf_status dv_importance_init(dv_importance *importance, const dvbf_model *model, const dvbf_sequences *s,
                               size_t paths, bool keep_z, dvbf_error *error);
void dv_importance_clear(dv_importance *importance);

/* Draws and weighs paths through sequence i and returns ln (1/N sum of the weights), an estimate of ln p(x)
 * that is too low on average, given one v ~ q(v). Allocates nothing. */
double dv_importance_run(dv_importance *importance, const dvbf_sequences *s, size_t i, uint64_t seed);
