/* Models whose x is their state (start = state): what they are before the first update, what training leaves
 * as it is, and what is refused. */
#include "math/least_squares.h"
#include "math/random.h"
#include "model/model.h"
#include "train/start.h"

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

enum { COUNT = 6, STEPS = 20, N = 2 };
static const double a[N][N] = {{0.9, 0.2}, {-0.3, 0.8}}, b[N] = {0.5, -0.2}, c[N] = {0.1, 0};

/* x' = A x + B u + c, exactly. */
static dvbf_sequences make_sequences(uint32_t number) {
  dvbf_sequences s = {.count = COUNT, .steps = STEPS, .n_x = N, .n_u = 1};
  s.x = calloc(COUNT * STEPS * N, sizeof *s.x);
  s.u = calloc(COUNT * STEPS, sizeof *s.u);
  dv_random random = dv_random_at(3, DV_STREAM_SIMULATION, number, 0);
  for (size_t f = 0; f < COUNT * STEPS; f++) {
    float *x = s.x + f * N;
    s.u[f] = (float)dv_random_normal(&random);
    for (int i = 0; i < N; i++) {
      const float *before = x - N;
      x[i] = (float)(f % STEPS == 0 ? dv_random_normal(&random)
                                    : a[i][0] * (double)before[0] + a[i][1] * (double)before[1] +
                                          b[i] * (double)s.u[f - 1] + c[i]);
    }
  }
  return s;
}

static dvbf_settings *settings_of(const char *text) {
  char copy[600], *rest = copy;
  dvbf_settings *s = NULL;
  snprintf(copy, sizeof copy,
           "start state transition mlp transition-hidden 8 hidden 6 latent 3 universal point "
           "linear-paths all initial-frames 1 scale-transition 0 filter-dropout 1 filter-dropout-end 1 "
           "dropped zero updates 20 validate-every 10 starts 1 batch-size 6 shard-size 2 seed 4 threads 1 %s",
           text);
  assert_int_equal(dvbf_settings_new(&s, "train", NULL), DVBF_OK);
  for (char *name; (name = strtok_r(rest, " ", &rest));)
    assert_int_equal(dvbf_settings_set(s, name, strtok_r(rest, " ", &rest), NULL), DVBF_OK);
  return s;
}

static void free_data(dvbf_data *data) {
  dvbf_sequences_free(&data->train);
  dvbf_sequences_free(&data->valid);
}

/* A linear system is known before the first update, whatever the scaling, residual or not. */
static void begins_with_least_squares(void **state) {
  (void)state;
  static const char *const how[] = {"", "x-scaling standardise u-scaling standardise", "residual off"};
  for (int k = 0; k < 3; k++) {
    dvbf_data data = {.train = make_sequences(0)};
    dvbf_settings *s = settings_of(how[k]);
    dvbf_model *m = NULL;
    dvbf_jacobian *linear = NULL;
    dvbf_jacobians at;
    assert_int_equal(dv_model_new(&m, s, NULL, &data.train, 4, NULL), DVBF_OK);
    assert_int_equal(dv_start_state(m, &data.train, NULL), DVBF_OK);
    assert_int_equal(dvbf_jacobian_new(&linear, m, NULL), DVBF_OK);
    for (size_t f = 0; f + 1 < STEPS; f++) {
      float z[3] = {0}, u = data.train.u[f];
      for (int i = 0; i < N; i++) z[i] = (data.train.x[f * N + (size_t)i] - m->x.shift[i]) * m->x.scale[i];
      dvbf_jacobian_at(linear, z, &u, &at);
      for (int i = 0; i < N; i++) {
        double next = (double)(at.next[i] / m->x.scale[i] + m->x.shift[i]);
        assert_true(fabs(next - (double)data.train.x[(f + 1) * N + (size_t)i]) < 1e-3);
        assert_true(fabs((double)(at.x[i] - data.train.x[f * N + (size_t)i])) < 1e-4);
      }
      assert_true(fabsf(at.next[2]) < 1e-6F);
    }
    dvbf_jacobian_free(linear);
    dvbf_model_free(m);
    dvbf_settings_free(s);
    free_data(&data);
  }
}

/* Training changes the motion, and nothing by which z is x. */
static void motion_alone(void **state) {
  (void)state;
  dvbf_data data = {.train = make_sequences(0), .valid = make_sequences(1)};
  dvbf_settings *s = settings_of("learning-rate 0.01");
  dvbf_model *m = NULL, *first = NULL;
  dvbf_error error = {0};
  if (dvbf_train(&m, s, &data, NULL, &error)) fail_msg("%s", error.message);
  assert_int_equal(dv_model_new(&first, s, NULL, &data.train, 4, NULL), DVBF_OK);
  assert_int_equal(dv_start_state(first, &data.train, NULL), DVBF_OK);
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *p = &m->parameters.list[i];
    bool same = !memcmp(m->parameters.values + p->offset, first->parameters.values + p->offset,
                        (size_t)p->rows * (size_t)p->cols * sizeof *m->parameters.values);
    if (!strcmp(p->name, "universal.mean")) assert_false(same);
    if (!strncmp(p->name, "emission.mean", 13) || !strncmp(p->name, "initial", 7)) assert_true(same);
  }
  dvbf_model_free(first);
  dvbf_model_free(m);
  dvbf_settings_free(s);
  free_data(&data);
}

static void refusals(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"linear-paths on", "linear-paths = all"},
                                         {"latent 1", "latent is smaller"},
                                         {"emission-sees 1", "emission-sees = 0"},
                                         {"network conv image-height 1 image-width 2", "network = dense"},
                                         {"likelihood poisson", "likelihood = gaussian"}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    dvbf_data data = {.train = make_sequences(0)};
    for (size_t i = 0; i < COUNT * STEPS * N; i++) data.train.x[i] = rintf(fabsf(data.train.x[i]) * 5);
    dvbf_settings *s = settings_of(cases[k][0]);
    dvbf_model *m = NULL;
    dvbf_error error = {0};
    assert_int_equal(dvbf_train(&m, s, &data, NULL, &error), DVBF_ARGUMENT);
    if (!strstr(error.message, cases[k][1])) fail_msg("%s: %s", cases[k][0], error.message);
    dvbf_settings_free(s);
    free_data(&data);
  }
}

/* Against normal equations that are solved by hand: y = 1 + 2 x on three points, with a ridge. */
static void ridge(void **state) {
  (void)state;
  dv_ridge g = {0};
  assert_int_equal(dv_ridge_init(&g, 2, 1, NULL), DVBF_OK);
  for (int x = -1; x < 2; x++) {
    g.row[1] = x;
    g.target[0] = 1 + 2 * x;
    dv_ridge_add(&g);
  }
  dv_ridge_solve(&g, 0.5); /* 2 + 0.5 (3 + 1) = 4 in the place of 2 */
  assert_true(fabs(g.coefficients[0] - 1) < 1e-8 && fabs(g.coefficients[1] - 1) < 1e-12);
  assert_true(fabs(dv_ridge_guess(&g, 0) - 2) < 1e-8);
  dv_ridge_clear(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(begins_with_least_squares),
      cmocka_unit_test(motion_alone),
      cmocka_unit_test(refusals),
      cmocka_unit_test(ridge),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
