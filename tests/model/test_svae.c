/* A structured autoencoder whose decoder is linear and whose potentials are the exact ones is a Kalman
 * smoother: each path weighs the same, namely p(x), its bound is ln p(x), and its filter is the Kalman
 * filter. */
#include "evaluate/evaluate.h"
#include "math/algebra.h"
#include "math/kalman.h"
#include "ops/ops.h"
#include "small_model.h"

#include <math.h>

enum { N_Z = 2, FRAMES = STEPS };

/* Columns of H are orthogonal, so that what a frame says of z has a diagonal precision H'H / sigma^2. */
static const double h[N_X][N_Z] = {{1, 1}, {1, -1}, {0.5, 0.5}, {-0.5, 0.5}, {0, 0.2}, {0.3, 0}};
static const double shift_x[N_X] = {0.5, -0.2, 0, 0.1, 0.7, 0};
static const double a[N_Z][N_Z] = {{0.8, 0.3}, {-0.2, 0.9}}, b[N_Z][N_U] = {{0.5, 0}, {-0.3, 0.2}};
static const double noise[N_Z][N_Z] = {{0.4, 0}, {0.1, 0.3}}, spread[N_Z][N_Z] = {{0.9, 0}, {-0.2, 1.1}};
static const double shift_z[N_Z] = {0.1, -0.05}, start[N_Z] = {0.2, 0.3}, sigma = 0.4;

static dvbf_real *named(const dvbf_model *m, const char *name) {
  dvbf_real *values = dv_model_values(m, name);
  if (!values) fail_msg("no parameter %s", name);
  return values;
}

static void set_factor(dvbf_real *to, const double from[N_Z][N_Z]) {
  for (int i = 0; i < N_Z; i++)
    for (int j = 0; j <= i; j++) to[i * N_Z + j] = (dvbf_real)(i == j ? log(from[i][j]) : from[i][j]);
}

/* Precisions of the potentials. */
static double precision(int k) {
  double sum = 0;
  for (int i = 0; i < N_X; i++) sum += h[i][k] * h[i][k];
  return sum / (sigma * sigma);
}

static void set_exactly(dvbf_model *m) {
  memset(m->parameters.values, 0, m->parameters.size * sizeof *m->parameters.values);
  dvbf_real *head = named(m, "recognition.output.x"), *bias = named(m, "recognition.output.bias");
  for (int k = 0; k < N_Z; k++) {
    double d = precision(k) * sigma * sigma;
    for (int i = 0; i < N_X; i++) {
      named(m, "emission.mean.z")[k * N_X + i] = (dvbf_real)h[i][k];
      head[i * 2 * N_Z + k] = (dvbf_real)(h[i][k] / d);
      bias[k] -= (dvbf_real)(shift_x[i] * h[i][k] / d);
    }
    bias[N_Z + k] = (dvbf_real)(-0.5 * log(precision(k)));
    for (int j = 0; j < N_Z; j++) named(m, "transition.z")[j * N_Z + k] = (dvbf_real)a[k][j];
    for (int j = 0; j < N_U; j++) named(m, "transition.u")[j * N_Z + k] = (dvbf_real)b[k][j];
    named(m, "transition.bias")[k] = (dvbf_real)shift_z[k];
    named(m, "start.mean")[k] = (dvbf_real)start[k];
  }
  for (int i = 0; i < N_X; i++) named(m, "emission.mean.bias")[i] = (dvbf_real)shift_x[i];
  named(m, "emission.log_sigma")[0] = (dvbf_real)log(sigma);
  set_factor(named(m, "noise.factor"), noise);
  set_factor(named(m, "start.factor"), spread);
  m->log_sigma_floor = -10;
}

static dv_state_space exact_system(void) {
  dv_state_space s;
  assert_int_equal(dv_system_new(&s, N_Z, N_U, N_X, NULL), DVBF_OK);
  memcpy(s.a, a, sizeof a);
  memcpy(s.b, b, sizeof b);
  memcpy(s.h, h, sizeof h);
  memcpy(s.shift_z, shift_z, sizeof shift_z);
  memcpy(s.shift_x, shift_x, sizeof shift_x);
  memcpy(s.mean, start, sizeof start);
  for (int i = 0; i < N_X; i++) s.r[i * N_X + i] = sigma * sigma;
  dv_product_transposed(s.q, noise[0], noise[0], N_Z, N_Z, N_Z);
  dv_product_transposed(s.cov, spread[0], spread[0], N_Z, N_Z, N_Z);
  return s;
}

static void begin_exact(fixture *f) {
  begin(f, "model=svae latent=2 linear-paths=on x-scaling=none");
  set_exactly(f->model);
}

static void read_sequence(const fixture *f, size_t i, double *x, double *u) {
  for (size_t k = 0; k < STEPS * N_X; k++) x[k] = (double)f->sequences.x[i * STEPS * N_X + k];
  for (size_t k = 0; k < STEPS * N_U; k++) u[k] = (double)f->sequences.u[i * STEPS * N_U + k];
}

