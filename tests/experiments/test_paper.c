/* The report of a model and an experiment of the paper as a C program makes them, without the command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dvbf/report.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/dvbf-study-XXXXXX";
static dvbf_error error;
static dvbf_data *data;
static dvbf_model *model;
static dvbf_settings *how; /* to evaluate */

static void good(dvbf_status status) {
  if (status) fail_msg("%s", error.message);
}

static void refused(dvbf_status status, dvbf_status wanted, const char *part) {
  assert_int_equal(status, wanted);
  if (!strstr(error.message, part)) fail_msg("\"%s\" is missing in: %s", part, error.message);
}

/* Settings of a table, from pairs of names and values that end with NULL. */
static dvbf_settings *settings_of(const char *table, const char *const *pairs) {
  dvbf_settings *settings = NULL;
  good(dvbf_settings_new(&settings, table, &error));
  for (; *pairs; pairs += 2) good(dvbf_settings_set(settings, pairs[0], pairs[1], &error));
  return settings;
}

/* A network and a run that take a fraction of a second. */
#define TINY                                                                                                 \
  "hidden", "8", "systems", "4", "batch-size", "20", "starts", "1", "updates", "4", "validate-every", "2",   \
      "threads", "1", NULL

static char *text_of(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s is not there", path);
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  char *text = test_calloc(size + 1, 1);
  rewind(file);
  assert_int_equal(fread(text, 1, size, file), size);
  fclose(file);
  return text;
}

/* ---- The report of a model ---- */

static void note(const char *name, const char *text, void *user_data) {
  assert_string_equal(name, "tiny");
  snprintf(user_data, 256, "%s", text);
}

static void a_report_of_a_run(void **state) {
  (void)state;
  char left_out[256] = "";
  dvbf_report_options options = {.title = "A <title>", .name = "tiny", .run = "run", .note = note};
  options.user_data = left_out;
  good(dvbf_report_write("new/folders/page.html", model, data, how, &options, &error));
  assert_string_equal(left_out, "");
  char *page = text_of("new/folders/page.html");
  static const char *const parts[] = {"<title>A &lt;title&gt;</title>",
                                      ">tiny</h2>",
                                      "20 sequences (valid) of 15 frames of 16 × 16 pixels",
                                      "<figure class=\"space\">",
                                      "<figure class=\"film\">",
                                      "Training: the bound",
                                      "<th scope=\"row\">updates</th><td class=\"words\">4 "};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(page, parts[i])) fail_msg("\"%s\" is missing", parts[i]);
  test_free(page);
  assert_int_equal(access("new/folders/figures/latent.svg", R_OK), 0);
  refused(dvbf_report_write("new/folders/page.html", model, data, how, &options, &error), DVBF_IO,
          "page.html: already exists");
  refused(dvbf_report_write("new/folders/other.html", model, data, how, NULL, &error), DVBF_IO,
          "figures/errors.png: already exists");
  options.force = true;
  options.run = NULL;
  good(dvbf_report_write("new/folders/page.html", model, data, how, &options, NULL));
  assert_non_null(strstr(left_out, "no settings.txt"));
  refused(dvbf_report_write("run", model, data, how, &options, &error), DVBF_IO, "run: is a folder");
  /* Settings that are not there are told of; those that cannot be read now are not left out. */
  options.run = "run";
  assert_int_equal(rename("run/" DVBF_RUN_SETTINGS, "away"), 0);
  good(dvbf_report_write("new/folders/page.html", model, data, how, &options, NULL));
  assert_non_null(strstr(left_out, "settings.txt"));
  assert_int_equal(mkdir("run/" DVBF_RUN_SETTINGS, 0700), 0);
  refused(dvbf_report_write("new/folders/page.html", model, data, how, &options, &error), DVBF_IO,
          "settings.txt");
  assert_int_equal(rmdir("run/" DVBF_RUN_SETTINGS), 0);
  assert_int_equal(rename("away", "run/" DVBF_RUN_SETTINGS), 0);
  refused(dvbf_report_write("x.html", model, data, dvbf_model_settings(model), NULL, &error), DVBF_ARGUMENT,
          "train");
  assert_int_equal(access("x.html", F_OK), -1);
}

static void splits_by_name(void **state) {
  (void)state;
  const dvbf_sequences *split = NULL;
  dvbf_data unsplit = {.train = data->train};
  good(dvbf_data_split(&split, data, how, &error));
  assert_ptr_equal(split, &data->valid);
  refused(dvbf_data_split(&split, &unsplit, how, &error), DVBF_FORMAT, "split valid is empty");
  dvbf_settings *all = settings_of("predict", (const char *const[]){"split", "all", NULL});
  refused(dvbf_data_split(&split, data, all, &error), DVBF_ARGUMENT, "already split");
  good(dvbf_data_split(&split, &unsplit, all, &error));
  assert_ptr_equal(split, &unsplit.train);
  dvbf_settings_free(all);
}

