/* A pole that swings freely on a cart which a force pushes along a track (Barto, Sutton and Anderson 1983,
 * with friction). The angle is 0 upright. At the ends of the track the cart bounces. */
#include "experiments/system.h"

enum { CART, SPEED, ANGLE, TURN, CART_STATE };
enum { TOLD = 5 };
static const char state_names[TOLD][32] = {"cart", "sin", "cos", "cart velocity", "pole velocity"};

static const double cart_mass = 1, pole_mass = 0.3, half_length = 0.5, gravity = 9.81, end = 1;
static const double cart_friction = 0.5, pole_friction = 0.02;

static void cart_slope(const dv_system *s, const double *state, const double *u, double *out) {
  double sine = sin(state[ANGLE]), cosine = cos(state[ANGLE]), mass = cart_mass + pole_mass;
  double pushed =
      (u[0] - cart_friction * state[SPEED] + pole_mass * half_length * state[TURN] * state[TURN] * sine) /
      mass;
  double turn = (gravity * sine - cosine * pushed - pole_friction * state[TURN] / (pole_mass * half_length)) /
                (half_length * (4.0 / 3 - pole_mass * cosine * cosine / mass));
  out[CART] = state[SPEED];
  out[SPEED] = pushed - pole_mass * half_length * turn * cosine / mass;
  out[ANGLE] = state[TURN];
  out[TURN] = turn;
}

static void reset(const dv_system *s, dv_random *random, double *state) {
  state[CART] = dv_random_symmetric(random, 0.7 * end);
  state[SPEED] = dv_random_symmetric(random, 1);
  state[ANGLE] = dv_random_symmetric(random, s->near * 3.14159265358979);
  state[TURN] = dv_random_symmetric(random, s->near * 4);
}

static void step(const dv_system *s, double *state, const double *u) {
  enum { SUBSTEPS = 4 };
  for (int i = 0; i < SUBSTEPS; i++) {
    dv_runge_kutta(s, cart_slope, state, u, s->dt / SUBSTEPS);
    dv_reflect(&state[CART], &state[SPEED], -end, end);
  }
}

static void tell_cart(const dv_system *s, const double *state, float *truth) {
  const double told[TOLD] = {state[CART], sin(state[ANGLE]), cos(state[ANGLE]), state[SPEED], state[TURN]};
  for (int i = 0; i < s->n_s; i++) truth[i] = (float)told[i];
}

static void from(const dv_system *s, const double *truth, double *state) {
  state[CART] = truth[0];
  state[ANGLE] = atan2(truth[1], truth[2]);
  state[SPEED] = truth[3];
  state[TURN] = truth[4];
}

static void draw(const dv_system *s, const double *state, dv_raster *to) {
  const dv_shared_settings *p = s->settings;
  double size = (double)s->data.size, middle = (size - 1) / 2, thick = p->thickness * size;
  dv_spot cart = {0.55 * size, middle + 0.3 * size * state[CART] / end};
  dv_spot tip = {cart.row - 0.32 * size * cos(state[ANGLE]), cart.column + 0.32 * size * sin(state[ANGLE])};
  dv_raster_box(to, (dv_spot){cart.row, middle}, 0.25, size, (dv_ink){0.2, 0.2, 0.2, 0.2});
  dv_raster_box(to, cart, thick, 1.6 * thick, DV_INK_BLUE);
  dv_raster_rod(to, cart, tip, thick / 2, DV_INK_RED);
}

const dv_system dv_system_cart_pole = {
    DV_SYSTEM(CART_STATE, 1, TOLD),
    .dt = 0.05,
    .limit = 6,
    .uses_near = true,
    .tell = tell_cart,
    .from = from,
    .draw = draw,
    .goal = {.measure = "angle", .region = DV_THIRTY_DEGREES, .angle = ANGLE, .speed = TURN}};
