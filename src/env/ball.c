/* A ball in the unit box. Each step adds u to the velocity; then the ball moves freely, and walls reflect it.
 */
#include "base/settings.h"
#include "base/status.h"
#include "env/env.h"

enum { AXES = 2, STATES = 2 * AXES };
static const char state_names[STATES][32] = {"x", "y", "velocity x", "velocity y"};

/* Moves the ball without walls, then folds its position back into [0, 1]. Reflections repeat with period 2;
 * each one reverses the velocity. */
static void fly(double *position, double *velocity, double dt) {
  double end = *position + *velocity * dt, folded = fmod(end, 2);
  if (folded < 0) folded += 2;
  *position = folded > 1 ? 2 - folded : folded;
  if (folded > 1) *velocity = -*velocity;
}

static bool simulate_sequence(const void *settings, dv_random *random, double *scratch, float *x, float *u,
                              float *state) {
  const dv_ball_settings *p = settings;
  size_t size = (size_t)p->size;
  double scale = (double)size / 16, margin = p->margin * scale, room = (double)size - 1 - 2 * margin;
  double position[AXES], velocity[AXES];
  for (int a = 0; a < AXES; a++) position[a] = dv_random_uniform(random);
  for (int a = 0; a < AXES; a++) velocity[a] = dv_random_symmetric(random, p->velocity);
  for (int64_t t = 0; t < p->steps; t++, x += size * size, u += AXES, state += STATES) {
    /* y points up. */
    dv_draw_blob(x, size, margin + room * (1 - position[1]), margin + room * position[0], p->blob * scale,
                 scratch);
    for (int a = 0; a < AXES; a++) {
      state[a] = (float)position[a];
      state[AXES + a] = (float)velocity[a];
      u[a] = (float)dv_random_symmetric(random, 1);
      velocity[a] += p->control * u[a];
      fly(&position[a], &velocity[a], p->dt);
    }
  }
  return true;
}

dvbf_status dv_simulate_ball(dvbf_data *data, const dvbf_settings *settings, dvbf_error *error) {
  const dv_ball_settings *p = dv_settings_ball(settings, error);
  if (!p) return DVBF_ARGUMENT;
  double most = 8 * ((double)p->size - 1) / (double)p->size;
  if (p->margin >= most)
    return dv_fail(error, DVBF_ARGUMENT, "margin = %g: leaves no room between the walls; it must be below %g",
                   p->margin, most);
  dv_simulation simulation = {DV_SIMULATION_OF(p), .n_u = AXES, .n_s = STATES, .state_names = state_names,
                              .sequence = simulate_sequence};
  return dv_simulate_splits(data, &simulation, error);
}
