/* The transition of a model without noise, z' = f(z, u), for many states at once, and its derivatives along a
 * path. u is in units of the data. Its programs are packed into the caller's memory. */
#ifndef DV_MOVES_H
#define DV_MOVES_H

#include "control/motion.h"
#include "infer/online.h"

typedef struct dv_moves {
  const dvbf_model *model;
  int few, many;                 /* states that `walk` and `crowd` move at once */
  int points;                    /* of a path whose derivatives one run gives */
  int n_w;                       /* numbers of noise in a step */
  dv_machine walk, crowd, slope; /* slope has n_z rows for each point: row i seeds entry i of z' */
  dv_conditions conditions;
  uint32_t *key;   /* [rows] */
  dvbf_real *seed; /* [points n_z][n_z] ones where row i meets entry i */
} dv_moves;

/* Counts, or places it into the room; it stays NULL while counting. Moves of up to `few` and up to `many`
 * states are made by two programs; many = few: one is enough. *n_w becomes the number of noise in a step.
 * Refuses a model without a transition or controls. */
dvbf_status dv_moves_place(dv_moves **out, dv_room *room, const dvbf_model *model, int few, int many,
                           int steps, int *n_w, dvbf_error *error);

/* next [rows][n_z] = f(z, u); rows is at most `many`, rows of z and next are `stride` apart. */
void dv_moves_go(dv_moves *moves, int rows, const double *z, const double *u, double *next, int stride);
/* The same with noise [rows][n_w]. */
void dv_moves_stir(dv_moves *moves, int rows, const double *z, const double *u, const double *noise,
                   double *next, int stride);
/* a [steps][stride][stride], b [steps][stride][n_u]: the first n_z rows and columns of each matrix are
 * written. */
void dv_moves_derive(dv_moves *moves, int steps, const double *z, const double *u, double *a, double *b,
                     int stride);
/* The three as what a task moves by. */
dv_motion dv_moves_motion(dv_moves *moves);

#endif
