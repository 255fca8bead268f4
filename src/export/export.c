/* Export of a model (dvbf_export): the table of targets, from which the command, its help and Python follow,
 * and what they share: names of files and symbols, refusal of settings that a target ignores, the header that
 * describes the model without dates and paths, running the C compiler, and trying exported code against its
 * test (dvbf_export_check). A target is a file with its DV_TARGET and a row of the table. */
#include "export/export.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "export/c_file.h"
#include "model/safetensors.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Targets ---- */

dv_export_fn dv_export_c, dv_export_fmu, dv_export_casadi, dv_export_onnx;

/* Settings of a target name its ending (settings_export.def). */
static const struct target {
  const char *ending, *help;
  dv_export_fn *write;
  bool controls; /* it writes a controller too, if there is a goal */
} targets[] = {
    {".c", "C99 source, with its header NAME.h and its test NAME_test.c; with --goal a controller too",
     dv_export_c, true},
    {".fmu", "FMU of FMI 2.0 for Co-Simulation: the filter, or the system itself (--as)", dv_export_fmu,
     false},
    {".py", "transition and observation as CasADi functions", dv_export_casadi, false},
    {".onnx", "a filter step, and in NAME_start.onnx the first state", dv_export_onnx, false},
};
enum { TARGETS = sizeof targets / sizeof *targets };

const char *dvbf_export_target(size_t index, const char **help) {
  if (index >= TARGETS) return NULL;
  if (help) *help = targets[index].help;
  return targets[index].ending;
}

static const struct target *target_of(const char *path, bool controls, dvbf_error *error) {
  const char *dot = strrchr(path, '.');
  char known[128] = "";
  for (size_t i = 0; i < TARGETS; i++) {
    if (controls && !targets[i].controls) continue;
    if (dot && !strcmp(dot, targets[i].ending)) return &targets[i];
    snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? " or " : "",
             targets[i].ending);
  }
  (void)dv_fail(error, DVBF_ARGUMENT, "%.200s: the name of the file%s must end in %s", path,
                controls ? " of a controller" : "", known);
  return NULL;
}

static dvbf_status split_path(dv_export *e, const char *ending, dvbf_error *error) {
  const char *slash = strrchr(e->path, '/'), *base = slash ? slash + 1 : e->path;
  size_t length = strlen(e->path), before = (size_t)(base - e->path), n = length - before - strlen(ending);
  if (!n) return dv_fail(error, DVBF_ARGUMENT, "%.200s: a name is missing before %s", e->path, ending);
  if (length + 32 > sizeof(dv_path))
    return dv_fail(error, DVBF_ARGUMENT, "%.64s...: the path is too long", e->path);
  if (n > 47) return dv_fail(error, DVBF_ARGUMENT, "%.200s: the name has more than 47 characters", e->path);
  snprintf(e->folder, sizeof e->folder, "%.*s", (int)before, e->path);
  snprintf(e->name, sizeof e->name, "%.*s", (int)n, base);
  for (const char *at = e->name; *at; at++)
    if (!strchr("-_.", *at) && !isalnum((unsigned char)*at))
      return dv_fail(error, DVBF_ARGUMENT, "%.200s: the name may have letters, digits, -, _ and . only",
                     e->path);
  return DVBF_OK;
}

dvbf_status dv_export_path(dv_path out, const dv_export *e, const char *ending, dvbf_error *error) {
  snprintf(out, sizeof(dv_path), "%.4000s%s%s", e->folder, e->name, ending);
  return dv_refuse_existing(out, e->options->force, error);
}

static dvbf_status choose_prefix(dv_export *e, dvbf_error *error) {
  const char *wanted = e->settings->prefix;
  char *out = e->result->prefix;
  dv_identifier(out, 48, *wanted ? wanted : e->name);
  if (*wanted && (strcmp(out, wanted) != 0 || strlen(wanted) > 47))
    return dv_fail(error, DVBF_ARGUMENT,
                   "prefix = %.60s: must be a C identifier of at most 47 characters, such as %s", wanted,
                   out);
  return DVBF_OK;
}

static bool is_for(const char *endings, const void *ending) {
  size_t length = strlen(ending);
  for (const char *at = endings; at && (at = strstr(at, ending)); at += length)
    if (!at[length] || at[length] == ' ') return true;
  return !endings;
}

