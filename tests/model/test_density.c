/* Every density: a small model recovers known parameters, with gaps too, and what is made of it agrees with
 * them.
 *
 * u is 0 or 1 and decides from which of two known distributions the next x comes. A model that has learned
 * the right density predicts the mean, the standard deviation and draws of the one that u asks for, and its
 * bound comes close to ln p of the truth. */
#include "files.h"
#include "given.h"

#include "base/memory.h"
#include "data/dataset.h"
#include "math/random.h"
#include "model/model.h"

#include <dvbf/dvbf.h>

#include <math.h>

enum { COUNT = 80, STEPS = 12, N_X = 3 };

typedef struct truth {
  const char *name;     /* the choice of `likelihood` */
  const char *settings; /* "name=value name=value" */
  /* A frame of x, where u is 0 or 1, and ln p of one. NaN is not counted. */
  void (*draw)(dv_random *random, int u, float *x);
  double (*ln_p)(int u, const float *x);
  double mean[2][N_X], deviation[2][N_X];
  struct {
    const char *name;
    double value;
  } parameters[2];       /* that are the same for all of x */
  float refused[2][N_X]; /* frames that it cannot have, where there is an answer to them */
  const char *answer;
  const char *chosen; /* unless asked for; NULL: it itself */
} truth;

/* ---- The truths ---- */

static void draw_gaussian(dv_random *random, int u, float *x) {
  for (int k = 0; k < N_X; k++) x[k] = (float)(u * k + 0.5 * dv_random_normal(random));
}

static double ln_gaussian(int u, const float *x) {
  double sum = 0;
  for (int k = 0; k < N_X; k++)
    if (!isnan(x[k])) sum -= 2 * pow((double)x[k] - u * k, 2) + log(0.5 * sqrt(2 * M_PI));
  return sum;
}

static const double chance[2][N_X] = {{0.2, 0.5, 0.9}, {0.8, 0.4, 0.1}};

static void draw_bernoulli(dv_random *random, int u, float *x) {
  for (int k = 0; k < N_X; k++) x[k] = dv_random_uniform(random) < chance[u][k];
}

static double ln_bernoulli(int u, const float *x) {
  double sum = 0;
  for (int k = 0; k < N_X; k++)
    if (!isnan(x[k])) sum += log(x[k] > 0 ? chance[u][k] : 1 - chance[u][k]);
  return sum;
}

static const double share[2][N_X] = {{0.7, 0.2, 0.1}, {0.1, 0.1, 0.8}};

static void draw_categorical(dv_random *random, int u, float *x) {
  double left = dv_random_uniform(random);
  for (int k = 0; k < N_X; k++) {
    x[k] = left >= 0 && (left < share[u][k] || k == N_X - 1);
    left -= x[k] > 0 ? 2 : share[u][k];
  }
}

/* Where the 1 is missing, nothing is known. */
static double ln_categorical(int u, const float *x) {
  for (int k = 0; k < N_X; k++)
    if (x[k] > 0) return log(share[u][k]);
  return 0;
}

static const double rate[2][N_X] = {{0.3, 2, 9}, {3, 2.5, 4}};

/* The number of events of rate 1 within that time. */
static void draw_poisson(dv_random *random, int u, float *x) {
  for (int k = 0; k < N_X; k++) {
    double time = -log(dv_random_uniform(random));
    for (x[k] = 0; time < rate[u][k]; x[k]++) time -= log(dv_random_uniform(random));
  }
}

static double ln_poisson(int u, const float *x) {
  double sum = 0;
  for (int k = 0; k < N_X; k++) {
    if (isnan(x[k])) continue;
    sum -= rate[u][k];
    for (int i = 1; i <= (int)x[k]; i++) sum += log(rate[u][k] / i);
  }
  return sum;
}

/* The quotient of a normal number and the root of a mean of four squares: four degrees of freedom. */
static void draw_student(dv_random *random, int u, float *x) {
  for (int k = 0; k < N_X; k++) {
    double normal = dv_random_normal(random), sum = 0;
    for (int i = 0; i < 4; i++) sum += pow(dv_random_normal(random), 2);
    x[k] = (float)(2 * u * k + 0.5 * normal / sqrt(sum / 4));
  }
}

static double ln_student(int u, const float *x) {
  double sum = 0;
  for (int k = 0; k < N_X; k++) {
    double e = ((double)x[k] - 2 * u * k) / 0.5;
    if (!isnan(x[k])) sum += log(0.375 / 0.5) - 2.5 * log(1 + e * e / 4);
  }
  return sum;
}

