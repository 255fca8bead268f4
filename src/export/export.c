/* Export of a model to C (dvbf_export_c) and what all exports share: names of files and symbols, refusal of
 * settings that a target ignores, the header that describes the model without dates and paths, running the C
 * compiler, and trying exported code against its test (dvbf_export_check). */
#include "export/export.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "export/c_file.h"
#include "export/test_vectors.h"
#include "model/safetensors.h"

#include <dvbf/export.h>

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

/* ---- Files of an export ---- */

typedef struct files {
  dv_path code, header, test;
} files;

static dvbf_status name_files(files *f, const char *path, const char *folder, const char *name, bool force,
                              dvbf_error *error) {
  snprintf(f->code, sizeof f->code, "%s", path);
  snprintf(f->header, sizeof f->header, "%.4000s%s.h", folder, name);
  snprintf(f->test, sizeof f->test, "%.4000s%s_test.c", folder, name);
  const char *const all[] = {f->code, f->header, f->test};
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < 3 && !status; i++) status = dv_refuse_existing(all[i], force, error);
  return status;
}

/* Writes the text after the description of the model. */
static dvbf_status write_file(const char *path, const dv_text *about, const dv_text *text,
                              dvbf_error *error) {
  dv_text whole = {0};
  if (about->used) dv_text_append(&whole, about->at, about->used);
  if (text->used) dv_text_append(&whole, text->at, text->used);
  whole.failed |= about->failed || text->failed;
  dvbf_status status = dv_text_write(&whole, path, error);
  dv_text_free(&whole);
  return status;
}

static void put_facts(dv_text *t, const dv_c_facts *f, const dv_export_settings *s) {
  static const char *const weights[] = {"float", "bfloat16", "int8"};
  dv_text_put(
      t, " * Constants %zu bytes (weights in %s), state %zu bytes, intermediate results at most %zu bytes",
      f->constants, weights[s->weights], f->state, f->stack);
  if (f->multiplications > 0) dv_text_put(t, ",\n * %.0f multiplications for a step", f->multiplications);
  dv_text_put(t, ". C99, %s, no allocation, no global state. */\n",
              s->libm ? "<stdint.h> and <math.h>" : "<stdint.h> alone");
}

/* ---- C ---- */

static dvbf_status measure(dvbf_export_result *result, const dvbf_model *m, const dv_subject *exported,
                           const dvbf_export_options *o, dvbf_error *error) {
  result->rmse = result->rmse_rounded = (double)NAN;
  if (!exported->rounded || !o || !o->sequences) return DVBF_OK;
  dvbf_status status = dv_rounding_error(&result->rmse, m, o->sequences, error);
  if (!status) status = dv_rounding_error(&result->rmse_rounded, exported->model, o->sequences, error);
  return status;
}

static dvbf_status write_all(const files *f, const dv_subject *of, const char *prefix, const char *name,
                             const dv_export_settings *s, const dvbf_export_options *o,
                             dvbf_export_result *result, dvbf_error *error) {
  dv_text about = {0}, code = {0}, header = {0}, test = {0};
  dv_c_facts facts = {0};
  dv_vectors vectors = {0};
  dvbf_status status = dv_c_write(&code, &header, &facts, of->model, prefix, name, s, error);
  if (!status) status = dv_vectors_init(&vectors, of->model, s, o ? o->sequences : NULL, error);
  dv_text_put(&about, "/* %s: a learned filter.\n *\n", prefix);
  if (!status) status = dv_file_header(&about, of->model, o, " *", error);
  if (!status) {
    put_facts(&about, &facts, s);
    dv_vectors_write(&test, &vectors, prefix, name, facts.direct, dv_model_members(of->model) == 1);
    status = write_file(f->code, &about, &code, error);
  }
  if (!status) status = write_file(f->header, &about, &header, error);
  if (!status) status = dv_text_write(&test, f->test, error);
  result->constant_bytes = facts.constants;
  result->state_bytes = facts.state;
  result->stack_bytes = facts.stack;
  result->multiplications = facts.multiplications;
  result->vectors = (size_t)vectors.steps;
  result->tolerance = vectors.tolerance;
  dv_vectors_clear(&vectors);
  dv_text *all[] = {&about, &code, &header, &test};
  for (int i = 0; i < 4; i++) dv_text_free(all[i]);
  return status;
}

