/* Settings: objects that hold the values of one table, and everything that reads, checks, prints or compares
 * values by name. The tables come from settings_*.def (settings.h). Each value also records its origin: given
 * by the user, named by the user, or left for training to find. This file knows tables and no model; the
 * table "train" is assembled in model/train_settings.c. Public functions: dvbf/core.h; inside the library:
 * dv_settings_*. */
#include "base/settings.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dvbf_settings {
  const dv_table *table;
  dv_origin origin[DV_MOST_SETTINGS];
  const volatile int *interrupt; /* the caller's; copies have none, as they may outlive it */
  dvbf_ranks *ranks;             /* likewise */
  _Alignas(double) unsigned char values[];
};

#define BLANKS " \t\r" /* inside a line */

static const dv_setting *find_entry(const dv_table *t, const char *name) {
  for (size_t i = 0; i < t->count; i++)
    if (!strcmp(t->settings[i].name, name)) return &t->settings[i];
  return NULL;
}

/* Settings of how training runs, not of what is trained. */
static bool is_running(const dv_setting *e) {
  return !strcmp(e->group, "Running");
}

static dv_origin origin(const dvbf_settings *s, const dv_setting *e) {
  return s->origin[e - s->table->settings];
}

/* ---- Suggesting the nearest name ---- */

enum { NAME_LIMIT = 63 }; /* what follows is not compared */

/* Optimal string alignment distance, with three rows of its table. */
size_t dvbf_name_distance(const char *a, const char *b) {
  size_t rows[3][NAME_LIMIT + 1], n = strnlen(b, NAME_LIMIT), i = 0;
  for (size_t j = 0; j <= n; j++) rows[0][j] = j;
  for (; i < NAME_LIMIT && a[i]; i++) {
    size_t *row = rows[(i + 1) % 3], *above = rows[i % 3], *second = rows[(i + 2) % 3];
    row[0] = i + 1;
    for (size_t j = 1; j <= n; j++) {
      size_t best = above[j - 1] + (a[i] != b[j - 1]);
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      if (above[j] + 1 < best) best = above[j] + 1;
      bool swapped = i && j > 1 && a[i] == b[j - 2] && a[i - 1] == b[j - 1];
      if (swapped && second[j - 2] + 1 < best) best = second[j - 2] + 1;
      row[j] = best;
    }
  }
  return rows[i % 3][n];
}

static const char *nearest(const dv_table *t, const char *name) {
  const char *best = t->settings[0].name;
  size_t distance = SIZE_MAX;
  for (size_t i = 0; i < t->count; i++) {
    size_t d = dvbf_name_distance(name, t->settings[i].name);
    if (d < distance) distance = d, best = t->settings[i].name;
  }
  return best;
}

/* ---- Values as text ---- */

/* Position of `value` in "a|b|c", or -1. */
static int64_t choice_index(const char *choices, const char *value) {
  dv_cursor left = dv_cursor_of(choices);
  for (int64_t index = 0; dv_cursor_left(&left); index++, dv_cursor_take(&left, '|'))
    if (dv_cursor_equals(dv_cursor_until(&left, '|'), value)) return index;
  return -1;
}

static void choice_text(const char *choices, int64_t index, char *out, size_t size) {
  while (index-- > 0) choices = strchr(choices, '|') + 1;
  snprintf(out, size, "%.*s", (int)strcspn(choices, "|"), choices);
}

static void range_text(const dv_setting *e, char *out, size_t size) {
  dv_cursor left = dv_cursor_of(e->choices ? e->choices : "");
  snprintf(out, size, "%s", e->kind == DV_KIND_TEXT ? "text" : "");
  if (e->kind == DV_KIND_INT || e->kind == DV_KIND_REAL)
    dv_print(out, size, e->kind == DV_KIND_INT ? "[%.0f, %.0f]" : "[%.10g, %.10g]", e->low, e->high);
  for (const char *before = ""; dv_cursor_left(&left); before = " | ", dv_cursor_take(&left, '|')) {
    dv_cursor one = dv_cursor_until(&left, '|');
    dv_append(out, size, "%s%.*s", before, (int)dv_cursor_left(&one), one.at);
  }
}

