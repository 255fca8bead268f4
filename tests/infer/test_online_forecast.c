/* Predictions from the belief of an online filter, against predictions over whole sequences, which share no
 * code with them but the equations; and committees, against their members. */
#include "infer/online.h"
#include "small_model.h"

#include "base/memory.h"

#include <math.h>

#include <cmocka.h>

enum { SEEN = 5, AHEAD = 3, SAMPLES = 4000 };

typedef struct holder {
  dvbf_filter *filter;
  void *memory;
} holder;

static holder open_filter(const dvbf_model *model, size_t samples, uint64_t seed) {
  holder h = {0};
  size_t size;
  dvbf_error error;
  if (dvbf_filter_memsize(&size, model, samples, &error)) fail_msg("%s", error.message);
  h.memory = dv_calloc_aligned(size, 1);
  if (dvbf_filter_init(&h.filter, h.memory, size, model, samples, seed, &error))
    fail_msg("%s", error.message);
  return h;
}

/* Frames 0 .. SEEN - 1 of sequence i. With `lead` u comes with its own frame. */
static dvbf_belief follow_to(dvbf_filter *filter, const dvbf_sequences *s, size_t i, size_t lead) {
  dvbf_belief belief = {0};
  for (size_t t = 0; t < SEEN; t++) {
    size_t at = i * STEPS + t;
    dvbf_filter_step(filter, s->x + at * N_X, t + lead ? s->u + (at + lead - 1) * N_U : NULL, &belief);
  }
  return belief;
}

typedef struct answer {
  float x[AHEAD * N_X], x_std[AHEAD * N_X], quantiles[3 * AHEAD * N_X], z_mean[AHEAD * 3], z_std[AHEAD * 3];
} answer;

static const double SHARES[] = {0.1, 0.5, 0.9};

static void ask(answer *a, dvbf_filter *filter, const float *u) {
  dvbf_error error;
  dvbf_forecast_request q = {.steps = AHEAD,
                             .u = u,
                             .n_quantiles = 3,
                             .quantiles = SHARES,
                             .x = a->x,
                             .x_std = a->x_std,
                             .x_quantiles = a->quantiles,
                             .z_mean = a->z_mean,
                             .z_std = a->z_std};
  if (dvbf_filter_predict(filter, &q, &error)) fail_msg("%s", error.message);
}

