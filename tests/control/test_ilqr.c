/* Planners against solutions that are found another way: dense linear algebra, projected gradients, and the
 * equations of Riccati. */
#include "base/memory.h"
#include "control/optimal_control.h"
#include "math/algebra.h"
#include "math/box_qp.h"
#include "math/random.h"
#include "math/riccati.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 4, M = 2, STEPS = 12, ALL = M * STEPS };

/* ---- Problems ---- */

/* z' = A z + B u + c, costs z'Q z / 2 + u'R u / 2, at the end z'P z / 2. */
typedef struct linear {
  double a[N * N], b[N * M], c[N], q[N * N], r[M * M], p[N * N], low[M], high[M];
} linear;

static void move_linear(void *user, int rows, const double *z, const double *u, const double *noise,
                        double *next) {
  (void)noise;
  const linear *l = user;
  for (int r = 0; r < rows; r++, z += N, u += M, next += N) {
    memcpy(next, l->c, sizeof l->c);
    dv_apply(next, l->a, z, N, N);
    dv_apply(next, l->b, u, N, M);
  }
}

static void derive_linear(void *user, const double *z, const double *u, double *a, double *b) {
  const linear *l = user;
  (void)z, (void)u;
  for (int t = 0; t < STEPS; t++) {
    memcpy(a + (size_t)t * N * N, l->a, sizeof l->a);
    memcpy(b + (size_t)t * N * M, l->b, sizeof l->b);
  }
}

static double form(const double *q, const double *v, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += v[i] * dv_dot(q + i * n, v, (size_t)n);
  return 0.5 * sum;
}

static double cost_linear(void *user, int t, const double *z, const double *u) {
  const linear *l = user;
  return t == STEPS ? form(l->p, z, N) : form(l->q, z, N) + form(l->r, u, M);
}

static void expand_linear(void *user, int t, const double *z, const double *u, dv_expansion *out) {
  const linear *l = user;
  const double *q = t == STEPS ? l->p : l->q;
  memset(out->z, 0, N * sizeof(double));
  dv_apply(out->z, q, z, N, N);
  memcpy(out->zz, q, sizeof l->q);
  if (t == STEPS) return;
  memset(out->u, 0, M * sizeof(double));
  dv_apply(out->u, l->r, u, M, M);
  memcpy(out->uu, l->r, sizeof l->r);
  memset(out->uz, 0, (size_t)M * N * sizeof(double));
}

static void positive(double *q, int n, dv_random *random, double ridge) {
  double half[N * N];
  for (int i = 0; i < n * n; i++) half[i] = dv_random_normal(random);
  dv_product_transposed(q, half, half, n, n, n);
  for (int i = 0; i < n; i++) q[i * n + i] += ridge;
}

static linear random_linear(uint32_t key, double limit) {
  linear l;
  dv_random random = dv_random_at(3, DV_STREAM_SIMULATION, key, 0);
  for (int i = 0; i < N * N; i++) l.a[i] = 0.5 * dv_random_normal(&random);
  for (int i = 0; i < N * M; i++) l.b[i] = dv_random_normal(&random);
  for (int i = 0; i < N; i++) l.c[i] = 0.3 * dv_random_normal(&random);
  positive(l.q, N, &random, 0.1);
  positive(l.p, N, &random, 0.1);
  positive(l.r, M, &random, 0.1);
  for (int i = 0; i < M; i++) l.low[i] = -limit * (1 + i), l.high[i] = 0.7 * limit;
  return l;
}

static dv_problem problem_of(linear *l) {
  return (dv_problem){.n_z = N,
                      .n_u = M,
                      .steps = STEPS,
                      .rows = DV_LENGTHS,
                      .low = l->low,
                      .high = l->high,
                      .user = l,
                      .move = move_linear,
                      .derive = derive_linear,
                      .cost = cost_linear,
                      .expand = expand_linear};
}

/* A pendulum whose torque is too small to lift it at once: z = (angle from upright, velocity). */
typedef struct swing {
  double low, high, broken; /* broken: from this velocity on, the motion is not finite */
} swing;
enum { SWING = 40 };

