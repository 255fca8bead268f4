/* The derivatives of z' = f(z, u) and x = h(z) against differences of the two functions themselves. */
#include "small_model.h"

#include "math/algebra.h"

#include <math.h>

/* First values hold many zeros. */
static void stir(dvbf_model *m) {
  dv_random random = dv_random_at(23, DV_STREAM_SIMULATION, 0, 0);
  for (size_t i = 0; i < m->parameters.size; i++)
    m->parameters.values[i] += (dvbf_real)(0.2 * dv_random_normal(&random));
  dvbf_real *range = dv_model_range(m); /* so narrow that every state is beyond it */
  for (int k = 0; range && k < m->n_z; k++) range[k] = 0, range[m->n_z + k] = (dvbf_real)0.2;
}

enum { MOST = 128 };

typedef struct point {
  float z[3], u[N_U];
} point;

/* Largest difference between column k of a Jacobian [rows][columns] and (above - below) / (2 step), over the
 * size of the Jacobian. */
static double column_error(const float *jacobian, size_t rows, size_t columns, size_t k, const float *above,
                           const float *below, double step) {
  double worst = 0, size = 1e-3;
  for (size_t i = 0; i < rows * columns; i++) size = fmax(size, fabs((double)jacobian[i]));
  for (size_t i = 0; i < rows; i++) {
    double slope = ((double)above[i] - (double)below[i]) / (2 * step);
    worst = fmax(worst, fabs((double)jacobian[i * columns + k] - slope) / size);
  }
  return worst;
}

/* Moves entry k of z or u both ways. */
static double error_of(dvbf_jacobian *l, point at, size_t k, bool control) {
  const double step = 4e-3; /* results are floats */
  float next[2][3], x[2][MOST], a[9], b[3 * N_U], h[MOST * 3], d[MOST * N_U];
  dvbf_jacobians j;
  dvbf_jacobian_at(l, at.z, at.u, &j);
  assert_true(j.n_x <= MOST && j.n_z == 3 && j.n_u == N_U);
  memcpy(a, j.a, sizeof a);
  memcpy(b, j.b, sizeof b);
  memcpy(h, j.h, j.n_x * 3 * sizeof *h);
  memcpy(d, j.d, j.n_x * N_U * sizeof *d);
  for (int side = 0; side < 2; side++) {
    point moved = at;
    float *entry = control ? &moved.u[k] : &moved.z[k];
    *entry += (float)(side ? -step : step);
    dvbf_jacobian_at(l, moved.z, moved.u, &j);
    memcpy(next[side], j.next, sizeof next[side]);
    memcpy(x[side], j.x, j.n_x * sizeof **x);
  }
  if (control)
    return fmax(column_error(b, 3, N_U, k, next[0], next[1], step),
                column_error(d, j.n_x, N_U, k, x[0], x[1], step));
  return fmax(column_error(a, 3, 3, k, next[0], next[1], step),
              column_error(h, j.n_x, 3, k, x[0], x[1], step));
}

static void derivatives_are_differences(void **state) {
  (void)state;
  static const char *const variants[] = {"activation=tanh",
                                         "activation=tanh state-limit=2",
                                         "activation=tanh state-limit=2 transition=mlp",
                                         "activation=tanh state-limit=2 model=dkf",
                                         "activation=tanh transition=linear residual=off",
                                         "activation=tanh contraction=0.8",
                                         "activation=tanh transition=mlp affine=on",
                                         "activation=tanh model=dkf layers=2",
                                         "activation=tanh model=vrnn latent=1 units=2",
                                         "activation=tanh model=storn latent=1 units=1",
                                         "activation=tanh model=e2c state-limit=2",
                                         "activation=tanh model=svae latent=1",
                                         "activation=tanh linear-paths=on recognition-input=innovation",
                                         "activation=tanh feedthrough=on u-scaling=standardise",
                                         "activation=tanh likelihood=bernoulli u-scaling=standardise",
                                         "activation=tanh likelihood=patterns patterns=3",
                                         "activation=sigmoid x-scaling=standardise sigma=state layers=2"};
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    fixture f;
    dvbf_jacobian *l = NULL;
    dvbf_error error;
    begin(&f, variants[i]);
    stir(f.model);
    if (dvbf_jacobian_new(&l, f.model, &error)) fail_msg("%s", error.message);
    point at = {{0.3f, -0.7f, 0.5f}, {0.4f, -0.2f}};
    for (size_t k = 0; k < 3; k++) assert_true(error_of(l, at, k, false) < 1e-3);
    for (size_t k = 0; k < N_U; k++) assert_true(error_of(l, at, k, true) < 1e-3);
    dvbf_jacobian_free(l);
    end(&f);
  }
}