/* One of three frames, whose values are not independent. */
static const float chord[3][N_X] = {{1, 1, 0}, {0, 1, 1}, {0, 0, 0}};
static const double often[2][3] = {{0.5, 0.4, 0.1}, {0.1, 0.3, 0.6}};

static void draw_patterns(dv_random *random, int u, float *x) {
  double left = dv_random_uniform(random) - often[u][0];
  int at = 0;
  while (at < 2 && left >= 0) left -= often[u][++at];
  memcpy(x, chord[at], sizeof chord[at]);
}

/* All frames that agree with what is seen of x may be it. */
static double ln_patterns(int u, const float *x) {
  double sum = 0;
  for (int m = 0; m < 3; m++) {
    bool agrees = true;
    for (int k = 0; k < N_X; k++) agrees &= isnan(x[k]) || x[k] == chord[m][k];
    sum += agrees ? often[u][m] : 0;
  }
  return log(sum);
}

static const truth truths[] = {
    {.name = "gaussian",
     .settings = "sigma-floor=0.1",
     .draw = draw_gaussian,
     .ln_p = ln_gaussian,
     .mean = {{0, 0, 0}, {0, 1, 2}},
     .deviation = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
     .parameters = {{"emission.log_sigma", -0.69315}}},
    {.name = "bernoulli",
     .settings = "",
     .draw = draw_bernoulli,
     .ln_p = ln_bernoulli,
     .mean = {{0.2, 0.5, 0.9}, {0.8, 0.4, 0.1}},
     .deviation = {{0.4, 0.5, 0.3}, {0.4, 0.48990, 0.3}},
     .refused = {{1, 2, 0}, {0, 1, -0.5F}},
     .answer = "needs values from 0 to 1"},
    {.name = "categorical",
     .settings = "",
     .draw = draw_categorical,
     .ln_p = ln_categorical,
     .mean = {{0.7, 0.2, 0.1}, {0.1, 0.1, 0.8}},
     .deviation = {{0.45826, 0.4, 0.3}, {0.3, 0.3, 0.4}},
     .refused = {{0, 0, 0}, {0.5F, 0.5F, 0}},
     .answer = "needs one 1 in each group of columns"},
    {.name = "patterns",
     .settings = "patterns=4",
     .draw = draw_patterns,
     .ln_p = ln_patterns,
     .mean = {{0.5, 0.9, 0.4}, {0.1, 0.4, 0.3}},
     .deviation = {{0.5, 0.3, 0.48990}, {0.3, 0.48990, 0.45826}},
     .refused = {{1, 2, 0}, {0, 0.5F, 1}},
     .answer = "needs values of 0 and 1",
     .chosen = "bernoulli"}, /* so few columns have few different frames, whatever they are */
    {.name = "poisson",
     .settings = "",
     .draw = draw_poisson,
     .ln_p = ln_poisson,
     .mean = {{0.3, 2, 9}, {3, 2.5, 4}},
     .deviation = {{0.54772, 1.41421, 3}, {1.73205, 1.58114, 2}},
     .refused = {{1, 0.5F, 2}, {1, 2, -1}},
     .answer = "needs counts: whole numbers from 0 on"},
    {.name = "student-t",
     .settings = "sigma-floor=0.1",
     .draw = draw_student,
     .ln_p = ln_student,
     .mean = {{0, 0, 0}, {0, 2, 4}},
     .deviation = {{0.70711, 0.70711, 0.70711}, {0.70711, 0.70711, 0.70711}},
     .parameters = {{"emission.log_sigma", -0.69315}, {"emission.log_freedom", 0.69315}},
     .chosen = "gaussian"},
};

/* ---- Data and models ---- */

/* u[t] decides x[t + 1]; x[0] is as after u = 0. */
static dvbf_sequences simulate(const truth *d, uint32_t stream) {
  dvbf_sequences s = {.count = COUNT, .steps = STEPS, .n_x = N_X, .n_u = 1};
  dv_random random = dv_random_at(5, DV_STREAM_SIMULATION, stream, 0);
  assert_int_equal(dv_sequences_allocate(&s, false, NULL), DVBF_OK);
  for (size_t i = 0; i < COUNT * STEPS; i++) {
    d->draw(&random, i % STEPS ? (int)s.u[i - 1] : 0, s.x + i * N_X);
    s.u[i] = dv_random_uniform(&random) < 0.5;
  }
  return s;
}

/* A tenth of the frames is missing, and of as many others one value. */
static void make_gaps(dvbf_sequences *s) {
  s->gaps = true;
  for (size_t i = 3; i < COUNT * STEPS; i += 10)
    for (size_t k = 0; k < N_X; k++) s->x[i * N_X + k] = NAN;
  for (size_t i = 8; i < COUNT * STEPS; i += 10) s->x[i * N_X + i / 10 % N_X] = NAN;
}

