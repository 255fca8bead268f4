/* Training on components of x is training on x: in double precision, on data that the components hold
 * exactly, bound and gradients are those of the folded model. */
#include "gradient.h"

#include "model/batches.h"
#include "pictures.h"

#include "train/pca_training.h"
#include "train/updater.h"

#include <math.h>

/* ---- Bound and gradients ---- */

typedef struct result {
  double terms[DV_MOST_TERMS];
  dvbf_real *gradient;
} result;

/* Of the first ROWS sequences, with the noise of the first update. */
static result run_model(dvbf_model *m, const dvbf_sequences *s, double log_jacobian) {
  enum { ROWS = 8 };
  dvbf_program program;
  dv_worker worker;
  dvbf_run *run = &worker.run;
  dvbf_error error;
  uint32_t index[ROWS];
  for (uint32_t i = 0; i < ROWS; i++) index[i] = i;
  dv_conditions conditions = dv_schedule_at(m->settings, 0, 1);
  dv_conditions_set(&conditions, DVBF_FILTER_DROPOUT, 0);
  dv_conditions_set(&conditions, DVBF_LOG_SIGMA_FLOOR, -3);
  dv_conditions_set(&conditions, DVBF_SEQUENCES, m->sequences);
  conditions.scale = 1;
  int flags = DV_BACKWARD | dv_gaps_of(s);
  assert_int_equal(dv_program_record(&program, m, PICTURE_STEPS, ROWS, PICTURE_STEPS, flags, &error),
                   DVBF_OK);
  assert_int_equal(dv_worker_init(&worker, m, &program, s, &error), DVBF_OK);
  result r = {.gradient = calloc(m->parameters.size, sizeof *r.gradient)};
  run->gradient = r.gradient;
  run->conditions = &conditions;
  run->sequence = index;
  dv_worker_load(&worker, s, index, ROWS, PICTURE_STEPS);
  dv_run_forward(run);
  dv_run_backward(run);
  memcpy(r.terms, run->terms, sizeof r.terms);
  r.terms[dv_graph_term(program.graph, DVBF_RECONSTRUCTION)] += ROWS * PICTURE_STEPS * log_jacobian;
  dv_worker_clear(&worker);
  dv_program_clear(&program);
  return r;
}

/* Coordinates are floats, and gradients are sums of thousands of terms that cancel. */
static void assert_close(double a, double b, double size, const char *what) {
  if (!(fabs(a - b) <= 1e-4 * (1 + size))) fail_msg("%s: %.12g instead of %.12g", what, a, b);
}

/* W = P^T W_c and V = V_c P: the gradient of W_c is P times that of W, that of V_c is that of V times P^T. */
static double expected_gradient(const dv_components *c, const dv_parameter *small, const dv_parameter *large,
                                const dvbf_real *g, int row, int column) {
  double sum = 0;
  if (small->rows == large->rows && small->cols == large->cols)
    return (double)g[(size_t)row * (size_t)large->cols + (size_t)column];
  for (int i = 0; i < c->n_x; i++)
    if (small->cols == large->cols)
      sum += (double)c->axes[row % c->count * c->n_x + i] *
             (double)g[(size_t)(row / c->count * c->n_x + i) * (size_t)large->cols + (size_t)column];
    else
      sum += (double)c->axes[column * c->n_x + i] * (double)g[(size_t)row * (size_t)large->cols + (size_t)i];
  return sum;
}

static void compare_gradients(const dv_projection *p, const dvbf_model *m, const result *small,
                              const result *large) {
  for (size_t k = 0; k < m->parameters.count; k++) {
    const dv_parameter *a = &m->parameters.list[k], *b = &p->whole->parameters.list[k];
    assert_string_equal(a->name, b->name);
    for (int r = 0; r < a->rows; r++)
      for (int i = 0; i < a->cols; i++) {
        double is = (double)small->gradient[a->offset + (size_t)(r * a->cols + i)];
        double should = expected_gradient(&p->components, a, b, large->gradient + b->offset, r, i);
        assert_close(is, should, fabs(should), a->name);
      }
  }
}

/* With a smooth activation: rounding may take a unit across the kink of another. */
static void check_exact(const char *text, bool gaps) {
  dvbf_data data = make_picture_data(0);
  char all[256];
  snprintf(all, sizeof all, "activation tanh %s", text);
  dvbf_settings *s = picture_settings(all);
  dvbf_model *whole = NULL, *model = NULL;
  dv_projection p;
  dvbf_error error;
  if (gaps) lose_frame(&data.train, 9, PICTURE_N_X);
  assert_int_equal(dv_model_new(&whole, s, NULL, &data.train, 5, &error), DVBF_OK);
  if (dv_projection_init(&p, whole, &data, &error)) fail_msg("%s", error.message);
  assert_int_equal(p.components.count, 16);
  assert_true(p.components.left_out < 1e-9);
  assert_int_equal(dv_projection_model(&model, &p, PICTURE_STEPS, 5, &error), DVBF_OK);
  assert_ptr_equal(dv_projection_fold(&p, model), whole);
  double log_jacobian = dv_projection_log_jacobian(&p);
  assert_true(log_jacobian == dv_model_log_jacobian(whole) && dv_model_log_jacobian(model) == 0);
  result small = run_model(model, &p.data.train, log_jacobian);
  result large = run_model(whole, &data.train, log_jacobian);
  for (int i = 0; i < DV_MOST_TERMS; i++)
    assert_close(small.terms[i], large.terms[i], fabs(large.terms[i]), "a term of the bound");
  compare_gradients(&p, model, &small, &large);
  free(small.gradient);
  free(large.gradient);
  dvbf_model_free(model);
  dv_projection_clear(&p);
  dvbf_settings_free(s);
  free_data(&data);
}

