/* The table of simulated systems and what they share: motion with limits and noise, drawing, and data sets
 * with random or sweeping controls (dvbf_simulate). A sequence depends on its seed and number alone. */
#include "experiments/system.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "math/portable.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SYSTEM(called, object, type) extern const dv_system dv_system_##object;
#include "experiments/systems.def"
#undef SYSTEM
#define SYSTEM(called, object, type) {called, #type, &dv_system_##object},
static const struct {
  const char *name;     /* of the system and of its table of settings */
  const char *settings; /* struct of these */
  const dv_system *system;
} systems[] = {
#include "experiments/systems.def"
};
enum { SYSTEMS = sizeof systems / sizeof *systems };

bool dvbf_system(size_t index, dvbf_system_info *info) {
  size_t first = 0;
  if (index >= SYSTEMS) return false;
  while (strcmp(systems[first].settings, systems[index].settings) != 0) first++;
  *info = (dvbf_system_info){.name = systems[index].name,
                             .settings = systems[first].name,
                             .has_goal = systems[index].system->goal.measure};
  return true;
}

static dvbf_status take_shared_settings(dv_system *s, const char *name, dvbf_error *error) {
  const dv_shared_settings *p = s->settings;
  s->disturbance = p->disturbance;
  s->near = p->near;
  s->sweep = p->sweep;
  s->limit *= p->control;
  if (s->near < 1 && !s->uses_near)
    return dv_fail(error, DVBF_ARGUMENT, "near = %g: %.60s has no angles and starts anywhere; leave it out",
                   s->near, name);
  return DVBF_OK;
}

dvbf_status dv_system_of(dv_system *out, const dvbf_settings *settings, dvbf_error *error) {
  const char *name = dv_settings_table_name(settings);
  char known[256] = "";
  for (size_t i = 0; i < SYSTEMS; i++) {
    if (!strcmp(systems[i].name, name)) {
      *out = *systems[i].system;
      out->settings = dv_settings_values(settings, name, error);
      memcpy(&out->data, out->settings, sizeof out->data);
      if (out->data.channels == 2)
        return dv_fail(error, DVBF_ARGUMENT, "channels = 2: images have 1 (grey) or 3 (colour)");
      return out->prepare ? out->prepare(out, error) : take_shared_settings(out, name, error);
    }
    snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", systems[i].name);
  }
  return dv_fail(error, DVBF_ARGUMENT, "there is no system named %.60s to simulate; the known ones are: %s",
                 name, known);
}

size_t dv_system_pixels(const dv_system *s) {
  return (size_t)(s->data.size * s->data.size * s->data.channels);
}

double dv_system_distance(const dv_system *s, const double *state) {
  const dv_system_goal *g = &s->goal;
  float is[DV_MOST_TRUTHS], wanted[DV_MOST_TRUTHS];
  if (g->angle >= 0) return remainder(state[g->angle], 6.283185307179586477);
  s->tell(s, state, is);
  s->tell(s, g->state, wanted);
  double one = (double)(is[g->position] - wanted[g->position]);
  double other = (double)(is[g->position + 1] - wanted[g->position + 1]);
  return sqrt(one * one + other * other);
}

double dv_seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- Motion ---- */

bool dv_system_step(const dv_system *s, double *state, const float *u, dv_random *random) {
  double force[DV_MOST_CONTROLS] = {0};
  for (int k = 0; k < s->n_u; k++) {
    force[k] = fmax(-s->limit, fmin(s->limit, u[k]));
    if (s->disturbance > 0) force[k] += s->limit * s->disturbance * dv_random_normal(random);
  }
  s->step(s, state, force);
  for (int k = 0; k < s->n_state; k++)
    if (!isfinite(state[k])) return false;
  return true;
}

static void moved(double *out, const double *state, const double *slope, double h, int n) {
  for (int k = 0; k < n; k++) out[k] = state[k] + h * slope[k];
}

void dv_runge_kutta(const dv_system *s, dv_slope_fn *slope, double *state, const double *u, double h) {
  double a[DV_MOST_STATES], b[DV_MOST_STATES], c[DV_MOST_STATES], d[DV_MOST_STATES], at[DV_MOST_STATES];
  int n = s->n_state;
  slope(s, state, u, a);
  moved(at, state, a, h / 2, n);
  slope(s, at, u, b);
  moved(at, state, b, h / 2, n);
  slope(s, at, u, c);
  moved(at, state, c, h, n);
  slope(s, at, u, d);
  for (int k = 0; k < n; k++) state[k] += h * ((a[k] + 2 * b[k] + 2 * c[k] + d[k]) / 6);
}

void dv_reflect(double *position, double *velocity, double low, double high) {
  if (*position < low) {
    *position = fmin(high, 2 * low - *position);
    *velocity = fabs(*velocity);
  } else if (*position > high) {
    *position = fmax(low, 2 * high - *position);
    *velocity = -fabs(*velocity);
  }
}

void dv_glide(double state[4], const double u[2], double keeps, double gain, double low, double high) {
  for (int a = 0; a < 2; a++) {
    double *position = &state[a], *velocity = &state[2 + a];
    *velocity = keeps * *velocity + gain * u[a];
    *position += *velocity;
    dv_reflect(position, velocity, low, high);
  }
}

void dv_tell_state(const dv_system *s, const double *state, float *truth) {
  for (int i = 0; i < s->n_s; i++) truth[i] = (float)state[i];
}

/* ---- Images ---- */

void dv_system_draw(const dv_system *s, const double *state, float *x, dv_random *random) {
  dv_raster to = {x, (size_t)s->data.size, (size_t)s->data.channels};
  dv_raster_clear(&to);
  s->draw(s, state, &to);
  for (size_t i = 0; random && s->data.noise > 0 && i < dv_system_pixels(s); i++) {
    double value = x[i] + s->data.noise * dv_random_normal(random);
    x[i] = (float)fmax(0, fmin(1, value));
  }
}

