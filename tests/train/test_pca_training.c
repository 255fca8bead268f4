/* Runs that train on components of x. */
#include "pictures.h"

#include "faults.h"

#include "base/memory.h"
#include "infer/online.h"

/* ---- Training ---- */

static void refuse(const char *text, dvbf_data *data, const char *expected) {
  dvbf_settings *s = picture_settings(text);
  dvbf_model *m = NULL;
  dvbf_error error = {0};
  assert_int_equal(dvbf_train(&m, s, data, NULL, &error), DVBF_ARGUMENT);
  if (!strstr(error.message, expected)) fail_msg("\"%s\" does not say \"%s\"", error.message, expected);
  dvbf_settings_free(s);
}

static void refusals(void **state) {
  (void)state;
  dvbf_data data = make_picture_data(0);
  refuse("projection 1e-9", &data, "must be 0, or at least 1e-7");
  refuse("sigma dimension", &data, "needs sigma = fixed or global; it is dimension");
  refuse("mean sigmoid", &data, "needs mean = identity; it is sigmoid");
  refuse("initial fast-dropout", &data, "needs initial = mlp or birnn; it is fast-dropout");
  refuse("mask-input dimension", &data, "needs mask-input = off or step; it is dimension");
  refuse("likelihood student-t", &data, "needs likelihood = gaussian; it is student-t");
  lose_frame(&data.train, 2 * PICTURE_STEPS + 3, 5);
  refuse("", &data, "step 3 of sequence 2 is partly missing");
  free_data(&data);
}

/* Whole frames may be missing. */
static void missing_frames(void **state) {
  (void)state;
  dvbf_data data = make_picture_data(1e-4f);
  dvbf_settings *s = picture_settings("updates 4 mask-input step");
  dvbf_model *m = NULL;
  dvbf_error error;
  lose_frame(&data.train, 2 * PICTURE_STEPS + 3, PICTURE_N_X);
  if (dvbf_train(&m, s, &data, NULL, &error)) fail_msg("%s", error.message);
  dvbf_model_free(m);
  dvbf_settings_free(s);
  free_data(&data);
}

typedef struct stop {
  uint64_t at;
} stop;

static bool stop_there(const dvbf_progress *p, void *user) {
  return !user || p->update < ((stop *)user)->at;
}

