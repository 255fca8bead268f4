/* The controller: its model against derivatives that are made another way, its plans, and what it refuses. */
#include "base/memory.h"
#include "control/model_derivatives.h"
#include "control/optimal_control.h"
#include "small_model.h"

#include <dvbf/control.h>
#include <math.h>

#include <cmocka.h>

static const char *const variants[] = {"",
                                       "transition=mlp transition-hidden=7",
                                       "transition=linear",
                                       "model=vrnn latent=2",
                                       "model=e2c",
                                       "state-limit=2",
                                       "likelihood=bernoulli"};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* ---- The model that plans are made with ---- */

static void near(double a, double b) {
  if (!(fabs(a - b) <= 2e-5 * (1 + fabs(b)))) fail_msg("%g is not %g", a, b);
}

static void compare_moves(const dvbf_model *m, dv_transition_batch *moves, dvbf_jacobian *linear) {
  enum { POINTS = 9 };
  size_t n_z = (size_t)m->n_z, n_u = (size_t)m->n_u;
  dv_random random = dv_random_at(8, DV_STREAM_SIMULATION, 0, 0);
  double *z = calloc(POINTS * n_z, sizeof *z), *next = calloc(POINTS * n_z, sizeof *z);
  double *a = calloc(POINTS * n_z * n_z, sizeof *a), *b = calloc(POINTS * n_z * n_u, sizeof *b);
  float *z_single = calloc(n_z, sizeof *z_single), u_single[N_U];
  double u[POINTS * N_U];
  for (size_t i = 0; i < POINTS * n_z; i++) z[i] = dv_random_normal(&random);
  for (size_t i = 0; i < POINTS * n_u; i++) u[i] = dv_random_normal(&random);
  dv_dynamics d = dv_transition_batch_dynamics(moves);
  d.move(d.user, POINTS, z, u, NULL, next, (int)n_z);
  d.derive(d.user, POINTS, z, u, a, b, (int)n_z);
  for (size_t p = 0; p < POINTS; p++) {
    dvbf_jacobians j;
    for (size_t i = 0; i < n_z; i++) z_single[i] = (float)z[p * n_z + i];
    for (size_t i = 0; i < n_u; i++) u_single[i] = (float)u[p * n_u + i];
    dvbf_jacobian_at(linear, z_single, u_single, &j);
    for (size_t i = 0; i < n_z; i++) near(next[p * n_z + i], (double)j.next[i]);
    for (size_t i = 0; i < n_z * n_z; i++) near(a[p * n_z * n_z + i], (double)j.a[i]);
    for (size_t i = 0; i < n_z * n_u; i++) near(b[p * n_z * n_u + i], (double)j.b[i]);
  }
  free(z), free(next), free(a), free(b), free(z_single);
}

/* z' = f(z, u) + C(z, u) w, and without w afterwards as before. */
static void compare_noise(const dvbf_model *m, dv_transition_batch *moves, int n_w) {
  enum { ROWS = 3 };
  int n_z = m->n_z;
  dv_random random = dv_random_at(8, DV_STREAM_SIMULATION, 0, 0);
  double z[ROWS * 8], u[ROWS * N_U], w[ROWS * 8], quiet[ROWS * 8], one[ROWS * 8], other[ROWS * 8], most = 0;
  assert_true(n_z <= 8 && n_w > 0 && n_w <= 8);
  for (int i = 0; i < ROWS * n_z; i++) z[i] = dv_random_normal(&random);
  for (int i = 0; i < ROWS * m->n_u; i++) u[i] = dv_random_normal(&random);
  for (int i = 0; i < ROWS * n_w; i++) w[i] = dv_random_normal(&random);
  dv_dynamics d = dv_transition_batch_dynamics(moves);
  d.move(d.user, ROWS, z, u, w, one, n_z);
  for (int i = 0; i < ROWS * n_w; i++) w[i] = -w[i];
  d.move(d.user, ROWS, z, u, w, other, n_z);
  d.move(d.user, ROWS, z, u, NULL, quiet, n_z);
  for (int i = 0; i < ROWS * n_z; i++) {
    near(0.5 * (one[i] + other[i]), quiet[i]);
    most = fmax(most, fabs(one[i] - quiet[i]));
  }
  assert_true(most > 1e-3);
}

