/* Free runs of models that would explode stay within their limits; training measures these. */
#include "files.h"
#include "small_model.h"

#include "base/memory.h"

#include <cmocka.h>
#include <math.h>

/* Transitions that expand: every entry of every parameter is moved, so that without limits z overflows. */
static void make_unstable(dvbf_model *m) {
  dv_random random = dv_random_at(23, DV_STREAM_SIMULATION, 0, 0);
  dvbf_real *range = dv_model_range(m);
  for (size_t i = 0; i < m->parameters.size; i++)
    m->parameters.values[i] += (dvbf_real)(0.5 * dv_random_normal(&random));
  for (int k = 0; range && k < m->n_z; k++) range[k] = 0.5f, range[m->n_z + k] = 2;
}

/* The largest distance from the middle of the range over 10^5 steps of one free run with random controls. */
static double free_run(const dvbf_model *m) {
  dvbf_program program = {0};
  dv_worker worker = {0};
  dv_conditions conditions = dv_model_conditions(m, 1);
  dv_random random = dv_random_at(4, DV_STREAM_SIMULATION, 0, 0);
  double worst = 0;
  assert_int_equal(dv_program_record_move(&program, m, 1, DV_DERIVATIVES, NULL), DVBF_OK);
  assert_int_equal(dv_worker_init(&worker, m, &program, NULL, NULL), DVBF_OK);
  worker.run.conditions = &conditions;
  dvbf_real *z = dvbf_at(&worker.run, program.z), *u = dvbf_at(&worker.run, program.u);
  dvbf_value noise = program.later.noise;
  for (int k = 0; k < m->n_z; k++) z[k] = 0;
  for (int t = 0; t < 100000; t++) {
    for (int k = 0; k < N_U; k++) u[k] = (dvbf_real)dv_random_normal(&random);
    for (int k = 0; k < noise.cols; k++)
      dvbf_at(&worker.run, noise)[k] = (dvbf_real)dv_random_normal(&random);
    dv_run_forward(&worker.run);
    for (int k = 0; k < m->n_z; k++) {
      z[k] = z[m->n_z + k];
      worst = isfinite(z[k]) ? fmax(worst, fabs((double)z[k] - 0.5)) : INFINITY;
    }
    if (!isfinite(worst)) break;
  }
  dv_worker_clear(&worker);
  dv_program_clear(&program);
  return worst;
}

static void free_runs_stay_bounded(void **state) {
  (void)state;
  static const char *const variants[] = {"", "transition=linear", "transition=mlp activation=relu",
                                         "affine=on", "residual=off"};
  char text[128];
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    fixture f;
    begin(&f, variants[i]);
    make_unstable(f.model);
    if (i < 3) assert_false(free_run(f.model) < 1e6); /* or the test would show nothing */
    end(&f);
    snprintf(text, sizeof text, "%s state-limit=2", variants[i]);
    begin(&f, text);
    make_unstable(f.model);
    double far = free_run(f.model);
    assert_true(far > 2 && far <= 4);
    end(&f);
  }
}

/* The mean keeps to the limits, and z is within some sigma of it. */
static void free_runs_of_a_dkf_stay_bounded(void **state) {
  (void)state;
  fixture f;
  begin(&f, "model=dkf state-limit=2");
  make_unstable(f.model);
  assert_true(free_run(f.model) <= 4 + 6 * exp(2.5));
  end(&f);
}

