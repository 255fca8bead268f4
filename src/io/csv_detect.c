/* Detects how a table is written from its first thousand lines (dv_csv_look): encoding, titles, separator,
 * decimal mark, names, units and types of columns. And what a column's name means (dv_name_says). */
#include "base/error.h"
#include "base/memory.h"
#include "io/csv.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SAMPLE_LINES = 1000, BYTES = 1 << 22 };

/* The first lines of a file. */
typedef struct sample {
  char *text;
  size_t used, room;
  size_t begin[SAMPLE_LINES + 1]; /* in `text` */
  size_t number[SAMPLE_LINES];    /* in the file, from 1 */
  size_t count;
  char *remark; /* the comment in front of the first one; NULL: none */
} sample;

static dv_cursor line_of(const sample *s, size_t i) {
  return (dv_cursor){s->text + s->begin[i], s->text + s->begin[i + 1]};
}

static dvbf_status keep_line(sample *s, dv_cursor line, size_t number, dvbf_error *error) {
  size_t length = dv_cursor_left(&line);
  if (s->used + length > s->room) {
    size_t room = 2 * (s->used + length) + 1;
    char *larger = dv_realloc(s->text, room, 1);
    if (!larger) return dv_fail_memory(error, "reading data");
    s->text = larger;
    s->room = room;
  }
  memcpy(s->text + s->used, line.at, length);
  s->used += length;
  s->number[s->count] = number;
  s->begin[++s->count] = s->used;
  return DVBF_OK;
}

static dvbf_status keep_lines(sample *s, dv_lines *in, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  while (!status && s->count < SAMPLE_LINES && (s->count < 3 || s->used < BYTES)) {
    dv_cursor line;
    status = dv_lines_next(in, &line, error);
    if (status || !line.at) break;
    if (!s->count && in->remark.at && (s->remark = dv_calloc(dv_cursor_left(&in->remark) + 1, 1)))
      memcpy(s->remark, in->remark.at, dv_cursor_left(&in->remark));
    status = keep_line(s, line, in->number, error);
  }
  return status;
}

/* ---- Separators ---- */

static size_t count_separators(dv_cursor line, char separator) {
  size_t count = 0;
  for (bool quoted = false; line.at < line.end; line.at++) {
    quoted ^= *line.at == '"';
    count += !quoted && *line.at == separator;
  }
  return count;
}

/* The separator that lines `first` and `first` + 1 both have. */
static char find_separator(const sample *s, size_t first) {
  static const char known[] = {';', '\t', ','};
  for (size_t i = 0; i < sizeof known; i++)
    if (count_separators(line_of(s, first), known[i]) &&
        (first + 1 == s->count || count_separators(line_of(s, first + 1), known[i])))
      return known[i];
  return ' ';
}

/* Whether three lines (or all but two) have the same number of fields, more than one. */
static bool is_table(const sample *s, size_t first, char separator) {
  size_t count = dv_fields_count(line_of(s, first), separator);
  for (size_t i = first + 1; i < first + 3 && i < s->count; i++)
    if (dv_fields_count(line_of(s, i), separator) != count) return false;
  return count > 1 && first + 1 < s->count;
}

/* Titles and descriptions before the table are skipped: it begins where lines have equally many fields. A
 * table is left as it is if its first lines do, or if none do. */
static size_t find_table(const sample *s) {
  enum { MOST_TITLES = 60 };
  char separator = find_separator(s, 0);
  if (is_table(s, 0, separator) || (separator != ' ' && dv_fields_count(line_of(s, 0), separator) > 2))
    return 0;
  for (size_t i = 1; i + 2 < s->count && i < MOST_TITLES; i++)
    if (is_table(s, i, find_separator(s, i))) return i;
  return 0;
}

/* ---- Numbers ---- */

/* The decimal mark, if the other one groups digits. */
static char find_decimal(const sample *s, size_t first, char separator) {
  const unsigned both = DV_DECIMAL_COMMA | DV_DECIMAL_DOT;
  unsigned all = 0;
  for (size_t i = first; i < s->count; i++) {
    dv_fields f = dv_fields_of(line_of(s, i), separator);
    dv_cursor field;
    while (dv_fields_next(&f, &field)) all |= dv_decimal_marks(field);
  }
  if (!(all & DV_COMMA) || (!(all & DV_DOT) && separator != ',') || (all & both) == both) return 0;
  return all & DV_DECIMAL_COMMA ? ',' : separator == ',' || all & DV_DECIMAL_DOT ? '.' : 0;
}

/* Whether a line holds text and no number: names of columns, or their units. */
static bool is_words(const dv_csv_columns *c, dv_cursor line) {
  dv_fields f = dv_fields_of(line, c->separator);
  dv_cursor field;
  float value;
  double time;
  size_t words = 0;
  while (dv_fields_next(&f, &field)) {
    if (!dv_cursor_left(&field)) continue;
    if (dv_csv_number(c, field, &value) || dv_read_date(field, &time) || dv_read_clock(field, &time))
      return false;
    words++;
  }
  return words;
}

/* ---- Names ---- */

dvbf_status dv_csv_bad_quotes(const char *path, size_t line, dvbf_error *error) {
  return dv_fail(error, DVBF_FORMAT,
                 "%.200s, line %zu: a quote is not closed where its field ends; correct it", path, line);
}

