/* The online controller: the filter of a model, the regression or encoding that places goals, the task and
 * the planner, in one block of the caller's memory (dvbf_controller_memsize, _init, _step). A goal given as x
 * is encoded by showing it to the filter until its belief no longer changes. Steps allocate nothing. */
#include "control/controller.h"
#include "base/error.h"
#include "control/model_derivatives.h"
#include "control/planner.h"
#include "math/algebra.h"
#include "math/portable.h"

#include <math.h>
#include <string.h>

enum { SETTLING = 30 }; /* frames of a goal that the filter sees, behind those of the initial network */

struct dvbf_controller {
  const dvbf_model *model;
  dv_planner planner;
  dvbf_filter *filter;
  dv_transition_batch *moves;
  dv_emission_jacobian *looks; /* with goal-space = x, else NULL */
  float *x;                    /* [n_x] what is seen of the observation */
  float *rest;                 /* [n_u] */
  float *plan_u, *plan_z;      /* [steps][n_u], [steps + 1][n_z] */
  float *goal_z;               /* [goals][n_z] */
  int64_t blind;               /* steps in a row without an observation */
};

/* ---- Memory ---- */

static dvbf_status place_filter(dv_workspace *room, dvbf_controller *c, dvbf_error *error) {
  size_t size = 0, samples = (size_t)c->planner.settings.samples;
  dvbf_status status = dvbf_filter_memsize(&size, c->model, samples, error);
  void *memory = status ? NULL : dv_workspace_take(room, 1, size);
  if (status || !memory) return status;
  status = dvbf_filter_init(&c->filter, memory, size, c->model, samples, (uint64_t)c->planner.settings.seed,
                            error);
  if (!status) dvbf_filter_quiet(c->filter, samples == 1);
  return status;
}

static dvbf_status lay_out(dvbf_controller **out, dv_workspace *room, const dvbf_controller *like,
                           const dvbf_goal *goal, dvbf_error *error) {
  dvbf_controller *c = dv_workspace_take(room, 1, sizeof *c), parts = *like;
  const dv_control_settings *s = &like->planner.settings;
  int n_w = 0, steps = (int)s->steps, rows = dv_planner_rows(s);
  size_t n_x = (size_t)like->model->n_x, n_u = (size_t)like->model->n_u, n_z = (size_t)like->model->n_z;
  dvbf_status status =
      dv_transition_batch_lay_out(&parts.moves, room, like->model, DV_LENGTHS, rows, steps, &n_w, error);
  if (!status && s->space == DV_GOAL_X)
    status = dv_emission_jacobian_lay_out(&parts.looks, room, like->model, error);
  if (!status) status = place_filter(room, &parts, error);
  if (status) return status;
  parts.x = dv_workspace_take(room, n_x, sizeof *c->x);
  parts.rest = dv_workspace_take(room, n_u, sizeof *c->rest);
  parts.plan_u = dv_workspace_take(room, (size_t)steps * n_u, sizeof *c->plan_u);
  parts.plan_z = dv_workspace_take(room, ((size_t)steps + 1) * n_z, sizeof *c->plan_z);
  parts.goal_z = dv_workspace_take(room, goal->count * n_z, sizeof *c->goal_z);
  size_t n_s = s->space == DV_GOAL_STATE ? goal->n_s : s->space == DV_GOAL_X ? n_x : n_z;
  const dv_cost task = {.motion = dv_transition_batch_dynamics(parts.moves),
                        .looks = parts.looks,
                        .n_z = (int)n_z,
                        .n_u = (int)n_u,
                        .n_w = n_w,
                        .steps = steps,
                        .n_s = (int)n_s,
                        .goals = (int)goal->count};
  dv_planner_lay_out(&parts.planner, room, &task);
  if (c) *c = parts;
  *out = c;
  return DVBF_OK;
}

static dvbf_status check_numbers(const char *what, const float *values, size_t count, bool gaps,
                                 dvbf_error *error) {
  size_t seen = 0;
  for (size_t i = 0; values && i < count; i++) {
    if (!isfinite(values[i]) && !(gaps && isnan(values[i])))
      return dv_fail(error, DVBF_ARGUMENT, "%s of the goal: number %zu is not finite", what, i + 1);
    seen += isfinite(values[i]) != 0;
  }
  if (values && !seen) return dv_fail(error, DVBF_ARGUMENT, "%s of the goal has no values", what);
  return DVBF_OK;
}