static void move_swing(void *user, int rows, const double *z, const double *u, const double *noise,
                       double *next) {
  (void)noise;
  const swing *s = user;
  const double h = 0.1;
  for (int r = 0; r < rows; r++, z += 2, u++, next += 2) {
    double speed = z[1] + h * (9.81 * sin(z[0]) - 0.5 * z[1] + *u);
    next[1] = fabs(speed) > s->broken ? NAN : speed;
    next[0] = z[0] + h * next[1];
  }
}

static void derive_swing(void *user, const double *z, const double *u, double *a, double *b) {
  (void)user, (void)u;
  const double h = 0.1;
  for (int t = 0; t < SWING; t++, z += 2, a += 4, b += 2) {
    a[2] = h * 9.81 * cos(z[0]), a[3] = 1 - 0.5 * h, b[1] = h;
    a[0] = 1 + h * a[2], a[1] = h * a[3], b[0] = h * h;
  }
}

static double cost_swing(void *user, int t, const double *z, const double *u) {
  (void)user;
  double far = 1 - cos(z[0]), weight = t == SWING ? 20 : 1;
  return weight * (far + 0.05 * z[1] * z[1]) + (u ? 0.005 * *u * *u : 0);
}

static void expand_swing(void *user, int t, const double *z, const double *u, dv_expansion *out) {
  (void)user;
  double weight = t == SWING ? 20 : 1;
  out->z[0] = weight * sin(z[0]), out->z[1] = 0.1 * weight * z[1];
  out->zz[0] = weight * cos(z[0]), out->zz[1] = out->zz[2] = 0, out->zz[3] = 0.1 * weight;
  if (!u) return;
  out->u[0] = 0.01 * *u, out->uu[0] = 0.01, out->uz[0] = out->uz[1] = 0;
}

static dv_problem problem_of_swing(swing *s) {
  return (dv_problem){.n_z = 2,
                      .n_u = 1,
                      .steps = SWING,
                      .rows = 16,
                      .low = &s->low,
                      .high = &s->high,
                      .user = s,
                      .move = move_swing,
                      .derive = derive_swing,
                      .cost = cost_swing,
                      .expand = expand_swing};
}

/* ---- Other ways to solve them ---- */

/* Cost of controls u, and its gradient by the adjoint equations. */
static double gradient_of(const dv_problem *o, const double *first, const double *u, double *gradient) {
  enum { MOST = 64 };
  double z[(MOST + 1) * N] = {0}, a[MOST * N * N] = {0}, b[MOST * N * M] = {0}, back[N], before[N], cost = 0;
  double lz[N] = {0}, lu[M] = {0}, zz[N * N], uz[N * M], uu[M * M];
  dv_expansion e = {lz, lu, zz, uz, uu};
  int n = o->n_z, m = o->n_u;
  memcpy(z, first, (size_t)n * sizeof *z);
  for (int t = 0; t < o->steps; t++) {
    cost += o->cost(o->user, t, z + t * n, u + t * m);
    o->move(o->user, 1, z + t * n, u + t * m, NULL, z + (t + 1) * n);
  }
  cost += o->cost(o->user, o->steps, z + o->steps * n, NULL);
  o->derive(o->user, z, u, a, b);
  o->expand(o->user, o->steps, z + o->steps * n, NULL, &e);
  memcpy(back, lz, sizeof back);
  for (int t = o->steps - 1; t >= 0; t--) {
    o->expand(o->user, t, z + t * n, u + t * m, &e);
    for (int i = 0; i < m; i++) {
      gradient[t * m + i] = lu[i];
      for (int j = 0; j < n; j++) gradient[t * m + i] += b[(t * n + j) * m + i] * back[j];
    }
    memcpy(before, back, sizeof before);
    for (int i = 0; i < n; i++) {
      back[i] = lz[i];
      for (int j = 0; j < n; j++) back[i] += a[(t * n + j) * n + i] * before[j];
    }
  }
  return cost;
}