static dvbf_model *train(const truth *d, const dvbf_sequences *s) {
  static const char common[] =
      "latent=2 transition=linear residual=off universal=point hidden=16 initial-frames=2 "
      "updates=250 batch-size=20 learning-rate=0.02 filter-dropout=0.9 filter-dropout-end=0.9 "
      "sigma-floor-until=50 validate-every=250 starts=1 scale-transition=1 threads=2";
  dvbf_settings *settings = settings_of("train", common);
  dvbf_data data = {.train = *s};
  dvbf_model *model = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_settings_set(settings, "likelihood", d->name, &error), DVBF_OK);
  set_all(settings, d->settings);
  if (dvbf_train(&model, settings, &data, NULL, &error)) fail_msg("%s: %s", d->name, error.message);
  dvbf_settings_free(settings);
  return model;
}

/* The model as it comes back from its file. */
static dvbf_model *through_file(dvbf_model *model) {
  dvbf_model *again = NULL;
  assert_int_equal(dvbf_model_save(model, in_folder("model.safetensors"), NULL), DVBF_OK);
  assert_int_equal(dvbf_model_load(&again, in_folder("model.safetensors"), NULL), DVBF_OK);
  dvbf_model_free(model);
  return again;
}

/* ---- What must hold ---- */

static void expect_near(const truth *d, const char *what, int u, int k, double found, double known) {
  if (!(fabs(found - known) < 0.05 + 0.1 * fabs(known)))
    fail_msg("%s: the %s of column %d after u = %d is %g, not %g", d->name, what, k, u, found, known);
}

/* Averages over all predicted frames that come after u. */
typedef struct sums {
  double n, mean, deviation, draws, squares, below;
} sums;

static sums average(const dvbf_estimates *e, const dvbf_sequences *s, int u, size_t k) {
  sums a = {0};
  for (size_t i = 0; i < e->count; i++)
    for (size_t t = 0; t < e->steps; t++) {
      if ((int)s->u[i * STEPS + e->first + t - 1] != u) continue;
      size_t at = (i * e->steps + t) * N_X + k;
      a.n++;
      a.mean += (double)e->x[at];
      a.deviation += (double)(e->x_std[at] * e->x_std[at]);
      for (size_t j = 0; j < e->samples; j++) {
        double x = (double)e->x_samples[((i * e->samples + j) * e->steps + t) * N_X + k];
        a.draws += x / (double)e->samples;
        a.squares += x * x / (double)e->samples;
        a.below += (double)(x <= (double)e->x_quantiles[at]) / (double)e->samples;
      }
    }
  a.mean /= a.n;
  a.deviation = sqrt(a.deviation / a.n);
  a.draws /= a.n;
  a.squares = sqrt(a.squares / a.n - a.draws * a.draws);
  a.below /= a.n;
  return a;
}

/* Draws are frames that the truth can have: their values hang together as its values do. */
static void expect_possible_draws(const truth *d, const dvbf_estimates *e) {
  size_t frames = e->count * e->samples * e->steps, possible = 0;
  for (size_t i = 0; i < frames; i++) possible += isfinite(d->ln_p(0, e->x_samples + i * N_X));
  if ((double)possible < 0.97 * (double)frames)
    fail_msg("%s: only %zu of %zu draws are possible", d->name, possible, frames);
}

static void expect_predictions(const truth *d, const dvbf_model *model, const dvbf_sequences *s) {
  dvbf_settings *settings =
      settings_of("predict", "observe=2 samples=40 quantiles=0.5 x-samples=on threads=2");
  dvbf_estimates *e = NULL;
  assert_int_equal(dvbf_estimate(&e, model, s, settings, NULL), DVBF_OK);
  for (int u = 0; u < 2; u++)
    for (int k = 0; k < N_X; k++) {
      sums a = average(e, s, u, (size_t)k);
      expect_near(d, "mean", u, k, a.mean, d->mean[u][k]);
      expect_near(d, "standard deviation", u, k, a.deviation, d->deviation[u][k]);
      expect_near(d, "mean of draws", u, k, a.draws, a.mean);
      expect_near(d, "standard deviation of draws", u, k, a.squares, d->deviation[u][k]);
      assert_true(a.below >= 0.5);
    }
  expect_possible_draws(d, e);
  dvbf_estimates_free(e);
  dvbf_settings_free(settings);
}