static dvbf_model *train(const fixture *f, const char *text) {
  dvbf_settings *settings = make_settings(text);
  dvbf_data data = {.train = f->sequences};
  dvbf_model *m = NULL;
  dvbf_error error;
  if (dvbf_train(&m, settings, &data, NULL, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return m;
}

/* ---- Whatever moves the state, x stays within ten times its range in training ---- */

/* Training data are in 0 .. 1. */
static void expect_near(double x, const char *what) {
  if (!(fabs(x - 0.5) <= 10 * 0.5)) fail_msg("%s: x = %g", what, x);
}

/* Makes what moves z expand, and leaves what was trained around it. The spread of a dkf's transition is 1. */
static void let_explode(dvbf_model *m) {
  dv_random random = dv_random_at(23, DV_STREAM_SIMULATION, 0, 0);
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *p = &m->parameters.list[i];
    bool moves = !strcmp(p->name, "universal.mean") || !strncmp(p->name, "transition.", 11);
    bool spreads = !strncmp(p->name, "transition.output", 17) && p->cols == 2 * m->n_z;
    for (size_t k = 0; moves && !p->frozen && k < (size_t)p->rows * (size_t)p->cols; k++) {
      dvbf_real *value = &m->parameters.values[p->offset + k];
      *value += (dvbf_real)(0.8 * dv_random_normal(&random));
      if (spreads && (int)k % p->cols >= m->n_z) *value = 0;
    }
  }
}

/* z = 1.5 z + w + u_1: the shortest transition that explodes. */
static void *own_open(const dvbf_transition *self, dvbf_graph *g, const dvbf_settings *settings,
                      const dvbf_transition_values *x) {
  (void)self, (void)settings;
  double first[2][9] = {{1.5, 0, 0, 0, 1.5, 0, 0, 0, 1.5}, {1, 0, 0, 0, 1, 0, 0, 0, 1}};
  dvbf_layer l = {.out = x->next, .bias = DVBF_NONE, .activation = DVBF_LINEAR, .n_in = 2};
  l.in[0].x = dvbf_steps(x->z, 0, x->steps);
  l.in[0].w = dvbf_parameter(g, "own.z", 3, 3, (dvbf_first){.frozen = true, .values = first[0]});
  l.in[1].x = x->w;
  l.in[1].w = dvbf_parameter(g, "own.w", 3, 3, (dvbf_first){.frozen = true, .values = first[1]});
  l.in[0].sequential = l.in[1].sequential = true;
  dvbf_layer_open(g, &l);
  return dvbf_remember(g, &l, sizeof l);
}

static void own_step(const dvbf_transition *self, dvbf_graph *g, const dvbf_transition_values *x,
                     void *memory, int t) {
  (void)self, (void)x;
  if (memory) dvbf_layer_step(g, memory, t);
}

static const dvbf_transition own = {.name = "own", .open = own_open, .step = own_step};

/* x of z and u, as the emission has it. */
typedef struct emitter {
  const dvbf_model *m;
  dvbf_program program;
  dv_worker worker;
  dv_conditions conditions;
} emitter;

static void open_emitter(emitter *e, const dvbf_model *m) {
  *e = (emitter){.m = m, .conditions = dv_model_conditions(m, 1)};
  assert_int_equal(dv_program_record_emission(&e->program, m, 1, 0, NULL), DVBF_OK);
  assert_int_equal(dv_worker_init(&e->worker, m, &e->program, NULL, NULL), DVBF_OK);
  e->worker.run.conditions = &e->conditions;
}

static void close_emitter(emitter *e) {
  dv_worker_clear(&e->worker);
  dv_program_clear(&e->program);
}

static void expect_near_at(emitter *e, const float *z, const char *what) {
  float x[N_X];
  for (int k = 0; k < e->m->n_z; k++) dvbf_at(&e->worker.run, e->program.z)[k] = (dvbf_real)z[k];
  dv_run_forward(&e->worker.run);
  dv_model_unscale(e->m, dvbf_at(&e->worker.run, e->program.output), x);
  for (int i = 0; i < N_X; i++) expect_near((double)x[i], what);
}

/* 10^5 steps of the online filter that sees a few frames and then nothing more. */
static void filter_blindly(const dvbf_model *m, const dvbf_sequences *s, const char *what) {
  dv_random random = dv_random_at(4, DV_STREAM_SIMULATION, 0, 0);
  emitter e;
  size_t size;
  dvbf_filter *filter = NULL;
  dvbf_belief belief;
  float u[N_U];
  assert_int_equal(dvbf_filter_memsize(&size, m, 1, NULL), DVBF_OK);
  void *memory = dv_calloc_aligned(size, 1);
  assert_int_equal(dvbf_filter_init(&filter, memory, size, m, 1, 1, NULL), DVBF_OK);
  open_emitter(&e, m);
  for (size_t t = 0; t < 100000; t++) {
    for (int k = 0; k < N_U; k++) u[k] = (float)(4 * dv_random_uniform(&random) - 2);
    dvbf_filter_step(filter, t < 5 ? s->x + t * N_X : NULL, u, &belief);
    if (belief.ready && t % 16 == 0) expect_near_at(&e, belief.z, what);
  }
  close_emitter(&e);
  dv_free(memory);
}

static dvbf_estimates *estimate(const dvbf_model *m, const dvbf_sequences *s, const char *table,
                                const char *steps) {
  dvbf_settings *settings = NULL;
  dvbf_estimates *out = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_settings_new(&settings, table, &error), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "steps", steps, &error), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "controls", "random", &error), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "threads", "1", &error), DVBF_OK);
  if (!strcmp(table, "sample")) assert_int_equal(dvbf_settings_set(settings, "count", "4", &error), DVBF_OK);
  if (!strcmp(table, "predict"))
    assert_int_equal(dvbf_settings_set(settings, "samples", "4", &error), DVBF_OK);
  if (dvbf_estimate(&out, m, s, settings, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return out;
}

static void predict_far(const dvbf_model *m, const dvbf_sequences *s, const char *steps, const char *what) {
  dvbf_sequences few = *s;
  few.count = 2;
  dvbf_estimates *p = estimate(m, &few, "predict", steps), *made = estimate(m, NULL, "sample", steps);
  for (size_t i = 0; i < p->count * p->steps * p->n_x; i++) expect_near((double)p->x[i], what);
  for (size_t i = 0; i < p->n_quantiles * p->count * p->steps * p->n_x; i++)
    expect_near((double)p->x_quantiles[i], what);
  for (size_t i = 0; i < made->count * made->steps * made->n_x; i++)
    expect_near((double)made->x_samples[i], what);
  dvbf_estimates_free(p);
  dvbf_estimates_free(made);
}

static dvbf_model *train_as(const fixture *f, const char *variant, const dvbf_transition *transition) {
  char text[256];
  snprintf(text, sizeof text, "updates=30 validate-every=10 threads=1 starts=1 %s", variant);
  dvbf_settings *settings = make_settings(text);
  dvbf_data data = {.train = f->sequences};
  dvbf_model *m = NULL;
  dvbf_error error;
  if (transition ? dvbf_train_with(&m, transition, settings, &data, NULL, &error)
                 : dvbf_train(&m, settings, &data, NULL, &error))
    fail_msg("%s: %s", variant, error.message);
  dvbf_settings_free(settings);
  return m;
}

static void every_model_stays_near_the_data(void **state) {
  (void)state;
  static const struct {
    const char *settings;
    bool explodes; /* without limits, as a proof that something is tested */
  } cases[] = {{"state-limit=2", true},
               {"state-limit=2 transition=linear universal=point", true},
               {"state-limit=2 transition=mlp activation=relu", true},
               {"state-limit=2 affine=on residual=off universal-noise=step", false},
               {"state-limit=2 linear-paths=on recognition-input=innovation", true},
               {"state-limit=2 feedthrough=on", true},
               {"state-limit=2 model=dkf updates=100", false},
               {"state-limit=2 model=linear latent=3", true},
               {"model=vae", false}};
  fixture f;
  begin(&f, "");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dvbf_model *m = train_as(&f, cases[i].settings, NULL);
    let_explode(m);
    predict_far(m, &f.sequences, "1500", cases[i].settings);
    if (dv_model_can_filter(m)) filter_blindly(m, &f.sequences, cases[i].settings);
    dvbf_real *range = dv_model_range(m);
    for (int k = 0; cases[i].explodes && k < m->n_z; k++) range[m->n_z + k] = 1e30f;
    if (cases[i].explodes) {
      dvbf_estimates *made = estimate(m, NULL, "sample", "1500");
      assert_false(fabs((double)made->x_samples[1500 * N_X - 1]) < 1e6);
      dvbf_estimates_free(made);
    }
    dvbf_model_free(m);
  }
  dvbf_model *m = train_as(&f, "state-limit=2 updates=400", &own);
  predict_far(m, &f.sequences, "1500", "own transition");
  filter_blindly(m, &f.sequences, "own transition");
  dvbf_model_free(m);
  end(&f);
}

