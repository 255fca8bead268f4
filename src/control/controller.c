/* Filter, planner and what joins them. */
#include "control/controller.h"
#include "base/algebra.h"
#include "base/arithmetic.h"
#include "base/status.h"
#include "control/ilqr.h"
#include "control/shoot.h"
#include "control/wish.h"
#include "infer/filter.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { SETTLING = 30 }; /* frames of a goal that the filter sees, behind those of the initial network */

struct dvbf_controller {
  const dvbf_model *model;
  dv_control_settings settings;
  dv_limits limits;
  dvbf_filter *filter;
  dv_moves *moves;
  dv_looks *looks; /* with goal-in = x, else NULL */
  dv_task *task;
  dv_ilqr *ilqr;
  dv_shoot *shoot;        /* NULL: no random plans */
  float *x;               /* [n_x] what is seen of the observation */
  float *u;               /* [n_u] the control that was given last */
  float *plan_u, *plan_z; /* [steps][n_u], [steps + 1][n_z] */
  float *goal_z;          /* [goals][n_z] */
  double *first;          /* [n_z + n_u] where a plan begins */
  bool begun;             /* `u` was given */
  bool planned;           /* there is a plan of the step before */
  int64_t blind;          /* steps in a row without an observation */
  uint32_t number;        /* of the plan */
  struct timespec deadline;
};

/* ---- Making ---- */

static dvbf_status check(const dvbf_model *m, dvbf_error *error) {
  if (!dv_model_same_row(m)) return DVBF_OK;
  return dv_fail(
      error, DVBF_ARGUMENT,
      "a model with feedthrough = on cannot control, as it sees x only together with the control that acts "
      "from then on; train with feedthrough = off");
}

static void place_arrays(dv_room *room, dvbf_controller *c, size_t goals) {
  size_t n_x = (size_t)c->model->n_x, n_u = (size_t)c->model->n_u, n_z = (size_t)c->model->n_z;
  size_t steps = (size_t)c->settings.steps;
  c->x = dv_room_take(room, n_x, sizeof *c->x);
  c->u = dv_room_take(room, n_u, sizeof *c->u);
  c->plan_u = dv_room_take(room, steps * n_u, sizeof *c->plan_u);
  c->plan_z = dv_room_take(room, (steps + 1) * n_z, sizeof *c->plan_z);
  c->goal_z = dv_room_take(room, goals * n_z, sizeof *c->goal_z);
  c->first = dv_room_take(room, n_z + n_u, sizeof *c->first);
}

static dvbf_status place_filter(dv_room *room, dvbf_controller *c, dvbf_error *error) {
  size_t size = 0, samples = (size_t)c->settings.samples;
  dvbf_status status = dvbf_filter_memsize(&size, c->model, samples, error);
  void *memory = status ? NULL : dv_room_take(room, 1, size);
  if (status || !memory) return status;
  status = dvbf_filter_init(&c->filter, memory, size, c->model, samples, (uint64_t)c->settings.seed, error);
  if (!status) dvbf_filter_quiet(c->filter, samples == 1);
  return status;
}

static void place_planners(dv_room *room, dvbf_controller *c, const dvbf_goal *goal, int n_w) {
  const dvbf_model *m = c->model;
  int scouts = (int)c->settings.scouts, rows = scouts > DV_LENGTHS ? scouts : DV_LENGTHS;
  size_t n_s = c->settings.space == DV_GOAL_STATE ? goal->n_s
               : c->settings.space == DV_GOAL_X   ? (size_t)m->n_x
                                                  : (size_t)m->n_z;
  dv_task like = {.moves = c->moves,
                  .looks = c->looks,
                  .n_z = m->n_z,
                  .n_u = m->n_u,
                  .n_w = n_w,
                  .steps = (int)c->settings.steps,
                  .n_s = (int)n_s,
                  .goals = (int)goal->count};
  c->task = dv_task_place(room, &like);
  dv_problem problem = dv_task_problem(c->task ? c->task : &like, rows);
  c->ilqr = dv_ilqr_place(room, &problem);
  if (scouts > 1) c->shoot = dv_shoot_place(room, &problem, scouts);
}

