/* A program whose language has a decimal comma reads and writes the same files as any other. */
#include "files.h"

#include <dvbf/report.h>
#include <locale.h>
#include <math.h>

static char locales[] = "/tmp/dvbf-locale-XXXXXX"; /* a German locale, made here as few systems have one */
static char point;                                 /* what the program writes in numbers */

static int make_locale(void **state) {
  char command[256];
  if (!mkdtemp(locales) || make_folder(state)) return -1;
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", locales);
  return setenv("LOCPATH", locales, 1) || system(command) < 0;
}

static int remove_locale(void **state) {
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s %s", locales, folder);
  (void)state;
  return system(command);
}

/* The user's functions are called in the user's locale. */
static bool on_progress(const dvbf_progress *p, void *event) {
  char text[8];
  snprintf(text, sizeof text, "%.1f", 0.5);
  assert_int_equal(text[1], point);
  if (p->event) snprintf(event, 160, "%s", p->event);
  return true;
}

static void on_choice(const char *name, const char *value, const char *was, const char *why, void *text) {
  (void)why;
  snprintf((char *)text + strlen(text), 1024 - strlen(text), "%s %s %s\n", name, value, was);
}

/* What is compared between two languages. */
typedef struct result {
  char choices[1024], json[4096], events[160], refusals[2][512], rows[2048], value[32];
  float quantile;
  double bound;
} result;

static dvbf_settings *settings_of(const char *table, size_t count, const char *const values[][2]) {
  dvbf_settings *settings = NULL;
  dvbf_error error = {.message = ""};
  assert_int_equal(dvbf_settings_new(&settings, table, &error), DVBF_OK);
  for (size_t i = 0; i < count; i++)
    if (dvbf_settings_set(settings, values[i][0], values[i][1], &error)) fail_msg("%s", error.message);
  return settings;
}

static void train(result *r, const dvbf_data *data, const char *run) {
  static const char *const values[][2] = {
      {"updates", "4"},     {"validate-every", "2"}, {"latent", "2"},         {"hidden", "3"},
      {"batch-size", "4"},  {"threads", "1"},        {"learning-rate", "1"},  {"restart-above", "0.125"},
      {"clip-norm", "0.5"}, {"starts", "2"},         {"sigma-floor", "0.25"}, {"seed", "3"}};
  dvbf_settings *settings = settings_of("train", sizeof values / sizeof *values, values);
  dvbf_model *model = NULL;
  dvbf_error error = {.message = ""};
  dvbf_train_options options = {.folder = run, .progress = on_progress, .user_data = r->events};
  if (dvbf_settings_choose(settings, data, on_choice, r->choices, &error) ||
      dvbf_train(&model, settings, data, &options, &error))
    fail_msg("%s", error.message);
  dvbf_model_free(model);
  model = NULL;
  options.resume = true; /* settings and checkpoint are read again */
  if (dvbf_train(&model, settings, data, &options, &error)) fail_msg("%s", error.message);
  assert_int_equal(dvbf_settings_set(settings, "learning-rate", "0,5", &error), DVBF_ARGUMENT);
  memcpy(r->refusals[0], error.message, sizeof r->refusals[0]);
  assert_int_equal(dvbf_settings_set(settings, "valid-share", "7.5", &error), DVBF_ARGUMENT);
  memcpy(r->refusals[1], error.message, sizeof r->refusals[1]);
  assert_int_equal(dvbf_settings_get(settings, "restart-above", r->value, sizeof r->value, NULL), DVBF_OK);
  dvbf_model_free(model);
  dvbf_settings_free(settings);
}

/* metrics.csv without its time. */
static void read_rows(result *r, const char *path) {
  FILE *file = fopen(path, "r");
  char line[512];
  unsigned update, start;
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    int used = 0;
    sscanf(line, "%u,%u,%*u.%*u%n", &update, &start, &used);
    snprintf(r->rows + strlen(r->rows), sizeof r->rows - strlen(r->rows), "%s", line + used);
  }
  fclose(file);
}

static void use(result *r, const dvbf_data *data, const char *path, const char *run) {
  static const char *const quick[][2] = {{"samples", "2"}, {"threads", "1"}};
  static const char *const wanted[][2] = {{"quantiles", "0.25, 0.75"}, {"samples", "4"}, {"threads", "1"}};
  dvbf_settings *evaluate = settings_of("evaluate", 2, quick), *filter = settings_of("predict", 3, wanted);
  dvbf_model *model = NULL;
  dvbf_evaluation *evaluation = NULL;
  dvbf_estimates *estimates = NULL;
  dvbf_error error = {.message = ""};
  if (dvbf_model_load(&model, path, &error) ||
      dvbf_evaluate(&evaluation, model, data, &data->test, evaluate, &error) ||
      dvbf_estimate(&estimates, model, &data->test, filter, &error))
    fail_msg("%s", error.message);
  char *json = NULL;
  if (dvbf_evaluation_json(&json, evaluation, model, evaluate, 0.5, &error)) fail_msg("%s", error.message);
  snprintf(r->json, sizeof r->json, "%s", json);
  dvbf_text_free(json);
  char page[300];
  dvbf_report_options options = {.run = run};
  snprintf(page, sizeof page, "%s/report.html", run);
  if (dvbf_report_write(page, model, data, evaluate, &options, &error)) fail_msg("%s", error.message);
  r->bound = evaluation->elbo;
  assert_int_equal(estimates->n_quantiles, 2);
  r->quantile = estimates->x_quantiles[0];
  dvbf_estimates_free(estimates);
  dvbf_evaluation_free(evaluation);
  dvbf_model_free(model);
  dvbf_settings_free(evaluate);
  dvbf_settings_free(filter);
}

