/* Runs that survive: whatever ends a run, going on comes to the same bytes; whatever fails is said in one
 * sentence and leaves what was there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "faults.h"
#include "model/model.h"
#include "train/run_folder.h"

#include <dirent.h>
#include <dvbf/dvbf.h>
#include <dvbf/graph.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__)
enum { STRIDE = 7 }; /* sanitizers are slow: every seventh fault */
#else
enum { STRIDE = 1 };
#endif

static char folder[] = "/tmp/dvbf-checkpoint-XXXXXX";
static const char *const files[] = {DVBF_RUN_SETTINGS, DVBF_RUN_METRICS, DVBF_RUN_MODEL, DVBF_RUN_CHECKPOINT};

/* ---- Data, settings, runs ---- */

enum { TRAIN = 12, VALID = 4, STEPS = 20, N_X = 3 };

static dvbf_data data;

static void make_data(dvbf_sequences *s, size_t count, float phase) {
  *s = (dvbf_sequences){.count = count, .steps = STEPS, .n_x = N_X, .n_u = 1};
  s->x = calloc(count * STEPS * N_X, sizeof *s->x);
  s->u = calloc(count * STEPS, sizeof *s->u);
  for (size_t i = 0; i < count * STEPS * N_X; i++) s->x[i] = sinf(phase + 0.37f * (float)i);
  for (size_t i = 0; i < count * STEPS; i++) s->u[i] = cosf(phase + (float)i);
}

/* Every start is judged badly, so that all three are made and the best is taken up again. */
#define SMALL                                                                                                \
  "hidden 3 latent 2 systems 2 batch-size 8 shard-size 4 updates 40 validate-every 7 restart-above 0 "       \
  "initial-frames 2 checkpoint-every 0 threads 1 "
/* One start and two checkpoints, for tests that try everything. */
#define BRIEF                                                                                                \
  "hidden 2 latent 2 systems 2 batch-size 4 shard-size 4 updates 4 validate-every 2 starts 1 "               \
  "initial-frames 2 threads 1 "
/* Steps so large that no retry saves it for long. */
#define DIVERGING                                                                                            \
  "hidden 3 latent 2 systems 2 batch-size 8 shard-size 4 updates 60 validate-every 3 starts 1 retries 100 "  \
  "initial-frames 2 checkpoint-every 0 threads 1 learning-rate 1 clip-spike 0 "                              \
  "decay none scale-transition 3 scale-innovation 10 seed 3 "

/* Without retries: the first start ends before its judgement, and others begin with other settings. */
#define EASED DIVERGING "starts 4 retries 0 restart-above 0 validate-every 20 "
/* The second start explodes, the third is no better than the first, which is taken up again as it was. Which
 * settings do so depends on rounding. */
static char returning[600];
#define RETURNING DIVERGING "starts 3 retries 1 restart-above 0 validate-every 10 contraction 0 "

/* Both phases of training, and a divergence in neither. */
#define PHASES                                                                                               \
  "hidden 3 latent 2 systems 2 batch-size 8 shard-size 4 updates 20 validate-every 7 starts 1 "              \
  "initial-frames 2 checkpoint-every 0 threads 1 gain-updates 24 "                                           \
  "linear-paths on recognition-input innovation dropped zero state-limit 2 "

/* Settings from "name value name value ...". */
static dvbf_settings *settings_of(const char *text) {
  dvbf_settings *settings = NULL;
  dvbf_error error;
  char copy[1024], *rest = copy, *name;
  assert_int_equal(dvbf_settings_new(&settings, "train", &error), DVBF_OK);
  snprintf(copy, sizeof copy, "%s", text);
  while ((name = strtok_r(rest, " ", &rest)))
    if (dvbf_settings_set(settings, name, strtok_r(rest, " ", &rest), &error)) fail_msg("%s", error.message);
  return settings;
}

/* What a callback sees and does. */
typedef struct watch {
  int calls, stop_at; /* 0: never */
  int recoveries, restarts, shortened, eased;
  char last_event[320];
  bool finished;
  dvbf_progress last;
  double rate; /* at the last validation */
} watch;

static bool on_progress(const dvbf_progress *p, void *user_data) {
  watch *w = user_data;
  w->last = *p;
  if (p->validated) w->rate = p->learning_rate;
  if (p->event) {
    snprintf(w->last_event, sizeof w->last_event, "%s", p->event);
    w->recoveries += strstr(p->event, "diverged: back to") != NULL;
    w->shortened += strstr(p->event, " and windows of ") != NULL;
    w->eased += strstr(p->event, "starting again with ") != NULL;
    w->restarts += strstr(p->event, "starting again") != NULL;
    w->finished |= strstr(p->event, "finished") != NULL;
    if (strstr(p->event, "continue from") || strstr(p->event, "continuing from")) return true;
  }
  return !(w->stop_at && ++w->calls >= w->stop_at);
}

static char message[512];
static struct {
  unsigned long memory, files, space;
} planned; /* faults of the next training; 0 if they struck */

static bool as_command; /* a run goes on with the settings of its folder, as `dvbf train --resume` does */

static dvbf_settings *settings_of_run(const char *run) {
  char path[256];
  dvbf_error error;
  dvbf_settings *settings = NULL;
  snprintf(path, sizeof path, "%s/%s", run, DVBF_RUN_SETTINGS);
  if (access(path, R_OK)) return NULL;
  assert_int_equal(dvbf_settings_new(&settings, "train", &error), DVBF_OK);
  if (dvbf_settings_read(settings, path, &error)) fail_msg("%s", error.message);
  return settings;
}

