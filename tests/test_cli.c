/* The command as a user meets it: run as a process in a folder of its own, judged by its output, exit status
 * and files. The environment variable DVBF_COMMAND names the program. */
#include "command.h"

#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <time.h>

static void write_dataset(hid_t file, const char *name, int rank, const hsize_t *shape, const float *values) {
  hid_t space = H5Screate_simple(rank, shape, NULL);
  hid_t set = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  H5Dclose(set);
  H5Sclose(space);
}

/* Writes x [20, 8, 3] (or [20, 8], of rank 2) and u [20, steps_u, 1], with x = `odd` at sequence 7, step 4.
 */
static void write_data(const char *path, int rank_x, hsize_t steps_u, float odd) {
  static float x[20 * 8 * 3], u[20 * 16];
  for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = sinf((float)i);
  x[(7 * 8 + 4) * 3 + 1] = odd;
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  write_dataset(file, "x", rank_x, (hsize_t[]){20, 8, 3}, x);
  write_dataset(file, "u", 3, (hsize_t[]){20, steps_u, 1}, u);
  H5Fclose(file);
}

/* ---- Usage ---- */

static void help_states_defaults(void **state) {
  (void)state;
  assert_int_equal(dvbf("--help"), 0);
  assert_has(out, "reproduce");
  assert_int_equal(dvbf("--version"), 0);
  assert_string_equal(out, "dvbf " DVBF_VERSION "\n");
  static const char *const commands[][2] = {{"simulate", "pendulum"}, {"train", "train"},
                                            {"evaluate", "evaluate"}, {"report", "evaluate"},
                                            {"info", "data"},         {"reproduce", "train"}};
  for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
    static char first[sizeof out];
    assert_int_equal(dvbf("help %s", commands[c][0]), 0);
    strcpy(first, out);
    assert_int_equal(dvbf("%s --help", commands[c][0]), 0);
    assert_string_equal(first, out);
    dvbf_setting_info info;
    for (size_t i = 0; dvbf_settings_table(commands[c][1], i, &info); i++) {
      char name[80], initial[80];
      snprintf(name, sizeof name, "--%s %s", info.name, info.kind);
      snprintf(initial, sizeof initial, "%s; default %s\n", info.range, info.initial);
      assert_has(out, name);
      if (*info.initial) assert_has(strstr(out, name), initial);
    }
  }
  assert_has(out, "paper-pendulum");
}