/* Projected gradient descent with a step that grows while it helps. Returns the cost. */
static double descend(const dv_problem *o, const double *first, double *u, int iterations) {
  double gradient[64], trial[64], ignored[64], step = 0.01;
  int size = o->steps * o->n_u;
  double cost = gradient_of(o, first, u, gradient);
  for (int i = 0; i < iterations; i++) {
    for (int k = 0; k < size; k++) trial[k] = u[k] - step * gradient[k];
    for (int t = 0; t < o->steps; t++) dv_into_limits(trial + t * o->n_u, o->low, o->high, o->n_u);
    double next = gradient_of(o, first, trial, ignored);
    if (next <= cost) {
      cost = next;
      memcpy(u, trial, (size_t)size * sizeof *u);
      memcpy(gradient, ignored, (size_t)size * sizeof *u);
      step *= 1.1;
    } else {
      step *= 0.5;
    }
  }
  return cost;
}

/* The best controls without limits: the gradient is affine in u, so its zero follows from one solution. */
static double solve_dense(const dv_problem *o, const double *first, double *u) {
  static double h[ALL * ALL];
  double zero[ALL] = {0}, g[ALL], column[ALL], unit[ALL];
  int order[ALL];
  gradient_of(o, first, zero, g);
  for (int k = 0; k < ALL; k++) {
    memset(unit, 0, sizeof unit);
    unit[k] = 1;
    gradient_of(o, first, unit, column);
    for (int i = 0; i < ALL; i++) h[i * ALL + k] = column[i] - g[i];
  }
  assert_true(isfinite(dv_invert(h, ALL, 1e-12, order)));
  for (int i = 0; i < ALL; i++) u[i] = -dv_dot(h + (size_t)i * ALL, g, ALL);
  return gradient_of(o, first, u, column);
}

/* ---- Planning ---- */

typedef struct made {
  void *memory;
  dv_ilqr *planner;
  dv_cross_entropy *shoot;
} made;

static made make(const dv_problem *problem, int count) {
  dv_workspace room = {0};
  dv_ilqr_lay_out(&room, problem);
  if (count) dv_cross_entropy_lay_out(&room, problem, count);
  made m = {.memory = aligned_alloc(64, room.used)};
  assert_non_null(m.memory);
  memset(m.memory, 0, room.used);
  room = (dv_workspace){.at = m.memory};
  m.planner = dv_ilqr_lay_out(&room, problem);
  if (count) m.shoot = dv_cross_entropy_lay_out(&room, problem, count);
  return m;
}

static const dv_effort much = {.iterations = 2000, .tolerance = 1e-13};

static void near(double a, double b, double relative) {
  if (!(fabs(a - b) <= relative * fmax(fabs(a), fabs(b)))) fail_msg("%.17g is not %.17g", a, b);
}

static void linear_problems_have_the_closed_form(void **state) {
  (void)state;
  for (uint32_t key = 0; key < 20; key++) {
    linear l = random_linear(key, INFINITY);
    dv_problem problem = problem_of(&l);
    double first[N] = {1, -2, 0.5, 1}, u[ALL];
    made m = make(&problem, 0);
    dv_plan plan = dv_ilqr_plan(m.planner, first, &much);
    assert_int_equal(plan.end, DV_PLAN_CONVERGED);
    assert_true(plan.iterations <= 3);
    near(plan.cost, solve_dense(&problem, first, u), 1e-10);
    for (int i = 0; i < ALL; i++) assert_true(fabs(m.planner->u[i] - u[i]) < 1e-6);
    free(m.memory);
  }
}

static void limits_agree_with_projected_gradients(void **state) {
  (void)state;
  int at_limits = 0;
  for (uint32_t key = 0; key < 20; key++) {
    linear l = random_linear(key, 0.3);
    dv_problem problem = problem_of(&l);
    double first[N] = {1, -2, 0.5, 1}, u[ALL] = {0};
    made m = make(&problem, 0);
    dv_plan plan = dv_ilqr_plan(m.planner, first, &much);
    assert_int_not_equal(plan.end, DV_PLAN_CAPPED);
    near(plan.cost, descend(&problem, first, u, 20000), 1e-6);
    for (int t = 0; t < STEPS; t++)
      for (int i = 0; i < M; i++) {
        double value = m.planner->u[t * M + i];
        assert_true(value >= l.low[i] && value <= l.high[i]);
        at_limits += value == l.low[i] || value == l.high[i];
      }
    free(m.memory);
  }
  assert_true(at_limits > 50); /* the limits matter */
}