static void compare_looks(const dvbf_model *m, dv_emission_jacobian *looks, dvbf_jacobian *linear) {
  size_t n_z = (size_t)m->n_z;
  dv_random random = dv_random_at(9, DV_STREAM_SIMULATION, 0, 0);
  double *z = calloc(n_z, sizeof *z), x[N_X], again[N_X], *h = calloc(N_X * n_z, sizeof *h);
  float *z_single = calloc(n_z, sizeof *z_single), u[N_U] = {0};
  dvbf_jacobians j;
  for (size_t i = 0; i < n_z; i++) z[i] = dv_random_normal(&random), z_single[i] = (float)z[i];
  dvbf_jacobian_at(linear, z_single, u, &j);
  dv_emission_jacobian_derive(looks, z, x, h);
  dv_emission_jacobian_at(looks, z, again);
  for (size_t i = 0; i < N_X; i++) {
    double scale = (double)m->x.scale[i];
    near(x[i], ((double)j.x[i] - (double)m->x.shift[i]) * scale);
    near(again[i], x[i]);
    for (size_t k = 0; k < n_z; k++) near(h[i * n_z + k], (double)j.h[i * n_z + k] * scale);
  }
  free(z), free(h), free(z_single);
}

static void its_model_is_that_of_the_filter(void **state) {
  (void)state;
  for (int v = 0; v < VARIANTS; v++) {
    fixture f;
    dvbf_error error;
    dvbf_jacobian *linear = NULL;
    dv_transition_batch *moves = NULL;
    dv_emission_jacobian *looks = NULL;
    int n_w = -1;
    dv_workspace room = {0};
    begin(&f, variants[v]);
    assert_int_equal(dvbf_jacobian_new(&linear, f.model, &error), DVBF_OK);
    assert_int_equal(dv_transition_batch_lay_out(&moves, &room, f.model, 4, 16, 5, &n_w, &error), DVBF_OK);
    assert_int_equal(dv_emission_jacobian_lay_out(&looks, &room, f.model, &error), DVBF_OK);
    assert_null(moves);
    void *memory = aligned_alloc(64, room.used);
    room = (dv_workspace){.at = memory};
    assert_int_equal(dv_transition_batch_lay_out(&moves, &room, f.model, 4, 16, 5, &n_w, &error), DVBF_OK);
    assert_int_equal(dv_emission_jacobian_lay_out(&looks, &room, f.model, &error), DVBF_OK);
    compare_moves(f.model, moves, linear);
    if (!v) compare_noise(f.model, moves, n_w);
    compare_looks(f.model, looks, linear);
    dvbf_jacobian_free(linear);
    free(memory);
    end(&f);
  }
}

/* ---- Steps ---- */

typedef struct made {
  dvbf_settings *settings;
  void *memory;
  dvbf_controller *controller;
} made;

static dvbf_status try_make(made *m, const dvbf_model *model, const dvbf_goal *goal, const char *text,
                            dvbf_error *error) {
  char line[256], *rest = line;
  size_t size = 0;
  *m = (made){0};
  assert_int_equal(dvbf_settings_new(&m->settings, "control", error), DVBF_OK);
  snprintf(line, sizeof line, "plan=6 random-plans=16 low=-1,-2 high=1,0.5 %s", text);
  for (char *word; (word = strsep(&rest, " "));) {
    char *value = strchr(word, '=');
    if (!value) continue;
    *value++ = 0;
    if (dvbf_settings_set(m->settings, word, value, error)) fail_msg("%s", error->message);
  }
  dvbf_status status = dvbf_controller_memsize(&size, model, goal, m->settings, error);
  if (status) return status;
  m->memory = aligned_alloc(64, size);
  assert_non_null(m->memory);
  return dvbf_controller_init(&m->controller, m->memory, size, model, goal, m->settings, error);
}

