#include "format/csv_columns.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MOST = 1 << 20, X = 0, U = 1, STATE = 2 };

/* ---- The list ---- */

static bool make_room(dv_csv_columns *c) {
  size_t room = c->room ? 2 * c->room : 16;
  char **names = dv_realloc(c->names, room, sizeof *names);
  if (names) c->names = names;
  bool *number = dv_realloc(c->number, room, sizeof *number);
  if (number) c->number = number;
  bool *other = dv_realloc(c->other, room, sizeof *other);
  if (other) c->other = other;
  bool *used = dv_realloc(c->used, room, sizeof *used);
  if (used) c->used = used;
  if (!names || !number || !other || !used) return false;
  c->room = room;
  return true;
}

dvbf_status dv_csv_add_column(dv_csv_columns *c, dv_cursor name, dvbf_error *error) {
  if (c->count == MOST) return dv_fail(error, DVBF_FORMAT, "a table may have at most %d columns", MOST);
  if (c->count == c->room && !make_room(c)) return dv_fail_memory(error, "reading data");
  size_t room = dv_cursor_left(&name) + 1;
  char *copy = dv_calloc(room, 1);
  if (!copy) return dv_fail_memory(error, "reading data");
  dv_cursor_copy(name, copy, room); /* lines hold no zero byte */
  c->names[c->count] = copy;
  c->number[c->count] = c->other[c->count] = c->used[c->count] = false;
  c->count++;
  return DVBF_OK;
}

void dv_csv_drop_last(dv_csv_columns *c) {
  dv_free(c->names[--c->count]);
}

void dv_csv_columns_free(dv_csv_columns *c) {
  for (size_t i = 0; i < c->count; i++) dv_free(c->names[i]);
  for (int role = 0; role < 3; role++) dv_free(c->choice[role]);
  DV_FREE(c->names, c->number, c->other, c->used);
}

const char *dv_csv_column_name(const dv_csv_columns *c, size_t column, char *out, size_t size) {
  if (c->header && *c->names[column])
    snprintf(out, size, "%.40s", c->names[column]);
  else
    snprintf(out, size, "%zu", column + 1);
  for (char *at = out; *at; at++)
    if ((unsigned char)*at < ' ' || *at == 127) *at = '?';
  return out;
}

/* A failure that names the columns. */
static dvbf_status unclear(const dv_csv_columns *c, const char *path, const char *problem,
                           dvbf_error *error) {
  char list[200] = "", name[64];
  for (size_t i = 0, used = 0; i < c->count && used + 50 < sizeof list; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s%s", i ? ", " : "",
                             dv_csv_column_name(c, i, name, sizeof name),
                             used > 90 && i + 1 < c->count ? ", ..." : "");
  return dv_fail(error, DVBF_FORMAT, "%.200s: %s; its %zu columns are %s", path, problem, c->count, list);
}

/* ---- Chosen by a setting ---- */

static size_t column_named(const dv_csv_columns *c, const char *name) {
  for (int folded = 0; folded < 2; folded++)
    for (size_t i = 0; c->header && i < c->count; i++)
      if (!(folded ? strcasecmp(c->names[i], name) : strcmp(c->names[i], name))) return i;
  return DV_CSV_NONE;
}

/* Columns first .. last by name, number or range of numbers; false: there are no such. */
static bool find_columns(const dv_csv_columns *c, const char *text, size_t *first, size_t *last) {
  unsigned from = 0, to = 0;
  int used = 0;
  *first = *last = column_named(c, text);
  if (*first != DV_CSV_NONE) return true;
  if (text[strspn(text, "0123456789- ")] || strlen(text) > 20) return false;
  if (sscanf(text, "%9u - %9u%n", &from, &to, &used) != 2 || text[used]) {
    if (sscanf(text, "%9u%n", &from, &used) != 1 || text[used]) return false;
    to = from;
  }
  *first = from - 1U;
  *last = to - 1U;
  return from >= 1 && from <= to && to <= c->count;
}

