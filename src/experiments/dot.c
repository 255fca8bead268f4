/* A small dot in the unit square that actions accelerate, with friction and walls; on black, or in front of a
 * texture that does not move. */
#include "experiments/system.h"

enum { AXES = 2, DOT_STATES = 2 * AXES }; /* positions, then velocities per step */
static const char state_names[DOT_STATES][32] = {"x", "y", "velocity x", "velocity y"};

static const double margin = 0.1, keeps = 0.98, gain = 0.0125, first_speed = 0.03;

static void reset(const dv_system *s, dv_random *random, double *state) {
  for (int a = 0; a < AXES; a++) state[a] = margin + (1 - 2 * margin) * dv_random_uniform(random);
  for (int a = 0; a < AXES; a++) state[AXES + a] = dv_random_symmetric(random, first_speed);
}

static void step(const dv_system *s, double *state, const double *u) {
  dv_glide(state, u, keeps, gain, margin, 1 - margin);
}

/* y points up. */
static void draw(const dv_system *s, const double *state, dv_raster *to) {
  const dv_shared_settings *p = s->settings;
  double size = (double)s->data.size;
  dv_spot at = {(1 - state[1]) * size - 0.5, state[0] * size - 0.5};
  dv_raster_blob(to, at, p->thickness * size, DV_INK_WHITE);
}

static void draw_textured(const dv_system *s, const double *state, dv_raster *to) {
  const dv_shared_settings *p = s->settings;
  dv_raster_texture(to, (dv_spot){0, 0}, 1, p->texture);
  draw(s, state, to);
}

#define DOT(drawing)                                                                                         \
  DV_SYSTEM(DOT_STATES, AXES, DOT_STATES), .dt = 1, .limit = 1, .tell = dv_tell_state, .draw = drawing
const dv_system dv_system_dot = {DOT(draw)}, dv_system_textured_dot = {DOT(draw_textured)};
