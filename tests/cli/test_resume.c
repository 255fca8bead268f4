/* Runs that end early, as a user meets them: signals, kills, a second process and a full disk. */
#include "command.h"
#include "part.h"

#include <math.h>
#include <signal.h>
#include <time.h>

/* ---- Signals ---- */

/* Waits until the file has a second line, for at most 20 s. */
static void wait_for_line(const char *path) {
  for (int i = 0; i < 2000; i++) {
    char text[4096];
    if (exists(path) && read_file(path, text, sizeof text) && strchr(strchr(text, '\n') + 1, '\n')) return;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  fail_msg("%s received no line", path);
}

/* Exit status of the child; one that does not end within 20 s is killed, and the test fails. */
static int wait_for_exit(pid_t child) {
  int status = 0;
  for (int i = 0; i < 2000; i++) {
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return -1;
}

/* Begins a run that takes long, and waits for its first validation. */
static pid_t begin_run(const char *name, const char *updates, const char *memory) {
  char path[64];
  snprintf(path, sizeof path, "%s/metrics.csv", name);
  pid_t child = fork();
  if (!child) {
    if (!freopen("stderr.txt", "w", stderr)) _exit(99);
    execl(getenv("DVBF_COMMAND"), "dvbf", "train", "data.h5", "-o", name, "--updates", updates, "--hidden",
          "8", "--starts", "1", "--validate-every", "5", "--memory", memory, "--quiet", (char *)NULL);
    _exit(99);
  }
  wait_for_line(path);
  return child;
}

static void signal_leaves_a_model(int number, const char *name) {
  pid_t child = begin_run(name, "100000000", "256");
  kill(child, number);
  assert_int_equal(wait_for_exit(child), 128 + number);
  read_file("stderr.txt", err, sizeof err);
  assert_has(err, "the best model so far is saved in");
  assert_has(err, "--resume` continues");
  assert_int_equal(dvbf("evaluate %s data.h5 --samples 1", name), 0);
}

static void signals_leave_a_model(void **state) {
  (void)state;
  signal_leaves_a_model(SIGINT, "interrupted");
  signal_leaves_a_model(SIGTERM, "terminated");
}

/* A recording of ten outputs, whose linear model takes seconds to find. */
static void write_recording(const char *path) {
  enum { OUTPUTS = 10, ROWS = 3000 };
  double x[OUTPUTS] = {0};
  uint32_t noise = 1;
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "u");
  for (int i = 0; i < OUTPUTS; i++) fprintf(file, ",y%d", i);
  for (int t = 0; t < ROWS; t++) {
    double u = sin(0.7 * t * t), first = x[0];
    fprintf(file, "\n%.4f", u);
    for (int i = 0; i < OUTPUTS; i++) {
      noise = noise * 1664525 + 1013904223;
      x[i] = 0.8 * x[i] + 0.1 * (i + 1 < OUTPUTS ? x[i + 1] : first) + 0.1 * u + 1e-11 * (noise >> 2);
      fprintf(file, ",%.4f", x[i]);
    }
  }
  fclose(file);
}

/* Before there is a model, a signal ends a run at once. */
static void signals_end_what_has_no_model(void **state) {
  (void)state;
  write_recording("ten.csv");
  pid_t child = fork();
  if (!child) {
    if (!freopen("stderr.txt", "w", stderr)) _exit(99);
    execl(getenv("DVBF_COMMAND"), "dvbf", "train", "ten.csv", "--inputs", "u", "--model", "linear", "-o",
          "ten", "--quiet", (char *)NULL);
    _exit(99);
  }
  for (int i = 0; i < 2000 && !exists("ten/settings.txt"); i++)
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  kill(child, SIGTERM);
  assert_int_equal(wait_for_exit(child), 128 + SIGTERM);
  read_file("stderr.txt", err, sizeof err);
  assert_string_equal(err, "dvbf: stopped by SIGTERM before there was a result\n");
  assert_false(exists("ten/model.safetensors"));
}

/* ---- Going on ---- */

/* Metrics without the column of seconds. */
static void assert_same_curves(const char *a, const char *b) {
  char line[512];
  snprintf(line, sizeof line,
           "cut -d, -f1,2,4- %s/metrics.csv > one.csv && cut -d, -f1,2,4- %s/metrics.csv > two.csv && "
           "cmp one.csv two.csv",
           a, b);
  assert_int_equal(system(line), 0);
}

static void signals_and_resume_change_nothing(void **state) {
  (void)state;
  pid_t child = begin_run("paused", "500", "256");
  kill(child, SIGTERM);
  assert_int_equal(wait_for_exit(child), 128 + SIGTERM);
  assert_int_equal(dvbf("train data.h5 -o paused --resume --threads 2 --no-verdict"), 0);
  assert_has(err, "continuing from update ");
  assert_has(err, "500 updates in");
  assert_int_equal(dvbf("train data.h5 -o peace --updates 500 --hidden 8 --starts 1 --validate-every 5 "
                        "--quiet --no-verdict"),
                   0);
  assert_true(same_bytes("paused/model.safetensors", "peace/model.safetensors"));
  assert_same_curves("paused", "peace");
  /* How it runs may change: x is read from its file first and kept in memory then. */
  child = begin_run("pieces", "500", "0");
  kill(child, SIGKILL);
  wait_for_exit(child);
  assert_int_equal(dvbf("train data.h5 -o pieces --resume --quiet --memory 256 --updates 500 --no-verdict"),
                   0);
  assert_true(same_bytes("pieces/model.safetensors", "peace/model.safetensors"));
  assert_same_curves("pieces", "peace");
  /* A finished run stays as it is, whatever is asked. */
  assert_int_equal(system("cp -r paused before-resume"), 0);
  assert_int_equal(dvbf("train data.h5 -o paused --resume --json --no-verdict"), 0);
  assert_has(err, "this run is finished");
  json_t *all = json_loads(out, 0, NULL);
  assert_int_equal(number(all, "starts"), 1);
  assert_true(number(all, "seconds") > 0 && isfinite(number(all, "valid_bound")));
  json_decref(all);
  assert_int_equal(dvbf("train data.h5 -o paused --resume --updates 499"), 2);
  assert_refused("the run in paused was started with");
  assert_int_equal(dvbf("train data.h5 -o paused --resume --preset paper-pendulum"), 2);
  assert_refused("was started with");
  assert_int_equal(dvbf("simulate pendulum -o moved.h5 --train 40 --valid 10 --test=20 --seed 5"), 0);
  assert_int_equal(dvbf("train moved.h5 -o paused --resume"), 2);
  assert_refused("other data");
  assert_int_equal(system("diff -r paused before-resume"), 0);
}

/* A finished run goes on to more updates, killed or not to the same bytes. */
static void more_updates_extend(const char *more) {
  assert_int_equal(
      dvbf("train data.h5 -o short --updates 60 --hidden 8 --starts 1 --validate-every 20 --quiet "
           "--no-verdict --force %s",
           more),
      0);
  assert_int_equal(system("rm -rf whole killed; cp -r short whole; cp -r short killed"), 0);
  assert_int_equal(dvbf("train data.h5 -o whole --resume --updates 400 --threads 2 --no-verdict"), 0);
  assert_has(err, "this run was finished at update 60: continuing to update 400");
  for (int i = 0; i < 3; i++) {
    pid_t child = fork();
    if (!child) {
      if (!freopen("stderr.txt", "w", stderr)) _exit(99);
      execl(getenv("DVBF_COMMAND"), "dvbf", "train", "data.h5", "-o", "killed", "--resume", "--updates",
            "400", "--checkpoint-every", "0", "--quiet", "--no-verdict", (char *)NULL);
      _exit(99);
    }
    usleep(60000 + 40000 * (useconds_t)i);
    kill(child, SIGKILL);
    wait_for_exit(child);
  }
  assert_int_equal(dvbf("train data.h5 -o killed --resume --updates 400 --quiet --no-verdict"), 0);
  assert_true(same_bytes("whole/model.safetensors", "killed/model.safetensors"));
  assert_same_curves("whole", "killed");
  assert_int_equal(system("grep -q '^updates = 400' whole/settings.txt"), 0);
  assert_false(same_bytes("whole/model.safetensors", "short/model.safetensors"));
}

static void finished_runs_are_extended(void **state) {
  (void)state;
  if (PART == 1) more_updates_extend("");
  more_updates_extend("--recognition-input innovation --linear-paths on --gain-updates 20");
  pid_t child = begin_run("begun", "100000", "256");
  kill(child, SIGTERM);
  wait_for_exit(child);
  assert_int_equal(dvbf("train data.h5 -o begun --resume --updates 200000"), 2);
  assert_refused("belongs to a run that has not finished its 100000 updates");
  assert_int_equal(system("mkdir sought && sed '/^search/d' short/settings.txt >sought/settings.txt && "
                          "echo 'search = on' >>sought/settings.txt"),
                   0);
  assert_int_equal(dvbf("train data.h5 -o sought --resume --updates 100"), 2);
  assert_refused("the run in sought is a search, whose candidates are not trained further");
}

static void resume_begins_where_nothing_is(void **state) {
  (void)state;
  assert_int_equal(dvbf("train data.h5 -o resumed --resume --updates 20 --seed 3" TINY), 0);
  assert_has(err, "no checkpoint to continue from: starting at the first update");
  assert_true(same_bytes("resumed/model.safetensors", "run/model.safetensors"));
  /* The settings of a run that was killed before its first checkpoint are still its own. */
  assert_int_equal(unlink("resumed/checkpoint.safetensors"), 0);
  assert_int_equal(dvbf("train data.h5 -o resumed --resume --quiet --no-verdict"), 0);
  assert_true(same_bytes("resumed/model.safetensors", "run/model.safetensors"));
}

static void a_second_process_is_refused(void **state) {
  (void)state;
  pid_t child = begin_run("busy", "100000000", "256");
  assert_int_equal(dvbf("train data.h5 -o busy --resume"), 1);
  assert_refused("busy: another process is training");
  assert_int_equal(dvbf("train data.h5 -o busy --force --updates 5 --quiet" TINY), 1);
  assert_refused("busy: another process is training");
  kill(child, SIGKILL);
  wait_for_exit(child);
  assert_int_equal(dvbf("train data.h5 -o busy --force --updates 20 --seed 3" TINY), 0);
  assert_true(same_bytes("busy/model.safetensors", "run/model.safetensors"));
}

/* Files may grow to 32 KiB only: the model does not fit. */
static void a_full_disk_is_said_and_survived(void **state) {
  (void)state;
  assert_int_equal(
      system("trap '' XFSZ; ulimit -f 32; \"$DVBF_COMMAND\" train data.h5 -o full --updates 20 --seed 3" TINY
             " --quiet >stdout.txt 2>stderr.txt"),
      1 << 8);
  read_file("stdout.txt", out, sizeof out);
  read_file("stderr.txt", err, sizeof err);
  assert_refused("full/model.safetensors: cannot be written");
  assert_false(exists("full/model.safetensors") || exists("full/checkpoint.safetensors"));
  assert_int_equal(dvbf("train data.h5 -o full --resume --quiet --no-verdict"), 0);
  assert_true(same_bytes("full/model.safetensors", "run/model.safetensors"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(signals_leave_a_model),
      cmocka_unit_test(signals_end_what_has_no_model),
      cmocka_unit_test(signals_and_resume_change_nothing),
      cmocka_unit_test(finished_runs_are_extended),
      cmocka_unit_test(resume_begins_where_nothing_is),
      cmocka_unit_test(a_second_process_is_refused),
      cmocka_unit_test(a_full_disk_is_said_and_survived),
  };
  return cmocka_run_group_tests_name("resume", tests, enter_folder_with_run, tear_down);
}
