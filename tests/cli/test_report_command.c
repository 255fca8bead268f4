/* dvbf report: what the page holds, what it leaves out, and what is refused. */
#include "command.h"

#include <ctype.h>
#include <math.h>

static char page[1 << 23];

static void report_holds_everything(void **state) {
  (void)state;
  assert_int_equal(dvbf("report run data.h5 -o paged/report.html --threads 1"), 0);
  assert_has(err, "paged/report.html: written");
  assert_string_equal(out, "");
  assert_in_range(read_file("paged/report.html", page, sizeof page), 100000, 5000000);
  static const char *const parts[] = {"<title>data.h5: report on run</title>",
                                      "20 sequences (test) of 15 frames of 16 × 16 pixels",
                                      "Lower bound in nats per frame",
                                      "<th scope=\"row\">velocity</th>",
                                      "<th scope=\"col\">persistence</th>",
                                      "<th scope=\"col\">mean image</th>",
                                      "<figure class=\"space\">",
                                      "\"name\":\"angle\",\"cyclic\":true",
                                      "<figure class=\"film\">",
                                      "Prediction error by horizon",
                                      "<p class=\"verdict ",
                                      "within one pixel for the first",
                                      "\"up\":\"distance of the centres (pixels)\"",
                                      "<picture><source media=",
                                      "\"name\":\"update that was kept\",\"at\":20,",
                                      "Training: the bound",
                                      "<th scope=\"row\">updates</th><td class=\"words\">20 "};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assert_has(page, parts[i]);
  assert_null(strstr(page, "class=\"note\">The data"));
  static const char *const figures[] = {"errors", "strips", "latent", "curves"};
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
    char path[64];
    snprintf(path, sizeof path, "paged/figures/%s.svg", figures[i]);
    assert_true(exists(path));
    snprintf(path, sizeof path, "paged/figures/%s.png", figures[i]);
    assert_true(exists(path));
  }
  /* The same again gives the same bytes, but not without --force. */
  assert_int_equal(rename("paged/report.html", "paged/first.html"), 0);
  assert_int_equal(dvbf("report run data.h5 -o paged/report.html --quiet"), 1);
  assert_refused("paged/figures/errors.png: already exists");
  assert_int_equal(dvbf("report run data.h5 -o paged/report.html --quiet --force"), 0);
  assert_string_equal(err, "");
  assert_true(same_bytes("paged/report.html", "paged/first.html"));
}

static void report_speaks_of_the_data_it_has(void **state) {
  (void)state;
  FILE *file = fopen("plain.csv", "w");
  fprintf(file, "sequence,x0,x1,u\n");
  for (int i = 0; i < 160; i++) fprintf(file, "%d,%.3f,%.3f,0\n", i / 8, sin(i), cos(i));
  fclose(file);
  assert_int_equal(dvbf("train plain.csv -o plain --updates 5 --quiet" TINY), 0);
  assert_int_equal(dvbf("report plain plain.csv -o plain/report.html"), 0);
  read_file("plain/report.html", page, sizeof page);
  assert_null(strstr(strstr(page, "<main>"), "class=\"note\""));
  assert_null(strstr(page, "<figure class=\"film\">"));
  static const char *const pictures[] = {">Video<", ">Tracks<", "pixel", "frames", "mean image"};
  const char *body = strstr(page, "<main>"), *end = strstr(page, ">Settings<");
  for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
    const char *at = strstr(body, pictures[i]);
    if (at && at < end) fail_msg("%s: a word for pictures", pictures[i]);
  }
  static const char *const sensors[] = {"<figure class=\"signals\"",
                                        "\"name\":\"x1\",\"cyclic\":false,\"group\":\"signals\"",
                                        "\"name\":\"u\",\"cyclic\":false,\"group\":\"inputs\"",
                                        "\"uses\":[\"free run\",\"one step ahead\"]",
                                        "\"up\":\"RMSE of x0\",\"across\":\"steps ahead\"",
                                        "\"up\":\"autocorrelation of the innovations\"",
                                        "\"up\":\"values inside the interval (%)\"",
                                        "Lower bound in nats per step"};
  for (size_t i = 0; i < sizeof sensors / sizeof *sensors; i++) assert_has(page, sensors[i]);
  assert_true(exists("plain/figures/signals.svg"));
  assert_false(exists("plain/figures/strips.svg") || exists("plain/figures/latent.svg"));
  /* A model file alone has no curves and no settings. */
  assert_int_equal(dvbf("report run/model.safetensors data.h5 -o alone/report.html"), 0);
  assert_has(err, "no metrics.csv");
  assert_has(err, "no settings.txt");
  assert_false(exists("alone/figures/curves.svg"));
  /* Files of the run that are damaged are named. */
  assert_int_equal(
      system("cp -r run damaged && echo hello > damaged/metrics.csv && echo x > damaged/settings.txt"), 0);
  assert_int_equal(dvbf("report damaged data.h5 -o damaged/report.html"), 0);
  assert_has(err, "damaged/metrics.csv: its first line");
  assert_has(err, "damaged/settings.txt, line 1");
}

