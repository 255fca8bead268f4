/* Simulated systems with known states. A new system is a file with a dv_system_fn and one line in system.c;
 * it takes the settings that most of them share, settings_zoo.def, or a table of its own. */
#ifndef DV_EXPERIMENTS_SYSTEM_H
#define DV_EXPERIMENTS_SYSTEM_H

#include "base/settings.h"
#include "experiments/raster.h"
#include "math/random.h"

#include <dvbf/dvbf.h>

enum { DV_MOST_STATES = 8, DV_MOST_CONTROLS = 4, DV_MOST_TRUTHS = 8 }; /* of a system */

typedef struct dv_system dv_system;

/* A system with the settings of its user. One may step it by hand, for closed loops: dv_system_reset,
 * dv_system_draw, dv_system_step. */
struct dv_system {
  int64_t train, valid, test, steps, size, channels, seed;
  double missing;                /* share of the frames that are missing */
  double noise;                  /* standard deviation of the noise of a pixel */
  double disturbance;            /* that of what disturbs the control, over `limit` */
  double near;                   /* share of the ranges in which angles begin; 0: there is no such setting */
  bool heeds_near;               /* it heeds `near` */
  bool sweep;                    /* controls of data sweep through frequencies, and are not random */
  const void *settings;          /* the system's own; they belong to the caller of dv_system_of */
  double dt, limit;              /* time between frames; controls are in plus or minus `limit` */
  int n_state, n_u, n_s;         /* numbers of the state, the control, and of what is told about the state */
  const char (*state_names)[32]; /* [n_s] */
  void (*reset)(const dv_system *s, dv_random *random, double *state /* [n_state] */);
  void (*step)(const dv_system *s, double *state /* [n_state] */, const double *u /* [n_u] */);
  void (*tell)(const dv_system *s, const double *state /* [n_state] */, float *truth /* [n_s] */);
  /* Internal state for a reported one; NULL: they are the same. */
  void (*from)(const dv_system *s, const double *truth /* [n_s] */, double *state /* [n_state] */);
  void (*draw)(const dv_system *s, const double *state /* [n_state] */, dv_raster *to);
};

/* Fills *out, zero before, and refuses impossible settings. */
typedef dvbf_status dv_system_fn(dv_system *out, const dvbf_settings *settings, dvbf_error *error);
dv_system_fn dv_system_pendulum, dv_system_ball, dv_system_two_balls, dv_system_cart_pole, dv_system_arm,
    dv_system_planar, dv_system_dot, dv_system_textured_dot, dv_system_camera;

/* The system whose name is that of the settings' table. */
dvbf_status dv_system_of(dv_system *out, const dvbf_settings *settings, dvbf_error *error);
/* Name of system i; NULL: there are no more. */
const char *dv_system_name(size_t i);

void dv_system_reset(const dv_system *s, dv_random *random, double *state);
/* Moves the state by dt under the control u, which is first limited and disturbed. False: the state is not
 * finite any more. */
bool dv_system_step(const dv_system *s, double *state, const float *u, dv_random *random);
/* Draws the image with noise from `random`. */
void dv_system_draw(const dv_system *s, const double *state, dv_raster *to, dv_random *random);

/* ---- For systems ---- */

/* The settings that all systems have. */
#define DV_SYSTEM_OF(p)                                                                                      \
  .train = (p)->train, .valid = (p)->valid, .test = (p)->test, .steps = (p)->steps, .size = (p)->size,       \
  .channels = (p)->channels, .seed = (p)->seed, .missing = (p)->missing, .noise = (p)->noise,                \
  .settings = (p)

/* Fills values from settings_zoo.def, for systems without a table of their own. `limit` is that of the
 * system's control, which the user scales. */
dvbf_status dv_system_zoo(dv_system *out, const dvbf_settings *settings, double dt, double limit,
                          dvbf_error *error);

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

#endif
