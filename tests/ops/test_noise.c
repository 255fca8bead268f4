/* Noise and filter dropout depend on their key alone and have the right distribution. */
#include "math/random.h"
#include "ops/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { NOISE_STEPS = 3, NOISE_COLS = 6 };

/* One program of noise: two streams for each sequence, and one that all share. */
typedef struct noise_program {
  dv_parameters parameters;
  dvbf_graph *graph;
  dvbf_value a, b, shared, mask, use;
  dvbf_run run;
  dv_conditions conditions;
} noise_program;

static void begin_noise(noise_program *p, int rows, const uint32_t *sequence) {
  *p = (noise_program){.conditions = {.seed = 1, .stream = DV_STREAM_NOISE}};
  dvbf_graph *g = p->graph = dv_graph_new(&p->parameters, rows, false);
  p->a = dvbf_slab_constant(g, NOISE_STEPS, NOISE_COLS);
  p->b = dvbf_slab_constant(g, NOISE_STEPS, NOISE_COLS);
  p->shared = dvbf_slab_shared(g, NOISE_STEPS, NOISE_COLS);
  p->mask = dvbf_slab_constant(g, NOISE_STEPS, 1);
  p->use = dvbf_slab_constant(g, NOISE_STEPS, 1);
  dvbf_noise(g, p->a, false);
  dvbf_noise(g, p->b, false);
  dvbf_noise(g, p->shared, true);
  dvbf_filter_use(g, p->use, p->mask);
  dvbf_value all[] = {p->a, p->b, p->shared, p->mask, p->use};
  for (int i = 0; i < 5; i++) dvbf_keep(g, all[i]);
  assert_int_equal(dv_graph_plan(g, NULL), DVBF_OK);
  assert_int_equal(dv_run_init(&p->run, g, NULL), DVBF_OK);
  p->run.conditions = &p->conditions;
  p->run.sequence = sequence;
  for (int i = 0; i < NOISE_STEPS * rows; i++) dvbf_at(&p->run, p->mask)[i] = 1;
  dv_run_forward(&p->run);
}

static void end_noise(noise_program *p) {
  dv_run_clear(&p->run);
  dv_graph_free(p->graph);
}

static const dvbf_real *noise_row(const noise_program *p, dvbf_value v, int t, int row) {
  return dvbf_at(&p->run, dvbf_steps(v, t, 1)) + row * NOISE_COLS;
}

/* Whatever the shard and the place in it, a sequence gets the same numbers; and no two uses share any. */
static void noise_depends_on_its_key_alone(void **state) {
  (void)state;
  static const uint32_t first[] = {10, 11, 12}, second[] = {12, 10};
  enum { BYTES = NOISE_COLS * sizeof(dvbf_real) };
  noise_program p, q;
  begin_noise(&p, 3, first);
  begin_noise(&q, 2, second);
  for (int t = 0; t < NOISE_STEPS; t++) {
    const dvbf_real *a = noise_row(&p, p.a, t, 0);
    assert_memory_equal(a, noise_row(&q, q.a, t, 1), BYTES);
    assert_memory_equal(noise_row(&p, p.b, t, 2), noise_row(&q, q.b, t, 0), BYTES);
    assert_memory_equal(noise_row(&p, p.shared, t, 0), noise_row(&q, q.shared, t, 0), BYTES);
    assert_memory_not_equal(a, noise_row(&p, p.a, t, 1), BYTES);
    assert_memory_not_equal(a, noise_row(&p, p.b, t, 0), BYTES);
    assert_memory_not_equal(a, noise_row(&p, p.a, (t + 1) % NOISE_STEPS, 0), BYTES);
  }
  dv_conditions others[] = {p.conditions, p.conditions, p.conditions};
  others[0].seed = 2;
  others[1].update = 1;
  others[2].stream = DV_STREAM_INFERENCE;
  for (int i = 0; i < 3; i++) {
    q.conditions = others[i];
    dv_run_forward(&q.run);
    assert_memory_not_equal(noise_row(&p, p.a, 0, 0), noise_row(&q, q.a, 0, 1), BYTES);
    assert_memory_not_equal(noise_row(&p, p.shared, 0, 0), noise_row(&q, q.shared, 0, 0), BYTES);
  }
  q.conditions.noise_free = true;
  dv_run_forward(&q.run);
  for (int i = 0; i < NOISE_COLS; i++) assert_true(noise_row(&q, q.a, 1, 1)[i] == 0);
  end_noise(&p);
  end_noise(&q);
}

static double share_used(noise_program *p, double dropout) {
  int used = 0, all = NOISE_STEPS * p->use.rows;
  dv_conditions_set(&p->conditions, DVBF_FILTER_DROPOUT, dropout);
  dv_run_forward(&p->run);
  for (int i = 0; i < all; i++) used += dvbf_at(&p->run, p->use)[i] > 0;
  return (double)used / all;
}