static void swings_end_where_gradients_end(void **state) {
  (void)state;
  swing s = {-5, 5, INFINITY};
  dv_problem problem = problem_of_swing(&s);
  made m = make(&problem, 0);
  double best = INFINITY;
  for (uint32_t key = 0; key < 12; key++) {
    dv_random random = dv_random_at(5, DV_STREAM_SIMULATION, key, 0);
    double first[2] = {key < 4 ? 0.3 * key : 3.14159265, 0}, u[SWING];
    for (int t = 0; t < SWING; t++) m.planner->u[t] = key < 4 ? 0 : 5 * sin((0.25 + 0.03 * key) * t);
    if (key % 2) m.planner->u[0] += dv_random_normal(&random);
    dv_plan plan = dv_ilqr_plan(m.planner, first, &much);
    assert_true(plan.end == DV_PLAN_CONVERGED || plan.end == DV_PLAN_STUCK);
    memcpy(u, m.planner->u, sizeof u);
    near(descend(&problem, first, u, 4000), plan.cost, 1e-6); /* no gradient makes it better */
    if (key < 4) {                                            /* near upright there is one solution */
      memset(u, 0, sizeof u);
      near(descend(&problem, first, u, 40000), plan.cost, 1e-6);
    } else {
      best = fmin(best, plan.cost);
    }
  }
  free(m.memory);
  assert_true(best < 0.75 * 2 * SWING); /* it comes up from hanging, where staying costs 2 a step */
}

static void what_is_not_finite_is_no_plan(void **state) {
  (void)state;
  swing s = {-5, 5, INFINITY};
  dv_problem problem = problem_of_swing(&s);
  made m = make(&problem, 32);
  double unknown[2] = {NAN, 0}, first[2] = {3.14159265, 0};
  assert_int_equal(dv_ilqr_plan(m.planner, unknown, &much).end, DV_PLAN_FAILED);
  dv_drawing drawing = {.rounds = 2, .spread = 1, .correlation = 0.8, .seed = 1};
  assert_int_equal(dv_cross_entropy_plan(m.shoot, unknown, &drawing, &much).end, DV_PLAN_FAILED);
  /* Steps that lead there are not taken. */
  s.broken = 3;
  memset(m.planner->u, 0, SWING * sizeof(double));
  dv_plan plan = dv_ilqr_plan(m.planner, first, &much);
  assert_true(isfinite(plan.cost) && plan.end != DV_PLAN_FAILED);
  for (int t = 0; t <= SWING; t++) assert_true(fabs(m.planner->z[2 * t + 1]) <= 3);
  memset(m.shoot->u, 0, SWING * sizeof(double));
  plan = dv_cross_entropy_plan(m.shoot, first, &drawing, &much);
  assert_true(isfinite(plan.cost));
  free(m.memory);
}

static void limits_may_leave_nothing(void **state) {
  (void)state;
  swing s = {1.5, 1.5, INFINITY};
  dv_problem problem = problem_of_swing(&s);
  made m = make(&problem, 0);
  double first[2] = {0.1, 0};
  dv_plan plan = dv_ilqr_plan(m.planner, first, &much);
  assert_int_equal(plan.end, DV_PLAN_CONVERGED);
  for (int t = 0; t < SWING; t++) assert_true(m.planner->u[t] == 1.5);
  free(m.memory);
}

static bool is_late(void *user) {
  return ++*(int *)user > 3;
}

static void plans_end_in_time_and_are_the_same_again(void **state) {
  (void)state;
  swing s = {-5, 5, INFINITY};
  dv_problem problem = problem_of_swing(&s);
  made m = make(&problem, 64), again = make(&problem, 64);
  int asked = 0;
  double first[2] = {3, 0.2};
  dv_effort hurried = {.iterations = 2000, .tolerance = 1e-13, .late = is_late, .user = &asked};
  unsigned long allocations = dv_allocations();
  dv_plan plan = dv_ilqr_plan(m.planner, first, &hurried);
  assert_int_equal(plan.end, DV_PLAN_CAPPED);
  assert_int_equal(plan.iterations, 3);
  dv_drawing drawing = {.rounds = 3, .spread = 1, .correlation = 0.8, .seed = 1, .number = 7};
  dv_plan a = dv_cross_entropy_plan(m.shoot, first, &drawing, &much);
  dv_plan b = dv_cross_entropy_plan(again.shoot, first, &drawing, &much);
  assert_true(a.cost == b.cost);
  assert_memory_equal(m.shoot->u, again.shoot->u, SWING * sizeof(double));
  memcpy(m.planner->u, m.shoot->u, SWING * sizeof(double));
  memcpy(again.planner->u, m.shoot->u, SWING * sizeof(double));
  plan = dv_ilqr_plan(m.planner, first, &much);
  dv_plan other = dv_ilqr_plan(again.planner, first, &much);
  assert_true(plan.cost == other.cost && plan.cost < a.cost);
  assert_memory_equal(m.planner->u, again.planner->u, SWING * sizeof(double));
  assert_int_equal(dv_allocations(), allocations);
  free(m.memory);
  free(again.memory);
}

