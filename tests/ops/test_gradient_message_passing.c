/* Message passing along a linear chain: its backward against differences, and its samples, moments and KL
 * against the Kalman smoother of the same system, which sees mu_t as z_t with noise sigma. */
#include "gradient.h"
#include "math/algebra.h"
#include "math/kalman.h"
#include "ops/ops.h"

enum { ROWS = 3, STEPS = 5, N = 3 };

typedef struct fixture {
  bench b;
  dv_messages m;
} fixture;

/* `seen` frames have a head; some of them are not used. */
static void begin(fixture *f, int steps, int seen, bool drift) {
  static const double use[STEPS * ROWS] = {1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1};
  bench *b = &f->b;
  bench_begin(b, ROWS);
  dvbf_value none = DVBF_NONE;
  f->m = (dv_messages){.low = -1.5, .high = 1.2, .head = none, .drift = none, .from_z = none, .factor = none};
  if (seen) f->m.head = input(b, seen, 2 * N);
  if (steps > 1) f->m.from_z = random_parameter(b, N, N, false);
  if (steps > 1) f->m.factor = random_parameter(b, N, N, false);
  if (steps > 1 && drift) f->m.drift = input(b, steps - 1, N);
  f->m.start = random_parameter(b, 1, N, false);
  f->m.spread = random_parameter(b, N, N, false);
  f->m.noise = constant(b, steps, N, NULL);
  f->m.use = constant(b, steps, 1, use);
  f->m.state = dvbf_slab(b->graph, steps, dv_chain_state(N));
  f->m.kl = dvbf_slab(b->graph, steps, 1);
  f->m.w = dvbf_slab_constant(b->graph, steps, N);
  f->m.q = dvbf_slab_constant(b->graph, steps, 2 * N);
  dv_record_messages(b->graph, &f->m);
  dvbf_keep(b->graph, f->m.q);
}

static void gradients(void **state) {
  (void)state;
  static const struct {
    int steps, seen;
    bool drift;
  } cases[] = {{STEPS, STEPS, true}, {STEPS, 3, false}, {STEPS, 0, true}, {1, 1, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    begin(&f, cases[i].steps, cases[i].seen, cases[i].drift);
    project(&f.b, f.m.state);
    project(&f.b, f.m.kl);
    assert_gradients(&f.b, "messages");
    bench_end(&f.b);
  }
}

/* c (kl - ln det K / 2) + ln det K / 2, of which half of ln det K is minus the sum of what q has of U. */
static double annealed_objective(bench *b) {
  const dv_messages *m = b->extra;
  double sum = 0, c = dv_conditions_get(&b->conditions, DVBF_TEMPERATURE);
  for (int i = 0; i < STEPS * ROWS; i++) {
    const dvbf_real *q = dvbf_at(&b->run, m->q) + (size_t)i * 2 * N + N;
    double half = 0;
    for (int k = 0; k < N; k++) half -= q[k];
    sum += projection_entry(0, (uint32_t)i) * (c * (dvbf_at(&b->run, m->kl)[i] - half) + half);
  }
  return sum;
}

static void temperature(void **state) {
  (void)state;
  fixture f;
  begin(&f, STEPS, STEPS, true);
  f.b.objective = annealed_objective;
  f.b.extra = &f.m;
  f.b.n_inputs = 0;
  dvbf_keep(f.b.graph, f.m.kl);
  dv_conditions_set(&f.b.conditions, DVBF_TEMPERATURE, 0.3);
  project(&f.b, f.m.kl);
  assert_gradients(&f.b, "annealed messages");
  bench_end(&f.b);
}

/* ---- The Kalman smoother ---- */

/* Spreads that do not change in time, which the smoother can have too. */
static void same_spreads(fixture *f, double log_sigma) {
  dvbf_real *heads = f->b.parameters.values + f->b.parameters.list[0].offset;
  for (int i = 0; i < STEPS * ROWS; i++)
    for (int k = 0; k < N; k++) heads[i * 2 * N + N + k] = log_sigma + 0.2 * k;
}

static void square_of(double *out, const dvbf_real *from) {
  double l[N * N];
  dv_factor_read(l, from, N);
  dv_product_transposed(out, l, l, N, N, N);
}

static void read_system(const fixture *f, dv_state_space *s, double log_sigma) {
  const dvbf_run *run = &f->b.run;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      s->a[i * N + j] = dvbf_at(run, f->m.from_z)[j * N + i];
      s->h[i * N + j] = s->b[i * N + j] = i == j;
      s->r[i * N + j] = i == j ? exp(2 * (log_sigma + 0.2 * i)) : 0;
    }
  square_of(s->q, dvbf_at(run, f->m.factor));
  square_of(s->cov, dvbf_at(run, f->m.spread));
  for (int i = 0; i < N; i++) s->mean[i] = dvbf_at(run, f->m.start)[i];
}

/* E ln N(mu; z_t, sigma^2) under q. */
static double expected_log_p(const double *mean, const double *cov, const double *mu, const double *r) {
  double sum = 0;
  for (int i = 0; i < N; i++) {
    double apart = mu[i] - mean[i], square = r[i * N + i];
    sum -= 0.5 * (log(2 * 3.14159265358979323846 * square) + (apart * apart + cov[i * N + i]) / square);
  }
  return sum;
}

