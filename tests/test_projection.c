/* Runs that train on components of x. */
#include "pictures.h"

/* ---- Training ---- */

static void refuse(const char *text, dvbf_data *data, const char *expected) {
  dvbf_settings *s = settings_of(text);
  dvbf_model *m = NULL;
  dvbf_error error = {0};
  assert_int_equal(dvbf_train(&m, s, data, NULL, &error), DVBF_ARGUMENT);
  if (!strstr(error.message, expected)) fail_msg("\"%s\" does not say \"%s\"", error.message, expected);
  dvbf_settings_free(s);
}

static void refusals(void **state) {
  (void)state;
  dvbf_data data = make_data(0);
  refuse("projection 1e-9", &data, "must be 0, or at least 1e-7");
  refuse("sigma dimension", &data, "needs sigma = fixed or global; it is dimension");
  refuse("mean sigmoid", &data, "needs mean = identity; it is sigmoid");
  refuse("initial fast-dropout", &data, "needs initial = mlp or birnn; it is fast-dropout");
  refuse("mask-input dimension", &data, "needs mask-input = off or step; it is dimension");
  lose_frame(&data.train, 2 * STEPS + 3, 5);
  refuse("", &data, "step 3 of sequence 2 is seen in part");
  free_data(&data);
}

typedef struct stop {
  uint64_t at;
} stop;

static bool stop_there(const dvbf_progress *p, void *user) {
  return !user || p->update < ((stop *)user)->at;
}

static dvbf_model *train(const char *where, const char *threads, stop *when, bool resume) {
  dvbf_data data = make_data(1e-4f);
  dvbf_settings *s = settings_of("updates 60 validate-every 20 batch-size 12 shard-size 4 starts 2 "
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

static const char *model_in(const char *run) {
  char name[64];
  snprintf(name, sizeof name, "%s/%s", run, DVBF_RUN_MODEL);
  return in_folder(name);
}

/* The model is one of x itself; it is the same with any number of threads, and after a stop. */
static void training(void **state) {
  (void)state;
  dvbf_model *m = train(in_folder("one"), "1", NULL, false);
  assert_int_equal(dvbf_model_describe(m).n_x, N_X);
  dvbf_model_free(m);
  dvbf_model_free(train(in_folder("three"), "3", NULL, false));
  dvbf_model_free(train(in_folder("stopped"), "1", &(stop){30}, false));
  dvbf_model_free(train(in_folder("stopped"), "1", NULL, true));
  assert_true(same_bytes(model_in("one"), model_in("three")));
  assert_true(same_bytes(model_in("one"), model_in("stopped")));
  const char *const runs[] = {"one", "three", "stopped"};
  for (int i = 0; i < 3; i++) {
    char command[600];
    snprintf(command, sizeof command, "rm -r '%s'", in_folder(runs[i]));
    assert_int_equal(system(command), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refusals),
      cmocka_unit_test(training),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