static void report_refuses_before_working(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"report run data.h5 -o run", "run: is a folder"},
      {"report run data.h5 -o data.h5/report.html", "data.h5"},
      {"report run data.h5 -o data.h5", "data.h5: already exists"},
      {"report run none.h5 -o new/report.html", "none.h5: cannot be read"},
      {"report none data.h5 -o new/report.html", "none"},
      {"report run run/settings.txt -o new/report.html", "no column of numbers"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(dvbf("%s", cases[i][0]), 1);
    assert_refused(cases[i][1]);
    assert_false(exists("new"));
  }
  assert_int_equal(system("mkdir hollow"), 0);
  assert_int_equal(dvbf("report hollow data.h5 -o new/report.html"), 1);
  assert_refused("hollow: contains no model.safetensors");
  assert_int_equal(dvbf("evaluate hollow data.h5"), 1);
  assert_refused("hollow: contains no model.safetensors");
}

/* Words of numbers that are none: "inf" and "nan", as a word or a cell of its own. */
static void assert_no_such_number(const char *text) {
  for (const char *at = text; *at; at++) {
    size_t size = !strncmp(at, "inf", 3) || !strncmp(at, "nan", 3) ? 3 : 0;
    bool alone = size && (at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[size]);
    alone = alone && strncmp(at, "nan, or a number", 16) != 0; /* the help of a setting */
    if (alone) fail_msg("a number is none: %.80s", at);
  }
}

/* A model whose states explode: it is called so wherever its errors stand. */
static void no_result_is_inf_or_nan(void **state) {
  (void)state;
  FILE *file = fopen("wild.csv", "w");
  assert_non_null(file);
  fprintf(file, "y,u\n");
  double y = 0;
  for (int t = 0; t < 3000; t++) fprintf(file, "%g,%g\n", y = 0.9 * y + sin(t / 7.), sin(t / 7.));
  assert_int_equal(fclose(file), 0);
  assert_int_equal(dvbf("train wild.csv -o wild --outputs y --inputs u --search off --scale-transition 10 "
                        "--scale-innovation 10 --modes off --contraction 0 --state-limit 0 --hidden 8 "
                        "--threads 1 --updates 0 --gain-updates 0"),
                   3);
  assert_no_such_number(err);
  static const char *const commands[] = {"evaluate wild wild.csv", "predict wild wild.csv --verdict",
                                         "report wild wild.csv -o wild.html"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    assert_int_equal(dvbf("%s --threads 1", commands[i]), 0);
    assert_no_such_number(out);
    assert_no_such_number(err);
    if (i < 2) assert_has(out, "diverged");
  }
  read_file("wild.html", page, sizeof page);
  for (char *at = page; (at = strstr(at, "<script")) != NULL;) /* tables and sentences are elsewhere */
    for (const char *end = strstr(at, "</script>"); at < end; at++) *at = ' ';
  assert_no_such_number(page);
  assert_has(page, "diverged");
}

/* A score that is not known in a validation. */
static void unknown_scores_have_a_dash(void **state) {
  (void)state;
  assert_int_equal(system("cp -r run unknown"), 0);
  FILE *file = fopen("unknown/metrics.csv", "a");
  assert_non_null(file);
  fprintf(file, "25,1,9.0,nan,-3,-3,1,0,nan,0.001,1,1,inf,1\n");
  assert_int_equal(fclose(file), 0);
  assert_int_equal(dvbf("info unknown"), 0);
  assert_has(out, "last                 25");
  assert_no_such_number(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(report_holds_everything),       cmocka_unit_test(report_speaks_of_the_data_it_has),
      cmocka_unit_test(report_refuses_before_working), cmocka_unit_test(no_result_is_inf_or_nan),
      cmocka_unit_test(unknown_scores_have_a_dash),
  };
  return cmocka_run_group_tests_name("report command", tests, enter_folder_with_run, tear_down);
}
