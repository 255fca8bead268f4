/* Roles of the columns of a table (dv_csv_choose): x, u, state, time, sequence and split, by the settings,
 * else by their names, else all numbers except times. Also labels, units and the numbers of a field. */
#include "io/csv.h"

#include "base/error.h"
#include "base/memory.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { CSV_COLUMNS = 1 << 20 };

/* ---- Words ---- */

static bool is_one_of(const char *name, const char *const *words) {
  for (; *words; words++)
    if (!strcasecmp(name, *words)) return true;
  return false;
}

/* letter, letter12 or letter_12 */
static bool is_numbered(const char *name, char letter) {
  if ((name[0] | 32) != letter) return false;
  const char *rest = name + 1 + (name[1] == '_');
  return !name[1] || (*rest && strspn(rest, "0123456789") == strlen(rest));
}

/* Whether the name begins with one of the words, and what follows is no letter; *rest = what follows. */
static bool begins_with(const char *name, const char *const *words, const char **rest) {
  for (; *words; words++) {
    size_t n = strlen(*words);
    *rest = name + n;
    if (!strncasecmp(name, *words, n) && !isalpha((unsigned char)**rest)) return true;
  }
  return false;
}

/* Words that make a column an input in any context. */
static bool is_input(const char *name) {
  static const char *const words[] = {"input",    "inputs",  "action",    "actions", "control",
                                      "controls", "command", "commanded", "cmd",     NULL};
  const char *rest;
  return is_numbered(name, 'u') || begins_with(name, words, &rest) ||
         dv_text_ends_in(name, "_cmd _command _input .cmd");
}

/* Words for sequences, alone or with a word for their number: episode, traj_id. */
static bool is_sequence(const char *name) {
  static const char *const words[] = {"sequence",   "seq",  "episode", "ep",      "traj",
                                      "trajectory", "run",  "trial",   "rollout", "session",
                                      "experiment", "demo", NULL};
  static const char *const numbers[] = {"", "id", "index", "idx", "no", "nr", "num", "number", "name", NULL};
  const char *rest;
  if (!strcasecmp(name, "id")) return true;
  return begins_with(name, words, &rest) && is_one_of(rest + strspn(rest, "_- ."), numbers);
}

/* Whether a name for sequences may mean something else, as run or id. */
static bool is_vague(const char *name) {
  static const char *const sure[] = {"sequence", "episode", "traj", "trajectory", "rollout", NULL};
  const char *rest;
  return !begins_with(name, sure, &rest);
}

static bool is_time_name(const char *name) {
  static const char *const words[] = {
      "time",         "t",         "timestamp", "timestamps", "time_stamp", "date",        "datetime",
      "date_time",    "date time", "zeit",      "datum",      "utc",        "elapsed",     "elapsed_time",
      "elapsed time", "seconds",   "sec",       "millis",     "%time",      "zeitstempel", NULL};
  char head[32];
  const char *bar = strrchr(name, '_');
  if (is_one_of(name, words)) return true;
  if (!bar || bar == name || (size_t)(bar - name) >= sizeof head || !dv_seconds_of(bar + 1)) return false;
  snprintf(head, sizeof head, "%.*s", (int)(bar - name), name); /* time_ms */
  return is_one_of(head, words);
}

/* By the name without its unit. */
static dv_name_kind meaning_of(const char *name) {
  static const char *const counters[] = {"",           "index", "step",        "steps",    "timestep",
                                         "time_step",  "frame", "frame_index", "frame_id", "row",
                                         "unnamed: 0", "no",    "nr",          "#",        NULL};
  static const char *const steps[] = {"ts", "dt", "sample_time", "sampletime", NULL};
  if (!strcmp(name, "split")) return DV_NAME_SPLIT;
  if (is_one_of(name, counters)) return DV_NAME_COUNTER;
  if (is_one_of(name, steps)) return DV_NAME_STEP;
  if (is_sequence(name)) return DV_NAME_SEQUENCE;
  if (is_time_name(name)) return DV_NAME_TIME;
  if (is_numbered(name, 'x') || is_numbered(name, 'y')) return DV_NAME_X;
  if (!strncasecmp(name, "state", 5)) return DV_NAME_STATE;
  return is_input(name) ? DV_NAME_U : DV_NAME_OTHER;
}

