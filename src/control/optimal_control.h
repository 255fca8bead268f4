/* Optimal control over a finite number of steps: the abstract problem, and two planners that solve it without
 * knowing whether a model or a simulated system moves: iLQR and the cross-entropy method. */
#pragma once

#include "infer/online.h"
#include "math/box_qp.h"

#include <stdbool.h>

/* ---- Problem ---- */

/*   minimise  sum_{t < steps} l_t(z_t, u_t) + l_steps(z_steps)
 *   with      z_{t+1} = f(z_t, u_t),  low <= u <= high */

/* Second-order expansion of the cost of one step. */
typedef struct dv_expansion {
  double *z, *u;        /* [n_z], [n_u] first derivatives */
  double *zz, *uz, *uu; /* [n_z][n_z], [n_u][n_z], [n_u][n_u] second derivatives */
} dv_expansion;

typedef struct dv_problem {
  int n_z, n_u, steps;
  int rows;                 /* that `move` takes at most */
  const double *low, *high; /* [n_u], low <= high; may be infinite */
  void *user;               /* handed to all of these */
  /* next [rows][n_z] = f(z [rows][n_z], u [rows][n_u]), with noise [rows][n_w] of standard normal numbers or,
   * if it is NULL, without */
  void (*move)(void *user, int rows, const double *z, const double *u, const double *noise, double *next);
  /* a [steps][n_z][n_z] and b [steps][n_z][n_u], the derivatives of f at z [steps][n_z], u [steps][n_u] */
  void (*derive)(void *user, const double *z, const double *u, double *a, double *b);
  /* l_t(z, u); u is NULL at t = steps. */
  double (*cost)(void *user, int t, const double *z, const double *u);
  /* Its derivatives; *out is overwritten. At t = steps only z and zz are needed. */
  void (*expand)(void *user, int t, const double *z, const double *u, dv_expansion *out);
  /* u of a simple controller that keeps the system at its goal once it is there, or NULL. Random plans end
   * with it. */
  void (*steer)(void *user, const double *z, double *u);
  int n_w; /* 0: the system has no noise */
} dv_problem;

/* How planning ended. */
typedef enum dv_plan_end {
  DV_PLAN_CONVERGED, /* no step makes it better by more than the tolerance */
  DV_PLAN_CAPPED,    /* iterations or time are used up; the plan is the best so far */
  DV_PLAN_STUCK,     /* no step of any length makes it better */
  DV_PLAN_FAILED     /* the cost is not finite, even where it began: there is no plan */
} dv_plan_end;

typedef struct dv_plan {
  double cost;
  int iterations;
  dv_plan_end end;
} dv_plan;

/* Limits of a plan. */
typedef struct dv_effort {
  int iterations;   /* at most */
  double tolerance; /* relative change of the cost that counts as none */
  /* Whether time is up, asked after each iteration; NULL: no limit. */
  bool (*late)(void *user);
  void *user;
} dv_effort;

/* ---- Dynamics ---- */

/* z' = f(z, u), of a model or of a system. */

typedef struct dv_dynamics {
  void *user; /* handed to all of these */
  /* next [rows][n_z] = f(z, u), with noise [rows][n_w] unless it is NULL; rows of z and next are `stride`
   * apart and may be the same. */
  void (*move)(void *user, int rows, const double *z, const double *u, const double *noise, double *next,
               int stride);
  /* Derivatives of f: the first n_z rows and columns of a [steps][stride][stride] and b [steps][stride][n_u]
   * are written. */
  void (*derive)(void *user, int steps, const double *z, const double *u, double *a, double *b, int stride);
} dv_dynamics;

/* ---- iLQR ---- */

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
dv_ilqr *dv_ilqr_lay_out(dv_workspace *room, const dv_problem *problem);

/* For the next of several plans, one step later: moves the plan on by one step and adapts its controls to the
 * state z [n_z] by the gains. Controls alone would lead an unstable system elsewhere, though z is only a
 * little off the path. */
void dv_ilqr_resume(dv_ilqr *planner, const double *z);

/* u of step t of the plan, adapted to the state z [n_z] by the gains. */
void dv_ilqr_control(const dv_ilqr *planner, int t, const double *z, double *u);

/* Plans from z [n_z], beginning with the controls that are in planner->u; there the plan is afterwards, and
 * its path in planner->z. */
dv_plan dv_ilqr_plan(dv_ilqr *planner, const double *z, const dv_effort *effort);

/* ---- Cross-entropy method ---- */

/* A planner without derivatives: it draws plans around a mean, keeps the best share, and draws again from
 * their mean and spread. The plan it begins with is among those compared, so it never returns a worse one. If
 * the problem has a simple controller, every other plan goes over to it at a random step (the second one at
 * once): no fixed controls keep an unstable system at its goal. */

typedef struct dv_cross_entropy {
  dv_problem problem;
  int count, elites;        /* plans of a round, and those that are kept */
  double *u;                /* [steps][n_u] the plan */
  double *mean, *deviation; /* [steps][n_u] */
  double *drawn;            /* [count][steps][n_u] */
  double *cost;             /* [count] */
  int *order;               /* [count] */
  int *until;               /* [count] steps before the simple controller takes over */
  double *z, *next, *row_u; /* [rows][n_z], [rows][n_z], [rows][n_u] */
  double *noise;            /* [rows][n_w] */
  double *sum, *squares;    /* [count] over futures */
} dv_cross_entropy;

/* Counts bytes, or places the planner; it stays NULL while counting. count is at least 2. */
dv_cross_entropy *dv_cross_entropy_lay_out(dv_workspace *room, const dv_problem *problem, int count);

/* How plans are drawn. */
typedef struct dv_drawing {
  int rounds;
  /* With futures above 0 the cost of a plan is its mean over that many samples of the noise, which are the
   * same for all plans, and `risk` times its standard deviation over them. */
  int futures;
  double risk;
  double spread;      /* first deviation over the half width of the limits, or itself if they are infinite */
  double correlation; /* from step to step, in [0, 1) */
  unsigned long long seed, number; /* the same numbers give the same draws */
} dv_drawing;

/* Plans from z [n_z] and planner->u, where the plan is afterwards. */
dv_plan dv_cross_entropy_plan(dv_cross_entropy *planner, const double *z, const dv_drawing *drawing,
                              const dv_effort *effort);

/* The cost, over the futures of the same drawing, of the controls that `control` chooses. */
typedef void dv_control_fn(void *user, int t, const double *z, double *u);
double dv_cross_entropy_score(dv_cross_entropy *planner, const double *z, const dv_drawing *drawing,
                              dv_control_fn *control, void *user);
