/* Trying what was exported. */
#include "export/run.h"

#include "base/file.h"
#include "base/status.h"

#include <dvbf/export.h>
#include <stdio.h>
#include <string.h>

/* `more` is another file of code, or NULL. */
static dvbf_status check(const char *code, const char *more, const char *test, const dv_scratch *scratch,
                         dvbf_error *error) {
  char program[1100], log[1100], line[300];
  int failed = 0;
  snprintf(program, sizeof program, "%s/test", scratch->path);
  snprintf(log, sizeof log, "%s/log", scratch->path);
  const char *const words[] = {
      "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion",      "-Werror", "-O2",
      "-o",       program,     test,    code,      more ? more : "-lm", "-lm",     NULL};
  dvbf_status status = dv_run_compiler(words, scratch, error);
  if (!status) status = dv_run_program((const char *const[]){program, NULL}, log, &failed, error);
  if (status || !failed) return status;
  dv_first_line(line, sizeof line, log);
  return dv_fail(error, DVBF_NUMERIC, "%.200s: the test fails: %s", more ? more : code,
                 *line ? line : "it says nothing");
}

dvbf_status dvbf_export_check(const char *path, dvbf_error *error) {
  dv_path test, control, control_test;
  dv_scratch scratch = {{0}};
  size_t length = strlen(path);
  if (length < 3 || strcmp(path + length - 2, ".c") != 0 || length + 24 > sizeof test)
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: a C file can be tested, which ends in .c", path);
  snprintf(test, sizeof test, "%.*s_test.c", (int)length - 2, path);
  snprintf(control, sizeof control, "%.*s_control.c", (int)length - 2, path);
  snprintf(control_test, sizeof control_test, "%.*s_control_test.c", (int)length - 2, path);
  if (!dv_exists(path) || !dv_exists(test))
    return dv_fail(error, DVBF_IO, "%.300s: is not there; export it first", dv_exists(path) ? test : path);
  dvbf_status status = dv_scratch_make(&scratch, error);
  if (status) return status;
  status = check(path, NULL, test, &scratch, error);
  if (!status && dv_exists(control) && dv_exists(control_test))
    status = check(path, control, control_test, &scratch, error);
  dv_scratch_remove(&scratch);
  return status;
}
