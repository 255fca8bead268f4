/* Closed loops of a simulated system and a controller (dv_episodes_run), with delayed or lost observations
 * and disturbed controls, and their score (dv_loop_score): share of steps in the goal region, episodes that
 * reach and hold it, value, and time of a step. A controller is anything that implements dv_pilot. */
#include "experiments/closed_loop.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ---- */

static bool allocate(dv_episodes *e) {
  size_t all = e->count * e->steps;
  e->x = dv_calloc(all, e->n_x * sizeof *e->x);
  e->u = dv_calloc(all, e->n_u * sizeof *e->u);
  e->given = dv_calloc(all, e->n_u * sizeof *e->given);
  e->truth = dv_calloc(all, e->n_s * sizeof *e->truth);
  e->z = dv_calloc(all, e->n_z * sizeof *e->z);
  e->ahead = dv_calloc(all, e->n_z * sizeof *e->ahead);
  e->distance = dv_calloc(all, sizeof *e->distance);
  e->speed = dv_calloc(all, sizeof *e->speed);
  e->cost = dv_calloc(all, sizeof *e->cost);
  e->time = dv_calloc(all, sizeof *e->time);
  e->seen = dv_calloc(all, sizeof *e->seen);
  return e->x && e->u && e->given && e->truth && e->z && e->ahead && e->distance && e->speed && e->cost &&
         e->time && e->seen;
}

void dv_episodes_free(dv_episodes *e) {
  DV_FREE(e->x, e->u, e->given, e->truth, e->z, e->ahead, e->distance, e->speed, e->cost, e->time, e->seen);
  *e = (dv_episodes){0};
}

/* ---- Running ---- */

static void begin(const dv_system *p, const dv_loop_settings *s, dv_random *random, double *state) {
  memset(state, 0, DV_MOST_STATES * sizeof *state);
  if (p->goal.angle < 0) {
    p->reset(p, random, state);
    return;
  }
  double far = s->first_angle + dv_random_symmetric(random, s->first_range);
  state[p->goal.angle] = dv_random_uniform(random) < 0.5 ? far : -far;
  state[p->goal.speed] = dv_random_symmetric(random, s->first_velocity);
}

static void reset_controller(void *user) {
  dvbf_controller_reset(user);
}

static void step_controller(void *user, const float *seen, const float *acted, dv_flown *out) {
  dvbf_control c;
  dvbf_controller_step(user, seen, acted, &c);
  *out = (dv_flown){.u = c.u,
                    .cost = c.cost,
                    .z = c.belief.ready ? c.belief.mean : NULL,
                    .ahead = c.ready ? c.plan_z + c.steps * c.n_z : NULL};
}

dv_pilot dv_controller_pilot(dvbf_controller *controller, size_t n_z) {
  return (dv_pilot){.user = controller, .n_z = n_z, .reset = reset_controller, .step = step_controller};
}

/* The control of step t and the controller's belief, at place `at` of the arrays. The controller sees the
 * frame of `late` steps before; until the first has come it gives none. */
static void control(dv_episodes *e, size_t at, size_t t, size_t late, const dv_pilot *pilot) {
  size_t from = at - late;
  dv_flown f;
  e->cost[at] = NAN;
  if (t < late) return;
  const float *what = pilot->sees_state ? e->truth + from * e->n_s : e->x + from * e->n_x;
  double start = dv_seconds_now();
  pilot->step(pilot->user, e->seen[from] ? what : NULL, t > late ? e->u + (from - 1) * e->n_u : NULL, &f);
  e->time[at] = 1e6 * (dv_seconds_now() - start);
  memcpy(e->given + at * e->n_u, f.u, e->n_u * sizeof *f.u);
  e->cost[at] = (float)f.cost;
  if (f.z) memcpy(e->z + at * e->n_z, f.z, e->n_z * sizeof *e->z);
  if (f.ahead) memcpy(e->ahead + at * e->n_z, f.ahead, e->n_z * sizeof *e->ahead);
}

/* Disturbs the control, within the limits. */
static void explore(const dv_system *p, float *u, double share, dv_random *random) {
  for (int i = 0; i < p->n_u; i++) {
    double value = (double)u[i] + share * p->limit * dv_random_normal(random);
    u[i] = (float)fmax(-p->limit, fmin(p->limit, value));
  }
}