static dvbf_status out_of_range(const dv_setting *e, const char *value, dvbf_error *error) {
  char range[160];
  range_text(e, range, sizeof range);
  if (e->choices)
    return dv_fail(error, DVBF_ARGUMENT, "%s = %.60s: must be one of %s; the default is %s", e->name, value,
                   range, e->initial);
  return dv_fail(error, DVBF_ARGUMENT, "%s = %.60s: must be %s in %s; the default is %s", e->name, value,
                 e->kind == DV_KIND_INT ? "a whole number" : "a number", range, e->initial);
}

static dvbf_status set_entry(unsigned char *values, const dv_setting *e, const char *text,
                             dvbf_error *error) {
  DV_PLAIN_NUMBERS;
  void *to = values + e->offset;
  char *end;
  errno = 0;
  if (e->choices) {
    int64_t index = choice_index(e->choices, text);
    if (index < 0) return out_of_range(e, text, error);
    *(int64_t *)to = index;
  } else if (e->kind == DV_KIND_TEXT) {
    if (strlen(text) >= DV_TEXT || strpbrk(text, "#\r\n"))
      return dv_fail(error, DVBF_ARGUMENT, "%s = %.60s: must be one line of at most %d characters without #",
                     e->name, text, DV_TEXT - 1);
    memset(to, 0, DV_TEXT);
    strcpy(to, text);
  } else if (e->kind == DV_KIND_INT) {
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || errno || (double)number < e->low || (double)number > e->high)
      return out_of_range(e, text, error);
    *(int64_t *)to = number;
  } else {
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < e->low || value > e->high)
      return out_of_range(e, text, error);
    *(double *)to = value;
  }
  return DVBF_OK;
}

static void get_entry(const unsigned char *values, const dv_setting *e, char *out, size_t size) {
  DV_PLAIN_NUMBERS;
  const void *from = values + e->offset;
  if (e->kind == DV_KIND_TEXT) {
    snprintf(out, size, "%s", (const char *)from);
  } else if (e->kind == DV_KIND_REAL) {
    double value = *(const double *)from;
    snprintf(out, size, "%.9g", value);
    if (strtod(out, NULL) != value) snprintf(out, size, "%.17g", value);
  } else if (e->choices) {
    choice_text(e->choices, *(const int64_t *)from, out, size);
  } else {
    snprintf(out, size, "%lld", (long long)*(const int64_t *)from);
  }
}

/* Settings of later groups are written only if they differ from the default, so that adding one does not
 * change the files of models without it. */
static bool is_written(const dvbf_settings *s, const dv_setting *e) {
  char value[DV_TEXT];
  if (origin(s, e) == DV_OPEN) return false;
  for (const char *const *group = s->table->written; group && *group; group++)
    if (!strcmp(e->group, *group)) return true;
  get_entry(s->values, e, value, sizeof value);
  return !s->table->written || strcmp(value, e->initial) != 0;
}

/* ---- Public functions ---- */

dvbf_status dvbf_settings_new(dvbf_settings **out, const char *name, dvbf_error *error) {
  const dv_table *t = dv_table_named(name);
  if (!t) return dv_fail(error, DVBF_ARGUMENT, "there is no table of settings named %.60s", name);
  dvbf_settings *s = dv_calloc(1, sizeof *s + t->size);
  if (!s) return dv_fail_memory(error, "making settings");
  s->table = t;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < t->count && !status; i++)
    status = set_entry(s->values, &t->settings[i], t->settings[i].initial, error);
  if (status)
    dv_free(s);
  else
    *out = s;
  return status;
}

dvbf_status dvbf_settings_copy(dvbf_settings **out, const dvbf_settings *from, dvbf_error *error) {
  size_t size = sizeof *from + from->table->size;
  dvbf_settings *s = dv_calloc(1, size);
  if (!s) return dv_fail_memory(error, "copying settings");
  memcpy(s, from, size);
  s->interrupt = NULL;
  s->ranks = NULL;
  *out = s;
  return DVBF_OK;
}

void dvbf_settings_free(dvbf_settings *settings) {
  dv_free(settings);
}

/* The entry of that name, or NULL with a sentence that names the nearest. */
static const dv_setting *entry_or_refusal(const dvbf_settings *s, const char *name, dvbf_error *error) {
  const dv_setting *e = find_entry(s->table, name);
  if (!e)
    dv_report(error, DVBF_ARGUMENT, "%.60s: no such setting; did you mean %s?", name,
              nearest(s->table, name));
  return e;
}

