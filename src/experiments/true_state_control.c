/* Control on the true state and the true system (dv_true_state_new, dv_true_state_pilot), planned like a
 * controller on a model: the best that a model could reach. Derivatives are differences. */
#include "experiments/closed_loop.h"

#include "base/error.h"
#include "base/memory.h"
#include "control/planner.h"

#include <math.h>
#include <string.h>

struct dv_true_state {
  const dv_system *system;
  dv_planner planner;
  double scale[DV_MOST_TRUTHS]; /* of a column of the truth: z = truth / scale */
  float z[DV_MOST_TRUTHS];      /* the state, seen or predicted */
  float ahead[DV_MOST_TRUTHS];  /* where the plan ends */
  bool known;                   /* z is */
};

/* ---- Motion ---- */

static void state_of(const dv_true_state *t, const double *z, double *state) {
  const dv_system *s = t->system;
  double told[DV_MOST_TRUTHS];
  for (int i = 0; i < s->n_s; i++) told[i] = z[i] * t->scale[i];
  if (s->from)
    s->from(s, told, state);
  else
    memcpy(state, told, (size_t)s->n_state * sizeof *state);
}

static void move_one(const dv_true_state *t, const double *z, const double *u, double *next) {
  const dv_system *s = t->system;
  double state[DV_MOST_STATES];
  float told[DV_MOST_TRUTHS];
  state_of(t, z, state);
  s->step(s, state, u);
  s->tell(s, state, told);
  for (int i = 0; i < s->n_s; i++) next[i] = (double)told[i] / t->scale[i];
}

static void move(void *user, int rows, const double *z, const double *u, const double *noise, double *next,
                 int stride) {
  const dv_true_state *t = user;
  for (int r = 0; r < rows; r++, z += stride, next += stride, u += t->system->n_u) move_one(t, z, u, next);
}

/* Column j of `out`, whose rows are `width` apart: the slope between v[j] + h and v[j] - h, where v is z or
 * u. Systems report floats, so h is not small. */
static void central_slope(const dv_true_state *t, double *v, int j, double h, const double *z,
                          const double *u, double *out, int width) {
  double up[DV_MOST_TRUTHS], down[DV_MOST_TRUTHS], kept = v[j];
  v[j] = kept + h;
  move_one(t, z, u, up);
  v[j] = kept - h;
  move_one(t, z, u, down);
  v[j] = kept;
  for (int i = 0; i < t->system->n_s; i++) out[i * width + j] = (up[i] - down[i]) / (2 * h);
}

static void derive(void *user, int steps, const double *z, const double *u, double *a, double *b,
                   int stride) {
  const dv_true_state *t = user;
  int n_z = t->system->n_s, n_u = t->system->n_u;
  double at[DV_MOST_TRUTHS], by[DV_MOST_CONTROLS];
  for (int k = 0; k < steps; k++, z += stride, u += n_u, a += stride * stride, b += stride * n_u) {
    memcpy(at, z, (size_t)n_z * sizeof *at);
    memcpy(by, u, (size_t)n_u * sizeof *by);
    for (int j = 0; j < n_z; j++) central_slope(t, at, j, 1e-3, at, by, a, stride);
    for (int j = 0; j < n_u; j++)
      central_slope(t, by, j, 1e-2 * dv_planner_half_width(&t->planner, j), at, by, b, n_u);
  }
}

/* ---- Memory ---- */

static void set_scale(dv_true_state *t) {
  enum { STARTS = 1000 };
  const dv_system *s = t->system;
  double sum[DV_MOST_TRUTHS] = {0}, squares[DV_MOST_TRUTHS] = {0}, state[DV_MOST_STATES];
  float told[DV_MOST_TRUTHS];
  dv_random random = dv_random_at(1, DV_STREAM_SIMULATION, 2000, 0);
  for (int k = 0; k < STARTS; k++) {
    s->reset(s, &random, state);
    s->tell(s, state, told);
    for (int i = 0; i < s->n_s; i++) {
      sum[i] += (double)told[i];
      squares[i] += (double)told[i] * (double)told[i];
    }
  }
  for (int i = 0; i < s->n_s; i++) {
    double variance = squares[i] / STARTS - sum[i] / STARTS * (sum[i] / STARTS);
    t->scale[i] = variance > 1e-12 ? sqrt(variance) : 1;
  }
}

