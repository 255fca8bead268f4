/* The table of systems, and what they share: reset, step, draw. */
#include "base/status.h"
#include "env/env.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name; /* of the system and of its table of settings */
  dv_system_fn *make;
} systems[] = {
    {"pendulum", dv_system_pendulum},
    {"ball", dv_system_ball},
    {"two-balls", dv_system_two_balls},
    {"cart-pole", dv_system_cart_pole},
    {"arm", dv_system_arm},
    {"planar", dv_system_planar},
    {"dot", dv_system_dot},
    {"textured-dot", dv_system_textured_dot},
    {"camera", dv_system_camera},
};
enum { SYSTEMS = sizeof systems / sizeof *systems };

const char *dv_system_name(size_t i) {
  return i < SYSTEMS ? systems[i].name : NULL;
}

dvbf_status dv_system_of(dv_system *out, const dvbf_settings *settings, dvbf_error *error) {
  const char *name = dv_settings_table_name(settings);
  char known[256] = "";
  *out = (dv_system){0};
  for (size_t i = 0; i < SYSTEMS; i++) {
    if (!strcmp(systems[i].name, name)) {
      dvbf_status status = systems[i].make(out, settings, error);
      if (!status && out->channels == 2)
        status = dv_fail(error, DVBF_ARGUMENT, "channels = 2: images have 1 (grey) or 3 (colour)");
      if (!status && out->near > 0 && out->near < 1 && !out->heeds_near)
        status = dv_fail(error, DVBF_ARGUMENT,
                         "near = %g: first states of %.60s are anywhere; cart-pole and arm heed it",
                         out->near, name);
      return status;
    }
    snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", systems[i].name);
  }
  return dv_fail(error, DVBF_ARGUMENT, "there is no system named %.60s to simulate; the known ones are: %s",
                 name, known);
}

dvbf_status dv_system_zoo(dv_system *out, const dvbf_settings *settings, double dt, double limit,
                          dvbf_error *error) {
  const dv_zoo_settings *p = dv_settings_values(settings, dv_settings_table_name(settings), error);
  if (!p) return DVBF_ARGUMENT;
  *out = (dv_system){DV_SYSTEM_OF(p),   .disturbance = p->disturbance, .near = p->near, .dt = dt,
                     .sweep = p->sweep, .limit = limit * p->control};
  return DVBF_OK;
}

/* ---- Motion ---- */

void dv_system_reset(const dv_system *s, dv_random *random, double *state) {
  s->reset(s, random, state);
}

bool dv_system_step(const dv_system *s, double *state, const float *u, dv_random *random) {
  double force[DV_MOST_CONTROLS] = {0};
  for (int k = 0; k < s->n_u; k++) {
    force[k] = fmax(-s->limit, fmin(s->limit, u[k]));
    if (s->disturbance > 0) force[k] += s->limit * s->disturbance * dv_random_normal(random);
  }
  s->step(s, state, force);
  for (int k = 0; k < s->n_state; k++)
    if (!isfinite(state[k])) return false;
  return true;
}

static void moved(double *out, const double *state, const double *slope, double h, int n) {
  for (int k = 0; k < n; k++) out[k] = state[k] + h * slope[k];
}

void dv_runge_kutta(const dv_system *s, dv_slope_fn *slope, double *state, const double *u, double h) {
  double a[DV_MOST_STATES], b[DV_MOST_STATES], c[DV_MOST_STATES], d[DV_MOST_STATES], at[DV_MOST_STATES];
  int n = s->n_state;
  slope(s, state, u, a);
  moved(at, state, a, h / 2, n);
  slope(s, at, u, b);
  moved(at, state, b, h / 2, n);
  slope(s, at, u, c);
  moved(at, state, c, h, n);
  slope(s, at, u, d);
  for (int k = 0; k < n; k++) state[k] += h * ((a[k] + 2 * b[k] + 2 * c[k] + d[k]) / 6);
}

void dv_reflect(double *position, double *velocity, double low, double high) {
  if (*position < low) {
    *position = fmin(high, 2 * low - *position);
    *velocity = fabs(*velocity);
  } else if (*position > high) {
    *position = fmax(low, 2 * high - *position);
    *velocity = -fabs(*velocity);
  }
}

void dv_glide(double state[4], const double u[2], double keeps, double gain, double low, double high) {
  for (int a = 0; a < 2; a++) {
    double *position = &state[a], *velocity = &state[2 + a];
    *velocity = keeps * *velocity + gain * u[a];
    *position += *velocity;
    dv_reflect(position, velocity, low, high);
  }
}

void dv_tell_state(const dv_system *s, const double *state, float *truth) {
  for (int i = 0; i < s->n_s; i++) truth[i] = (float)state[i];
}

/* ---- Images ---- */

void dv_system_draw(const dv_system *s, const double *state, dv_raster *to, dv_random *random) {
  dv_raster_clear(to);
  s->draw(s, state, to);
  if (!(s->noise > 0)) return;
  for (size_t i = 0; i < to->size * to->size * to->channels; i++) {
    double value = to->pixel[i] + s->noise * dv_random_normal(random);
    to->pixel[i] = (float)fmax(0, fmin(1, value));
  }
}