/* ---- Former names ---- */

static bool same_value(const char *a, const char *b) {
  DV_PLAIN_NUMBERS;
  char *end_a, *end_b;
  double x = strtod(a, &end_a), y = strtod(b, &end_b);
  return !strcmp(a, b) || (*a && *b && !*end_a && !*end_b && x == y);
}

/* The line for that name and value, or else one of a constant of another value; NULL: there is none. */
static const dv_former *find_former(const dv_table *t, const char *name, const char *value) {
  const dv_former *found = NULL;
  for (const dv_former *f = t->former; f && f->name; f++) {
    if (strcmp(f->name, name) != 0) continue;
    if (!f->value || same_value(f->value, value)) return f;
    if (!f->now) found = f;
  }
  return found;
}

/* Whether a file or a user asks for another value of what is a constant. */
static bool asks_for_another(const dv_former *f, const char *value) {
  return f && !f->now && !same_value(f->value, value);
}

static dvbf_status refuse_former(const dv_former *f, const char *value, bool file, dvbf_error *error) {
  if (file)
    return dv_fail(error, DVBF_FORMAT,
                   "made with %s = %.60s, which this version no longer has; use dvbf 0.1 or train again",
                   f->name, value);
  return dv_fail(error, DVBF_ARGUMENT,
                 "%s = %.60s: this version no longer has this setting; it is always %s, so leave it out",
                 f->name, value, f->value);
}

static dvbf_status set_from(dvbf_settings *s, const char *name, const char *value, dv_origin from,
                            dvbf_error *error);

static dvbf_status set_former(dvbf_settings *s, const dv_former *f, const char *value, dv_origin from,
                              dvbf_error *error) {
  const dv_setting *now = f->now ? find_entry(s->table, f->now) : NULL;
  char text[DV_TEXT];
  if (asks_for_another(f, value))
    return from == DV_NAMED || f->model ? refuse_former(f, value, from != DV_NAMED, error) : DVBF_OK;
  if (!f->now || !*value) return DVBF_OK;
  /* In a file of before, what has this name now was chosen by itself. */
  if (now && f->as && strcmp(f->name, f->now) != 0 && from != DV_NAMED) {
    get_entry(s->values, now, text, sizeof text);
    if (strcmp(text, now->initial) != 0 && strcmp(text, "on") != 0) return DVBF_OK;
  }
  return set_from(s, f->now, f->as ? f->as : value, from, error);
}

static dvbf_status set_from(dvbf_settings *s, const char *name, const char *value, dv_origin from,
                            dvbf_error *error) {
  const dv_former *f = find_former(s->table, name, value);
  if (f) return set_former(s, f, value, from, error);
  const dv_setting *e = entry_or_refusal(s, name, error);
  if (!e) return DVBF_ARGUMENT;
  /* Files of before name an array by another setting, and leave that of columns empty. */
  bool keep = from == DV_GIVEN && e->kind == DV_KIND_TEXT && !*value;
  dvbf_status status = keep ? DVBF_OK : set_entry(s->values, e, value, error);
  dv_origin *origin = &s->origin[e - s->table->settings];
  if (!status && (from >= DV_RESUMED || *origin < from)) *origin = from;
  return status;
}

dvbf_status dv_settings_give(dvbf_settings *s, const char *name, const char *value, dvbf_error *error) {
  return set_from(s, name, value, DV_GIVEN, error);
}

dvbf_status dvbf_settings_set(dvbf_settings *s, const char *name, const char *value, dvbf_error *error) {
  return set_from(s, name, value, DV_NAMED, error);
}

dvbf_status dv_settings_set_chosen(dvbf_settings *s, const char *name, const char *value, dvbf_error *error) {
  return set_from(s, name, value, DV_CHOSEN, error);
}

dv_origin dv_settings_origin(const dvbf_settings *s, const char *name) {
  const dv_setting *e = find_entry(s->table, name);
  return e ? origin(s, e) : DV_NAMED;
}

bool dv_settings_all_given(const dvbf_settings *s) {
  for (size_t i = 0; i < s->table->count; i++)
    if (s->origin[i] < DV_RESUMED && is_written(s, &s->table->settings[i])) return false;
  return true;
}

