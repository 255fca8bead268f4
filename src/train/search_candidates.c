/* Candidates of a search: made from the lines of candidates.def and seeds (dv_candidates_make), their
 * settings, the file search.csv (dv_candidates_write, dv_candidates_read), and their folders. The last
 * candidate is the best linear model. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "identify/linear_fit.h"
#include "train/search.h"

#include <dvbf/dvbf.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct candidate_entry {
  const char *name, *changes;
} candidate_entry;

static const candidate_entry table[] = {
#define CANDIDATE(name, changes) {name, changes},
#include "train/candidates.def"
#undef CANDIDATE
};

/* A linear model that is fitted: it takes no updates and has no seed, so that it is tried once, besides the
 * others, and judged by all folds. */
static const candidate_entry fitted = {"linear-free-run", "model=linear linear-fit=free-run"};

enum { TABLE_LINES = sizeof table / sizeof *table, CANDIDATE_LINE = 4096 };

size_t dv_candidates_lines(void) {
  return TABLE_LINES;
}

bool dv_candidate_fitted(const dv_candidate *c) {
  return !strcmp(c->name, fitted.name);
}

void dv_candidates_free(dv_candidates *c) {
  for (size_t i = 0; i < c->count; i++) dvbf_model_free(c->list[i].model);
  dv_free(c->list);
  *c = (dv_candidates){0};
}

/* ---- Settings ---- */

/* Sets each "name=value" of the text. With `keep`, settings that the user has given stay as they are. */
static dvbf_status apply_changes(dvbf_settings *to, const char *changes, bool keep, dvbf_error *error) {
  char text[sizeof((dv_candidate *)0)->changes], *rest = text, *name, *value;
  dvbf_status status = DVBF_OK;
  snprintf(text, sizeof text, "%s", changes);
  while (!status && dv_next_change(&rest, &name, &value))
    if (!keep || !dv_settings_given(to, name)) status = dv_settings_give(to, name, value, error);
  return status;
}

/* Settings of every candidate, whatever the user has given: it is trained alone and once. */
static const char ALONE[] = "search=off starts=1 threads=1";

static const char *error_text(char out[DV_RESULT], double error) {
  return dv_result_text(out, isfinite(error) && error > 1000 ? "over 1000" : "%.3g", error);
}

void dv_candidate_sentence(char *out, size_t size, const dv_candidates *all, size_t number, bool linear) {
  const dv_candidate *c = &all->list[number];
  char far[DV_RESULT], near[DV_RESULT], errors[128] = "diverged";
  if (isfinite(c->score.free_run) || isfinite(c->score.one_step))
    snprintf(errors, sizeof errors, "free run %s, one step %s (%s = 1)", error_text(far, c->score.free_run),
             error_text(near, c->score.one_step), linear ? "linear" : "deviation");
  snprintf(out, size, "candidate %zu/%zu %s: %s", number + 1, all->count, c->name, errors);
}

dvbf_status dv_candidate_settings(dvbf_settings **out, const dv_candidate *c, const dvbf_settings *of_run,
                                  dvbf_error *error) {
  dvbf_settings *s = NULL;
  dvbf_status status = dvbf_settings_copy(&s, of_run, error);
  if (!status) status = apply_changes(s, c->changes, false, error);
  if (!status) status = apply_changes(s, ALONE, false, error);
  /* A fit finds these itself; the run's values are for networks, and count as given when a run resumes. */
  if (!status && dv_candidate_fitted(c))
    dv_settings_ungive(s, "latent"), dv_settings_ungive(s, "feedthrough");
  if (status)
    dvbf_settings_free(s);
  else
    *out = s;
  return status;
}

/* Collects in `to` what differs from `base`. */
typedef struct difference {
  const dvbf_settings *base;
  dv_candidate *to;
} difference;

static dvbf_status add_change(const char *name, const char *value, void *user) {
  difference *d = user;
  char was[DV_TEXT], *to = d->to->changes;
  size_t used = strlen(to), room = sizeof d->to->changes - used;
  if (dvbf_settings_get(d->base, name, was, sizeof was, NULL) || !strcmp(was, value)) return DVBF_OK;
  int length = snprintf(to + used, room, "%s%s=%s", used ? " " : "", name, value);
  return length < 0 || (size_t)length >= room ? DVBF_ARGUMENT : DVBF_OK;
}