static dvbf_status refuse_settings(const dvbf_settings *settings, const char *ending, dvbf_error *error) {
  const dv_setting *unused = dv_settings_unused(settings, is_for, ending);
  if (!unused) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT, "%s does not apply to a file that ends in %s; leave it out",
                 unused->name, ending);
}

static dvbf_status choose_model(dv_export *e, dvbf_error *error) {
  int member = (int)e->settings->member, members = dv_model_members(e->given);
  e->model = e->given;
  if (member > members)
    return dv_fail(error, DVBF_ARGUMENT, "member = %d: the model has %d", member, members);
  if (member) {
    e->alone = *dv_model_member(e->given, member - 1);
    e->alone.n_others = 0;
    e->alone.no_forecasts = e->alone.no_predictions = false;
    e->model = &e->alone;
  }
  if (e->settings->weights == DV_WEIGHTS_FLOAT) return DVBF_OK;
  dvbf_status status = dv_rounded_new(&e->rounded, e->model, (int)e->settings->weights, error);
  if (!status) e->model = e->rounded;
  return status;
}

static dvbf_status export(dv_export *e, const dvbf_settings *settings, dvbf_error *error) {
  const struct target *t = target_of(e->path, e->options->goal, error);
  e->settings = t ? dv_settings_export(settings, error) : NULL;
  dvbf_status status = e->settings ? split_path(e, t->ending, error) : DVBF_ARGUMENT;
  if (!status) status = refuse_settings(settings, t->ending, error);
  if (!status) status = choose_prefix(e, error);
  if (!status) status = choose_model(e, error);
  if (!status) status = t->write(e, error);
  dv_rounded_free(e->rounded);
  return status;
}

dvbf_status dvbf_export(const char *path, const dvbf_model *m, const dvbf_settings *settings,
                        const dvbf_export_options *o, dvbf_export_result *result, dvbf_error *error) {
  static const dvbf_export_options none = {0};
  dvbf_export_result facts = {.rmse = (double)NAN, .rmse_rounded = (double)NAN, .summary = "written"};
  dv_export e = {.path = path, .given = m, .options = o ? o : &none, .result = &facts};
  dvbf_status status = export(&e, settings, error);
  if (!status && result) *result = facts;
  return status;
}

/* ---- Description of the model ---- */

/* The fingerprint in the run's checkpoint; "" without one. */
static dvbf_status ask_checkpoint(char out[17], const char *run, dvbf_error *error) {
  dv_path path;
  dv_tensor_file file = {0};
  dv_join(path, run, DVBF_RUN_CHECKPOINT);
  if (!dv_exists(path)) return DVBF_OK;
  dvbf_status status = dv_tensors_open(&file, path, NULL, NULL, "a checkpoint", error);
  const char *text = status ? NULL : dv_meta_get(&file, "data");
  if (text && strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16) snprintf(out, 17, "%s", text);
  dv_tensors_close(&file);
  return status == DVBF_IO || status == DVBF_MEMORY ? status : DVBF_OK;
}

/* The fingerprint of the training data: from the run, or else of the given data; "" without them. */
static dvbf_status find_data(char out[17], const dvbf_export_options *o, dvbf_error *error) {
  uint64_t hash;
  *out = 0;
  dvbf_status status = o->run ? ask_checkpoint(out, o->run, error) : DVBF_OK;
  if (status || *out || !o->data) return status;
  status = dv_data_fingerprint(&hash, o->data, error);
  if (!status) snprintf(out, 17, "%016" PRIx64, hash);
  return status;
}

/* Settings in lines of a hundred characters. */
typedef struct settings_list {
  dv_text *text;
  const char *begin;
  size_t width;
} settings_list;

static dvbf_status put_setting(const char *name, const char *value, void *user) {
  settings_list *l = user;
  size_t length = strlen(name) + strlen(value) + 3;
  if (!*value) return DVBF_OK;
  if (!l->width || l->width + length > 100) {
    dv_text_put(l->text, "%s%s", l->width ? "\n" : "", l->begin);
    l->width = 0;
  }
  dv_text_put(l->text, "  ");
  dv_text_comment(l->text, name);
  dv_text_put(l->text, "=");
  dv_text_comment(l->text, value);
  l->width += length;
  return DVBF_OK;
}