/* ---- Units ---- */

/* A unit in brackets: short, and no word with blanks. */
static bool is_unit(const char *text, size_t length) {
  if (length < 1 || length >= DV_UNIT) return false;
  for (size_t i = 0; i < length; i++)
    if (text[i] == ' ' || strchr("()[]{}\"", text[i])) return false;
  return text[0] < '0' || text[0] > '9' || length > 1; /* x[0] is no unit */
}

/* "level [mm]" becomes "level", and unit "mm"; false: it has none. */
static bool cut_unit(char *name, char unit[DV_UNIT]) {
  size_t length = strlen(name);
  char last = length ? name[length - 1] : 0;
  if (last != ']' && last != ')') return false;
  char *begin = strrchr(name, last == ']' ? '[' : '(');
  if (!begin || begin == name) return false;
  size_t n = (size_t)(name + length - 1 - begin - 1);
  if (!is_unit(begin + 1, n) || strspn(begin + 1, "0123456789") == n) return false;
  snprintf(unit, DV_UNIT, "%.*s", (int)n, begin + 1);
  while (begin > name && (begin[-1] == ' ' || begin[-1] == '_')) begin--;
  if (begin == name) return false;
  *begin = 0;
  return true;
}

/* Seconds of one unit of a time column, by its unit or the end of its name, as time_ms; 0: unknown. */
static double time_unit_of(const char *name, const char *unit) {
  const char *bar = strrchr(name, '_');
  double seconds = dv_seconds_of(unit);
  if (!seconds && bar) seconds = dv_seconds_of(bar + 1);
  if (!seconds && !strcasecmp(name, "millis")) seconds = 1e-3;
  return seconds;
}

/* ---- List of columns ---- */

dvbf_status dv_csv_add_column(dv_csv_columns *c, dv_cursor name, bool quoted, dvbf_error *error) {
  if (c->count == CSV_COLUMNS)
    return dv_fail(error, DVBF_FORMAT, "a table may have at most %d columns", CSV_COLUMNS);
  dv_csv_column *columns = dv_grow(c->column, c->count, sizeof *columns);
  if (!columns) return dv_fail_memory(error, "reading data");
  c->column = columns;
  size_t room = 2 * dv_cursor_left(&name) + 1, used = 0; /* Latin-1 may become twice as long */
  char *raw = dv_calloc(room, 1), *copy = dv_calloc(room, 1);
  dv_csv_column *column = &c->column[c->count];
  *column = (dv_csv_column){.name = copy, .label = copy ? dv_calloc(room, 1) : NULL};
  for (const char *at = name.at; raw && at < name.end; at++) {
    raw[used++] = *at;
    if (quoted && *at == '"' && at + 1 < name.end && at[1] == '"') at++;
  }
  if (raw && column->label) {
    dv_name_copy((dv_cursor){raw, raw + used}, copy, room);
    strcpy(column->label, copy);
    column->says = meaning_of(copy);
    c->count++;
  } else {
    DV_FREE(copy, column->label);
  }
  dv_free(raw);
  return column->label ? DVBF_OK : dv_fail_memory(error, "reading data");
}

void dv_csv_drop_last(dv_csv_columns *c) {
  dv_csv_column *last = &c->column[--c->count];
  DV_FREE(last->name, last->label);
}

void dv_csv_columns_free(dv_csv_columns *c) {
  while (c->count) dv_csv_drop_last(c);
  for (int role = 0; role < 3; role++) dv_free(c->choice[role]);
  dv_free(c->column);
}

/* Whether a label is that of another column too. */
static bool is_taken(const dv_csv_columns *c, size_t column) {
  for (size_t i = 0; i < c->count; i++)
    if (i != column && !strcasecmp(c->column[i].label, c->column[column].label)) return true;
  return false;
}

