/* Every density as the emission records it: ln p against its formula, and the gradients of all that it is
 * made from, where frames are seen whole, not at all and in part. */
#include "gradient.h"
#include "math/portable.h"

#include "model/density.h"

enum { ROWS = 3, STEPS = 2, N = 5, FRAMES = STEPS * ROWS };

typedef struct density_case {
  const char *name, *settings; /* "name=value name=value" */
  double x[2 * N];             /* frames, in turn */
  /* ln p of value i of a frame, from its output [N] and one entry for it of each further parameter. */
  double (*ln_p)(double x, const dvbf_real *output, int i, const double shape[2]);
  /* Or of those values of a frame that are seen, from the frame's own part of the first parameter and the
   * whole second one; mean [N] is what the output must be then. */
  double (*ln_frame)(const double *x, const bool *seen, const dvbf_real *shape, const dvbf_real *shared,
                     double *mean);
} density_case;

static double ln_gaussian(double x, const dvbf_real *output, int i, const double shape[2]) {
  return -0.5 * pow((x - (double)output[i]) / exp(shape[0]), 2) - shape[0] - 0.5 * log(2 * M_PI);
}

static double ln_bernoulli(double x, const dvbf_real *output, int i, const double shape[2]) {
  (void)shape;
  double p = 1 / (1 + exp(-(double)output[i]));
  return x * log(p) + (1 - x) * log(1 - p);
}

/* The output is ln p; it must add up to 1 in the groups of 2 and 3 columns. */
static double ln_categorical(double x, const dvbf_real *output, int i, const double shape[2]) {
  (void)shape;
  double sum = 0;
  for (int k = i < 2 ? 0 : 2; k < (i < 2 ? 2 : N); k++) sum += exp((double)output[k]);
  return x * ((double)output[i] - log(sum)) + fabs(sum - 1);
}

static double ln_poisson(double x, const dvbf_real *output, int i, const double shape[2]) {
  (void)shape;
  double rate = exp((double)output[i]), p = exp(-rate);
  for (int k = 1; k <= (int)x; k++) p *= rate / k;
  return log(p);
}

static double ln_student(double x, const dvbf_real *output, int i, const double shape[2]) {
  double n = 2 + exp(shape[1]), e = (x - (double)output[i]) / exp(shape[0]);
  return log(tgamma((n + 1) / 2) / tgamma(n / 2) / sqrt(M_PI * n) / exp(shape[0])) -
         (n + 1) / 2 * log(1 + e * e / n);
}

/* A mixture of products: its sums without logarithms. Shape: the own logits [N] and scores [1 + PATTERNS];
 * shared: the patterns' logits [N][PATTERNS], as parameters. */
enum { PATTERNS = 3 };

static double ln_patterns(const double *x, const bool *seen, const dvbf_real *shape, const dvbf_real *shared,
                          double *mean) {
  double sum = 0, total = 0;
  memset(mean, 0, N * sizeof *mean);
  for (int m = 0; m <= PATTERNS; m++) total += exp((double)shape[N + m]);
  for (int m = 0; m <= PATTERNS; m++) {
    double share = exp((double)shape[N + m]) / total, all = share;
    for (int i = 0; i < N; i++) {
      double logit = m ? DV_PATTERN_GAIN * (double)shared[i * PATTERNS + m - 1] : (double)shape[i];
      double p = 1 / (1 + exp(-logit));
      mean[i] += share * p;
      if (seen[i]) all *= x[i] > 0 ? p : 1 - p;
    }
    sum += all;
  }
  return log(sum);
}

static const density_case cases[] = {
    {"gaussian", "", {0.3, -1, 2, 0, 0.5, 1, 1, -0.7, 0.1, 0}, .ln_p = ln_gaussian},
    {"gaussian", "sigma=state", {0.3, -1, 2, 0, 0.5, 1, 1, -0.7, 0.1, 0}, .ln_p = ln_gaussian},
    {"gaussian", "sigma=dimension mean=sigmoid", {0.3, 1, 0, 0.2, 0.5, 1, 1, 0, 0.1, 0}, .ln_p = ln_gaussian},
    {"bernoulli", "", {0, 1, 0.3, 0, 1, 1, 1, 0, 1, 0.8}, .ln_p = ln_bernoulli},
    {"categorical", "categories=2,3", {0, 1, 0, 0, 1, 1, 0, 0, 1, 0}, .ln_p = ln_categorical},
    {"patterns", "patterns=3", {0, 1, 0, 0, 1, 1, 1, 0, 1, 0}, .ln_frame = ln_patterns},
    {"poisson", "", {0, 1, 4, 2, 0, 9, 1, 3, 0, 12}, .ln_p = ln_poisson},
    {"student-t", "", {0.3, -9, 2, 0, 0.5, 1, 1, -0.7, 0.1, 30}, .ln_p = ln_student},
    {"student-t",
     "sigma=state degrees-of-freedom=3",
     {0.3, -9, 2, 0, 0.5, 1, 1, 0, 0, 30},
     .ln_p = ln_student},
    {"student-t",
     "sigma=dimension degrees-of-freedom=50",
     {0, -9, 2, 0, 0, 1, 1, 0, 0, 3},
     .ln_p = ln_student},
};

