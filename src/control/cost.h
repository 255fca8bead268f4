/* The cost of control: a model, goals and weights made a problem for planners. */
#pragma once

#include "control/model_derivatives.h"
#include "control/optimal_control.h"

/* A control task on a model. Its state is (z, u of the step before), so that changes of u can cost
 * something. */

typedef struct dv_cost {
  dv_dynamics motion;
  dv_emission_jacobian *looks; /* NULL: s is linear in z */
  int n_z, n_u, n_w, steps, n_s, goals;
  double goal_weight, terminal_weight, discount;
  double *later;  /* [steps + 1] discount^t, the weight of each step */
  double *map;    /* [n_s][n_z + 1] map to the space of goals: s = map (z, 1), or x of z with looks */
  double *weight; /* [n_s] */
  double *target; /* [goals][n_s] */
  double *centre; /* [goals][n_z] z at a goal */
  double *p;      /* [goals][n_z][n_z] terminal cost (z - centre)'p (z - centre) / 2 */
  double *q;      /* [n_z][n_z] second derivative of the distance, at one place */
  double *s, *h;  /* [n_s], [n_s][n_z] s and its derivatives, at one place */
  double *control, *change;  /* [n_u] weights of (u - rest)^2 / 2 and of (u - u before)^2 / 2 */
  double *rest, *low, *high; /* [n_u] */
  double *gain;              /* [goals][n_u][n_z] u = rest - gain (z - centre), near a goal */
  bool steers;               /* `gain` is known for every goal */
  double *a, *b, *r;         /* for Riccati: [n_z][n_z], [n_z][n_u], [n_u][n_u] */
  double *scratch;           /* that of dv_riccati */
} dv_cost;

/* Counts, or places the arrays; `like` has the sizes. */
dv_cost *dv_cost_lay_out(dv_workspace *room, const dv_cost *like);

/* Makes `later`, solves Riccati's equation at every goal with u at rest and the discount, for the gains, and
 * sets the terminal cost p: 0, that of a step, or the solution (that of a step if there is none). */
void dv_cost_terminal(dv_cost *task, int64_t kind /* the setting `terminal` */);

/* The problem, of which `rows` states move at once. */
dv_problem dv_cost_problem(dv_cost *task, int rows);
