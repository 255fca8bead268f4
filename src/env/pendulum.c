/* A pendulum driven by a torque: m l^2 phi'' = -mu phi' + m g l sin phi + u, where phi = 0 is upright. */
#include "base/memory.h"
#include "base/random.h"
#include "base/settings.h"
#include "base/status.h"
#include "data/dataset.h"
#include "env/env.h"

#include <string.h>

enum { SIN, COS, VELOCITY, STATES };
static const char state_names[STATES][32] = {"sin", "cos", "velocity"};

typedef struct motion {
  double angle, velocity;
} motion;

static motion derivative(const dv_pendulum_settings *p, motion at, double u) {
  double torque = -p->damping * at.velocity + p->mass * p->gravity * p->length * sin(at.angle) + u;
  return (motion){at.velocity, torque / (p->mass * p->length * p->length)};
}

static motion moved(motion at, motion slope, double h) {
  return (motion){at.angle + h * slope.angle, at.velocity + h * slope.velocity};
}

/* One step h by the classical method of Runge and Kutta of order 4. */
static motion runge_kutta(const dv_pendulum_settings *p, motion at, double u, double h) {
  motion a = derivative(p, at, u);
  motion b = derivative(p, moved(at, a, h / 2), u);
  motion c = derivative(p, moved(at, b, h / 2), u);
  motion d = derivative(p, moved(at, c, h), u);
  motion mean = {(a.angle + 2 * b.angle + 2 * c.angle + d.angle) / 6,
                 (a.velocity + 2 * b.velocity + 2 * c.velocity + d.velocity) / 6};
  return moved(at, mean, h);
}

/* profile[i] = exp(-(i - centre)^2 / (2 deviation^2)) */
static void gaussian_profile(double *profile /* [size] */, size_t size, double centre, double deviation) {
  for (size_t i = 0; i < size; i++) {
    double distance = ((double)i - centre) / deviation;
    profile[i] = exp(-0.5 * distance * distance);
  }
}

/* A round Gaussian blob is the product of its two profiles: 2 size exponentials instead of size^2. */
static void draw(const dv_pendulum_settings *p, double angle, double *scratch /* [2][size] */,
                 float *image /* [size][size] */) {
  size_t size = (size_t)p->size;
  double scale = (double)size / 16, middle = ((double)size - 1) / 2;
  double *vertical = scratch, *horizontal = scratch + size;
  gaussian_profile(vertical, size, middle - p->radius * scale * cos(angle), p->blob * scale);
  gaussian_profile(horizontal, size, middle + p->radius * scale * sin(angle), p->blob * scale);
  for (size_t i = 0; i < size; i++)
    for (size_t j = 0; j < size; j++) image[i * size + j] = (float)(vertical[i] * horizontal[j]);
}

static double symmetric(dv_random *random, double limit) {
  return limit * (2 * dv_random_uniform(random) - 1);
}

/* Returns false when the motion leaves the numbers. The stored u, not a finer one, drives the motion. */
static bool simulate_sequence(const dv_pendulum_settings *p, dv_random *random, double *scratch,
                              float *x /* [steps][n_x] */, float *u /* [steps][1] */,
                              float *state /* [steps][STATES] */) {
  size_t pixels = (size_t)p->size * (size_t)p->size;
  motion at;
  at.angle = symmetric(random, p->angle);
  at.velocity = symmetric(random, p->velocity);
  for (int64_t t = 0; t < p->steps; t++, x += pixels, u++, state += STATES) {
    draw(p, at.angle, scratch, x);
    state[SIN] = (float)sin(at.angle);
    state[COS] = (float)cos(at.angle);
    state[VELOCITY] = (float)at.velocity;
    if (!isfinite(at.angle) || !isfinite(state[VELOCITY])) return false;
    *u = (float)symmetric(random, p->torque);
    for (int64_t i = 0; i < p->substeps; i++) at = runge_kutta(p, at, *u, p->dt / (double)p->substeps);
  }
  return true;
}

/* Each sequence has its own random numbers, so that it is the same whatever the number of the others. */
static dvbf_status simulate_split(dvbf_sequences *s, const dv_pendulum_settings *p, uint32_t split,
                                  int64_t count, dvbf_error *error) {
  size_t size = (size_t)p->size;
  *s = (dvbf_sequences){
      .count = (size_t)count, .steps = (size_t)p->steps, .n_x = size * size, .n_u = 1, .n_s = STATES};
  double *scratch = dv_calloc(2 * size, sizeof *scratch);
  if (!scratch) return dv_fail_memory(error, "simulating");
  dvbf_status status = dv_sequences_allocate(s, false, error);
  for (size_t i = 0; !status && i < s->count; i++) {
    dv_random random = dv_random_at((uint64_t)p->seed, DV_STREAM_SIMULATION, split, (uint32_t)i);
    size_t first = i * s->steps;
    if (!simulate_sequence(p, &random, scratch, s->x + first * s->n_x, s->u + first,
                           s->state + first * STATES))
      status =
          dv_fail(error, DVBF_ARGUMENT,
                  "the pendulum's motion grew beyond all numbers in sequence %zu; more substeps than %lld or "
                  "a smaller dt than %g follow it",
                  i, (long long)p->substeps, p->dt);
  }
  dv_free(scratch);
  return status;
}

dvbf_status dv_simulate_pendulum(dvbf_data *data, const dvbf_settings *settings, dvbf_error *error) {
  const dv_pendulum_settings *p = dv_settings_pendulum(settings, error);
  if (!p) return DVBF_ARGUMENT;
  data->state_names = dv_calloc(STATES, sizeof *data->state_names);
  if (!data->state_names) return dv_fail_memory(error, "simulating");
  memcpy(data->state_names, state_names, sizeof state_names);
  data->image_height = data->image_width = (size_t)p->size;
  dvbf_status status = simulate_split(&data->train, p, DV_SPLIT_TRAIN, p->train, error);
  if (!status) status = simulate_split(&data->valid, p, DV_SPLIT_VALID, p->valid, error);
  if (!status) status = simulate_split(&data->test, p, DV_SPLIT_TEST, p->test, error);
  return status;
}