static const char *set_of(const dv_setting *e) {
  return e->only ? e->only : e->of;
}

const dv_setting *dv_settings_unused(const dvbf_settings *s, dv_uses_fn *uses, const void *user) {
  for (size_t i = 0; i < s->table->count; i++)
    if (s->origin[i] == DV_NAMED && !uses(set_of(&s->table->settings[i]), user))
      return &s->table->settings[i];
  return NULL;
}

void dv_settings_leave_open(dvbf_settings *s, const char *name) {
  const dv_setting *e = find_entry(s->table, name);
  if (e && origin(s, e) < DV_RESUMED) s->origin[e - s->table->settings] = DV_OPEN;
}

void dv_settings_ungive(dvbf_settings *s, const char *name) {
  const dv_setting *e = find_entry(s->table, name);
  if (e) s->origin[e - s->table->settings] = DV_CHOSEN;
}

dvbf_status dvbf_settings_get(const dvbf_settings *s, const char *name, char *out, size_t size,
                              dvbf_error *error) {
  const dv_setting *e = entry_or_refusal(s, name, error);
  if (!e) return DVBF_ARGUMENT;
  get_entry(s->values, e, out, size);
  return DVBF_OK;
}

dvbf_status dvbf_settings_inherit(dvbf_settings *s, const dvbf_settings *from, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < s->table->count && !status; i++) {
    const dv_setting *to = &s->table->settings[i], *e = find_entry(from->table, to->name);
    char value[DV_TEXT];
    if (!e || is_running(e)) continue;
    get_entry(from->values, e, value, sizeof value);
    status = set_entry(s->values, to, value, error);
  }
  return status;
}

dvbf_status dv_settings_lay(dvbf_settings *s, const dvbf_settings *over, dvbf_error *error) {
  if (s->table != over->table)
    return dv_fail(error, DVBF_ARGUMENT, "settings of the table %s were given, but those of %s are needed",
                   over->table->name, s->table->name);
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < s->table->count && !status; i++) {
    char value[DV_TEXT];
    if (over->origin[i] < DV_RESUMED) continue;
    get_entry(over->values, &s->table->settings[i], value, sizeof value);
    status = dv_settings_give(s, s->table->settings[i].name, value, error);
  }
  return status;
}

int dv_cores(void) {
  cpu_set_t set;
  if (!sched_getaffinity(0, sizeof set, &set)) return CPU_COUNT(&set);
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (int)n : 1;
}

unsigned dvbf_settings_threads(const dvbf_settings *s) {
  const dv_setting *e = find_entry(s->table, "threads");
  int64_t threads = e ? *(const int64_t *)(const void *)(s->values + e->offset) : 0;
  return (unsigned)(threads ? threads : dv_cores());
}

void dvbf_settings_interrupt(dvbf_settings *s, const volatile int *flag) {
  s->interrupt = flag;
}

const volatile int *dv_settings_interrupt(const dvbf_settings *s) {
  return s->interrupt;
}

void dvbf_settings_ranks(dvbf_settings *s, dvbf_ranks *ranks) {
  s->ranks = ranks;
}

dvbf_ranks *dv_settings_ranks(const dvbf_settings *s) {
  return s->ranks;
}

/* Applies one `name = value` line; blank lines and comments are skipped. `late` is filled with what is
 * refused unless the file is the complete set of a run. */
static dvbf_status apply_line(dvbf_settings *s, dv_cursor line, dv_origin from, const char *where,
                              size_t number, dvbf_error *late, dvbf_error *error) {
  char name[DV_TEXT], value[DV_TEXT];
  line = dv_cursor_trim(dv_cursor_until(&line, '#'), BLANKS);
  if (!dv_cursor_left(&line)) return DVBF_OK;
  dv_cursor left = dv_cursor_until(&line, '=');
  if (!dv_cursor_take(&line, '=') || !dv_cursor_copy(dv_cursor_trim(left, BLANKS), name, sizeof name) ||
      !dv_cursor_copy(dv_cursor_trim(line, BLANKS), value, sizeof value))
    return dv_fail(
        error, DVBF_FORMAT,
        "%s, line %zu: \"%.*s\" is not of the form name = value, each with fewer than %d characters", where,
        number, (int)(dv_cursor_left(&left) < 60 ? dv_cursor_left(&left) : 60), left.at, DV_TEXT);
  dvbf_error inner;
  const dv_former *former = find_former(s->table, name, value);
  if (asks_for_another(former, value) && !late->status) {
    refuse_former(former, value, false, &inner);
    dv_report(late, DVBF_ARGUMENT, "%s, line %zu: %.400s", where, number, inner.message);
  }
  dvbf_status status = set_from(s, name, value, from, &inner);
  if (status) return dv_fail(error, status, "%s, line %zu: %.400s", where, number, inner.message);
  return DVBF_OK;
}

