/* A pendulum driven by a torque: m l^2 phi'' = -mu phi' + m g l sin phi + u, where phi = 0 is upright. It is
 * the system of the paper's first experiment. */
#include "experiments/system.h"

enum { PHI, PHI_SPEED, PENDULUM_STATE };
enum { SIN, COS, TOLD_VELOCITY, PENDULUM_TRUTHS };
static const char state_names[PENDULUM_TRUTHS][32] = {"sin", "cos", "velocity"};

static void spin(const dv_system *s, const double *state, const double *u, double *out) {
  const dv_pendulum_settings *p = s->settings;
  double torque = -p->damping * state[PHI_SPEED] + p->mass * p->gravity * p->length * sin(state[PHI]) + u[0];
  out[PHI] = state[PHI_SPEED];
  out[PHI_SPEED] = torque / (p->mass * p->length * p->length);
}

static void reset(const dv_system *s, dv_random *random, double *state) {
  const dv_pendulum_settings *p = s->settings;
  state[PHI] = dv_random_symmetric(random, p->angle);
  state[PHI_SPEED] = dv_random_symmetric(random, p->velocity);
}

static void step(const dv_system *s, double *state, const double *u) {
  const dv_pendulum_settings *p = s->settings;
  for (int64_t i = 0; i < p->substeps; i++) dv_runge_kutta(s, spin, state, u, p->dt / (double)p->substeps);
}

static void tell_pendulum(const dv_system *s, const double *state, float *truth) {
  truth[SIN] = (float)sin(state[PHI]);
  truth[COS] = (float)cos(state[PHI]);
  truth[TOLD_VELOCITY] = (float)state[PHI_SPEED];
}

static void from(const dv_system *s, const double *truth, double *state) {
  state[PHI] = atan2(truth[SIN], truth[COS]);
  state[PHI_SPEED] = truth[TOLD_VELOCITY];
}

static void draw(const dv_system *s, const double *state, dv_raster *to) {
  const dv_pendulum_settings *p = s->settings;
  double scale = (double)s->data.size / 16, middle = ((double)s->data.size - 1) / 2;
  dv_spot bob = {middle - p->radius * scale * cos(state[PHI]), middle + p->radius * scale * sin(state[PHI])};
  if (p->shape == DV_SHAPE_ROD)
    dv_raster_rod(to, (dv_spot){middle, middle}, bob, p->blob * scale / 2, DV_INK_RED);
  else
    dv_raster_blob(to, bob, p->blob * scale, DV_INK_RED);
}

static dvbf_status prepare_pendulum(dv_system *s, dvbf_error *error) {
  const dv_pendulum_settings *p = s->settings;
  s->dt = p->dt;
  s->limit = p->torque;
  s->disturbance = p->disturbance;
  s->sweep = p->sweep;
  return DVBF_OK;
}

const dv_system dv_system_pendulum = {
    DV_SYSTEM(PENDULUM_STATE, 1, PENDULUM_TRUTHS),
    .prepare = prepare_pendulum,
    .tell = tell_pendulum,
    .from = from,
    .draw = draw,
    .goal = {.measure = "angle", .region = DV_THIRTY_DEGREES, .angle = PHI, .speed = PHI_SPEED}};
