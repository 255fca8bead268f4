/* A point in the unit square that each step moves by u, as in Watter et al. (2015): a move that would end in
 * an obstacle or outside does not happen. */
#include "experiments/system.h"

enum { AXES = 2 };
static const char state_names[AXES][32] = {"x", "y"};

static const double margin = 0.06, obstacle = 0.09;
static const double obstacles[][AXES] = {{0.25, 0.3}, {0.7, 0.25}, {0.5, 0.55}, {0.22, 0.75}, {0.78, 0.72}};
enum { OBSTACLES = sizeof obstacles / sizeof *obstacles };

static bool is_free(double x, double y) {
  if (fmin(x, y) < margin || fmax(x, y) > 1 - margin) return false;
  for (int i = 0; i < OBSTACLES; i++)
    if (hypot(x - obstacles[i][0], y - obstacles[i][1]) < obstacle + margin) return false;
  return true;
}

static void reset(const dv_system *s, dv_random *random, double *state) {
  do
    for (int a = 0; a < AXES; a++) state[a] = dv_random_uniform(random);
  while (!is_free(state[0], state[1]));
}

static void step(const dv_system *s, double *state, const double *u) {
  if (!is_free(state[0] + u[0], state[1] + u[1])) return;
  for (int a = 0; a < AXES; a++) state[a] += u[a];
}

/* y points up. */
static dv_spot spot_of(const dv_system *s, const double *at) {
  double size = (double)s->data.size;
  return (dv_spot){(1 - at[1]) * size - 0.5, at[0] * size - 0.5};
}

static void draw(const dv_system *s, const double *state, dv_raster *to) {
  const dv_shared_settings *p = s->settings;
  double size = (double)s->data.size;
  for (int i = 0; i < OBSTACLES; i++) {
    dv_spot at = spot_of(s, obstacles[i]);
    dv_raster_rod(to, at, at, obstacle * size, DV_INK_GREEN);
  }
  dv_raster_blob(to, spot_of(s, state), p->thickness * size, DV_INK_WHITE);
}

const dv_system dv_system_planar = {
    DV_SYSTEM(AXES, AXES, AXES),
    .dt = 1,
    .limit = 0.1,
    .tell = dv_tell_state,
    .draw = draw,
    .goal = {.measure = "distance", .state = {0.9, 0.9}, .region = 0.1, .angle = -1, .speed = -1}};