/* The first frames are observed, the others predicted, by dvbf_estimate. */
static dvbf_estimates *whole(const dvbf_model *m, const dvbf_sequences *s) {
  dvbf_settings *settings = NULL;
  dvbf_estimates *e = NULL;
  dvbf_error error;
  static const char *const values[][2] = {
      {"observe", "5"}, {"steps", "3"}, {"samples", "4000"}, {"quantiles", "0.1,0.5,0.9"}, {"threads", "1"}};
  assert_int_equal(dvbf_settings_new(&settings, "predict", NULL), DVBF_OK);
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    assert_int_equal(dvbf_settings_set(settings, values[i][0], values[i][1], NULL), DVBF_OK);
  if (dvbf_estimate(&e, m, s, settings, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return e;
}

/* ---- A single model ---- */

/* Means, deviations and quantiles agree within what so many samples let expect. */
static void compare(const char *text, bool lead) {
  fixture f;
  begin(&f, text);
  for (size_t i = 0; i < f.model->parameters.size; i++)
    f.model->parameters.values[i] += 0.03f * (float)sin((double)i);
  dvbf_sequences two = f.sequences;
  uint32_t *lengths = two.length;
  two.count = 2;
  two.length = NULL;
  dvbf_estimates *e = whole(f.model, &two);
  holder h = open_filter(f.model, SAMPLES, 3);
  for (size_t i = 0; i < 2; i++) {
    answer a;
    dvbf_filter_reset(h.filter);
    assert_true(follow_to(h.filter, &two, i, lead).ready);
    ask(&a, h.filter, two.u + (i * STEPS + SEEN - (lead ? 0 : 1)) * N_U);
    for (size_t k = 0; k < AHEAD * N_X; k++) {
      double deviation = (double)e->x_std[i * AHEAD * N_X + k], error = deviation * sqrt(2.0 / SAMPLES);
      assert_float_equal(a.x[k], e->x[i * AHEAD * N_X + k], 5 * error);
      assert_float_equal(a.x_std[k], deviation, 0.1 * deviation);
      for (size_t q = 0; q < 3; q++)
        assert_float_equal(a.quantiles[q * AHEAD * N_X + k], e->x_quantiles[((q * 2 + i) * AHEAD) * N_X + k],
                           0.15 * deviation);
    }
    for (size_t k = 0; k < AHEAD * 3; k++)
      assert_float_equal(a.z_std[k], e->z_std[i * AHEAD * 3 + k],
                         0.15 * (double)e->z_std[i * AHEAD * 3 + k] + 1e-6);
  }
  dv_free(h.memory);
  dvbf_estimates_free(e);
  f.sequences.length = lengths;
  end(&f);
}

static void agrees_with_predictions(void **state) {
  (void)state;
  compare("universal=point", false);
  compare("universal=point x-scaling=standardise u-scaling=standardise sigma=dimension", false);
  compare("universal=point likelihood=student-t degrees-of-freedom=6", false);
}

static void agrees_with_feedthrough(void **state) {
  (void)state;
  compare("universal=point feedthrough=on", true);
}

/* Their own frames are fed back, and the last that was seen. */
static void agrees_where_frames_are_fed_back(void **state) {
  (void)state;
  compare("model=vrnn latent=1 units=2", false);
  compare("model=storn latent=1 units=1", false);
  compare("model=e2c", false);
  compare("model=svae latent=1", false);
  compare("model=vrnn latent=1 units=2 likelihood=student-t degrees-of-freedom=6 feedthrough=on", true);
}

/* A linear model knows all of it. */
static dvbf_model *fit_linear(const dvbf_sequences *s) {
  dvbf_settings *settings = NULL;
  dvbf_model *model = NULL;
  dvbf_error error;
  dvbf_data data = {.train = *s};
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  static const char *const values[][2] = {
      {"model", "linear"}, {"latent", "3"}, {"threads", "1"}, {"x-scaling", "standardise"}};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    assert_int_equal(dvbf_settings_set(settings, values[i][0], values[i][1], NULL), DVBF_OK);
  if (dvbf_train(&model, settings, &data, NULL, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return model;
}

/* u acts on x directly, whatever was found; or not. */
static void set_feedthrough(dvbf_model *model, bool on) {
  for (size_t i = 0; i < model->parameters.count; i++)
    for (size_t k = 0; k < N_U * N_X && !strcmp(model->parameters.list[i].name, "emission.u"); k++)
      model->parameters.values[model->parameters.list[i].offset + k] = on ? 0.1f * (float)(k + 1) : 0;
}

/* The states of every step, with a gap, are those of the filter over whole sequences. */
static void states_agree(const dvbf_model *model, const dvbf_sequences *s, bool lead) {
  dvbf_settings *settings = NULL;
  dvbf_estimates *e = NULL;
  dvbf_error error;
  dvbf_belief belief;
  holder h = open_filter(model, 1, 3);
  for (size_t k = 0; k < N_X; k++) s->x[3 * N_X + k] = NAN;
  s->x[4 * N_X] = NAN;
  assert_int_equal(dvbf_settings_new(&settings, "filter", NULL), DVBF_OK);
  if (dvbf_estimate(&e, model, s, settings, &error)) fail_msg("%s", error.message);
  for (size_t t = 0; t < STEPS; t++) {
    const float *x = t == 3 ? NULL : s->x + t * N_X;
    dvbf_filter_step(h.filter, x, t + lead ? s->u + (t + lead - 1) * N_U : NULL, &belief);
    for (size_t k = 0; k < 3; k++) {
      assert_float_equal(belief.mean[k], e->z_mean[t * 3 + k], 1e-5);
      assert_float_equal(belief.deviation[k], e->z_std[t * 3 + k], 1e-5);
    }
  }
  dvbf_settings_free(settings);
  dvbf_estimates_free(e);
  dv_free(h.memory);
}

static void predictions_agree(const dvbf_model *model, const dvbf_sequences *s, bool lead) {
  dvbf_estimates *e = whole(model, s);
  holder h = open_filter(model, 16, 3);
  for (size_t i = 0; i < 2; i++) {
    answer a;
    dvbf_filter_reset(h.filter);
    follow_to(h.filter, s, i, lead);
    ask(&a, h.filter, s->u + (i * STEPS + SEEN - (lead ? 0 : 1)) * N_U);
    for (size_t k = 0; k < AHEAD * N_X; k++) {
      assert_float_equal(a.x[k], e->x[i * AHEAD * N_X + k], 1e-4);
      assert_float_equal(a.x_std[k], e->x_std[i * AHEAD * N_X + k], 1e-4);
      for (size_t q = 0; q < 3; q++)
        assert_float_equal(a.quantiles[q * AHEAD * N_X + k], e->x_quantiles[((q * 2 + i) * AHEAD) * N_X + k],
                           1e-4);
    }
    for (size_t k = 0; k < AHEAD * 3; k++)
      assert_float_equal(a.z_mean[k], e->z_mean[i * AHEAD * 3 + k], 1e-4);
  }
  dv_free(h.memory);
  dvbf_estimates_free(e);
}

static void linear_is_exact(void **state) {
  (void)state;
  for (int lead = 0; lead < 2; lead++) {
    fixture f;
    begin(&f, "");
    dvbf_model *model = fit_linear(&f.sequences);
    set_feedthrough(model, lead);
    assert_int_equal(dvbf_model_describe(model).feedthrough, lead);
    dvbf_sequences two = f.sequences;
    two.count = 2;
    two.length = NULL;
    two.gaps = true;
    predictions_agree(model, &two, lead);
    states_agree(model, &two, lead);
    dvbf_jacobian *linear = NULL;
    dvbf_jacobians j;
    float z[3] = {0}, u[N_U] = {0};
    assert_int_equal(dvbf_jacobian_new(&linear, model, NULL), DVBF_OK);
    dvbf_jacobian_at(linear, z, u, &j);
    double sum = 0;
    for (size_t k = 0; k < N_X * N_U; k++) sum += fabs((double)j.d[k]);
    assert_true(lead ? sum > 0.01 : sum == 0);
    dvbf_jacobian_free(linear);
    dvbf_model_free(model);
    end(&f);
  }
}

/* Predictions leave no trace, and the same belief gives the same ones. */
static void belief_stays(const dvbf_model *model, const dvbf_sequences *s) {
  holder one = open_filter(model, 8, 4), other = open_filter(model, 8, 4);
  size_t bytes = 8 * (size_t)model->n_z * sizeof(float);
  answer first, second;
  dvbf_belief a, b;
  memset(&first, 0, sizeof first);
  memset(&second, 0, sizeof second);
  follow_to(one.filter, s, 0, 0);
  follow_to(other.filter, s, 0, 0);
  unsigned long before = dv_allocations();
  for (size_t t = SEEN; t < STEPS; t++) {
    ask(&first, one.filter, s->u);
    ask(&second, one.filter, s->u);
    assert_memory_equal(&first, &second, sizeof first);
    dvbf_filter_step(one.filter, s->x + t * N_X, s->u + (t - 1) * N_U, &a);
    dvbf_filter_step(other.filter, s->x + t * N_X, s->u + (t - 1) * N_U, &b);
    assert_memory_equal(a.z, b.z, bytes);
    assert_memory_equal(a.deviation, b.deviation, (size_t)model->n_z * sizeof(float));
  }
  assert_int_equal(dv_allocations(), before);
  dv_free(one.memory);
  dv_free(other.memory);
}

static void predictions_leave_no_trace(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  belief_stays(f.model, &f.sequences);
  dvbf_model *linear = fit_linear(&f.sequences);
  belief_stays(linear, &f.sequences);
  assert_int_equal(dv_model_add_member(f.model, linear, NULL), DVBF_OK);
  belief_stays(f.model, &f.sequences);
  end(&f);
}

static void wrong_questions_are_refused(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  holder h = open_filter(f.model, 4, 1);
  dvbf_error error;
  dvbf_belief belief;
  float u[AHEAD * N_U] = {0};
  double share = 1;
  dvbf_forecast_request q = {.steps = AHEAD, .u = u};
  dvbf_filter_step(h.filter, f.sequences.x, NULL, &belief);
  assert_int_equal(dvbf_filter_predict(h.filter, &q, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "needs 3 frames and has seen 1"));
  follow_to(h.filter, &f.sequences, 0, 0);
  assert_int_equal(dvbf_filter_predict(h.filter, &q, &error), DVBF_OK); /* nothing is wanted */
  q.u = NULL;
  assert_int_equal(dvbf_filter_predict(h.filter, &q, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "2 controls"));
  q = (dvbf_forecast_request){.steps = AHEAD, .u = u, .n_quantiles = 1, .quantiles = &share};
  assert_int_equal(dvbf_filter_predict(h.filter, &q, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "quantile 1"));
  q = (dvbf_forecast_request){.u = u};
  assert_int_equal(dvbf_filter_predict(h.filter, &q, &error), DVBF_ARGUMENT);
  dv_free(h.memory);
  end(&f);
}

/* ---- A committee ---- */

static int compare_floats(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* The committee says what filters of its members say together, each with its own seed and its own way to take
 * controls. */
static void committees_pool(void **state) {
  (void)state;
  enum { MEMBERS = 4, FEW = 6 };
  static const char *const texts[] = {"", "latent=2 hidden=4 feedthrough=on", "initial-frames=4"};
  fixture f, others[2];
  answer all, each[MEMBERS];
  holder alone[MEMBERS];
  dvbf_belief belief, best;
  begin(&f, texts[0]);
  for (int i = 0; i < 2; i++) begin(&others[i], texts[i + 1]);
  dvbf_model *linear = fit_linear(&f.sequences);
  const dvbf_model *member[MEMBERS] = {f.model, others[0].model, others[1].model, linear};
  for (int i = 0; i < MEMBERS; i++) alone[i] = open_filter(member[i], FEW, 7 + (uint64_t)i);
  for (int i = 1; i < MEMBERS; i++)
    assert_int_equal(dv_model_add_member(f.model, (dvbf_model *)(uintptr_t)member[i], NULL), DVBF_OK);
  holder h = open_filter(f.model, FEW, 7);
  dvbf_filter_step(h.filter, f.sequences.x, f.sequences.u, &belief);
  assert_false(belief.ready); /* though the linear model is */
  dvbf_filter_reset(h.filter);
  belief = follow_to(h.filter, &f.sequences, 0, 1);
  assert_true(belief.ready);
  ask(&all, h.filter, f.sequences.u + SEEN * N_U);
  for (int i = 0; i < MEMBERS; i++) {
    bool lead = i == 1;
    dvbf_belief one = follow_to(alone[i].filter, &f.sequences, 0, lead);
    if (!i) best = one;
    ask(&each[i], alone[i].filter, f.sequences.u + (SEEN - (lead ? 0 : 1)) * N_U);
  }
  assert_memory_equal(belief.z, best.z, FEW * 3 * sizeof(float));
  assert_memory_equal(all.z_mean, each[0].z_mean, sizeof all.z_mean);
  for (size_t k = 0; k < (AHEAD - 1) * N_X; k++) { /* at the last step the committee knows more of u */
    double mean = 0, squares = 0;
    for (int i = 0; i < MEMBERS; i++) {
      double x = (double)each[i].x[k], deviation = (double)each[i].x_std[k];
      mean += x / MEMBERS;
      squares += (x * x + deviation * deviation) / MEMBERS;
    }
    assert_float_equal(all.x[k], mean, 1e-5);
    assert_float_equal(all.x_std[k], sqrt(squares - mean * mean), 1e-4);
  }
  for (size_t k = 0; k < N_X; k++) { /* the samples of the last step are still there */
    float sorted[MEMBERS * FEW];
    for (size_t i = 0; i < MEMBERS * FEW; i++) sorted[i] = h.filter->rows[i][k];
    qsort(sorted, MEMBERS * FEW, sizeof *sorted, compare_floats);
    double median = ((double)sorted[11] + (double)sorted[12]) / 2;
    assert_float_equal(all.quantiles[(AHEAD + AHEAD - 1) * N_X + k], median, 1e-6);
  }
  for (int i = 0; i < MEMBERS; i++) dv_free(alone[i].memory);
  dv_free(h.memory);
  for (int i = 0; i < 2; i++) dvbf_sequences_free(&others[i].sequences);
  end(&f);
}

/* Members that only forecast, or only predict further: the first step is made of the former, the others of
 * the latter, quantiles too. A member that takes no further part leaves those that do as they are. */
static void members_take_part_in_their_use(void **state) {
  (void)state;
  enum { MEMBERS = 3, FEW = 6 };
  fixture f, others[2];
  answer all, each[MEMBERS];
  holder alone[MEMBERS];
  begin(&f, "");
  begin(&others[0], "latent=2 hidden=4");
  begin(&others[1], "initial-frames=4");
  dvbf_model *member[MEMBERS] = {f.model, others[0].model, others[1].model};
  for (int i = 0; i < MEMBERS; i++) {
    alone[i] = open_filter(member[i], FEW, 7 + (uint64_t)i);
    follow_to(alone[i].filter, &f.sequences, 0, 0);
    ask(&each[i], alone[i].filter, f.sequences.u + (SEEN - 1) * N_U);
  }
  for (int i = 1; i < MEMBERS; i++) assert_int_equal(dv_model_add_member(f.model, member[i], NULL), DVBF_OK);
  member[0]->no_forecasts = member[2]->no_forecasts = member[1]->no_predictions = true;
  holder h = open_filter(f.model, FEW, 7);
  follow_to(h.filter, &f.sequences, 0, 0);
  ask(&all, h.filter, f.sequences.u + (SEEN - 1) * N_U);
  for (size_t k = 0; k < N_X; k++) {
    assert_float_equal(all.x[k], each[1].x[k], 1e-6);
    assert_float_equal(all.x_std[k], each[1].x_std[k], 1e-6);
    for (size_t q = 0; q < 3; q++)
      assert_float_equal(all.quantiles[q * AHEAD * N_X + k], each[1].quantiles[q * AHEAD * N_X + k], 1e-6);
  }
  for (size_t k = N_X; k < AHEAD * N_X; k++)
    assert_float_equal(all.x[k], ((double)each[0].x[k] + (double)each[2].x[k]) / 2, 1e-5);
  assert_memory_equal(all.z_mean, each[0].z_mean, sizeof all.z_mean);
  for (int i = 0; i < MEMBERS; i++) dv_free(alone[i].memory);
  dv_free(h.memory);
  for (int i = 0; i < 2; i++) dvbf_sequences_free(&others[i].sequences);
  end(&f);
}

/* Whoever cannot filter makes a committee that cannot. */
static void smoothers_are_refused(void **state) {
  (void)state;
  fixture f, g;
  size_t size;
  dvbf_error error;
  begin(&f, "");
  begin(&g, "model=dkf");
  assert_int_equal(dv_model_add_member(f.model, g.model, NULL), DVBF_OK);
  assert_int_equal(dvbf_filter_memsize(&size, f.model, 4, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "cannot filter"));
  dvbf_sequences_free(&g.sequences);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_predictions),
      cmocka_unit_test(agrees_with_feedthrough),
      cmocka_unit_test(agrees_where_frames_are_fed_back),
      cmocka_unit_test(linear_is_exact),
      cmocka_unit_test(predictions_leave_no_trace),
      cmocka_unit_test(wrong_questions_are_refused),
      cmocka_unit_test(committees_pool),
      cmocka_unit_test(members_take_part_in_their_use),
      cmocka_unit_test(smoothers_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