static unsigned long left; /* allocations of jansson before one that is refused */

static void *scarce(size_t size) {
  return left && !--left ? NULL : malloc(size);
}

/* What has no place in memory is not left out. */
static void numbers_without_memory(void **state) {
  (void)state;
  dvbf_evaluation *e = NULL;
  char *whole = NULL, *text = NULL;
  unsigned long n = 0, refusals = 0;
  good(dvbf_evaluate(&e, model, data, &data->valid, how, &error));
  good(dvbf_evaluation_json(&whole, e, model, how, 2.5, &error));
  json_set_alloc_funcs(scarce, free);
  do {
    left = ++n;
    if (dvbf_evaluation_json(&text, e, model, how, 2.5, &error))
      refusals++;
    else
      assert_string_equal(text, whole), dvbf_text_free(text);
  } while (!left);
  json_set_alloc_funcs(malloc, free);
  assert_true(refusals > 100);
  dvbf_text_free(whole);
  dvbf_evaluation_free(e);
}

static void numbers_for_scripts(void **state) {
  (void)state;
  dvbf_evaluation *e = NULL;
  char *text = NULL;
  good(dvbf_evaluate(&e, model, data, &data->valid, how, &error));
  good(dvbf_evaluation_json(&text, e, model, how, 2.5, &error));
  json_t *json = json_loads(text, 0, NULL);
  assert_true(json_number_value(json_object_get(json, "seconds")) == 2.5);
  assert_int_equal(json_integer_value(json_object_get(json, "threads")), 1);
  assert_int_equal(json_integer_value(json_object_get(json, "updates")), dvbf_model_describe(model).updates);
  assert_int_equal(json_array_size(json_object_get(json_object_get(json, "prediction"), "mse")), e->horizon);
  json_decref(json);
  dvbf_text_free(text);
  strcpy(e->regressions[0].name, "\xff");
  refused(dvbf_evaluation_json(&text, e, model, how, 0, &error), DVBF_FORMAT, "UTF-8");
  dvbf_evaluation_free(e);
}

static void curves_of_a_run(void **state) {
  (void)state;
  dvbf_metrics *metrics = NULL;
  good(dvbf_metrics_read(&metrics, "run/" DVBF_RUN_METRICS, &error));
  assert_int_equal(metrics->n_runs, 1);
  assert_string_equal(metrics->runs[0].name, "start 1");
  assert_int_equal(metrics->runs[0].count, 2);
  assert_true(metrics->runs[0].update[0] == 2 && metrics->runs[0].update[1] == 4);
  dvbf_metrics_free(metrics);
  refused(dvbf_metrics_read(&metrics, "none.csv", &error), DVBF_IO, "none.csv");
  refused(dvbf_metrics_read(&metrics, "run/" DVBF_RUN_SETTINGS, &error), DVBF_FORMAT, "first line");
}

/* ---- An experiment ---- */

/* What a caller was told, and when it stops. */
typedef struct watch {
  char stages[256];
  size_t reports;
  bool stop_training;
  dvbf_stage_kind stop_at; /* DVBF_SIMULATING: nowhere */
} watch;

static bool on_stage(const dvbf_stage *stage, void *user_data) {
  watch *w = user_data;
  static const char letters[] = "STtED";
  size_t n = strlen(w->stages);
  snprintf(w->stages + n, sizeof w->stages - n, "%c%llu", letters[stage->kind],
           (unsigned long long)stage->seed);
  assert_string_equal(stage->system, "ball");
  if (stage->model) assert_string_equal(stage->model, "DVBF-LL");
  if (stage->kind == DVBF_TRAINED) assert_non_null(strstr(stage->folder, "/run"));
  return !stage->kind || stage->kind != w->stop_at;
}

static bool on_progress(const dvbf_progress *progress, void *user_data) {
  watch *w = user_data;
  assert_int_equal(progress->updates, 4);
  w->reports++;
  return !w->stop_training;
}

static dvbf_reproduction *reproduce(const char *into, watch *w, size_t seeds) {
  dvbf_settings *settings = settings_of("train", (const char *const[]){"seed", "7", TINY});
  dvbf_reproduce_options options = {.preset = "paper-ball",
                                    .settings = settings,
                                    .seeds = seeds,
                                    .progress = on_progress,
                                    .stage = on_stage,
                                    .user_data = w};
  dvbf_reproduction *r = NULL;
  good(dvbf_reproduce(&r, "ball", into, &options, &error));
  dvbf_settings_free(settings);
  return r;
}