/* Candidate number i: a line of the table and a seed. Settings that follow from these are chosen again. */
static dvbf_status make_one(dv_candidate *c, size_t i, const dvbf_settings *settings, const dv_profile *facts,
                            dvbf_error *error) {
  dvbf_settings *s = NULL;
  char seed[32];
  const dv_train_settings *of_run = dv_settings_train(settings, error);
  snprintf(c->name, sizeof c->name, "%s", table[i % TABLE_LINES].name);
  snprintf(seed, sizeof seed, "%" PRIu64,
           ((uint64_t)of_run->seed + 1000 * (i / TABLE_LINES)) % ((uint64_t)1 << 53));
  dvbf_status status = dvbf_settings_new(&s, dv_settings_table_name(settings), error);
  if (!status) status = dv_settings_lay(s, settings, error);
  if (!status) status = apply_changes(s, table[i % TABLE_LINES].changes, true, error);
  if (!status) status = dv_choose_settings(s, facts, NULL, NULL, error);
  /* Windows that cut no sequence count as none, so that such candidates are recognised as duplicates. */
  size_t window = status ? 0 : (size_t)dv_settings_train(s, error)->window;
  if (window && window >= dv_profile_steps(facts)) status = dvbf_settings_set(s, "window", "0", error);
  if (!status) status = dvbf_settings_set(s, "seed", seed, error);
  difference d = {settings, c};
  if (!status && dv_settings_each(s, add_change, &d))
    status = dv_fail(error, DVBF_ARGUMENT, "candidate %s: its settings are too long", c->name);
  dvbf_settings_free(s);
  return status;
}

static bool is_new(const dv_candidates *c, const char *changes) {
  for (size_t i = 0; i < c->count; i++)
    if (!strcmp(c->list[i].changes, changes)) return false;
  return true;
}

dvbf_status dv_candidates_make(dv_candidates *out, const dvbf_settings *settings, const dv_profile *facts,
                               size_t count, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  *out = (dv_candidates){.list = dv_calloc(DV_MOST_CANDIDATES + 1, sizeof *out->list)};
  if (!out->list) return dv_fail_memory(error, "listing candidates");
  for (size_t i = 0; out->count < count && i < TABLE_LINES * count && !status; i++) {
    dv_candidate c = {0};
    status = make_one(&c, i, settings, facts, error);
    if (!status && is_new(out, c.changes)) out->list[out->count++] = c;
  }
  if (!dv_settings_given(settings, "model")) {
    dv_candidate *c = &out->list[out->count++];
    snprintf(c->name, sizeof c->name, "%s", fitted.name);
    snprintf(c->changes, sizeof c->changes, "%s", fitted.changes);
  }
  dv_candidate *linear = &out->list[out->count++];
  *linear = (dv_candidate){.score = {.free_run = 1, .one_step = 1}};
  snprintf(linear->name, sizeof linear->name, "%s", dv_linear_name());
  return status;
}

/* ---- File ---- */

static const char HEAD[] = "candidate,name,data,target,updates,free_run,one_step,score,rank,settings\n";

dvbf_status dv_candidates_write(const dv_candidates *c, const char *path, dvbf_error *error) {
  DV_PLAIN_NUMBERS;
  dv_atomic_file file = {0};
  dvbf_status status = dv_atomic_open(&file, path, error);
  if (status) return status;
  fputs(HEAD, file.stream);
  for (size_t i = 0; i < c->count; i++) {
    const dv_candidate *x = &c->list[i];
    fprintf(file.stream, "%zu,%s,%s,%" PRIu64 ",%" PRIu64 ",%.17g,%.17g,%.17g,%d,%s\n", i + 1, x->name,
            x->final || !x->target ? "all" : "part", x->target, x->updates, x->score.free_run,
            x->score.one_step, x->score.total, x->rank, x->changes);
  }
  return dv_atomic_commit(&file, error);
}

/* The text of the next column, which a comma ends; NULL when there is none. */
static char *column(char **rest) {
  char *begin = *rest, *end = begin ? strchr(begin, ',') : NULL;
  if (!end) return NULL;
  *end = 0;
  *rest = end + 1;
  return begin;
}

