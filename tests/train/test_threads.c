/* Several models at once in one process. Each thread reads data, trains, judges, saves, loads, estimates and
 * filters for itself, and finds what it finds alone. Built with DVBF_SANITIZE=thread, it shows races too. */
#include "files.h"
#include "small_model.h"

#include <dvbf/report.h>
#include <pthread.h>

#include <cmocka.h>

enum { THREADS = 4, ROUNDS = 2 };

typedef struct work {
  int number;
  dvbf_status status;
  dvbf_error error;
  void *bytes; /* of its model */
  size_t size;
  double sum; /* of all that it has estimated */
} work;

static char data_file[2][64];

/* HDF5 and NPZ, which every thread reads. */
static void write_data(void) {
  float x[30 * 8 * 2], u[30 * 8];
  dv_random random = dv_random_at(8, DV_STREAM_SIMULATION, 0, 0);
  for (size_t i = 0; i < 30 * 8 * 2; i++) x[i] = (float)dv_random_normal(&random);
  for (size_t i = 0; i < 30 * 8; i++) u[i] = (float)dv_random_normal(&random);
  dvbf_array arrays[] = {{.name = "x", .type = DVBF_FLOAT32, .rank = 3, .dims = {30, 8, 2}, .values = x},
                         {.name = "u", .type = DVBF_FLOAT32, .rank = 3, .dims = {30, 8, 1}, .values = u}};
  static const char *const names[] = {"data.h5", "data.npz"};
  for (int i = 0; i < 2; i++) {
    snprintf(data_file[i], sizeof data_file[i], "%s", in_folder(names[i]));
    assert_int_equal(dvbf_arrays_write(data_file[i], arrays, 2, NULL), DVBF_OK);
  }
}

static dvbf_status set_all(dvbf_settings *settings, const char *text, dvbf_error *error) {
  char line[200], *rest = line;
  dvbf_status status = DVBF_OK;
  snprintf(line, sizeof line, "%s", text);
  for (char *word; !status && (word = strsep(&rest, " "));) {
    char *value = strchr(word, '=');
    *value++ = 0;
    status = dvbf_settings_set(settings, word, value, error);
  }
  return status;
}

static dvbf_status train(dvbf_model **out, work *w, const dvbf_data *data, dvbf_error *error) {
  static const char *const ways[] = {"updates=20 hidden=8 systems=2",
                                     "updates=10 hidden=8 systems=2 search=on candidates=2 members=2",
                                     "model=linear", "updates=20 hidden=8 model=dkf"};
  dvbf_settings *settings = NULL;
  dvbf_status status = dvbf_settings_new(&settings, "train", error);
  if (!status) status = set_all(settings, "latent=2 threads=2", error);
  if (!status) status = set_all(settings, ways[w->number % 4], error);
  if (!status) status = dvbf_settings_choose(settings, data, NULL, NULL, error);
  if (!status) status = dvbf_train(out, settings, data, NULL, error);
  dvbf_settings_free(settings);
  return status;
}

static dvbf_status judge(work *w, const dvbf_model *model, const dvbf_data *data, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_verdict *verdict = NULL;
  char *json = NULL;
  dvbf_status status = dvbf_settings_new(&settings, "evaluate", error);
  if (!status) status = set_all(settings, "threads=2", error);
  if (!status) status = dvbf_verdict_new(&verdict, model, data, NULL, settings, error);
  if (!status) status = dvbf_verdict_json(&json, verdict, error);
  for (const char *c = json; c && *c; c++) w->sum += *c;
  dvbf_text_free(json);
  dvbf_verdict_free(verdict);
  dvbf_settings_free(settings);
  return status;
}

static dvbf_status estimate(work *w, const dvbf_model *model, const dvbf_data *data, const char *table,
                            dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_estimates *e = NULL;
  dvbf_status status = dvbf_settings_new(&settings, table, error);
  if (!status) status = set_all(settings, "samples=4 threads=2", error);
  if (!status) status = dvbf_estimate(&e, model, &data->test, settings, error);
  for (size_t i = 0; !status && i < e->count * e->steps * e->n_x; i++) w->sum += (double)e->x[i];
  dvbf_estimates_free(e);
  dvbf_settings_free(settings);
  return status;
}