static made make(const dvbf_model *model, const dvbf_goal *goal, const char *text) {
  made m;
  dvbf_error error;
  if (try_make(&m, model, goal, text, &error)) fail_msg("%s", error.message);
  return m;
}

static void discard(made *m) {
  dvbf_settings_free(m->settings);
  free(m->memory);
}

static void within_limits(const dvbf_control *c) {
  assert_true(c->u[0] >= -1 && c->u[0] <= 1 && c->u[1] >= -2 && c->u[1] <= 0.5F);
}

static void steps_are_within_limits_and_the_same_again(void **state) {
  (void)state;
  static const char *const ways[] = {"",
                                     "planner=sampling",
                                     "goal-space=x",
                                     "change-weight=1",
                                     " random-plans=0",
                                     "terminal=weight",
                                     "terminal=none",
                                     "samples=5",
                                     "rounds=3",
                                     "risk=1 futures=4",
                                     "risk=0.5 planner=sampling"};
  fixture f;
  begin(&f, "");
  dvbf_goal goal = {.count = 2, .x = f.sequences.x};
  for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
    made a = make(f.model, &goal, ways[w]), b = make(f.model, &goal, ways[w]);
    unsigned long allocations = dv_allocations();
    for (size_t t = 0; t < 2 * STEPS; t++) {
      const float *x = t % 5 == 4 ? NULL : f.sequences.x + (t + 9) * N_X;
      dvbf_control c, d;
      dvbf_controller_step(a.controller, x, NULL, &c);
      dvbf_controller_step(b.controller, x, NULL, &d);
      within_limits(&c);
      assert_int_equal(c.ready, t >= 2); /* initial-frames */
      assert_true(c.ready ? isfinite(c.cost) && !c.reason : c.reason != NULL);
      assert_memory_equal(c.u, d.u, N_U * sizeof(float));
      if (c.ready) assert_memory_equal(c.u, c.plan_u, N_U * sizeof(float));
      if (c.ready) assert_memory_equal(c.plan_z, c.belief.mean, c.n_z * sizeof(float));
    }
    assert_int_equal(dv_allocations(), allocations);
    discard(&a);
    discard(&b);
  }
  end(&f);
}

/* The cost of a plan as its definition has it, from what the controller tells. */
static double cost_of(const dvbf_control *c, const float *goal, const float *before) {
  double sum = 0, half[N_U] = {1, 1.25};
  for (size_t t = 0; t <= c->steps; t++) {
    double weight = pow(0.8, (double)t) * 0.5 * 3 * (t == c->steps ? 3 : 1);
    for (size_t i = 0; i < c->n_z; i++)
      sum += weight * pow((double)c->plan_z[t * c->n_z + i] - (double)goal[i], 2);
  }
  for (size_t t = 0; t < c->steps; t++)
    for (size_t i = 0; i < N_U; i++) {
      double u = (double)c->plan_u[t * N_U + i];
      double last = (double)(t ? c->plan_u[(t - 1) * N_U + i] : before[i]);
      sum += pow(0.8, (double)t) * 0.5 * (0.3 * u * u + 0.2 * (u - last) * (u - last)) / (half[i] * half[i]);
    }
  return sum;
}