static void expect_row(const fixture *f, const dv_state_space *s, dv_smoothed *k, int row) {
  const dvbf_run *run = &f->b.run;
  double x[STEPS * N], u[STEPS * N] = {0}, z[N], mean[N], cov[N * N], bound = 0;
  for (int t = 0; t < STEPS; t++)
    for (int i = 0; i < N; i++) {
      bool used = dvbf_at(run, f->m.use)[t * ROWS + row] > 0;
      x[t * N + i] = used ? dvbf_at(run, f->m.head)[(t * ROWS + row) * 2 * N + i] : (double)NAN;
      if (t + 1 < STEPS) u[t * N + i] = dvbf_at(run, f->m.drift)[(t * ROWS + row) * N + i];
    }
  assert_true(dv_smooth(k, s, x, u, STEPS));
  for (int t = 0; t < STEPS; t++) {
    dv_chain_read(dvbf_at(run, f->m.state) + (t * ROWS + row) * dv_chain_state(N), z, mean, cov, N);
    for (int i = 0; i < N; i++) assert_true(fabs(mean[i] - k->mean[t * N + i]) < 1e-9);
    for (int i = 0; i < N * N; i++) assert_true(fabs(cov[i] - k->cov[t * N * N + i]) < 1e-9);
    if (!isnan(x[t * N])) bound += expected_log_p(mean, cov, x + t * N, s->r);
    bound -= dvbf_at(run, f->m.kl)[t * ROWS + row];
    assert_true(dvbf_at(run, f->m.kl)[t * ROWS + row] >= 0);
  }
  assert_true(fabs(bound - k->log_p) < 1e-9);
}

/* A bound whose potentials are the exact ones is the likelihood. */
static void is_the_smoother(void **state) {
  (void)state;
  fixture f;
  dv_state_space s;
  dv_smoothed k;
  begin(&f, STEPS, STEPS, true);
  dvbf_value values[] = {f.m.state, f.m.kl, f.m.head, f.m.drift, f.m.use};
  for (int i = 0; i < 5; i++) dvbf_keep(f.b.graph, values[i]);
  project(&f.b, f.m.state);
  project(&f.b, f.m.kl);
  same_spreads(&f, -0.3);
  bench_run(&f.b);
  assert_int_equal(dv_system_new(&s, N, N, N, NULL), DVBF_OK);
  read_system(&f, &s, -0.3);
  assert_int_equal(dv_smoothed_init(&k, &s, STEPS, NULL), DVBF_OK);
  for (int r = 0; r < ROWS; r++) expect_row(&f, &s, &k, r);
  dv_smoothed_clear(&k);
  dv_system_clear(&s);
  bench_end(&f.b);
}

/* ---- A step ---- */

/* Without a frame there are gradients by the state and the drift. */
static void moves(void **state) {
  (void)state;
  bench b;
  bench_begin(&b, ROWS);
  int n = dv_chain_state(N);
  dvbf_value none = DVBF_NONE;
  dv_kalman_step s = {.head = none, .use = none, .w = none, .q = none};
  s.given = input(&b, 1, n);
  s.drift = input(&b, 1, N);
  s.from_z = constant_into(&b, dvbf_slab_shared_constant(b.graph, 1, N * N), NULL);
  s.factor = constant_into(&b, dvbf_slab_shared_constant(b.graph, 1, N * N), NULL);
  s.noise = constant(&b, 1, N, NULL);
  s.state = dvbf_slab(b.graph, 1, n);
  dv_record_kalman_step(b.graph, &s);
  project(&b, s.state);
  assert_gradients(&b, "a step of a Kalman filter");
  bench_end(&b);
}

/* Steps with frames find the means and covariances that messages find for the last of so many frames. */
static void steps_are_messages(void **state) {
  (void)state;
  for (int steps = 2; steps <= STEPS; steps++) {
    fixture f;
    begin(&f, steps, steps, true);
    dv_kalman_step s = {.low = f.m.low, .high = f.m.high, .from_z = f.m.from_z, .factor = f.m.factor};
    dvbf_value path = dvbf_slab(f.b.graph, steps, dv_chain_state(N)), first = dvbf_steps(path, 0, 1);
    dv_messages start = f.m;
    start.state = first;
    start.head = dvbf_steps(f.m.head, 0, 1);
    start.noise = dvbf_steps(f.m.noise, 0, 1);
    start.use = dvbf_steps(f.m.use, 0, 1);
    start.kl = dvbf_slab(f.b.graph, 1, 1);
    start.w = s.w = dvbf_slab_constant(f.b.graph, 1, N);
    start.q = s.q = dvbf_slab_constant(f.b.graph, 1, 2 * N);
    start.from_z = start.factor = start.drift = DVBF_NONE;
    dv_record_messages(f.b.graph, &start);
    for (int t = 1; t < steps; t++) {
      s.given = dvbf_steps(path, t - 1, 1);
      s.state = dvbf_steps(path, t, 1);
      s.head = dvbf_steps(f.m.head, t, 1);
      s.use = dvbf_steps(f.m.use, t, 1);
      s.noise = dvbf_steps(f.m.noise, t, 1);
      s.drift = dvbf_steps(f.m.drift, t - 1, 1);
      s.particles = t % 2;
      dv_record_kalman_step(f.b.graph, &s);
    }
    dvbf_keep(f.b.graph, path);
    dvbf_keep(f.b.graph, f.m.state);
    bench_run(&f.b);
    for (int r = 0; r < ROWS; r++)
      for (int i = N; i < dv_chain_state(N); i++) {
        size_t at = ((size_t)(steps - 1) * ROWS + (size_t)r) * (size_t)dv_chain_state(N) + (size_t)i;
        assert_true(fabs(dvbf_at(&f.b.run, path)[at] - dvbf_at(&f.b.run, f.m.state)[at]) < 1e-10);
      }
    bench_end(&f.b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients), cmocka_unit_test(temperature),        cmocka_unit_test(is_the_smoother),
      cmocka_unit_test(moves),     cmocka_unit_test(steps_are_messages),
  };
  return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