static void wrong_usage_is_status_2(void **state) {
  (void)state;
  static const struct {
    const char *arguments, *answer;
  } cases[] = {
      {"trian data.h5", "did you mean train?"},
      {"help trian", "did you mean train?"},
      {"train data.h5 -o x --learning-rat 1", "did you mean --learning-rate?"},
      {"train data.h5 -o x --quite", "did you mean --quiet?"},
      {"train data.h5 -o x --output y1", "--output: given twice"}, /* --outputs is meant */
      {"train data.h5 -o x --learning-rate 5", "learning-rate = 5: must be a number in [1e-12, 1]"},
      {"train data.h5 -o x --latent=3.5", "latent = 3.5: must be a whole number"},
      {"train data.h5 -o x --transition cubic", "locally-linear | linear | mlp"},
      {"train data.h5 -o x --updates", "--updates: its value is missing"},
      {"train data.h5 -o x --updates --quiet", "--updates: its value is missing"},
      {"train data.h5 -o x --quiet=1", "--quiet: takes no value"},
      {"train data.h5 -o x --no-residual=on", "takes no value"},
      {"train data.h5 -o x --no-updates", "no such option or setting"},
      {"train data.h5 -o x -z", "-z: no such option"},
      {"train data.h5 -o x --preset pendulm", "the known ones are pendulum"},
      {"train data.h5 more.h5 -o x", "more.h5: one argument too many"},
      {"train data.h5", "--output is missing"},
      {"train -o x", "DATA is missing"},
      {"train data.h5 -o x --resume --force", "--resume goes on with a run and --force replaces it"},
      {"simulate bowl -o x", "the known ones are: pendulum"},
      {"simulate pendulum -o x --steps 1", "steps = 1: must be a whole number in [2, 100000]"},
      {"reproduce bowl -o x", "the known ones are: pendulum, ball, two-balls, all"},
      {"reproduce ball -o x --preset paper-pendulum", "preset = paper-pendulum: it is for pendulum"},
      {"reproduce pendulum -o x --model dkf", "model = dkf: pendulum is compared with its rival"},
      {"reproduce ball -o x --preset ball --model dkf", "model = dkf: the paper has none for ball"},
      {"reproduce all -o x --preset bowl", "no such preset; the known ones are pendulum"},
      {"reproduce pendulum -o x --seeds 0", "seeds = 0: must be a whole number in [1, 1000]"},
      {"evaluate run", "DATA is missing"},
      {"report run data.h5", "--output is missing"},
      {"report run data.h5 -o x/x.html --split some", "train | valid | test"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int status = dvbf("%s", cases[i].arguments);
    if (status != 2) fail_msg("dvbf %s: exit status %d", cases[i].arguments, status);
    assert_refused(cases[i].answer);
    assert_false(exists("x"));
  }
  assert_int_equal(dvbf(""), 2);
  assert_has(err, "usage:");
}

static void flags_win_over_config_over_preset(void **state) {
  (void)state;
  static char text[1 << 14];
  FILE *config = fopen("config.txt", "w");
  fprintf(config, "updates = 5 # a comment\nlatent = 2\nrho = 0.5\n");
  fclose(config);
  assert_int_equal(
      dvbf("train data.h5 --latent 4 -o order --config config.txt --no-residual --affine --clip-z=0"
           " --preset paper-pendulum --hidden 8 --batch-size 20 --quiet"),
      0);
  read_file("order/settings.txt", text, sizeof text);
  assert_has(text, "\nlatent = 4\n");           /* flag */
  assert_has(text, "\nclip-z = 0\n");           /* flag over preset */
  assert_has(text, "\nresidual = off\n");       /* --no-NAME */
  assert_has(text, "\naffine = on\n");          /* a switch alone */
  assert_has(text, "\nupdates = 5\n");          /* config over preset */
  assert_has(text, "\nrho = 0.5\n");            /* config over default */
  assert_has(text, "\noptimizer = adadelta\n"); /* preset over default */
  assert_has(text, "\nvalidate-every = 250\n"); /* preset */
  assert_has(text, "\nlog-sigma-max = 2.5\n");  /* default */
  assert_string_equal(err, "");                 /* --quiet */
  assert_int_equal(dvbf("train data.h5 -o order2 --config none.txt"), 1);
  assert_refused("none.txt");
}

/* ---- Bad input ---- */

static void bad_data_is_named(void **state) {
  (void)state;
  char bytes[1 << 14];
  size_t length = read_file("data.h5", bytes, sizeof bytes);
  FILE *file = fopen("short.h5", "wb");
  fwrite(bytes, 1, length / 2, file);
  fclose(file);
  file = fopen("text.h5", "w");
  fprintf(file, "no numbers\n");
  fclose(file);
  write_data("rank.h5", 1, 8, 0);
  write_data("length.h5", 3, 9, 0);
  write_data("nan.h5", 3, 8, NAN);
  static const char *const cases[][3] = {
      {"none.h5", "none.h5", "cannot be read"},       {"short.h5", "short.h5", "truncated"},
      {"text.h5", "text.h5", "no column of numbers"}, {"rank.h5", "rank.h5: u", "shape"},
      {"length.h5", "length.h5: u", "shape"},         {"nan.h5", "nan.h5: x", "sequence 7, step 4"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(dvbf("train %s -o bad" TINY, cases[i][0]), 1);
    assert_refused(cases[i][1]);
    assert_has(err, cases[i][2]);
    assert_false(exists("bad"));
  }
}

static void good_data_at_the_root_trains(void **state) {
  (void)state;
  write_data("good.h5", 3, 8, 0);
  assert_int_equal(dvbf("train good.h5 -o good --updates 5" TINY), 0);
  assert_int_equal(dvbf("evaluate good good.h5"), 0);
  assert_has(out, "No ground truth");
}

static void output_is_checked_before_training(void **state) {
  (void)state;
  assert_int_equal(dvbf("train data.h5 -o data.h5/run --updates 1000000000"), 1);
  assert_refused("data.h5/run: the folder cannot be made");
  assert_int_equal(dvbf("train data.h5 -o data.h5 --updates 1000000000"), 1);
  assert_refused("data.h5: the folder cannot be written");
  assert_int_equal(dvbf("simulate pendulum -o data.h5/x.h5"), 1);
  assert_refused("data.h5/x.h5");
}

static void former_results_stay_without_force(void **state) {
  (void)state;
  assert_int_equal(system("cp -r run before && cp data.h5 before.h5"), 0);
  assert_int_equal(dvbf("train data.h5 -o run --updates 1 --seed 9" TINY), 1);
  assert_refused("run/model.safetensors: exists already");
  assert_int_equal(dvbf("simulate pendulum -o data.h5"), 1);
  assert_refused("data.h5: exists already");
  /* Even with --force a run that fails changes nothing. */
  assert_int_equal(dvbf("train none.h5 -o run --force" TINY), 1);
  assert_int_equal(dvbf("train data.h5 -o run --force --quiet --initial-frames 100" TINY), 2);
  assert_refused("initial-frames");
  static const char *const names[] = {"model.safetensors", "metrics.csv", "settings.txt",
                                      "checkpoint.safetensors"};
  for (size_t i = 0; i < 4; i++) {
    char now[64], then[64];
    snprintf(now, sizeof now, "run/%s", names[i]);
    snprintf(then, sizeof then, "before/%s", names[i]);
    assert_true(same_bytes(now, then));
  }
  assert_true(same_bytes("data.h5", "before.h5"));
  assert_int_equal(dvbf("train data.h5 -o before --updates 1 --seed 9 --force" TINY), 0);
  assert_false(same_bytes("run/model.safetensors", "before/model.safetensors"));
  assert_false(same_bytes("run/metrics.csv", "before/metrics.csv"));
}

/* ---- Work ---- */

static void run_folder_is_complete(void **state) {
  (void)state;
  static char text[1 << 14];
  read_file("run/metrics.csv", text, sizeof text);
  assert_int_equal(strncmp(text, "update,start,seconds,bound,valid_bound,", 39), 0);
  assert_has(text, "\n5,");
  assert_has(text, "\n20,");
  read_file("run/settings.txt", text, sizeof text);
  assert_has(text, "\nupdates = 20\n");
  assert_int_equal(dvbf("evaluate run data.h5"), 0);
  assert_has(out, "velocity");
  assert_has(out, "Lower bound");
  assert_has(out, "steps ahead");
}

static void progress_tells_of_a_restart(void **state) {
  (void)state;
  assert_int_equal(dvbf("train data.h5 -o restart --updates 10 --restart-above 0" TINY " --starts 2"), 0);
  assert_has(err, "\nstart 1 predicts badly");
  assert_has(err, "\n2/10  start 2 of 2");
  assert_string_equal(out, "");
}

static void training_tells_scripts(void **state) {
  (void)state;
  assert_int_equal(dvbf("train data.h5 -o told --updates 10 --json --quiet" TINY), 0);
  json_t *all = json_loads(out, 0, NULL);
  assert_non_null(all);
  assert_int_equal(number(all, "updates"), 10);
  assert_true(number(all, "seconds") > 0 && number(all, "parameters") > 0 && number(all, "threads") > 0);
  number(all, "valid_bound");
  assert_string_equal(err, "");
  json_decref(all);
}

static void evaluation_is_complete_json(void **state) {
  (void)state;
  assert_int_equal(dvbf("evaluate run/model.safetensors data.h5 --json --samples 2 --threads 2"), 0);
  json_t *all = json_loads(out, 0, NULL);
  assert_non_null(all);
  static const char *const names[] = {"sin", "cos", "velocity"};
  for (int i = 0; i < 3; i++) {
    const json_t *entry = json_object_get(json_object_get(all, "regression"), names[i]);
    assert_true(number(entry, "r2") <= 1);
    number(entry, "log_likelihood");
  }
  const json_t *bound = json_object_get(all, "bound");
  double sum = number(bound, "reconstruction") - number(bound, "kl_w") - number(bound, "kl_v");
  assert_true(fabs(number(bound, "elbo") - sum) < 1e-6 * (1 + fabs(sum)));
  assert_true(number(bound, "elbo_deviation") >= 0);
  const json_t *prediction = json_object_get(all, "prediction");
  assert_int_equal(number(prediction, "observed"), 5);
  assert_true(number(prediction, "pixel_variance") > 0);
  static const char *const curves[] = {"horizon", "mse", "mse_mean_path", "mse_repeat"};
  for (int i = 0; i < 4; i++) assert_int_equal(json_array_size(json_object_get(prediction, curves[i])), 10);
  for (size_t i = 0; i < 10; i++)
    assert_int_equal(json_integer_value(json_array_get(json_object_get(prediction, "horizon"), i)), i + 1);
  assert_true(number(all, "updates") <= 20);
  assert_true(number(all, "seconds") > 0);
  assert_true(number(all, "parameters") > 1000);
  assert_int_equal(number(all, "seed"), 3);
  assert_int_equal(number(all, "threads"), 2);
  json_decref(all);
}

/* The file tells evaluate which model it is. */
static void a_dkf_from_data_to_tables(void **state) {
  (void)state;
  assert_int_equal(dvbf("train data.h5 -o dkf --preset dkf-pendulum --updates 10 --quiet" TINY), 0);
  assert_int_equal(dvbf("evaluate dkf data.h5 --samples 2"), 0);
  assert_has(out, "- KL of z");
  assert_has(out, "velocity");
  assert_has(out, "steps ahead");
}

static void same_bytes_with_any_threads(void **state) {
  (void)state;
  static const char *const names[] = {"t1", "t2", "t4", "again"};
  static const int threads[] = {1, 2, 4, 1};
  for (int i = 0; i < 4; i++) {
    char path[64];
    snprintf(path, sizeof path, "%s/model.safetensors", names[i]);
    assert_int_equal(
        dvbf("train data.h5 -o %s --updates 20 --threads %d --seed 3" TINY, names[i], threads[i]), 0);
    assert_true(same_bytes(path, "run/model.safetensors"));
  }
  assert_int_equal(dvbf("train data.h5 -o other --updates 20 --seed 4" TINY), 0);
  assert_false(same_bytes("other/model.safetensors", "run/model.safetensors"));
}

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
  assert_has(err, "--resume` goes on");
  assert_int_equal(dvbf("evaluate %s data.h5 --samples 1", name), 0);
}

static void signals_leave_a_model(void **state) {
  (void)state;
  signal_leaves_a_model(SIGINT, "interrupted");
  signal_leaves_a_model(SIGTERM, "terminated");
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
  pid_t child = begin_run("paused", "2000", "256");
  kill(child, SIGTERM);
  assert_int_equal(wait_for_exit(child), 128 + SIGTERM);
  assert_int_equal(dvbf("train data.h5 -o paused --resume --threads 2"), 0);
  assert_has(err, "going on from update ");
  assert_has(err, "2000 updates in");
  assert_int_equal(
      dvbf("train data.h5 -o peace --updates 2000 --hidden 8 --starts 1 --validate-every 5 --quiet"), 0);
  assert_true(same_bytes("paused/model.safetensors", "peace/model.safetensors"));
  assert_same_curves("paused", "peace");
  /* How it runs may change: x is read from its file first and kept in memory then. */
  child = begin_run("pieces", "2000", "0");
  kill(child, SIGKILL);
  wait_for_exit(child);
  assert_int_equal(dvbf("train data.h5 -o pieces --resume --quiet --memory 256 --updates 2000"), 0);
  assert_true(same_bytes("pieces/model.safetensors", "peace/model.safetensors"));
  assert_same_curves("pieces", "peace");
  /* A finished run stays as it is, whatever is asked. */
  assert_int_equal(system("cp -r paused before-resume"), 0);
  assert_int_equal(dvbf("train data.h5 -o paused --resume --json"), 0);
  assert_has(err, "this run is finished");
  json_t *all = json_loads(out, 0, NULL);
  assert_int_equal(number(all, "starts"), 1);
  assert_true(number(all, "seconds") > 0 && isfinite(number(all, "valid_bound")));
  json_decref(all);
  assert_int_equal(dvbf("train data.h5 -o paused --resume --updates 2001"), 2);
  assert_refused("updates = 2001: the run in paused was begun with updates = 2000");
  assert_int_equal(dvbf("train data.h5 -o paused --resume --preset paper-pendulum"), 2);
  assert_refused("was begun with");
  assert_int_equal(dvbf("simulate pendulum -o moved.h5 --train 40 --valid 10 --test=20 --seed 5"), 0);
  assert_int_equal(dvbf("train moved.h5 -o paused --resume"), 2);
  assert_refused("other data");
  assert_int_equal(system("diff -r paused before-resume"), 0);
}

static void resume_begins_where_nothing_is(void **state) {
  (void)state;
  assert_int_equal(dvbf("train data.h5 -o resumed --resume --updates 20 --seed 3" TINY), 0);
  assert_has(err, "no checkpoint to go on from: beginning at the first update");
  assert_true(same_bytes("resumed/model.safetensors", "run/model.safetensors"));
  /* The settings of a run that was killed before its first checkpoint are still its own. */
  assert_int_equal(unlink("resumed/checkpoint.safetensors"), 0);
  assert_int_equal(dvbf("train data.h5 -o resumed --resume --quiet"), 0);
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
  assert_int_equal(dvbf("train data.h5 -o full --resume --quiet"), 0);
  assert_true(same_bytes("full/model.safetensors", "run/model.safetensors"));
}

#define BRIEF " --updates 5 --hidden 8 --starts 1 --json --quiet"

static void expect_files(const char *folder_name, const char *const *names) {
  for (; *names; names++) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder_name, *names);
    if (!exists(path)) fail_msg("%s is missing", path);
  }
}

