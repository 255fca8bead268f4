/* Contraction in training, for every v that is drawn, and the certificate that a model does not expand. */
#include "files.h"
#include "small_model.h"

#include "evaluate/evaluate.h"
#include "math/algebra.h"

#include <cmocka.h>
#include <math.h>

/* ---- Contraction ---- */

/* The longest of the systems in v, as they are. */
static double longest(const dvbf_model *m, const dvbf_real *v) {
  dv_systems systems;
  double s[9], u[9], values[3], w[9], most = 0;
  assert_true(dv_model_systems(m, &systems));
  for (int i = 0; i < systems.count; i++) {
    dv_systems_read(&systems, i, v, s);
    dv_singular_values(s, 3, u, values, w);
    most = fmax(most, values[0]);
  }
  return most;
}

static void systems_contract_after_every_update(void **state) {
  (void)state;
  static const char *const variants[] = {"contraction=0.9", "contraction=1 universal=point",
                                         "contraction=0.7 residual=off transition=linear",
                                         "contraction=0.9 universal-noise=step"};
  static const double limits[] = {0.9, 1, 0.7, 0.9};
  for (size_t i = 0; i < 4; i++) {
    dvbf_real *results[2];
    for (unsigned threads = 1; threads <= 2; threads++) {
      fixture f;
      begin(&f, variants[i]);
      assert_true(longest(f.model, dv_model_systems_at(f.model)) >
                  limits[i]); /* or nothing would be tested */
      results[threads - 1] = trained(&f, threads == 1 ? 1 : 3, 30);
      double length = longest(f.model, dv_model_systems_at(f.model));
      if (!(length <= limits[i] && length > 0.9 * limits[i])) fail_msg("%s: %.9g", variants[i], length);
      if (threads == 2)
        assert_memory_equal(results[0], results[1], f.model->parameters.size * sizeof **results);
      end(&f);
    }
    free(results[0]);
    free(results[1]);
  }
}

/* Largest |z| of step 4000 over some sampled paths without controls and innovations that matter. */
static double after_long(const dvbf_model *m) {
  dvbf_settings *settings = NULL;
  dvbf_estimates *made = NULL;
  double most = 0;
  assert_int_equal(dvbf_settings_new(&settings, "sample", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "steps", "4000", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "controls", "zero", NULL), DVBF_OK);
  assert_int_equal(dvbf_estimate(&made, m, NULL, settings, NULL), DVBF_OK);
  for (size_t i = 0; i < made->count; i++)
    for (size_t k = 0; k < made->n_z; k++) {
      double z = (double)made->z[((i + 1) * made->steps - 1) * made->n_z + k];
      most = isfinite(z) ? fmax(most, fabs(z)) : INFINITY;
    }
  dvbf_estimates_free(made);
  dvbf_settings_free(settings);
  return most;
}

static dvbf_real *find(const dvbf_model *m, const char *name, size_t *size) {
  for (size_t i = 0; i < m->parameters.count; i++)
    if (!strcmp(m->parameters.list[i].name, name)) {
      *size = (size_t)m->parameters.list[i].cols;
      return m->parameters.values + m->parameters.list[i].offset;
    }
  return NULL;
}

static void widen(const dvbf_model *m, double sigma) {
  size_t n = 0;
  dvbf_real *log_sigma = find(m, "universal.log_sigma", &n);
  for (size_t k = 0; k < n; k++) log_sigma[k] = (dvbf_real)log(sigma);
}

/* q(v) is wide and its mean expands: still no sampled path does, as every v that is drawn is contracted. */
static void drawn_systems_contract(void **state) {
  (void)state;
  static const char *const variants[] = {"transition=linear", "", "universal-noise=step",
                                         "recognition-input=innovation"};
  for (size_t i = 0; i < 4; i++)
    for (int bound = 0; bound < 2; bound++) {
      char text[128];
      size_t n = 0;
      fixture f;
      snprintf(text, sizeof text, "%s contraction=%s", variants[i], bound ? "0.95" : "0");
      begin(&f, text);
      dvbf_real *mean = find(f.model, "universal.mean", &n);
      for (size_t k = 0; k < n; k++) mean[k] += (dvbf_real)(0.3 * sin((double)k));
      widen(f.model, 0.3);
      /* Innovations of length about 1 lead no further than 20 times that. */
      double far = after_long(f.model);
      assert_true(bound ? far < 100 : !(far < 1e4));
      end(&f);
    }
}

