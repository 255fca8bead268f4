/* Paths given all frames, drawn from a particle filter backwards in time. */
#ifndef DV_BACKWARD_H
#define DV_BACKWARD_H

#include "exec/pool.h"
#include "infer/particles.h"

typedef struct dv_backward {
  bool dense;    /* p(z_{t+1} | z_t) is known: z_{t+1} = m(z_t) + C(z_t) w with a square C */
  bool timeless; /* z_{t+1} does not depend on z_t: each step is drawn for itself */
  dv_particles *particles;
  dv_pool *pool; /* NULL: one worker */
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

/* For what `particles` find. The loops over particles and paths run on all workers of the pool, which must
 * have nothing else to do; NULL: on the caller alone. The result is the same. Free with dv_backward_clear,
 * also after a failure. */
dvbf_status dv_backward_init(dv_backward *backward, dv_particles *particles, size_t paths, dv_pool *pool,
                             dvbf_error *error);
void dv_backward_clear(dv_backward *backward);

/* z [paths][most][n_z] of the sequence that the filter ran on last; steps past its end stay as they are. */
void dv_backward_draw(dv_backward *backward, dvbf_real *z);

#endif
