/* Plans from a known state, with delays: controls that were given but have not acted yet first take the state
 * on. It does not know whether a model or a system moves. */
#pragma once

#include "control/cost.h"
#include "control/optimal_control.h"
#include "settings_tables.h"

#include <time.h>

typedef struct dv_planner {
  dv_control_settings settings;
  double low[DV_BOX_SIZE], high[DV_BOX_SIZE], rest[DV_BOX_SIZE]; /* limits, as they are given */
  dv_cost *task;
  dv_ilqr *ilqr;
  dv_cross_entropy *shoot; /* NULL: no random plans */
  double *first;           /* [n_z + n_u] where a plan begins, and the control that was given last */
  double *sent_u;          /* [n_u] */
  float *sent;             /* [delay + 1][n_u] controls that were given, the first of which has acted last */
  float *u;                /* [n_u] the last of them */
  bool begun;              /* `u` was given */
  bool planned;            /* there is a plan of the step before */
  uint32_t number;         /* of the plan */
  struct timespec deadline;
} dv_planner;

/* Largest number of states moved at once with these settings. */
int dv_planner_rows(const dv_control_settings *settings);

/* Settings, and limits for n_u controls; refuses those that make no sense. */
dvbf_status dv_planner_set(dv_planner *planner, const dv_control_settings *settings, int n_u,
                           dvbf_error *error);
/* Counts bytes, or places all parts, after dv_planner_set; `like` has the sizes of the task. */
void dv_planner_lay_out(dv_planner *planner, dv_workspace *room, const dv_cost *like);
/* Weights and limits of the task, in units of half the width of the limits. */
void dv_planner_set_cost(dv_planner *planner);
/* Half the width of the limits of control i, by which controls are measured. */
double dv_planner_half_width(const dv_planner *planner, int i);
/* Forgets controls and plan. */
void dv_planner_reset(dv_planner *planner);

/* A step: begin, then plan. u [n_u] is what acted until the observation of this step was made; NULL, NaN:
 * what was given for then. */
void dv_planner_begin(dv_planner *planner, const float *u);
/* Plans from the state that z [n_z] of this observation becomes until the next control acts. In planner->u is
 * afterwards the first control of the plan or, if there is none or z is NULL, the safe one. */
dv_plan dv_planner_plan(dv_planner *planner, const float *z);
