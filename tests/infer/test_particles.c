/* Particle filter, smoother and importance weighting against exact recursions, on models whose networks are
 * set by hand to a linear-Gaussian system: relu(a) - relu(-a) = a makes a layer linear. Their recognition is
 * good but not exact, so that weights matter. */
#include "data/dataset.h"
#include "evaluate/evaluate.h"
#include "kalman.h"
#include "math/random.h"
#include "model/batches.h"
#include "model/model.h"

#include <dvbf/dvbf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COUNT = 12 };

static const kalman_system dense = {.a = {{0.83, -0.45}, {0.45, 0.83}},
                                    .b = {{0.2}, {0.5}},
                                    .c = {{0.4, 0}, {0.1, 0.5}},
                                    .h = {{1.5, 0}, {0, 1.5}, {1, 1}, {0.5, -1}},
                                    .sigma = 0.6};
/* A dkf has noise on each state alone. */
static const kalman_system diagonal = {.a = {{0.83, -0.45}, {0.45, 0.83}},
                                       .b = {{0.2}, {0.5}},
                                       .c = {{0.7, 0}, {0, 0.6}},
                                       .h = {{1.5, 0}, {0, 1.5}, {1, 1}, {0.5, -1}},
                                       .sigma = 0.3};

/* ---- Data ---- */

static dvbf_sequences make_data(const kalman_system *system) {
  dvbf_sequences s = {.count = COUNT, .steps = K_STEPS, .n_x = K_X, .n_u = K_U};
  assert_int_equal(dv_sequences_allocate(&s, false, NULL), DVBF_OK);
  for (size_t i = 0; i < COUNT; i++) {
    dv_random random = dv_random_at(9, DV_STREAM_SIMULATION, 0, (uint32_t)i);
    double u[K_STEPS * K_U], x[K_ALL], noise[K_NOISES];
    for (int k = 0; k < K_STEPS * K_U; k++) u[k] = dv_random_normal(&random);
    for (int k = 0; k < K_NOISES; k++) noise[k] = dv_random_normal(&random);
    kalman_simulate(system, u, noise, x);
    for (size_t k = 0; k < K_ALL; k++) s.x[i * K_ALL + k] = (float)x[k];
    for (size_t k = 0; k < K_STEPS * K_U; k++) s.u[i * K_STEPS * K_U + k] = (float)u[k];
  }
  return s;
}

/* Whole frames and single values are missing. */
static void make_gaps(dvbf_sequences *s) {
  s->gaps = true;
  for (size_t i = 0; i < COUNT; i++)
    for (size_t t = 0; t < K_STEPS; t++)
      for (size_t k = 0; k < K_X; k++)
        if ((i + t) % 4 == 2 || (t % 5 == 3 && k == i % K_X)) s->x[(i * K_STEPS + t) * K_X + k] = NAN;
}

/* The exact beliefs about sequence i and its ln p. */
static double exact(const kalman_system *system, const dvbf_sequences *s, size_t i, bool smooth,
                    kalman_belief b[K_STEPS]) {
  double u[K_STEPS * K_U], x[K_ALL];
  for (size_t k = 0; k < K_ALL; k++) x[k] = (double)s->x[i * K_ALL + k];
  for (size_t k = 0; k < K_STEPS * K_U; k++) u[k] = (double)s->u[i * K_STEPS * K_U + k];
  double log_p = kalman_filter(system, u, x, b);
  if (smooth) kalman_smooth(system, u, b);
  return log_p;
}

/* ---- Models ---- */

/* Entry [row][col] of a parameter. */
static dvbf_real *at(dvbf_model *m, const char *name, int row, int col) {
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *p = &m->parameters.list[i];
    if (strcmp(p->name, name) != 0) continue;
    assert_true(row < p->rows && col < p->cols);
    return m->parameters.values + p->offset + (size_t)row * (size_t)p->cols + (size_t)col;
  }
  fail_msg("there is no parameter %s", name);
  return NULL;
}

static void set(dvbf_model *m, const char *layer, const char *name, int row, int col, double value) {
  char full[64];
  snprintf(full, sizeof full, "%s.%s", layer, name);
  *at(m, full, row, col) = (dvbf_real)value;
}

/* Hidden units 2k and 2k + 1 are relu(a_k) and relu(-a_k); an input's weight in a_k. */
static void set_inner(dvbf_model *m, const char *layer, const char *input, int row, int k, double value) {
  set(m, layer, input, row, 2 * k, value);
  set(m, layer, input, row, 2 * k + 1, -value);
}

