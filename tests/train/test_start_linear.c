/* A linear start: before its first update the model is the Kalman filter of the linear model. */
#include "data/dataset.h"
#include "identify/linear_fit.h"
#include "math/random.h"
#include "model/batches.h"
#include "model/model.h"
#include "part.h"

#include <dvbf/dvbf.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 3, STEPS = 400, MOST_X = 3, SETTLED = 120 };

/* An oscillator and a lag, driven by noise and by u, in columns of different units; with feedthrough u acts
 * on the first column at once. */
static dvbf_sequences simulate(size_t n_x, size_t n_u, bool feedthrough) {
  static const double units[MOST_X] = {1, 20, 0.01}, offsets[MOST_X] = {3, -50, 0};
  dv_random r = dv_random_at(6, DV_STREAM_SIMULATION, (uint32_t)n_x, (uint32_t)n_u);
  dvbf_sequences s = {.count = COUNT, .steps = STEPS, .n_x = n_x, .n_u = n_u};
  assert_int_equal(dv_sequences_allocate(&s, false, NULL), DVBF_OK);
  for (size_t i = 0; i < COUNT; i++) {
    double z[3] = {0};
    for (size_t t = 0; t < STEPS; t++) {
      double u = n_u ? dv_random_normal(&r) : 0, a = z[0], b = z[1];
      double x[MOST_X] = {a + 0.3 * z[2] + (feedthrough ? 0.5 * u : 0), b, a - b + z[2]};
      if (n_u) s.u[i * STEPS + t] = (float)(5 + 2 * u);
      for (size_t k = 0; k < n_x; k++)
        s.x[(i * STEPS + t) * n_x + k] = (float)(offsets[k] + units[k] * (x[k] + 0.2 * dv_random_normal(&r)));
      z[0] = 0.85 * a + 0.4 * b + 0.3 * u + 0.3 * dv_random_normal(&r);
      z[1] = 0.85 * b - 0.4 * a + 0.3 * dv_random_normal(&r);
      z[2] = 0.7 * z[2] + 0.5 * u + 0.3 * dv_random_normal(&r);
    }
  }
  return s;
}

/* ---- What the model predicts before it sees ---- */

typedef struct prediction {
  size_t n_x, n_z;
  float *x, *z; /* [STEPS][n_x], [STEPS][n_z] of the first sequence; entry 0 is not there */
} prediction;

static void collect(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  (void)shard, (void)count;
  prediction *p = user;
  const dvbf_model *m = w->model;
  if (first) return;
  for (size_t t = 1; t < STEPS; t++) {
    const dvbf_real *e = dvbf_at(&w->run, dvbf_steps(w->program->innovation, (int)t - 1, 1));
    const dvbf_real *x = dvbf_at(&w->run, dvbf_steps(w->program->x, (int)t, 1));
    const dvbf_real *z = dvbf_at(&w->run, dvbf_steps(w->program->predicted, (int)t - 1, 1));
    for (size_t k = 0; k < p->n_x; k++)
      p->x[t * p->n_x + k] = (float)((double)(x[k] - e[k]) / (double)m->x.scale[k] + (double)m->x.shift[k]);
    for (size_t k = 0; k < p->n_z; k++) p->z[t * p->n_z + k] = (float)z[k];
  }
}

static prediction predict(const dvbf_model *m, const dvbf_sequences *s) {
  prediction p = {(size_t)m->n_x, (size_t)m->n_z, NULL, NULL};
  p.x = calloc(STEPS * p.n_x, sizeof *p.x);
  p.z = calloc(STEPS * p.n_z, sizeof *p.z);
  dv_threads *pool = NULL;
  dv_pass pass = {0};
  assert_int_equal(dv_threads_new(&pool, 1, NULL), DVBF_OK);
  assert_int_equal(dv_pass_init(&pass, m, pool, s, 0, NULL), DVBF_OK);
  dv_conditions conditions = dv_model_conditions(m, 1);
  conditions.noise_free = true;
  assert_int_equal(dv_pass_run(&pass, s, &conditions, collect, &p, NULL), DVBF_OK);
  dv_pass_clear(&pass);
  dv_threads_free(pool);
  return p;
}

static dvbf_estimates *by_linear(const dvbf_model *m, const dvbf_sequences *s, bool forecast) {
  dvbf_settings *settings = NULL;
  dvbf_estimates *e = NULL;
  assert_int_equal(dvbf_settings_new(&settings, "filter", NULL), DVBF_OK);
  if (forecast) assert_int_equal(dvbf_settings_set(settings, "forecast", "on", NULL), DVBF_OK);
  assert_int_equal(dvbf_estimate(&e, m, s, settings, NULL), DVBF_OK);
  dvbf_settings_free(settings);
  return e;
}

/* ---- The comparison ---- */

static double deviation_of(const float *x, size_t n) {
  double sum = 0, squares = 0, count = 0;
  for (size_t t = SETTLED; t < STEPS; t++)
    sum += (double)x[t * n], squares += (double)x[t * n] * (double)x[t * n], count++;
  return sqrt(squares / count - sum / count * sum / count);
}

static void compare_forecasts(const prediction *p, const dvbf_model *linear, const dvbf_sequences *s) {
  dvbf_estimates *e = by_linear(linear, s, true);
  for (size_t k = 0; k < p->n_x; k++) {
    double unit = deviation_of(s->x + k, p->n_x);
    for (size_t t = SETTLED; t < STEPS; t++) {
      double apart = (double)e->x[(t - e->first) * p->n_x + k] - (double)p->x[t * p->n_x + k];
      if (!(fabs(apart) < 1e-4 * unit)) fail_msg("column %zu, step %zu: %g apart", k, t, apart / unit);
    }
  }
  dvbf_estimates_free(e);
}