static void set_goal(dv_true_state *t) {
  const dv_system *s = t->system;
  dv_cost *task = t->planner.task;
  float told[DV_MOST_TRUTHS];
  s->tell(s, t->system->goal.state, told);
  for (int i = 0; i < s->n_s; i++) {
    task->target[i] = task->centre[i] = (double)told[i] / t->scale[i];
    task->weight[i] = 1;
    for (int j = 0; j <= s->n_s; j++) task->map[i * (s->n_s + 1) + j] = i == j;
  }
  dv_cost_terminal(task, t->planner.settings.terminal);
}

dvbf_status dv_true_state_new(dv_true_state **out, const dv_system *s, const dvbf_settings *control,
                              dvbf_error *error) {
  const dv_control_settings *settings = dv_settings_control(control, error);
  if (!settings) return DVBF_ARGUMENT;
  dv_true_state like = {.system = s};
  dvbf_status status = dv_planner_set(&like.planner, settings, s->n_u, error);
  if (status) return status;
  dv_workspace room = {0};
  dv_cost sizes = {.n_z = s->n_s, .n_u = s->n_u, .n_s = s->n_s, .steps = (int)settings->steps, .goals = 1};
  (void)dv_workspace_take(&room, 1, sizeof(dv_true_state));
  dv_planner_lay_out(&like.planner, &room, &sizes);
  void *memory = dv_calloc_aligned(room.used, 1);
  if (!memory) return dv_fail_memory(error, "preparing to control");
  room = (dv_workspace){.at = memory};
  dv_true_state *t = dv_workspace_take(&room, 1, sizeof *t);
  sizes.motion = (dv_dynamics){.user = t, .move = move, .derive = derive};
  *t = like;
  dv_planner_lay_out(&t->planner, &room, &sizes);
  dv_planner_set_cost(&t->planner);
  set_scale(t);
  set_goal(t);
  *out = t;
  return DVBF_OK;
}

/* ---- Stepping ---- */

static void start_over(void *user) {
  dv_true_state *t = user;
  dv_planner_reset(&t->planner);
  t->known = false;
}

/* The reported state or, without it, the state moved on by the control that acted. */
static void see(dv_true_state *t, const float *told) {
  const dv_planner *p = &t->planner;
  double z[DV_MOST_TRUTHS] = {0}, u[DV_MOST_CONTROLS] = {0};
  int n_z = p->task->n_z;
  for (int i = 0; i < n_z && told; i++) t->z[i] = (float)((double)told[i] / t->scale[i]);
  t->known = t->known || told;
  if (told || !t->known) return;
  for (int i = 0; i < p->task->n_u; i++) u[i] = (double)p->sent[i];
  for (int i = 0; i < n_z; i++) z[i] = (double)t->z[i];
  move_one(t, z, u, z);
  for (int i = 0; i < n_z; i++) t->z[i] = (float)z[i];
}

static void plan_step(void *user, const float *seen, const float *acted, dv_flown *out) {
  dv_true_state *t = user;
  dv_planner *p = &t->planner;
  const dv_cost *task = p->task;
  dv_planner_begin(p, acted);
  see(t, seen);
  dv_plan plan = dv_planner_plan(p, t->known ? t->z : NULL);
  bool ready = plan.end != DV_PLAN_FAILED;
  const double *end = p->ilqr->z + (size_t)task->steps * (size_t)(task->n_z + task->n_u);
  for (int i = 0; i < task->n_z && ready; i++) t->ahead[i] = (float)end[i];
  *out = (dv_flown){.u = p->u,
                    .cost = ready ? plan.cost : (double)NAN,
                    .z = t->known ? t->z : NULL,
                    .ahead = ready ? t->ahead : NULL};
}

dv_pilot dv_true_state_pilot(dv_true_state *t) {
  return (dv_pilot){
      .user = t, .n_z = (size_t)t->system->n_s, .sees_state = true, .reset = start_over, .step = plan_step};
}

void dv_true_state_draw(const dv_true_state *t, const float *z, float *x) {
  double wide[DV_MOST_TRUTHS], state[DV_MOST_STATES];
  bool known = false;
  for (int i = 0; i < t->system->n_s; i++) wide[i] = (double)z[i], known = known || wide[i] != 0;
  if (!known) return;
  state_of(t, wide, state);
  dv_system_draw(t->system, state, x, NULL);
}