/* Weight of a_k in output j. */
static void set_outer(dvbf_model *m, const char *layer, const char *input, int k, int j, double value) {
  set(m, layer, input, 2 * k, j, value);
  set(m, layer, input, 2 * k + 1, j, -value);
}

/* The posterior N(gain (x - ...), cov) of z ~ N(0, c c^T) or, with c = I, of z_1: cov = (I + c^T H^T H c /
 * sigma^2)^-1, gain = cov c^T H^T / sigma^2. */
static void posterior(const kalman_system *s, const double c[K_Z][K_Z], double gain[K_Z][K_X],
                      double cov[K_Z][K_Z]) {
  double hc[K_X][K_Z] = {{0}}, p[K_Z][K_Z] = {{1, 0}, {0, 1}}, variance = s->sigma * s->sigma;
  for (int i = 0; i < K_X; i++)
    for (int j = 0; j < K_Z; j++)
      for (int k = 0; k < K_Z; k++) hc[i][j] += s->h[i][k] * c[k][j];
  for (int i = 0; i < K_Z; i++)
    for (int j = 0; j < K_Z; j++)
      for (int k = 0; k < K_X; k++) p[i][j] += hc[k][i] * hc[k][j] / variance;
  double det = p[0][0] * p[1][1] - p[0][1] * p[1][0];
  cov[0][0] = p[1][1] / det, cov[1][1] = p[0][0] / det, cov[0][1] = cov[1][0] = -p[0][1] / det;
  for (int i = 0; i < K_Z; i++)
    for (int j = 0; j < K_X; j++) {
      gain[i][j] = 0;
      for (int k = 0; k < K_Z; k++) gain[i][j] += cov[i][k] * hc[j][k] / variance;
    }
}

/* Head of a q whose mean is a little off and which is too wide. */
enum { GAIN_PERCENT = 90, WIDTH_PERCENT = 130 };
static double log_width(double variance) {
  return log(WIDTH_PERCENT / 100.0 * sqrt(variance));
}

/* a_k += weight (x - shift) in units of the data, x_t being rows first .. first + K_X - 1 of the input. */
static void set_seen(dvbf_model *m, const char *layer, int first, int k, const double weight[K_X]) {
  double constant = 0;
  for (int j = 0; j < K_X; j++) {
    double scale = (double)m->x.scale[j];
    set_inner(m, layer, "x", first + j, k, weight[j] / scale);
    constant += weight[j] * (double)m->x.shift[j];
  }
  set(m, layer, "bias", 0, 2 * k, constant);
  set(m, layer, "bias", 0, 2 * k + 1, -constant);
}

static void set_emission(dvbf_model *m, const kalman_system *s) {
  for (int k = 0; k < K_Z; k++) {
    set_inner(m, "emission.hidden", "z", k, k, 1);
    for (int j = 0; j < K_X; j++)
      set_outer(m, "emission.mean", "h", k, j, s->h[j][k] * (double)m->x.scale[j]);
  }
  for (int j = 0; j < K_X; j++) {
    set(m, "emission.mean", "bias", 0, j, -(double)m->x.shift[j] * (double)m->x.scale[j]);
    *at(m, "emission.log_sigma", 0, j) = (dvbf_real)log(s->sigma * (double)m->x.scale[j]);
  }
}