/* Every member keeps to its own limits, so that what they pool does; a linear one goes on for 10^5 steps. */
static void committees_stay_near_the_data(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  dvbf_model *m = train_as(&f, "state-limit=2", NULL);
  dvbf_model *other = train_as(&f, "state-limit=2 transition=mlp latent=2", NULL);
  dvbf_model *linear = train_as(&f, "state-limit=2 model=linear latent=2", NULL);
  let_explode(m);
  let_explode(other);
  let_explode(linear);
  predict_far(linear, &f.sequences, "100000", "linear");
  assert_int_equal(dv_model_add_member(m, other, NULL), DVBF_OK);
  assert_int_equal(dv_model_add_member(m, linear, NULL), DVBF_OK);
  predict_far(m, &f.sequences, "1500", "committee");
  dvbf_model_free(m);
  end(&f);
}

/* The limits are three times the range of the filtered states of the training data, over several passes. */
static void training_measures_the_range(void **state) {
  (void)state;
  static const char settings[] = "state-limit=3 updates=20 validate-every=10 threads=1 starts=1";
  fixture f;
  begin(&f, settings);
  dvbf_model *m = train(&f, settings), *loaded = NULL;
  const dvbf_real *centre = dv_model_range(m), *limit = centre + m->n_z;
  double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
  for (uint64_t seed = 1; seed < 5; seed++) {
    dv_path_options options = {.observe = STEPS, .seed = seed, .threads = 1};
    dv_paths *paths = NULL;
    assert_int_equal(dv_paths_of(&paths, m, &f.sequences, &options, NULL), DVBF_OK);
    for (size_t i = 0; i < COUNT * STEPS * 3; i++) {
      if (i / 3 % STEPS >= f.sequences.length[i / 3 / STEPS]) continue;
      low[i % 3] = fmin(low[i % 3], (double)paths->z[i]);
      high[i % 3] = fmax(high[i % 3], (double)paths->z[i]);
    }
    dv_paths_free(paths);
  }
  for (int k = 0; k < 3; k++) {
    assert_true(fabs((double)centre[k] - (low[k] + high[k]) / 2) < 1e-4 * (double)limit[k]);
    assert_true(fabs((double)limit[k] / (1.5 * (high[k] - low[k])) - 1) < 1e-4);
  }
  const char *path = in_folder("bounded");
  assert_int_equal(dvbf_model_save(m, path, NULL), DVBF_OK);
  assert_int_equal(dvbf_model_load(&loaded, path, NULL), DVBF_OK);
  assert_memory_equal(dv_model_range(loaded), centre, 2 * (size_t)m->n_z * sizeof *centre);
  dvbf_model_free(loaded);
  dvbf_error error;
  dv_model_range(m)[m->n_z] = 0;
  assert_int_equal(dvbf_model_save(m, path, NULL), DVBF_OK);
  assert_int_equal(dvbf_model_load(&loaded, path, &error), DVBF_FORMAT);
  assert_non_null(strstr(error.message, "limits of state.range must be positive"));
  dvbf_model_free(m);
  end(&f);
}

