/* Simulated systems with known states. A new one is a file NAME.c with its object dv_system_NAME and one line
 * in systems.def; it has the settings that most of them share, or a block of its own in settings_systems.def.
 */
#pragma once

#include "experiments/raster.h"
#include "math/random.h"
#include "settings_tables.h"

#include <dvbf/dvbf.h>

#include <stdint.h>

enum { DV_MOST_STATES = 8, DV_MOST_CONTROLS = 4, DV_MOST_TRUTHS = 8 }; /* of a system */

/* The settings that all systems have, the first of each struct of settings_systems.def: a pointer to that is
 * one to these. */
typedef struct __attribute__((may_alias)) dv_system_data {
  int64_t train, valid, test, steps, size, channels;
  double noise, missing; /* standard deviation of the noise of a pixel; share of the missing frames */
  int64_t seed;
} dv_system_data;

typedef struct dv_system dv_system;

/* What a closed loop is to reach. */
typedef struct dv_system_goal {
  const char *measure;          /* what the distance is: "angle", ...; NULL: no goal is known */
  double state[DV_MOST_STATES]; /* at the goal */
  double region;                /* distance from it that is small */
  int angle, speed; /* their places in a state that begins at an angle; angle = -1: it begins anywhere, */
  int position;     /* and the distance is that of two reported numbers, of which this is the first */
} dv_system_goal;

/* A system: constants of its kind, and the settings of its user (dv_system_of). One may step it by hand, for
 * closed loops: `reset`, dv_system_draw, dv_system_step. */
struct dv_system {
  double dt, limit;              /* time between frames; controls are in plus or minus `limit` */
  int n_state, n_u, n_s;         /* numbers of the state, the control, and of what is told about the state */
  const char (*state_names)[32]; /* [n_s] */
  bool uses_near;                /* it has the setting `near` */
  /* Takes the system's own settings and refuses impossible ones; NULL: it has the shared ones. */
  dvbf_status (*prepare)(dv_system *s, dvbf_error *error);
  void (*reset)(const dv_system *s, dv_random *random, double *state /* [n_state] */);
  void (*step)(const dv_system *s, double *state /* [n_state] */, const double *u /* [n_u] */);
  void (*tell)(const dv_system *s, const double *state /* [n_state] */, float *truth /* [n_s] */);
  /* Internal state for a reported one; NULL: they are the same. */
  void (*from)(const dv_system *s, const double *truth /* [n_s] */, double *state /* [n_state] */);
  void (*draw)(const dv_system *s, const double *state /* [n_state] */, dv_raster *to);
  dv_system_goal goal;

  dv_system_data data;
  double disturbance;   /* standard deviation of what disturbs the control, over `limit` */
  double near;          /* share of the ranges in which angles begin */
  bool sweep;           /* controls of data sweep through frequencies, and are not random */
  const void *settings; /* the struct of settings_systems.def; it belongs to the caller of dv_system_of */
};

/* The system whose name is that of the settings' table. */
dvbf_status dv_system_of(dv_system *out, const dvbf_settings *settings, dvbf_error *error);
/* Distance of a state from the goal: its angle in plus or minus pi, or that of its position. */
double dv_system_distance(const dv_system *s, const double *state);
/* Numbers of an image. */
size_t dv_system_pixels(const dv_system *s);

/* Moves the state by dt under the control u, which is first limited and disturbed. False: the state is not
 * finite any more. */
bool dv_system_step(const dv_system *s, double *state, const float *u, dv_random *random);
/* Draws the image x, with noise from `random` unless that is NULL. */
void dv_system_draw(const dv_system *s, const double *state, float *x, dv_random *random);

/* The values of settings that one has made oneself, to be changed; they count as not given. */
static inline void *dv_settings_edit(dvbf_settings *settings) {
  return (void *)(uintptr_t)dv_settings_values(settings, dv_settings_table_name(settings), NULL);
}

double dv_seconds_now(void);

/* ---- For systems ---- */

/* Sizes, and the functions of the file that every system has. */
#define DV_SYSTEM(state_, u_, s_)                                                                            \
  .n_state = state_, .n_u = u_, .n_s = s_, .state_names = state_names, .reset = reset, .step = step

#define DV_THIRTY_DEGREES 0.523598775598299

/* One step h of the classical Runge-Kutta method of order 4 for state' = slope(state, u). */
typedef void dv_slope_fn(const dv_system *s, const double *state, const double *u, double *slope);
void dv_runge_kutta(const dv_system *s, dv_slope_fn *slope, double *state, const double *u, double h);

/* `tell` of a system that reports its whole state. */
void dv_tell_state(const dv_system *s, const double *state, float *truth);

/* One step of something in the plane, whose state is its position and then its velocity per step: u times
 * `gain` speeds it up, friction leaves the share `keeps`, and walls at `low` and `high` reflect it. */
void dv_glide(double state[4], const double u[2], double keeps, double gain, double low, double high);

/* A wall at `low` and one at `high` reflect a position that has passed them. */
void dv_reflect(double *position, double *velocity, double low, double high);

/* Uniform in plus or minus `limit`. */
static inline double dv_random_symmetric(dv_random *random, double limit) {
  return limit * (2 * dv_random_uniform(random) - 1);
}
