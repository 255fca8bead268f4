/* Two balls of equal mass in a box, with the physics and images that Sutskever and Hinton (2007) made for
 * their temporal restricted Boltzmann machines. */
#include "base/error.h"
#include "experiments/system.h"

enum { BALLS = 2, AXES = 2 };

/* An image does not show which ball is the first. So the states are quantities that stay the same when the
 * balls are swapped. */
enum { STATES = 5 };
static const char state_names[STATES][32] = {"mean x", "mean y", "mean velocity x", "mean velocity y",
                                             "distance"};

/* A state has the positions of the balls and then their velocities. */
typedef double vector[AXES];

static double between(const vector *position, vector out) {
  for (int a = 0; a < AXES; a++) out[a] = position[0][a] - position[1][a];
  return hypot(out[0], out[1]);
}

static bool fits(const dv_two_balls_settings *p, const double *state) {
  vector apart;
  for (int i = 0; i < BALLS * AXES; i++)
    if (state[i] < p->radius || state[i] > p->box - p->radius) return false;
  return between((const vector *)state, apart) >= 2 * p->radius;
}

/* Positions 2 + 8 uniform (for a box of 10), drawn again until nothing overlaps; normal velocities, scaled.
 */
static void reset(const dv_system *s, dv_random *random, double *state) {
  const dv_two_balls_settings *p = s->settings;
  double *velocity = state + BALLS * AXES, squares = 0;
  do
    for (int i = 0; i < BALLS * AXES; i++) state[i] = p->box * (0.2 + 0.8 * dv_random_uniform(random));
  while (!fits(p, state));
  for (int i = 0; i < BALLS * AXES; i++) {
    velocity[i] = dv_random_normal(random);
    squares += velocity[i] * velocity[i];
  }
  for (int i = 0; i < BALLS * AXES; i++) velocity[i] *= p->speed / sqrt(squares);
}

/* Elastic and of equal mass: balls that touch and approach exchange their velocities along the line between
 * their centres. */
static void collide(const dv_two_balls_settings *p, const vector *position, vector *velocity) {
  vector line;
  double apart = between(position, line), approach = 0;
  if (apart >= 2 * p->radius || apart <= 0) return;
  for (int a = 0; a < AXES; a++) approach += (velocity[0][a] - velocity[1][a]) * line[a] / apart;
  if (approach >= 0) return;
  for (int a = 0; a < AXES; a++) {
    velocity[0][a] -= approach * line[a] / apart;
    velocity[1][a] += approach * line[a] / apart;
  }
}

static void step(const dv_system *s, double *state, const double *u) {
  const dv_two_balls_settings *p = s->settings;
  double *velocity = state + BALLS * AXES;
  for (int64_t k = 0; k < p->substeps; k++) {
    for (int i = 0; i < BALLS * AXES; i++) {
      state[i] += velocity[i] / (double)p->substeps;
      if (state[i] < p->radius) velocity[i] = fabs(velocity[i]);
      if (state[i] > p->box - p->radius) velocity[i] = -fabs(velocity[i]);
    }
    collide(p, (const vector *)state, (vector *)velocity);
  }
}

/* pixel = min(1, sum over balls of exp(-(d^2 / r^2)^4)), d from the pixel's centre; y points up. In colour
 * each ball has its own. */
static void draw(const dv_system *s, const double *state, dv_raster *to) {
  static const double colours[BALLS][3] = {{1, 0.4, 0.2}, {0.2, 0.5, 1}};
  const dv_two_balls_settings *p = s->settings;
  const vector *position = (const vector *)state;
  double pixel = p->box / (double)s->data.size;
  for (int64_t i = 0; i < s->data.size; i++)
    for (int64_t j = 0; j < s->data.size; j++) {
      double sum[3] = {0};
      for (int b = 0; b < BALLS; b++) {
        double dx = pixel * ((double)j + 0.5) - position[b][0];
        double dy = p->box - pixel * ((double)i + 0.5) - position[b][1];
        double bright = exp(-pow((dx * dx + dy * dy) / (p->radius * p->radius), 4));
        for (int64_t c = 0; c < s->data.channels; c++)
          sum[c] += s->data.channels > 1 ? colours[b][c] * bright : bright;
      }
      for (int64_t c = 0; c < s->data.channels; c++)
        to->pixel[(i * s->data.size + j) * s->data.channels + c] = (float)fmin(1, sum[c]);
    }
}

static void tell(const dv_system *s, const double *state, float *truth) {
  const vector *position = (const vector *)state, *velocity = position + BALLS;
  vector apart;
  for (int a = 0; a < AXES; a++) {
    truth[a] = (float)((position[0][a] + position[1][a]) / 2);
    truth[AXES + a] = (float)((velocity[0][a] + velocity[1][a]) / 2);
  }
  truth[2 * AXES] = (float)between(position, apart);
}

static dvbf_status prepare(dv_system *s, dvbf_error *error) {
  const dv_two_balls_settings *p = s->settings;
  if (p->box >= 5 * p->radius) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "box = %g: two balls of radius %g find no room; at least %g (five radii) is needed", p->box,
                 p->radius, 5 * p->radius);
}

const dv_system dv_system_two_balls = {DV_SYSTEM(2 * BALLS * AXES, 0, STATES), .dt = 1, .prepare = prepare,
                                       .tell = tell, .draw = draw};
