/* An arm of two equal links in the horizontal plane, with a torque and friction at each joint. The second
 * angle is relative to the first link. */
#include "experiments/system.h"

enum { FIRST_ANGLE, SECOND, FIRST_TURN, SECOND_TURN, ARM_STATE };
enum { STATES = 6 };
static const char state_names[STATES][32] = {"elbow x", "elbow y",           "tip x",
                                             "tip y",   "shoulder velocity", "elbow velocity"};

static const double length = 1, mass = 1, friction = 0.6;

/* Two uniform rods: M(q) q'' + c(q, q') = u - friction q'. */
static void slope(const dv_system *s, const double *state, const double *u, double *out) {
  double inertia = mass * length * length, bend = cos(state[SECOND]), side = sin(state[SECOND]);
  double m11 = inertia * (5.0 / 3 + bend), m12 = inertia * (1.0 / 3 + bend / 2), m22 = inertia / 3;
  double one = state[FIRST_TURN], two = state[SECOND_TURN], h = inertia * side / 2;
  double first = u[0] - friction * one + h * (2 * one * two + two * two);
  double second = u[1] - friction * two - h * one * one;
  double determinant = m11 * m22 - m12 * m12;
  out[FIRST_ANGLE] = one;
  out[SECOND] = two;
  out[FIRST_TURN] = (m22 * first - m12 * second) / determinant;
  out[SECOND_TURN] = (m11 * second - m12 * first) / determinant;
}

static void reset(const dv_system *s, dv_random *random, double *state) {
  state[FIRST_ANGLE] = dv_random_symmetric(random, s->near * 3.14159265358979);
  state[SECOND] = dv_random_symmetric(random, s->near * 2);
  for (int k = FIRST_TURN; k < ARM_STATE; k++) state[k] = dv_random_symmetric(random, s->near * 1.5);
}

static void step(const dv_system *s, double *state, const double *u) {
  enum { SUBSTEPS = 4 };
  for (int i = 0; i < SUBSTEPS; i++) dv_runge_kutta(s, slope, state, u, s->dt / SUBSTEPS);
}

static void tell_arm(const dv_system *s, const double *state, float *truth) {
  double both = state[FIRST_ANGLE] + state[SECOND], x = cos(state[FIRST_ANGLE]), y = sin(state[FIRST_ANGLE]);
  const double told[STATES] = {x, y, x + cos(both), y + sin(both), state[FIRST_TURN], state[SECOND_TURN]};
  for (int i = 0; i < s->n_s; i++) truth[i] = (float)told[i];
}

static void from(const dv_system *s, const double *truth, double *state) {
  state[FIRST_ANGLE] = atan2(truth[1], truth[0]);
  state[SECOND] =
      remainder(atan2(truth[3] - truth[1], truth[2] - truth[0]) - state[FIRST_ANGLE], 6.283185307179586477);
  state[FIRST_TURN] = truth[4];
  state[SECOND_TURN] = truth[5];
}

static void draw(const dv_system *s, const double *state, dv_raster *to) {
  const dv_shared_settings *p = s->settings;
  double size = (double)s->data.size, middle = (size - 1) / 2, reach = 0.22 * size,
         thick = p->thickness * size;
  double both = state[FIRST_ANGLE] + state[SECOND];
  dv_spot elbow = {middle - reach * sin(state[FIRST_ANGLE]), middle + reach * cos(state[FIRST_ANGLE])};
  dv_spot tip = {elbow.row - reach * sin(both), elbow.column + reach * cos(both)};
  dv_raster_rod(to, (dv_spot){middle, middle}, elbow, thick / 2, DV_INK_BLUE);
  dv_raster_rod(to, elbow, tip, thick / 2, DV_INK_RED);
}

const dv_system dv_system_arm = {DV_SYSTEM(ARM_STATE, 2, STATES),
                                 .dt = 0.1,
                                 .limit = 3,
                                 .uses_near = true,
                                 .tell = tell_arm,
                                 .from = from,
                                 .draw = draw,
                                 .goal = {.measure = "distance of the tip",
                                          .state = {0.9, 0.7},
                                          .region = 0.25,
                                          .angle = -1,
                                          .speed = FIRST_TURN,
                                          .position = 2}};
