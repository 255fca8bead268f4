/* A pendulum driven by a torque: m l^2 phi'' = -mu phi' + m g l sin phi + u, where phi = 0 is upright. */
#include "base/settings.h"
#include "env/env.h"

enum { SIN, COS, VELOCITY, STATES };
static const char state_names[STATES][32] = {"sin", "cos", "velocity"};

typedef struct motion {
  double angle, velocity;
} motion;

static motion derivative(const dv_pendulum_settings *p, motion at, double u) {
  double torque = -p->damping * at.velocity + p->mass * p->gravity * p->length * sin(at.angle) + u;
  return (motion){at.velocity, torque / (p->mass * p->length * p->length)};
}

static motion moved(motion at, motion slope, double h) {
  return (motion){at.angle + h * slope.angle, at.velocity + h * slope.velocity};
}

/* One step h of the classical Runge-Kutta method of order 4. */
static motion runge_kutta(const dv_pendulum_settings *p, motion at, double u, double h) {
  motion a = derivative(p, at, u);
  motion b = derivative(p, moved(at, a, h / 2), u);
  motion c = derivative(p, moved(at, b, h / 2), u);
  motion d = derivative(p, moved(at, c, h), u);
  motion mean = {(a.angle + 2 * b.angle + 2 * c.angle + d.angle) / 6,
                 (a.velocity + 2 * b.velocity + 2 * c.velocity + d.velocity) / 6};
  return moved(at, mean, h);
}

static void draw(const dv_pendulum_settings *p, double angle, double *scratch, float *image) {
  double scale = (double)p->size / 16, middle = ((double)p->size - 1) / 2;
  dv_draw_blob(image, (size_t)p->size, middle - p->radius * scale * cos(angle),
               middle + p->radius * scale * sin(angle), p->blob * scale, scratch);
}

/* The motion uses u as it is stored, rounded to float. */
static bool simulate_sequence(const void *settings, dv_random *random, double *scratch, float *x, float *u,
                              float *state) {
  const dv_pendulum_settings *p = settings;
  size_t pixels = (size_t)p->size * (size_t)p->size;
  motion at;
  at.angle = dv_random_symmetric(random, p->angle);
  at.velocity = dv_random_symmetric(random, p->velocity);
  for (int64_t t = 0; t < p->steps; t++, x += pixels, u++, state += STATES) {
    draw(p, at.angle, scratch, x);
    state[SIN] = (float)sin(at.angle);
    state[COS] = (float)cos(at.angle);
    state[VELOCITY] = (float)at.velocity;
    if (!isfinite(at.angle) || !isfinite(state[VELOCITY])) return false;
    *u = (float)dv_random_symmetric(random, p->torque);
    for (int64_t i = 0; i < p->substeps; i++) at = runge_kutta(p, at, *u, p->dt / (double)p->substeps);
  }
  return true;
}

dvbf_status dv_simulate_pendulum(dvbf_data *data, const dvbf_settings *settings, dvbf_error *error) {
  const dv_pendulum_settings *p = dv_settings_pendulum(settings, error);
  if (!p) return DVBF_ARGUMENT;
  dv_simulation simulation = {DV_SIMULATION_OF(p), .n_u = 1, .n_s = STATES, .state_names = state_names,
                              .sequence = simulate_sequence};
  return dv_simulate_splits(data, &simulation, error);
}
