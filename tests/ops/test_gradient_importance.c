/* A bound of several samples: its ops against plain formulas and differences. */
#include "gradient.h"

#include "ops/ops.h"

enum { STEPS = 4, ROWS = 6, N = 2, SAMPLES = 3 };

/* ln q - ln p of row i, term by term as normal densities. */
static double plain_ratio(const bench *b, const dvbf_drawn *d, size_t i) {
  double sum = 0;
  const dvbf_real *w = dvbf_at(&b->run, d->value) + i * N, *q = dvbf_at(&b->run, d->head) + i * 2 * N;
  const dvbf_real *eps = dvbf_at(&b->run, d->noise) + i * N;
  const dvbf_real *p = d->prior.buffer < 0 ? NULL : dvbf_at(&b->run, d->prior) + i * 2 * N;
  if (i >= (size_t)d->head.steps * ROWS || !(dvbf_at(&b->run, d->use)[i] > 0)) return 0;
  for (int k = 0; k < N; k++) {
    double ln_s = p ? (double)p[N + k] : 0, m = p ? (double)p[k] : 0, e = ((double)w[k] - m) / exp(ln_s);
    double ln_q = -0.5 * (double)(eps[k] * eps[k]) - (double)q[N + k], ln_p = -0.5 * e * e - ln_s;
    sum += ln_q - ln_p;
  }
  return sum;
}

static void check_ratio(bool prior, int seen) {
  bench b;
  bench_begin(&b, ROWS);
  double use[STEPS * ROWS];
  for (int i = 0; i < STEPS * ROWS; i++) use[i] = i % 4 == 3 ? (i % 8 == 3 ? 0 : -1) : 1;
  dvbf_drawn d = {.value = input(&b, STEPS, N), .head = input(&b, seen, 2 * N), .prior = DVBF_NONE};
  d.noise = constant(&b, STEPS, N, NULL);
  d.use = constant(&b, STEPS, 1, use);
  if (prior) d.prior = input(&b, STEPS, 2 * N);
  dvbf_value out = dvbf_slab(b.graph, STEPS, 1);
  dv_record_ln_ratio(b.graph, out, &d, -8, 2.5);
  dvbf_value kept[] = {out, d.value, d.head, d.noise, d.use, d.prior};
  for (int i = 0; i < 6; i++) dvbf_keep(b.graph, kept[i]);
  project(&b, out);
  assert_gradients(&b, prior ? "ratio with a prior" : "ratio");
  dv_run_forward(&b.run);
  for (size_t i = 0; i < STEPS * ROWS; i++)
    assert_true(fabs((double)dvbf_at(&b.run, out)[i] - plain_ratio(&b, &d, i)) < 1e-12);
  bench_end(&b);
}

static void ratios_of_what_is_drawn(void **state) {
  (void)state;
  check_ratio(false, STEPS);
  check_ratio(true, STEPS);
  check_ratio(true, STEPS - 1);
}

/* The second group has half the weight. */
static void groups_of_samples(void **state) {
  (void)state;
  bench b;
  bench_begin(&b, ROWS);
  const double weight[ROWS] = {0.5, 0.5, 0.5, 0.25, 0.25, 0.25};
  dvbf_value ln_p = input(&b, STEPS, 1), first = input(&b, 1, 1), later = input(&b, STEPS - 1, 1);
  dv_record_importance(b.graph, KL_W, SAMPLES, ln_p, first, later, constant(&b, 1, 1, weight));
  dvbf_keep(b.graph, ln_p);
  dvbf_keep(b.graph, first);
  dvbf_keep(b.graph, later);
  assert_gradients(&b, "groups");
  dv_run_forward(&b.run);
  double expected = 0;
  for (int r = 0; r < ROWS; r += SAMPLES) {
    double mean = 0;
    for (int k = r; k < r + SAMPLES; k++) {
      double l = -(double)dvbf_at(&b.run, first)[k];
      for (int t = 0; t < STEPS; t++) l += (double)dvbf_at(&b.run, ln_p)[t * ROWS + k];
      for (int t = 0; t < STEPS - 1; t++) l -= (double)dvbf_at(&b.run, later)[t * ROWS + k];
      mean += exp(l) / SAMPLES;
    }
    expected += SAMPLES * weight[r] * log(mean);
  }
  assert_true(fabs(b.run.terms[KL_W] - expected) < 1e-12);
  bench_end(&b);
}

static void rows_must_be_whole_groups(void **state) {
  (void)state;
  bench b;
  dvbf_error error;
  bench_begin(&b, ROWS);
  dvbf_value none = DVBF_NONE, ln_p = input(&b, STEPS, 1);
  dv_record_importance(b.graph, KL_W, 4, ln_p, input(&b, 1, 1), none, constant(&b, 1, 1, NULL));
  assert_int_equal(dv_graph_plan(b.graph, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "6 rows are not groups of 4 samples"));
  bench_end(&b);
}

/* ---- Rows drawn anew ---- */

/* z of the rows that were chosen, with these weights. */
static dvbf_value record_resample(bench *b, const double *weight, dvbf_value *z) {
  b->conditions.noise_free = true; /* the numbers of the groups are 1/2 */
  dvbf_value s = constant(b, 1, 1, weight), out = dvbf_slab(b->graph, 1, N);
  *z = input(b, 1, N);
  dv_record_resample(b->graph, out, *z, s, SAMPLES);
  dvbf_keep(b->graph, out);
  dvbf_keep(b->graph, *z);
  project(b, out);
  return out;
}

static void expect_rows(const bench *b, dvbf_value out, dvbf_value z, const int *rows) {
  for (int r = 0; r < ROWS; r++)
    assert_memory_equal(dvbf_at(&b->run, out) + r * N, dvbf_at(&b->run, z) + rows[r] * N,
                        N * sizeof(dvbf_real));
}

/* The second row of the first group has nearly all of its weight, the third of the second most of it. */
static void rows_are_drawn_by_weight(void **state) {
  (void)state;
  const double weight[ROWS] = {1e-9, 1, 1e-9, 0.05, 0, 0.25};
  bench b;
  dvbf_value z, out;
  bench_begin(&b, ROWS);
  out = record_resample(&b, weight, &z);
  assert_gradients(&b, "resample");
  dv_run_forward(&b.run);
  expect_rows(&b, out, z, (const int[ROWS]){1, 1, 1, 3, 5, 5});
  bench_end(&b);
}

static void rows_of_equal_weight_stay(void **state) {
  (void)state;
  const double weight[ROWS] = {0.2, 0.2, 0.2, 0, 0, 0}; /* a group that fills up a shard has none */
  bench b;
  dvbf_value z, out;
  bench_begin(&b, ROWS);
  out = record_resample(&b, weight, &z);
  assert_gradients(&b, "resample, equal weights");
  dv_run_forward(&b.run);
  expect_rows(&b, out, z, (const int[ROWS]){0, 1, 2, 3, 4, 5});
  bench_end(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ratios_of_what_is_drawn), cmocka_unit_test(groups_of_samples),
      cmocka_unit_test(rows_must_be_whole_groups), cmocka_unit_test(rows_are_drawn_by_weight),
      cmocka_unit_test(rows_of_equal_weight_stay)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
