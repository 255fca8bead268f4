/* For tests of the command as a user meets it: run as a process in a folder of its own, judged by its output,
 * exit status and files. The environment variable DVBF_COMMAND names the program. */
#ifndef COMMAND_H
#define COMMAND_H

#include "../../cli/options.c"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dvbf/dvbf.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A model and a run that take a fraction of a second. */
#define TINY_NETS                                                                                            \
  " --hidden 8 --batch-size 20 --shard-size 5 --starts 1 --validate-every 5 --latent 3 --no-verdict"
#define TINY TINY_NETS " --systems 4"

static char folder[] = "/tmp/dvbf-cli-XXXXXX";
static char out[1 << 16], err[1 << 16]; /* what the last command printed */

static inline size_t read_file(const char *path, char *into, size_t size) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s is not there", path);
  size_t length = fread(into, 1, size - 1, file);
  fclose(file);
  into[length] = 0;
  return length;
}

/* Runs `dvbf ARGUMENTS` and returns its exit status. */
static inline int dvbf(const char *format, ...) {
  char arguments[1024], line[4096];
  va_list list;
  va_start(list, format);
  vsnprintf(arguments, sizeof arguments, format, list);
  va_end(list);
  snprintf(line, sizeof line, "\"$DVBF_COMMAND\" %s >stdout.txt 2>stderr.txt", arguments);
  int status = system(line);
  read_file("stdout.txt", out, sizeof out);
  read_file("stderr.txt", err, sizeof err);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* The command spells settings as flags; a test may quote the sentence of the library. */
static inline void assert_has(const char *text, const char *part) {
  static char flags[4096];
  cli_flags(flags, sizeof flags, part);
  if (!strstr(text, part) && !strstr(text, flags)) fail_msg("\"%s\" is missing in:\n%s", part, text);
}

/* One sentence on standard error, nothing on standard output. */
static inline void assert_refused(const char *part) {
  assert_int_equal(strncmp(err, "dvbf: ", 6), 0);
  assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
  assert_string_equal(out, "");
  assert_has(err, part);
}

static inline bool exists(const char *path) {
  struct stat info;
  return !stat(path, &info);
}

static inline bool same_bytes(const char *a, const char *b) {
  static char one[1 << 22], two[1 << 22];
  size_t n = read_file(a, one, sizeof one), m = read_file(b, two, sizeof two);
  assert_in_range(n, 1, sizeof one - 2);
  return n == m && !memcmp(one, two, n);
}

static inline double number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_number(value)) fail_msg("%s is missing or no number", key);
  return json_number_value(value);
}

/* The folder that all tests of a program work in. */
static inline int enter_folder(void) {
  if (!getenv("DVBF_COMMAND")) {
    fprintf(stderr, "set DVBF_COMMAND to the program to test\n");
    return -1;
  }
  return !mkdtemp(folder) || chdir(folder) ? -1 : 0;
}

/* The same, with data of a pendulum, data.h5, and a model that was trained on them, run. */
static inline int enter_folder_with_run(void **state) {
  (void)state;
  if (enter_folder()) return -1;
  assert_int_equal(dvbf("simulate pendulum -o data.h5 --train 40 --valid 10 --test=20 --seed 2"), 0);
  assert_int_equal(dvbf("train data.h5 -o run --updates 20 --seed 3" TINY), 0);
  return 0;
}

static inline int tear_down(void **state) {
  (void)state;
  char line[64];
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return chdir("/") || system(line);
}

#endif