/* The same model inside its limits as without: wide limits change no byte. */
static void inside_the_limits_nothing_changes(void **state) {
  (void)state;
  fixture f, g;
  begin(&f, "");
  begin(&g, "state-limit=1e6");
  assert_null(dv_model_range(f.model));
  for (size_t i = 0; i < f.model->parameters.count; i++) {
    const dv_parameter *p = &f.model->parameters.list[i];
    for (size_t k = 0; k < g.model->parameters.count; k++)
      if (!strcmp(g.model->parameters.list[k].name, p->name))
        memcpy(g.model->parameters.values + g.model->parameters.list[k].offset,
               f.model->parameters.values + p->offset, (size_t)p->rows * (size_t)p->cols * sizeof(dvbf_real));
  }
  dv_paths *paths = infer(f.model, &f.sequences, 1, 4);
  expect_same_paths(paths, infer(g.model, &g.sequences, 1, 4));
  dv_paths_free(paths);
  end(&f);
  end(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(free_runs_stay_bounded),          cmocka_unit_test(free_runs_of_a_dkf_stay_bounded),
      cmocka_unit_test(every_model_stays_near_the_data), cmocka_unit_test(committees_stay_near_the_data),
      cmocka_unit_test(training_measures_the_range),     cmocka_unit_test(inside_the_limits_nothing_changes)};
  return cmocka_run_group_tests_name("bounded states", tests, make_folder, remove_folder);
}