static bool run_episode(dv_episodes *e, size_t number, const dv_system *p, const dv_pilot *pilot,
                        const dv_running *how) {
  const dv_loop_settings *s = how->settings;
  dv_random random =
      dv_random_at((uint64_t)s->loop_seed, DV_STREAM_SIMULATION, 1000 + how->round, (uint32_t)number);
  dv_random pixels =
      dv_random_at((uint64_t)s->loop_seed, DV_STREAM_PIXELS, 1000 + how->round, (uint32_t)number);
  double state[DV_MOST_STATES];
  size_t slow = (size_t)s->control_delay;
  begin(p, s, &random, state);
  pilot->reset(pilot->user);
  for (size_t t = 0; t < e->steps; t++) {
    size_t at = number * e->steps + t;
    float *u = e->u + at * e->n_u;
    dv_system_draw(p, state, e->x + at * e->n_x, &pixels);
    p->tell(p, state, e->truth + at * e->n_s);
    e->distance[at] = (float)dv_system_distance(p, state);
    e->speed[at] = p->goal.speed < 0 ? 0 : (float)state[p->goal.speed];
    e->seen[at] = !(dv_random_uniform(&random) < (how->round ? 0 : s->lost));
    control(e, at, t, (size_t)s->frame_delay, pilot);
    if (t >= slow) memcpy(u, e->given + (at - slow) * e->n_u, e->n_u * sizeof *u);
    if (how->round && s->explore > 0) explore(p, u, s->explore, &random);
    if (!dv_system_step(p, state, u, &pixels)) return false;
    if (!how->round && t == e->steps / 2 && p->goal.speed >= 0) state[p->goal.speed] += s->push;
  }
  return true;
}

dvbf_status dv_episodes_run(dv_episodes *out, size_t count, const dv_system *p, const dv_pilot *pilot,
                            const dv_running *how, dvbf_error *error) {
  *out = (dv_episodes){.count = count,
                       .steps = (size_t)how->settings->horizon,
                       .n_x = dv_system_pixels(p),
                       .n_u = (size_t)p->n_u,
                       .n_s = (size_t)p->n_s,
                       .n_z = pilot->n_z,
                       .region = how->settings->region > 0 ? how->settings->region : p->goal.region};
  dvbf_status status = allocate(out) ? DVBF_OK : dv_fail_memory(error, "running closed loops");
  for (size_t i = 0; i < count && !status; i++)
    if (dv_interrupted(how->interrupt))
      status = dv_fail_stopped(error);
    else if (!run_episode(out, i, p, pilot, how))
      status = dv_fail(error, DVBF_ARGUMENT,
                       "the motion diverged in closed loop %zu; use a smaller dt or weaker forces", i);
  if (status) dv_episodes_free(out);
  return status;
}

/* ---- Scores ---- */

void dvbf_loop_result_free(dvbf_loop_result *outcome) {
  if (!outcome) return;
  DV_FREE(outcome->share_of, outcome->value_of);
  dv_free(outcome);
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static dvbf_status judge_time(dvbf_loop_result *out, const dv_episodes *e, dvbf_error *error) {
  size_t all = e->count * e->steps;
  double *sorted = dv_calloc(all, sizeof *sorted);
  if (!sorted) return dv_fail_memory(error, "judging closed loops");
  memcpy(sorted, e->time, all * sizeof *sorted);
  qsort(sorted, all, sizeof *sorted, compare);
  out->median = sorted[all / 2];
  out->late = sorted[(size_t)(0.99 * (double)(all - 1))];
  dv_free(sorted);
  return DVBF_OK;
}

/* Steps of a closed loop in the goal region, from `first` on. */
static size_t inside(const dv_episodes *e, size_t number, size_t first) {
  size_t count = 0;
  for (size_t t = first; t < e->steps; t++)
    count += fabs((double)e->distance[number * e->steps + t]) <= e->region;
  return count;
}

static double value_of(const dv_episodes *e, size_t number) {
  double sum = 0;
  for (size_t t = 0; t < e->steps; t++) {
    size_t at = number * e->steps + t;
    double distance = (double)e->distance[at], speed = (double)e->speed[at];
    sum += distance * distance + 0.1 * speed * speed;
    for (size_t i = 0; i < e->n_u; i++)
      sum += 0.001 * (double)e->u[at * e->n_u + i] * (double)e->u[at * e->n_u + i];
  }
  return -sum;
}

dvbf_status dv_loop_score(dvbf_loop_result *out, const dv_episodes *e, dvbf_error *error) {
  size_t half = e->steps / 2, last = e->steps - e->steps / 4;
  out->episodes = e->count;
  out->steps = e->steps;
  out->share_of = dv_calloc(e->count, sizeof *out->share_of);
  out->value_of = dv_calloc(e->count, sizeof *out->value_of);
  if (!out->share_of || !out->value_of) return dv_fail_memory(error, "judging closed loops");
  for (size_t i = 0; i < e->count; i++) {
    size_t count = inside(e, i, 0);
    out->share_of[i] = (double)count / (double)e->steps;
    out->value_of[i] = value_of(e, i);
    out->share += out->share_of[i] / (double)e->count;
    out->value += out->value_of[i] / (double)e->count;
    out->reached += count > 0;
    out->held += inside(e, i, half) == e->steps - half;
    out->recovered += inside(e, i, last) == e->steps - last;
  }
  return judge_time(out, e, error);
}