dvbf_status dvbf_settings_preset(dvbf_settings *s, const char *preset, dvbf_error *error) {
  const char *lines = dv_preset_lines(preset, s->table->name);
  if (!lines && dvbf_preset_system(preset))
    return dv_fail(error, DVBF_ARGUMENT, "preset = %.60s: it is for %s and has no values for %s", preset,
                   dvbf_preset_system(preset), s->table->name);
  if (!lines) {
    char known[256] = "";
    for (size_t i = 0; dvbf_preset_name(i, NULL); i++)
      dv_append(known, sizeof known, "%s%s", i ? ", " : "", dvbf_preset_name(i, NULL));
    return dv_fail(error, DVBF_ARGUMENT, "preset = %.60s: no such preset; the known ones are %s", preset,
                   known);
  }
  dv_cursor text = dv_cursor_of(lines);
  dvbf_error late = {0};
  dv_origin before[DV_MOST_SETTINGS];
  memcpy(before, s->origin, sizeof before);
  for (size_t number = 1; dv_cursor_left(&text); number++) {
    dvbf_status status = apply_line(s, dv_cursor_until(&text, '\n'), DV_GIVEN, preset, number, &late, error);
    if (status) return status;
    dv_cursor_take(&text, '\n');
  }
  /* A preset counts as a complete set of values. */
  for (size_t i = 0; i < s->table->count; i++) s->origin[i] = before[i] == DV_NAMED ? DV_NAMED : DV_GIVEN;
  return DVBF_OK;
}

/* Marks a value in the file of a run that the user has not chosen, so that recovery may change it. */
static const char LEFT[] = "# left to training";

/* The next line without its end and its comment, which may have any length and is returned by its beginning;
 * false after the last line. A line too long for `out` fills it. */
static bool next_line(FILE *file, char *out, size_t size, dv_cursor *line, char comment[sizeof LEFT]) {
  int c = getc(file);
  size_t length = 0, told = 0;
  bool any = c != EOF, inside = false;
  for (; c != EOF && c != '\n'; c = getc(file)) {
    inside = inside || c == '#';
    if (!inside && length < size) out[length++] = (char)c;
    if (inside && told < sizeof LEFT - 1) comment[told++] = (char)c;
  }
  comment[told] = 0;
  *line = (dv_cursor){out, out + length};
  return any;
}

dvbf_status dvbf_settings_read(dvbf_settings *s, const char *path, dvbf_error *error) {
  FILE *file = dv_open_file(path, error);
  if (!file) return DVBF_IO;
  char text[1024] = "", comment[sizeof LEFT];
  dv_cursor line;
  dvbf_error late = {0};
  dv_origin before[DV_MOST_SETTINGS];
  dvbf_status status = DVBF_OK;
  memcpy(before, s->origin, sizeof before);
  memset(s->origin, 0, sizeof s->origin);
  for (size_t number = 1; !status && next_line(file, text, sizeof text, &line, comment); number++)
    status =
        dv_cursor_left(&line) < sizeof text
            ? apply_line(s, line, strcmp(comment, LEFT) ? DV_GIVEN : DV_RESUMED, path, number, &late, error)
            : dv_fail(error, DVBF_FORMAT, "%s, line %zu: has more than %zu characters; shorten it", path,
                      number, sizeof text - 1);
  if (!status && ferror(file))
    status = dv_fail(error, DVBF_IO, "%s: cannot be read: %s", path, strerror(errno));
  fclose(file);
  /* A file with most settings is the complete set of a run. */
  size_t count = 0;
  for (size_t i = 0; i < s->table->count; i++) count += s->origin[i] != DV_DEFAULT;
  bool complete = 2 * count >= s->table->count;
  for (size_t i = 0; i < s->table->count; i++) {
    if (s->origin[i] == DV_GIVEN && !complete) s->origin[i] = DV_NAMED;
    if (before[i] == DV_NAMED || !s->origin[i]) s->origin[i] = before[i];
  }
  return status || complete || !late.status ? status : dv_fail(error, late.status, "%s", late.message);
}

