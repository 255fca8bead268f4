/* Problems of optimal control and what iLQR makes of them, as JSON for tests/peers/plans.py. They are those
 * of test_ilqr.c: linear with quadratic costs, without limits and within, and a pendulum with too small a
 * torque. */
#include "control/optimal_control.h"
#include "math/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4, M = 2, STEPS = 12, SWING = 40 };

/* z' = A z + B u, costs z'Q z / 2 + u'R u / 2, at the end 5 z'Q z. */
typedef struct linear {
  double a[N * N], b[N * M], q[N * N], r[M * M], low[M], high[M];
} linear;

static void move_linear(void *user, int rows, const double *z, const double *u, const double *noise,
                        double *next) {
  (void)noise;
  const linear *l = user;
  for (int r = 0; r < rows; r++, z += N, u += M, next += N)
    for (int i = 0; i < N; i++) {
      next[i] = 0;
      for (int j = 0; j < N; j++) next[i] += l->a[i * N + j] * z[j];
      for (int j = 0; j < M; j++) next[i] += l->b[i * M + j] * u[j];
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

static double weight_of(int t) {
  return t == STEPS ? 10 : 1;
}

static double cost_linear(void *user, int t, const double *z, const double *u) {
  const linear *l = user;
  double sum = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) sum += 0.5 * weight_of(t) * z[i] * l->q[i * N + j] * z[j];
  for (int i = 0; u && i < M; i++)
    for (int j = 0; j < M; j++) sum += 0.5 * u[i] * l->r[i * M + j] * u[j];
  return sum;
}

static void expand_linear(void *user, int t, const double *z, const double *u, dv_expansion *out) {
  const linear *l = user;
  for (int i = 0; i < N; i++) {
    out->z[i] = 0;
    for (int j = 0; j < N; j++) {
      out->zz[i * N + j] = weight_of(t) * l->q[i * N + j];
      out->z[i] += out->zz[i * N + j] * z[j];
    }
  }
  if (!u) return;
  memcpy(out->uu, l->r, sizeof l->r);
  memset(out->uz, 0, N * M * sizeof *out->uz);
  for (int i = 0; i < M; i++) {
    out->u[i] = 0;
    for (int j = 0; j < M; j++) out->u[i] += l->r[i * M + j] * u[j];
  }
}

/* Random numbers; Q and R are positive definite. */
static linear random_linear(uint32_t key, double limit) {
  linear l;
  dv_random random = dv_random_at(7, DV_STREAM_SIMULATION, key, 0);
  double root[N * N];
  for (int i = 0; i < N * N; i++) l.a[i] = 0.4 * dv_random_normal(&random) + (i % (N + 1) ? 0 : 0.6);
  for (int i = 0; i < N * M; i++) l.b[i] = dv_random_normal(&random);
  for (int i = 0; i < N * N; i++) root[i] = dv_random_normal(&random);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      l.q[i * N + j] = i == j ? 0.1 : 0;
      for (int k = 0; k < N; k++) l.q[i * N + j] += root[i * N + k] * root[j * N + k];
    }
  for (int i = 0; i < M * M; i++) l.r[i] = i % (M + 1) ? 0.05 : 0.3;
  for (int i = 0; i < M; i++) l.low[i] = -limit, l.high[i] = limit;
  return l;
}

/* A pendulum; z = (angle from upright, velocity). */
static void move_swing(void *user, int rows, const double *z, const double *u, const double *noise,
                       double *next) {
  (void)noise;
  (void)user;
  for (int r = 0; r < rows; r++, z += 2, u++, next += 2) {
    next[1] = z[1] + 0.1 * (9.81 * sin(z[0]) - 0.5 * z[1] + *u);
    next[0] = z[0] + 0.1 * next[1];
  }
}

static void derive_swing(void *user, const double *z, const double *u, double *a, double *b) {
  (void)user, (void)u;
  for (int t = 0; t < SWING; t++, z += 2, a += 4, b += 2) {
    a[2] = 0.981 * cos(z[0]), a[3] = 0.95, b[1] = 0.1;
    a[0] = 1 + 0.1 * a[2], a[1] = 0.1 * a[3], b[0] = 0.01;
  }
}

