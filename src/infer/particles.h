/* Particle filter, importance weights of whole paths, and backward simulation, on one sequence at a time. */
#ifndef DV_INFER_PARTICLES_H
#define DV_INFER_PARTICLES_H

#include "engine/threads.h"
#include "infer/estimate.h"
#include "model/batches.h"

/* ---- Particle filter ---- */

/* Particles are the rows of a program, moved by the recognition model and weighted by p / q. */

typedef struct dv_particles {
  const dvbf_model *model;
  size_t count, most; /* particles, and steps of the longest sequence */
  dvbf_program start_program, step_program;
  dv_worker start, step;
  dv_conditions conditions;
  uint32_t *zeros, *key; /* [count] rows load the only sequence of a view, and have noise of their own */
  dvbf_real *v;          /* [n_v], NULL if there is none */
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

/* Weights of samples: ratio of a path's density under the model to that under q, which drew it. */

/* ln p - ln q of what row r draws at the first step: w_1, or z_1 if there is no w. */
double dv_log_ratio_first(const dv_worker *worker, int r);
/* The same of the step from t: w_t, or z_{t+1} given z_t. 0 if it comes from the prior. */
double dv_log_ratio(const dv_worker *worker, int t, int r);

/* The scaling term of ln p of frame t of row r; 0 if it is not seen. `whole` is that of a whole frame. */
double dv_frame_jacobian(const dv_worker *worker, double whole, int t, int r);

/* ln sum exp x [n], without overflow; NaN counts as -inf. */
double dv_log_sum_exp(const double *x, size_t n);
/* weight [n] = exp(x - ln sum exp x); all equal if every x is -inf. Returns ln sum exp x. */
double dv_normalise(const double *x, double *weight, size_t n);

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
  double *log_weight;    /* [paths] */
  dvbf_real *z;          /* [paths][most][n_z], NULL if nobody asks */
} dv_importance;

/* For sequences like those of `s`. Free with dv_importance_clear, also after a failure. */
dvbf_status dv_importance_init(dv_importance *importance, const dvbf_model *model, const dvbf_sequences *s,
                               size_t paths, bool keep_z, dvbf_error *error);
void dv_importance_clear(dv_importance *importance);

/* Draws and weighs paths through sequence i and returns ln (1/N sum of the weights), an estimate of ln p(x)
 * that is too low on average, given one v ~ q(v). Allocates nothing. */
double dv_importance_run(dv_importance *importance, const dvbf_sequences *s, size_t i, uint64_t seed);

/* ---- Backward simulation ---- */

/* Paths given all frames, drawn from a particle filter backwards in time. */

typedef struct dv_backward {
  bool dense;    /* p(z_{t+1} | z_t) is known: z_{t+1} = m(z_t) + C(z_t) w with a square C */
  bool timeless; /* z_{t+1} does not depend on z_t: each step is drawn for itself */
  dv_particles *particles;
  dv_threads *pool; /* NULL: one worker */
  int workers;
  dvbf_program program;
  dv_worker worker;
  size_t paths, t;            /* t: the step to go back to */
  uint32_t *at;               /* [paths] particle where a path stands */
  double *uniform;            /* [paths] what decides where it comes from */
  double *moved;              /* [count][n_z] m */
  double *inverse;            /* [count][n_z][n_z] C, then its inverse */
  double *gain, *offset;      /* [n_z][n_z][count] C^-1, [n_z][count] C^-1 m */
  double *log_scale;          /* [count] ln W_t - ln |det C| */
  struct dv_drawing *drawing; /* [workers] */
} dv_backward;

/* For the results of `particles`. The loops run on all workers of the pool, which must be idle; NULL: on the
 * caller alone, with the same result. Free with dv_backward_clear, also after a failure. */
dvbf_status dv_backward_init(dv_backward *backward, dv_particles *particles, size_t paths, dv_threads *pool,
                             dvbf_error *error);
void dv_backward_clear(dv_backward *backward);

/* z [paths][most][n_z] of the sequence that the filter ran on last; steps past its end stay as they are. */
void dv_backward_draw(dv_backward *backward, dvbf_real *z);

#endif
