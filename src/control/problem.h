/* A problem of optimal control over a finite number of steps, which planners solve without knowing what
 * moves:
 *
 *   minimise  sum_{t < steps} l_t(z_t, u_t) + l_steps(z_steps)
 *   with      z_{t+1} = f(z_t, u_t),  low <= u <= high
 */
#ifndef DV_PROBLEM_H
#define DV_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>

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
  /* next [rows][n_z] = f(z [rows][n_z], u [rows][n_u]) */
  void (*move)(void *user, int rows, const double *z, const double *u, double *next);
  /* a [steps][n_z][n_z] and b [steps][n_z][n_u], the derivatives of f at z [steps][n_z], u [steps][n_u] */
  void (*derive)(void *user, const double *z, const double *u, double *a, double *b);
  /* l_t(z, u); u is NULL at t = steps. */
  double (*cost)(void *user, int t, const double *z, const double *u);
  /* Its derivatives; *out holds anything before. At t = steps only z and zz are wanted. */
  void (*expand)(void *user, int t, const double *z, const double *u, dv_expansion *out);
  /* u of a simple controller that keeps the system at its goal, once it is there; NULL: none is known. Random
   * plans end with it. */
  void (*steer)(void *user, const double *z, double *u);
  /* As `move`, with the noise of the system: noise [rows][n_w] of standard normal numbers. NULL: it has none.
   */
  void (*stir)(void *user, int rows, const double *z, const double *u, const double *noise, double *next);
  int n_w;
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
  /* Whether time is up, asked after each iteration; NULL: it never is. */
  bool (*late)(void *user);
  void *user;
} dv_effort;

/* v [n] into its limits. */
static inline void dv_into_limits(double *v, const double *low, const double *high, int n) {
  for (int i = 0; i < n; i++) v[i] = v[i] < low[i] ? low[i] : v[i] > high[i] ? high[i] : v[i];
}

#endif