/* Refuses goals of another shape. */
static dvbf_status check_goal(const dvbf_goal *goal, const dv_control_settings *s, const dvbf_model *m,
                              dvbf_error *error) {
  bool by_state = s->space == DV_GOAL_STATE;
  if (goal->count < 1 || goal->count > 65536)
    return dv_fail(error, DVBF_ARGUMENT, "%zu goals: must be in [1, 65536]", goal->count);
  if (!goal->x && !goal->z && !(by_state && goal->state))
    return dv_fail(error, DVBF_ARGUMENT, "the goal is empty: it needs an observation x or a latent state z");
  if (s->space == DV_GOAL_X && !goal->x)
    return dv_fail(error, DVBF_ARGUMENT, "goal-space = x needs an observation x as the goal");
  if (by_state && (!goal->state || !goal->map || !goal->n_s))
    return dv_fail(error, DVBF_ARGUMENT,
                   "goal-space = state needs a state as the goal and its regression on z");
  if (by_state && goal->n_s > 65536)
    return dv_fail(error, DVBF_ARGUMENT, "%zu columns of the state: must be in [1, 65536]", goal->n_s);
  size_t n_x = (size_t)m->n_x, n_z = (size_t)m->n_z, n_s = by_state ? goal->n_s : 0;
  size_t n_weights = by_state ? n_s : s->space == DV_GOAL_X ? n_x : n_z;
  dvbf_status status = check_numbers("x", goal->x, goal->count * n_x, true, error);
  if (!status) status = check_numbers("z", goal->z, goal->count * n_z, false, error);
  if (!status && by_state) status = check_numbers("state", goal->state, goal->count * n_s, false, error);
  if (!status && by_state) status = check_numbers("map", goal->map, n_s * (n_z + 1), false, error);
  if (!status) status = check_numbers("weights", goal->weights, n_weights, false, error);
  for (size_t i = 0; !status && goal->weights && i < n_weights; i++)
    if (goal->weights[i] < 0)
      status = dv_fail(error, DVBF_ARGUMENT, "weight %zu of the goal is %g: must be at least 0", i + 1,
                       (double)goal->weights[i]);
  return status;
}

/* Counts the bytes of a controller and, if `out` is not NULL, makes it in memory of that size. */
static dvbf_status make(dvbf_controller **out, size_t *needed, void *memory, size_t size,
                        const dvbf_model *model, const dvbf_goal *goal, const dvbf_settings *settings,
                        dvbf_error *error) {
  dvbf_controller like = {.model = model}, *c = NULL;
  dv_workspace room = {0};
  const dv_control_settings *s = dv_settings_control(settings, error);
  if (!s) return DVBF_ARGUMENT;
  if (dv_model_same_row(model))
    return dv_fail(
        error, DVBF_ARGUMENT,
        "a model with feedthrough = on cannot control, as it sees x only together with the control that acts "
        "from then on; train with feedthrough = off");
  dvbf_status status = dv_planner_set(&like.planner, s, model->n_u, error);
  if (!status) status = check_goal(goal, s, model, error);
  if (!status) status = lay_out(&c, &room, &like, goal, error);
  if (status) return status;
  *needed = room.used;
  if (!out) return DVBF_OK;
  if (!memory || (uintptr_t)memory % 64 || size < *needed)
    return dv_fail(error, DVBF_ARGUMENT,
                   "this controller needs %zu bytes at an address that is a multiple of 64, not %zu at %p",
                   *needed, size, memory);
  room = (dv_workspace){.at = memory};
  status = lay_out(&c, &room, &like, goal, error);
  if (status) return status;
  dv_planner_set_cost(&c->planner);
  status = dvbf_controller_aim(c, goal, error);
  if (!status) *out = c;
  return status;
}