/* Counts bytes or places all parts. */
static dvbf_status lay_out(dvbf_controller **out, dv_room *room, const dvbf_controller *like,
                           const dvbf_goal *goal, dvbf_error *error) {
  dvbf_controller *c = dv_room_take(room, 1, sizeof *c), parts = *like;
  int scouts = (int)like->settings.scouts, rows = scouts > DV_LENGTHS ? scouts : DV_LENGTHS;
  int n_w = 0, steps = (int)like->settings.steps;
  dvbf_status status = dv_moves_place(&parts.moves, room, like->model, DV_LENGTHS, rows, steps, &n_w, error);
  if (!status && like->settings.space == DV_GOAL_X)
    status = dv_looks_place(&parts.looks, room, like->model, error);
  if (!status) status = place_filter(room, &parts, error);
  if (status) return status;
  place_arrays(room, &parts, goal->count);
  place_planners(room, &parts, goal, n_w);
  if (c) *c = parts;
  *out = c;
  return DVBF_OK;
}

static dvbf_status begin(dvbf_controller *like, const dvbf_model *model, const dvbf_goal *goal,
                         const dvbf_settings *settings, dvbf_error *error) {
  const dv_control_settings *s = dv_settings_control(settings, error);
  if (!s) return DVBF_ARGUMENT;
  *like = (dvbf_controller){.model = model, .settings = *s};
  dvbf_status status = check(model, error);
  if (!status) status = dv_limits_read(&like->limits, s, model->n_u, error);
  if (!status) status = dv_goal_check(goal, s, model, error);
  if (!status && s->planner == DV_PLANNER_SAMPLING && s->scouts < 2)
    status = dv_fail(error, DVBF_ARGUMENT, "planner = sampling needs scouts = 2 or more");
  if (!status && s->risk > 0 && s->scouts < 2)
    status = dv_fail(error, DVBF_ARGUMENT, "risk = %g chooses among random plans: scouts must be 2 or more",
                     s->risk);
  return status;
}

dvbf_status dvbf_controller_memsize(size_t *out, const dvbf_model *model, const dvbf_goal *goal,
                                    const dvbf_settings *settings, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(model));
  dvbf_controller like, *none = NULL;
  dv_room room = {0};
  dvbf_status status = begin(&like, model, goal, settings, error);
  if (!status) status = lay_out(&none, &room, &like, goal, error);
  if (!status) *out = room.used;
  return status;
}

/* Half the width of the limits, by which controls are measured. */
static double half_width(const dvbf_controller *c, int i) {
  double half = 0.5 * (c->limits.high[i] - c->limits.low[i]);
  return half > 0 && isfinite(half) ? half : 1;
}

static void set_controls(dvbf_controller *c) {
  dv_task *t = c->task;
  for (int i = 0; i < t->n_u; i++) {
    double half = half_width(c, i);
    t->low[i] = c->limits.low[i];
    t->high[i] = c->limits.high[i];
    t->rest[i] = c->limits.rest[i];
    t->control[i] = c->settings.control_weight / (half * half);
    t->change[i] = c->settings.change_weight / (half * half);
  }
  dv_into_limits(t->rest, t->low, t->high, t->n_u);
  t->goal_weight = c->settings.goal_weight;
  t->terminal_weight = c->settings.terminal_weight;
  t->discount = c->settings.discount;
}

dvbf_status dvbf_controller_init(dvbf_controller **out, void *memory, size_t size, const dvbf_model *model,
                                 const dvbf_goal *goal, const dvbf_settings *settings, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(model));
  dvbf_controller like, *c = NULL;
  size_t needed = 0;
  dvbf_status status = dvbf_controller_memsize(&needed, model, goal, settings, error);
  if (!status) status = begin(&like, model, goal, settings, error);
  if (status) return status;
  if (!memory || (uintptr_t)memory % 64 || size < needed)
    return dv_fail(error, DVBF_ARGUMENT, "this controller needs %zu bytes at a multiple of 64, not %zu at %p",
                   needed, size, memory);
  dv_room room = {.at = memory};
  status = lay_out(&c, &room, &like, goal, error);
  if (status) return status;
  set_controls(c);
  status = dvbf_controller_aim(c, goal, error);
  if (!status) *out = c;
  return status;
}

