/* The library without files: data from arrays, estimates into arrays, models as bytes, weights by name, and
 * a flag that ends the work. */
#include "files.h"
#include "given.h"
#include "small_model.h"

#include "base/memory.h"

#include <dvbf/report.h>
#include <math.h>

#include <cmocka.h>

/* ---- Data ---- */

enum { N = 12, T = 10 };

typedef struct arrays {
  float x[N][T][3], u[N][T][2], state[N][T][1];
  dvbf_array list[3];
} arrays;

static void make_arrays(arrays *a) {
  dv_random random = dv_random_at(4, DV_STREAM_SIMULATION, 0, 0);
  float *all[] = {&a->x[0][0][0], &a->u[0][0][0], &a->state[0][0][0]};
  static const char *const names[] = {"x", "u", "state"};
  for (size_t k = 0; k < 3; k++) {
    for (size_t i = 0; i < N * T * (3 - k); i++) all[k][i] = (float)dv_random_normal(&random);
    a->list[k] = (dvbf_array){
        .name = names[k], .type = DVBF_FLOAT32, .rank = 3, .dims = {N, T, 3 - k}, .values = all[k]};
  }
}

static dvbf_data *from(const dvbf_array *list, size_t count, const dvbf_settings *how) {
  dvbf_data *data = NULL;
  dvbf_error error;
  if (dvbf_data_from(&data, list, count, how, &error)) fail_msg("%s", error.message);
  return data;
}

static void expect_refused(const dvbf_array *list, size_t count, const char *sentence) {
  dvbf_data *data = NULL;
  dvbf_error error;
  assert_int_not_equal(dvbf_data_from(&data, list, count, NULL, &error), DVBF_OK);
  if (!strstr(error.message, sentence)) fail_msg("%s", error.message);
  assert_null(data);
}

/* x, u and state of all sequences. */
static void expect_same(const dvbf_sequences *one, const dvbf_sequences *other) {
  assert_int_equal(one->count, other->count);
  assert_int_equal(one->steps, other->steps);
  assert_int_equal(one->n_x, other->n_x);
  assert_int_equal(one->n_u, other->n_u);
  assert_int_equal(one->n_s, other->n_s);
  assert_int_equal(one->gaps, other->gaps);
  dvbf_sequences a = {0}, b = {0};
  if (!one->count) return;
  assert_int_equal(dvbf_sequences_copy(&a, one, 0, one->count, NULL), DVBF_OK);
  assert_int_equal(dvbf_sequences_copy(&b, other, 0, other->count, NULL), DVBF_OK);
  size_t frames = a.count * a.steps;
  assert_memory_equal(a.x, b.x, frames * a.n_x * sizeof *a.x);
  if (a.n_u) assert_memory_equal(a.u, b.u, frames * a.n_u * sizeof *a.u);
  if (a.n_s) assert_memory_equal(a.state, b.state, frames * a.n_s * sizeof *a.state);
  for (size_t i = 0; i < a.count; i++)
    assert_int_equal(dvbf_sequence_length(&a, i), dvbf_sequence_length(&b, i));
  dvbf_sequences_free(&a);
  dvbf_sequences_free(&b);
}

static void expect_same_data(const dvbf_data *one, const dvbf_data *other) {
  expect_same(&one->train, &other->train);
  expect_same(&one->valid, &other->valid);
  expect_same(&one->test, &other->test);
  assert_int_equal(one->image_height, other->image_height);
}

static void arrays_are_what_a_file_is(void **state) {
  (void)state;
  arrays a;
  dvbf_data *file = NULL;
  make_arrays(&a);
  dvbf_error error;
  if (dvbf_arrays_write(in_folder("arrays.npz"), a.list, 3, &error)) fail_msg("%s", error.message);
  if (dvbf_data_read(&file, in_folder("arrays.npz"), NULL, &error)) fail_msg("%s", error.message);
  dvbf_data *data = from(a.list, 3, NULL);
  expect_same_data(data, file);
  dvbf_data_free(file);
  /* Nothing is copied, and nothing of the caller's is freed. */
  assert_ptr_equal(data->train.x, a.x);
  assert_ptr_equal(data->valid.u, a.u);
  assert_ptr_equal(data->test.state, a.state);
  dvbf_data_free(data);
}

