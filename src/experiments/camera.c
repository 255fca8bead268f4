/* A camera that pans over a fixed scene which is wider than its view: u accelerates it, friction slows it,
 * and it bounces where the scene ends. */
#include "experiments/system.h"

enum { AXES = 2, CAMERA_STATES = 2 * AXES }; /* positions in views, then velocities per step */
static const char state_names[CAMERA_STATES][32] = {"x", "y", "velocity x", "velocity y"};

static const double extent = 1.8, keeps = 0.95, gain = 0.02, first_speed = 0.04;

static void reset(const dv_system *s, dv_random *random, double *state) {
  for (int a = 0; a < AXES; a++) state[a] = (extent - 1) * dv_random_uniform(random);
  for (int a = 0; a < AXES; a++) state[AXES + a] = dv_random_symmetric(random, first_speed);
}

static void step(const dv_system *s, double *state, const double *u) {
  dv_glide(state, u, keeps, gain, 0, extent - 1);
}

/* y points down, as rows do. */
static void draw(const dv_system *s, const double *state, dv_raster *to) {
  const dv_shared_settings *p = s->settings;
  dv_raster_texture(to, (dv_spot){state[1], state[0]}, extent, fmin(1, 2 * p->texture));
}

const dv_system dv_system_camera = {DV_SYSTEM(CAMERA_STATES, AXES, CAMERA_STATES), .dt = 1, .limit = 1,
                                    .tell = dv_tell_state, .draw = draw};
