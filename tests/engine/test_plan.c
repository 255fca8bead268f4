/* Memory of a program that is used again changes no value. */
#include "engine/engine.h"
#include "model/batches.h"
#include "small_model.h"
#include "variants.h"

#include <math.h>

#include <cmocka.h>

/* What a run leaves behind. */
typedef struct outcome {
  double terms[DV_MOST_TERMS];
  dvbf_real *gradient; /* [parameters] */
  size_t arena;
} outcome;

/* Gives every buffer of a program memory of its own. A new buffer's number tells how many there are. */
static void keep_everything(dvbf_graph *g) {
  int count = dvbf_slab(g, 1, 1).buffer;
  for (int i = 0; i < count; i++) dvbf_keep(g, (dvbf_value){.buffer = i});
  assert_int_equal(dv_graph_plan(g, NULL), DVBF_OK);
}

/* Runs twice over memory full of NaN, so that nothing is read that was not written in this run. */
static outcome run_program(fixture *f, bool training, bool keep) {
  enum { ROWS = 5 };
  static const uint32_t index[ROWS] = {4, 0, 7, 2, 2};
  dvbf_program p;
  dv_worker worker;
  dvbf_run *run = &worker.run;
  dv_conditions conditions = {.seed = 3, .stream = DV_STREAM_NOISE, .scale = 0.1};
  dv_conditions_set(&conditions, DVBF_TEMPERATURE, 0.8);
  dv_conditions_set(&conditions, DVBF_LOG_SIGMA_FLOOR, -2);
  dv_conditions_set(&conditions, DVBF_FILTER_DROPOUT, f->model->settings->filter_dropout);
  dv_conditions_set(&conditions, DVBF_SEQUENCES, COUNT);
  size_t n = f->model->parameters.size;
  outcome o = {.gradient = calloc(n, sizeof *o.gradient)};
  assert_int_equal(dv_program_record(&p, f->model, STEPS, ROWS, STEPS, training, NULL), DVBF_OK);
  if (keep) keep_everything(p.graph);
  assert_int_equal(dv_worker_init(&worker, f->model, &p, &f->sequences, NULL), DVBF_OK);
  o.arena = p.graph->arena;
  run->gradient = o.gradient;
  run->conditions = &conditions;
  run->sequence = index;
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < o.arena; i++) run->arena[i] = NAN;
    dv_worker_load(&worker, &f->sequences, index, 4, STEPS);
    dv_run_forward(run);
    if (training) dv_run_backward(run);
  }
  memcpy(o.terms, run->terms, sizeof o.terms);
  dv_worker_clear(&worker);
  dv_program_clear(&p);
  return o;
}

/* same_ops: a program without backward has the same ops, and so the same rounding. */
static void expect_same_plans(const char *settings, bool same_ops) {
  fixture f;
  begin(&f, settings);
  size_t bytes = f.model->parameters.size * sizeof(dvbf_real);
  outcome reused = run_program(&f, true, false), kept = run_program(&f, true, true);
  outcome forward = run_program(&f, false, false);
  assert_true(reused.arena < kept.arena); /* memory is used again indeed */
  assert_true(forward.arena < reused.arena);
  for (int i = 0; i < DV_MOST_TERMS; i++) assert_true(isfinite(reused.terms[i]));
  assert_memory_equal(reused.terms, kept.terms, sizeof kept.terms);
  if (same_ops) assert_memory_equal(reused.terms, forward.terms, sizeof kept.terms);
  for (int i = 0; i < DV_MOST_TERMS; i++)
    assert_true(fabs(reused.terms[i] - forward.terms[i]) <= 1e-6 * fabs(forward.terms[i]));
  assert_memory_equal(reused.gradient, kept.gradient, bytes);
  double sum = 0;
  for (size_t i = 0; i < f.model->parameters.size; i++) sum += fabs((double)reused.gradient[i]);
  assert_true(isfinite(sum) && sum > 0);
  free(reused.gradient);
  free(kept.gradient);
  free(forward.gradient);
  end(&f);
}

static void plans_do_not_change_values(void **state) {
  (void)state;
  for (const variant *v = NULL; (v = next_variant(v, PLAN));) expect_same_plans(v->settings, true);
  for (const variant *v = NULL; (v = next_variant(v, PLAN_APART));) expect_same_plans(v->settings, false);
}

/* ---- Long programs ---- */

static void nothing(const dvbf_op *op, dvbf_run *run) {
  (void)op, (void)run;
}

/* Values of different sizes; one of three is read long after it was written, by up to 150 ops. */
static void record_chain(dvbf_graph *g, int count, dvbf_value *values) {
  static const dvbf_op_class nothing_class = {"nothing", nothing, nothing, NULL};
  dv_random random = dv_random_at(6, DV_STREAM_SIMULATION, 0, 0);
  for (int i = 0; i < count; i++) {
    int back = i % 3 ? 1 : 1 + (int)(150 * dv_random_uniform(&random));
    values[i] = dvbf_slab(g, 1, 1 + (int)(100 * dv_random_uniform(&random)));
    dvbf_record(g, &nothing_class, i > 0, &values[i > back ? i - back : 0], 1, &values[i], NULL, 0);
  }
}

static bool share_memory(const dv_buffer *a, const dv_buffer *b) {
  return a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static bool share_time(const dv_buffer *a, const dv_buffer *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* No two values that are alive together share memory, and ten times as many ops need no more of it. */
static void long_programs_use_memory_again(void **state) {
  (void)state;
  enum { FEW = 3000, MANY = 10 * FEW };
  static dvbf_value values[MANY];
  size_t arena[2];
  for (int k = 0; k < 2; k++) {
    int count = k ? MANY : FEW;
    dv_parameters none = {0};
    dvbf_graph *g = dv_graph_new(&none, 1, 0);
    record_chain(g, count, values);
    assert_int_equal(dv_graph_plan(g, NULL), DVBF_OK);
    arena[k] = g->arena;
    for (int i = 0; i < g->n_buffers; i++)
      for (int j = i > 400 ? i - 400 : 0; j < i; j++)
        if (share_time(&g->buffers[i], &g->buffers[j]))
          assert_false(share_memory(&g->buffers[i], &g->buffers[j]));
    dv_graph_free(g);
  }
  assert_true(arena[1] < arena[0] * 5 / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_do_not_change_values),
      cmocka_unit_test(long_programs_use_memory_again),
  };
  return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