static void only_linear_systems_contract(void **state) {
  (void)state;
  static const char *const variants[] = {"transition=mlp", "model=dkf", "model=vae"};
  static const char *const names[] = {"mlp", "dkf", "vae"};
  fixture f;
  begin(&f, "");
  for (size_t i = 0; i < 3; i++) {
    char text[64], expected[96];
    dvbf_model *m = NULL;
    dvbf_error error;
    snprintf(text, sizeof text, "%s contraction=1", variants[i]);
    dvbf_settings *settings = make_settings(text);
    assert_int_equal(dv_model_new(&m, settings, NULL, &f.sequences, 6, &error), DVBF_ARGUMENT);
    snprintf(expected, sizeof expected, "contraction = 1: %s is not made of linear systems", names[i]);
    assert_non_null(strstr(error.message, expected));
    dvbf_settings_free(settings);
  }
  end(&f);
}

/* ---- The search for a norm ---- */

enum { N = 4, M = 6 };

/* Systems R C_i R^-1 with |C_i| = length, for some R that makes them long. */
static void make_systems(double *systems, double length, uint32_t key) {
  double r[N * N], inverse[N * N], c[N * N], u[N * N], s[N], v[N * N], half[N * N];
  int order[N];
  dv_random random = dv_random_at(3, DV_STREAM_SIMULATION, key, 0);
  for (int k = 0; k < N * N; k++) r[k] = dv_random_normal(&random) + (k % (N + 1) == 0 ? 2 : 0);
  memcpy(inverse, r, sizeof r);
  dv_invert(inverse, N, 1e-9, order);
  for (int i = 0; i < M; i++) {
    for (int k = 0; k < N * N; k++) c[k] = 0.3 * dv_random_normal(&random) + (k % (N + 1) == 0);
    dv_singular_values(c, N, u, s, v);
    for (int k = 0; k < N * N; k++) c[k] *= length / s[0];
    dv_product(half, r, c, N, N, N);
    dv_product(systems + i * N * N, half, inverse, N, N, N);
  }
}

static void a_common_norm_is_found(void **state) {
  (void)state;
  for (uint32_t key = 0; key < 20; key++) {
    double systems[M * N * N], t[N * N], inverse[N * N], plain, length;
    make_systems(systems, 0.95, key);
    assert_int_equal(dv_common_norm(&plain, t, inverse, systems, M, N, false, NULL), DVBF_OK);
    assert_int_equal(dv_common_norm(&length, t, inverse, systems, M, N, true, NULL), DVBF_OK);
    assert_true(plain > 1 && length < 0.96);
    /* It is one: |z S T| <= length |z T| for any mixture S and any z. */
    dv_random random = dv_random_at(4, DV_STREAM_SIMULATION, key, 0);
    for (int n = 0; n < 100; n++) {
      double z[N], next[N] = {0}, a[N], b[N], sum = 0, weight[M];
      for (int k = 0; k < N; k++) z[k] = dv_random_normal(&random);
      for (int i = 0; i < M; i++) sum += weight[i] = dv_random_uniform(&random);
      for (int i = 0; i < M; i++) {
        dv_product(a, z, systems + i * N * N, 1, N, N);
        for (int k = 0; k < N; k++) next[k] += weight[i] / sum * a[k];
      }
      dv_product(a, z, t, 1, N, N);
      dv_product(b, next, t, 1, N, N);
      assert_true(sqrt(dv_dot(b, b, N)) <= length * sqrt(dv_dot(a, a, N)) * (1 + 1e-9));
    }
  }
}

/* Two systems that shrink each alone, but not one after the other: there is no norm for both. */
static void no_norm_is_found_where_there_is_none(void **state) {
  (void)state;
  const double systems[] = {0.5, 2, 0, 0.5, 0.5, 0, 2, 0.5};
  double t[4], inverse[4], length;
  assert_int_equal(dv_common_norm(&length, t, inverse, systems, 1, 2, true, NULL), DVBF_OK);
  assert_true(length < 0.6);
  assert_int_equal(dv_common_norm(&length, t, inverse, systems, 2, 2, true, NULL), DVBF_OK);
  assert_true(length > 2); /* their product has the eigenvalue 4.48 */
  const double broken[] = {NAN, 0, 0, 1}, zero[4] = {0};
  assert_int_equal(dv_common_norm(&length, t, inverse, broken, 1, 2, true, NULL), DVBF_OK);
  assert_true(isinf(length));
  assert_int_equal(dv_common_norm(&length, t, inverse, zero, 1, 2, true, NULL), DVBF_OK);
  assert_true(length == 0);
}

/* ---- The certificate ---- */

static dvbf_stability *stability_of(const dvbf_model *m) {
  dvbf_stability *s = NULL;
  dvbf_error error;
  if (dvbf_stability_of(&s, m, &error)) fail_msg("%s", error.message);
  return s;
}

static void expect(const dvbf_stability *s, bool contracts, bool bounded, const char *sentence) {
  if (s->contracts != contracts || s->bounded != bounded || !strstr(s->sentence, sentence))
    fail_msg("contracts %d, bounded %d: %s", s->contracts, s->bounded, s->sentence);
}