/* Share of dropped steps among those that follow a dropped one. */
static double share_that_stays(const noise_program *p) {
  const dvbf_real *use = dvbf_at(&p->run, p->use);
  int rows = p->use.rows, dropped = 0, stay = 0;
  for (int i = 0; i < (NOISE_STEPS - 1) * rows; i++)
    if (use[i] == 0) dropped++, stay += use[i + rows] == 0;
  return (double)stay / dropped;
}

/* Runs of mean length L stay dropped with probability 1 - 1 / L; the share is the same at every step. Runs
 * shorter than chance gives do not exist. */
static void filter_dropout_comes_in_runs(void **state) {
  (void)state;
  enum { ROWS = 20000 };
  static uint32_t sequence[ROWS];
  for (uint32_t i = 0; i < ROWS; i++) sequence[i] = i;
  noise_program p;
  begin_noise(&p, ROWS, sequence);
  static const double runs[] = {1, 4, 10}, stay[] = {0.3, 0.75, 0.9};
  for (int i = 0; i < 3; i++) {
    dv_conditions_set(&p.conditions, DVBF_FILTER_DROPOUT_RUN, runs[i]);
    share_used(&p, 0.3);
    for (int t = 0; t < NOISE_STEPS; t++) {
      double used = 0;
      for (int r = 0; r < ROWS; r++) used += dvbf_at(&p.run, p.use)[t * ROWS + r] > 0;
      assert_true(fabs(used / ROWS - 0.7) < 0.015);
    }
    assert_true(fabs(share_that_stays(&p) - stay[i]) < 0.02);
  }
  end_noise(&p);
}

/* Where w is to be 0 the same steps are dropped; where q waits, it is not used and nothing is dropped. */
static void dropped_steps_are_marked(void **state) {
  (void)state;
  enum { ROWS = 1000, WAIT = 2 };
  uint32_t sequence[ROWS];
  static dvbf_real before[NOISE_STEPS * ROWS];
  for (uint32_t i = 0; i < ROWS; i++) sequence[i] = i;
  noise_program p;
  begin_noise(&p, ROWS, sequence);
  share_used(&p, 0.3);
  memcpy(before, dvbf_at(&p.run, p.use), sizeof before);
  dv_conditions_set(&p.conditions, DVBF_FILTER_DROPOUT_ZERO, 1);
  share_used(&p, 0.3);
  for (int i = 0; i < NOISE_STEPS * ROWS; i++)
    assert_true(dvbf_at(&p.run, p.use)[i] == (before[i] > 0 ? 1 : -1));
  dv_conditions_set(&p.conditions, DVBF_FILTER_WAIT, WAIT);
  share_used(&p, 0.3);
  for (int i = 0; i < NOISE_STEPS * ROWS; i++)
    assert_true(dvbf_at(&p.run, p.use)[i] == (i < WAIT * ROWS ? 0 : before[i] > 0 ? 1 : -1));
  end_noise(&p);
}

static void filter_dropout_drops_its_share(void **state) {
  (void)state;
  enum { ROWS = 1000 };
  uint32_t sequence[ROWS];
  for (uint32_t i = 0; i < ROWS; i++) sequence[i] = i;
  noise_program p;
  begin_noise(&p, ROWS, sequence);
  assert_true(share_used(&p, 0) == 1);
  assert_true(share_used(&p, 1) == 0);
  assert_true(fabs(share_used(&p, 0.3) - 0.7) < 4 * sqrt(0.21 / (NOISE_STEPS * ROWS)));
  for (int i = 0; i < ROWS; i++)
    dvbf_at(&p.run, p.mask)[i] = 0; /* the first of three steps is not observed */
  assert_true(fabs(share_used(&p, 0) - 2.0 / 3) < 1e-12);
  end_noise(&p);
}

/* The number of a stream has 8 bits of the key: one more stream would repeat the first. */
static void more_streams_than_fit_the_key_are_refused(void **state) {
  (void)state;
  for (int streams = 256; streams <= 257; streams++) {
    dv_parameters parameters = {0};
    dvbf_graph *g = dv_graph_new(&parameters, 1, false);
    dvbf_error error;
    for (int i = 0; i < streams; i++) dvbf_noise(g, dvbf_slab_constant(g, 1, 1), false);
    assert_int_equal(dv_graph_plan(g, &error), streams > 256 ? DVBF_ARGUMENT : DVBF_OK);
    if (streams > 256) assert_non_null(strstr(error.message, "at most 256 streams of noise"));
    dv_graph_free(g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(noise_depends_on_its_key_alone),
      cmocka_unit_test(filter_dropout_comes_in_runs),
      cmocka_unit_test(dropped_steps_are_marked),
      cmocka_unit_test(filter_dropout_drops_its_share),
      cmocka_unit_test(more_streams_than_fit_the_key_are_refused),
  };
  return cmocka_run_group_tests_name("noise", tests, NULL, NULL);
}