/* A figure and a page with fractions everywhere. */
static void report(const dvbf_data *data, const char *figure, const char *path) {
  static const double update[] = {0.5, 1.5, 2.5}, bound[] = {-1.25, 0.375, 0.5};
  dvbf_learning_run run = {
      .name = "run", .count = 3, .update = update, .train_bound = bound, .prediction = bound};
  dvbf_figure_curves curves = {.title = "curves", .runs = 1, .run = &run};
  dvbf_space space = {.caption = "space", .points = 20, .n_z = 2, .z = data->train.x};
  dvbf_settings *settings = settings_of("train", 0, NULL);
  dvbf_page *page = NULL;
  dvbf_error error = {.message = ""};
  if (dvbf_draw_curves(&curves, figure, &error) || dvbf_page_new(&page, "page", &error) ||
      dvbf_page_settings(page, "settings", settings, &error) || dvbf_page_space(page, &space, &error) ||
      dvbf_page_write(page, path, &error))
    fail_msg("%s", error.message);
  dvbf_page_free(page);
  dvbf_settings_free(settings);
}

static void work(result *r, const char *run) {
  char path[256];
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  if (dvbf_data_read(&data, in_folder("a.csv"), NULL, &error)) fail_msg("%s", error.message);
  assert_true(data->train.x[0] == 0.0625F);
  train(r, data, in_folder(run));
  snprintf(path, sizeof path, "%s/%s/", folder, run);
  size_t length = strlen(path);
  read_rows(r, strcat(path, DVBF_RUN_METRICS));
  strcpy(path + length, DVBF_RUN_MODEL);
  use(r, data, path, in_folder(run));
  char figure[300];
  snprintf(figure, sizeof figure, "%s/%s/curves", folder, run);
  strcpy(path + length, "page.html");
  report(data, figure, path);
  dvbf_data_free(data);
}

/* A page without its SVGs, whose ids are counted over the whole process. */
static char *words_of(const char *run) {
  char path[256];
  size_t size;
  snprintf(path, sizeof path, "%s/%s/report.html", folder, run);
  char *page = (char *)read_bytes(path, &size), *to = page;
  for (const char *from = page, *end = page + size; from < end;) {
    bool svg = !strncmp(from, "data:image/svg", 14);
    if (svg) from = strchr(from, '"');
    *to++ = *from++;
  }
  *to = 0;
  return page;
}

static void write_data(void) {
  FILE *file = fopen(in_folder("a.csv"), "w");
  assert_non_null(file);
  fprintf(file, "sequence,x0,x1,u\n");
  for (int i = 0; i < 120; i++) {
    int tenths = i * 37 % 100;
    fprintf(file, "%d,%s,1.%02d,-0.%02de1\n", i / 10, i % 10 ? "0.12345678901234567890" : "0.0625", tenths,
            99 - tenths);
  }
  fclose(file);
}

static void files_do_not_depend_on_the_language(void **state) {
  (void)state;
  static const char *const files[] = {DVBF_RUN_SETTINGS, DVBF_RUN_MODEL, "page.html", "curves.png"};
  static result plain, german;
  write_data();
  point = '.';
  work(&plain, "plain");
  if (!setlocale(LC_ALL, "de_DE.UTF-8")) {
    print_message("not tested: there is no locale de_DE.UTF-8, and localedef with the package locales cannot "
                  "make it\n");
    skip();
  }
  point = ',';
  work(&german, "german");
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char one[256], other[256];
    snprintf(one, sizeof one, "%s/plain/%s", folder, files[i]);
    snprintf(other, sizeof other, "%s/german/%s", folder, files[i]);
    if (!same_bytes(one, other)) fail_msg("%s differs", files[i]);
  }
  char *one = words_of("plain"), *other = words_of("german");
  assert_non_null(strstr(one, "latent dimensions and"));
  assert_int_equal(strcmp(one, other), 0);
  free(one);
  free(other);
  assert_string_equal(plain.choices, german.choices);
  assert_string_equal(plain.events, german.events);
  assert_string_equal(plain.refusals[0], german.refusals[0]);
  assert_string_equal(plain.refusals[1], german.refusals[1]);
  assert_string_equal(plain.rows, german.rows);
  assert_string_equal(plain.json, german.json);
  assert_string_equal(german.value, "0.125");
  assert_true(plain.bound == german.bound && plain.quantile == german.quantile);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(files_do_not_depend_on_the_language)};
  return cmocka_run_group_tests(tests, make_locale, remove_locale);
}