void dvbf_controller_reset(dvbf_controller *c) {
  dvbf_filter_reset(c->filter);
  for (int t = 0; t < c->task->steps; t++)
    memcpy(c->ilqr->u + (size_t)t * (size_t)c->task->n_u, c->task->rest,
           (size_t)c->task->n_u * sizeof *c->task->rest);
  c->begun = c->planned = false;
  c->blind = 0;
  c->number = 0;
}

/* ---- Goals ---- */

/* z of a system that rests where it looks like x: what the filter believes after it has seen x for long. */
static dvbf_status encode(dvbf_controller *c, const float *x, float *z, dvbf_error *error) {
  dvbf_belief belief = {0};
  int frames = dv_model_predicts_from(c->model) + SETTLING;
  for (int i = 0; i < c->model->n_u; i++) c->u[i] = (float)c->task->rest[i];
  dvbf_filter_reset(c->filter);
  for (int t = 0; t < frames; t++) dvbf_filter_step(c->filter, x, c->u, &belief);
  for (int i = 0; i < c->model->n_z; i++) {
    z[i] = belief.ready ? belief.mean[i] : NAN;
    if (!isfinite(z[i]))
      return dv_fail(error, DVBF_NUMERIC, "the model finds no finite state for this goal; train it anew");
  }
  return DVBF_OK;
}

/* z that comes nearest to a state by the regression, with a small preference for small z. */
static void invert_map(const dvbf_controller *c, const float *target, float *z) {
  const dv_task *t = c->task;
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
  if (dv_cholesky(h, n)) {
    dv_solve_lower(h, n, b, 1);
    dv_solve_upper(h, n, b, 1);
  }
  for (int i = 0; i < n; i++) z[i] = (float)b[i];
}

/* What is compared with the goals, and how much each column of it counts. */
static void set_map(dvbf_controller *c, const dvbf_goal *goal) {
  dv_task *t = c->task;
  bool by_state = c->settings.space == DV_GOAL_STATE;
  int width = t->n_z + 1;
  for (int s = 0; s < t->n_s; s++) {
    t->weight[s] = goal->weights ? (double)goal->weights[s] : 1;
    for (int i = 0; i < width && !c->looks; i++)
      t->map[s * width + i] = by_state ? (double)goal->map[s * width + i] : (double)(s == i);
  }
}

/* The goal in the space in which distances are measured; z [n_z] is its state. What is not known of x in one
 * goal counts in none. */
static void set_target(dvbf_controller *c, const dvbf_goal *goal, size_t g, const float *z) {
  dv_task *t = c->task;
  const dvbf_model *m = c->model;
  double *target = t->target + g * (size_t)t->n_s;
  for (int s = 0; s < t->n_s; s++) {
    if (c->looks && goal->x) {
      float x = goal->x[g * (size_t)m->n_x + (size_t)s];
      target[s] = isfinite(x) ? ((double)x - (double)m->x.shift[s]) * (double)m->x.scale[s] : 0;
      if (!isfinite(x)) t->weight[s] = 0;
    } else {
      target[s] =
          c->settings.space == DV_GOAL_STATE ? (double)goal->state[g * goal->n_s + (size_t)s] : (double)z[s];
    }
  }
}

dvbf_status dvbf_controller_aim(dvbf_controller *c, const dvbf_goal *goal, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(c->model));
  dv_task *t = c->task;
  bool by_state = c->settings.space == DV_GOAL_STATE;
  size_t n_z = (size_t)t->n_z, n_x = (size_t)c->model->n_x;
  dvbf_status status = dv_goal_check(goal, &c->settings, c->model, error);
  if (!status && ((int)goal->count != t->goals || (by_state && (int)goal->n_s != t->n_s)))
    status = dv_fail(error, DVBF_ARGUMENT, "%zu goals of another shape than the first, which were %d",
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
  if (!status) dv_task_terminal(t, c->settings.terminal);
  dvbf_controller_reset(c);
  return status;
}