/* E ln p(x_t | z_t) under q(z_t). */
static double reconstruction(const double *mean, const double *cov, const double *x) {
  double sum = 0;
  for (int i = 0; i < N_X; i++) {
    double apart = x[i] - shift_x[i], square = sigma * sigma, spread_x = 0;
    for (int k = 0; k < N_Z; k++) {
      apart -= h[i][k] * mean[k];
      for (int j = 0; j < N_Z; j++) spread_x += h[i][k] * cov[k * N_Z + j] * h[i][j];
    }
    sum -= 0.5 * (log(2 * 3.14159265358979323846 * square) + (apart * apart + spread_x) / square);
  }
  return sum;
}

static void smooths_exactly(void **state) {
  (void)state;
  fixture f;
  dv_smoothed k;
  dv_likelihoods l;
  dv_threads *pool = new_pool(2);
  double x[STEPS * N_X], u[STEPS * N_U], z[N_Z], mean[N_Z], cov[N_Z * N_Z];
  begin_exact(&f);
  dv_state_space s = exact_system();
  assert_int_equal(dv_smoothed_init(&k, &s, STEPS, NULL), DVBF_OK);
  dv_paths *paths = infer(f.model, &f.sequences, 2, 0);
  assert_int_equal(dv_likelihoods_of(&l, f.model, &f.sequences, 200, true, 3, pool, NULL), DVBF_OK);
  for (size_t i = 0; i < 12; i++) {
    int steps = (int)f.sequences.length[i];
    double bound = 0;
    read_sequence(&f, i, x, u);
    assert_true(dv_smooth(&k, &s, x, u, steps));
    for (int t = 0; t < steps; t++) {
      const float *at = paths->z + (i * STEPS + (size_t)t) * paths->n_z;
      dv_chain_read(at, z, mean, cov, N_Z);
      for (int j = 0; j < N_Z; j++) assert_true(fabs(mean[j] - k.mean[t * N_Z + j]) < 1e-5);
      for (int j = 0; j < N_Z * N_Z; j++) assert_true(fabs(cov[j] - k.cov[t * N_Z * N_Z + j]) < 1e-6);
      bound += reconstruction(mean, cov, x + t * N_X) - paths->kl[i * STEPS + (size_t)t];
    }
    assert_true(fabs(bound - k.log_p) < 1e-4);
    assert_true(fabs(l.importance[i] - k.log_p) < 1e-4);
    assert_true(fabs(l.particle[i] - k.log_p) < 0.5);
  }
  dv_likelihoods_free(&l);
  dv_paths_free(paths);
  dv_smoothed_clear(&k);
  dv_system_clear(&s);
  dv_threads_free(pool);
  end(&f);
}

/* An online filter has the means and covariances of the Kalman filter after each frame, also where some are
 * missing. */
static void filters_exactly(void **state) {
  (void)state;
  fixture f;
  double x[STEPS * N_X], u[STEPS * N_U], z[N_Z], mean[N_Z], cov[N_Z * N_Z];
  begin_exact(&f);
  dv_state_space s = exact_system();
  double *memory = calloc(dv_kalman_size(N_Z, N_X), sizeof *memory);
  assert_non_null(memory);
  dv_kalman k = dv_kalman_begin(&s, memory);
  dvbf_filter *filter = NULL;
  dvbf_belief belief;
  size_t size;
  dvbf_error error;
  if (dvbf_filter_memsize(&size, f.model, 4, &error)) fail_msg("%s", error.message);
  size = (size + 63) / 64 * 64;
  void *room = aligned_alloc(64, size);
  assert_non_null(room);
  assert_int_equal(dvbf_filter_init(&filter, room, size, f.model, 4, 1, NULL), DVBF_OK);
  read_sequence(&f, 0, x, u);
  for (int t = 0; t < STEPS; t++) {
    bool missing = t == 3;
    if (t) dv_kalman_move(&k, u + (t - 1) * N_U);
    assert_true(dv_kalman_observe(&k, missing ? NULL : x + t * N_X, u + t * N_U));
    dvbf_filter_step(filter, missing ? NULL : f.sequences.x + t * N_X,
                     t ? f.sequences.u + (t - 1) * N_U : NULL, &belief);
    dv_chain_read(belief.mean, z, mean, cov, N_Z);
    for (int j = 0; j < N_Z; j++) assert_true(fabs(mean[j] - k.filtered[j]) < 1e-5);
    for (int j = 0; j < N_Z * N_Z; j++) assert_true(fabs(cov[j] - k.filtered_cov[j]) < 1e-5);
  }
  free(room);
  dv_system_clear(&s);
  free(memory);
  end(&f);
}

static void refuses_many_states(void **state) {
  (void)state;
  fixture f;
  dvbf_model *m = NULL;
  dvbf_error error;
  dvbf_settings *settings = make_settings("model=svae latent=65");
  begin(&f, "");
  assert_int_equal(dv_model_new(&m, settings, NULL, &f.sequences, 1, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "latent = 65: model = svae allows at most 64"));
  dvbf_settings_free(settings);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(smooths_exactly),
      cmocka_unit_test(filters_exactly),
      cmocka_unit_test(refuses_many_states),
  };
  return cmocka_run_group_tests_name("structured autoencoder", tests, NULL, NULL);
}