static dvbf_model *train(const char *where, const char *threads, stop *when, bool resume) {
  dvbf_data data = make_picture_data(1e-4f);
  dvbf_settings *s = picture_settings("updates 60 validate-every 20 batch-size 12 shard-size 4 starts 2 "
                                      "restart-above 0 projection 1e-5 checkpoint-every 0");
  dvbf_model *m = NULL;
  dvbf_error error;
  dvbf_settings_set(s, "threads", threads, &error);
  dvbf_train_options o = {.folder = where, .resume = resume, .progress = stop_there, .user_data = when};
  if (dvbf_train(&m, s, &data, &o, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(s);
  free_data(&data);
  return m;
}

/* The model is one of x itself; it is the same with any number of threads, and after a stop. */
static void training(void **state) {
  (void)state;
  dvbf_model *m = train(in_folder("one"), "1", NULL, false);
  assert_int_equal(dvbf_model_describe(m).n_x, PICTURE_N_X);
  dvbf_model_free(m);
  dvbf_model_free(train(in_folder("three"), "3", NULL, false));
  dvbf_model_free(train(in_folder("stopped"), "1", &(stop){30}, false));
  dvbf_model_free(train(in_folder("stopped"), "1", NULL, true));
  assert_true(same_bytes(in_run("one", DVBF_RUN_MODEL), in_run("three", DVBF_RUN_MODEL)));
  assert_true(same_bytes(in_run("one", DVBF_RUN_MODEL), in_run("stopped", DVBF_RUN_MODEL)));
  discard_run("one");
  discard_run("three");
  discard_run("stopped");
}

/* Other kernels find other axes: weights along the first ones must not go on along those. */
static void resume_on_another_processor(void **state) {
  (void)state;
  const dv_kernels *before = dv_kernels_best();
  setenv("DVBF_ISA", "base", 1);
  const dv_kernels *after = dv_kernels_best();
  unsetenv("DVBF_ISA");
  if (before == after) {
    print_message("not tested: this processor has the base instruction set alone\n");
    skip();
  }
  dvbf_data data = make_picture_data(1e-4f);
  dvbf_settings *s = picture_settings("updates 20 validate-every 10 projection 1e-5 starts 1");
  dvbf_train_options o = {.folder = in_folder("moved"), .progress = stop_there, .user_data = &(stop){10}};
  dvbf_model *m = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_train(&m, s, &data, &o, &error), DVBF_OK);
  dvbf_model_free(m);
  setenv("DVBF_ISA", "base", 1);
  o.folder = in_folder("moved"), o.resume = true, o.user_data = NULL;
  assert_int_equal(dvbf_train(&m, s, &data, &o, &error), DVBF_ARGUMENT);
  unsetenv("DVBF_ISA");
  assert_non_null(strstr(error.message, "different components"));
  discard_run("moved");
  dvbf_settings_free(s);
  free_data(&data);
}

/* ---- The online filter of such a model ---- */

static dvbf_model *brief_model(const char *text, const dvbf_data *data) {
  dvbf_settings *s = picture_settings(text);
  dvbf_model *m = NULL;
  dvbf_error error;
  if (dvbf_train(&m, s, data, NULL, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(s);
  return m;
}

static dvbf_real *weights_from_x(const dvbf_model *m, size_t *count) {
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *p = &m->parameters.list[i];
    *count = (size_t)p->rows * (size_t)p->cols;
    if (!strcmp(p->name, "recognition.hidden.x")) return m->parameters.values + p->offset;
  }
  fail();
  return NULL;
}

/* Means of z over the steps of a sequence, one of which is missing, and two values of another. */
static void run_filter(const dvbf_model *m, const dvbf_sequences *s, double *mean) {
  size_t size;
  dvbf_filter *filter = NULL;
  dvbf_belief belief;
  assert_int_equal(dvbf_filter_memsize(&size, m, 2, NULL), DVBF_OK);
  void *memory = dv_calloc_aligned(size, 1);
  assert_int_equal(dvbf_filter_init(&filter, memory, size, m, 2, 7, NULL), DVBF_OK);
  for (size_t t = 0; t < PICTURE_STEPS; t++) {
    float x[PICTURE_N_X];
    memcpy(x, s->x + t * PICTURE_N_X, sizeof x);
    if (t == 5) x[3] = x[40] = NAN;
    dvbf_filter_step(filter, t == 4 ? NULL : x, s->u + 2 * t, &belief);
    for (size_t i = 0; i < 3; i++) mean[3 * t + i] = belief.ready ? (double)belief.mean[i] : 0;
  }
  dv_free(memory);
}

static void filter_reads_a_plane(void **state) {
  (void)state;
  dvbf_data data = make_picture_data(1e-4f);
  dvbf_model *m = brief_model("hidden 64 projection 1e-5 updates 30 starts 1", &data);
  dv_low_rank p;
  size_t count = 0;
  /* The weights tell, not how they were trained. */
  assert_int_equal(dvbf_settings_set(m->settings_object, "projection", "0", NULL), DVBF_OK);
  dvbf_real *w = weights_from_x(m, &count);
  assert_int_equal(dv_low_rank_find(&p, m, NULL), DVBF_OK);
  assert_int_equal(p.rank, 16);
  double squares = 0, errors = 0;
  for (size_t i = 0; i < count; i++) {
    double sum = 0;
    for (size_t k = 0; k < 16; k++) sum += (double)p.in[i / 64 * 16 + k] * (double)p.out[k * 64 + i % 64];
    squares += (double)w[i] * (double)w[i];
    errors += (sum - (double)w[i]) * (sum - (double)w[i]);
  }
  assert_true(errors < 1e-12 * squares);
  dv_low_rank_free(&p);
  /* A little noise on the weights, and there is no plane any more; the filter tells the same. */
  double through_plane[3 * PICTURE_STEPS], plain[3 * PICTURE_STEPS], most = 0;
  run_filter(m, &data.train, through_plane);
  dv_random r = dv_random_at(2, DV_STREAM_SIMULATION, 0, 0);
  for (size_t i = 0; i < count; i++) w[i] += (dvbf_real)(1e-5 * dv_random_normal(&r));
  assert_int_equal(dv_low_rank_find(&p, m, NULL), DVBF_OK);
  assert_int_equal(p.rank, 0);
  run_filter(m, &data.train, plain);
  for (size_t i = 0; i < 3 * PICTURE_STEPS; i++) {
    most = fmax(most, fabs(plain[i]));
    assert_true(fabs(plain[i] - through_plane[i]) < 1e-3);
  }
  assert_true(most > 0.1);
  dvbf_model_free(m);
  free_data(&data);
}

/* ---- Without memory ---- */

static dvbf_status train_and_filter(const dvbf_settings *s, const dvbf_data *data, dvbf_error *error) {
  dvbf_model *m = NULL;
  size_t size;
  dvbf_status status = dvbf_train(&m, s, data, NULL, error);
  if (!status) status = dvbf_filter_memsize(&size, m, 1, error);
  dvbf_model_free(m);
  return status;
}

/* Whichever allocation fails, that is what is said, and nothing is lost. */
static void memory_runs_out(void **state) {
  (void)state;
  dvbf_data data = make_picture_data(1e-4f);
  dvbf_settings *s = picture_settings("hidden 64 projection 1e-5 updates 2 batch-size 4 starts 1");
  dvbf_error error;
  dvbf_status status = DVBF_MEMORY;
  int failed = 0;
  for (unsigned long n = 1; status; n++, failed++) {
    fault.memory = n;
    status = train_and_filter(s, &data, &error);
    fault.memory = 0;
    if (status && status != DVBF_MEMORY) fail_msg("allocation %lu: %s", n, error.message);
  }
  assert_true(failed > 50);
  dvbf_settings_free(s);
  free_data(&data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refusals),
      cmocka_unit_test(missing_frames),
      cmocka_unit_test(training),
      cmocka_unit_test(resume_on_another_processor),
      cmocka_unit_test(filter_reads_a_plane),
      cmocka_unit_test(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