/* A state that the linear model knows exactly from the past is the prediction of the model, in units of its
 * own. */
static void compare_states(const prediction *p, const dvbf_model *linear, const dvbf_sequences *s) {
  dvbf_estimates *e = by_linear(linear, s, false);
  assert_true(e->n_z <= p->n_z);
  for (size_t k = 0; k < e->n_z; k++) {
    double product = 0, square = 0, unit = deviation_of(p->z + k, p->n_z);
    for (size_t t = SETTLED; t < STEPS; t++) {
      double z = (double)e->z_mean[(t - e->first) * e->n_z + k];
      product += z * (double)p->z[t * p->n_z + k], square += z * z;
    }
    assert_true(unit < 1.5);
    for (size_t t = SETTLED; t < STEPS; t++) {
      double z = (double)e->z_mean[(t - e->first) * e->n_z + k] * product / square;
      double apart = z - (double)p->z[t * p->n_z + k];
      if (!(fabs(apart) < 1e-4)) fail_msg("state %zu, step %zu: %g apart", k, t, apart);
    }
  }
  dvbf_estimates_free(e);
}

static dvbf_settings *settings_for(const dvbf_data *data, const char *more) {
  dvbf_settings *settings = NULL;
  dvbf_error error;
  char copy[256], *rest = copy, *name;
  assert_int_equal(dvbf_settings_new(&settings, "train", &error), DVBF_OK);
  snprintf(copy, sizeof copy, "start linear search off updates 0 gain-updates 0 starts 1 threads 1 %s", more);
  while ((name = strtok_r(rest, " ", &rest)))
    if (dvbf_settings_set(settings, name, strtok_r(rest, " ", &rest), &error)) fail_msg("%s", error.message);
  if (dvbf_settings_choose(settings, data, NULL, NULL, &error)) fail_msg("%s", error.message);
  return settings;
}

static void check(size_t n_x, size_t n_u, bool feedthrough, const char *more) {
  dvbf_data data = {.train = simulate(n_x, n_u, feedthrough)};
  dvbf_settings *settings = settings_for(&data, more);
  dvbf_model *model = NULL, *linear = NULL;
  dvbf_error error;
  if (dvbf_train(&model, settings, &data, NULL, &error)) fail_msg("%s", error.message);
  assert_true(model->settings->feedthrough || !feedthrough); /* it may be worth it by chance too */
  assert_int_equal(dv_identify_model(&linear, settings, &data, NULL, NULL), DVBF_OK);
  prediction p = predict(model, &data.train);
  compare_forecasts(&p, linear, &data.train);
  compare_states(&p, linear, &data.train);
  free(p.x);
  free(p.z);
  dvbf_model_free(model);
  dvbf_model_free(linear);
  dvbf_settings_free(settings);
  dvbf_sequences_free(&data.train);
}

static void update_0_is_the_kalman_filter(void **state) {
  (void)state;
  check(1, 1, false, "");
  check(2, 1, true, "");
  if (PART > 1) return;
  check(2, 1, false, "systems 3 residual off");
  check(3, 1, false, "transition linear sigma dimension");
  check(2, 0, false, "likelihood student-t");
}

/* Small steps do not lose what it starts with. */
static void training_keeps_what_it_has(void **state) {
  (void)state;
  dvbf_data data = {.train = simulate(2, 1, false)};
  dvbf_model *models[2] = {NULL};
  double bounds[2];
  for (int i = 0; i < 2; i++) {
    dvbf_settings *settings = settings_for(&data, "hidden 8 systems 3");
    dvbf_error error;
    assert_int_equal(dvbf_settings_set(settings, "updates", i ? "60" : "0", NULL), DVBF_OK);
    if (dvbf_train(&models[i], settings, &data, NULL, &error)) fail_msg("%s", error.message);
    prediction p = predict(models[i], &data.train);
    double sum = 0;
    for (size_t t = SETTLED; t < STEPS; t++) sum += pow((double)(p.x[t * 2] - data.train.x[t * 2]), 2);
    bounds[i] = sum;
    free(p.x);
    free(p.z);
    dvbf_settings_free(settings);
    dvbf_model_free(models[i]);
  }
  assert_true(bounds[1] < 1.1 * bounds[0] && bounds[1] != bounds[0]);
  dvbf_sequences_free(&data.train);
}

static void refused(const dvbf_data *data, const char *more, const char *why) {
  dvbf_settings *settings = settings_for(data, more);
  dvbf_model *model = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_train(&model, settings, data, NULL, &error), DVBF_ARGUMENT);
  if (!strstr(error.message, why)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
}

static void contradictions_are_refused(void **state) {
  (void)state;
  dvbf_data data = {.train = simulate(2, 1, false)};
  refused(&data, "transition mlp", "transition of linear systems");
  refused(&data, "recognition-input frame", "recognition-input = innovation");
  refused(&data, "linear-paths off", "linear-paths = on");
  refused(&data, "affine off", "affine = on");
  refused(&data, "initial birnn", "initial = mlp");
  refused(&data, "mean sigmoid", "linear");
  dvbf_sequences_free(&data.train);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(update_0_is_the_kalman_filter),
      cmocka_unit_test(training_keeps_what_it_has),
      cmocka_unit_test(contradictions_are_refused),
  };
  return cmocka_run_group_tests_name("linear start", tests, NULL, NULL);
}
