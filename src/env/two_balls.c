/* Two balls of equal mass in a box, with the physics and images that Sutskever and Hinton (2007) made for
 * their temporal restricted Boltzmann machines. */
#include "base/settings.h"
#include "base/status.h"
#include "env/env.h"

enum { BALLS = 2, AXES = 2 };

/* An image does not show which ball is the first. So the states are quantities that stay the same when the
 * balls are swapped. */
enum { STATES = 5 };
static const char state_names[STATES][32] = {"mean x", "mean y", "mean velocity x", "mean velocity y",
                                             "distance"};

typedef struct motion {
  double position[BALLS][AXES], velocity[BALLS][AXES];
} motion;

/* Vector from the second ball to the first; returns its length. */
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

/* A ball at or behind a wall moves away from it. */
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

/* pixel = min(1, sum over balls of exp(-(d^2 / r^2)^4)), d from the pixel's centre; y points up. */
static void draw(const dv_two_balls_settings *p, const motion *m, float *image) {
  double pixel = p->box / (double)p->size;
  for (int64_t i = 0; i < p->size; i++)
    for (int64_t j = 0; j < p->size; j++) {
      double sum = 0;
      for (int b = 0; b < BALLS; b++) {
        double dx = pixel * ((double)j + 0.5) - m->position[b][0];
        double dy = p->box - pixel * ((double)i + 0.5) - m->position[b][1];
        sum += exp(-pow((dx * dx + dy * dy) / (p->radius * p->radius), 4));
      }
      image[i * p->size + j] = (float)fmin(1, sum);
    }
}

static void write_state(const motion *m, float *state) {
  double apart[AXES];
  for (int a = 0; a < AXES; a++) {
    state[a] = (float)((m->position[0][a] + m->position[1][a]) / 2);
    state[AXES + a] = (float)((m->velocity[0][a] + m->velocity[1][a]) / 2);
  }
  state[2 * AXES] = (float)between(m, apart);
}

static bool simulate_sequence(const void *settings, dv_random *random, double *scratch, float *x, float *u,
                              float *state) {
  (void)scratch, (void)u;
  const dv_two_balls_settings *p = settings;
  motion m = first_motion(p, random);
  for (int64_t t = 0; t < p->steps; t++, x += p->size * p->size, state += STATES) {
    draw(p, &m, x);
    write_state(&m, state);
    move(p, &m);
  }
  return true;
}

dvbf_status dv_simulate_two_balls(dvbf_data *data, const dvbf_settings *settings, dvbf_error *error) {
  const dv_two_balls_settings *p = dv_settings_two_balls(settings, error);
  if (!p) return DVBF_ARGUMENT;
  if (p->box < 5 * p->radius)
    return dv_fail(error, DVBF_ARGUMENT,
                   "box = %g: two balls of radius %g find no room; at least %g (five radii) is needed",
                   p->box, p->radius, 5 * p->radius);
  dv_simulation simulation = {DV_SIMULATION_OF(p), .n_u = 0, .n_s = STATES, .state_names = state_names,
                              .sequence = simulate_sequence};
  return dv_simulate_splits(data, &simulation, error);
}
