/* Planning step by step: takes a known state through the controls that are given but have not acted yet,
 * improves the plan from there by iLQR or cross-entropy within the time limit, and returns its first control
 * or the safe one (dv_planner_begin, _plan). */
#include "control/planner.h"

#include "base/error.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Settings and memory ---- */

/* Numbers separated by commas; a single one counts for all. False for any other text. */
static bool read_list(const char *text, double *out, int count) {
  int found = 0;
  DV_PLAIN_NUMBERS;
  for (const char *at = text; found < count; at++) {
    char *end = NULL;
    out[found++] = strtod(at, &end);
    if (end == at || isnan(out[found - 1])) return false;
    at = end + strspn(end, " ");
    if (!*at) break;
    if (*at != ',' || found == count) return false;
  }
  for (int i = 1; found == 1 && i < count; i++) out[i] = out[0];
  return found == 1 || found == count;
}

static dvbf_status refuse(const char *name, const char *text, int n_u, dvbf_error *error) {
  if (!*text)
    return dv_fail(error, DVBF_ARGUMENT, "low and high, the limits of the %d controls, are missing; set both",
                   n_u);
  return dv_fail(error, DVBF_ARGUMENT, "%s = %.60s: must be one number, or %d separated by commas", name,
                 text, n_u);
}

/* Limits of n_u controls; refuses missing ones and empty ranges. */
static dvbf_status read_limits(dv_planner *p, int n_u, dvbf_error *error) {
  const dv_control_settings *s = &p->settings;
  if (n_u > DV_BOX_SIZE)
    return dv_fail(error, DVBF_ARGUMENT, "a controller has at most %d controls, and this model has %d",
                   DV_BOX_SIZE, n_u);
  if (!read_list(s->low, p->low, n_u)) return refuse("low", s->low, n_u, error);
  if (!read_list(s->high, p->high, n_u)) return refuse("high", s->high, n_u, error);
  if (!read_list(*s->rest ? s->rest : "0", p->rest, n_u)) return refuse("rest", s->rest, n_u, error);
  for (int i = 0; i < n_u; i++) {
    if (!(p->low[i] <= p->high[i]))
      return dv_fail(error, DVBF_ARGUMENT, "low = %g is above high = %g for control %d; swap or correct them",
                     p->low[i], p->high[i], i + 1);
    if (p->low[i] == INFINITY || p->high[i] == -INFINITY || !isfinite(p->rest[i]))
      return dv_fail(error, DVBF_ARGUMENT, "the limits of control %d allow no finite value", i + 1);
  }
  return DVBF_OK;
}

dvbf_status dv_planner_set(dv_planner *p, const dv_control_settings *s, int n_u, dvbf_error *error) {
  *p = (dv_planner){.settings = *s};
  dvbf_status status = read_limits(p, n_u, error);
  if (!status && s->planner == DV_PLANNER_SAMPLING && s->random_plans < 2)
    status = dv_fail(error, DVBF_ARGUMENT, "planner = sampling needs random-plans = 2 or more");
  if (!status && s->risk > 0 && s->random_plans < 2)
    status = dv_fail(error, DVBF_ARGUMENT,
                     "risk = %g chooses among random plans: random-plans must be 2 or more", s->risk);
  return status;
}

int dv_planner_rows(const dv_control_settings *s) {
  return s->random_plans > DV_LENGTHS ? (int)s->random_plans : DV_LENGTHS;
}

void dv_planner_lay_out(dv_planner *p, dv_workspace *room, const dv_cost *like) {
  size_t n_u = (size_t)like->n_u;
  p->task = dv_cost_lay_out(room, like);
  dv_cost sizes = *like;
  dv_problem problem = dv_cost_problem(p->task ? p->task : &sizes, dv_planner_rows(&p->settings));
  p->ilqr = dv_ilqr_lay_out(room, &problem);
  if (p->settings.random_plans > 1)
    p->shoot = dv_cross_entropy_lay_out(room, &problem, (int)p->settings.random_plans);
  p->first = dv_workspace_take(room, (size_t)like->n_z + n_u, sizeof *p->first);
  p->sent_u = dv_workspace_take(room, n_u, sizeof *p->sent_u);
  p->sent = dv_workspace_take(room, ((size_t)p->settings.delay + 1) * n_u, sizeof *p->sent);
  p->u = p->sent ? p->sent + (size_t)p->settings.delay * n_u : NULL;
}

double dv_planner_half_width(const dv_planner *p, int i) {
  double half = 0.5 * (p->high[i] - p->low[i]);
  return half > 0 && isfinite(half) ? half : 1;
}

void dv_planner_set_cost(dv_planner *p) {
  dv_cost *t = p->task;
  for (int i = 0; i < t->n_u; i++) {
    double half = dv_planner_half_width(p, i);
    t->low[i] = p->low[i];
    t->high[i] = p->high[i];
    t->rest[i] = p->rest[i];
    t->control[i] = p->settings.control_weight / (half * half);
    t->change[i] = p->settings.change_weight / (half * half);
  }
  dv_into_limits(t->rest, t->low, t->high, t->n_u);
  t->goal_weight = p->settings.goal_weight;
  t->terminal_weight = p->settings.terminal_weight;
  t->discount = p->settings.discount;
}

void dv_planner_reset(dv_planner *p) {
  size_t n_u = (size_t)p->task->n_u;
  for (int t = 0; t < p->task->steps; t++)
    memcpy(p->ilqr->u + (size_t)t * n_u, p->task->rest, n_u * sizeof *p->task->rest);
  for (size_t i = 0; i < ((size_t)p->settings.delay + 1) * n_u; i++)
    p->sent[i] = (float)p->task->rest[i % n_u];
  p->begun = p->planned = false;
  p->number = 0;
}