/* ---- Data sets ---- */

/* Random frames become NaN. The other frames are the same as without missing ones. */
static void lose_frames(dvbf_sequences *s, const dv_system *m, uint32_t split, size_t sequence) {
  dv_random random = dv_random_at((uint64_t)m->data.seed, DV_STREAM_GAPS, split, (uint32_t)sequence);
  for (size_t t = 0; t < s->steps; t++) {
    float *frame = s->x + (sequence * s->steps + t) * s->n_x;
    if (!(dv_random_uniform(&random) < m->data.missing)) continue;
    for (size_t k = 0; k < s->n_x; k++) frame[k] = NAN;
  }
}

/* A sine whose frequency rises, or falls, by the same factor from frame to frame, between one swing in a
 * sequence and a period of four frames. */
typedef struct sweep {
  double strength, phase, frequency, factor;
} sweep;

static void begin_sweeps(sweep *out, const dv_system *m, dv_random *random) {
  const double turn = 6.283185307179586477, fastest = 0.25, slowest = 1 / fmax(8, (double)m->data.steps);
  double factor = dv_pow(fastest / slowest, 1 / (double)m->data.steps);
  for (int k = 0; k < m->n_u; k++) {
    bool rises = dv_random_uniform(random) < 0.5;
    out[k] = (sweep){.strength = m->limit * (0.3 + 0.7 * dv_random_uniform(random)),
                     .phase = turn * dv_random_uniform(random),
                     .frequency = turn * (rises ? slowest : fastest),
                     .factor = rises ? factor : 1 / factor};
  }
}

static double next_of(sweep *s) {
  double value = s->strength * dv_sin(s->phase);
  s->phase += s->frequency;
  s->frequency *= s->factor;
  return value;
}

/* One sequence. Its motion uses the stored u, rounded to float. False: the state is not finite. */
static bool simulate_sequence(dvbf_sequences *s, const dv_system *m, uint32_t split, size_t sequence) {
  dv_random random = dv_random_at((uint64_t)m->data.seed, DV_STREAM_SIMULATION, split, (uint32_t)sequence);
  dv_random noise = dv_random_at((uint64_t)m->data.seed, DV_STREAM_PIXELS, split, (uint32_t)sequence);
  double state[DV_MOST_STATES];
  float u[DV_MOST_CONTROLS] = {0};
  sweep sweeps[DV_MOST_CONTROLS] = {{0}};
  m->reset(m, &random, state);
  if (m->sweep) begin_sweeps(sweeps, m, &random);
  for (size_t t = 0, row = sequence * s->steps; t < s->steps; t++, row++) {
    dv_system_draw(m, state, s->x + row * s->n_x, &noise);
    m->tell(m, state, s->state + row * s->n_s);
    for (size_t k = 0; k < s->n_s; k++)
      if (!isfinite(s->state[row * s->n_s + k])) return false;
    for (size_t k = 0; k < s->n_u; k++)
      u[k] = (float)(m->sweep ? next_of(&sweeps[k]) : dv_random_symmetric(&random, m->limit));
    if (s->u) memcpy(s->u + row * s->n_u, u, s->n_u * sizeof *u);
    if (!dv_system_step(m, state, u, &noise)) return false;
  }
  return true;
}

/* Each sequence has its own random numbers, so it does not depend on how many others there are. */
static dvbf_status simulate_split(dvbf_sequences *s, const dv_system *m, uint32_t split, int64_t count,
                                  dvbf_error *error) {
  *s = (dvbf_sequences){.count = (size_t)count,
                        .steps = (size_t)m->data.steps,
                        .n_x = dv_system_pixels(m),
                        .n_u = (size_t)m->n_u,
                        .n_s = (size_t)m->n_s};
  dvbf_status status = dv_sequences_allocate(s, false, error);
  if (!status) status = dv_facts_begin(s, error);
  s->gaps = m->data.missing > 0;
  for (size_t i = 0; !status && i < s->count; i++) {
    if (!simulate_sequence(s, m, split, i))
      status =
          dv_fail(error, DVBF_ARGUMENT,
                  "the motion diverged in sequence %zu; use a smaller dt, more substeps or weaker forces", i);
    else if (s->gaps)
      lose_frames(s, m, split, i);
  }
  return status;
}

static dvbf_status simulate_splits(dvbf_data *data, const dv_system *m, dvbf_error *error) {
  data->state_names = dv_calloc((size_t)m->n_s, sizeof *data->state_names);
  dvbf_status status = data->state_names ? DVBF_OK : dv_fail_memory(error, "simulating");
  data->image_height = data->image_width = (size_t)m->data.size;
  data->image_channels = (size_t)m->data.channels;
  if (!status) memcpy(data->state_names, m->state_names, (size_t)m->n_s * sizeof *data->state_names);
  if (!status) status = simulate_split(&data->train, m, DV_SPLIT_TRAIN, m->data.train, error);
  if (!status) status = simulate_split(&data->valid, m, DV_SPLIT_VALID, m->data.valid, error);
  if (!status) status = simulate_split(&data->test, m, DV_SPLIT_TEST, m->data.test, error);
  return status;
}

dvbf_status dvbf_simulate(dvbf_data **out, const dvbf_settings *settings, dvbf_error *error) {
  dv_system system;
  dvbf_status status = dv_system_of(&system, settings, error);
  if (status) return status;
  dvbf_data *data = dv_calloc(1, sizeof *data);
  if (!data) return dv_fail_memory(error, "simulating");
  status = simulate_splits(data, &system, error);
  if (status)
    dvbf_data_free(data);
  else
    *out = data;
  return status;
}