static dvbf_status follow(work *w, const dvbf_model *model, const dvbf_data *data, dvbf_error *error) {
  dvbf_filter *filter = NULL;
  dvbf_belief belief;
  size_t size = 0;
  float ahead[3 * 2];
  dvbf_status status = dvbf_filter_memsize(&size, model, 4, error);
  if (status) return status;
  void *memory = aligned_alloc(64, size);
  status = dvbf_filter_init(&filter, memory, size, model, 4, 1, error);
  for (size_t t = 0; t < 8 && !status; t++)
    dvbf_filter_step(filter, data->test.x + t * 2, data->test.u + t, &belief);
  dvbf_forecast_request ask = {.steps = 3, .u = data->test.u, .x = ahead};
  if (!status) status = dvbf_filter_predict(filter, &ask, error);
  for (int i = 0; i < 6 && !status; i++) w->sum += (double)ahead[i];
  free(memory);
  return status;
}

static dvbf_status do_all(work *w, dvbf_error *error) {
  dvbf_data *data = NULL;
  dvbf_model *model = NULL, *again = NULL;
  dvbf_status status = dvbf_data_read(&data, data_file[w->number % 2], NULL, error);
  if (!status) status = train(&model, w, data, error);
  if (!status) status = judge(w, model, data, error);
  if (!status) status = dvbf_model_to_bytes(&w->bytes, &w->size, model, error);
  if (!status) status = dvbf_model_from_bytes(&again, w->bytes, w->size, error);
  if (!status) status = estimate(w, again, data, "smooth", error);
  if (!status) status = estimate(w, again, data, "predict", error);
  if (!status && w->number % 4 < 3) status = estimate(w, again, data, "filter", error);
  if (!status && w->number % 4 < 3) status = follow(w, again, data, error);
  dvbf_model_free(again);
  dvbf_model_free(model);
  dvbf_data_free(data);
  return status;
}

static void *run(void *user) {
  work *w = user;
  w->status = do_all(w, &w->error);
  return NULL;
}

static void models_at_once(void **state) {
  (void)state;
  work alone[THREADS] = {{0}}, at_once[THREADS] = {{0}};
  pthread_t threads[THREADS];
  write_data();
  for (int i = 0; i < THREADS; i++) {
    alone[i].number = at_once[i].number = i;
    run(&alone[i]);
    if (alone[i].status) fail_msg("%s", alone[i].error.message);
  }
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < THREADS; i++) {
      at_once[i].sum = 0;
      assert_int_equal(pthread_create(&threads[i], NULL, run, &at_once[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
      pthread_join(threads[i], NULL);
      if (at_once[i].status) fail_msg("%s", at_once[i].error.message);
      assert_int_equal(at_once[i].size, alone[i].size);
      assert_memory_equal(at_once[i].bytes, alone[i].bytes, alone[i].size);
      assert_true(at_once[i].sum == alone[i].sum);
      dvbf_bytes_free(at_once[i].bytes);
    }
  }
  for (int i = 0; i < THREADS; i++) dvbf_bytes_free(alone[i].bytes);
}

/* One model, several filters: it is only read. */
static dvbf_model *shared;
static dvbf_data *shared_data;

static void *filter_shared(void *user) {
  work *w = user;
  w->status = follow(w, shared, shared_data, &w->error);
  if (!w->status) w->status = estimate(w, shared, shared_data, "predict", &w->error);
  return NULL;
}

static void one_model_for_all(void **state) {
  (void)state;
  work list[THREADS] = {{0}};
  pthread_t threads[THREADS];
  dvbf_error error;
  if (dvbf_data_read(&shared_data, data_file[0], NULL, &error)) fail_msg("%s", error.message);
  if (train(&shared, &list[0], shared_data, &error)) fail_msg("%s", error.message);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, filter_shared, &list[i]), 0);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    if (list[i].status) fail_msg("%s", list[i].error.message);
    assert_true(list[i].sum == list[0].sum);
  }
  dvbf_model_free(shared);
  dvbf_data_free(shared_data);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(models_at_once), cmocka_unit_test(one_model_for_all)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