/* Sequences of their own, as numbers of any type, copied or read where they lie. */
static void sequences_of_their_own(void **state) {
  (void)state;
  arrays a;
  double x[N][T][3];
  char names[2 * N][8];
  dvbf_array list[2 * N];
  dvbf_settings *how = NULL;
  make_arrays(&a);
  for (size_t i = 0; i < N; i++) {
    size_t steps = T - i % 3;
    for (size_t k = 0; k < T * 3; k++) (&x[i][0][0])[k] = (double)(&a.x[i][0][0])[k];
    snprintf(names[2 * i], sizeof names[0], "%zu/x", i);
    snprintf(names[2 * i + 1], sizeof names[0], "%zu/u", i);
    list[2 * i] = (dvbf_array){
        .name = names[2 * i], .type = DVBF_FLOAT64, .rank = 2, .dims = {steps, 3}, .values = x[i]};
    list[2 * i + 1] = (dvbf_array){
        .name = names[2 * i + 1], .type = DVBF_FLOAT32, .rank = 2, .dims = {steps - 1, 2}, .values = a.u[i]};
  }
  assert_int_equal(dvbf_settings_new(&how, "data", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(how, "split-by", "sequence", NULL), DVBF_OK);
  dvbf_data *copied = from(list, 2 * N, how);
  assert_non_null(copied->train.x);
  assert_int_equal(copied->train.count, N - 2);
  for (size_t i = 0; i < N - 2; i++) {
    size_t steps = T - i % 3, at = dvbf_sequence_start(&copied->train, i);
    assert_int_equal(dvbf_sequence_length(&copied->train, i), steps);
    assert_memory_equal(copied->train.x + at * 3, a.x[i], steps * 3 * sizeof(float));
    assert_memory_equal(copied->train.u + at * 2, a.u[i], (steps - 1) * 2 * sizeof(float));
  }
  assert_int_equal(dvbf_settings_set(how, "memory", "0", NULL), DVBF_OK);
  dvbf_data *read = from(list, 2 * N, how);
  assert_null(read->train.x);
  expect_same_data(read, copied);
  dvbf_data_free(read);
  dvbf_data_free(copied);
  dvbf_settings_free(how);
}

static void bytes_are_pixels(void **state) {
  (void)state;
  unsigned char x[N][T][4][4];
  for (size_t i = 0; i < sizeof x; i++) (&x[0][0][0][0])[i] = (unsigned char)(i * 7);
  dvbf_array list = {.name = "x", .type = DVBF_UINT8, .rank = 4, .dims = {N, T, 4, 4}, .values = x};
  dvbf_data *data = from(&list, 1, NULL);
  assert_int_equal(data->image_height, 4);
  assert_true(data->train.x[9] == 63 / 255.f);
  dvbf_data_free(data);
}

/* Padded sequences are copied, as there must be zeros behind their ends. */
static void padding_is_cleared(void **state) {
  (void)state;
  arrays a;
  int64_t length[N];
  make_arrays(&a);
  for (int i = 0; i < N; i++) length[i] = T - i % 2;
  dvbf_array list[] = {a.list[0],
                       {.name = "length", .type = DVBF_INT64, .rank = 1, .dims = {N}, .values = length}};
  dvbf_settings *how = NULL;
  assert_int_equal(dvbf_settings_new(&how, "data", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(how, "split-by", "none", NULL), DVBF_OK);
  dvbf_data *data = from(list, 2, how);
  assert_ptr_not_equal(data->train.x, a.x);
  assert_true(data->train.x[(2 * T - 1) * 3] == 0);
  assert_true(a.x[1][T - 1][0] != 0);
  dvbf_data_free(data);
  dvbf_settings_free(how);
}

static void wrong_arrays_are_refused(void **state) {
  (void)state;
  arrays a;
  make_arrays(&a);
  dvbf_array list[] = {a.list[0], a.list[1], a.list[0]};
  expect_refused(list, 3, "two arrays named x");
  expect_refused(list, 0, "it holds no array");
  list[1].dims[0] = N - 1;
  expect_refused(list, 2, "data: u has the shape [11, 10, 2]");
  list[1] = (dvbf_array){.type = DVBF_FLOAT32};
  expect_refused(list, 2, "array 1 needs a name");
  list[1] = (dvbf_array){.name = "u", .type = DVBF_FLOAT32, .rank = 1, .dims = {3}};
  expect_refused(list, 2, "u cannot be read");
  a.x[3][2][1] = NAN;
  expect_refused(list, 1, "missing = nan");
  list[0].dims[1] = 0;
  expect_refused(list, 1, "is empty");
}

static void columns_have_names(void **state) {
  (void)state;
  arrays a;
  dvbf_error error;
  make_arrays(&a);
  dvbf_data *data = from(a.list, 3, NULL);
  assert_null(data->x_names);
  assert_int_equal(dvbf_data_name(data, "x", 1, "speed", &error), DVBF_OK);
  assert_int_equal(dvbf_data_name(data, "state", 0, "phi", &error), DVBF_OK);
  assert_string_equal(data->x_names[0], "x0");
  assert_string_equal(data->x_names[1], "speed");
  assert_string_equal(data->state_names[0], "phi");
  assert_int_equal(dvbf_data_name(data, "u", 2, "volts", &error), DVBF_ARGUMENT);
  assert_int_equal(dvbf_data_name(data, "y", 0, "volts", &error), DVBF_ARGUMENT);
  assert_int_equal(dvbf_data_name(data, "u", 0, "", &error), DVBF_ARGUMENT);
  dvbf_data_free(data);
}

/* ---- Models ---- */

static void models_are_bytes(void **state) {
  (void)state;
  fixture f, g;
  void *bytes = NULL;
  size_t size = 0, length = 0;
  dvbf_model *again = NULL;
  dvbf_error error;
  begin(&f, "");
  begin(&g, "latent=2");
  assert_int_equal(dv_model_add_member(f.model, g.model, NULL), DVBF_OK);
  assert_int_equal(dvbf_model_to_bytes(&bytes, &size, f.model, &error), DVBF_OK);
  assert_int_equal(dvbf_model_save(f.model, in_folder("memory.safetensors"), &error), DVBF_OK);
  char *file = (char *)read_bytes(in_folder("memory.safetensors"), &length);
  assert_int_equal(length, size);
  assert_memory_equal(file, bytes, size);
  if (dvbf_model_from_bytes(&again, bytes, size, &error)) fail_msg("%s", error.message);
  assert_int_equal(dvbf_model_describe(again).members, 2);
  assert_int_equal(dvbf_model_describe(dvbf_model_member(again, 1)).n_z, 2);
  assert_ptr_equal(dvbf_model_member(again, 0), again);
  assert_null(dvbf_model_member(again, 2));
  assert_null(dvbf_model_linear(again));
  dvbf_model_free(again);
  again = NULL;
  assert_int_equal(dvbf_model_from_bytes(&again, bytes, size - 1, &error), DVBF_FORMAT);
  assert_int_equal(dvbf_model_from_bytes(&again, NULL, 0, &error), DVBF_FORMAT);
  assert_null(again);
  f.model->parameters.values[0] = NAN;
  void *none = NULL;
  assert_int_equal(dvbf_model_to_bytes(&none, &length, f.model, &error), DVBF_NUMERIC);
  assert_null(none);
  free(file);
  dvbf_bytes_free(bytes);
  dvbf_sequences_free(&g.sequences);
  end(&f);
}

static void weights_by_name(void **state) {
  (void)state;
  fixture f;
  dvbf_error error;
  dvbf_parameter_info info;
  begin(&f, "");
  for (size_t i = 0; dvbf_model_parameter(f.model, i, &info); i++) {
    size_t size = info.rows * info.columns;
    float *values = calloc(size, sizeof *values);
    assert_int_equal(dvbf_model_weights(f.model, info.name, values, size, &error), DVBF_OK);
    assert_memory_equal(values, f.model->parameters.values + f.model->parameters.list[i].offset,
                        size * sizeof *values);
    assert_int_equal(dvbf_model_weights(f.model, info.name, values, size + 1, &error), DVBF_ARGUMENT);
    free(values);
  }
  assert_int_equal(dvbf_model_weights(f.model, "no such", NULL, 0, &error), DVBF_ARGUMENT);
  end(&f);
}

/* ---- Estimates ---- */

static float *room(size_t a, size_t b, size_t c, size_t d) {
  float *values = malloc(a * b * c * d * sizeof *values + 4);
  memset(values, 0x7f, a * b * c * d * sizeof *values + 4);
  return values;
}

static void take(float *got, const float *wanted, size_t count) {
  if (got && wanted) assert_memory_equal(got, wanted, count * sizeof *got);
  free(got);
}

static void fills_arrays(const fixture *f, const char *table, const char *text, bool all) {
  dvbf_settings *settings = settings_of(table, text);
  dvbf_estimates e = {0}, *own = NULL;
  dvbf_error error;
  if (dvbf_estimate(&own, f->model, &f->sequences, settings, &error)) fail_msg("%s", error.message);
  assert_int_equal(dvbf_estimates_sizes(&e, f->model, &f->sequences, settings, &error), DVBF_OK);
  assert_int_equal(e.count, own->count);
  assert_int_equal(e.first, own->first);
  size_t n = e.count, s = e.samples, t = e.steps;
  e.x = room(n, t, e.n_x, 1);
  e.x_std = room(n, t, e.n_x, 1);
  if (all) {
    e.z = room(n, s, t, e.n_z);
    e.z_mean = room(n, t, e.n_z, 1);
    e.z_std = room(n, t, e.n_z, 1);
    e.x_quantiles = room(e.n_quantiles, n, t, e.n_x);
    e.x_samples = room(n, s, t, e.n_x);
    e.u = room(n, t, e.n_u, 1);
    e.length = calloc(n, sizeof *e.length);
    e.quantiles = calloc(e.n_quantiles + 1, sizeof *e.quantiles);
  }
  if (dvbf_estimate_into(&e, f->model, &f->sequences, settings, &error)) fail_msg("%s", error.message);
  take(e.x, own->x, n * t * e.n_x);
  take(e.x_std, own->x_std, n * t * e.n_x);
  take(e.z, own->z, n * s * t * e.n_z);
  take(e.z_mean, own->z_mean, n * t * e.n_z);
  take(e.z_std, own->z_std, n * t * e.n_z);
  take(e.x_quantiles, own->x_quantiles, e.n_quantiles * n * t * e.n_x);
  take(e.x_samples, own->x_samples, n * s * t * e.n_x);
  take(e.u, own->u, n * t * e.n_u);
  for (size_t i = 0; all && i < n; i++) assert_int_equal(e.length[i], own->length ? own->length[i] : t);
  for (size_t i = 0; all && i < e.n_quantiles; i++) assert_true(e.quantiles[i] == own->quantiles[i]);
  free(e.length);
  free(e.quantiles);
  dvbf_estimates_free(own);
  dvbf_settings_free(settings);
}

static void estimates_into_arrays(void **state) {
  (void)state;
  static const char *const ways[][2] = {{"filter", "samples=3"},
                                        {"filter", "samples=3 x-samples=on"},
                                        {"filter", "samples=3 forecast=on"},
                                        {"smooth", "samples=3 particles=5"},
                                        {"predict", "samples=3 observe=4"},
                                        {"predict", "samples=3 observe=4 x-samples=on quantiles=none"},
                                        {"sample", "count=5 steps=4 controls=zero"}};
  for (int committee = 0; committee < 2; committee++) {
    fixture f, g;
    begin(&f, "");
    begin(&g, "latent=2");
    if (committee) assert_int_equal(dv_model_add_member(f.model, g.model, NULL), DVBF_OK);
    if (committee) g.model = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
      for (int all = 0; all < 2; all++) fills_arrays(&f, ways[i][0], ways[i][1], all);
    end(&g);
    end(&f);
  }
}

static void other_sizes_are_refused(void **state) {
  (void)state;
  fixture f;
  dvbf_error error;
  dvbf_estimates e = {0};
  float x[1];
  dvbf_settings *settings = settings_of("filter", "samples=3");
  begin(&f, "");
  assert_int_equal(dvbf_estimates_sizes(&e, f.model, &f.sequences, settings, &error), DVBF_OK);
  e.steps--;
  e.x = x;
  assert_int_equal(dvbf_estimate_into(&e, f.model, &f.sequences, settings, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "dvbf_estimates_sizes"));
  dvbf_settings_free(settings);
  end(&f);
}

/* ---- A flag ends the work ---- */

static void estimates_are_stopped(void **state) {
  (void)state;
  static const char *const ways[][2] = {{"filter", "samples=3"},
                                        {"filter", "samples=3 forecast=on"},
                                        {"smooth", "samples=3 particles=5"},
                                        {"predict", "samples=3 observe=4"}};
  fixture f;
  volatile int flag = 1;
  begin(&f, "");
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    dvbf_settings *settings = settings_of(ways[i][0], ways[i][1]), *copy = NULL;
    dvbf_estimates *e = NULL;
    dvbf_error error;
    dvbf_settings_interrupt(settings, &flag);
    assert_int_equal(dvbf_estimate(&e, f.model, &f.sequences, settings, &error), DVBF_STOPPED);
    assert_null(e);
    assert_int_equal(dvbf_settings_copy(&copy, settings, NULL), DVBF_OK);
    assert_int_equal(dvbf_estimate(&e, f.model, &f.sequences, copy, &error), DVBF_OK);
    dvbf_estimates_free(e);
    dvbf_settings_free(copy);
    dvbf_settings_free(settings);
  }
  end(&f);
}

static void judgements_are_stopped(void **state) {
  (void)state;
  fixture f;
  volatile int flag = 1;
  dvbf_settings *settings = settings_of("evaluate", "samples=2 particles=5 split=train");
  dvbf_evaluation *evaluation = NULL;
  dvbf_verdict *verdict = NULL;
  dvbf_error error;
  bool added = false;
  begin(&f, "");
  dvbf_data data = {.train = f.sequences};
  for (flag = 1; flag >= 0; flag--) {
    dvbf_status wanted = flag ? DVBF_STOPPED : DVBF_OK;
    dvbf_settings_interrupt(settings, &flag);
    assert_int_equal(dvbf_evaluate(&evaluation, f.model, &data, &data.train, settings, &error), wanted);
    assert_int_equal(dvbf_model_add_linear(&added, f.model, &data, settings, &error), wanted);
    assert_int_equal(added, !flag);
    assert_int_equal(dvbf_verdict_new(&verdict, f.model, &data, NULL, settings, &error), wanted);
  }
  flag = 1;
  const char *path = in_folder("stopped.html");
  assert_int_equal(dvbf_report_write(path, f.model, &data, settings, NULL, &error), DVBF_STOPPED);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(rmdir(in_folder("figures")), 0); /* nothing was drawn */
  dvbf_evaluation_free(evaluation);
  dvbf_verdict_free(verdict);
  dvbf_settings_free(settings);
  end(&f);
}

static volatile int stop;
static bool set_flag(const dvbf_progress *progress, void *user_data) {
  (void)user_data;
  if (progress->validated) stop = 1;
  return true;
}

static void training_is_stopped(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  static const char *const ways[] = {"validate-every=5 updates=100000 threads=1",
                                     "validate-every=5 updates=100000 threads=1 search=on candidates=2"};
  for (int i = 0; i < 2; i++) {
    dvbf_settings *settings = make_settings(ways[i]);
    dvbf_model *model = NULL;
    dvbf_error error;
    dvbf_data data = {.train = f.sequences};
    dvbf_train_options options = {.progress = set_flag};
    stop = i; /* the search is told before it begins: there is no model yet */
    dvbf_settings_interrupt(settings, &stop);
    assert_int_equal(dvbf_train(&model, settings, &data, &options, &error), i ? DVBF_STOPPED : DVBF_OK);
    if (!i) assert_int_equal(dvbf_model_describe(model).updates, 5);
    dvbf_model_free(model);
    dvbf_settings_free(settings);
  }
  end(&f);
}

static void abilities(void **state) {
  (void)state;
  dvbf_capabilities a = dvbf_get_capabilities();
  assert_string_equal(a.version, dvbf_version());
  assert_true(!strcmp(a.instructions, "base") || !strcmp(a.instructions, "v3") ||
              !strcmp(a.instructions, "v4"));
  assert_true(a.cores >= 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_are_what_a_file_is), cmocka_unit_test(sequences_of_their_own),
      cmocka_unit_test(bytes_are_pixels),          cmocka_unit_test(padding_is_cleared),
      cmocka_unit_test(wrong_arrays_are_refused),  cmocka_unit_test(columns_have_names),
      cmocka_unit_test(models_are_bytes),          cmocka_unit_test(weights_by_name),
      cmocka_unit_test(estimates_into_arrays),     cmocka_unit_test(other_sizes_are_refused),
      cmocka_unit_test(estimates_are_stopped),     cmocka_unit_test(judgements_are_stopped),
      cmocka_unit_test(training_is_stopped),       cmocka_unit_test(abilities),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