static dvbf_status choose_column(dv_csv_columns *c, int role, size_t column, dvbf_error *error) {
  if (!c->choice[role]) c->choice[role] = dv_calloc(c->count, sizeof **c->choice);
  if (!c->choice[role]) return dv_fail_memory(error, "reading data");
  for (size_t i = 0; c->used[column] && i < c->chosen[role]; i++)
    if (c->choice[role][i] == column) return DVBF_OK;
  c->choice[role][c->chosen[role]++] = column;
  c->used[column] = true;
  return DVBF_OK;
}

static dvbf_status choose_named(dv_csv_columns *c, const char *path, int role, const char *text,
                                const char *setting, dvbf_error *error) {
  dv_cursor list = dv_cursor_of(text), item;
  while (dv_cursor_item(&list, &item)) {
    char wanted[DV_TEXT] = "";
    size_t first, last;
    if (!dv_cursor_copy(item, wanted, sizeof wanted) || !find_columns(c, wanted, &first, &last)) {
      char problem[128];
      snprintf(problem, sizeof problem, "has no column %.40s, which %s names (numbers count from 1)", wanted,
               setting);
      return unclear(c, path, problem, error);
    }
    for (size_t i = first; i <= last; i++) {
      dvbf_status status = choose_column(c, role, i, error);
      if (status) return status;
    }
  }
  return DVBF_OK;
}

/* ---- Chosen by their names ---- */

/* letter, letter12 or letter_12 */
static bool is_numbered(const char *name, char letter) {
  if ((name[0] | 32) != letter) return false;
  const char *rest = name + 1 + (name[1] == '_');
  return !name[1] || (*rest && strspn(rest, "0123456789") == strlen(rest));
}

static bool has_usual_name(const char *name, int role) {
  if (role == X) return is_numbered(name, 'x') || is_numbered(name, 'y');
  if (role == U) return is_numbered(name, 'u');
  return !strncasecmp(name, "state", 5);
}

/* Columns that count rows or tell the time are no observations. */
static bool is_time(const char *name) {
  static const char *const names[] = {"",          "time", "t",        "ts",    "dt",
                                      "timestamp", "date", "datetime", "index", "id"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcasecmp(name, names[i])) return true;
  return false;
}

static dvbf_status choose_usual(dv_csv_columns *c, int role, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; c->header && i < c->count && !status; i++)
    if (!c->used[i] && i != c->sequence && i != c->split && has_usual_name(c->names[i], role))
      status = choose_column(c, role, i, error);
  return status;
}

/* All that hold numbers and are nothing else. */
static dvbf_status choose_rest(dv_csv_columns *c, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < c->count && !status; i++)
    if (!c->used[i] && i != c->sequence && i != c->split && c->number[i] && !c->other[i] &&
        !(c->header && is_time(c->names[i])))
      status = choose_column(c, X, i, error);
  return status;
}

dvbf_status dv_csv_choose(dv_csv_columns *c, const char *path, const dv_data_settings *how,
                          dvbf_error *error) {
  const char *const texts[] = {how->outputs, how->inputs, how->states};
  static const char *const settings[] = {"outputs", "inputs", "states"};
  dvbf_status status = DVBF_OK;
  c->sequence = column_named(c, "sequence");
  c->split = column_named(c, "split");
  for (int role = 0; role < 3 && !status; role++)
    status = choose_named(c, path, role, texts[role], settings[role], error);
  for (int role = 2; role >= 0 && !status; role--)
    if (!c->chosen[role]) status = choose_usual(c, role, error);
  if (!status && !c->chosen[X]) status = choose_rest(c, error);
  if (!status && !c->chosen[X])
    status = unclear(
        c, path,
        "is a text file, but has no column of numbers that could be x; name the columns of x by --outputs",
        error);
  return status;
}