static bool read_number(char **rest, double low, double high, double *out) {
  char *text = column(rest), *end = text;
  *out = text ? strtod(text, &end) : 0;
  return text && end != text && !*end && *out >= low && *out <= high;
}

static bool read_row(dv_candidate *c, char *line, size_t number) {
  DV_PLAIN_NUMBERS;
  char *rest = line, *name, *data;
  double candidate, target, updates, rank;
  size_t length = strlen(line);
  if (!length || line[length - 1] != '\n') return false;
  line[length - 1] = 0;
  if (!read_number(&rest, (double)number, (double)number, &candidate) || !(name = column(&rest)) ||
      strlen(name) >= sizeof c->name || !(data = column(&rest)) || !read_number(&rest, 0, 1e15, &target) ||
      !read_number(&rest, 0, 1e15, &updates) || !read_number(&rest, 0, INFINITY, &c->score.free_run) ||
      !read_number(&rest, 0, INFINITY, &c->score.one_step) ||
      !read_number(&rest, -INFINITY, INFINITY, &c->score.total) ||
      !read_number(&rest, 0, DV_MOST_CANDIDATES, &rank) || strlen(rest) >= sizeof c->changes)
    return false;
  snprintf(c->name, sizeof c->name, "%s", name);
  snprintf(c->changes, sizeof c->changes, "%s", rest);
  c->target = (uint64_t)target;
  c->final = c->target && !strcmp(data, "all");
  c->updates = (uint64_t)updates;
  c->rank = (int)rank;
  return true;
}

dvbf_status dv_candidates_read(dv_candidates *out, const char *path, dvbf_error *error) {
  char line[CANDIDATE_LINE];
  FILE *file = dv_open_file(path, error);
  if (!file) return DVBF_IO;
  *out = (dv_candidates){.list = dv_calloc(DV_MOST_CANDIDATES + 1, sizeof *out->list)};
  bool sound = out->list && fgets(line, sizeof line, file) && !strcmp(line, HEAD);
  while (sound && fgets(line, sizeof line, file)) {
    sound = out->count <= DV_MOST_CANDIDATES && read_row(&out->list[out->count], line, out->count + 1);
    if (sound) out->count++;
  }
  bool failed = ferror(file);
  fclose(file);
  if (!out->list) return dv_fail_memory(error, "reading candidates");
  if (failed) return dv_fail(error, DVBF_IO, "%.300s: cannot be read", path);
  if (!sound || !out->count)
    return dv_fail(
        error, DVBF_FORMAT,
        "%.300s: line %zu is not a line of a search; restore the file, or start again with --force", path,
        out->count + 2);
  return DVBF_OK;
}

/* ---- Folders ---- */

/* Removes the contents of a folder: files or, one level up, folders of files. Links are removed, not
 * followed. */
static void empty(const char *folder, bool folders) {
  DIR *all = opendir(folder);
  if (!all) return;
  for (const struct dirent *item; (item = readdir(all));) {
    dv_path inner;
    if (!strcmp(item->d_name, ".") || !strcmp(item->d_name, "..")) continue;
    if (!unlinkat(dirfd(all), item->d_name, 0) || !folders) continue;
    dv_join(inner, folder, item->d_name);
    empty(inner, false);
    rmdir(inner);
  }
  closedir(all);
}

dvbf_status dv_search_folder_remove(const char *folder, dvbf_error *error) {
  empty(folder, true);
  if (!rmdir(folder) || errno == ENOENT) return DVBF_OK;
  return dv_fail(error, DVBF_IO, "%.300s: cannot be removed: %s", folder, strerror(errno));
}

dvbf_status dv_search_folder_copy(const char *from, const char *to, const char *name, dvbf_error *error) {
  dv_path source, target;
  dv_atomic_file file = {0};
  char block[4096];
  dv_join(source, from, name);
  dv_join(target, to, name);
  FILE *read = dv_open_file(source, error);
  if (!read) return DVBF_IO;
  dvbf_status status = dv_atomic_open(&file, target, error);
  for (size_t n; !status && (n = fread(block, 1, sizeof block, read));) fwrite(block, 1, n, file.stream);
  bool failed = ferror(read);
  fclose(read);
  if (status) return status;
  if (!failed) return dv_atomic_commit(&file, error);
  dv_atomic_abandon(&file);
  return dv_fail(error, DVBF_IO, "%.300s: cannot be read", source);
}