static void reproduce_writes_everything(void **state) {
  (void)state;
  assert_int_equal(dvbf("reproduce pendulum -o all" BRIEF), 0);
  json_t *all = json_loads(out, 0, NULL);
  assert_non_null(all);
  const json_t *models = json_object_get(all, "pendulum");
  assert_int_equal(json_array_size(models), 2);
  static const double paper[] = {798.56, 784.70};
  for (size_t m = 0; m < 2; m++) {
    const json_t *model = json_array_get(models, m),
                 *first = json_array_get(json_object_get(model, "seeds"), 0);
    const json_t *summary = json_object_get(first, "summary");
    assert_true(number(summary, "error_6_45") > 0);
    assert_true(number(summary, "walk_distance") > 0);
    assert_true(number(summary, "seconds") > 0 && number(summary, "starts") == 1);
    assert_true(number(json_object_get(model, "paper"), "elbo") == paper[m]);
    const json_t *far = json_object_get(json_object_get(first, "long"), "prediction");
    assert_int_equal(json_array_size(json_object_get(far, "mse")), 40);
  }
  json_decref(all);
  static const char *const names[] = {"data.h5",
                                      "long.h5",
                                      "results.json",
                                      "overview.png",
                                      "run/model.safetensors",
                                      "run-dkf/model.safetensors",
                                      "report.html",
                                      "figures/pendulum-latent.svg",
                                      "figures/pendulum-latent.png",
                                      "figures/pendulum-walks-DVBF-LL.svg",
                                      "figures/pendulum-run-dkf-errors.svg",
                                      NULL};
  expect_files("all", names);
  assert_int_equal(dvbf("reproduce pendulum -o all --updates 5"), 1);
  assert_refused("exists already");
}