dvbf_status dvbf_export_c(const char *path, const dvbf_model *m, const dvbf_settings *settings,
                          const dvbf_export_options *o, dvbf_export_result *result, dvbf_error *error) {
  const dv_export_settings *s = dv_settings_export(settings, error);
  dv_path folder;
  char name[64];
  files *f = dv_calloc(1, sizeof *f);
  dvbf_export_result facts = {0};
  dv_subject of = {0};
  if (!s || !f) {
    dv_free(f);
    return s ? dv_fail_memory(error, "exporting a model") : DVBF_ARGUMENT;
  }
  dvbf_status status = dv_split_path(path, ".c", folder, name, error);
  if (!status) status = dv_refuse_settings(settings, ".c", error);
  if (!status) status = dv_choose_prefix(facts.prefix, s, name, error);
  if (!status) status = name_files(f, path, folder, name, o && o->force, error);
  if (!status) status = dv_subject_choose(&of, m, s, error);
  if (!status) status = measure(&facts, m, &of, o, error);
  if (!status) status = write_all(f, &of, facts.prefix, name, s, o, &facts, error);
  dv_subject_clear(&of);
  dv_free(f);
  if (!status && result) *result = facts;
  return status;
}

/* ---- Files ---- */

dvbf_status dv_split_path(const char *path, const char *ending, dv_path folder, char name[64],
                          dvbf_error *error) {
  size_t length = strlen(path), end = strlen(ending);
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  if (length <= end || strcmp(path + length - end, ending) != 0 || base + end == path + length)
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: the name of the file must end in %s", path, ending);
  if (length + 32 > sizeof(dv_path))
    return dv_fail(error, DVBF_ARGUMENT, "%.64s...: the path is too long", path);
  size_t before = (size_t)(base - path), n = length - before - end;
  snprintf(folder, sizeof(dv_path), "%.*s", (int)before, path);
  if (n > 47) return dv_fail(error, DVBF_ARGUMENT, "%.200s: the name has more than 47 characters", path);
  snprintf(name, 64, "%.*s", (int)n, base);
  for (const char *at = name; *at; at++)
    if (!strchr("-_.", *at) && !isalnum((unsigned char)*at))
      return dv_fail(error, DVBF_ARGUMENT, "%.200s: the name must be of letters, digits, -, _ and .", path);
  return DVBF_OK;
}

dvbf_status dv_choose_prefix(char out[64], const dv_export_settings *s, const char *name, dvbf_error *error) {
  dv_identifier(out, 48, *s->prefix ? s->prefix : name);
  if (*s->prefix && (strcmp(out, s->prefix) != 0 || strlen(s->prefix) > 47))
    return dv_fail(
        error, DVBF_ARGUMENT,
        "prefix = %.60s: must be a name of C of at most 47 letters, digits and _; \"%s\" would be one",
        s->prefix, out);
  return DVBF_OK;
}

static bool is_for(const char *endings, const void *ending) {
  return !endings || strstr(endings, ending);
}

dvbf_status dv_refuse_settings(const dvbf_settings *settings, const char *ending, dvbf_error *error) {
  const dv_setting *unused = dv_settings_unused(settings, is_for, ending);
  if (!unused) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "%s is set, but means nothing for a file that ends in %s: leave it out", unused->name,
                 ending);
}

dvbf_status dv_subject_choose(dv_subject *out, const dvbf_model *m, const dv_export_settings *s,
                              dvbf_error *error) {
  *out = (dv_subject){.model = m};
  if (s->member > dv_model_members(m))
    return dv_fail(error, DVBF_ARGUMENT, "member = %d: the model has %d", (int)s->member,
                   dv_model_members(m));
  if (s->member) {
    out->alone = *dv_model_member(m, (int)s->member - 1);
    out->alone.n_others = 0;
    out->alone.no_forecasts = out->alone.no_predictions = false;
    out->model = &out->alone;
  }
  if (s->weights == DV_WEIGHTS_FLOAT) return DVBF_OK;
  dvbf_status status = dv_rounded_new(&out->rounded, out->model, (int)s->weights, error);
  if (!status) out->model = out->rounded;
  return status;
}

void dv_subject_clear(dv_subject *s) {
  dv_rounded_free(s->rounded);
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
  dvbf_status status = o && o->run ? ask_checkpoint(out, o->run, error) : DVBF_OK;
  if (status || *out || !o || !o->data) return status;
  status = dv_data_fingerprint(&hash, o->data, error);
  if (!status) snprintf(out, 17, "%016" PRIx64, hash);
  return status;
}