static double cost_swing(void *user, int t, const double *z, const double *u) {
  (void)user;
  return (t == SWING ? 20 : 1) * (1 - cos(z[0]) + 0.05 * z[1] * z[1]) + (u ? 0.005 * *u * *u : 0);
}

static void expand_swing(void *user, int t, const double *z, const double *u, dv_expansion *out) {
  (void)user;
  double weight = t == SWING ? 20 : 1;
  out->z[0] = weight * sin(z[0]), out->z[1] = 0.1 * weight * z[1];
  out->zz[0] = weight * cos(z[0]), out->zz[1] = out->zz[2] = 0, out->zz[3] = 0.1 * weight;
  if (!u) return;
  out->u[0] = 0.01 * *u, out->uu[0] = 0.01, out->uz[0] = out->uz[1] = 0;
}

static void put(const char *name, const double *values, int n) {
  printf(", \"%s\": [", name);
  for (int i = 0; i < n; i++) printf("%s%.17g", i ? ", " : "", values[i]);
  printf("]");
}

/* Plans from the controls u, and prints controls before and after, and the cost. */
static void plan(const dv_problem *problem, const double *first, const double *u) {
  const dv_effort much = {.iterations = 5000, .tolerance = 1e-14};
  dv_workspace room = {0};
  int size = problem->steps * problem->n_u;
  dv_ilqr_lay_out(&room, problem);
  void *memory = aligned_alloc(64, room.used);
  if (!memory) exit(1);
  memset(memory, 0, room.used);
  room = (dv_workspace){.at = memory};
  dv_ilqr *planner = dv_ilqr_lay_out(&room, problem);
  memcpy(planner->u, u, (size_t)size * sizeof *u);
  dv_plan made = dv_ilqr_plan(planner, first, &much);
  put("first", first, problem->n_z);
  put("begin", u, size);
  put("u", planner->u, size);
  printf(", \"cost\": %.17g}\n", made.cost);
  free(memory);
}

static void print_linear(uint32_t key, double limit) {
  linear l = random_linear(key, limit);
  dv_problem problem = {.n_z = N,
                        .n_u = M,
                        .steps = STEPS,
                        .rows = DV_LENGTHS,
                        .low = l.low,
                        .high = l.high,
                        .user = &l,
                        .move = move_linear,
                        .derive = derive_linear,
                        .cost = cost_linear,
                        .expand = expand_linear};
  const double first[N] = {1, -2, 0.5, 1}, none[M * STEPS] = {0};
  printf("{\"kind\": \"linear\", \"limit\": %g", limit);
  put("a", l.a, N * N);
  put("b", l.b, N * M);
  put("q", l.q, N * N);
  put("r", l.r, M * M);
  plan(&problem, first, none);
}

static void print_swing(double angle, double rhythm) {
  double low = -5, high = 5, first[2] = {angle, 0}, u[SWING];
  dv_problem problem = {.n_z = 2,
                        .n_u = 1,
                        .steps = SWING,
                        .rows = DV_LENGTHS,
                        .low = &low,
                        .high = &high,
                        .move = move_swing,
                        .derive = derive_swing,
                        .cost = cost_swing,
                        .expand = expand_swing};
  for (int t = 0; t < SWING; t++) u[t] = 5 * sin(rhythm * t);
  printf("{\"kind\": \"swing\", \"limit\": 5");
  plan(&problem, first, u);
}

int main(void) {
  for (uint32_t key = 0; key < 10; key++) print_linear(key, 1e6);
  for (uint32_t key = 0; key < 10; key++) print_linear(key, 0.3);
  for (int i = 1; i < 5; i++) print_swing(0.3 * i, 0);
  for (int i = 0; i < 6; i++) print_swing(3.14159265358979, 0.34 + 0.03 * i);
  return 0;
}