static void put_names(dv_text *t, const char *begin, const char *what, char (*names)[32], size_t n) {
  if (!names || !n || n > 64) return;
  dv_text_put(t, "%s %s:", begin, what);
  for (size_t i = 0; i < n; i++) {
    dv_text_put(t, "%s ", i ? "," : "");
    dv_text_comment(t, names[i]);
  }
  dv_text_put(t, "\n");
}

static void put_model(dv_text *t, const dvbf_model *m, const char *begin) {
  dv_text_put(t, "%s Model: ", begin);
  dv_text_comment(t, m->type->name);
  if (m->transition) {
    dv_text_put(t, " with the transition ");
    dv_text_comment(t, m->transition->name);
  }
  dv_text_put(t, "; x of %d columns, u of %d, z of %d dimensions; %" PRIu64 " updates\n", m->n_x, m->n_u,
              m->n_z, m->updates);
  settings_list l = {.text = t, .begin = begin};
  dv_settings_each(m->settings_object, put_setting, &l);
  dv_text_put(t, "\n");
}

dvbf_status dv_file_header(dv_text *t, const dv_export *e, const char *begin, dvbf_error *error) {
  const dvbf_model *m = e->model;
  const dvbf_export_options *o = e->options;
  char data[17];
  dvbf_status status = find_data(data, o, error);
  if (status) return status;
  dv_text_put(t, "%s Written by dvbf %s from a trained model.\n", begin, DVBF_VERSION);
  dv_text_put(t, "%s Fingerprint of the model %016" PRIx64 ", of the training data %s\n", begin,
              dv_model_fingerprint(m), *data ? data : "unknown");
  if (o->data) {
    put_names(t, begin, "x", o->data->x_names, (size_t)m->n_x);
    put_names(t, begin, "u", o->data->u_names, (size_t)m->n_u);
  }
  for (int k = 0; k < dv_model_members(m); k++) {
    if (dv_model_members(m) > 1) dv_text_put(t, "%s Member %d of a committee\n", begin, k + 1);
    put_model(t, dv_model_member(m, k), begin);
  }
  return t->failed ? dv_fail_memory(error, "exporting a model") : DVBF_OK;
}

/* ---- Programs ---- */

extern char **environ;

enum { NO_PROGRAM = 127 };

dvbf_status dv_scratch_make(dv_scratch *s, dvbf_error *error) {
  const char *where = getenv("TMPDIR");
  snprintf(s->path, sizeof s->path, "%.900s/dvbf-XXXXXX", where && *where ? where : "/tmp");
  if (mkdtemp(s->path)) return DVBF_OK;
  int reason = errno;
  dvbf_status status =
      dv_fail(error, DVBF_IO, "%.300s: a temporary folder cannot be created: %s", s->path, strerror(reason));
  *s->path = 0;
  return status;
}

void dv_scratch_remove(const dv_scratch *s) {
  DIR *folder = *s->path ? opendir(s->path) : NULL;
  if (!folder) return;
  for (struct dirent *entry; (entry = readdir(folder));)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      unlinkat(dirfd(folder), entry->d_name, 0);
  closedir(folder);
  rmdir(s->path);
}

/* Runs a program, found by PATH, with its output in the file `log`; words end with NULL. *code is its exit
 * status: -1 if it was killed or could not start, NO_PROGRAM if it does not exist. */