/* Columns by the first line, which names them or holds numbers already. */
static dvbf_status read_names(dv_csv_columns *c, const char *path, dv_cursor line, size_t number,
                              dvbf_error *error) {
  dv_fields f = dv_fields_of(line, c->separator);
  dv_cursor field;
  float value;
  while (dv_fields_next(&f, &field)) {
    dvbf_status status =
        f.open ? dv_csv_bad_quotes(path, number, error) : dv_csv_add_column(c, field, f.quoted, error);
    if (status) return status;
    c->header = c->header || !dv_csv_number(c, field, &value);
  }
  if (c->count > 1 && !*c->column[c->count - 1].name) dv_csv_drop_last(c); /* a separator at the end */
  return DVBF_OK;
}

/* numpy.savetxt writes the names into a comment in front of the numbers. */
static dvbf_status read_remark(dv_csv_columns *c, const char *path, const char *remark, dvbf_error *error) {
  dv_csv_columns named = {.separator = c->separator, .decimal = c->decimal};
  if (!remark || dv_fields_count(dv_cursor_of(remark), c->separator) != c->count ||
      !is_words(c, dv_cursor_of(remark)))
    return DVBF_OK;
  dvbf_status status = read_names(&named, path, dv_cursor_of(remark), 1, error);
  if (status || named.count != c->count) {
    dv_csv_columns_free(&named);
    return status;
  }
  dv_csv_columns_free(c);
  c->column = named.column;
  c->count = named.count;
  c->header = true;
  return DVBF_OK;
}

static void read_units(dv_csv_columns *c, dv_cursor line) {
  dv_fields f = dv_fields_of(line, c->separator);
  dv_cursor field;
  for (size_t i = 0; i < c->count && dv_fields_next(&f, &field); i++) {
    field = dv_cursor_trim(field, " []()");
    if (dv_cursor_left(&field) < DV_UNIT) dv_name_copy(field, c->column[i].unit, DV_UNIT);
    if (!strcmp(c->column[i].unit, "-")) *c->column[i].unit = 0;
  }
}

/* ---- Columns ---- */

static void look_at_field(const dv_csv_columns *c, dv_csv_column *column, dv_cursor field) {
  float value;
  double time = 0;
  char text[sizeof column->text];
  size_t before = column->numbers + column->dates + column->clocks + column->others;
  if (!dv_csv_number(c, field, &value)) {
    bool date = dv_read_date(field, &time), clock = !date && dv_read_clock(field, &time);
    column->dates += date;
    column->clocks += clock;
    column->others += !date && !clock;
  } else if (isnan(value)) {
    column->empty++;
    return;
  } else {
    if (!dv_read_double(field, c->separator != ',', &time)) time = (double)value;
    column->numbers++;
  }
  dv_name_copy(field, text, sizeof text);
  column->changes += before && strcmp(text, column->text);
  column->falls += before && time < column->last;
  strcpy(column->text, text);
  column->last = time;
}

static dvbf_status look_at(dv_csv_columns *c, const sample *s, const char *path, dvbf_error *error) {
  size_t first = find_table(s);
  c->separator = find_separator(s, first);
  c->decimal = find_decimal(s, first, c->separator);
  dvbf_status status = read_names(c, path, line_of(s, first), s->number[first], error);
  bool named = c->header; /* by this line, or else by a comment */
  if (!status && !named) status = read_remark(c, path, s->remark, error);
  if (status) return status;
  size_t next = first + named;
  if (named && next + 1 < s->count && is_words(c, line_of(s, next)) && !is_words(c, line_of(s, next + 1))) {
    read_units(c, line_of(s, next++));
    c->units = true;
  }
  c->before = next;
  dv_csv_label(c);
  for (size_t i = next; i < s->count; i++) {
    dv_fields f = dv_fields_of(line_of(s, i), c->separator);
    dv_cursor field;
    for (size_t k = 0; k < c->count && dv_fields_next(&f, &field); k++)
      look_at_field(c, &c->column[k], field);
  }
  return DVBF_OK;
}

/* An unknown binary file needs no message about its lines. */
static bool is_text(const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    if ((unsigned char)bytes[i] < ' ' && !strchr("\t\n\r\f", bytes[i])) return false;
  return !memchr(bytes, 0, size);
}

dvbf_status dv_csv_look(dv_csv_columns *c, dv_lines *in, dvbf_error *error) {
  enum { LOOKED_AT = 4096 };
  char names[DVBF_FORMATS];
  dvbf_status status = dv_lines_fill(in, error);
  if (status) return status;
  if (!is_text(in->buffer, in->end < LOOKED_AT ? in->end : LOOKED_AT))
    return dv_fail_file(error, in->path, "is in an unknown format; store it as %s",
                        dv_formats_listed(false, names));
  sample *s = dv_calloc(1, sizeof *s);
  if (!s) return dv_fail_memory(error, "reading data");
  status = keep_lines(s, in, error);
  if (!status && !s->count) status = dv_fail_file(error, in->path, "contains only blank lines and comments");
  if (!status) status = look_at(c, s, in->path, error);
  DV_FREE(s->text, s->remark);
  dv_free(s);
  return status;
}

/* ---- Text ---- */

void dv_name_copy(dv_cursor text, char *out, size_t size) {
  size_t used = 0;
  while (dv_cursor_left(&text)) {
    size_t n = dv_character(text.at, dv_cursor_left(&text));
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