static dvbf_model *make_model(const dvbf_sequences *data, const char *kind) {
  const char *const values[][2] = {
      {"model", kind},        {"transition", "linear"},  {"universal", "point"}, {"latent", "2"},
      {"hidden", "8"},        {"initial-frames", "3"},   {"residual", "off"},    {"x-scaling", "standardise"},
      {"sigma", "dimension"}, {"sigma-floor", "0.0001"}, {"missing", "nan"}};
  dvbf_settings *settings = NULL;
  dvbf_model *m = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    assert_int_equal(dvbf_settings_set(settings, values[i][0], values[i][1], NULL), DVBF_OK);
  if (dv_model_new(&m, settings, NULL, data, 3, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  memset(m->parameters.values, 0, m->parameters.size * sizeof *m->parameters.values);
  return m;
}

static dvbf_model *make_dvbf(const dvbf_sequences *data, const kalman_system *s) {
  static const double identity[K_Z][K_Z] = {{1, 0}, {0, 1}};
  dvbf_model *m = make_model(data, "dvbf");
  double gain[K_Z][K_X], first[K_Z][K_X], cov[K_Z][K_Z], first_cov[K_Z][K_Z];
  posterior(s, s->c, gain, cov);
  posterior(s, identity, first, first_cov);
  set_emission(m, s);
  for (int k = 0; k < K_Z; k++) {
    set_inner(m, "initial-transition.hidden", "w", k, k, 1);
    set_outer(m, "initial-transition.output", "h", k, k, 1);
    set_seen(m, "initial.hidden", 0, k, first[k]);
    set_outer(m, "initial.output", "h", k, k, GAIN_PERCENT / 100.0);
    set(m, "initial.output", "bias", 0, K_Z + k, log_width(first_cov[k][k]));
    set_seen(m, "recognition.hidden", 0, k, gain[k]);
    set_outer(m, "recognition.output", "h", k, k, GAIN_PERCENT / 100.0);
    set(m, "recognition.output", "bias", 0, K_Z + k, log_width(cov[k][k]));
    for (int j = 0; j < K_X; j++) /* less gain H (A z + B u) */
      for (int i = 0; i < K_Z; i++) {
        double weight = gain[k][j] * s->h[j][i];
        for (int l = 0; l < 2; l++) {
          double sign = l ? 1 : -1;
          for (int z = 0; z < K_Z; z++)
            *at(m, "recognition.hidden.z", z, 2 * k + l) += (dvbf_real)(sign * weight * s->a[i][z]);
          *at(m, "recognition.hidden.u", 0, 2 * k + l) += (dvbf_real)(sign * weight * s->b[i][0]);
        }
      }
    for (int j = 0; j < K_Z; j++) { /* rows of z, u, w */
      *at(m, "universal.mean", 0, k * K_Z + j) = (dvbf_real)s->a[j][k];
      *at(m, "universal.mean", 0, (K_Z + K_U + k) * K_Z + j) = (dvbf_real)s->c[j][k];
    }
    *at(m, "universal.mean", 0, K_Z * K_Z + k) = (dvbf_real)s->b[k][0];
  }
  return m;
}

/* q(z_t) sees x_t alone, as if z_t were N(0, I) before. */
static dvbf_model *make_dkf(const dvbf_sequences *data, const kalman_system *s) {
  static const double identity[K_Z][K_Z] = {{1, 0}, {0, 1}};
  dvbf_model *m = make_model(data, "dkf");
  double gain[K_Z][K_X], cov[K_Z][K_Z];
  posterior(s, identity, gain, cov);
  set_emission(m, s);
  for (int k = 0; k < K_Z; k++) {
    set_seen(m, "recognition.forward", 0, k, gain[k]);
    set_outer(m, "recognition.output", "forward", k, k, 1);
    set(m, "recognition.output", "bias", 0, K_Z + k, log_width(cov[k][k]));
    for (int j = 0; j < K_Z; j++) set_inner(m, "transition.hidden", "z", j, k, s->a[k][j]);
    set_inner(m, "transition.hidden", "u", 0, k, s->b[k][0]);
    set_outer(m, "transition.output", "h", k, k, 1);
    set(m, "transition.output", "bias", 0, K_Z + k, log(s->c[k][k]));
  }
  return m;
}

/* ---- Beliefs ---- */

static dvbf_estimates *estimate(const dvbf_model *m, const dvbf_sequences *s, const char *table,
                                const char *particles, const char *samples) {
  dvbf_settings *settings = NULL;
  dvbf_estimates *e = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_settings_new(&settings, table, NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "particles", particles, NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "samples", samples, NULL), DVBF_OK);
  if (dvbf_estimate(&e, m, s, settings, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return e;
}

/* Means within `tolerance` of an exact standard deviation, root mean square over all, and deviations within
 * that share. */
static void compare(const dvbf_estimates *e, const kalman_system *system, const dvbf_sequences *s,
                    bool smooth, double tolerance, const char *what) {
  double apart = 0, spread = 0;
  for (size_t i = 0; i < COUNT; i++) {
    kalman_belief b[K_STEPS];
    exact(system, s, i, smooth, b);
    for (size_t t = 0; t < K_STEPS; t++)
      for (size_t k = 0; k < K_Z; k++) {
        size_t here = (i * K_STEPS + t) * K_Z + k;
        double deviation = sqrt(b[t].cov[k][k]);
        double off = ((double)e->z_mean[here] - b[t].mean[k]) / deviation;
        double wide = (double)e->z_std[here] / deviation - 1;
        apart += off * off / (COUNT * K_STEPS * K_Z);
        spread += wide * wide / (COUNT * K_STEPS * K_Z);
      }
  }
  print_message("%s: means are off by %.3f deviations, deviations by %.3f\n", what, sqrt(apart),
                sqrt(spread));
  if (!(sqrt(apart) < tolerance) || !(sqrt(spread) < tolerance)) fail_msg("%s is not exact", what);
}

/* Paths are joint samples: the covariance of neighbours is that of the gain and the next belief. */
static void expect_joint_paths(const dvbf_estimates *e, const kalman_system *system,
                               const dvbf_sequences *s) {
  double worst = 0;
  for (size_t i = 0; i < COUNT; i++)
    for (int t = 0; t + 1 < K_STEPS; t++) {
      kalman_belief filtered[K_STEPS], smoothed[K_STEPS], next;
      double u[K_U] = {(double)s->u[i * K_STEPS + (size_t)t]}, gain[K_Z][K_Z], found = 0, expected = 0;
      exact(system, s, i, false, filtered);
      exact(system, s, i, true, smoothed);
      next = filtered[t];
      kalman_predict(system, &next, u);
      kalman_gain(system, &filtered[t], &next, gain);
      for (int k = 0; k < K_Z; k++) expected += gain[0][k] * smoothed[t + 1].cov[k][1];
      for (size_t r = 0; r < e->samples; r++) {
        const float *z = e->z + ((i * e->samples + r) * K_STEPS + (size_t)t) * K_Z;
        found += ((double)z[0] - smoothed[t].mean[0]) * ((double)z[K_Z + 1] - smoothed[t + 1].mean[1]) /
                 (double)e->samples;
      }
      double unit = sqrt(smoothed[t].cov[0][0] * smoothed[t + 1].cov[1][1]);
      worst = fmax(worst, fabs(found - expected) / unit);
    }
  print_message("correlation of neighbours is off by %.3f at most\n", worst);
  assert_true(worst < 0.15);
}

static void filter_and_smoother_are_exact(void **unused) {
  (void)unused;
  dvbf_sequences s = make_data(&dense);
  dvbf_model *m = make_dvbf(&s, &dense);
  for (int gaps = 0; gaps < 2; gaps++) {
    if (gaps) make_gaps(&s);
    dvbf_estimates *filtered = estimate(m, &s, "filter", "4000", "4000");
    dvbf_estimates *smoothed = estimate(m, &s, "smooth", "1000", "1000");
    /* Of values that are missing the recognition knows nothing: it proposes badly next to them. */
    compare(filtered, &dense, &s, false, gaps ? 0.08 : 0.04, gaps ? "filter with gaps" : "filter");
    compare(smoothed, &dense, &s, true, gaps ? 0.12 : 0.08, gaps ? "smoother with gaps" : "smoother");
    if (!gaps) expect_joint_paths(smoothed, &dense, &s);
    dvbf_estimates_free(filtered);
    dvbf_estimates_free(smoothed);
  }
  dvbf_model_free(m);
  dvbf_sequences_free(&s);
}

typedef struct shares {
  double last;
  int count;
} shares;

static void note_share(double done, void *user) {
  shares *s = user;
  assert_true(done >= s->last && done <= 1);
  s->last = done;
  s->count++;
}

/* Whether sequences are dealt out to threads or all go through one together. */
static void smoothing_does_not_depend_on_threads(void **unused) {
  (void)unused;
  static const char *const threads[] = {"1", "2", "3", "7"};
  dvbf_sequences s = make_data(&dense);
  dvbf_model *m = make_dvbf(&s, &dense);
  for (s.count = 1; s.count < 6; s.count += 2) {
    dvbf_estimates *e[4] = {0};
    for (int i = 0; i < 4; i++) {
      dvbf_settings *settings = NULL;
      shares told = {0};
      dvbf_error error;
      assert_int_equal(dvbf_settings_new(&settings, "smooth", NULL), DVBF_OK);
      assert_int_equal(dvbf_settings_set(settings, "threads", threads[i], NULL), DVBF_OK);
      assert_int_equal(dvbf_settings_set(settings, "particles", "300", NULL), DVBF_OK);
      assert_int_equal(dvbf_settings_set(settings, "samples", "37", NULL), DVBF_OK);
      if (dvbf_estimate_with(&e[i], m, &s, settings, note_share, &told, &error))
        fail_msg("%s", error.message);
      dvbf_settings_free(settings);
      size_t values = s.count * K_STEPS * K_Z;
      assert_memory_equal(e[i]->z, e[0]->z, 37 * values * sizeof *e[0]->z);
      assert_memory_equal(e[i]->z_mean, e[0]->z_mean, values * sizeof *e[0]->z);
    }
    for (int i = 0; i < 4; i++) dvbf_estimates_free(e[i]);
  }
  s.count = COUNT;
  dvbf_model_free(m);
  dvbf_sequences_free(&s);
}

/* What takes long is told of, a share after the other. */
static void shares_of_work_are_told(void **unused) {
  (void)unused;
  dvbf_sequences s = make_data(&dense);
  dvbf_model *m = make_dvbf(&s, &dense);
  dvbf_settings *settings = NULL;
  dvbf_estimates *e = NULL;
  shares told = {0};
  assert_int_equal(dvbf_settings_new(&settings, "smooth", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "particles", "6000", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "samples", "1000", NULL), DVBF_OK);
  assert_int_equal(dvbf_estimate_with(&e, m, &s, settings, note_share, &told, NULL), DVBF_OK);
  assert_true(told.count > 1 && told.last > 0.3);
  dvbf_estimates_free(e);
  dvbf_settings_free(settings);
  dvbf_model_free(m);
  dvbf_sequences_free(&s);
}

/* A transition of one's own that says it is affine in w is smoothed as the shipped one; one that does not say
 * so goes back along the parents. */
static void own_transitions_are_believed(void **unused) {
  (void)unused;
  dvbf_sequences s = make_data(&dense);
  dvbf_model *m = make_dvbf(&s, &dense);
  dvbf_transition own = *m->transition;
  dvbf_estimates *shipped = estimate(m, &s, "smooth", "20", "20"), *smoothed[2];
  size_t bytes = COUNT * 20 * K_STEPS * K_Z * sizeof *shipped->z;
  own.name = "own";
  m->transition = &own;
  for (int affine = 0; affine < 2; affine++) {
    own.affine_in_w = affine;
    smoothed[affine] = estimate(m, &s, "smooth", "20", "20");
  }
  assert_memory_equal(smoothed[1]->z, shipped->z, bytes);
  assert_memory_not_equal(smoothed[0]->z, shipped->z, bytes);
  for (int affine = 0; affine < 2; affine++) dvbf_estimates_free(smoothed[affine]);
  dvbf_estimates_free(shipped);
  dvbf_model_free(m);
  dvbf_sequences_free(&s);
}

/* ---- Likelihoods ---- */

static dv_likelihoods likelihoods(const dvbf_model *m, const dvbf_sequences *s, size_t n, uint64_t seed) {
  dv_likelihoods l;
  dv_threads *pool = NULL;
  assert_int_equal(dv_threads_new(&pool, 1, NULL), DVBF_OK);
  assert_int_equal(dv_likelihoods_of(&l, m, s, n, true, seed, pool, NULL), DVBF_OK);
  dv_threads_free(pool);
  return l;
}

/* Mean over sequences of (exact ln p - estimate), for weighted paths and particles. */
static void gaps_of(const dvbf_model *m, const kalman_system *system, const dvbf_sequences *s, size_t n,
                    double *importance, double *particle) {
  dv_likelihoods l = likelihoods(m, s, n, 5);
  kalman_belief b[K_STEPS];
  *importance = *particle = 0;
  for (size_t i = 0; i < COUNT; i++) {
    double truth = exact(system, s, i, false, b);
    *importance += (truth - l.importance[i]) / COUNT;
    if (l.particle) *particle += (truth - l.particle[i]) / COUNT;
  }
  dv_likelihoods_free(&l);
  print_message("%5zu: ln p less estimate %.4f by weighted paths, %.4f by particles\n", n, *importance,
                *particle);
}

static void likelihoods_rise_to_the_exact_one(void **unused) {
  (void)unused;
  dvbf_sequences s = make_data(&dense);
  dvbf_model *m = make_dvbf(&s, &dense);
  for (int gaps = 0; gaps < 2; gaps++) {
    double importance[3], particle[3];
    if (gaps) make_gaps(&s);
    gaps_of(m, &dense, &s, 1, &importance[0], &particle[0]);
    gaps_of(m, &dense, &s, 20, &importance[1], &particle[1]);
    gaps_of(m, &dense, &s, 3000, &importance[2], &particle[2]);
    assert_true(importance[0] > importance[1] && importance[1] > importance[2] - 0.05);
    assert_true(particle[0] > particle[1] && particle[1] > particle[2] - 0.05);
    assert_true(importance[0] > 1 && particle[0] > 1); /* there is something to gain */
    assert_true(fabs(importance[2]) < (gaps ? 0.5 : 0.15) && fabs(particle[2]) < (gaps ? 0.1 : 0.05));
  }
  dvbf_model_free(m);
  dvbf_sequences_free(&s);
}

static void add_terms(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  (void)shard, (void)first, (void)count;
  *(double *)user += w->run.terms[dv_graph_term(w->program->graph, DVBF_IMPORTANCE)];
}

/* What training by particles raises: their bound as one program of whole sequences. */
static void the_bound_of_training_rises_too(void **unused) {
  (void)unused;
  dvbf_sequences s = make_data(&dense);
  dvbf_model *m = make_dvbf(&s, &dense);
  kalman_belief b[K_STEPS];
  double gap[2], truth = 0;
  dv_threads *pool = NULL;
  assert_int_equal(dv_threads_new(&pool, 1, NULL), DVBF_OK);
  for (size_t i = 0; i < COUNT; i++) truth += exact(&dense, &s, i, false, b) / COUNT;
  for (int i = 0; i < 2; i++) {
    dv_pass pass;
    dv_conditions conditions = dv_model_conditions(m, 5);
    double sum = 0;
    assert_int_equal(dv_pass_init_particles(&pass, m, pool, &s, i ? 512 : 4, NULL), DVBF_OK);
    assert_int_equal(dv_pass_run(&pass, &s, &conditions, add_terms, &sum, NULL), DVBF_OK);
    dv_pass_clear(&pass);
    gap[i] = truth - sum / COUNT - K_STEPS * dv_model_log_jacobian(m);
  }
  print_message("ln p less the bound of 4 and of 512 particles: %.4f, %.4f\n", gap[0], gap[1]);
  assert_true(gap[0] > gap[1] + 0.1 && fabs(gap[1]) < 0.15);
  dv_threads_free(pool);
  dvbf_model_free(m);
  dvbf_sequences_free(&s);
}

/* With one path both are the bound of the sample, whose mean dvbf_evaluate tells too. */
static void one_path_is_the_bound(void **unused) {
  (void)unused;
  enum { SEEDS = 1000 };
  dvbf_sequences s = make_data(&dense);
  dvbf_model *m = make_dvbf(&s, &dense);
  double importance = 0, particle = 0, bound = 0;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    dv_likelihoods l = likelihoods(m, &s, 1, seed);
    dv_paths *paths = NULL;
    dv_path_options options = {.seed = seed, .threads = 1};
    assert_int_equal(dv_paths_of(&paths, m, &s, &options, NULL), DVBF_OK);
    for (size_t i = 0; i < COUNT; i++) {
      importance += l.importance[i] / (COUNT * SEEDS);
      particle += l.particle[i] / (COUNT * SEEDS);
    }
    for (size_t i = 0; i < COUNT * K_STEPS; i++)
      bound += (paths->log_likelihood[i] - paths->kl[i]) / (COUNT * SEEDS);
    dv_paths_free(paths);
    dv_likelihoods_free(&l);
  }
  print_message("bound %.3f, one weighted path %.3f, one particle %.3f\n", bound, importance, particle);
  assert_true(fabs(importance - bound) < 0.25 && fabs(particle - bound) < 0.25);
  dvbf_model_free(m);
  dvbf_sequences_free(&s);
}

static void dkf_is_weighted_too(void **unused) {
  (void)unused;
  dvbf_sequences s = make_data(&diagonal);
  dvbf_model *m = make_dkf(&s, &diagonal);
  double few, many, none;
  gaps_of(m, &diagonal, &s, 10, &few, &none);
  gaps_of(m, &diagonal, &s, 20000, &many, &none);
  assert_true(few > many && few > 0.5 && fabs(many) < 0.2);
  dvbf_estimates *e = estimate(m, &s, "smooth", "20000", "2000");
  compare(e, &diagonal, &s, true, 0.2, "smoother of a dkf");
  dvbf_estimates_free(e);
  dvbf_model_free(m);
  dvbf_sequences_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(filter_and_smoother_are_exact),
      cmocka_unit_test(smoothing_does_not_depend_on_threads),
      cmocka_unit_test(shares_of_work_are_told),
      cmocka_unit_test(own_transitions_are_believed),
      cmocka_unit_test(likelihoods_rise_to_the_exact_one),
      cmocka_unit_test(one_path_is_the_bound),
      cmocka_unit_test(the_bound_of_training_rises_too),
      cmocka_unit_test(dkf_is_weighted_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