static dvbf_status run_program(const char *const *words, const char *log, int *code, dvbf_error *error) {
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = 0;
  *code = -1;
  if (posix_spawn_file_actions_init(&actions)) return dv_fail_memory(error, "starting a program");
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  int reason = posix_spawnp(&child, words[0], &actions, NULL, (char *const *)words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (reason == ENOENT || reason == EACCES) *code = NO_PROGRAM;
  if (reason)
    return dv_fail(error, DVBF_IO, "%.100s: cannot be run: %s; install a C compiler, or name one in CC",
                   words[0], strerror(reason));
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return dv_fail(error, DVBF_IO, "%.100s: its exit status is unknown: %s", words[0], strerror(errno));
  if (WIFEXITED(status)) *code = WEXITSTATUS(status);
  return DVBF_OK;
}

static void first_line(char *out, size_t size, const char *path) {
  FILE *file = fopen(path, "r");
  *out = 0;
  if (file && !fgets(out, (int)size, file)) *out = 0;
  if (file) fclose(file);
  out[strcspn(out, "\r\n")] = 0;
  for (char *at = out; *at; at++)
    if ((unsigned char)*at < 32) *at = '.';
}

dvbf_status dv_compiler_exists(bool *exists, dvbf_error *error) {
  const char *given = getenv("CC");
  char first[256];
  int code;
  snprintf(first, sizeof first, "%s", given && *given ? given : "cc");
  first[strcspn(first, " ")] = 0;
  dvbf_status status =
      run_program((const char *const[]){first, "--version", NULL}, "/dev/null", &code, error);
  *exists = !status && !code;
  if (status && code == NO_PROGRAM) return DVBF_OK;
  if (!status && code)
    status =
        dv_fail(error, DVBF_IO, "the C compiler (%.60s) fails: repair it, or name another one in CC", first);
  return status;
}

dvbf_status dv_run_compiler(const char *const *words, const dv_scratch *scratch, dvbf_error *error) {
  enum { COMMAND_WORDS = 64 };
  const char *all[COMMAND_WORDS], *given = getenv("CC");
  char compiler[256], log[1100], line[256], *rest = compiler;
  int n = 0, code;
  snprintf(compiler, sizeof compiler, "%s", given && *given ? given : "cc");
  for (char *word; n < 16 && (word = strsep(&rest, " "));)
    if (*word) all[n++] = word;
  if (!n) all[n++] = "cc"; /* CC was blank */
  for (; *words && n + 1 < COMMAND_WORDS; words++) all[n++] = *words;
  all[n] = NULL;
  snprintf(log, sizeof log, "%s/log", scratch->path);
  dvbf_status status = run_program(all, log, &code, error);
  if (status || !code) return status;
  first_line(line, sizeof line, log);
  return dv_fail(error, DVBF_IO, "the C compiler (%.60s) fails: %s", all[0],
                 *line ? line : "it prints nothing");
}

/* ---- Trying exported code ---- */

/* `more` is another file of code, or NULL. */
static dvbf_status run_test(const char *code, const char *more, const char *test, const dv_scratch *scratch,
                            dvbf_error *error) {
  char program[1100], log[1100], line[300];
  int failed = 0;
  snprintf(program, sizeof program, "%s/test", scratch->path);
  snprintf(log, sizeof log, "%s/log", scratch->path);
  const char *const words[] = {
      "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion",      "-Werror", "-O2",
      "-o",       program,     test,    code,      more ? more : "-lm", "-lm",     NULL};
  dvbf_status status = dv_run_compiler(words, scratch, error);
  if (!status) status = run_program((const char *const[]){program, NULL}, log, &failed, error);
  if (status || !failed) return status;
  first_line(line, sizeof line, log);
  return dv_fail(error, DVBF_NUMERIC, "%.200s: the test fails: %s", more ? more : code,
                 *line ? line : "it prints nothing");
}

dvbf_status dvbf_export_check(const char *path, dvbf_error *error) {
  dv_path test, control, control_test;
  dv_scratch scratch = {{0}};
  size_t length = strlen(path);
  if (length < 3 || strcmp(path + length - 2, ".c") != 0 || length + 24 > sizeof test)
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: only an exported C file, which ends in .c, can be tested",
                   path);
  snprintf(test, sizeof test, "%.*s_test.c", (int)length - 2, path);
  snprintf(control, sizeof control, "%.*s_control.c", (int)length - 2, path);
  snprintf(control_test, sizeof control_test, "%.*s_control_test.c", (int)length - 2, path);
  if (!dv_exists(path) || !dv_exists(test))
    return dv_fail(error, DVBF_IO, "%.300s: does not exist; export it first", dv_exists(path) ? test : path);
  dvbf_status status = dv_scratch_make(&scratch, error);
  if (status) return status;
  status = run_test(path, NULL, test, &scratch, error);
  if (!status && dv_exists(control) && dv_exists(control_test))
    status = run_test(path, control, control_test, &scratch, error);
  dv_scratch_remove(&scratch);
  return status;
}