/* Trains in a run folder; the sentence of a failure goes into `message`. */
static dvbf_status train(const char *run, const char *text, bool resume, watch *w) {
  dvbf_error error = {0};
  dvbf_model *model = NULL;
  dvbf_settings *settings = resume && as_command ? settings_of_run(run) : NULL;
  if (!settings) settings = settings_of(text);
  dvbf_train_options options = {
      .folder = run, .resume = resume, .progress = w ? on_progress : NULL, .user_data = w};
  fault.memory = planned.memory;
  fault.files = planned.files;
  fault.space = planned.space;
  fault.full = false;
  dvbf_status status = dvbf_train(&model, settings, &data, &options, &error);
  planned.memory = fault.memory;
  planned.files = fault.files;
  planned.space = fault.full ? 0 : fault.space;
  fault.memory = fault.files = fault.space = 0;
  assert_int_equal(status, error.status);
  assert_true((model != NULL) == !status);
  snprintf(message, sizeof message, "%s", error.message);
  dvbf_model_free(model);
  dvbf_settings_free(settings);
  return status;
}

static void train_well(const char *run, const char *text, bool resume, watch *w) {
  if (train(run, text, resume, w)) fail_msg("%s", message);
}

/* ---- Files ---- */

typedef struct bytes {
  size_t size;
  char at[1 << 17];
} bytes;

static bool read_bytes(bytes *out, const char *run, const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", run, name);
  FILE *file = fopen(path, "rb");
  out->size = file ? fread(out->at, 1, sizeof out->at - 1, file) : 0;
  out->at[out->size] = 0;
  if (file) fclose(file);
  assert_true(out->size < sizeof out->at - 1);
  return file;
}

static void write_bytes(const bytes *from, const char *run, const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", run, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(from->at, 1, from->size, file), from->size);
  fclose(file);
}

static void copy_run(const char *from, const char *to) {
  static bytes all;
  char path[256];
  mkdir(to, 0777);
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/%s", to, files[i]);
    if (read_bytes(&all, from, files[i]))
      write_bytes(&all, to, files[i]);
    else
      unlink(path);
  }
}

static void remove_run(const char *run) {
  char path[512];
  DIR *all = opendir(run);
  if (!all) return;
  for (struct dirent *e; (e = readdir(all));) {
    snprintf(path, sizeof path, "%s/%s", run, e->d_name);
    unlink(path);
  }
  closedir(all);
  rmdir(run);
}

/* Files of a run, temporary ones too; the lock does not count. */
static int count_files(const char *run) {
  int count = 0;
  DIR *all = opendir(run);
  assert_non_null(all);
  for (struct dirent *e; (e = readdir(all));) count += e->d_name[0] != '.';
  closedir(all);
  return count;
}

/* Takes the column of seconds out of metrics. */
static void drop_seconds(bytes *metrics) {
  char *to = metrics->at;
  int column = 0;
  for (const char *from = metrics->at; *from; from++) {
    if (column != 2 || *from == ',') *to++ = *from;
    column = *from == '\n' ? 0 : column + (*from == ',');
  }
  *to = 0;
  metrics->size = (size_t)(to - metrics->at);
}

static void assert_same_result(const char *run, const char *reference) {
  static bytes a, b;
  assert_true(read_bytes(&a, run, DVBF_RUN_MODEL) && read_bytes(&b, reference, DVBF_RUN_MODEL));
  if (a.size != b.size || memcmp(a.at, b.at, a.size) != 0) fail_msg("the model of %s is another", run);
  assert_true(read_bytes(&a, run, DVBF_RUN_METRICS) && read_bytes(&b, reference, DVBF_RUN_METRICS));
  drop_seconds(&a);
  drop_seconds(&b);
  assert_string_equal(a.at, b.at);
  assert_int_equal(count_files(run), 5); /* model, metrics, settings, checkpoint, data.json */
}

/* A model that is there is whole. */
static void assert_model_loads(const char *run) {
  char path[256];
  struct stat info;
  dvbf_error error;
  dvbf_model *model = NULL;
  snprintf(path, sizeof path, "%s/%s", run, DVBF_RUN_MODEL);
  if (stat(path, &info)) return;
  if (dvbf_model_load(&model, path, &error)) fail_msg("%s", error.message);
  dvbf_model_free(model);
}

/* ---- The same bytes ---- */

/* Stops at every k-th call of the callback and goes on, with changing numbers of threads. */
static void stop_and_go(const char *text, const char *reference, int every) {
  remove_run("stops");
  watch w = {0};
  int legs = 0;
  for (; !w.finished; legs++) {
    char now[1024];
    snprintf(now, sizeof now, "%s threads %d", text, 1 + legs % 2);
    w.calls = 0;
    w.stop_at = every;
    train_well("stops", now, true, &w);
    assert_model_loads("stops");
    assert_in_range(legs, 0, 200);
  }
  assert_true(legs > 2);
  assert_same_result("stops", reference);
}

static void stops_change_nothing(void **state) {
  (void)state;
  for (int every = 1; every < 6; every++) stop_and_go(SMALL, "small", every);
  for (int every = 1; every < 6; every++) stop_and_go(DIVERGING, "diverging", every);
  for (int every = 1; every < 6; every++) stop_and_go(EASED, "eased", every);
  for (int every = 1; every < 6; every++) stop_and_go(returning, "returning", every);
  for (int every = 1; every < 4; every++) stop_and_go(PHASES, "phases", every);
  as_command = true;
  for (int every = 1; every < 6; every += 2) stop_and_go(EASED, "eased", every);
  for (int every = 1; every < 6; every += 2) stop_and_go(returning, "returning", every);
  as_command = false;
}