static void an_experiment_from_data_to_report(void **state) {
  (void)state;
  watch w = {0};
  dvbf_reproduction *r = reproduce("ball", &w, 0);
  assert_string_equal(w.stages, "S7T7t7E7D7");
  assert_true(w.reports > 0);
  assert_false(r->stopped);
  assert_int_equal(r->n_experiments, 1);
  const dvbf_experiment_results *e = &r->experiments[0];
  assert_string_equal(e->system, "ball");
  assert_int_equal(e->n_tables, 6);
  assert_string_equal(e->tables[0].cells[e->tables[0].columns], "seed 7");
  char *file = text_of("ball/results.json"), *page = text_of("ball/report.html");
  assert_string_equal(file, r->json);
  assert_non_null(strstr(page, e->tables[5].caption));
  assert_int_equal(access("ball/figures/ball-run-ball.png", R_OK), 0);
  test_free(file);
  test_free(page);
  dvbf_reproduction_free(r);
  refused(dvbf_reproduce(&r, "ball", "ball", NULL, &error), DVBF_IO, "already exists");
}

/* What was done by then is there. */
static void an_experiment_that_is_stopped(void **state) {
  (void)state;
  watch during = {.stop_training = true}, between = {.stop_at = DVBF_EVALUATING};
  dvbf_reproduction *r = reproduce("stopped", &during, 2);
  assert_string_equal(during.stages, "S7T7t7");
  assert_true(r->stopped);
  assert_int_equal(r->n_experiments, 0);
  assert_string_equal(r->json, "{}");
  assert_int_equal(access("stopped/seed-7/run/" DVBF_RUN_MODEL, R_OK), 0);
  assert_int_equal(access("stopped/report.html", F_OK), -1);
  dvbf_reproduction_free(r);
  r = reproduce("between", &between, 1);
  assert_string_equal(between.stages, "S7T7t7E7");
  assert_true(r->stopped);
  dvbf_reproduction_free(r);
}

static void experiments_that_are_refused(void **state) {
  (void)state;
  dvbf_reproduction *r = NULL;
  dvbf_reproduce_options preset = {.preset = "pendulum"}, other = {.settings = how};
  refused(dvbf_reproduce(&r, "boat", "new-folder", NULL, &error), DVBF_ARGUMENT, "no such system");
  refused(dvbf_reproduce(&r, "ball", "new-folder", &preset, &error), DVBF_ARGUMENT, "it is for pendulum");
  refused(dvbf_reproduce(&r, "ball", "new-folder", &other, &error), DVBF_ARGUMENT, "table evaluate");
  dvbf_settings *dkf = settings_of("train", (const char *const[]){"model", "dkf", NULL});
  other.settings = dkf;
  refused(dvbf_reproduce(&r, "ball", "new-folder", &other, &error), DVBF_ARGUMENT,
          "the paper has no such model for ball");
  refused(dvbf_reproduce(&r, "pendulum", "new-folder", &other, &error), DVBF_ARGUMENT,
          "--preset pendulum or dkf-pendulum");
  dvbf_settings_free(dkf);
  assert_int_equal(access("new-folder", F_OK), -1);
}

/* ---- The folder that all tests work in ---- */

static int set_up(void **state) {
  (void)state;
  if (!mkdtemp(folder) || chdir(folder)) return -1;
  dvbf_settings *system =
      settings_of("pendulum", (const char *const[]){"train", "40", "valid", "20", "test", "5", NULL});
  dvbf_settings *training = settings_of("train", (const char *const[]){TINY});
  dvbf_train_options options = {.folder = "run"};
  how =
      settings_of("evaluate", (const char *const[]){"split", "valid", "samples", "2", "threads", "1", NULL});
  good(dvbf_simulate(&data, system, &error));
  good(dvbf_train(&model, training, data, &options, &error));
  dvbf_settings_free(system);
  dvbf_settings_free(training);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  char line[64];
  dvbf_settings_free(how);
  dvbf_model_free(model);
  dvbf_data_free(data);
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return chdir("/") || system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_report_of_a_run),
      cmocka_unit_test(splits_by_name),
      cmocka_unit_test(numbers_for_scripts),
      cmocka_unit_test(numbers_without_memory),
      cmocka_unit_test(curves_of_a_run),
      cmocka_unit_test(an_experiment_from_data_to_report),
      cmocka_unit_test(an_experiment_that_is_stopped),
      cmocka_unit_test(experiments_that_are_refused),
  };
  return cmocka_run_group_tests_name("study", tests, set_up, tear_down);
}
