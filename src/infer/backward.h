/* Paths given all frames, drawn from a particle filter backwards in time. */
#ifndef DV_BACKWARD_H
#define DV_BACKWARD_H

#include "infer/particles.h"

typedef struct dv_backward {
  bool dense;    /* p(z_{t+1} | z_t) is known: z_{t+1} = m(z_t) + C(z_t) w with a square C */
  bool timeless; /* z_{t+1} does not depend on z_t: each step is drawn for itself */
  dvbf_program program;
  dv_worker worker;
  size_t paths;
  uint32_t *at;           /* [paths] particle where a path stands */
  double *moved;          /* [count][n_z] m */
  double *inverse;        /* [count][n_z][n_z] of C */
  double *log_scale;      /* [count] ln W_t - ln |det C| */
  double *log_weight;     /* [count] */
  double *weight, *apart; /* [count], [n_z] */
  int *order;             /* [n_z] */
} dv_backward;

/* Free with dv_backward_clear, also after a failure. */
dvbf_status dv_backward_init(dv_backward *backward, const dv_particles *particles, size_t paths,
                             dvbf_error *error);
void dv_backward_clear(dv_backward *backward);

/* z [paths][most][n_z] of the sequence that the filter ran on last; steps past its end stay as they are. */
void dv_backward_draw(dv_backward *backward, dv_particles *particles, dvbf_real *z);

#endif