/* Bounds are below the truth, but not far below. */
static void expect_bounds(const truth *d, const dvbf_model *model, const dvbf_sequences *s) {
  dvbf_settings *settings = settings_of("evaluate", "particles=20 threads=2");
  dvbf_data data = {.train = *s};
  dvbf_evaluation *e = NULL;
  double sum = 0, frames = 0;
  assert_int_equal(dvbf_evaluate(&e, model, &data, s, settings, NULL), DVBF_OK);
  for (size_t i = 0; i < COUNT * STEPS; i++) {
    const float *x = s->x + i * N_X;
    bool seen = false;
    for (int k = 0; k < N_X; k++) seen |= !isnan(x[k]);
    sum += d->ln_p(i % STEPS ? (int)s->u[i - 1] : 0, x);
    frames += seen;
  }
  double bounds[] = {e->elbo, e->importance_bound, e->particle_bound}, known = sum / frames;
  for (int i = 0; i < 3; i++)
    if (!(bounds[i] > known - 0.15 && bounds[i] < known + 0.05))
      fail_msg("%s: bound %d is %g, but ln p of the truth is %g", d->name, i, bounds[i], known);
  dvbf_evaluation_free(e);
  dvbf_settings_free(settings);
}

/* The other estimates run and are finite. */
static void expect_estimates(const truth *d, const dvbf_model *model, const dvbf_sequences *s) {
  static const struct {
    const char *table, *settings;
  } cases[] = {{"filter", "samples=5"},
               {"filter", "samples=5 particles=10"},
               {"smooth", "particles=10"},
               {"sample", "steps=6 controls=zero"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dvbf_settings *settings = settings_of(cases[i].table, cases[i].settings);
    dvbf_estimates *e = NULL;
    dvbf_error error;
    if (dvbf_estimate(&e, model, s, settings, &error)) fail_msg("%s: %s", d->name, error.message);
    for (size_t k = 0; k < e->count * e->steps * N_X; k++) assert_true(isfinite(e->x[k]));
    dvbf_estimates_free(e);
    dvbf_settings_free(settings);
  }
}

static void expect_online(const dvbf_model *model, const dvbf_sequences *s) {
  size_t size;
  dvbf_filter *filter = NULL;
  dvbf_belief belief;
  assert_int_equal(dvbf_filter_memsize(&size, model, 4, NULL), DVBF_OK);
  void *memory = dv_calloc_aligned(size, 1);
  assert_int_equal(dvbf_filter_init(&filter, memory, size, model, 4, 1, NULL), DVBF_OK);
  for (size_t t = 0; t < STEPS; t++) {
    dvbf_filter_step(filter, t % 4 == 3 ? NULL : s->x + t * N_X, t ? s->u + t - 1 : NULL, &belief);
    for (size_t i = 0; belief.ready && i < belief.n_z; i++) assert_true(isfinite(belief.mean[i]));
  }
  assert_true(belief.ready);
  dv_free(memory);
}

static void expect_parameters(const truth *d, const dvbf_model *model) {
  for (size_t k = 0; k < 2 && d->parameters[k].name; k++)
    for (size_t i = 0; i < model->parameters.count; i++) {
      const dv_parameter *p = &model->parameters.list[i];
      double found = (double)model->parameters.values[p->offset];
      if (!strcmp(p->name, d->parameters[k].name) && !(fabs(found - d->parameters[k].value) < 0.3))
        fail_msg("%s: %s is %g, not %g", d->name, p->name, found, d->parameters[k].value);
    }
}

static void recovers(void **state) {
  const truth *d = *state;
  for (int gaps = 0; gaps < 2; gaps++) {
    dvbf_sequences s = simulate(d, 1), fresh = simulate(d, 2);
    if (gaps) make_gaps(&s);
    dvbf_model *model = through_file(train(d, &s));
    expect_parameters(d, model);
    expect_predictions(d, model, &fresh);
    expect_bounds(d, model, gaps ? &s : &fresh);
    expect_estimates(d, model, &s);
    expect_online(model, &s);
    dvbf_model_free(model);
    dvbf_sequences_free(&s);
    dvbf_sequences_free(&fresh);
  }
}

/* Unless told otherwise, data get their density, or the one that is chosen in its place. */
static void suits(void **state) {
  const truth *d = *state;
  dvbf_data data = {.train = simulate(d, 1)};
  dvbf_settings *settings = settings_of("train", "");
  char name[32];
  assert_int_equal(dvbf_settings_choose(settings, &data, NULL, NULL, NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_get(settings, "likelihood", name, sizeof name, NULL), DVBF_OK);
  assert_string_equal(name, d->chosen ? d->chosen : d->name);
  dvbf_settings_free(settings);
  dvbf_sequences_free(&data.train);
}

/* Data that cannot be are refused, in training and afterwards, with their place. */
static void refuses(void **state) {
  const truth *d = *state;
  dvbf_sequences s = simulate(d, 1);
  dvbf_settings *settings = settings_of("train", "updates=1"), *how = settings_of("filter", "");
  dvbf_data data = {.train = s};
  dvbf_model *model = train(d, &s);
  assert_int_equal(dvbf_settings_set(settings, "likelihood", d->name, NULL), DVBF_OK);
  set_all(settings, d->settings);
  for (int i = 0; i < 2; i++) {
    dvbf_error error = {0};
    dvbf_model *none = NULL;
    dvbf_estimates *nothing = NULL;
    float kept[N_X];
    memcpy(kept, s.x + (STEPS + 3) * N_X, sizeof kept);
    memcpy(s.x + (STEPS + 3) * N_X, d->refused[i], sizeof kept);
    assert_int_equal(dvbf_train(&none, settings, &data, NULL, &error), DVBF_FORMAT);
    assert_non_null(strstr(error.message, d->answer));
    assert_int_equal(dvbf_estimate(&nothing, model, &s, how, &error), DVBF_FORMAT);
    assert_non_null(strstr(error.message, "at sequence 1, step 3, column"));
    memcpy(s.x + (STEPS + 3) * N_X, kept, sizeof kept);
  }
  dvbf_model_free(model);
  dvbf_settings_free(how);
  dvbf_settings_free(settings);
  dvbf_sequences_free(&s);
}

/* Groups are found in the data, columns that are always 0 among them, and must fit them. */
static void groups(void **state) {
  (void)state;
  enum { COLUMNS = 9 };
  static const char *const wrong[] = {"4,4", "9,", "1,8", "4,x", "4.5,4.5", "3 6", "10"};
  dvbf_data data = {.train = {.count = 4, .steps = 5, .n_x = COLUMNS}};
  assert_int_equal(dv_sequences_allocate(&data.train, false, NULL), DVBF_OK);
  for (size_t i = 0; i < 20; i++) {
    float *x = data.train.x + i * COLUMNS;
    x[i % 3] = x[4 + i / 2 % 3] = x[7 + i % 2] = 1; /* column 3 is always 0 */
  }
  dvbf_settings *settings = settings_of("train", "updates=0 initial-frames=2");
  char text[64];
  assert_int_equal(dvbf_settings_choose(settings, &data, NULL, NULL, NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_get(settings, "likelihood", text, sizeof text, NULL), DVBF_OK);
  assert_string_equal(text, "categorical");
  assert_int_equal(dvbf_settings_get(settings, "categories", text, sizeof text, NULL), DVBF_OK);
  assert_string_equal(text, "4,3,2");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    dvbf_model *none = NULL;
    dvbf_error error = {0};
    assert_int_equal(dvbf_settings_set(settings, "categories", wrong[i], NULL), DVBF_OK);
    assert_int_not_equal(dvbf_train(&none, settings, &data, NULL, &error), DVBF_OK);
    assert_non_null(strstr(error.message, "must be the number of columns of each group"));
  }
  dvbf_settings_free(settings);
  dvbf_sequences_free(&data.train);
}

static void freedom(void **state) {
  (void)state;
  dvbf_data data = {.train = simulate(&truths[0], 1)};
  dvbf_settings *settings = settings_of("train", "likelihood=student-t degrees-of-freedom=1.5");
  dvbf_model *none = NULL;
  dvbf_error error = {0};
  assert_int_not_equal(dvbf_train(&none, settings, &data, NULL, &error), DVBF_OK);
  assert_non_null(strstr(error.message, "degrees-of-freedom = 1.5: must be 0, to learn them, or at least"));
  dvbf_settings_free(settings);
  dvbf_sequences_free(&data.train);
}

int main(void) {
  enum { ALL = sizeof truths / sizeof *truths };
  struct CMUnitTest tests[3 * ALL + 2] = {cmocka_unit_test(groups), cmocka_unit_test(freedom)};
  size_t count = 2;
  for (size_t i = 0; i < ALL; i++) {
    void *d = (void *)&truths[i];
    tests[count++] = (struct CMUnitTest){truths[i].name, recovers, NULL, NULL, d};
    tests[count++] = (struct CMUnitTest){"suits", suits, NULL, NULL, d};
    if (truths[i].answer) tests[count++] = (struct CMUnitTest){"refuses", refuses, NULL, NULL, d};
  }
  return _cmocka_run_group_tests("densities", tests, count, make_folder, remove_folder);
}