void dv_csv_label(dv_csv_columns *c) {
  enum { LABELLED = 4096 }; /* tables with so many columns have no units, and comparing all would take long */
  if (!c->header || c->count > LABELLED) return;
  for (size_t i = 0; i < c->count; i++) {
    char unit[DV_UNIT] = "";
    if (cut_unit(c->column[i].label, unit) && !*c->column[i].unit) strcpy(c->column[i].unit, unit);
  }
  /* acc (x) and acc (y) keep their names; labels that were cut come back one by one. */
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < c->count; i++)
      if (strcmp(c->column[i].label, c->column[i].name) && is_taken(c, i)) {
        strcpy(c->column[i].label, c->column[i].name);
        *c->column[i].unit = 0;
        again = true;
      }
  }
  for (size_t i = 0; i < c->count; i++) c->column[i].says = meaning_of(c->column[i].label);
}

const char *dv_csv_column_name(const dv_csv_columns *c, size_t column, char out[DV_COLUMN]) {
  if (c->header && *c->column[column].name)
    dv_name_copy(dv_cursor_of(c->column[column].name), out, DV_COLUMN);
  else
    snprintf(out, DV_COLUMN, "%zu", column + 1);
  return out;
}

typedef struct choosing {
  dv_csv_columns *c;
  const char *path;
  const dv_data_settings *how;
  dvbf_error *error;
} choosing;

/* A failure that names the columns. */
static dvbf_status unclear(const choosing *o, const char *problem) {
  const dv_csv_columns *c = o->c;
  char list[200] = "", name[DV_COLUMN];
  for (size_t i = 0, used = 0; i < c->count && used + 50 < sizeof list; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s%s", i ? ", " : "",
                             dv_csv_column_name(c, i, name), used > 90 && i + 1 < c->count ? ", ..." : "");
  return dv_fail_file(o->error, o->path, "%s; columns found (%zu): %s", problem, c->count, list);
}

bool dv_csv_number(const dv_csv_columns *c, dv_cursor field, float *out) {
  const char other = c->decimal == ',' ? '.' : ',';
  if (!c->decimal)
    return dv_decimal(field, c->separator != ',', out) ||
           (c->separator == ','
                ? dv_decimal_grouped(field, '.', out)
                : !memchr(field.at, '.', dv_cursor_left(&field)) && dv_decimal_grouped(field, ',', out));
  return (!memchr(field.at, other, dv_cursor_left(&field)) && dv_decimal(field, c->decimal == ',', out)) ||
         dv_decimal_grouped(field, c->decimal, out);
}

/* ---- Choice by settings ---- */