dvbf_status dvbf_controller_memsize(size_t *out, const dvbf_model *model, const dvbf_goal *goal,
                                    const dvbf_settings *settings, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(model));
  return make(NULL, out, NULL, 0, model, goal, settings, error);
}

dvbf_status dvbf_controller_init(dvbf_controller **out, void *memory, size_t size, const dvbf_model *model,
                                 const dvbf_goal *goal, const dvbf_settings *settings, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(model));
  size_t needed;
  return make(out, &needed, memory, size, model, goal, settings, error);
}

void dvbf_controller_reset(dvbf_controller *c) {
  dvbf_filter_reset(c->filter);
  dv_planner_reset(&c->planner);
  c->blind = 0;
}

/* ---- Goals ---- */

/* z of a system at rest at x: the filter's belief after it has seen x for long. */
static dvbf_status encode(dvbf_controller *c, const float *x, float *z, dvbf_error *error) {
  dvbf_belief belief = {0};
  int frames = dv_model_predicts_from(c->model) + SETTLING;
  for (int i = 0; i < c->model->n_u; i++) c->rest[i] = (float)c->planner.task->rest[i];
  dvbf_filter_reset(c->filter);
  for (int t = 0; t < frames; t++) dvbf_filter_step(c->filter, x, c->rest, &belief);
  for (int i = 0; i < c->model->n_z; i++) {
    z[i] = belief.ready ? belief.mean[i] : NAN;
    if (!isfinite(z[i]))
      return dv_fail(error, DVBF_NUMERIC, "the model finds no finite state for this goal; train it again");
  }
  return DVBF_OK;
}

/* The z whose regression is nearest to the state, with a small preference for small z. */
static void invert_map(const dvbf_controller *c, const float *target, float *z) {
  const dv_cost *t = c->planner.task;
  int n = t->n_z;
  double *h = t->a, *b = t->scratch; /* free until Riccati */
  for (int i = 0; i < n; i++) {
    b[i] = 0;
    for (int s = 0; s < t->n_s; s++) {
      const double *row = t->map + (size_t)s * (size_t)(n + 1);
      b[i] += row[i] * ((double)target[s] - row[n]);
      for (int j = 0; j < n; j++) h[i * n + j] = (s ? h[i * n + j] : 0) + row[i] * row[j];
    }
    h[i * n + i] += 1e-9;
  }
  dv_solve_definite(h, n, b, 1);
  for (int i = 0; i < n; i++) z[i] = (float)b[i];
}

/* The map that is compared with the goals, and the weight of each of its columns. */
static void set_map(dvbf_controller *c, const dvbf_goal *goal) {
  dv_cost *t = c->planner.task;
  bool by_state = c->planner.settings.space == DV_GOAL_STATE;
  int width = t->n_z + 1;
  for (int s = 0; s < t->n_s; s++) {
    t->weight[s] = goal->weights ? (double)goal->weights[s] : 1;
    for (int i = 0; i < width && !c->looks; i++)
      t->map[s * width + i] = by_state ? (double)goal->map[s * width + i] : (double)(s == i);
  }
}

/* The goal in the space of distances; z [n_z] is its state. A column of x that one goal leaves open counts in
 * none. */
static void set_target(dvbf_controller *c, const dvbf_goal *goal, size_t g, const float *z) {
  dv_cost *t = c->planner.task;
  const dvbf_model *m = c->model;
  double *target = t->target + g * (size_t)t->n_s;
  for (int s = 0; s < t->n_s; s++) {
    if (c->looks && goal->x) {
      float x = goal->x[g * (size_t)m->n_x + (size_t)s];
      target[s] = isfinite(x) ? ((double)x - (double)m->x.shift[s]) * (double)m->x.scale[s] : 0;
      if (!isfinite(x)) t->weight[s] = 0;
    } else {
      target[s] = c->planner.settings.space == DV_GOAL_STATE ? (double)goal->state[g * goal->n_s + (size_t)s]
                                                             : (double)z[s];
    }
  }
}

