/* Closed loops of a simulated system with a controller on a model or on the true state: running, scoring and
 * showing them. */
#pragma once

#include "experiments/system.h"
#include "settings_tables.h"

#include <dvbf/report.h>

/* Records of `count` closed loops of `steps` steps. */
typedef struct dv_episodes {
  size_t count, steps, n_x, n_u, n_s, n_z;
  double region; /* distances that count as at the goal */
  float *x;      /* [count][steps][n_x] as it was, seen or not */
  float *u;      /* [count][steps][n_u] that acted */
  float *given;  /* [count][steps][n_u] by the controller, later ones of which have not acted with a delay */
  float *truth;  /* [count][steps][n_s] */
  float *z, *ahead; /* [count][steps][n_z] belief at a frame, and where the plan ends; 0: there is none */
  float *distance;  /* [count][steps] from the goal; of an angle from -pi to pi */
  float *speed;     /* [count][steps] 0 if it has none */
  float *cost;      /* [count][steps] of the plan; NaN if there is none */
  double *time;     /* [count][steps] microseconds of the controller */
  bool *seen;       /* [count][steps] */
} dv_episodes;

/* Result of a step. */
typedef struct dv_flown {
  const float *u;         /* [n_u] */
  const float *z, *ahead; /* [n_z] belief and end of the plan; NULL: there is none */
  double cost;            /* of the plan; NaN: there is none */
} dv_flown;

/* A controller. */
typedef struct dv_pilot {
  void *user;
  size_t n_z;
  bool sees_state; /* it sees the reported state, not x */
  void (*reset)(void *user);
  /* seen is NULL if it is lost; `acted` is the control that acted until then, or NULL. */
  void (*step)(void *user, const float *seen, const float *acted, dv_flown *out);
} dv_pilot;

dv_pilot dv_controller_pilot(dvbf_controller *controller, size_t n_z);

/* How they are run. */
typedef struct dv_running {
  const dv_loop_settings *settings;
  /* The training that data are collected for, with disturbed controls; 0: closed loops that judge, with lost
   * frames and a push. */
  uint32_t round;
  const volatile int *interrupt; /* NULL, or a flag that ends it with DVBF_STOPPED */
} dv_running;

dvbf_status dv_episodes_run(dv_episodes *out, size_t count, const dv_system *system, const dv_pilot *pilot,
                            const dv_running *how, dvbf_error *error);
void dv_episodes_free(dv_episodes *episodes);

/* ---- Scores ---- */

/* Scores closed loops; share_of and value_of are the caller's to free. */
dvbf_status dv_loop_score(dvbf_loop_result *out, const dv_episodes *episodes, dvbf_error *error);

/* ---- Control on the true state ---- */

/* A controller with the true state and system: an upper bound for any model. It plans as dvbf_controller
 * does, in the space of the reported state, each column over its standard deviation at the beginning of
 * sequences. */

typedef struct dv_true_state dv_true_state;

/* The system must outlive it. Free it with dv_free. */
dvbf_status dv_true_state_new(dv_true_state **out, const dv_system *system, const dvbf_settings *control,
                              dvbf_error *error);
dv_pilot dv_true_state_pilot(dv_true_state *truth);
/* The image x of z [n_s]; left black where z is 0, as before the first frame. */
void dv_true_state_draw(const dv_true_state *truth, const float *z, float *x);

/* ---- Report ---- */

/* Written for closed loops: control.json, control.html, control.png and .svg, control.apng. */

typedef struct dv_loop_shown {
  const dvbf_loop *asked;
  const dv_system *system;
  const dvbf_model *model;      /* NULL: the true state was known, */
  const dv_true_state *truth;   /* to this */
  const dvbf_settings *control; /* as it was used */
  const dv_episodes *episodes;
  const dvbf_loop_result *outcome;
  const float *goal; /* [n_x] */
} dv_loop_shown;

dvbf_status dv_loop_show(const dv_loop_shown *shown, dvbf_error *error);