/* A preset stands for its model alone and decides on the data; several seeds have folders of their own. */
static void reproduce_takes_presets_and_seeds(void **state) {
  (void)state;
  assert_int_equal(dvbf("reproduce ball -o ball --preset paper-ball --seeds 2 --batch-size 20" BRIEF), 0);
  json_t *all = json_loads(out, 0, NULL);
  const json_t *models = json_object_get(all, "ball"), *model = json_array_get(models, 0);
  assert_int_equal(json_array_size(models), 1);
  assert_string_equal(json_string_value(json_object_get(model, "preset")), "paper-ball");
  assert_int_equal(json_array_size(json_object_get(model, "seeds")), 2);
  assert_true(number(json_object_get(model, "min"), "velocity_x_r2_away") <=
              number(json_object_get(model, "max"), "velocity_x_r2_away"));
  assert_true(json_is_null(json_object_get(json_object_get(model, "paper"), "elbo")));
  json_decref(all);
  static const char *const names[] = {"seed-1/data.h5", "seed-2/run/model.safetensors", "report.html",
                                      "figures/ball-run-ball.svg", NULL};
  expect_files("ball", names);
  char line[2048] = "";
  FILE *settings = fopen("ball/seed-1/run/settings.txt", "r");
  assert_non_null(settings);
  assert_true(fread(line, 1, sizeof line - 1, settings) > 0);
  fclose(settings);
  assert_has(line, "latent = 4");
}

