/* What a state looks like: the mean x = h(z) of the emission, and its derivatives, in units in which the
 * model sees x: (x - shift) * scale. Its programs are packed into the caller's memory. */
#ifndef DV_LOOKS_H
#define DV_LOOKS_H

#include "infer/online.h"

typedef struct dv_looks {
  const dvbf_model *model;
  int rows; /* of `slope`: entries of x that one run back gives */
  dv_machine one, slope;
  dv_conditions conditions;
  uint32_t *key;   /* [rows] */
  dvbf_real *seed; /* [rows][n_x] */
} dv_looks;

/* Counts, or places it into the room; it stays NULL while counting. */
dvbf_status dv_looks_place(dv_looks **out, dv_room *room, const dvbf_model *model, dvbf_error *error);
/* x [n_x] of z [n_z]. */
void dv_looks_at(dv_looks *looks, const double *z, double *x);
/* The same with h [n_x][n_z]. */
void dv_looks_derive(dv_looks *looks, const double *z, double *x, double *h);

#endif
