/* A point in the unit square that each step moves by u, as in Watter et al. (2015): a move that would end in
 * an obstacle or outside does not happen. */
#include "experiments/system.h"

enum { AXES = 2 };
static const char state_names[AXES][32] = {"x", "y"};

static const double move_limit = 0.1, margin = 0.06, obstacle = 0.09;
static const double obstacles[][AXES] = {{0.25, 0.3}, {0.7, 0.25}, {0.5, 0.55}, {0.22, 0.75}, {0.78, 0.72}};
enum { OBSTACLES = sizeof obstacles / sizeof *obstacles };

static bool is_free(double x, double y) {
  if (fmin(x, y) < margin || fmax(x, y) > 1 - margin) return false;
  for (int i = 0; i < OBSTACLES; i++)
    if (hypot(x - obstacles[i][0], y - obstacles[i][1]) < obstacle + margin) return false;
  return true;
}

static void reset(const dv_system *s, dv_random *random, double *state) {
  (void)s;
  do
    for (int a = 0; a < AXES; a++) state[a] = dv_random_uniform(random);
  while (!is_free(state[0], state[1]));
}

static void step(const dv_system *s, double *state, const double *u) {
  (void)s;
  if (!is_free(state[0] + u[0], state[1] + u[1])) return;
  for (int a = 0; a < AXES; a++) state[a] += u[a];
}

/* y points up. */
static dv_spot spot_of(const dv_system *s, const double *at) {
  double size = (double)s->size;
  return (dv_spot){(1 - at[1]) * size - 0.5, at[0] * size - 0.5};
}

static void draw(const dv_system *s, const double *state, dv_raster *to) {
  const dv_zoo_settings *p = s->settings;
  double size = (double)s->size;
  for (int i = 0; i < OBSTACLES; i++) {
    dv_spot at = spot_of(s, obstacles[i]);
    dv_raster_rod(to, at, at, obstacle * size, DV_INK_GREEN);
  }
  dv_raster_blob(to, spot_of(s, state), p->thickness * size, DV_INK_WHITE);
}

dvbf_status dv_system_planar(dv_system *out, const dvbf_settings *settings, dvbf_error *error) {
  dvbf_status status = dv_system_zoo(out, settings, 1, move_limit, error);
  out->n_state = AXES, out->n_u = AXES, out->n_s = AXES, out->state_names = state_names;
  out->reset = reset, out->step = step, out->tell = dv_tell_state, out->draw = draw;
  return status;
}
