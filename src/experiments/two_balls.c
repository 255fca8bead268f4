/* Two balls of equal mass in a box, with the physics and images that Sutskever and Hinton (2007) made for
 * their temporal restricted Boltzmann machines. */
#include "base/error.h"
#include "experiments/system.h"

#include <string.h>

enum { BALLS = 2, AXES = 2 };

/* An image does not show which ball is the first. So the states are quantities that stay the same when the
 * balls are swapped. */
enum { STATES = 5 };
static const char state_names[STATES][32] = {"mean x", "mean y", "mean velocity x", "mean velocity y",
                                             "distance"};

typedef struct motion {
  double position[BALLS][AXES], velocity[BALLS][AXES];
} motion;

static motion motion_of(const double *state) {
  motion m;
  memcpy(m.position, state, sizeof m.position);
  memcpy(m.velocity, state + BALLS * AXES, sizeof m.velocity);
  return m;
}

static void keep(motion m, double *state) {
  memcpy(state, m.position, sizeof m.position);
  memcpy(state + BALLS * AXES, m.velocity, sizeof m.velocity);
}

static double between(const motion *m, double out[AXES]) {
  for (int a = 0; a < AXES; a++) out[a] = m->position[0][a] - m->position[1][a];
  return hypot(out[0], out[1]);
}

static bool fits(const dv_two_balls_settings *p, const motion *m) {
  double apart[AXES];
  for (int b = 0; b < BALLS; b++)
    for (int a = 0; a < AXES; a++)
      if (m->position[b][a] < p->radius || m->position[b][a] > p->box - p->radius) return false;
  return between(m, apart) >= 2 * p->radius;
}

/* Positions 2 + 8 uniform (for a box of 10), drawn again until nothing overlaps; normal velocities, scaled.
 */
static motion first_motion(const dv_two_balls_settings *p, dv_random *random) {
  motion m;
  double squares = 0;
  do
    for (int b = 0; b < BALLS; b++)
      for (int a = 0; a < AXES; a++) m.position[b][a] = p->box * (0.2 + 0.8 * dv_random_uniform(random));
  while (!fits(p, &m));
  for (int b = 0; b < BALLS; b++)
    for (int a = 0; a < AXES; a++) {
      m.velocity[b][a] = dv_random_normal(random);
      squares += m.velocity[b][a] * m.velocity[b][a];
    }
  for (int b = 0; b < BALLS; b++)
    for (int a = 0; a < AXES; a++) m.velocity[b][a] *= p->speed / sqrt(squares);
  return m;
}

static void reflect(const dv_two_balls_settings *p, double position, double *velocity) {
  if (position < p->radius) *velocity = fabs(*velocity);
  if (position > p->box - p->radius) *velocity = -fabs(*velocity);
}

/* Elastic and of equal mass: balls that touch and approach exchange their velocities along the line between
 * their centres. */
static void collide(const dv_two_balls_settings *p, motion *m) {
  double line[AXES], apart = between(m, line), approach = 0;
  if (apart >= 2 * p->radius || apart <= 0) return;
  for (int a = 0; a < AXES; a++) approach += (m->velocity[0][a] - m->velocity[1][a]) * line[a] / apart;
  if (approach >= 0) return;
  for (int a = 0; a < AXES; a++) {
    m->velocity[0][a] -= approach * line[a] / apart;
    m->velocity[1][a] += approach * line[a] / apart;
  }
}

static void move(const dv_two_balls_settings *p, motion *m) {
  for (int64_t i = 0; i < p->substeps; i++) {
    for (int b = 0; b < BALLS; b++)
      for (int a = 0; a < AXES; a++) {
        m->position[b][a] += m->velocity[b][a] / (double)p->substeps;
        reflect(p, m->position[b][a], &m->velocity[b][a]);
      }
    collide(p, m);
  }
}

/* pixel = min(1, sum over balls of exp(-(d^2 / r^2)^4)), d from the pixel's centre; y points up. In colour
 * each ball has its own. */
static void draw(const dv_system *s, const double *state, dv_raster *to) {
  static const double colours[BALLS][3] = {{1, 0.4, 0.2}, {0.2, 0.5, 1}};
  const dv_two_balls_settings *p = s->settings;
  const motion m = motion_of(state);
  double pixel = p->box / (double)s->data.size;
  for (int64_t i = 0; i < s->data.size; i++)
    for (int64_t j = 0; j < s->data.size; j++) {
      double sum[3] = {0};
      for (int b = 0; b < BALLS; b++) {
        double dx = pixel * ((double)j + 0.5) - m.position[b][0];
        double dy = p->box - pixel * ((double)i + 0.5) - m.position[b][1];
        double bright = exp(-pow((dx * dx + dy * dy) / (p->radius * p->radius), 4));
        for (int64_t c = 0; c < s->data.channels; c++)
          sum[c] += s->data.channels > 1 ? colours[b][c] * bright : bright;
      }
      for (int64_t c = 0; c < s->data.channels; c++)
        to->pixel[(i * s->data.size + j) * s->data.channels + c] = (float)fmin(1, sum[c]);
    }
}

static void tell(const dv_system *s, const double *state, float *truth) {
  const motion m = motion_of(state);
  double apart[AXES];
  for (int a = 0; a < AXES; a++) {
    truth[a] = (float)((m.position[0][a] + m.position[1][a]) / 2);
    truth[AXES + a] = (float)((m.velocity[0][a] + m.velocity[1][a]) / 2);
  }
  truth[2 * AXES] = (float)between(&m, apart);
}

static void reset(const dv_system *s, dv_random *random, double *state) {
  keep(first_motion(s->settings, random), state);
}

static void step(const dv_system *s, double *state, const double *u) {
  motion m = motion_of(state);
  move(s->settings, &m);
  keep(m, state);
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
