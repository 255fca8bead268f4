/* Rolling origins and the verdict, recomputed here from the data. */
#include "small_model.h"

#include "evaluate/evaluate.h"
#include "evaluate/rolling.h"

#include <math.h>

static dvbf_settings *table(const char *name) {
  dvbf_settings *settings = NULL;
  assert_int_equal(dvbf_settings_new(&settings, name, NULL), DVBF_OK);
  return settings;
}

static void set(dvbf_settings *settings, const char *name, const char *value) {
  dvbf_error error;
  if (dvbf_settings_set(settings, name, value, &error)) fail_msg("%s", error.message);
}

static dvbf_estimates *estimate(const dvbf_model *m, const dvbf_sequences *s, dvbf_settings *settings) {
  dvbf_estimates *e = NULL;
  dvbf_error error;
  if (dvbf_estimate(&e, m, s, settings, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return e;
}

static dvbf_verdict *judge(const dvbf_model *m, const dvbf_data *data, const dvbf_sequences *s) {
  dvbf_verdict *v = NULL;
  dvbf_error error;
  dvbf_settings *settings = table("evaluate");
  set(settings, "threads", "1");
  if (dvbf_verdict_new(&v, m, data, s, settings, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return v;
}

/* ---- Forecasts ---- */

static dvbf_estimates *filtered(const fixture *f, const char *forecast) {
  dvbf_settings *settings = table("filter");
  set(settings, "samples", "2000");
  set(settings, "forecast", forecast);
  set(settings, "threads", "2");
  return estimate(f->model, &f->sequences, settings);
}

/* Where x is missing, all that a filter knows of it is the forecast. */
static void a_forecast_is_the_belief_without_the_frame(void **unused) {
  (void)unused;
  enum { HIDDEN = 5, SHOWN = 4 };
  fixture f;
  begin(&f, "universal=point");
  dvbf_real *values = trained(&f, 1, 60);
  free(values);
  f.sequences.count = SHOWN;
  dvbf_estimates *before = filtered(&f, "on");
  assert_int_equal(before->first, 3);
  assert_int_equal(before->steps, STEPS - 3);
  for (size_t i = 0; i < SHOWN; i++) {
    assert_int_equal(before->length[i], f.sequences.length[i] - 3);
    for (size_t k = 0; k < N_X; k++) f.sequences.x[(i * STEPS + HIDDEN) * N_X + k] = NAN;
  }
  f.sequences.gaps = true;
  dvbf_estimates *after = filtered(&f, "off");
  for (size_t i = 0; i < SHOWN; i++)
    for (size_t k = 0; k < N_X; k++) {
      size_t a = (i * before->steps + HIDDEN - 3) * N_X + k, b = (i * STEPS + HIDDEN) * N_X + k;
      assert_float_equal(before->x[a], after->x[b], 0.02);
      assert_true(before->x_std[a] > 0.05f); /* with the noise of the emission */
    }
  dvbf_estimates_free(before);
  dvbf_estimates_free(after);
  end(&f);
}

static void forecasts_are_refused_where_they_cannot_be(void **unused) {
  (void)unused;
  fixture f;
  dvbf_error error;
  dvbf_estimates *e = NULL;
  begin(&f, "");
  dvbf_settings *settings = table("filter");
  set(settings, "forecast", "on");
  set(settings, "particles", "10");
  assert_int_equal(dvbf_estimate(&e, f.model, &f.sequences, settings, &error), DVBF_ARGUMENT);
  assert_string_equal(error.message,
                      "particles = 10: a forecast does not weight samples; leave out particles or forecast");
  set(settings, "particles", "0");
  dvbf_sequences brief = {
      .count = 2, .steps = 3, .n_x = N_X, .n_u = N_U, .x = f.sequences.x, .u = f.sequences.u};
  assert_int_equal(dvbf_estimate(&e, f.model, &brief, settings, &error), DVBF_ARGUMENT);
  assert_string_equal(error.message,
                      "the sequences have only 3 steps and the model needs 3 to begin, so nothing is left to "
                      "forecast; use longer sequences");
  dvbf_settings_free(settings);
  end(&f);
}

/* ---- Rolling origins ---- */

/* The mean and the last value, of columns whose mean the model knows: errors of one column from step `first`
 * on, one step ahead or in a free run. */
typedef struct simple {
  double mean, last;
} simple;

static simple errors_of(const fixture *f, size_t k, size_t first, bool free_run) {
  double squares[2] = {0}, n = 0;
  for (size_t i = 0; i < f->sequences.count; i++) {
    double last = NAN;
    for (size_t t = 0; t < f->sequences.length[i]; t++) {
      double x = (double)f->sequences.x[(i * STEPS + t) * N_X + k], mean = (double)f->model->x.shift[k];
      if (isnan(x)) continue;
      if (t >= first) {
        double apart = x - (isnan(last) ? mean : last);
        squares[0] += (x - mean) * (x - mean);
        squares[1] += apart * apart;
        n += 1;
      }
      if (t < first || !free_run) last = x;
    }
  }
  return (simple){sqrt(squares[0] / n), sqrt(squares[1] / n)};
}

static void expect_simple(const fixture *f, const dvbf_rolling *r, size_t first, bool free_run) {
  double sum = 0;
  assert_int_equal(r->origins, COUNT);
  assert_int_equal(r->steps, STEPS - first);
  for (size_t k = 0; k < N_X; k++) {
    simple s = errors_of(f, k, first, free_run);
    assert_float_equal(r->score[DVBF_BY_MEAN].rmse_by_column[k], s.mean, 1e-6);
    assert_float_equal(r->score[DVBF_BY_LAST].rmse_by_column[k], s.last, 1e-6);
    assert_float_equal(r->score[DVBF_BY_LAST].fit_by_column[k], 100 * (1 - s.last / s.mean), 1e-4);
    assert_true(isnan(r->score[DVBF_BY_LINEAR].rmse_by_column[k]));
    double unit = 1 / (double)f->model->x.scale[k];
    sum += s.last * s.last / unit / unit / N_X;
  }
  assert_float_equal(r->score[DVBF_BY_LAST].rmse, sqrt(sum), 1e-5);
  assert_float_equal(r->score[DVBF_BY_MEAN].fit, 0, 1e-9);
  assert_true(isnan(r->score[DVBF_BY_LINEAR].rmse));
}

static void simple_ways_are_scored_as_here(void **unused) {
  (void)unused;
  fixture f;
  begin(&f, "x-scaling=standardise");
  for (size_t i = 0; i < COUNT * STEPS; i += 7) f.sequences.x[i * N_X + i % N_X] = NAN;
  f.sequences.gaps = true;
  dvbf_data data = {.train = f.sequences};
  dvbf_verdict *v = judge(f.model, &data, NULL);
  assert_string_equal(v->split, "train");
  assert_string_equal(v->names[2], "x2");
  expect_simple(&f, &v->one_step, 3, false);
  expect_simple(&f, &v->free_run, 5, true); /* observe = 5 by default */
  dvbf_verdict_free(v);
  end(&f);
}

/* The learned model, by the same functions that users call. */
static void the_model_is_scored_by_its_estimates(void **unused) {
  (void)unused;
  fixture f;
  begin(&f, "universal=point");
  dvbf_data data = {.train = f.sequences, .test = f.sequences};
  dvbf_verdict *v = judge(f.model, &data, NULL);
  assert_string_equal(v->split, "test");
  const char *const names[] = {"predict", "filter"};
  const dvbf_rolling *rolling[] = {&v->free_run, &v->one_step};
  for (int i = 0; i < 2; i++) {
    dvbf_settings *settings = table(names[i]);
    double all, by_column[N_X], by_step[STEPS];
    set(settings, "samples", "39");
    if (i) set(settings, "forecast", "on");
    dvbf_estimates *e = estimate(f.model, &f.sequences, settings);
    assert_int_equal(dvbf_estimates_rmse(&all, by_column, by_step, e, &f.sequences, NULL), DVBF_OK);
    for (size_t k = 0; k < N_X; k++)
      assert_float_equal(rolling[i]->score[DVBF_BY_LEARNED].rmse_by_column[k], by_column[k], 1e-5);
    dvbf_estimates_free(e);
  }
  dvbf_verdict_free(v);
  end(&f);
}

/* A long recording has several origins, whose predictions run to its end; a model knows a linear one. */
static void long_recordings_have_ten_origins(void **unused) {
  (void)unused;
  enum { LONG = 400 };
  fixture f, other;
  begin(&f, "");
  begin(&other, "seed=5");
  float x[LONG * N_X], u[LONG * N_U];
  for (size_t t = 0; t < LONG * N_X; t++) x[t] = (float)sin(0.1 * (double)t);
  for (size_t t = 0; t < LONG * N_U; t++) u[t] = (float)cos((double)t);
  dvbf_data data = {.test = {.count = 1, .steps = LONG, .n_x = N_X, .n_u = N_U, .x = x, .u = u}};
  f.model->linear = other.model;
  dvbf_verdict *v = judge(f.model, &data, NULL);
  assert_int_equal(v->free_run.origins, 10);
  assert_int_equal(v->free_run.steps, LONG - 5);
  assert_int_equal(v->one_step.origins, 1);
  assert_int_equal(v->one_step.steps, LONG - 3);
  f.model->linear = NULL;
  dvbf_verdict *alone = judge(other.model, &data, NULL);
  assert_float_equal(v->free_run.score[DVBF_BY_LINEAR].rmse, alone->free_run.score[DVBF_BY_LEARNED].rmse,
                     1e-9);
  assert_float_equal(v->one_step.score[DVBF_BY_LINEAR].rmse, alone->one_step.score[DVBF_BY_LEARNED].rmse,
                     1e-9);
  dvbf_verdict_free(v);
  dvbf_verdict_free(alone);
  end(&f);
  end(&other);
}

/* A model that was trained without a search learns the linear model later, and keeps it in its file. It is of
 * the training data alone. */
static void a_linear_model_is_added(void **unused) {
  (void)unused;
  enum { LONG = 300 };
  static const char path[] = "with_linear.safetensors";
  static float x[2][LONG * N_X], u[2][LONG * N_U];
  dv_random random = dv_random_at(8, DV_STREAM_SIMULATION, 0, 0);
  fixture f;
  begin(&f, "x-scaling=standardise");
  for (int part = 0; part < 2; part++)
    for (size_t t = 0; t < LONG; t++) {
      for (size_t k = 0; k < N_U; k++) u[part][t * N_U + k] = (float)dv_random_normal(&random);
      for (size_t k = 0; k < N_X; k++)
        x[part][t * N_X + k] = (float)(5 + 0.1 * dv_random_normal(&random) +
                                       (t ? 0.8 * ((double)x[part][(t - 1) * N_X + k] - 5) +
                                                (double)u[part][(t - 1) * N_U + k % N_U]
                                          : 0));
    }
  dvbf_sequences train = {.count = 1, .steps = LONG, .n_x = N_X, .n_u = N_U, .x = x[0], .u = u[0]},
                 test = train;
  test.x = x[1];
  test.u = u[1];
  dvbf_data data = {.train = train, .test = test};
  bool added = false;
  dvbf_error error;
  if (dvbf_model_add_linear(&added, f.model, &data, NULL, &error)) fail_msg("%s", error.message);
  assert_true(added);
  dvbf_verdict *v = judge(f.model, &data, NULL);
  for (int k = 0; k < N_X; k++) { /* the best possible: 0.1, and 0.1 / sqrt(1 - 0.64) without frames */
    assert_float_equal(v->one_step.score[DVBF_BY_LINEAR].rmse_by_column[k], 0.1, 0.02);
    assert_float_equal(v->free_run.score[DVBF_BY_LINEAR].rmse_by_column[k], 0.167, 0.05);
  }
  dvbf_verdict_free(v);
  assert_int_equal(dvbf_model_add_linear(&added, f.model, &data, NULL, NULL), DVBF_OK);
  assert_false(added); /* it has one */
  assert_int_equal(dvbf_model_save(f.model, path, NULL), DVBF_OK);
  dvbf_model *loaded = NULL, *alone = f.model->linear;
  assert_int_equal(dvbf_model_load(&loaded, path, NULL), DVBF_OK);
  assert_non_null(loaded->linear);
  f.model->linear = NULL;
  assert_int_equal(dvbf_model_add_linear(&added, alone, &data, NULL, NULL), DVBF_OK);
  assert_false(added); /* it is one */
  data.image_height = 2;
  assert_int_equal(dvbf_model_add_linear(&added, f.model, &data, NULL, NULL), DVBF_OK);
  assert_false(added);
  data.train.n_u = 1;
  assert_int_equal(dvbf_model_add_linear(&added, f.model, &data, NULL, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "2 of u, and the data have 6 and 1"));
  dvbf_model_free(alone);
  dvbf_model_free(loaded);
  remove(path);
  end(&f);
}

/* A constant column has errors but takes no part in the score of all. */
static void constant_columns_take_no_part(void **unused) {
  (void)unused;
  fixture f;
  begin(&f, "");
  dvbf_data data = {.train = f.sequences};
  for (size_t i = 0; i < COUNT * STEPS; i++) f.sequences.x[i * N_X] = 7;
  dvbf_verdict *v = judge(f.model, &data, NULL);
  const dvbf_score *mean = &v->free_run.score[DVBF_BY_MEAN];
  assert_true(mean->rmse_by_column[0] > 6); /* the model learned another mean */
  assert_true(isnan(mean->fit_by_column[0]));
  assert_float_equal(mean->rmse, 1, 0.05);
  dvbf_verdict_free(v);
  end(&f);
}

/* ---- Calibration ---- */

/* White noise, and a model that has learned nothing but its mean and deviation. */
/* Ranks are as often as one another, and say the same as the shares. */
static void expect_ranks(const dvbf_verdict *v, const dvbf_rolling *r) {
  double all = 0, inside = 0, n = (double)r->n_ranks - 1;
  assert_int_equal(r->n_ranks, 40);
  for (size_t k = 0; k < v->n_x; k++)
    for (size_t rank = 0; rank < r->n_ranks; rank++) {
      double count = r->ranks[k * r->n_ranks + rank];
      all += count;
      inside += count * dv_rank_inside((double)rank, n, 0.9);
    }
  assert_float_equal(inside / all, r->coverage_90, 1e-9);
  for (size_t rank = 0; rank < r->n_ranks; rank++) {
    double count = 0;
    for (size_t k = 0; k < v->n_x; k++) count += r->ranks[k * r->n_ranks + rank];
    assert_float_equal(count / all, 1 / (n + 1), 0.015);
  }
}

static void noise_is_covered_and_white(void **unused) {
  (void)unused;
  fixture f;
  begin(&f, "x-scaling=none sigma-floor=1");
  dv_random random = dv_random_at(3, DV_STREAM_SIMULATION, 0, 0);
  for (size_t i = 0; i < COUNT * STEPS * N_X; i++)
    f.sequences.x[i] = (float)(0.5 + dv_random_normal(&random));
  dvbf_data data = {.train = f.sequences};
  dvbf_verdict *v = judge(f.model, &data, NULL);
  assert_float_equal(v->one_step.coverage_50, 0.5, 0.03);
  assert_float_equal(v->one_step.coverage_90, 0.9, 0.02);
  assert_float_equal(v->free_run.coverage_50, 0.5, 0.03);
  assert_float_equal(v->free_run.coverage_90, 0.9, 0.02);
  expect_ranks(v, &v->one_step);
  expect_ranks(v, &v->free_run);
  assert_true(v->whiteness.outside < 0.12);
  assert_false(v->useful);
  dvbf_verdict_free(v);
  end(&f);
}

/* Errors e_t = rho e_{t-1} + noise of a model that expects 0. */
static dvbf_whiteness whiteness_of(double rho, bool gaps) {
  enum { LONG = 4000 };
  static float x[LONG], zero[LONG], one[LONG];
  static uint32_t length = LONG;
  dv_random random = dv_random_at(4, DV_STREAM_SIMULATION, 0, 0);
  double e = 0;
  for (size_t t = 0; t < LONG; t++) {
    e = rho * e + dv_random_normal(&random);
    x[t] = gaps && t % 5 == 0 ? NAN : (float)(e + 3); /* a mean error is not a correlation */
    one[t] = 1;
  }
  dvbf_estimates estimates = {.count = 1, .steps = LONG, .n_x = 1, .x = zero, .x_std = one};
  dv_rolling r = {.views = {.count = 1, .steps = LONG, .n_x = 1, .x = x, .length = &length, .gaps = gaps},
                  .by[DVBF_BY_LEARNED] = &estimates};
  dvbf_whiteness w;
  assert_int_equal(dv_whiteness_of(&w, &r, NULL), DVBF_OK);
  return w;
}

static void free_whiteness(dvbf_whiteness *w) {
  free(w->autocorrelation);
  free(w->p);
  free(w->histogram);
}

/* Errors of deviation 1 around 3, where 0 is expected: the last bin has all above 3.75. */
static void expect_histogram(const dvbf_whiteness *w, double count) {
  double sum = 0;
  for (size_t b = 0; b < DVBF_BINS; b++) sum += w->histogram[0][b];
  assert_float_equal(sum, count, 0);
  assert_float_equal(w->histogram[0][DVBF_BINS - 1] / count, 0.5 * erfc(0.75 / sqrt(2)), 0.02);
  assert_float_equal(w->histogram[0][0], 0, 0);
}

static void whiteness_finds_correlation(void **unused) {
  (void)unused;
  dvbf_whiteness white = whiteness_of(0, false), red = whiteness_of(0.5, false),
                 holes = whiteness_of(0, true);
  assert_float_equal(white.band, 1.96 / sqrt(4000), 1e-9);
  assert_true(white.p[0] > 0.05 && white.outside <= 0.1);
  assert_float_equal(red.autocorrelation[0][0], 0.5, 0.03);
  assert_float_equal(red.autocorrelation[0][1], 0.25, 0.05);
  assert_true(red.p[0] < 1e-10 && red.outside >= 0.1);
  assert_true(holes.p[0] > 0.01 && isfinite(holes.outside));
  expect_histogram(&white, 4000);
  expect_histogram(&holes, 3200);
  free_whiteness(&white);
  free_whiteness(&red);
  free_whiteness(&holes);
}

/* ---- Errors by horizon ---- */

static dvbf_evaluation *evaluated(const fixture *f, const dvbf_data *data, const dvbf_sequences *s) {
  dvbf_evaluation *e = NULL;
  dvbf_error error;
  dvbf_settings *settings = table("evaluate");
  assert_int_equal(dvbf_settings_set(settings, "verdict", "off", NULL), DVBF_OK);
  if (dvbf_evaluate(&e, f->model, data, s, settings, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return e;
}

/* Of the mean and the last value, of every sequence from its fifth step on. */
static void errors_by_horizon_are_as_here(void **unused) {
  (void)unused;
  enum { FIRST = 5 };
  size_t ended[STEPS - FIRST] = {0};
  fixture f;
  begin(&f, "x-scaling=none");
  f.sequences.gaps = true;
  f.sequences.x[6 * N_X + 1] = NAN; /* sequence 0, two steps ahead */
  dvbf_data data = {.train = f.sequences};
  dvbf_evaluation *e = evaluated(&f, &data, &f.sequences);
  assert_int_equal(e->observed, FIRST);
  assert_int_equal(e->horizon, STEPS - FIRST);
  assert_int_equal(e->columns, N_X);
  assert_null(e->mse_linear);
  for (size_t i = 0; i < COUNT; i++)
    for (size_t h = 0; h < e->horizon; h++) ended[h] += FIRST + h >= f.sequences.length[i];
  for (size_t k = 0; k < N_X; k++)
    for (size_t h = 0; h < e->horizon; h++) {
      double mean = 0, seen = 0, square = 0, count = 0, last = 0;
      for (size_t i = 0; i < COUNT; i++)
        for (size_t t = 0; t < f.sequences.length[i]; t++) {
          double x = (double)f.sequences.x[(i * STEPS + t) * N_X + k];
          if (!isnan(x)) mean += x, seen += 1;
        }
      mean /= seen;
      for (size_t i = 0; i < COUNT; i++) {
        const float *x = f.sequences.x + i * STEPS * N_X + k;
        double value = (double)x[(FIRST + h) * N_X];
        if (FIRST + h >= f.sequences.length[i] || isnan(value)) continue;
        square += pow(value - mean, 2);
        last += pow(value - (double)x[(FIRST - 1) * N_X], 2);
        count += 1;
      }
      assert_int_equal(e->origins[h], COUNT - ended[h]);
      assert_float_equal(e->mse_mean[(1 + k) * e->horizon + h], square / count, 1e-5);
      assert_float_equal(e->mse_repeat[(1 + k) * e->horizon + h], last / count, 1e-5);
      assert_true(e->mse[(1 + k) * e->horizon + h] > 0 && e->mse_mean_path[(1 + k) * e->horizon + h] > 0);
    }
  dvbf_evaluation_free(e);
  end(&f);
}

/* A single long sequence is predicted from later steps too, but not as far. */
static void long_sequences_have_many_origins(void **unused) {
  (void)unused;
  enum { ALL = COUNT * STEPS };
  fixture f;
  begin(&f, "x-scaling=none");
  dvbf_sequences one = f.sequences;
  one.count = 1, one.steps = ALL;
  one.length = NULL;
  dvbf_data data = {.train = one};
  dvbf_evaluation *e = evaluated(&f, &data, &one);
  assert_int_equal(e->horizon, ALL - e->observed);
  assert_true(e->origins[0] > 100 && e->origins[0] <= 200);
  assert_int_equal(e->origins[e->horizon - 1], 1);
  for (size_t h = 1; h < e->horizon; h++) assert_true(e->origins[h] <= e->origins[h - 1]);
  dvbf_evaluation_free(e);
  end(&f);
}

/* ---- Likelihoods ---- */

/* Nats per frame of columns of 0 and 1, by counting: each for itself, and after its last value. */
static void count_bits(const fixture *f, double *alone, double *chain) {
  double seen[N_X][3][2] = {0}, frames = 0; /* after 0, after 1, of all: frames and ones */
  *alone = *chain = 0;
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < COUNT; i++)
      for (size_t t = 0; t < f->sequences.length[i]; t++)
        for (size_t k = 0; k < N_X; k++) {
          const float *x = f->sequences.x + (i * STEPS + t) * N_X + k;
          int was = t && !isnan(x[-N_X]) ? (int)x[-N_X] : 2, is = isnan(*x) ? -1 : (int)*x;
          if (pass && k == 0) frames += 1; /* no frame is missing as a whole */
          if (is < 0) continue;
          for (int state = 0; state < 3 && !pass; state++)
            if (state == was || state == 2) seen[k][state][0] += 1, seen[k][state][1] += is;
          double mean = (seen[k][2][1] + 0.5) / (seen[k][2][0] + 1);
          double after = was < 2 ? (seen[k][was][1] + mean) / (seen[k][was][0] + 1) : mean;
          if (pass) *alone -= log(is ? mean : 1 - mean), *chain -= log(is ? after : 1 - after);
        }
  *alone /= frames, *chain /= frames;
}

static void bits_are_judged_by_their_likelihood(void **unused) {
  (void)unused;
  fixture f;
  double alone, chain;
  begin(&f, "likelihood=bernoulli universal=point");
  for (size_t i = 0; i < COUNT * STEPS * N_X; i++) {
    float drawn = (float)(f.sequences.x[i] < 0.3f);
    f.sequences.x[i] = i % STEPS && i >= N_X && i % 5 ? f.sequences.x[i - N_X] : drawn;
  }
  for (size_t i = 0; i < COUNT * STEPS; i += 3) f.sequences.x[i * N_X + 1] = NAN;
  f.sequences.gaps = true;
  count_bits(&f, &alone, &chain);
  dvbf_data data = {.train = f.sequences};
  dvbf_verdict *v = judge(f.model, &data, NULL);
  assert_int_equal(v->nats.frames, dv_sequences_frames(&f.sequences));
  assert_float_equal(v->nats.mean, alone, 1e-6);
  assert_float_equal(v->nats.last, chain, 1e-6);
  assert_true(chain < alone - 0.1);
  /* A model that has learned nothing, with the means of uniform numbers for biases, and a kl of its own. One
   * column is missing in a third of the frames. */
  assert_true(v->nats.learned > (N_X - 1. / 3) * log(2) - 0.1 && v->nats.learned < 20);
  dvbf_verdict_free(v);
  end(&f);
}

/* A chain of three categories: stays with 0.8, else goes on round. Entropies are those of the rows. */
static void categories_and_counts_have_chains(void **unused) {
  (void)unused;
  enum { LONG = 9000 };
  static float x[LONG * N_X];
  dv_random random = dv_random_at(6, DV_STREAM_SIMULATION, 0, 0);
  for (int counts = 0; counts < 2; counts++) {
    fixture f;
    begin(&f, counts ? "likelihood=poisson" : "likelihood=categorical categories=3,3");
    memset(x, 0, sizeof x);
    for (size_t t = 0, at[2] = {0, 2}; t < LONG; t++)
      for (int g = 0; g < 2; g++) {
        if (dv_random_uniform(&random) > 0.8) at[g] = (at[g] + 1) % 3;
        if (counts)
          x[t * N_X + (size_t)g] = (float)(at[g] * 4);
        else
          x[t * N_X + 3 * (size_t)g + at[g]] = 1;
      }
    dvbf_data data = {.train = {.count = 3, .steps = LONG / 3, .n_x = N_X, .n_u = N_U, .x = x}};
    static float u[LONG * N_U];
    data.train.u = u;
    dvbf_verdict *v = judge(f.model, &data, NULL);
    double entropy = -2 * (0.8 * log(0.8) + 0.2 * log(0.2));
    if (counts)
      assert_true(v->nats.last < v->nats.mean - 0.5);
    else
      assert_float_equal(v->nats.last, entropy, 0.03), assert_float_equal(v->nats.mean, 2 * log(3), 0.01);
    dvbf_verdict_free(v);
    end(&f);
  }
}

static bool decide_nats(char *sentence, double mean, double last, double learned, double spread) {
  static const dv_evidence plenty = {.frames = 5000, .updates = 4000, .model = "dvbf"};
  dv_evidence e = plenty;
  dvbf_verdict v = {.nats = {mean, last, learned, 16}};
  e.nats.per_frame = v.nats;
  for (int b = 0; b < DV_ROLLING_BLOCKS; b++) {
    e.nats.mean[b] = -mean, e.nats.last[b] = -last;
    e.nats.learned[b] = -learned + (b % 2 ? spread : -spread);
  }
  dv_verdict_decide(&v, &e);
  strcpy(sentence, v.sentence);
  return v.useful;
}

static void the_sentence_tells_nats(void **unused) {
  (void)unused;
  char sentence[512];
  assert_true(decide_nats(sentence, 20, 8, 4, 0.5));
  assert_string_equal(
      sentence,
      "4 nats per frame, where a Markov chain for each column has 8 and independent columns have 20");
  assert_true(decide_nats(sentence, 20, 8, 9, 0.5));
  assert_string_equal(sentence,
                      "9 nats per frame, where a Markov chain for each column has 8 and independent columns "
                      "have 20: the chains are better");
  assert_true(decide_nats(sentence, 20, NAN, 4, 0.5));
  assert_string_equal(sentence, "4 nats per frame, where independent columns have 20");
  assert_false(decide_nats(sentence, 20, 8, 19.9, 0));
  assert_false(decide_nats(sentence, 20, 8, INFINITY, 0));
  assert_false(decide_nats(sentence, 20, 8, 18, 10)); /* not by more than chance */
  assert_string_equal(
      sentence,
      "NOT better than independent columns (18 nats per frame; independent columns have 20): do not use this "
      "model; "
      "what to try: declare what drives the system with --inputs, another --seed or a larger --latent");
}

/* ---- The sentence ---- */

/* Errors of mean, last, linear and learned; those of a use that is not known are all 0. */
static void fill(dvbf_rolling *r, dv_blocks *blocks, const double errors[DVBF_WAYS], double spread) {
  r->origins = errors[0] > 0;
  for (int way = 0; way < DVBF_WAYS; way++) {
    r->score[way].rmse = errors[way];
    for (int b = 0; b < DV_ROLLING_BLOCKS; b++) {
      double off = way == DVBF_BY_LEARNED ? exp(b % 2 ? spread : -spread) : 1;
      blocks->square[way][b] = errors[way] * errors[way] * off * off;
    }
  }
}

static bool decide(char *sentence, const double free_run[DVBF_WAYS], const double one_step[DVBF_WAYS],
                   double spread, const dv_evidence *facts) {
  dvbf_verdict v = {0};
  dv_evidence e = *facts;
  fill(&v.free_run, &e.free_run, free_run, spread);
  fill(&v.one_step, &e.one_step, one_step, spread);
  dv_verdict_decide(&v, &e);
  strcpy(sentence, v.sentence);
  return v.useful;
}

static const struct {
  double free_run[DVBF_WAYS], one_step[DVBF_WAYS], spread;
  bool useful;
  const char *sentence;
} cases[] = {
    {{1, 1.4, 0.63, 0.3},
     {1, 0.1, 0.05, 0.051},
     0.1,
     true,
     "free run 2.1 times better than the best linear model, one step as good"},
    {{1, 1.4, 0.3, 0.4},
     {1, 0.1, 0.05, 0.025},
     0,
     true,
     "free run 1.3 times worse than the best linear model, one step 2.0 times better"},
    {{1, 1.4, NAN, 0.08},
     {1, 0.1, NAN, 0.3},
     0,
     true,
     "free run 12 times better than the mean, one step 3.0 times worse than repeating the last value"},
    {{1, 1.4, NAN, 1.01},
     {1, 0.5, NAN, 0.25},
     0,
     true,
     "free run as good as the mean, one step 2.0 times better than repeating the last value: use it to "
     "filter, not to simulate"},
    /* a third better on average, but not by more than chance */
    {{1, 1.4, 0.4, 0.3},
     {1, 0.1, 0.05, 0.05},
     2,
     true,
     "free run as good as the best linear model, one step as good"},
    {{1, 1.4, 0.5, 0.0001}, {0}, 0, true, "free run more than 1000 times better than the best linear model"},
    {{1, 1.4, 0.5, 1.2},
     {1, 0.1, 0.05, 0.01},
     0,
     false,
     "NOT better than the mean: do not use this model; what to try: --model linear, which is better, "
     "another "
     "--seed or a larger --latent"},
    {{1, 1.4, NAN, INFINITY},
     {1, 0.1, NAN, 0.01},
     0,
     false,
     "NOT better than the mean: do not use this model; what to try: another --seed or a larger --latent"},
    {{1, 1.4, NAN, 1},
     {1, 0.1, NAN, 0.2},
     0,
     false,
     "NOT better than the mean: do not use this model; what to try: another --seed or a larger --latent"},
    {{0},
     {0},
     0,
     true,
     "nothing to judge: the sequences are too short for the model dvbf to predict, or no column varies"},
};

static void the_sentence_says_what_the_numbers_say(void **unused) {
  (void)unused;
  static const dv_evidence plenty = {.n_u = 1, .frames = 5000, .updates = 4000, .model = "dvbf"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char sentence[512];
    bool useful = decide(sentence, cases[i].free_run, cases[i].one_step, cases[i].spread, &plenty);
    assert_string_equal(sentence, cases[i].sentence);
    assert_int_equal(useful, cases[i].useful);
  }
}

static void advice_follows_from_the_data(void **unused) {
  (void)unused;
  static const dv_evidence little = {.frames = 120, .updates = 50, .model = "dvbf"};
  static const dv_evidence none = {.model = "vae", .timeless = true};
  const double nothing[DVBF_WAYS] = {0}, bad[] = {1, 1, NAN, 3}, slow[] = {1, 0.004, NAN, 2};
  char sentence[512];
  assert_false(decide(sentence, bad, slow, 0, &little));
  assert_string_equal(sentence,
                      "NOT better than the mean: do not use this model; what to try: declare what drives the "
                      "system with --inputs, a longer sample time, as a step changes x by only 0.004 of its "
                      "deviation, more data than these 120 steps, more updates than 50, another --seed or a "
                      "larger --latent");
  assert_true(decide(sentence, nothing, nothing, 0, &none));
  assert_string_equal(sentence, "nothing to judge: the model vae does not predict");
}

/* Models that cannot filter, or that do not predict at all. */
static void other_models_are_judged_by_what_they_can(void **unused) {
  (void)unused;
  fixture f;
  begin(&f, "model=dkf");
  dvbf_data data = {.train = f.sequences};
  dvbf_verdict *v = judge(f.model, &data, NULL);
  assert_true(isnan(v->one_step.score[DVBF_BY_LEARNED].rmse));
  assert_true(isfinite(v->free_run.score[DVBF_BY_LEARNED].rmse));
  dvbf_verdict_free(v);
  end(&f);
  begin(&f, "model=vae");
  data.train = f.sequences;
  v = judge(f.model, &data, NULL);
  assert_true(v->useful);
  assert_int_equal(v->free_run.origins + v->one_step.origins, 0);
  dvbf_verdict_free(v);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_forecast_is_the_belief_without_the_frame),
      cmocka_unit_test(forecasts_are_refused_where_they_cannot_be),
      cmocka_unit_test(simple_ways_are_scored_as_here),
      cmocka_unit_test(the_model_is_scored_by_its_estimates),
      cmocka_unit_test(long_recordings_have_ten_origins),
      cmocka_unit_test(a_linear_model_is_added),
      cmocka_unit_test(constant_columns_take_no_part),
      cmocka_unit_test(noise_is_covered_and_white),
      cmocka_unit_test(whiteness_finds_correlation),
      cmocka_unit_test(errors_by_horizon_are_as_here),
      cmocka_unit_test(long_sequences_have_many_origins),
      cmocka_unit_test(bits_are_judged_by_their_likelihood),
      cmocka_unit_test(categories_and_counts_have_chains),
      cmocka_unit_test(the_sentence_tells_nats),
      cmocka_unit_test(the_sentence_says_what_the_numbers_say),
      cmocka_unit_test(advice_follows_from_the_data),
      cmocka_unit_test(other_models_are_judged_by_what_they_can),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