/* A model whose initial network sees all 15 frames: what cannot be predicted is not said to be predicted
 * well, and the rest is measured from the frames that it needs. */
static void reproduce_says_what_it_cannot_measure(void **state) {
  (void)state;
  assert_int_equal(dvbf("reproduce two-balls -o two --preset paper-two-balls --batch-size 20" BRIEF), 0);
  json_t *all = json_loads(out, 0, NULL);
  const json_t *model = json_array_get(json_object_get(all, "two-balls"), 0);
  const json_t *first = json_array_get(json_object_get(model, "seeds"), 0),
               *summary = json_object_get(first, "summary");
  assert_true(json_is_null(json_object_get(summary, "error_6_15")));
  assert_true(number(summary, "two_balls_45_truth") > 0.8);
  const json_t *far = json_object_get(json_object_get(first, "long"), "prediction");
  assert_true(number(far, "observed") == 15);
  json_decref(all);
}

/* ---- Report ---- */

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
                                      "floor: last frame again",
                                      "floor: mean image",
                                      "<figure class=\"space\">",
                                      "\"name\":\"angle\",\"cyclic\":true",
                                      "<figure class=\"film\">",
                                      "Prediction error by horizon",
                                      "Training: bound",
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
  assert_refused("paged/figures/errors.png: exists already");
  assert_int_equal(dvbf("report run data.h5 -o paged/report.html --quiet --force"), 0);
  assert_string_equal(err, "");
  assert_true(same_bytes("paged/report.html", "paged/first.html"));
}