static void costs_are_what_they_are_said_to_be(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  dvbf_goal goal = {.count = 1, .x = f.sequences.x};
  made m = make(
      f.model, &goal,
      "goal-weight=3 control-weight=0.3 change-weight=0.2 terminal=weight terminal-weight=2 discount=0.8");
  const float *z = dvbf_controller_goal(m.controller);
  float before[N_U] = {0};
  for (size_t t = 0; t < STEPS; t++) {
    dvbf_control c;
    dvbf_controller_step(m.controller, f.sequences.x + (t + 20) * N_X, NULL, &c);
    if (c.ready) assert_true(fabs(c.cost - cost_of(&c, z, before)) < 1e-4 * c.cost);
    memcpy(before, c.u, sizeof before);
  }
  discard(&m);
  /* The same goal as a state, by a regression that is the identity. */
  float map[3 * 4] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, kept[3];
  made by_z = make(f.model, &goal, "");
  memcpy(kept, dvbf_controller_goal(by_z.controller), sizeof kept);
  dvbf_goal state_goal = {.count = 1, .n_s = 3, .state = kept, .map = map};
  made by_state = make(f.model, &state_goal, "goal-space=state");
  for (size_t t = 0; t < STEPS; t++) {
    dvbf_control c, d;
    dvbf_controller_step(by_z.controller, f.sequences.x + (t + 20) * N_X, NULL, &c);
    dvbf_controller_step(by_state.controller, f.sequences.x + (t + 20) * N_X, NULL, &d);
    if (c.ready) assert_true(fabs(c.cost - d.cost) < 1e-3 * c.cost);
  }
  discard(&by_z);
  discard(&by_state);
  end(&f);
}

static void lost_observations_are_predicted(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  dvbf_goal goal = {.count = 1, .x = f.sequences.x};
  for (int hold = 0; hold < 2; hold++) {
    made m = make(f.model, &goal, hold ? "max-missing=3 safe=hold" : "max-missing=3");
    float broken[N_X], before[N_U];
    dvbf_control c;
    for (int i = 0; i < N_X; i++) broken[i] = i % 2 ? NAN : INFINITY;
    for (size_t t = 0; t < 4; t++) dvbf_controller_step(m.controller, f.sequences.x + t * N_X, NULL, &c);
    for (int t = 0; t < 5; t++) {
      memcpy(before, c.u, sizeof before);
      dvbf_controller_step(m.controller, t % 2 ? NULL : broken, NULL, &c);
      within_limits(&c);
      assert_int_equal(c.ready, t < 3);
      for (size_t i = 0; i < c.n_z; i++) assert_true(isfinite(c.belief.mean[i]));
    }
    assert_non_null(strstr(c.reason, "max-missing"));
    for (int i = 0; i < N_U; i++) assert_true(c.u[i] == (hold ? before[i] : 0));
    dvbf_controller_step(m.controller, f.sequences.x, NULL, &c); /* it sees again */
    assert_true(c.ready);
    dvbf_controller_reset(m.controller);
    dvbf_controller_step(m.controller, f.sequences.x, NULL, &c);
    assert_false(c.ready);
    discard(&m);
  }
  end(&f);
}

/* With a delay the belief is that of the controls that have acted, and the plan begins where those that have
 * not lead. */
static void plans_begin_where_controls_that_were_given_lead(void **state) {
  (void)state;
  enum { DELAY = 3 };
  fixture f;
  dvbf_error error;
  dvbf_jacobian *linear = NULL;
  begin(&f, "");
  assert_int_equal(dvbf_jacobian_new(&linear, f.model, &error), DVBF_OK);
  dvbf_goal goal = {.count = 1, .x = f.sequences.x};
  made late = make(f.model, &goal, "delay=3"), told = make(f.model, &goal, "");
  float given[DELAY + STEPS][N_U] = {{0}};
  for (size_t t = 0; t < STEPS; t++) {
    const float *x = t % 5 == 4 ? NULL : f.sequences.x + (t + 9) * N_X;
    dvbf_control c, d;
    dvbf_jacobians j = {0};
    dvbf_controller_step(late.controller, x, NULL, &c);
    dvbf_controller_step(told.controller, x, t ? given[t - 1] : NULL, &d);
    memcpy(given[DELAY + t], c.u, sizeof given[0]);
    if (!c.ready) continue;
    assert_memory_equal(c.belief.mean, d.belief.mean, c.n_z * sizeof(float));
    for (size_t k = 0; k < DELAY; k++) dvbf_jacobian_at(linear, k ? j.next : c.belief.mean, given[t + k], &j);
    for (size_t i = 0; i < c.n_z; i++) near((double)c.plan_z[i], (double)j.next[i]);
  }
  dvbf_jacobian_free(linear);
  discard(&late);
  discard(&told);
  end(&f);
}