static void random_plans_swing_up(void **state) {
  (void)state;
  swing s = {-5, 5, INFINITY};
  dv_problem problem = problem_of_swing(&s);
  made m = make(&problem, 256);
  double first[2] = {3.14159265, 0};
  dv_drawing drawing = {.rounds = 20, .spread = 1, .correlation = 0.8, .seed = 1};
  dv_plan rest = dv_ilqr_plan(m.planner, first, &(dv_effort){0});
  dv_plan plan = dv_cross_entropy_plan(m.shoot, first, &drawing, &much);
  assert_true(plan.cost < 0.75 * rest.cost); /* 0.54 to 0.65 over 24 other draws */
  dv_plan kept =
      dv_cross_entropy_plan(m.shoot, first, &drawing, &much); /* never worse than what it begins with */
  assert_true(kept.cost <= plan.cost);
  memcpy(m.planner->u, m.shoot->u, SWING * sizeof(double));
  plan = dv_ilqr_plan(m.planner, first, &much);
  assert_true(plan.cost < kept.cost);
  assert_true(fabs(remainder(m.planner->z[2 * SWING], 6.283185307179586)) < 0.3); /* upright */
  free(m.memory);
}

/* Two goals on a line: 1 is nearer, but beyond 0.2 there is `noise`. */
typedef struct shore {
  double low, high, noise;
} shore;
enum { WALK = 8 };

static void walk(void *user, int rows, const double *z, const double *u, const double *noise, double *next) {
  const shore *s = user;
  for (int r = 0; r < rows; r++)
    next[r] = z[r] + 0.5 * u[r] + (noise && z[r] > 0.2 ? s->noise * noise[r] : 0);
}

static double cost_of_walk(void *user, int t, const double *z, const double *u) {
  (void)user, (void)t, (void)u;
  return fmin((z[0] - 1) * (z[0] - 1), (z[0] + 1.2) * (z[0] + 1.2));
}

static void stay(void *user, int t, const double *z, double *u) {
  (void)user, (void)t, (void)z;
  u[0] = 0;
}

static void risk_leads_where_there_is_no_noise(void **state) {
  (void)state;
  shore s = {-1, 1, 0.4};
  dv_problem problem = {.n_z = 1,
                        .n_u = 1,
                        .n_w = 1,
                        .steps = WALK,
                        .rows = 32,
                        .low = &s.low,
                        .high = &s.high,
                        .user = &s,
                        .move = walk,
                        .cost = cost_of_walk};
  dv_drawing drawing = {.rounds = 4, .spread = 1, .correlation = 0.8, .seed = 1, .risk = 2};
  double first = 0, end[2];
  for (int futures = 0; futures < 2; futures++) {
    made m = make(&problem, 256);
    unsigned long allocations = dv_allocations();
    drawing.futures = futures ? 32 : 0;
    dv_plan plan = dv_cross_entropy_plan(m.shoot, &first, &drawing, &much);
    end[futures] = 0;
    for (int t = 0; t < WALK; t++) end[futures] += 0.5 * m.shoot->u[t];
    /* From -1.2 on nothing is uncertain, and from 1 on it is. */
    double still = -1.2, shaken = 1;
    if (futures) assert_true(dv_cross_entropy_score(m.shoot, &still, &drawing, stay, NULL) == 0);
    if (futures) assert_true(dv_cross_entropy_score(m.shoot, &shaken, &drawing, stay, NULL) > plan.cost);
    assert_int_equal(dv_allocations(), allocations);
    free(m.memory);
  }
  assert_true(fabs(end[0] - 1) < 0.2);
  assert_true(fabs(end[1] + 1.2) < 0.2);
}