/* Settings in lines of a hundred characters. */
typedef struct list {
  dv_text *text;
  const char *begin;
  size_t width;
} list;

static dvbf_status put_setting(const char *name, const char *value, void *user) {
  list *l = user;
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
  list l = {.text = t, .begin = begin};
  dv_settings_each(m->settings_object, put_setting, &l);
  dv_text_put(t, "\n");
}

dvbf_status dv_file_header(dv_text *t, const dvbf_model *m, const dvbf_export_options *o, const char *begin,
                           dvbf_error *error) {
  char data[17];
  dvbf_status status = find_data(data, o, error);
  if (status) return status;
  dv_text_put(t, "%s Written by dvbf %s from a trained model.\n", begin, DVBF_VERSION);
  dv_text_put(t, "%s Fingerprint of the model %016" PRIx64 ", of the training data %s\n", begin,
              dv_model_fingerprint(m), *data ? data : "unknown");
  if (o && o->data) {
    put_names(t, begin, "x", o->data->x_names, (size_t)m->n_x);
    put_names(t, begin, "u", o->data->u_names, (size_t)m->n_u);
  }
  for (int k = 0; k < dv_model_members(m); k++) {
    if (dv_model_members(m) > 1) dv_text_put(t, "%s Member %d of a committee\n", begin, k + 1);
    put_model(t, dv_model_member(m, k), begin);
  }
  return t->failed ? dv_fail_memory(error, "exporting a model") : DVBF_OK;
}

/* ---- Trying exported code ---- */

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

/* ---- Programs ---- */

extern char **environ;

dvbf_status dv_scratch_make(dv_scratch *s, dvbf_error *error) {
  const char *where = getenv("TMPDIR");
  snprintf(s->path, sizeof s->path, "%.900s/dvbf-XXXXXX", where && *where ? where : "/tmp");
  if (mkdtemp(s->path)) return DVBF_OK;
  int reason = errno;
  dvbf_status status = dv_fail(error, DVBF_IO, "%.300s: a folder for the compiler cannot be made: %s",
                               s->path, strerror(reason));
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

dvbf_status dv_run_program(const char *const *words, const char *log, int *code, dvbf_error *error) {
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = 0;
  *code = -1;
  if (posix_spawn_file_actions_init(&actions)) return dv_fail_memory(error, "starting a program");
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  int reason = posix_spawnp(&child, words[0], &actions, NULL, (char *const *)words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (reason == ENOENT || reason == EACCES) *code = DV_NO_PROGRAM;
  if (reason)
    return dv_fail(error, DVBF_IO, "%.100s: cannot be run: %s; install a C compiler, or name one in CC",
                   words[0], strerror(reason));
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return dv_fail(error, DVBF_IO, "%.100s: was lost: %s", words[0], strerror(errno));
  if (WIFEXITED(status)) *code = WEXITSTATUS(status);
  return DVBF_OK;
}

void dv_first_line(char *out, size_t size, const char *path) {
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
      dv_run_program((const char *const[]){first, "--version", NULL}, "/dev/null", &code, error);
  *exists = !status && !code;
  if (status && code == DV_NO_PROGRAM) return DVBF_OK;
  if (!status && code)
    status =
        dv_fail(error, DVBF_IO, "the C compiler (%.60s) fails: mend it, or name another one in CC", first);
  return status;
}

dvbf_status dv_run_compiler(const char *const *words, const dv_scratch *scratch, dvbf_error *error) {
  enum { MOST = 64 };
  const char *all[MOST], *given = getenv("CC");
  char compiler[256], log[1100], line[256], *rest = compiler;
  int n = 0, code;
  snprintf(compiler, sizeof compiler, "%s", given && *given ? given : "cc");
  for (char *word; n < 16 && (word = strsep(&rest, " "));)
    if (*word) all[n++] = word;
  if (!n) all[n++] = "cc"; /* CC was blank */
  for (; *words && n + 1 < MOST; words++) all[n++] = *words;
  all[n] = NULL;
  snprintf(log, sizeof log, "%s/log", scratch->path);
  dvbf_status status = dv_run_program(all, log, &code, error);
  if (status || !code) return status;
  dv_first_line(line, sizeof line, log);
  return dv_fail(error, DVBF_IO, "the C compiler (%.60s) fails: %s", all[0],
                 *line ? line : "it says nothing");
}