dvbf_status dvbf_controller_aim(dvbf_controller *c, const dvbf_goal *goal, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(c->model));
  dv_cost *t = c->planner.task;
  bool by_state = c->planner.settings.space == DV_GOAL_STATE;
  size_t n_z = (size_t)t->n_z, n_x = (size_t)c->model->n_x;
  dvbf_status status = check_goal(goal, &c->planner.settings, c->model, error);
  if (!status && ((int)goal->count != t->goals || (by_state && (int)goal->n_s != t->n_s)))
    status = dv_fail(error, DVBF_ARGUMENT,
                     "%zu goals, but there were %d before; their number and state columns cannot change",
                     goal->count, t->goals);
  if (status) return status;
  set_map(c, goal);
  for (size_t g = 0; g < goal->count && !status; g++) {
    float *z = c->goal_z + g * n_z;
    if (goal->z)
      memcpy(z, goal->z + g * n_z, n_z * sizeof *z);
    else if (goal->x)
      status = encode(c, goal->x + g * n_x, z, error);
    else
      invert_map(c, goal->state + g * goal->n_s, z);
    for (size_t i = 0; i < n_z; i++) t->centre[g * n_z + i] = (double)z[i];
    set_target(c, goal, g, z);
  }
  if (!status) dv_cost_terminal(t, c->planner.settings.terminal);
  dvbf_controller_reset(c);
  return status;
}

const float *dvbf_controller_goal(const dvbf_controller *c) {
  return c->goal_z;
}

const dv_planner *dv_controller_planner(const dvbf_controller *c) {
  return &c->planner;
}

double dv_controller_effort(const dvbf_controller *c) {
  const dv_cost *t = c->planner.task;
  double most = t->steers ? 0 : INFINITY;
  for (int i = 0; i < t->goals * t->n_u; i++) {
    const double *gain = t->gain + (size_t)i * (size_t)t->n_z;
    most =
        fmax(most, sqrt(dv_dot(gain, gain, (size_t)t->n_z)) / dv_planner_half_width(&c->planner, i % t->n_u));
  }
  return most;
}

/* ---- Stepping ---- */

/* The finite values of x, or NULL if there are none. */
static const float *visible(dvbf_controller *c, const float *x) {
  bool any = false;
  for (int i = 0; x && i < c->model->n_x; i++) {
    bool seen = isfinite(x[i]);
    c->x[i] = seen ? x[i] : NAN;
    any = any || seen;
  }
  return any ? c->x : NULL;
}

static void keep_plan(dvbf_controller *c) {
  const dv_cost *t = c->planner.task;
  const dv_ilqr *planned = c->planner.ilqr;
  size_t n_z = (size_t)t->n_z, n_u = (size_t)t->n_u, steps = (size_t)t->steps;
  for (size_t i = 0; i < steps * n_u; i++) c->plan_u[i] = (float)planned->u[i];
  for (size_t k = 0; k <= steps; k++)
    for (size_t i = 0; i < n_z; i++) c->plan_z[k * n_z + i] = (float)planned->z[k * (n_z + n_u) + i];
}

void dvbf_controller_step(dvbf_controller *c, const float *x, const float *u, dvbf_control *out) {
  DV_COMPUTE(dv_model_portable(c->model));
  dv_planner *p = &c->planner;
  const float *seen = visible(c, x);
  dvbf_belief belief;
  dv_planner_begin(p, u);
  c->blind = seen ? 0 : c->blind + 1;
  dvbf_filter_step(c->filter, seen, p->sent, &belief);
  *out = (dvbf_control){.n_u = (size_t)p->task->n_u,
                        .n_z = (size_t)p->task->n_z,
                        .steps = (size_t)p->task->steps,
                        .u = p->u,
                        .plan_u = c->plan_u,
                        .plan_z = c->plan_z,
                        .cost = NAN,
                        .belief = belief};
  out->reason = !belief.ready                  ? "the filter has not seen its first frames yet"
                : c->blind > p->settings.blind ? "nothing was observed for more steps than max-missing"
                                               : NULL;
  dv_plan plan = dv_planner_plan(p, out->reason ? NULL : belief.mean);
  if (!out->reason && plan.end == DV_PLAN_FAILED) out->reason = "no plan has a finite cost";
  out->ready = !out->reason;
  if (out->ready) keep_plan(c), out->cost = plan.cost, out->iterations = plan.iterations;
}