/* The factor on the learning rate of the last recovery. */
static double factor_said(const watch *w) {
  const char *at = strstr(w->last_event, "with ");
  double factor = 0;
  assert_non_null(at);
  assert_int_equal(sscanf(at, "with %lf of", &factor), 1);
  return factor;
}

static void setting_of(char value[64], const char *run, const char *name) {
  dvbf_model *m = NULL;
  char path[256];
  snprintf(path, sizeof path, "%s/%s", run, DVBF_RUN_MODEL);
  assert_int_equal(dvbf_model_load(&m, path, NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_get(dvbf_model_settings(m), name, value, 64, NULL), DVBF_OK);
  dvbf_model_free(m);
}

static void expect_setting(const char *run, const char *name, const char *expected) {
  char value[64];
  setting_of(value, run, name);
  assert_string_equal(value, expected);
}

/* A training that diverges in spite of all begins anew with other settings, says which, and the model has
 * them; those that were given stay. A start from before has its own. */
static void divergence_changes_the_settings(void **state) {
  (void)state;
  watch w = {0};
  remove_run("again");
  train_well("again", EASED, false, &w);
  assert_int_equal(w.eased, 1);
  assert_int_equal(w.last.begun, 4);
  assert_same_result("again", "eased");
  expect_setting("eased", "contraction", "1");
  expect_setting("eased", "clip-norm", "1");
  expect_setting("eased", "scale-transition", "3");
  w = (watch){0};
  remove_run("again");
  train_well("again", returning, false, &w);
  assert_int_equal(w.eased, 1);
  assert_same_result("again", "returning");
  expect_setting("returning", "contraction", "0");
  expect_setting("returning", "clip-norm", "0");
}

/* Without another start, the best model is kept; without any model, training fails. */
static void divergence_ends_with_what_there_is(void **state) {
  (void)state;
  watch w = {0};
  remove_run("again");
  train_well("again", DIVERGING "retries 0 validate-every 1 ", false, &w); /* it has one start */
  assert_non_null(strstr(w.last_event, "diverged despite all retries: the best model, of update "));
  assert_model_loads("again");
  remove_run("again");
  assert_int_equal(train("again", DIVERGING "retries 0 validate-every 1000 ", false, NULL), DVBF_NUMERIC);
  assert_non_null(strstr(message, "training diverged at update "));
  remove_run("again");
}

/* The references are what the tests say they are. */
static void references_are_worth_it(void **state) {
  (void)state;
  watch w = {0};
  remove_run("again");
  train_well("again", SMALL, false, &w);
  assert_int_equal(w.restarts, 2);
  assert_int_equal(w.last.begun, 3);
  assert_same_result("again", "small");
  remove_run("again");
  w = (watch){0};
  train_well("again", DIVERGING, false, &w);
  assert_true(w.recoveries > 2 && w.shortened == 2);      /* of 20 steps, to 10 and 7 */
  assert_true(fabs(w.rate / factor_said(&w) - 1) < 1e-5); /* of a rate of 1 */
  assert_same_result("again", "diverging");
  /* With no folder the model is the same. */
  static bytes a, b;
  dvbf_model *model = NULL;
  dvbf_settings *settings = settings_of(SMALL);
  assert_int_equal(dvbf_train(&model, settings, &data, NULL, NULL), DVBF_OK);
  assert_int_equal(dvbf_model_save(model, "alone", NULL), DVBF_OK);
  read_bytes(&a, ".", "alone");
  read_bytes(&b, "small", DVBF_RUN_MODEL);
  assert_true(a.size == b.size && !memcmp(a.at, b.at, a.size));
  dvbf_model_free(model);
  dvbf_settings_free(settings);
}

/* Trains in a child that ends at its n-th step on the way to the disk; true when it came to its end. */
static bool train_mortal(const char *run, const char *text, unsigned long n) {
  pid_t child = fork();
  int status = 0;
  if (!child) {
    fault.deadly = true;
    planned.files = n;
    _exit(train(run, text, true, NULL) ? 1 : 0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_true(WEXITSTATUS(status) == KILLED || WEXITSTATUS(status) == 0);
  return WEXITSTATUS(status) == 0;
}

/* Whatever step to the disk a process ends at, what it leaves can be gone on with. */
static void death_anywhere_changes_nothing(const char *text, const char *reference, unsigned long stride) {
  unsigned long n = 1, deaths = 0;
  for (;; n += stride, deaths++) {
    remove_run("mortal");
    if (train_mortal("mortal", text, n)) break;
    assert_model_loads("mortal");
    train_well("mortal", text, true, NULL);
    assert_same_result("mortal", reference);
  }
  assert_true(deaths > 20 / STRIDE);
  /* And many deaths in one run. */
  remove_run("mortal");
  n = 40; /* enough for a checkpoint */
  while (!train_mortal("mortal", text, n++)) assert_model_loads("mortal");
  assert_same_result("mortal", reference);
}

static void kills_change_nothing(void **state) {
  (void)state;
  death_anywhere_changes_nothing(BRIEF, "brief", 1);
  death_anywhere_changes_nothing(SMALL, "small", 5 * STRIDE);
  death_anywhere_changes_nothing(DIVERGING, "diverging", 11 * STRIDE);
  death_anywhere_changes_nothing(EASED, "eased", 5 * STRIDE);
  death_anywhere_changes_nothing(returning, "returning", 5 * STRIDE);
  death_anywhere_changes_nothing(PHASES, "phases", 7 * STRIDE);
}

/* A second divergence goes on with the quarter of the rate that its message names, also when a validation
 * came between. */
static void rate_is_what_is_said(void **state) {
  (void)state;
  static bytes all;
  watch w = {0};
  remove_run("rate");
  for (int retries = 1; retries <= 3; retries++) {
    uint64_t bits;
    w.recoveries = 0;
    for (int i = 0; i < 200 && !w.recoveries; i++) {
      w.calls = 0;
      w.stop_at = 1;
      train_well("rate", DIVERGING, true, &w);
    }
    assert_true(w.recoveries == 1);
    double factor = factor_said(&w);
    assert_true(factor == pow(0.5, retries));
    read_bytes(&all, "rate", DVBF_RUN_CHECKPOINT);
    memcpy(&bits, &factor, sizeof bits);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"now.rate_factor\":\"%016llx\"", (unsigned long long)bits);
    assert_non_null(strstr(all.at + 8, wanted));
  }
}

/* All starts that the settings allow have seeds of their own; those of the first 256 stay what they were. */
static void starts_differ(void **state) {
  (void)state;
  dv_train_settings s = {.seed = (int64_t)1 << 53};
  for (uint64_t k = 0; k < 1000; k++) {
    if (k < 256) assert_true(dv_seed_of_start(&s, k) == (uint64_t)s.seed + (k << 56));
    for (uint64_t j = 0; j < k; j++) assert_true(dv_seed_of_start(&s, j) != dv_seed_of_start(&s, k));
  }
}

/* ---- What fails ---- */

/* A failure before anything was written leaves all as it was. */
static bool is_untouched(const char *run, const char *from) {
  static bytes a, b;
  struct stat info;
  if (!from) return stat(run, &info) || !count_files(run);
  for (int i = 0; i < 4; i++) {
    bool there = read_bytes(&a, run, files[i]);
    if (there != read_bytes(&b, from, files[i]) || a.size != b.size || memcmp(a.at, b.at, a.size) != 0)
      return false;
  }
  return count_files(run) == count_files(from);
}

/* Runs that begin (from = NULL) or continue from a copy of `from`, in each of which something fails. */
typedef struct failing {
  unsigned long *which; /* kind of failure */
  const char *text, *from, *reference;
  unsigned long failures;
} failing;

/* Makes the n-th allocation or step to the disk fail. Returns false where there is no n-th. */
static bool survives(failing *f, unsigned long n) {
  remove_run("failing");
  if (f->from) copy_run(f->from, "failing");
  *f->which = n;
  dvbf_status status = train("failing", f->text, true, NULL);
  bool struck = !*f->which;
  *f->which = 0;
  f->failures += status != DVBF_OK;
  if (status && !struck) fail_msg("nothing was to fail: %s", message);
  if (status && status != (f->which == &planned.memory ? DVBF_MEMORY : DVBF_IO))
    fail_msg("failure %lu: %s", n, message);
  if (status && is_untouched("failing", f->from)) return true;
  assert_model_loads("failing");
  if (status) train_well("failing", f->text, true, NULL); /* what fails besides the work ends no run */
  assert_same_result("failing", f->reference);
  return struck;
}

static void full_disk_is_survived(failing f, unsigned long stride) {
  unsigned long n = 1, tried = 0;
  for (; survives(&f, n); n += stride) tried++;
  assert_true(f.failures > 20 / STRIDE);
  if (f.which == &planned.space)
    print_message("full after each of %lu numbers of bytes below %lu\n", tried, n);
}

static void full_disks_are_survived(void **state) {
  (void)state;
  full_disk_is_survived((failing){&planned.files, BRIEF, NULL, "brief", 0}, 1);
  full_disk_is_survived((failing){&planned.files, BRIEF, "begun", "brief", 0}, 1);
  full_disk_is_survived((failing){&planned.files, SMALL, NULL, "small", 0}, 3 * STRIDE);
  full_disk_is_survived((failing){&planned.files, SMALL, "middle", "small", 0}, 3 * STRIDE);
  /* A disk that is full after so many bytes. scripts/faults tries every number of them. */
  unsigned long every = getenv("DVBF_EVERY_BYTE") ? 1 : 331 * STRIDE;
  full_disk_is_survived((failing){&planned.space, BRIEF, NULL, "brief", 0}, every);
  full_disk_is_survived((failing){&planned.space, BRIEF, "begun", "brief", 0}, every);
}

/* The state of a run that was stopped, and the fingerprint of its data. */
static void read_state(dv_training *out, dvbf_model **model, uint64_t *print, const char *run) {
  static bytes file;
  char path[256];
  static const char key[] = "\"data\":\"";
  read_bytes(&file, run, DVBF_RUN_CHECKPOINT);
  const char *found = memmem(file.at, file.size, key, sizeof key - 1);
  assert_non_null(found);
  *print = strtoull(found + sizeof key - 1, NULL, 16);
  snprintf(path, sizeof path, "%s/" DVBF_RUN_MODEL, run);
  assert_int_equal(dvbf_model_load(model, path, NULL), DVBF_OK);
  size_t count = (*model)->parameters.size;
  size_t snapshot = sizeof(dv_counters) + 3 * count * sizeof(dvbf_real);
  assert_int_equal(dv_training_init(out, count, snapshot, NULL), DVBF_OK);
  snprintf(path, sizeof path, "%s/" DVBF_RUN_CHECKPOINT, run);
  assert_int_equal(dv_checkpoint_read(out, *model, *print, path, NULL), DVBF_OK);
}

/* A disk that is full at any byte of a checkpoint leaves the one before it, and nothing else. Many bytes are
 * tried, with DVBF_EVERY_BYTE all of them. */
static void every_byte_of_a_checkpoint_may_be_the_last(void **state) {
  (void)state;
  static bytes before, now, next;
  dvbf_model *model = NULL;
  dv_training training;
  uint64_t print;
  read_state(&training, &model, &print, "begun");
  dvbf_settings *settings = settings_of(BRIEF);
  copy_run("brief", "full");
  read_bytes(&before, "brief", DVBF_RUN_CHECKPOINT);
  read_bytes(&next, "begun", DVBF_RUN_CHECKPOINT);
  int entries = count_files("full");
  size_t stride = getenv("DVBF_EVERY_BYTE") ? 1 : 7 * STRIDE, tried = 0;
  for (size_t n = 0; n < next.size; n += stride, tried++) {
    dvbf_error error = {.message = ""};
    fault.full = false;
    fault.space = n + 1;
    dvbf_status status =
        dv_checkpoint_write(&training, model, settings, print, "full/" DVBF_RUN_CHECKPOINT, &error);
    fault.space = 0;
    assert_int_equal(status, DVBF_IO);
    assert_true(fault.full && error.message[0]);
    read_bytes(&now, "full", DVBF_RUN_CHECKPOINT);
    if (now.size != before.size || memcmp(now.at, before.at, now.size)) fail_msg("byte %zu", n);
    assert_int_equal(count_files("full"), entries);
  }
  print_message("full at %zu of %zu bytes\n", tried, next.size);
  assert_int_equal(dv_checkpoint_write(&training, model, settings, print, "full/" DVBF_RUN_CHECKPOINT, NULL),
                   DVBF_OK);
  read_bytes(&now, "full", DVBF_RUN_CHECKPOINT);
  assert_int_equal(now.size, next.size);
  assert_memory_equal(now.at, next.at, now.size);
  dv_training_clear(&training);
  dvbf_settings_free(settings);
  dvbf_model_free(model);
  remove_run("full");
}

static void lack_of_memory_is_survived(void **state) {
  (void)state;
  failing runs[] = {{&planned.memory, BRIEF, NULL, "brief", 0},
                    {&planned.memory, BRIEF, "begun", "brief", 0}};
  for (int i = 0; i < 2; i++) {
    failing *f = &runs[i];
    allocations.count = 0;
    allocations.recording = true;
    assert_false(survives(f, ULONG_MAX));
    allocations.recording = false;
    assert_in_range(allocations.count, 1000, sizeof allocations.stack / sizeof *allocations.stack);
    for (size_t n = 0; n < allocations.count; n++)
      if (is_worth_failing(n)) assert_true(survives(f, n + 1));
    assert_true(f->failures > 100);
  }
}

/* Whichever allocation fails where a finished run is given more updates, that is what is said. */
static void lack_of_memory_is_no_other_setting(void **state) {
  (void)state;
  dvbf_status status = DVBF_MEMORY;
  allocations.count = 0;
  allocations.recording = true;
  copy_run("brief", "more");
  planned.memory = ULONG_MAX;
  train_well("more", BRIEF "updates 5 ", true, NULL);
  planned.memory = 0;
  allocations.recording = false;
  for (size_t n = 0; n < allocations.count; n++) {
    if (!is_worth_failing(n)) continue;
    copy_run("brief", "more");
    planned.memory = n + 1;
    status = train("more", BRIEF "updates 5 ", true, NULL);
    planned.memory = 0;
    if (status && status != DVBF_MEMORY) fail_msg("allocation %zu: %s", n + 1, message);
  }
  remove_run("more");
}

/* Every failure of a function that writes one file is said, and leaves the former file. */
static void writes_are_whole(dvbf_status (*write)(const char *path, dvbf_error *error)) {
  static bytes before, after;
  dvbf_error error;
  unsigned long *const kinds[] = {&fault.memory, &fault.files};
  assert_int_equal(write("whole", NULL), DVBF_OK);
  read_bytes(&before, ".", "whole");
  assert_true(before.size > 100);
  for (int k = 0; k < 2; k++)
    for (unsigned long n = 1, failures = 0;; n++) {
      error = (dvbf_error){0};
      *kinds[k] = n;
      dvbf_status status = write("whole", &error);
      bool struck = !*kinds[k];
      *kinds[k] = 0;
      assert_true(status ? struck && strlen(error.message) > 10 : !error.message[0]);
      failures += status != DVBF_OK;
      read_bytes(&after, ".", "whole");
      assert_true(before.size == after.size && !memcmp(before.at, after.at, after.size));
      if (struck) continue;
      assert_true(failures > (k ? 3 : 0) || n == 1);
      break;
    }
}

static const dvbf_settings *written_settings;
static const dvbf_model *written_model;

static dvbf_status write_settings(const char *path, dvbf_error *error) {
  return dvbf_settings_write(written_settings, path, error);
}

static dvbf_status write_model(const char *path, dvbf_error *error) {
  return dvbf_model_save(written_model, path, error);
}

static dvbf_status write_data(const char *path, dvbf_error *error) {
  return dvbf_data_write(&data, path, error);
}

static void files_are_whole_or_not_there(void **state) {
  (void)state;
  dvbf_model *model = NULL;
  dvbf_settings *settings = settings_of(SMALL);
  assert_int_equal(dvbf_model_load(&model, "small/" DVBF_RUN_MODEL, NULL), DVBF_OK);
  written_settings = settings;
  written_model = model;
  writes_are_whole(write_settings);
  writes_are_whole(write_model);
  writes_are_whole(write_data);
  dvbf_model_free(model);
  dvbf_settings_free(settings);
}

/* ---- What is refused ---- */

static void assert_refused(const char *part) {
  if (!strstr(message, part)) fail_msg("\"%s\" is missing in: %s", part, message);
}

/* Status of going on with a copy of the run that was stopped in the middle. */
static dvbf_status go_on(const char *text) {
  dvbf_status status = train("copy", text, true, NULL);
  return status;
}

static void other_settings_are_refused(void **state) {
  (void)state;
  copy_run("middle", "copy");
  assert_int_equal(go_on(SMALL "updates 39"), DVBF_ARGUMENT);
  assert_refused("updates = 39: the run in copy was started with updates = 40");
  assert_int_equal(go_on(SMALL "learning-rate 0.003"), DVBF_ARGUMENT);
  assert_refused("learning-rate = 0.003");
  assert_refused("learning-rate = 0.004");
  /* Settings that were changed in the file are not those of the checkpoint. */
  dvbf_settings *settings = settings_of(SMALL "seed 5");
  assert_int_equal(dvbf_settings_write(settings, "copy/" DVBF_RUN_SETTINGS, NULL), DVBF_OK);
  dvbf_settings_free(settings);
  assert_int_equal(go_on(SMALL "seed 5"), DVBF_ARGUMENT);
  assert_refused("seed = 5");
  copy_run("middle", "copy");
  assert_int_equal(go_on(SMALL "threads 2 checkpoint-every 1000"), DVBF_OK);
  assert_same_result("copy", "small");
}

static void other_data_are_refused(void **state) {
  (void)state;
  copy_run("middle", "copy");
  float *const values[] = {&data.train.x[100], &data.valid.x[5], &data.train.u[3]};
  for (int i = 0; i < 3; i++) {
    float kept = *values[i];
    *values[i] = kept + 0.001f;
    assert_int_equal(go_on(SMALL), DVBF_ARGUMENT);
    assert_refused("other data");
    *values[i] = kept;
  }
  data.train.count--;
  assert_int_equal(go_on(SMALL), DVBF_ARGUMENT);
  assert_refused("other data");
  data.train.count++;
  assert_int_equal(go_on(SMALL), DVBF_OK);
  assert_same_result("copy", "small");
}

static void former_runs_are_left_alone(void **state) {
  (void)state;
  static bytes a, b;
  for (int i = 0; i < 4; i++) {
    remove_run("former");
    mkdir("former", 0777);
    read_bytes(&a, "small", files[i]);
    write_bytes(&a, "former", files[i]);
    assert_int_equal(train("former", SMALL "seed 7", false, NULL), DVBF_IO);
    assert_refused("already exists");
    assert_refused(files[i]);
    read_bytes(&b, "former", files[i]);
    assert_true(a.size == b.size && !memcmp(a.at, b.at, a.size));
  }
  dvbf_settings *settings = settings_of(SMALL);
  dvbf_model *model = NULL;
  dvbf_train_options options = {.folder = "former", .force = true};
  assert_int_equal(dvbf_train(&model, settings, &data, &options, NULL), DVBF_OK);
  dvbf_model_free(model);
  assert_same_result("former", "small");
  options.resume = true;
  assert_int_equal(dvbf_train(&model, settings, &data, &options, NULL), DVBF_ARGUMENT);
  dvbf_settings_free(settings);
}

static void finished_runs_stay(void **state) {
  (void)state;
  struct stat before[4], after[4];
  char path[64];
  watch w = {0};
  for (int i = 0; i < 4; i++) snprintf(path, sizeof path, "small/%s", files[i]), stat(path, &before[i]);
  train_well("small", SMALL, true, &w);
  for (int i = 0; i < 4; i++) snprintf(path, sizeof path, "small/%s", files[i]), stat(path, &after[i]);
  for (int i = 0; i < 4; i++) {
    assert_true(before[i].st_ino == after[i].st_ino);
    assert_true(before[i].st_mtim.tv_sec == after[i].st_mtim.tv_sec &&
                before[i].st_mtim.tv_nsec == after[i].st_mtim.tv_nsec);
  }
  assert_true(w.finished);
  assert_int_equal(w.last.update, 40);
  assert_int_equal(w.last.begun, 3);
  assert_true(isfinite(w.last.valid_bound) && w.last.seconds > 0);
}

/* Trains in the same folder while training. */
static bool intrude(const dvbf_progress *p, void *user_data) {
  dvbf_status *status = user_data;
  if (p->validated && !*status) *status = train("locked", SMALL, true, NULL);
  return true;
}

static void one_at_a_time(void **state) {
  (void)state;
  dvbf_status second = DVBF_OK;
  dvbf_model *model = NULL;
  dvbf_settings *settings = settings_of(SMALL);
  dvbf_train_options options = {.folder = "locked", .progress = intrude, .user_data = &second};
  remove_run("locked");
  assert_int_equal(dvbf_train(&model, settings, &data, &options, NULL), DVBF_OK);
  assert_int_equal(second, DVBF_IO);
  assert_refused("another process");
  assert_same_result("locked", "small");
  dvbf_model_free(model);
  dvbf_settings_free(settings);
}

static void missing_metrics_are_said(void **state) {
  (void)state;
  static bytes all;
  copy_run("middle", "copy");
  read_bytes(&all, "copy", DVBF_RUN_METRICS);
  all.size -= 10; /* into the last row */
  write_bytes(&all, "copy", DVBF_RUN_METRICS);
  assert_int_equal(go_on(SMALL), DVBF_FORMAT);
  assert_refused("rows of the run are missing");
  unlink("copy/" DVBF_RUN_METRICS);
  assert_true(go_on(SMALL) != DVBF_OK);
  /* Rows that a killed run wrote after its checkpoint are cut, even a broken one. */
  copy_run("middle", "copy");
  FILE *file = fopen("copy/" DVBF_RUN_METRICS, "a");
  fprintf(file, "999,1,2,3\n12");
  fclose(file);
  assert_int_equal(go_on(SMALL), DVBF_OK);
  assert_same_result("copy", "small");
}

/* ---- Hostile checkpoints ---- */

static void refuse_bytes(const bytes *file, const char *what) {
  write_bytes(file, "copy", DVBF_RUN_CHECKPOINT);
  dvbf_status status = go_on(SMALL);
  if (!status) fail_msg("%s was accepted", what);
  assert_true(strlen(message) > 10);
  assert_null(strchr(message, '\n'));
}

static size_t header_size(const bytes *file) {
  uint64_t size;
  memcpy(&size, file->at, sizeof size);
  return (size_t)size;
}

static void short_checkpoints_are_refused(void **state) {
  (void)state;
  static bytes whole, cut;
  copy_run("middle", "copy");
  read_bytes(&whole, "middle", DVBF_RUN_CHECKPOINT);
  for (size_t size = 0; size < whole.size; size += size < 16 ? 1 : 97) {
    cut = whole;
    cut.size = size;
    refuse_bytes(&cut, "a short file");
  }
}

/* Replaces the first `from` in the header, whose length follows. */
static bool edit(bytes *out, const bytes *file, const char *from, const char *to) {
  size_t header = header_size(file);
  static char text[1 << 16];
  memcpy(text, file->at + 8, header);
  text[header] = 0;
  char *at = strstr(text, from);
  if (!at) return false;
  int length =
      snprintf(out->at + 8, sizeof out->at - 8, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  uint64_t size = (uint64_t)length;
  memcpy(out->at, &size, sizeof size);
  memcpy(out->at + 8 + length, file->at + 8 + header, file->size - 8 - header);
  out->size = file->size - header + (size_t)length;
  return true;
}

static void edited_checkpoints_are_refused(void **state) {
  (void)state;
  static bytes whole, edited;
  static const char *const cases[][2] = {
      {"dvbf checkpoint 1", "dvbf 1"},
      {"dvbf checkpoint 1", "dvbf checkpoint 2"},
      {"\"phase\":\"0\"", "\"phase\":\"3\""},
      {"\"phase\":\"0\"", "\"phase\":\"-1\""},
      {"\"phase\":\"0\"", "\"phase\":0"},
      {"\"phase\":\"0\"", "\"phase\":\"\""},
      {"\"phase\":\"0\"", "\"phase\":\"99999999999999999999999\""},
      {"\"start\":\"1\"", "\"start\":\"3\""},
      {"\"start\":\"1\"", "\"start\":\"0\""},
      {"\"begun\":\"2\"", "\"begun\":\"4\""},
      {"\"begun\":\"2\"", "\"begun\":\"1\""},
      {"\"begun\":\"2\"", "\"begun\":\"0x2\""},
      {"\"retries_left\":\"3\"", "\"retries_left\":\"4\""},
      {"\"retries_left\":\"3\"", "\"retries_left\":\"-3\""},
      {"\"best_update\":\"", "\"best_update\":\"-"},
      {"\"best_update\":\"", "\"best_update\":\"4"},
      {"\"validations\":\"", "\"validations\":\"1"},
      {"\"now.update\":\"", "\"now.update\":\"9"},
      {"\"now.update\":\"", "\"now.update\":\"-"},
      {"\"good.update\":\"", "\"good.update\":\"3"},
      {"\"judged_start\":\"0\"", "\"judged_start\":\"2\""},
      {"\"now.rate_factor\":\"3ff0000000000000\"", "\"now.rate_factor\":\"4000000000000000\""},
      {"\"now.rate_factor\":\"3ff0000000000000\"", "\"now.rate_factor\":\"7ff8000000000000\""},
      {"\"now.rate_factor\":\"3ff0000000000000\"", "\"now.rate_factor\":\"1\""},
      {"\"now.usual_norm\":\"", "\"now.usual_norm\":\"g"},
      {"\"best_score\":\"", "\"best_score\":\"0"},
      {"\"seconds\":\"3", "\"seconds\":\"b"},
      {"\"start_seconds\":\"3", "\"start_seconds\":\"7"},
      {"\"data\":\"", "\"data\":\"0"},
      {"\"transition\":\"locally-linear\"", "\"transition\":\"else\""},
      {"\"setting.latent\":\"2\"", "\"setting.latent\":\"3\""},
      {"\"setting.latent\":\"2\"", "\"setting.latent\":\"two\""},
      {"\"setting.latent\":\"2\"", "\"setting.unheard-of\":\"2\""},
      {"\"best.parameters\"", "\"best.parametres\""},
      {"\"judged.v\"", "\"judged.w\""},
      {"\"shape\":[1,", "\"shape\":[2,"},
      {"\"F32\"", "\"F16\""},
      {"\"data_offsets\":[0,", "\"data_offsets\":[4,"},
      {"\"__metadata__\"", "\"metadata\""},
  };
  copy_run("middle", "copy");
  read_bytes(&whole, "middle", DVBF_RUN_CHECKPOINT);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (!edit(&edited, &whole, cases[i][0], cases[i][1])) fail_msg("no %s: %s", cases[i][0], whole.at + 8);
    refuse_bytes(&edited, cases[i][1]);
  }
  assert_true(edit(&edited, &whole, "\"phase\"", "\"new\":\"unknown keys are left alone\",\"phase\""));
  write_bytes(&edited, "copy", DVBF_RUN_CHECKPOINT);
  assert_int_equal(go_on(SMALL), DVBF_OK);
  assert_same_result("copy", "small");
}

static void damaged_values_are_refused(void **state) {
  (void)state;
  static bytes whole;
  static const unsigned char quiet[] = {0, 0, 0xc0, 0x7f}, infinite[] = {0, 0, 0x80, 0x7f};
  copy_run("middle", "copy");
  read_bytes(&whole, "middle", DVBF_RUN_CHECKPOINT);
  size_t first = 8 + header_size(&whole), places[] = {first, first + 1000, whole.size - 4};
  for (int i = 0; i < 4; i++) { /* NaN anywhere, and an infinite parameter */
    char kept[4], *at = whole.at + places[i % 3];
    memcpy(kept, at, 4);
    memcpy(at, i < 3 ? quiet : infinite, 4);
    refuse_bytes(&whole, "a value that is not finite");
    memcpy(at, kept, 4);
  }
  /* A model, and the checkpoint of another model. */
  read_bytes(&whole, "middle", DVBF_RUN_MODEL);
  refuse_bytes(&whole, "a model");
  read_bytes(&whole, "diverging", DVBF_RUN_CHECKPOINT);
  refuse_bytes(&whole, "the checkpoint of another run");
}

/* Damage anywhere in the file neither crashes nor loops, whether it is noticed or not. */
static void random_damage_is_harmless(void **state) {
  (void)state;
  static bytes whole, damaged;
  read_bytes(&whole, "middle", DVBF_RUN_CHECKPOINT);
  uint32_t random = 1;
  for (int i = 0; i < 400 / STRIDE; i++) {
    size_t header = header_size(&whole) + 8;
    copy_run("middle", "copy");
    damaged = whole;
    for (int k = 0; k < 1 + i % 3; k++) {
      random = random * 1664525u + 1013904223u;
      damaged.at[(random >> 8) % header] = (char)(random >> 24);
    }
    write_bytes(&damaged, "copy", DVBF_RUN_CHECKPOINT);
    go_on(SMALL);
  }
}

/* ---- The folder that all tests work in ---- */

/* Finds a training that eases once and goes back to the first start; about one in fifty does. */
static void find_returning(void) {
  static const char *const steps[] = {
      "learning-rate 0.5 scale-transition 1", "learning-rate 0.3 scale-transition 2",
      "learning-rate 0.3 scale-transition 0.5", "learning-rate 0.7 scale-transition 0.5",
      "learning-rate 1 scale-transition 0.3"};
  for (int i = 0; i < 300; i++) {
    char clip[64];
    watch w = {0};
    snprintf(returning, sizeof returning, RETURNING "%s seed %d ", steps[i / 60], i % 60);
    remove_run("returning");
    if (train("returning", returning, false, &w) || w.eased != 1) continue;
    setting_of(clip, "returning", "clip-norm");
    if (!strcmp(clip, "0")) return;
  }
  fail_msg("no training returns to its first start");
}

static int set_up(void **state) {
  (void)state;
  if (!mkdtemp(folder) || chdir(folder)) return -1;
  json_set_alloc_funcs(json_memory, free);
  make_data(&data.train, TRAIN, 0);
  make_data(&data.valid, VALID, 5);
  make_data(&data.test, VALID, 7);
  train_well("small", SMALL, false, NULL);
  train_well("diverging", DIVERGING, false, NULL);
  train_well("eased", EASED, false, NULL);
  find_returning();
  train_well("brief", BRIEF, false, NULL);
  watch both = {0};
  train_well("phases", PHASES, false, &both);
  assert_int_equal(both.last.phase, 2);
  assert_int_equal(both.last.update, 44);
  train_well("begun", BRIEF, false, &(watch){.stop_at = 1});
  /* Stopped in the second start, at a validation before its judgement. */
  watch w = {.stop_at = 4};
  train_well("middle", SMALL, false, &w);
  assert_int_equal(w.last.begun, 2);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  char line[64];
  dvbf_sequences *const splits[] = {&data.train, &data.valid, &data.test};
  for (int i = 0; i < 3; i++) free(splits[i]->x), free(splits[i]->u);
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return chdir("/") || system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(references_are_worth_it),
      cmocka_unit_test(divergence_changes_the_settings),
      cmocka_unit_test(divergence_ends_with_what_there_is),
      cmocka_unit_test(stops_change_nothing),
      cmocka_unit_test(kills_change_nothing),
      cmocka_unit_test(rate_is_what_is_said),
      cmocka_unit_test(starts_differ),
      cmocka_unit_test(full_disks_are_survived),
      cmocka_unit_test(every_byte_of_a_checkpoint_may_be_the_last),
      cmocka_unit_test(lack_of_memory_is_survived),
      cmocka_unit_test(lack_of_memory_is_no_other_setting),
      cmocka_unit_test(files_are_whole_or_not_there),
      cmocka_unit_test(other_settings_are_refused),
      cmocka_unit_test(other_data_are_refused),
      cmocka_unit_test(former_runs_are_left_alone),
      cmocka_unit_test(finished_runs_stay),
      cmocka_unit_test(one_at_a_time),
      cmocka_unit_test(missing_metrics_are_said),
      cmocka_unit_test(short_checkpoints_are_refused),
      cmocka_unit_test(edited_checkpoints_are_refused),
      cmocka_unit_test(damaged_values_are_refused),
      cmocka_unit_test(random_damage_is_harmless),
  };
  return cmocka_run_group_tests_name("checkpoint", tests, set_up, tear_down);
}