static dvbf_model *make_model(const density_case *c) {
  dvbf_settings *settings = NULL;
  dvbf_model *m = NULL;
  char line[256], *rest = line;
  dvbf_error error;
  snprintf(line, sizeof line, "%s", c->settings);
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "likelihood", c->name, NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "hidden", "4", NULL), DVBF_OK);
  for (char *word; *line && (word = strsep(&rest, " "));) {
    char *value = strchr(word, '=');
    *value++ = 0;
    assert_int_equal(dvbf_settings_set(settings, word, value, NULL), DVBF_OK);
  }
  if (dv_model_empty(&m, settings, NULL, N, 0, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return m;
}

/* Entry i of frame r of a further parameter, which all frames or all values may share. */
static double entry_of(const bench *b, dvbf_value v, int r, int i) {
  if (v.buffer < 0) return 0;
  const dvbf_real *at = dvbf_at(&b->run, v) + (v.steps * v.rows > 1 ? r * v.cols : 0);
  return (double)at[v.cols > 1 ? i : 0];
}

/* The sum over the values of frame r that are seen. */
static double sum_of(const bench *b, const density_case *c, const dvbf_program *p, int r, const bool *seen) {
  const dvbf_real *output = dvbf_at(&b->run, p->output) + r * N;
  double sum = 0;
  for (int i = 0; i < N; i++) {
    double shape[2] = {entry_of(b, p->shape[0], r, i), entry_of(b, p->shape[1], r, i)};
    if (seen[i]) sum += c->ln_p(c->x[r % 2 * N + i], output, i, shape);
  }
  return sum;
}

/* ln p of the whole frame, with its mean. */
static double joint_of(const bench *b, const density_case *c, const dvbf_program *p, int r,
                       const bool *seen) {
  double mean[N];
  const dvbf_real *shape = dvbf_at(&b->run, p->shape[0]) + r * p->shape[0].cols;
  double ln_p = c->ln_frame(c->x + r % 2 * N, seen, shape, dvbf_at(&b->run, p->shape[1]), mean);
  for (int i = 0; i < N; i++) {
    double found = (double)dvbf_at(&b->run, p->output)[r * N + i];
    if (!(fabs(found - mean[i]) < 1e-9)) fail_msg("%s: a mean is %.12g, not %.12g", c->name, found, mean[i]);
  }
  return ln_p;
}

static void expect_values(const bench *b, const density_case *c, const dvbf_program *p, const double *mask,
                          int masks) {
  for (int r = 0; r < FRAMES; r++) {
    bool seen[N];
    for (int i = 0; i < N; i++) seen[i] = mask[masks > 1 ? r * N + i : r] > 0;
    double known = c->ln_frame ? joint_of(b, c, p, r, seen) : sum_of(b, c, p, r, seen);
    double found = (double)dvbf_at(&b->run, p->ln_p)[r];
    if (!(fabs(found - known) < 1e-9)) fail_msg("%s: ln p is %.12g, not %.12g", c->name, found, known);
  }
}

static void check(const density_case *c, bool part) {
  double x[FRAMES * N], mask[FRAMES * N];
  for (int i = 0; i < FRAMES * N; i++) {
    int r = i / N;
    x[i] = c->x[i % (2 * N)];
    mask[i] = part ? r % 3 == 0 || (r % 3 == 2 && i % 2) : i % 4 != 1;
  }
  dvbf_model *m = make_model(c);
  bench b;
  bench_begin(&b, ROWS);
  dvbf_program p = {.graph = b.graph, .steps = STEPS, .rows = ROWS, .shape = {DVBF_NONE, DVBF_NONE}};
  dvbf_value hidden = input(&b, STEPS, (int)m->settings->hidden);
  p.x = constant(&b, STEPS, N, x);
  dvbf_value seen = constant(&b, STEPS, part ? N : 1, mask);
  p.ln_p = dvbf_slab(b.graph, STEPS, 1);
  m->density->record(&p, m, hidden, seen);
  dvbf_value kept[] = {p.output, p.ln_p, p.shape[0], p.shape[1]};
  for (int i = 0; i < 4; i++) dvbf_keep(b.graph, kept[i]);
  project(&b, p.ln_p);
  project(&b, p.output);
  assert_gradients(&b, c->name);
  dv_run_forward(&b.run);
  expect_values(&b, c, &p, mask, part ? N : 1);
  bench_end(&b);
  dvbf_model_free(m);
}

static void densities(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int part = 0; part < 2; part++) check(&cases[i], part);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(densities)};
  int failed = cmocka_run_group_tests_name("gradients of densities", tests, NULL, NULL);
  dv_portable = true;
  return failed + cmocka_run_group_tests_name("gradients of densities, portable", tests, NULL, NULL);
}
