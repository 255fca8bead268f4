/* Differential dynamic programming with box limits on the controls (Tassa, Mansard and Todorov 2014), with
 * the dynamics to first order, which is called iLQR. All memory is set up once, a plan allocates nothing, and
 * the same problem gives the same plan, bit for bit.
 *
 * Backward, from V = l_steps, with A, B the derivatives of f along the path:
 *   Q_z = l_z + A'V_z          Q_zz = l_zz + A'V_zz A     Q_uz = l_uz + B'V_zz A
 *   Q_u = l_u + B'V_z          Q_uu = l_uu + B'V_zz B + mu I
 *   k = argmin k'Q_uu k / 2 + Q_u'k  in the limits;  K = -Q_uu^-1 Q_uz where k is not at a limit, else 0
 *   V_z = Q_z + K'Q_uu k + K'Q_u + Q_uz'k,  V_zz = Q_zz + K'Q_uu K + K'Q_uz + Q_uz'K
 * Forward, for steps of several lengths c side by side: u = clamp(u + c k + K (z - z of the path)). */
#ifndef DV_ILQR_H
#define DV_ILQR_H

#include "control/problem.h"
#include "infer/online.h"

enum { DV_LENGTHS = 8 }; /* step lengths that are tried: 1, 1/2, ... */

typedef struct dv_ilqr {
  dv_problem problem;
  double *z, *u;             /* [steps + 1][n_z], [steps][n_u] the path */
  double *a, *b;             /* [steps][n_z][n_z], [steps][n_z][n_u] */
  double *k, *gain;          /* [steps][n_u], [steps][n_u][n_z] */
  double *trial_z, *trial_u; /* [steps + 1][DV_LENGTHS][n_z], [steps][DV_LENGTHS][n_u] */
  double *v_z, *v_zz;        /* [n_z], [n_z][n_z] */
  dv_expansion l, q;
  double *va, *vb;               /* [n_z][n_z], [n_z][n_u] V_zz A, V_zz B */
  double *factor, *packed;       /* [n_u][n_u], [n_u][n_z] */
  double *low, *high, *scratch;  /* [n_u], [n_u], that of dv_box_solve */
  bool *held;                    /* [n_u] */
  double regularisation, growth; /* mu, and how fast it changes */
  double expected[2]; /* change of the cost for a step of length c: c expected[0] + c^2 expected[1] / 2 */
} dv_ilqr;

/* Counts bytes, or places the planner; it stays NULL while counting. `rows` of the problem must be at least
 * DV_LENGTHS. */
dv_ilqr *dv_ilqr_place(dv_room *room, const dv_problem *problem);

/* For the next of several plans, one step later: moves the plan on by one step and adapts its controls to the
 * state z [n_z] by the gains. Controls alone would lead an unstable system elsewhere, though z is only a
 * little off the path. */
void dv_ilqr_resume(dv_ilqr *planner, const double *z);

/* u of step t of the plan, adapted to the state z [n_z] by the gains. */
void dv_ilqr_control(const dv_ilqr *planner, int t, const double *z, double *u);

/* Plans from z [n_z], beginning with the controls that are in planner->u; there the plan is afterwards, and
 * its path in planner->z. */
dv_plan dv_ilqr_plan(dv_ilqr *planner, const double *z, const dv_effort *effort);

#endif
