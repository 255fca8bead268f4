/* Transition and emission of a model without noise, for many states at once, with their derivatives, as
 * planners need them. */
#pragma once

#include "control/optimal_control.h"
#include "infer/online.h"

/* ---- Transition ---- */

/* z' = f(z, u) for many states, and its derivatives along a path. u is in units of the data. Its programs are
 * packed into the caller's memory. */

typedef struct dv_transition_batch {
  const dvbf_model *model;
  int few, many;                        /* states that `walk` and `crowd` move at once */
  int points;                           /* of a path whose derivatives one run gives */
  int n_w;                              /* numbers of noise in a step */
  dv_program_memory walk, crowd, slope; /* slope has n_z rows for each point: row i seeds entry i of z' */
  dv_conditions conditions;
  uint32_t *key;   /* [rows] */
  dvbf_real *seed; /* [points n_z][n_z] ones where row i meets entry i */
} dv_transition_batch;

/* Counts, or places it into the room; it stays NULL while counting. Moves of up to `few` and up to `many`
 * states are made by two programs; many = few: one is enough. *n_w becomes the number of noise in a step.
 * Refuses a model without a transition or controls. */
dvbf_status dv_transition_batch_lay_out(dv_transition_batch **out, dv_workspace *room,
                                        const dvbf_model *model, int few, int many, int steps, int *n_w,
                                        dvbf_error *error);

/* As the dynamics of a task; rows that move at once are at most `many`. */
dv_dynamics dv_transition_batch_dynamics(dv_transition_batch *moves);

/* ---- Emission ---- */

/* The mean x = h(z) of the emission and its derivatives, in the model's units of x: (x - shift) * scale. Its
 * programs are packed into the caller's memory. */

typedef struct dv_emission_jacobian {
  const dvbf_model *model;
  int rows; /* of `slope`: entries of x that one run back gives */
  dv_program_memory one, slope;
  dv_conditions conditions;
  uint32_t *key;   /* [rows] */
  dvbf_real *seed; /* [rows][n_x] */
} dv_emission_jacobian;

/* Counts, or places it into the room; it stays NULL while counting. */
dvbf_status dv_emission_jacobian_lay_out(dv_emission_jacobian **out, dv_workspace *room,
                                         const dvbf_model *model, dvbf_error *error);
/* x [n_x] of z [n_z]. */
void dv_emission_jacobian_at(dv_emission_jacobian *looks, const double *z, double *x);
/* The same with h [n_x][n_z]. */
void dv_emission_jacobian_derive(dv_emission_jacobian *looks, const double *z, double *x, double *h);