static size_t column_named(const dv_csv_columns *c, const char *name) {
  for (int way = 0; way < 4; way++) /* the name, then the label, each in these letters, then in any */
    for (size_t i = 0; c->header && i < c->count; i++) {
      const char *text = way < 2 ? c->column[i].name : c->column[i].label;
      if (!(way % 2 ? strcasecmp(text, name) : strcmp(text, name))) return i;
    }
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

static dvbf_status choose_column(const choosing *o, int role, size_t column) {
  dv_csv_columns *c = o->c;
  if (!c->choice[role]) c->choice[role] = dv_calloc(c->count, sizeof **c->choice);
  if (!c->choice[role]) return dv_fail_memory(o->error, "reading data");
  for (size_t i = 0; c->column[column].used && i < c->chosen[role]; i++)
    if (c->choice[role][i] == column) return DVBF_OK;
  c->choice[role][c->chosen[role]++] = column;
  c->column[column].used = true;
  return DVBF_OK;
}

static dvbf_status no_column(const choosing *o, const char *wanted, const char *setting) {
  char problem[128];
  snprintf(problem, sizeof problem, "has no column %.40s, which %s names (numbers count from 1)", wanted,
           setting);
  return unclear(o, problem);
}

static bool is_none(const char *text) {
  return !strcasecmp(text, "none");
}

static dvbf_status choose_named(const choosing *o, int role) {
  const char *text = dv_role_text(o->how, role);
  dv_cursor list = dv_cursor_of(text), item;
  dvbf_status status = DVBF_OK;
  if (role == DV_ROLE_U && is_none(text) && column_named(o->c, text) == DV_CSV_NONE) return DVBF_OK;
  while (!status && dv_cursor_item(&list, &item)) {
    char wanted[DV_TEXT] = "";
    size_t first, last;
    if (!dv_cursor_copy(item, wanted, sizeof wanted) || !find_columns(o->c, wanted, &first, &last))
      return no_column(o, wanted, dv_role_setting(role));
    for (size_t i = first; i <= last && !status; i++) status = choose_column(o, role, i);
  }
  return status;
}

/* ---- Time, sequence and split ---- */

/* A single column named by a setting; *out is unchanged if the setting is empty. */
static dvbf_status choose_single(const choosing *o, const char *text, const char *setting, size_t *out) {
  size_t first, last;
  if (!*text) return DVBF_OK;
  *out = DV_CSV_NONE;
  if (is_none(text)) return DVBF_OK;
  if (!find_columns(o->c, text, &first, &last) || first != last) return no_column(o, text, setting);
  *out = first;
  return DVBF_OK;
}

/* Whether a column whose name may tell sequences apart does so: its value stays for a while and does not
 * return. A binary column named run is a switch; an id that differs in every row counts rows. */
static bool tells_sequences(const dv_csv_column *column) {
  size_t rows = column->numbers + column->dates + column->clocks + column->empty + column->others;
  if (!is_vague(column->label)) return true;
  return !column->falls && 2 * column->changes <= rows && !column->empty;
}

static size_t sequence_column(const dv_csv_columns *c) {
  for (int sure = 1; sure >= 0; sure--)
    for (size_t i = 0; c->header && i < c->count; i++) {
      const dv_csv_column *column = &c->column[i];
      if (column->says == DV_NAME_SEQUENCE && !column->used && sure != is_vague(column->label) &&
          tells_sequences(column))
        return i;
    }
  return DV_CSV_NONE;
}

/* Whether the first rows are times: dates, or numbers that rise. A single letter, as T, may be a
 * temperature. */
static bool is_time(const dv_csv_columns *c, const dv_csv_column *column) {
  size_t rows = column->numbers + column->dates + column->clocks;
  if (!rows || column->others || column->used) return false;
  if (column->says == DV_NAME_STEP) return column->numbers > 1 && column->changes && !column->falls;
  if (column->says != DV_NAME_TIME) return false;
  bool sequences = c->sequence != DV_CSV_NONE;
  return column->dates || column->clocks || sequences || !column->falls ||
         (strlen(column->label) > 1 && 4 * column->falls < column->changes);
}

/* The time of the rows, and how to read it. */
static void find_time(dv_csv_columns *c, bool none) {
  for (size_t i = 0; c->header && !none && i < c->count && c->time == DV_CSV_NONE; i++)
    if (is_time(c, &c->column[i])) c->time = i;
  if (c->time == DV_CSV_NONE) return;
  dv_csv_column *time = &c->column[c->time];
  for (size_t i = 0; c->header && i < c->count; i++) {
    dv_csv_column *other = &c->column[i];
    if (i == c->time || !is_time(c, other)) continue;
    if (time->dates && other->clocks) c->clock = i;
    if (time->clocks && other->dates) { /* date and time of day in two columns */
      c->clock = c->time;
      c->time = i;
      time = other;
    }
  }
  c->dates = time->dates;
  if (time->dates || time->clocks) return;
  double epoch = dv_epoch_unit(time->last);
  c->time_unit = time_unit_of(time->label, time->unit);
  if (!c->time_unit) c->time_unit = epoch ? epoch : 1;
  c->dates = epoch && epoch == c->time_unit;
}

/* A column named Ts or dt that has one value, perhaps in the first row alone, is the sample time. */
static void find_sample_time(dv_csv_columns *c) {
  for (size_t i = 0; c->header && i < c->count; i++) {
    const dv_csv_column *column = &c->column[i];
    if (column->says != DV_NAME_STEP || column->used || column->others || !column->numbers) continue;
    if (column->numbers > 1 && column->changes) continue;
    double unit = time_unit_of(column->label, column->unit);
    if (column->last > 0) c->sample_time = column->last * (unit ? unit : 1);
  }
}

/* ---- Choice by names ---- */

static bool is_free(const dv_csv_columns *c, size_t column) {
  return !c->column[column].used && column != c->sequence && column != c->split && column != c->time &&
         column != c->clock;
}

static dvbf_status choose_usual(const choosing *o, int role) {
  static const dv_name_kind kinds[] = {DV_NAME_X, DV_NAME_U, DV_NAME_STATE};
  dv_csv_columns *c = o->c;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; c->header && i < c->count && !status; i++) {
    const dv_csv_column *column = &c->column[i];
    if (!is_free(c, i) || column->says != kinds[role]) continue;
    if (role == DV_ROLE_U && !column->numbers && (*column->label | 32) != 'u')
      continue; /* action: left, right */
    status = choose_column(o, role, i);
    c->by_name |= role == DV_ROLE_U && strcasecmp(column->label, "u");
  }
  return status;
}