dvbf_status dvbf_settings_write(const dvbf_settings *s, const char *path, dvbf_error *error) {
  return dv_settings_write(s, path, NULL, error);
}

dvbf_status dv_settings_write(const dvbf_settings *s, const char *path, const char *const *changes,
                              dvbf_error *error) {
  dv_atomic_file file;
  dvbf_status status = dv_atomic_open(&file, path, error);
  if (status) return status;
  const char *group = "";
  for (size_t i = 0; i < s->table->count; i++) {
    const dv_setting *e = &s->table->settings[i];
    char value[DV_TEXT];
    bool changes_it = false, fixed = s->origin[i] >= DV_GIVEN;
    for (const char *const *name = changes; name && *name; name++) changes_it |= !strcmp(e->name, *name);
    if (!is_written(s, e) && !(changes_it && fixed)) continue;
    get_entry(s->values, e, value, sizeof value);
    if (strcmp(group, e->group)) fprintf(file.stream, "%s# %s\n", i ? "\n" : "", group = e->group);
    fprintf(file.stream, "%s =%s%s%s%s\n", e->name, *value ? " " : "", value, changes_it && !fixed ? " " : "",
            changes_it && !fixed ? LEFT : "");
  }
  return dv_atomic_commit(&file, error);
}

bool dvbf_settings_table(const char *name, size_t index, dvbf_setting_info *info) {
  static const char *const kinds[] = {"int", "real", "choice", "switch", "text"};
  static _Thread_local char range[160];
  const dv_table *t = dv_table_named(name);
  if (!t || index >= t->count) return false;
  const dv_setting *e = &t->settings[index];
  range_text(e, range, sizeof range);
  *info = (dvbf_setting_info){.name = e->name,
                              .group = e->group,
                              .kind = kinds[e->kind],
                              .range = range,
                              .initial = e->initial,
                              .help = e->help,
                              .users = t->users ? t->users(set_of(e)) : NULL,
                              .common = e->common,
                              .recipe = e->recipe};
  return true;
}

/* ---- Inside the library ---- */

const void *dv_settings_values(const dvbf_settings *s, const char *name, dvbf_error *error) {
  if (s && !strcmp(s->table->name, name)) return s->values;
  if (s && s->table->data && !strcmp(name, "data")) return s->values + s->table->data;
  dv_report(error, DVBF_ARGUMENT, "settings of the table \"%s\" are needed here, not \"%s\"", name,
            s ? s->table->name : "none");
  return NULL;
}

bool dv_next_change(char **rest, char **name, char **value) {
  while ((*name = strsep(rest, " ")) && !(*value = strchr(*name, '='))) {}
  if (*name) *(*value)++ = 0;
  return *name;
}

const char *dv_settings_table_name(const dvbf_settings *s) {
  return s->table->name;
}

dvbf_status dv_settings_each(const dvbf_settings *s,
                             dvbf_status (*each)(const char *name, const char *value, void *user),
                             void *user) {
  for (size_t i = 0; i < s->table->count; i++) {
    const dv_setting *e = &s->table->settings[i];
    char value[DV_TEXT];
    if (is_running(e) || !is_written(s, e)) continue;
    get_entry(s->values, e, value, sizeof value);
    dvbf_status status = each(e->name, value, user);
    if (status) return status;
  }
  return DVBF_OK;
}

bool dv_settings_differ(const dvbf_settings *one, const dvbf_settings *other, const char *besides,
                        dv_setting_change *out) {
  for (size_t i = 0; i < one->table->count; i++) {
    const dv_setting *e = &one->table->settings[i];
    if (one->origin[i] == DV_OPEN) continue;
    get_entry(one->values, e, out->one, sizeof out->one);
    get_entry(other->values, e, out->other, sizeof out->other);
    out->name = e->name;
    if (besides && !strcmp(e->name, besides)) continue;
    if (!is_running(e) && strcmp(out->one, out->other) != 0) return true;
  }
  return false;
}