const float *dvbf_controller_goal(const dvbf_controller *c) {
  return c->goal_z;
}

const dv_task *dv_controller_task(const dvbf_controller *c) {
  return c->task;
}

double dv_controller_effort(const dvbf_controller *c) {
  const dv_task *t = c->task;
  double most = t->steers ? 0 : INFINITY;
  for (int i = 0; i < t->goals * t->n_u; i++) {
    const double *gain = t->gain + (size_t)i * (size_t)t->n_z;
    most = fmax(most, sqrt(dv_dot(gain, gain, (size_t)t->n_z)) / half_width(c, i % t->n_u));
  }
  return most;
}

const dv_control_settings *dv_controller_settings(const dvbf_controller *c) {
  return &c->settings;
}

/* ---- Stepping ---- */

static bool is_late(void *user) {
  const struct timespec *deadline = user;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec != deadline->tv_sec ? now.tv_sec > deadline->tv_sec : now.tv_nsec >= deadline->tv_nsec;
}

static dv_effort effort_of(dvbf_controller *c) {
  dv_effort effort = {.iterations = (int)c->settings.iterations, .tolerance = 1e-7};
  if (c->settings.deadline) effort.late = is_late, effort.user = &c->deadline;
  return effort;
}

static void set_deadline(dvbf_controller *c) {
  if (!c->settings.deadline) return;
  clock_gettime(CLOCK_MONOTONIC, &c->deadline);
  int64_t nanoseconds = (int64_t)c->deadline.tv_nsec + c->settings.deadline * 1000;
  c->deadline.tv_sec += (time_t)(nanoseconds / 1000000000);
  c->deadline.tv_nsec = (long)(nanoseconds % 1000000000);
}

/* What is finite of x, or NULL where nothing is. */
static const float *visible(dvbf_controller *c, const float *x) {
  bool any = false;
  for (int i = 0; x && i < c->model->n_x; i++) {
    bool seen = isfinite(x[i]);
    c->x[i] = seen ? x[i] : NAN;
    any = any || seen;
  }
  return any ? c->x : NULL;
}

static void control_by_plan(void *user, int t, const double *z, double *u) {
  dv_ilqr_control(user, t, z, u);
}

/* Improves the plan that is there. With a risk to weigh, a plan that is better without noise is dropped where
 * it is worse with noise than `before`. */
static dv_plan improve_plan(dvbf_controller *c, const dv_effort *effort, const dv_drawing *drawing,
                            const dv_plan *before) {
  const dv_effort none = {0};
  dv_plan plan = dv_ilqr_plan(c->ilqr, c->first, effort);
  if (!drawing->futures || !effort->iterations || before->end == DV_PLAN_FAILED) return plan;
  if (dv_shoot_judge(c->shoot, c->first, drawing, control_by_plan, c->ilqr) <= before->cost) return plan;
  memcpy(c->ilqr->u, c->shoot->u, (size_t)c->task->steps * (size_t)c->task->n_u * sizeof *c->ilqr->u);
  return dv_ilqr_plan(c->ilqr, c->first, &none);
}

static dv_plan make_plan(dvbf_controller *c) {
  dv_effort effort = effort_of(c);
  dv_drawing drawing = {.rounds = (int)c->settings.rounds,
                        .spread = c->settings.spread,
                        .correlation = c->settings.correlation,
                        .seed = (unsigned long long)c->settings.seed,
                        .number = c->number,
                        .futures = c->settings.risk > 0 ? (int)c->settings.futures : 0,
                        .risk = c->settings.risk};
  dv_plan drawn = {.end = DV_PLAN_FAILED};
  size_t size = (size_t)c->task->steps * (size_t)c->task->n_u * sizeof *c->ilqr->u;
  if (c->planned) dv_ilqr_resume(c->ilqr, c->first);
  c->number++;
  if (c->shoot) {
    memcpy(c->shoot->u, c->ilqr->u, size);
    drawn = dv_shoot_plan(c->shoot, c->first, &drawing, &effort);
    if (drawn.end != DV_PLAN_FAILED) memcpy(c->ilqr->u, c->shoot->u, size);
  }
  if (c->settings.planner == DV_PLANNER_SAMPLING) effort.iterations = 0;
  return improve_plan(c, &effort, &drawing, &drawn);
}