/* x of more values than one run has rows. */
static void many_columns(void **state) {
  (void)state;
  enum { WIDE = 100 };
  dvbf_error error;
  dvbf_settings *settings = make_settings("activation=tanh");
  dvbf_sequences s = {.count = 4, .steps = 5, .n_x = WIDE, .n_u = N_U};
  dvbf_model *m = NULL;
  dvbf_jacobian *l = NULL;
  assert_int_equal(dv_sequences_allocate(&s, false, &error), DVBF_OK);
  for (size_t i = 0; i < s.count * s.steps * WIDE; i++) s.x[i] = (float)(i % 7);
  if (dv_model_new(&m, settings, NULL, &s, 1, &error)) fail_msg("%s", error.message);
  stir(m);
  if (dvbf_jacobian_new(&l, m, &error)) fail_msg("%s", error.message);
  for (size_t k = 0; k < 3; k++) assert_true(error_of(l, (point){{0.1f, 0.2f, -0.6f}, {0}}, k, false) < 1e-3);
  dvbf_jacobian_free(l);
  dvbf_model_free(m);
  dvbf_sequences_free(&s);
  dvbf_settings_free(settings);
}

/* One linear system: A and B are the matrices themselves, whatever z is. */
static void a_linear_system_is_its_own_derivative(void **state) {
  (void)state;
  fixture f;
  dvbf_jacobian *l = NULL;
  dvbf_jacobians j;
  begin(&f, "transition=linear residual=on");
  stir(f.model);
  assert_int_equal(dvbf_jacobian_new(&l, f.model, NULL), DVBF_OK);
  const dv_parameters *p = &f.model->parameters;
  const dvbf_real *v = NULL;
  for (size_t i = 0; i < p->count; i++)
    if (!strcmp(p->list[i].name, "universal.mean")) v = p->values + p->list[i].offset;
  assert_non_null(v);
  dvbf_jacobian_at(l, (float[]){3, 1, -2}, (float[]){0.5f, 7}, &j);
  for (size_t i = 0; i < 3; i++) /* v is [from][to] */
    for (size_t k = 0; k < 3 + N_U; k++) {
      double entry = (double)v[k * 3 + i] + (k == i),
             found = (double)(k < 3 ? j.a[i * 3 + k] : j.b[i * N_U + k - 3]);
      assert_true(fabs(entry - found) < 1e-6);
    }
  dvbf_jacobian_free(l);
  end(&f);
}

/* A contracted one is the contracted matrix, whose length is the limit. */
static void a_contracted_system_is_its_own_derivative(void **state) {
  (void)state;
  fixture f;
  dvbf_jacobian *l = NULL;
  dvbf_jacobians j;
  double a[9], u[9], s[3], v[9];
  begin(&f, "transition=linear contraction=0.6");
  stir(f.model);
  assert_int_equal(dvbf_jacobian_new(&l, f.model, NULL), DVBF_OK);
  dvbf_jacobian_at(l, (float[]){3, 1, -2}, (float[]){0.5f, 7}, &j);
  for (int i = 0; i < 9; i++) a[i] = (double)j.a[i];
  dv_singular_values(a, 3, u, s, v);
  assert_true(fabs(s[0] - 0.6) < 1e-6); /* a is rounded to float */
  dvbf_jacobian_free(l);
  end(&f);
}

static void frames_alone_have_none(void **state) {
  (void)state;
  fixture f;
  dvbf_jacobian *l = NULL;
  dvbf_error error;
  begin(&f, "model=vae");
  assert_int_equal(dvbf_jacobian_new(&l, f.model, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "vae has no transition"));
  assert_null(l);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(derivatives_are_differences), cmocka_unit_test(many_columns),
      cmocka_unit_test(a_linear_system_is_its_own_derivative),
      cmocka_unit_test(a_contracted_system_is_its_own_derivative), cmocka_unit_test(frames_alone_have_none)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