/* ---- Stepping ---- */

static bool is_late(void *user) {
  const struct timespec *deadline = user;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec != deadline->tv_sec ? now.tv_sec > deadline->tv_sec : now.tv_nsec >= deadline->tv_nsec;
}

void dv_planner_begin(dv_planner *p, const float *u) {
  for (int i = 0; i < p->task->n_u && u; i++)
    if (isfinite(u[i])) p->sent[i] = u[i];
  if (!p->settings.deadline) return;
  clock_gettime(CLOCK_MONOTONIC, &p->deadline);
  int64_t nanoseconds = (int64_t)p->deadline.tv_nsec + p->settings.deadline * 1000;
  p->deadline.tv_sec += (time_t)(nanoseconds / 1000000000);
  p->deadline.tv_nsec = (long)(nanoseconds % 1000000000);
}

static void control_by_plan(void *user, int t, const double *z, double *u) {
  dv_ilqr_control(user, t, z, u);
}

/* Improves the present plan. With a risk, a plan that is better without noise but worse with it than `before`
 * is dropped. */
static dv_plan improve_plan(dv_planner *p, const dv_effort *effort, const dv_drawing *drawing,
                            const dv_plan *before) {
  const dv_effort none = {0};
  dv_plan plan = dv_ilqr_plan(p->ilqr, p->first, effort);
  if (!drawing->futures || !effort->iterations || before->end == DV_PLAN_FAILED) return plan;
  if (dv_cross_entropy_score(p->shoot, p->first, drawing, control_by_plan, p->ilqr) <= before->cost)
    return plan;
  memcpy(p->ilqr->u, p->shoot->u, (size_t)p->task->steps * (size_t)p->task->n_u * sizeof *p->ilqr->u);
  return dv_ilqr_plan(p->ilqr, p->first, &none);
}

/* The state in which a plan begins, once all given controls have acted, and the last of these. */
static void set_first(dv_planner *p, const float *z) {
  const dv_cost *t = p->task;
  int n_z = t->n_z, n_u = t->n_u;
  for (int i = 0; i < n_z; i++) p->first[i] = (double)z[i];
  for (int64_t k = 1; k <= p->settings.delay; k++) {
    for (int i = 0; i < n_u; i++) p->sent_u[i] = (double)p->sent[k * n_u + i];
    t->motion.move(t->motion.user, 1, p->first, p->sent_u, NULL, p->first, n_z + n_u);
  }
  for (int i = 0; i < n_u; i++) p->first[n_z + i] = (double)p->u[i];
}

static dv_plan plan_from(dv_planner *p, const float *z) {
  dv_effort effort = {.iterations = (int)p->settings.iterations, .tolerance = 1e-7};
  dv_drawing drawing = {.rounds = (int)p->settings.rounds,
                        .spread = p->settings.spread,
                        .correlation = p->settings.correlation,
                        .seed = (unsigned long long)p->settings.seed,
                        .number = p->number,
                        .futures = p->settings.risk > 0 ? (int)p->settings.futures : 0,
                        .risk = p->settings.risk};
  dv_plan drawn = {.end = DV_PLAN_FAILED};
  size_t size = (size_t)p->task->steps * (size_t)p->task->n_u * sizeof *p->ilqr->u;
  if (p->settings.deadline) effort.late = is_late, effort.user = &p->deadline;
  set_first(p, z);
  if (p->planned) dv_ilqr_resume(p->ilqr, p->first);
  p->number++;
  if (p->shoot) {
    memcpy(p->shoot->u, p->ilqr->u, size);
    drawn = dv_cross_entropy_plan(p->shoot, p->first, &drawing, &effort);
    if (drawn.end != DV_PLAN_FAILED) memcpy(p->ilqr->u, p->shoot->u, size);
  }
  if (p->settings.planner == DV_PLANNER_SAMPLING) effort.iterations = 0;
  return improve_plan(p, &effort, &drawing, &drawn);
}

static void be_safe(dv_planner *p) {
  const dv_cost *t = p->task;
  for (int i = 0; i < t->n_u; i++) {
    double u = p->settings.safe == DV_SAFE_HOLD && p->begun ? (double)p->u[i] : 0;
    dv_into_limits(&u, t->low + i, t->high + i, 1);
    p->u[i] = (float)u;
    for (int s = 0; s < t->steps; s++) p->ilqr->u[s * t->n_u + i] = t->rest[i];
  }
}

/* A float within limits that are doubles. */
static void be_planned(dv_planner *p) {
  for (int i = 0; i < p->task->n_u; i++) {
    float u = (float)p->ilqr->u[i];
    if ((double)u > p->task->high[i]) u = nextafterf(u, -INFINITY);
    if ((double)u < p->task->low[i]) u = nextafterf(u, INFINITY);
    p->u[i] = u;
  }
}

dv_plan dv_planner_plan(dv_planner *p, const float *z) {
  size_t n_u = (size_t)p->task->n_u;
  dv_plan plan = {.cost = NAN, .end = DV_PLAN_FAILED};
  if (z) plan = plan_from(p, z);
  p->planned = plan.end != DV_PLAN_FAILED;
  memmove(p->sent, p->sent + n_u, (size_t)p->settings.delay * n_u * sizeof *p->sent);
  (p->planned ? be_planned : be_safe)(p);
  p->begun = true;
  return plan;
}