static void certify(const char *settings, double move, bool contracts, bool bounded, const char *sentence) {
  fixture f;
  begin(&f, settings);
  size_t n = 0;
  dvbf_real *v = find(f.model, "universal.mean", &n), *range = dv_model_range(f.model);
  for (int k = 0; v && k < 9 * 4; k++) /* of the A_i of 4 systems; 1 system has fewer */
    if ((size_t)k < n) v[k] += (dvbf_real)(k / 4 % 4 == 0 ? move : 0);
  for (int k = 0; range && k < 3; k++) range[k] = (dvbf_real)(k == 1 ? -5 : 0), range[3 + k] = 2;
  if (strstr(sentence, "only with v at its mean")) widen(f.model, 0.2);
  dvbf_stability *s = stability_of(f.model);
  expect(s, contracts, bounded, sentence);
  dvbf_stability_free(s);
  end(&f);
}

static void certificates(void **state) {
  (void)state;
  certify("contraction=0.9", 0, true, true,
          "contracts: every mixture of its 4 systems shrinks differences of states by at least 10 % per step "
          "(longest in the Euclidean norm: 0.9");
  certify("contraction=1", 0, true, false, "does not expand: every mixture of its 4 systems");
  certify("contraction=1", 0, true, false, "its states are unbounded: state-limit is 0");
  certify("contraction=1 state-limit=2", 0, true, true, "bounded by state-limit: each |z_k| <= 9");
  certify("universal=point scale-transition=0.01", -0.5, true, true, "by at least");
  certify("scale-transition=0.1", 1, false, false,
          "no certificate of contraction (longest in the best quadratic norm found: ");
  certify("scale-transition=0.1", 1, false, false, " over 64 draws of v); its states are unbounded");
  certify("scale-transition=0.01", -0.3, false, false, "contracts only with v at its mean");
  certify("transition=mlp state-limit=2", 0, false, true,
          "not made of linear systems; bounded by state-limit");
  certify("transition=mlp", 0, false, false, "not made of linear systems; its states are unbounded");
  certify("model=dkf state-limit=2", 0, false, true, "bounded by state-limit: the mean of each |z_k| <= 9");
  certify("model=vae", 0, false, true, "nothing can grow: successive states are independent");
}

/* One system is as long as its spectral radius, in some norm, however it looks in others. */
static void one_system(void **state) {
  (void)state;
  fixture f;
  begin(&f, "transition=linear universal=point");
  dvbf_real *v = dv_model_systems_at(f.model);
  const double a[9] = {-0.2, 5, 0, 0, -0.3, 0, 1, 2, -0.1}; /* I + A has the eigenvalues 0.8, 0.7, 0.9 */
  for (int k = 0; k < 9; k++) v[k] = (dvbf_real)a[k];
  dvbf_stability *s = stability_of(f.model);
  expect(s, true, true,
         "contracts: its linear system shrinks differences of states by at least 10 % per step");
  assert_string_equal(s->members[0].measure, "spectral radius");
  assert_true(fabs(s->length - 0.9) < 1e-6 && s->members[0].draws == 0);
  dvbf_stability_free(s);
  end(&f);
}

/* The worst of the members counts, and each is told. */
static void committees(void **state) {
  (void)state;
  fixture f, g, h;
  begin(&f, "contraction=0.9");
  begin(&g, "contraction=0.8");
  assert_int_equal(dv_model_add_member(f.model, g.model, NULL), DVBF_OK);
  dvbf_stability *s = stability_of(f.model);
  expect(s, true, true, "contracts: each of its 2 members does, by at least 10 % per step");
  assert_int_equal(s->n_members, 2);
  assert_true(fabs(s->members[1].length - 0.8) < 1e-5 && s->members[1].draws == 64);
  dvbf_stability_free(s);
  begin(&h, "transition=mlp state-limit=2");
  assert_int_equal(dv_model_add_member(f.model, h.model, NULL), DVBF_OK);
  s = stability_of(f.model);
  expect(s, false, true, "no certificate of contraction for 1 of its 3 members; 3 of them bounded");
  assert_true(isnan(s->length));
  dvbf_stability_free(s);
  g.model = h.model = NULL; /* are parts now */
  end(&f);
  end(&g);
  end(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(systems_contract_after_every_update),
      cmocka_unit_test(drawn_systems_contract),
      cmocka_unit_test(only_linear_systems_contract),
      cmocka_unit_test(a_common_norm_is_found),
      cmocka_unit_test(no_norm_is_found_where_there_is_none),
      cmocka_unit_test(certificates),
      cmocka_unit_test(one_system),
      cmocka_unit_test(committees),
  };
  return cmocka_run_group_tests_name("stability", tests, make_folder, remove_folder);
}
