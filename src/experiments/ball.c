/* A ball in the unit box. Each step adds u to the velocity; then the ball moves freely, and walls reflect it.
 * It is the system of the paper's second experiment. */
#include "base/error.h"
#include "experiments/system.h"

enum { AXES = 2, BALL_STATES = 2 * AXES }; /* positions, then velocities */
static const char state_names[BALL_STATES][32] = {"x", "y", "velocity x", "velocity y"};

/* Moves the ball without walls, then folds its position back into [0, 1]. Reflections repeat with period 2;
 * each one reverses the velocity. */
static void fly(double *position, double *velocity, double dt) {
  double end = *position + *velocity * dt, folded = fmod(end, 2);
  if (folded < 0) folded += 2;
  *position = folded > 1 ? 2 - folded : folded;
  if (folded > 1) *velocity = -*velocity;
}

static void reset(const dv_system *s, dv_random *random, double *state) {
  const dv_ball_settings *p = s->settings;
  for (int a = 0; a < AXES; a++) state[a] = dv_random_uniform(random);
  for (int a = 0; a < AXES; a++) state[AXES + a] = dv_random_symmetric(random, p->velocity);
}

static void step(const dv_system *s, double *state, const double *u) {
  const dv_ball_settings *p = s->settings;
  for (int a = 0; a < AXES; a++) {
    state[AXES + a] += p->control * u[a];
    fly(&state[a], &state[AXES + a], p->dt);
  }
}

/* y points up. */
static void draw(const dv_system *s, const double *state, dv_raster *to) {
  const dv_ball_settings *p = s->settings;
  double scale = (double)s->data.size / 16, margin = p->margin * scale,
         room = (double)s->data.size - 1 - 2 * margin;
  dv_spot at = {margin + room * (1 - state[1]), margin + room * state[0]};
  dv_raster_blob(to, at, p->blob * scale, DV_INK_RED);
}

static dvbf_status prepare(dv_system *s, dvbf_error *error) {
  const dv_ball_settings *p = s->settings;
  double most = 8 * ((double)p->size - 1) / (double)p->size;
  if (p->margin >= most)
    return dv_fail(error, DVBF_ARGUMENT, "margin = %g: leaves no room between the walls; it must be below %g",
                   p->margin, most);
  s->dt = p->dt;
  s->sweep = p->sweep;
  return DVBF_OK;
}

const dv_system dv_system_ball = {DV_SYSTEM(BALL_STATES, AXES, BALL_STATES), .limit = 1, .prepare = prepare,
                                  .tell = dv_tell_state, .draw = draw};