/* ---- Boxes and regulators ---- */

static void boxes_satisfy_their_conditions(void **state) {
  (void)state;
  enum { K = 4 };
  for (uint32_t key = 0; key < 200; key++) {
    dv_random random = dv_random_at(4, DV_STREAM_SIMULATION, key, 0);
    double h[K * K], g[K], low[K], high[K], x[K], factor[K * K], scratch[3 * K];
    bool held[K];
    positive(h, K, &random, 1e-3);
    for (int i = 0; i < K; i++) {
      g[i] = 3 * dv_random_normal(&random);
      low[i] = -dv_random_uniform(&random), high[i] = dv_random_uniform(&random), x[i] = 5;
    }
    int count = dv_box_solve(x, held, factor, h, g, low, high, K, scratch), seen = 0;
    for (int i = 0; i < K; i++) {
      double gradient = g[i] + dv_dot(h + i * K, x, K);
      assert_true(x[i] >= low[i] && x[i] <= high[i]);
      if (held[i]) assert_true(x[i] == low[i] ? gradient > 0 : gradient < 0);
      if (!held[i]) assert_true(fabs(gradient) < 1e-7);
      seen += !held[i];
    }
    assert_int_equal(seen, count);
  }
  double h = -1, g = 0, low = -1, high = 1, x = 0, factor, scratch[3];
  bool held;
  assert_int_equal(dv_box_solve(&x, &held, &factor, &h, &g, &low, &high, 1, scratch), -1);
}

static void regulators_solve_riccati(void **state) {
  (void)state;
  for (uint32_t key = 0; key < 20; key++) {
    linear l = random_linear(key, INFINITY);
    double p[N * N], k[M * N], scratch[2 * N * N + 3 * N * M + M * M], z[N] = {1, -1, 2, 0.5};
    dv_regulator regulator = {N, M, l.a, l.b, l.q, l.r};
    assert_true(dv_riccati(p, k, &regulator, scratch));
    /* The cost of following u = -k z to rest is what p says. */
    double all = form(p, z, N), sum = 0;
    for (int t = 0; t < 2000; t++) {
      double u[M] = {0}, next[N] = {0};
      dv_apply(u, k, z, M, N);
      for (int i = 0; i < M; i++) u[i] = -u[i];
      sum += form(l.q, z, N) + form(l.r, u, M);
      dv_apply(next, l.a, z, N, N);
      dv_apply(next, l.b, u, N, M);
      memcpy(z, next, sizeof z);
    }
    near(sum, all, 1e-9);
    /* With it as the terminal cost, a plan of any length begins with the same control. */
    memcpy(l.p, p, sizeof p);
    memset(l.c, 0, sizeof l.c);
    dv_problem problem = problem_of(&l);
    made m = make(&problem, 0);
    double first[N] = {1, 2, -1, 1};
    dv_ilqr_plan(m.planner, first, &much);
    for (int i = 0; i < M; i++) assert_true(fabs(m.planner->u[i] + dv_dot(k + i * N, first, N)) < 1e-7);
    free(m.memory);
  }
  /* A mode that grows and that no control reaches. */
  double a[4] = {1.1, 0, 0, 0.5}, b[2] = {0, 1}, q[4] = {1, 0, 0, 1}, r = 1, p[4], k[2], scratch[8 + 6 + 1];
  assert_false(dv_riccati(p, k, &(dv_regulator){2, 1, a, b, q, &r}, scratch));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(linear_problems_have_the_closed_form),
      cmocka_unit_test(limits_agree_with_projected_gradients),
      cmocka_unit_test(swings_end_where_gradients_end),
      cmocka_unit_test(what_is_not_finite_is_no_plan),
      cmocka_unit_test(limits_may_leave_nothing),
      cmocka_unit_test(plans_end_in_time_and_are_the_same_again),
      cmocka_unit_test(random_plans_swing_up),
      cmocka_unit_test(risk_leads_where_there_is_no_noise),
      cmocka_unit_test(boxes_satisfy_their_conditions),
      cmocka_unit_test(regulators_solve_riccati),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