static void bound_and_gradients(void **state) {
  (void)state;
  check_exact("", false);
  check_exact("", true);
  check_exact("initial birnn initial-frames 0", false);
  check_exact("sigma fixed sigma-floor 0.4", false);
  check_exact("x-scaling standardise", false);
  check_exact("x-scaling none layers 2", false);
  check_exact("model dkf initial birnn", false);
  check_exact("transition mlp mask-input step", true);
  check_exact("linear-paths on recognition-input innovation", false);
  check_exact("linear-paths on recognition-input innovation feedthrough on", true);
}

/* Dropped dimensions of some length, with the floor of ln sigma below and above it. */
static void check_dropped(const dv_projection *p, const dvbf_model *m, double floor, const double *mask) {
  enum { ROWS = 3 };
  bench b;
  bench_begin(&b, ROWS);
  dv_conditions_set(&b.conditions, DVBF_LOG_SIGMA_FLOOR, floor);
  dvbf_program g = {.graph = b.graph, .steps = 2, .rows = ROWS};
  dvbf_value hidden = input(&b, 2, (int)m->settings->hidden);
  g.x = constant(&b, 2, m->n_x, NULL);
  g.mask = constant(&b, 2, 1, mask);
  g.ln_p = dvbf_slab(b.graph, 2, 1);
  dvbf_value inside = g.ln_p;
  m->density->record(&g, m, hidden, g.mask);
  dvbf_keep(b.graph, inside);
  dvbf_keep(b.graph, g.ln_p);
  project(&b, g.ln_p);
  assert_gradients(&b, "dropped dimensions");
  dv_run_forward(&b.run);
  double sigma = exp(fmax((double)*dvbf_at(&b.run, g.shape[0]), floor));
  double count = PICTURE_N_X - m->n_x, square = p->components.left_out / (sigma * sigma);
  for (int i = 0; i < 2 * ROWS; i++) {
    double more = mask[i] > 0 ? -0.5 * (square + count * log(2 * M_PI * sigma * sigma)) : 0;
    double found = (double)dvbf_at(&b.run, g.ln_p)[i];
    assert_true(fabs(found - (double)dvbf_at(&b.run, inside)[i] - more) < 1e-9);
  }
  bench_end(&b);
}

static void dropped_dimensions(void **state) {
  (void)state;
  static const double mask[] = {1, 0, 1, 1, 1, 0};
  dvbf_data data = make_picture_data(0);
  dvbf_settings *s = picture_settings("hidden 4");
  dvbf_model *whole = NULL, *model = NULL;
  dv_projection p;
  assert_int_equal(dv_model_new(&whole, s, NULL, &data.train, 5, NULL), DVBF_OK);
  assert_int_equal(dv_projection_init(&p, whole, &data, NULL), DVBF_OK);
  assert_int_equal(dv_projection_model(&model, &p, PICTURE_STEPS, 5, NULL), DVBF_OK);
  p.components.left_out = 2.5;
  check_dropped(&p, model, -3, mask);
  check_dropped(&p, model, 1, mask);
  dvbf_model_free(model);
  dv_projection_clear(&p);
  dvbf_settings_free(s);
  free_data(&data);
}

/* ---- Components ---- */

static void components(void **state) {
  (void)state;
  dvbf_data data = make_picture_data(1e-3f);
  dvbf_settings *s = picture_settings("");
  dvbf_model *m = NULL;
  dvbf_error error;
  dv_components c;
  assert_int_equal(dv_model_new(&m, s, NULL, &data.train, 5, &error), DVBF_OK);
  assert_int_equal(dv_components_find(&c, &data.train, m, 1e-3, 0, NULL, &error), DVBF_OK);
  assert_int_equal(c.count, 16);
  for (int i = 0; i < c.count; i++)
    for (int j = 0; j <= i; j++) {
      double dot = 0;
      for (int k = 0; k < PICTURE_N_X; k++)
        dot += (double)c.axes[i * PICTURE_N_X + k] * (double)c.axes[j * PICTURE_N_X + k];
      assert_true(fabs(dot - (i == j)) < 1e-12);
    }
  dvbf_data inside = {0};
  assert_int_equal(dv_components_project(&inside, &c, &data, m, &error), DVBF_OK);
  double left = 0;
  for (size_t f = 0; f < (size_t)PICTURE_COUNT * PICTURE_STEPS; f++) {
    for (size_t i = 0; i < PICTURE_N_X; i++) {
      double x = (double)((data.train.x[f * PICTURE_N_X + i] - m->x.shift[i]) * m->x.scale[i]);
      for (int k = 0; k < c.count; k++)
        x -= (double)inside.train.x[f * (size_t)c.count + (size_t)k] *
             (double)c.axes[k * PICTURE_N_X + (int)i];
      left += x * x;
    }
  }
  left /= PICTURE_COUNT * PICTURE_STEPS;
  assert_true(left > 1e-5); /* of the remainder, all but the share of 16 of 96 directions */
  assert_true(fabs(left - c.left_out) < 0.01 * left);
  assert_true(left < 1e-3 * m->x_spread);
  dvbf_sequences_free(&inside.train);
  dvbf_sequences_free(&inside.valid);
  dv_components_free(&c);
  /* Less than the remainder cannot be left out. */
  assert_int_equal(dv_components_find(&c, &data.train, m, 1e-9, 0, NULL, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "more than 48 of the 96 dimensions"));
  dvbf_model_free(m);
  dvbf_settings_free(s);
  free_data(&data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bound_and_gradients),
      cmocka_unit_test(dropped_dimensions),
      cmocka_unit_test(components),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
