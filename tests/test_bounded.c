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
  begin(&f, "model=dkf state-limit=2 log-sigma-max=1");
  make_unstable(f.model);
  assert_true(free_run(f.model) <= 4 + 6 * exp(1));
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
      cmocka_unit_test(free_runs_stay_bounded), cmocka_unit_test(free_runs_of_a_dkf_stay_bounded),
      cmocka_unit_test(training_measures_the_range), cmocka_unit_test(inside_the_limits_nothing_changes)};
  return cmocka_run_group_tests_name("bounded states", tests, make_folder, remove_folder);
}