/* Whether a column of numbers has no other role and does not count rows or time. */
static bool is_measured(const dv_csv_columns *c, size_t i) {
  const dv_csv_column *column = &c->column[i];
  if (!is_free(c, i) || !column->numbers || column->others || column->dates || column->clocks) return false;
  if (!c->header) return true;
  dv_name_kind says = column->says;
  if (says == DV_NAME_SEQUENCE) return is_vague(column->label) && strcasecmp(column->label, "id");
  bool letter = says == DV_NAME_TIME && strlen(column->label) == 1 && column->falls;
  return letter || !(says == DV_NAME_TIME || says == DV_NAME_STEP || says == DV_NAME_COUNTER);
}

dvbf_status dv_csv_choose(dv_csv_columns *c, const char *path, const dv_data_settings *how,
                          dvbf_error *error) {
  const choosing o = {c, path, how, error};
  dvbf_status status = DVBF_OK;
  c->split = column_named(c, "split");
  c->sequence = c->time = c->clock = DV_CSV_NONE;
  for (int role = 0; role < 3 && !status; role++) status = choose_named(&o, role);
  if (status) return status;
  c->sequence = sequence_column(c);
  status = choose_single(&o, how->sequence_column, "sequence-column", &c->sequence);
  if (!status) status = choose_single(&o, how->time_column, "time-column", &c->time);
  if (status) return status;
  find_time(c, is_none(how->time_column));
  find_sample_time(c);
  for (int role = 2; role >= 0 && !status; role--)
    if (!c->chosen[role] && !(role == DV_ROLE_U && *how->inputs)) status = choose_usual(&o, role);
  if (status || c->chosen[DV_ROLE_X]) return status;
  c->rest = !c->chosen[DV_ROLE_U] && !*how->inputs;
  for (size_t i = 0; i < c->count && !status; i++)
    if (is_measured(c, i)) status = choose_column(&o, DV_ROLE_X, i);
  if (status || c->chosen[DV_ROLE_X]) return status;
  return unclear(
      &o,
      "is a text file, but has no column of numbers that could be x; name the columns of x with --outputs");
}

const char *dv_csv_use(const dv_csv_columns *c, size_t column, const dv_data_settings *how) {
  static const char *const roles[] = {"output (x)", "input (u)", "true state"};
  const dv_csv_column *about = &c->column[column];
  for (int role = 0; role < 3; role++)
    for (size_t k = 0; about->used && k < c->chosen[role]; k++)
      if (c->choice[role][k] == column) return roles[role];
  if (column == c->time) return c->dates ? "time (dates)" : "time";
  if (column == c->clock) return "time of day";
  if (column == c->sequence) return "tells sequences apart";
  if (column == c->split) return "split";
  if (c->sample_time && about->says == DV_NAME_STEP) return "sample time";
  if (about->others && !about->numbers) return "not used: it holds text";
  if (about->others) return "not used: it holds text beside numbers";
  if (!about->numbers && !about->dates && !about->clocks) return "not used: its first rows are empty";
  if (about->says == DV_NAME_COUNTER || about->says == DV_NAME_SEQUENCE) return "not used: it counts rows";
  if (about->says == DV_NAME_TIME || about->says == DV_NAME_STEP) return "not used: its name is one of times";
  if (*how->outputs) return "not used: --outputs names others";
  return "not used: columns named x or y are the outputs; --outputs chooses others";
}
