/* Progress where there is no terminal: a line every ten seconds, and no inf or nan in it. */
#include "../../cli/progress.c"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

/* A training without ranks. */
dvbf_ranks *cli_ranks(void) {
  return NULL;
}

static FILE *log_file;
static int kept;
static char text[4096];

/* Standard error is a file until `end_log`, which leaves what was written in `text`. */
static void begin_log(void) {
  log_file = tmpfile();
  assert_non_null(log_file);
  fflush(stderr);
  kept = dup(STDERR_FILENO);
  assert_true(kept >= 0 && dup2(fileno(log_file), STDERR_FILENO) >= 0);
}

static void end_log(void) {
  fflush(stderr);
  assert_true(dup2(kept, STDERR_FILENO) >= 0);
  close(kept);
  rewind(log_file);
  text[fread(text, 1, sizeof text - 1, log_file)] = 0;
  fclose(log_file);
}

static int lines(void) {
  int n = 0;
  for (const char *at = text; *at; at++) n += *at == '\n';
  return n;
}

static dvbf_progress report_at(double seconds, double bound) {
  return (dvbf_progress){.update = (uint64_t)(100 * seconds),
                         .updates = 4000,
                         .start = 1,
                         .starts = 1,
                         .begun = 1,
                         .seconds = seconds,
                         .seconds_left = 40 - seconds,
                         .bound = bound,
                         .valid_bound = NAN,
                         .valid_prediction = NAN};
}

/* Four reports a second for 25 seconds, and a validation each second. */
static void a_line_every_ten_seconds(void **state) {
  (void)state;
  begin_log();
  cli_progress progress = cli_progress_new();
  for (int i = 0; i <= 100; i++) {
    dvbf_progress report = report_at(i / 4., 1.5);
    report.validated = i % 4 == 0;
    report.valid_bound = 1.25;
    report.valid_prediction = 0.5;
    cli_progress_show(&progress, &report);
  }
  cli_progress_end(&progress);
  end_log();
  assert_string_equal(text,
                      "1000/4000 updates  100/s  left 0:30  bound 1.5  valid 1.2  prediction error 0.500\n"
                      "2000/4000 updates  100/s  left 0:20  bound 1.5  valid 1.2  prediction error 0.500\n"
                      "2500/4000 updates  100/s  left 0:15  bound 1.5  valid 1.2  prediction error 0.500\n");
}

/* A run that goes on has seconds behind it, which are no reason for a line. */
static void a_run_that_goes_on_waits_too(void **state) {
  (void)state;
  begin_log();
  cli_progress progress = cli_progress_new();
  for (int i = 0; i < 40; i++) {
    dvbf_progress report = report_at(500 + i / 4., 1.5);
    cli_progress_show(&progress, &report);
  }
  cli_progress_end(&progress);
  end_log();
  assert_string_equal(text, "");
}

/* A search has no bound of its own: NaN is left out. A bound that is infinite is a word. */
static void numbers_are_finite(void **state) {
  (void)state;
  begin_log();
  cli_progress progress = cli_progress_new();
  const double bounds[] = {NAN, NAN, -INFINITY};
  for (int i = 0; i < 3; i++) {
    dvbf_progress report = report_at(10. * i, bounds[i]);
    report.event = i == 1 ? "candidate 1/8 wild: diverged" : NULL;
    report.validated = i == 2;
    report.seconds_left = i == 2 ? NAN : 10;
    cli_progress_show(&progress, &report);
  }
  cli_progress_end(&progress);
  end_log();
  assert_non_null(strstr(text, "candidate 1/8 wild: diverged\n1000/4000 updates"));
  assert_non_null(strstr(text, "left 0:10\n"));
  assert_non_null(strstr(text, "left ?  bound diverged\n"));
  assert_null(strstr(text, "nan"));
  assert_null(strstr(text, "inf"));
}

/* Other work that takes long; it began when the test says so. */
static void shares_are_told_every_ten_seconds(void **state) {
  (void)state;
  begin_log();
  cli_share share = cli_share_new();
  cli_share_show(0.1, &share);
  share.began -= 10.5;
  for (int i = 0; i < 5; i++) cli_share_show(0.5, &share);
  share.began -= 10.5;
  for (int i = 0; i < 5; i++) cli_share_show(0.75, &share);
  cli_share_end(&share);
  end_log();
  assert_int_equal(lines(), 2);
  assert_memory_equal(text, "50 %  left 0:10\n75 %  left 0:0", strlen("50 %  left 0:10\n75 %  left 0:0"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_line_every_ten_seconds), cmocka_unit_test(a_run_that_goes_on_waits_too),
      cmocka_unit_test(numbers_are_finite), cmocka_unit_test(shares_are_told_every_ten_seconds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