/* Where 0 is not allowed, the nearest limit is safe. */
static void what_is_safe_is_within_limits(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  dvbf_goal goal = {.count = 1, .x = f.sequences.x};
  made m = make(f.model, &goal, "low=1 high=2");
  dvbf_control c;
  dvbf_controller_step(m.controller, NULL, NULL, &c);
  assert_true(!c.ready && c.u[0] == 1 && c.u[1] == 1);
  discard(&m);
  end(&f);
}

/* ---- Refusals ---- */

static void refused(const dvbf_model *model, const dvbf_goal *goal, const char *text, const char *words) {
  made m;
  dvbf_error error = {0};
  if (!try_make(&m, model, goal, text, &error)) fail_msg("\"%s\" was taken", text);
  if (!strstr(error.message, words)) fail_msg("\"%s\" does not say \"%s\"", error.message, words);
  discard(&m);
}

static void what_cannot_work_is_refused(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  float x[N_X] = {0}, none[N_X], weights[3] = {1, -1, 1};
  for (int i = 0; i < N_X; i++) none[i] = NAN;
  dvbf_goal goal = {.count = 1, .x = x}, empty = {.count = 1}, unseen = {.count = 1, .x = none};
  dvbf_goal weighed = {.count = 1, .x = x, .weights = weights}, many = {.count = 0, .x = x};
  refused(f.model, &goal, "low=2 high=1", "swap or correct");
  refused(f.model, &goal, "low=inf high=inf", "no finite value");
  refused(f.model, &goal, "low=1,2,3", "must be one number, or 2");
  refused(f.model, &goal, "high=a", "must be one number, or 2");
  refused(f.model, &goal, "low=", "missing");
  refused(f.model, &goal, "goal-space=state", "regression");
  refused(f.model, &goal, "planner=sampling random-plans=0", "random-plans");
  refused(f.model, &goal, "risk=1 random-plans=0", "random-plans");
  refused(f.model, &empty, "", "the goal is empty");
  refused(f.model, &unseen, "", "has no values");
  refused(f.model, &weighed, "", "must be at least 0");
  refused(f.model, &many, "", "goals");
  end(&f);
  begin(&f, "model=vae");
  refused(f.model, &goal, "", "cannot");
  end(&f);
  begin(&f, "feedthrough=on");
  refused(f.model, &goal, "", "feedthrough");
  end(&f);
}

static void goals_change_but_not_their_number(void **state) {
  (void)state;
  fixture f;
  dvbf_error error;
  begin(&f, "");
  dvbf_goal goal = {.count = 1, .x = f.sequences.x}, other = {.count = 1, .x = f.sequences.x + 5 * N_X};
  dvbf_goal two = {.count = 2, .x = f.sequences.x};
  made m = make(f.model, &goal, ""), direct = make(f.model, &other, "");
  float first[3];
  memcpy(first, dvbf_controller_goal(m.controller), sizeof first);
  assert_int_equal(dvbf_controller_aim(m.controller, &other, &error), DVBF_OK);
  assert_memory_not_equal(first, dvbf_controller_goal(m.controller), sizeof first);
  assert_memory_equal(dvbf_controller_goal(direct.controller), dvbf_controller_goal(m.controller),
                      sizeof first);
  assert_int_equal(dvbf_controller_aim(m.controller, &two, &error), DVBF_ARGUMENT);
  discard(&m);
  discard(&direct);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(its_model_is_that_of_the_filter),
      cmocka_unit_test(steps_are_within_limits_and_the_same_again),
      cmocka_unit_test(costs_are_what_they_are_said_to_be),
      cmocka_unit_test(lost_observations_are_predicted),
      cmocka_unit_test(plans_begin_where_controls_that_were_given_lead),
      cmocka_unit_test(what_is_safe_is_within_limits),
      cmocka_unit_test(what_cannot_work_is_refused),
      cmocka_unit_test(goals_change_but_not_their_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