/* Where a plan begins: the mean of the belief and the control that acts now. */
static void set_first(dvbf_controller *c, const dvbf_belief *belief) {
  int n_z = c->task->n_z;
  for (int i = 0; i < n_z; i++) c->first[i] = (double)belief->mean[i];
  for (int i = 0; i < c->task->n_u; i++) c->first[n_z + i] = (double)c->u[i];
}

static void keep_plan(dvbf_controller *c) {
  size_t n_z = (size_t)c->task->n_z, n_u = (size_t)c->task->n_u, steps = (size_t)c->task->steps;
  for (size_t i = 0; i < steps * n_u; i++) c->plan_u[i] = (float)c->ilqr->u[i];
  for (size_t t = 0; t <= steps; t++)
    for (size_t i = 0; i < n_z; i++) c->plan_z[t * n_z + i] = (float)c->ilqr->z[t * (n_z + n_u) + i];
}

/* The control where there is no plan. */
static void be_safe(dvbf_controller *c) {
  const dv_task *t = c->task;
  for (int i = 0; i < t->n_u; i++) {
    double u = c->settings.safe == DV_SAFE_HOLD && c->begun ? (double)c->u[i] : 0;
    dv_into_limits(&u, t->low + i, t->high + i, 1);
    c->u[i] = (float)u;
    for (int s = 0; s < t->steps; s++) c->ilqr->u[s * t->n_u + i] = t->rest[i];
  }
}

/* A float within limits that are doubles. */
static void give(dvbf_controller *c) {
  for (int i = 0; i < c->task->n_u; i++) {
    float u = (float)c->ilqr->u[i];
    if ((double)u > c->task->high[i]) u = nextafterf(u, -INFINITY);
    if ((double)u < c->task->low[i]) u = nextafterf(u, INFINITY);
    c->u[i] = u;
  }
}

void dvbf_controller_step(dvbf_controller *c, const float *x, const float *u, dvbf_control *out) {
  DV_COMPUTE(dv_model_portable(c->model));
  const float *seen = visible(c, x);
  dvbf_belief belief;
  set_deadline(c);
  for (int i = 0; i < c->task->n_u && u; i++)
    if (isfinite(u[i])) c->u[i] = u[i];
  if (!c->begun && !u)
    for (int i = 0; i < c->task->n_u; i++) c->u[i] = (float)c->task->rest[i];
  c->blind = seen ? 0 : c->blind + 1;
  dvbf_filter_step(c->filter, seen, c->u, &belief);
  *out = (dvbf_control){.n_u = (size_t)c->task->n_u,
                        .n_z = (size_t)c->task->n_z,
                        .steps = (size_t)c->task->steps,
                        .u = c->u,
                        .plan_u = c->plan_u,
                        .plan_z = c->plan_z,
                        .cost = NAN,
                        .belief = belief};
  dv_plan plan = {.end = DV_PLAN_FAILED};
  out->reason = !belief.ready                  ? "the filter has not seen its first frames yet"
                : c->blind > c->settings.blind ? "nothing was observed for more steps than blind allows"
                                               : NULL;
  if (!out->reason) set_first(c, &belief), plan = make_plan(c);
  if (!out->reason && plan.end == DV_PLAN_FAILED) out->reason = "no plan has a finite cost";
  out->ready = !out->reason;
  if (out->ready)
    keep_plan(c), give(c);
  else
    be_safe(c);
  if (out->ready) out->cost = plan.cost, out->iterations = plan.iterations;
  c->begun = true;
  c->planned = out->ready;
}
