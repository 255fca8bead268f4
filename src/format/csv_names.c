#include "format/csv_names.h"

#include "format/stamps.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

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

static bool ends_in(const char *name, const char *const *words) {
  size_t length = strlen(name);
  for (; *words; words++) {
    size_t n = strlen(*words);
    if (length > n && !strcasecmp(name + length - n, *words)) return true;
  }
  return false;
}

/* Words that say that a column is an input, whatever stands beside them. */
static bool is_input(const char *name) {
  static const char *const words[] = {"input",    "inputs",  "action",    "actions", "control",
                                      "controls", "command", "commanded", "cmd",     NULL};
  static const char *const ends[] = {"_cmd", "_command", "_input", ".cmd", NULL};
  const char *rest;
  return is_numbered(name, 'u') || begins_with(name, words, &rest) || ends_in(name, ends);
}

/* Those that tell sequences apart, alone or with a word for their number: episode, traj_id. */
static bool is_sequence(const char *name) {
  static const char *const words[] = {"sequence",   "seq",  "episode", "ep",      "traj",
                                      "trajectory", "run",  "trial",   "rollout", "session",
                                      "experiment", "demo", NULL};
  static const char *const numbers[] = {"", "id", "index", "idx", "no", "nr", "num", "number", "name", NULL};
  const char *rest;
  if (!strcasecmp(name, "id")) return true;
  return begins_with(name, words, &rest) && is_one_of(rest + strspn(rest, "_- ."), numbers);
}

bool dv_name_is_vague(const char *name) {
  static const char *const sure[] = {"sequence", "episode", "traj", "trajectory", "rollout", NULL};
  const char *rest;
  return !begins_with(name, sure, &rest);
}

static bool is_time(const char *name) {
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

dv_name_kind dv_name_says(const char *name) {
  static const char *const counters[] = {"",           "index", "step",        "steps",    "timestep",
                                         "time_step",  "frame", "frame_index", "frame_id", "row",
                                         "unnamed: 0", "no",    "nr",          "#",        NULL};
  static const char *const steps[] = {"ts", "dt", "sample_time", "sampletime", NULL};
  if (!strcmp(name, "split")) return DV_NAME_SPLIT;
  if (is_one_of(name, counters)) return DV_NAME_COUNTER;
  if (is_one_of(name, steps)) return DV_NAME_STEP;
  if (is_sequence(name)) return DV_NAME_SEQUENCE;
  if (is_time(name)) return DV_NAME_TIME;
  if (is_numbered(name, 'x') || is_numbered(name, 'y')) return DV_NAME_X;
  if (!strncasecmp(name, "state", 5)) return DV_NAME_STATE;
  return is_input(name) ? DV_NAME_U : DV_NAME_OTHER;
}

/* ---- Units ---- */

/* What may stand in brackets as a unit: short, and no word with blanks. */
static bool is_unit(const char *text, size_t length) {
  if (length < 1 || length >= DV_UNIT) return false;
  for (size_t i = 0; i < length; i++)
    if (text[i] == ' ' || strchr("()[]{}\"", text[i])) return false;
  return text[0] < '0' || text[0] > '9' || length > 1; /* x[0] is no unit */
}

bool dv_name_cut_unit(char *name, char unit[DV_UNIT]) {
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

double dv_name_time_unit(const char *name, const char *unit) {
  const char *bar = strrchr(name, '_');
  double seconds = dv_seconds_of(unit);
  if (!seconds && bar) seconds = dv_seconds_of(bar + 1);
  if (!seconds && !strcasecmp(name, "millis")) seconds = 1e-3;
  return seconds;
}

/* ---- Text ---- */

/* Bytes of the character of UTF-8 at the beginning; 0: it is none. */
static size_t character(dv_cursor text) {
  const unsigned char *at = (const unsigned char *)text.at;
  size_t n = at[0] < 0x80 ? 1 : at[0] >= 0xc2 && at[0] < 0xe0 ? 2 : at[0] >= 0xe0 && at[0] < 0xf0 ? 3 : 0;
  if (!n || n > dv_cursor_left(&text)) return 0;
  for (size_t i = 1; i < n; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  if (n == 3 && ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0))) return 0;
  return n;
}

void dv_name_copy(dv_cursor text, char *out, size_t size) {
  size_t used = 0;
  while (dv_cursor_left(&text)) {
    size_t n = character(text);
    unsigned char c = (unsigned char)*text.at;
    char latin[2] = {(char)(0xc0 | c >> 6), (char)(0x80 | (c & 63))};
    bool control =
        c < ' ' || c == 127 || (!n && c < 0xa0) || (n == 2 && c == 0xc2 && (unsigned char)text.at[1] < 0xa0);
    const char *from = control ? "?" : n ? text.at : latin;
    size_t bytes = control ? 1 : n ? n : 2;
    if (used + bytes >= size) break;
    memcpy(out + used, from, bytes);
    used += bytes;
    text.at += n ? n : 1;
  }
  out[used] = 0;
}