static void report_says_what_is_left_out(void **state) {
  (void)state;
  write_data("plain.h5", 3, 8, 0);
  assert_int_equal(dvbf("train plain.h5 -o plain --updates 5 --quiet" TINY), 0);
  assert_int_equal(dvbf("report plain plain.h5 -o plain/report.html"), 0);
  read_file("plain/report.html", page, sizeof page);
  assert_has(page, "class=\"note\">The data hold no ground truth");
  assert_has(page, "class=\"note\">The data are not images");
  assert_has(err, "The data hold no ground truth");
  assert_has(err, "The data are not images");
  assert_has(page, "\"name\":\"frame\"");
  assert_null(strstr(page, "<figure class=\"film\">"));
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
      {"report run data.h5 -o data.h5", "data.h5: exists already"},
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
  assert_refused("hollow: holds no model.safetensors");
  assert_int_equal(dvbf("evaluate hollow data.h5"), 1);
  assert_refused("hollow: holds no model.safetensors");
}

/* ---- The folder that all tests work in ---- */

static int set_up(void **state) {
  (void)state;
  if (enter_folder()) return -1;
  assert_int_equal(dvbf("simulate pendulum -o data.h5 --train 40 --valid 10 --test=20 --seed 2"), 0);
  assert_int_equal(dvbf("train data.h5 -o run --updates 20 --seed 3" TINY), 0);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(help_states_defaults),
      cmocka_unit_test(wrong_usage_is_status_2),
      cmocka_unit_test(flags_win_over_config_over_preset),
      cmocka_unit_test(bad_data_is_named),
      cmocka_unit_test(good_data_at_the_root_trains),
      cmocka_unit_test(output_is_checked_before_training),
      cmocka_unit_test(former_results_stay_without_force),
      cmocka_unit_test(run_folder_is_complete),
      cmocka_unit_test(progress_tells_of_a_restart),
      cmocka_unit_test(training_tells_scripts),
      cmocka_unit_test(evaluation_is_complete_json),
      cmocka_unit_test(a_dkf_from_data_to_tables),
      cmocka_unit_test(same_bytes_with_any_threads),
      cmocka_unit_test(signals_leave_a_model),
      cmocka_unit_test(signals_and_resume_change_nothing),
      cmocka_unit_test(resume_begins_where_nothing_is),
      cmocka_unit_test(a_second_process_is_refused),
      cmocka_unit_test(a_full_disk_is_said_and_survived),
      cmocka_unit_test(reproduce_writes_everything),
      cmocka_unit_test(reproduce_takes_presets_and_seeds),
      cmocka_unit_test(reproduce_says_what_it_cannot_measure),
      cmocka_unit_test(report_holds_everything),
      cmocka_unit_test(report_says_what_is_left_out),
      cmocka_unit_test(report_refuses_before_working),
  };
  return cmocka_run_group_tests_name("cli", tests, set_up, tear_down);
}
