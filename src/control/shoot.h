/* A planner that needs no derivatives: the cross-entropy method. It draws plans around a mean, keeps the best
 * share of them, takes their mean and spread, and draws again. The plan it begins with is among those that it
 * compares, so it never returns a worse one. Where the problem has a simple controller, each plan but that
 * one goes over to it at a random step, the second plan at once: no fixed controls keep an unstable system at
 * its goal. */
#ifndef DV_SHOOT_H
#define DV_SHOOT_H

#include "control/problem.h"
#include "infer/online.h"

typedef struct dv_shoot {
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
} dv_shoot;

/* Counts bytes, or places the planner; it stays NULL while counting. count is at least 2. */
dv_shoot *dv_shoot_place(dv_room *room, const dv_problem *problem, int count);

/* How plans are drawn. */
typedef struct dv_drawing {
  int rounds;
  /* With futures above 0 the cost of a plan is its mean over that many samples of the noise, which are the
   * same for all plans, and `risk` times its standard deviation over them. */
  int futures;
  double risk;
  double spread; /* first deviation over the half width of the limits, or itself where they are infinite */
  double correlation;              /* from step to step, in [0, 1) */
  unsigned long long seed, number; /* the same numbers give the same draws */
} dv_drawing;

/* Plans from z [n_z] and planner->u, where the plan is afterwards. */
dv_plan dv_shoot_plan(dv_shoot *planner, const double *z, const dv_drawing *drawing, const dv_effort *effort);

/* The cost, over the futures of the same drawing, of the controls that `control` chooses. */
typedef void dv_control_fn(void *user, int t, const double *z, double *u);
double dv_shoot_judge(dv_shoot *planner, const double *z, const dv_drawing *drawing, dv_control_fn *control,
                      void *user);

#endif
