/* Two balls of equal mass in a box, with the physics and images that Sutskever and Hinton (2007) made for
 * their temporal restricted Boltzmann machines. */
#include "base/error.h"
#include "experiments/system.h"

enum { BALLS = 2, AXES = 2 };

/* An image does not show which ball is the first. So the states are quantities that stay the same when the
 * balls are swapped. */
enum { PAIR_TRUTHS = 5 };
static const char state_names[PAIR_TRUTHS][32] = {"mean x", "mean y", "mean velocity x", "mean velocity y",
                                                  "distance"};

/* A state has the positions of the balls [BALLS][AXES], and then their velocities. */
enum { SPEEDS = BALLS * AXES };

/* Distance of the balls, and the way from the second to the first. */
static double between(const double *state, double out[AXES]) {
  for (int a = 0; a < AXES; a++) out[a] = state[a] - state[AXES + a];
  return hypot(out[0], out[1]);
}

static bool fits(const dv_two_balls_settings *p, const double *state) {
  double apart[AXES];
  for (int i = 0; i < SPEEDS; i++)
    if (state[i] < p->radius || state[i] > p->box - p->radius) return false;
  return between(state, apart) >= 2 * p->radius;
}

/* Positions 2 + 8 uniform (for a box of 10), drawn again until nothing overlaps; normal velocities, scaled.
 */
static void reset(const dv_system *s, dv_random *random, double *state) {
  const dv_two_balls_settings *p = s->settings;
  double *velocity = state + SPEEDS, squares = 0;
  do
    for (int i = 0; i < SPEEDS; i++) state[i] = p->box * (0.2 + 0.8 * dv_random_uniform(random));
  while (!fits(p, state));
  for (int i = 0; i < SPEEDS; i++) {
    velocity[i] = dv_random_normal(random);
    squares += velocity[i] * velocity[i];
  }
  for (int i = 0; i < SPEEDS; i++) velocity[i] *= p->speed / sqrt(squares);
}

/* Elastic and of equal mass: balls that touch and approach exchange their velocities along the line between
 * their centres. */
static void collide(const dv_two_balls_settings *p, double *state) {
  double line[AXES], apart = between(state, line), approach = 0, *velocity = state + SPEEDS;
  if (apart >= 2 * p->radius || apart <= 0) return;
  for (int a = 0; a < AXES; a++) approach += (velocity[a] - velocity[AXES + a]) * line[a] / apart;
  if (approach >= 0) return;
  for (int a = 0; a < AXES; a++) {
    velocity[a] -= approach * line[a] / apart;
    velocity[AXES + a] += approach * line[a] / apart;
  }
}

static void step(const dv_system *s, double *state, const double *u) {
  const dv_two_balls_settings *p = s->settings;
  double *velocity = state + SPEEDS;
  for (int64_t k = 0; k < p->substeps; k++) {
    for (int i = 0; i < SPEEDS; i++) {
      state[i] += velocity[i] / (double)p->substeps;
      if (state[i] < p->radius) velocity[i] = fabs(velocity[i]);
      if (state[i] > p->box - p->radius) velocity[i] = -fabs(velocity[i]);
    }
    collide(p, state);
  }
}

/* pixel = min(1, sum over balls of exp(-(d^2 / r^2)^4)), d from the pixel's centre; y points up. In colour
 * each ball has its own. */
static void draw(const dv_system *s, const double *state, dv_raster *to) {
  static const double colours[BALLS][3] = {{1, 0.4, 0.2}, {0.2, 0.5, 1}};
  const dv_two_balls_settings *p = s->settings;
  double pixel = p->box / (double)s->data.size;
  for (int64_t i = 0; i < s->data.size; i++)
    for (int64_t j = 0; j < s->data.size; j++) {
      double sum[3] = {0};
      for (int b = 0; b < BALLS; b++) {
        double dx = pixel * ((double)j + 0.5) - state[AXES * b];
        double dy = p->box - pixel * ((double)i + 0.5) - state[AXES * b + 1];
        double bright = exp(-pow((dx * dx + dy * dy) / (p->radius * p->radius), 4));
        for (int64_t c = 0; c < s->data.channels; c++)
          sum[c] += s->data.channels > 1 ? colours[b][c] * bright : bright;
      }
      for (int64_t c = 0; c < s->data.channels; c++)
        to->pixel[(i * s->data.size + j) * s->data.channels + c] = (float)fmin(1, sum[c]);
    }
}

static void tell_balls(const dv_system *s, const double *state, float *truth) {
  const double *velocity = state + SPEEDS;
  double apart[AXES];
  for (int a = 0; a < AXES; a++) {
    truth[a] = (float)((state[a] + state[AXES + a]) / 2);
    truth[AXES + a] = (float)((velocity[a] + velocity[AXES + a]) / 2);
  }
  truth[2 * AXES] = (float)between(state, apart);
}

static dvbf_status prepare_balls(dv_system *s, dvbf_error *error) {
  const dv_two_balls_settings *p = s->settings;
  if (p->box >= 5 * p->radius) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "box = %g: two balls of radius %g do not fit; it must be at least %g (five radii)", p->box,
                 p->radius, 5 * p->radius);
}

const dv_system dv_system_two_balls = {DV_SYSTEM(2 * SPEEDS, 0, PAIR_TRUTHS), .dt = 1,
                                       .prepare = prepare_balls, .tell = tell_balls, .draw = draw};
