/* Tables in text: CSV, and its relatives with semicolons, tabs or blanks. The columns that are used become
 * the arrays x, u, state and length, in train/, valid/ and test/ where a column says so. */
#include "base/cursor.h"
#include "base/memory.h"
#include "base/status.h"
#include "format/csv_columns.h"
#include "format/decimal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BLANKS " \t"

/* ---- Lines ---- */

typedef struct lines {
  const char *path;
  int descriptor;
  off_t offset; /* in the file, behind what is in the buffer */
  char *buffer; /* [room], of which begin .. end is not yet used */
  size_t room, begin, end;
  size_t number; /* of the last line, from 1 */
  bool ended;
} lines;

/* Reads more behind what is there. */
static dvbf_status fill(lines *in, dvbf_error *error) {
  enum { FIRST = 1 << 18, LONGEST = 1 << 26 };
  if (in->begin) memmove(in->buffer, in->buffer + in->begin, in->end - in->begin);
  in->end -= in->begin;
  in->begin = 0;
  if (in->end == in->room) {
    size_t room = in->room ? 2 * in->room : FIRST;
    char *larger = room > LONGEST ? NULL : dv_realloc(in->buffer, room, 1);
    if (!larger)
      return dv_fail(error, DVBF_FORMAT, "%.200s, line %zu: is longer than %d bytes, so this is not a table",
                     in->path, in->number + 1, LONGEST);
    in->buffer = larger;
    in->room = room;
  }
  ssize_t got = pread(in->descriptor, in->buffer + in->end, in->room - in->end, in->offset);
  if (got < 0) return dv_fail(error, DVBF_IO, "%.200s: cannot be read: %s", in->path, strerror(errno));
  in->ended = got == 0;
  in->end += (size_t)got;
  in->offset += got;
  return DVBF_OK;
}

/* What is in the buffer up to the next end of line, which is passed; false: no end is there. */
static bool take_line(lines *in, size_t searched, dv_cursor *line) {
  const char *from = in->buffer + in->begin;
  size_t left = in->end - in->begin;
  const char *stop = left > searched ? memchr(from + searched, '\n', left - searched) : NULL;
  if (!stop && (!in->ended || !left)) return false;
  *line = (dv_cursor){from, stop ? stop : from + left};
  in->begin += dv_cursor_left(line) + (stop != NULL);
  in->number++;
  return true;
}

/* The next line that holds anything but blanks or a comment, without its end; at = NULL behind the last. */
static dvbf_status next_line(lines *in, dv_cursor *line, dvbf_error *error) {
  for (size_t searched = 0;;) {
    if (!take_line(in, searched, line)) {
      *line = (dv_cursor){NULL, NULL};
      if (in->ended) return DVBF_OK;
      searched = in->end - in->begin;
      dvbf_status status = fill(in, error);
      if (status) return status;
      continue;
    }
    searched = 0;
    if (memchr(line->at, 0, dv_cursor_left(line)))
      return dv_fail(error, DVBF_FORMAT,
                     "%.200s, line %zu: holds a zero byte, so this is not a table in text", in->path,
                     in->number);
    if (in->number == 1) dv_cursor_take_text(line, "\xef\xbb\xbf"); /* a mark of UTF-8 */
    while (line->end > line->at && (line->end[-1] == '\r' || line->end[-1] == ' ')) line->end--;
    dv_cursor first = *line;
    dv_cursor_skip(&first, BLANKS);
    if (dv_cursor_left(&first) && dv_cursor_peek(&first) != '#') return DVBF_OK;
  }
}

/* ---- Fields ---- */

typedef struct fields {
  dv_cursor line;
  char separator;  /* ' ' stands for any run of blanks and tabs */
  bool more, open; /* a field is left; a quote was not closed */
} fields;

static bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

static fields fields_of(dv_cursor line, char separator) {
  if (separator == ' ') dv_cursor_skip(&line, BLANKS);
  return (fields){line, separator, true, false};
}

/* Passes the separator behind a field. */
static void pass_separator(fields *f) {
  if (f->separator == ' ') dv_cursor_skip(&f->line, BLANKS);
  f->more = dv_cursor_left(&f->line);
  if (f->separator != ' ') dv_cursor_pass(&f->line, 1);
}

/* A field in quotes; two quotes inside stand for one and stay two. */
static dv_cursor quoted_field(fields *f) {
  dv_cursor *line = &f->line, out = *line;
  do {
    out.end = dv_cursor_until(line, '"').end;
    f->open = !dv_cursor_take(line, '"');
  } while (dv_cursor_take(line, '"'));
  if (f->separator != ' ') dv_cursor_skip(line, " ");
  int next = dv_cursor_peek(line);
  if (next >= 0 && next != f->separator && !(f->separator == ' ' && is_blank((char)next))) f->open = true;
  return out;
}

/* The next field, without blanks and quotes around it; false behind the last. */
static bool next_field(fields *f, dv_cursor *out) {
  if (!f->more) return false;
  const char separator = f->separator;
  while (separator != ' ' && f->line.at < f->line.end && is_blank(*f->line.at) && *f->line.at != separator)
    f->line.at++;
  if (dv_cursor_take(&f->line, '"')) {
    *out = quoted_field(f);
  } else {
    *out = f->line;
    if (separator == ' ')
      while (f->line.at < f->line.end && !is_blank(*f->line.at)) f->line.at++;
    else
      while (f->line.at < f->line.end && *f->line.at != separator) f->line.at++;
    out->end = f->line.at;
    while (out->end > out->at && is_blank(out->end[-1])) out->end--;
  }
  pass_separator(f);
  return true;
}

/* ---- A first look ---- */

static size_t count_separators(dv_cursor line, char separator) {
  size_t count = 0;
  for (bool quoted = false; line.at < line.end; line.at++) {
    quoted ^= *line.at == '"';
    count += !quoted && *line.at == separator;
  }
  return count;
}

/* The separator that both of the first two lines have. */
static char find_separator(dv_cursor first, dv_cursor next) {
  static const char known[] = {';', '\t', ','};
  for (size_t i = 0; i < sizeof known; i++)
    if (count_separators(first, known[i]) && (!next.at || count_separators(next, known[i]))) return known[i];
  return ' ';
}

static dvbf_status bad_quotes(const char *path, size_t line, dvbf_error *error) {
  return dv_fail(error, DVBF_FORMAT, "%.200s, line %zu: a quote is not closed where its field ends; mend it",
                 path, line);
}

/* Names of the columns by the first line, which may instead hold numbers already. */
static dvbf_status read_first_line(dv_csv_columns *c, const char *path, dv_cursor line, size_t number,
                                   dvbf_error *error) {
  fields f = fields_of(line, c->separator);
  dv_cursor field;
  float value;
  while (next_field(&f, &field)) {
    dvbf_status status = f.open ? bad_quotes(path, number, error) : dv_csv_add_column(c, field, error);
    if (status) return status;
    c->header = c->header || !dv_decimal(field, c->separator != ',', &value);
  }
  bool trailing = c->count > 1 && !*c->names[c->count - 1];
  if (trailing) dv_csv_drop_last(c);
  return DVBF_OK;
}

/* Which columns hold numbers in the first lines. */
static void look_at_line(dv_csv_columns *c, dv_cursor line) {
  fields f = fields_of(line, c->separator);
  dv_cursor field;
  float value;
  for (size_t i = 0; i < c->count && next_field(&f, &field); i++) {
    if (!dv_decimal(field, c->separator != ',', &value))
      c->other[i] = true;
    else
      c->number[i] = c->number[i] || !isnan(value);
  }
}

static dvbf_status not_a_table(const char *path, dvbf_error *error) {
  return dv_fail(error, DVBF_FORMAT,
                 "%.200s: is not an HDF5 file, nor NPZ, NPY or CSV; store it as one of these", path);
}

/* A binary file of an unknown kind is not worth a message about its lines. */
static bool is_text(const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    if ((unsigned char)bytes[i] < ' ' && !strchr("\t\n\r\f", bytes[i])) return false;
  return !memchr(bytes, 0, size);
}

static dvbf_status look(dv_csv_columns *c, lines *in, dvbf_error *error) {
  enum { LINES = 100, BYTES = 4096 };
  dv_cursor line, next = {NULL, NULL};
  dvbf_status status = fill(in, error);
  if (status) return status;
  if (!is_text(in->buffer, in->end < BYTES ? in->end : BYTES)) return not_a_table(in->path, error);
  status = next_line(in, &line, error);
  if (status) return status;
  if (!line.at)
    return dv_fail(error, DVBF_FORMAT, "%.200s: has no lines but blank ones and comments", in->path);
  /* The next line may move the buffer: the first is kept. */
  size_t length = dv_cursor_left(&line), number = in->number;
  char *copy = dv_calloc(length + 1, 1);
  if (!copy) return dv_fail_memory(error, "reading data");
  memcpy(copy, line.at, length);
  line = (dv_cursor){copy, copy + length};
  status = next_line(in, &next, error);
  c->separator = find_separator(line, next);
  if (!status) status = read_first_line(c, in->path, line, number, error);
  if (!status && !c->header) look_at_line(c, line);
  dv_free(copy);
  for (int i = 0; i < LINES && next.at && !status; i++) {
    look_at_line(c, next);
    status = next_line(in, &next, error);
  }
  return status;
}

/* ---- The table ---- */

/* Rows of one split. */
typedef struct rows {
  float *values; /* [count][width] x, u and state side by side */
  size_t count, room;
  double *lengths; /* [sequences] */
  size_t sequences, sequences_room;
} rows;

typedef struct csv_file {
  dv_archive base;
  dv_csv_columns columns;
  rows splits[DV_CSV_SPLITS];
} csv_file;

/* What is known while rows are read. */
typedef struct table_reading {
  csv_file *file;
  float *row; /* [columns] numbers of this line */
  char sequence[256];
  int split;
  bool begun;
} table_reading;

static dvbf_status grow(rows *r, size_t width, bool new_sequence, dvbf_error *error) {
  if (r->count == r->room) {
    size_t room = r->room ? 2 * r->room : 1024, size;
    float *larger = dv_multiply(room, width, &size) ? dv_realloc(r->values, size, sizeof *larger) : NULL;
    if (!larger) return dv_fail_memory(error, "reading data");
    r->values = larger;
    r->room = room;
  }
  if (new_sequence && r->sequences == r->sequences_room) {
    size_t room = r->sequences_room ? 2 * r->sequences_room : 64;
    double *larger = dv_realloc(r->lengths, room, sizeof *larger);
    if (!larger) return dv_fail_memory(error, "reading data");
    r->lengths = larger;
    r->sequences_room = room;
  }
  if (new_sequence) r->lengths[r->sequences++] = 0;
  return DVBF_OK;
}

/* train, valid, test: 0, 1, 2; else -1. */
static int split_named(dv_cursor field) {
  static const char *const names[] = {"train", "valid", "test", "val", "validation"};
  static const int splits[] = {0, 1, 2, 1, 1};
  for (int i = 0; i < 5; i++)
    if (dv_cursor_equals(field, names[i])) return splits[i];
  return -1;
}

static dvbf_status bad_field(const lines *in, const dv_csv_columns *c, size_t column, dv_cursor field,
                             const char *remedy, dvbf_error *error) {
  char text[41], name[64];
  size_t length = dv_cursor_left(&field);
  snprintf(text, sizeof text, "%.*s", (int)(length < 40 ? length : 40), field.at);
  for (char *at = text; *at; at++)
    if ((unsigned char)*at < ' ' || *at == 127) *at = '?';
  return dv_fail(error, DVBF_FORMAT, "%.200s, line %zu, column %s: \"%s\" %s", in->path, in->number,
                 dv_csv_column_name(c, column, name, sizeof name), text, remedy);
}

/* The setting that chose a column is the one that can leave it out. */
static dvbf_status not_a_number(const lines *in, const dv_csv_columns *c, size_t column, dv_cursor field,
                                dvbf_error *error) {
  static const char *const settings[] = {"outputs", "inputs", "states"};
  char remedy[80];
  int role = 0;
  for (int i = 0; i < 3; i++)
    for (size_t k = 0; k < c->chosen[i]; k++)
      if (c->choice[i][k] == column) role = i;
  snprintf(remedy, sizeof remedy, "is not a number; mend it, or choose the columns by --%s", settings[role]);
  return bad_field(in, c, column, field, remedy, error);
}

/* One field into the row, or what it says about the row. */
static dvbf_status take_field(table_reading *t, const lines *in, size_t column, dv_cursor field, bool *change,
                              dvbf_error *error) {
  const dv_csv_columns *c = &t->file->columns;
  if (c->used[column] && !dv_decimal(field, c->separator != ',', &t->row[column]))
    return not_a_number(in, c, column, field, error);
  if (c->used[column] && isinf(t->row[column]))
    return bad_field(in, c, column, field,
                     "is beyond 3.4e38, the range of 32-bit numbers; mend it, or scale that column", error);
  if (column == c->sequence) {
    *change = *change || !dv_cursor_equals(field, t->sequence);
    if (!dv_cursor_copy(field, t->sequence, sizeof t->sequence))
      return bad_field(in, c, column, field, "is too long", error);
  }
  if (column == c->split) {
    int split = split_named(field);
    if (split < 0) return bad_field(in, c, column, field, "must be train, valid or test", error);
    *change = *change || split != t->split;
    t->split = split;
  }
  return DVBF_OK;
}

static dvbf_status add_row(table_reading *t, bool change, dvbf_error *error) {
  dv_csv_columns *c = &t->file->columns;
  rows *r = &t->file->splits[c->split == DV_CSV_NONE ? DV_CSV_WHOLE : t->split];
  size_t width = dv_csv_width(c);
  dvbf_status status = grow(r, width, change || !t->begun, error);
  if (status) return status;
  float *to = r->values + r->count++ * width;
  for (int role = 0; role < 3; role++)
    for (size_t k = 0; k < c->chosen[role]; k++) *to++ = t->row[c->choice[role][k]];
  r->lengths[r->sequences - 1]++;
  t->begun = true;
  return DVBF_OK;
}

static dvbf_status read_row(table_reading *t, const lines *in, dv_cursor line, dvbf_error *error) {
  const dv_csv_columns *c = &t->file->columns;
  fields f = fields_of(line, c->separator);
  dv_cursor field;
  size_t n = 0;
  bool change = false;
  while (next_field(&f, &field)) {
    if (f.open) return bad_quotes(in->path, in->number, error);
    if (n == c->count && !dv_cursor_left(&field) && !f.more) break; /* a separator at the end of the line */
    dvbf_status status = n < c->count ? take_field(t, in, n, field, &change, error) : DVBF_OK;
    if (status) return status;
    n++;
  }
  if (n != c->count)
    return dv_fail(error, DVBF_FORMAT,
                   "%.200s, line %zu: has %zu fields, but the first line has %zu; mend it", in->path,
                   in->number, n, c->count);
  return add_row(t, change, error);
}

static dvbf_status read_rows(csv_file *f, lines *in, dvbf_error *error) {
  table_reading t = {.file = f, .split = -1};
  dv_cursor line = {NULL, NULL};
  t.row = dv_calloc(f->columns.count, sizeof *t.row);
  dvbf_status status = t.row ? next_line(in, &line, error) : dv_fail_memory(error, "reading data");
  if (!status && f->columns.header) status = next_line(in, &line, error);
  while (!status && line.at) {
    status = read_row(&t, in, line, error);
    if (!status) status = next_line(in, &line, error);
  }
  dv_free(t.row);
  if (!status && !t.begun)
    status = dv_fail(error, DVBF_FORMAT, "%.200s: has names of columns but no rows", in->path);
  return status;
}

/* ---- The arrays ---- */

enum { LENGTH = 3, ARRAYS = 4 };

static const char *csv_read(dv_archive *a, const dv_array *array, size_t first, size_t n, float *floats,
                            double *doubles) {
  const csv_file *f = (const csv_file *)a;
  const rows *r = &f->splits[array->place / ARRAYS];
  size_t role = array->place % ARRAYS, stride = dv_csv_width(&f->columns), at = 0;
  for (size_t i = 0; i < role && role < LENGTH; i++) at += f->columns.chosen[i];
  for (size_t k = first; k < first + n; k++) {
    double value = role == LENGTH ? r->lengths[k]
                                  : (double)r->values[k / array->dims[1] * stride + at + k % array->dims[1]];
    if (floats)
      floats[k - first] = (float)value;
    else
      doubles[k - first] = value;
  }
  return NULL;
}

static bool csv_named(dv_archive *a, const dv_array *array) {
  return ((const csv_file *)a)->columns.header && array->place % ARRAYS != LENGTH;
}

static bool csv_text(dv_archive *a, const dv_array *array, size_t count, char (*out)[32]) {
  const dv_csv_columns *c = &((const csv_file *)a)->columns;
  size_t role = array->place % ARRAYS;
  for (size_t i = 0; i < count; i++) {
    snprintf(out[i], sizeof out[i], "%.31s", c->names[c->choice[role][i]]);
    for (char *at = out[i]; *at; at++)
      if (*at < ' ' || *at > '~') *at = '?';
  }
  return true;
}

static void csv_close(dv_archive *a) {
  csv_file *f = (csv_file *)a;
  for (int i = 0; i < DV_CSV_SPLITS; i++) {
    dv_free(f->splits[i].values);
    dv_free(f->splits[i].lengths);
  }
  dv_csv_columns_free(&f->columns);
}

static dvbf_status add_arrays(csv_file *f, dvbf_error *error) {
  static const char *const prefixes[] = {"train/", "valid/", "test/", ""};
  static const char *const names[] = {"x", "u", "state", "length"};
  for (size_t i = 0; i < DV_CSV_SPLITS; i++) {
    const rows *r = &f->splits[i];
    if (r->count > 1 && r->sequences == r->count)
      return dv_fail(
          error, DVBF_FORMAT,
          "%.200s: the column sequence is another one in every row; a sequence needs at least 2 rows",
          f->base.path);
    for (size_t role = 0; r->count && role < ARRAYS; role++) {
      char name[16];
      snprintf(name, sizeof name, "%s%s", prefixes[i], names[role]);
      dv_array array = {.name = name, .rank = 2, .real = true, .place = i * ARRAYS + role};
      array.dims[0] = role == LENGTH ? r->sequences : r->count;
      array.dims[1] = role == LENGTH ? 1 : f->columns.chosen[role];
      if (role == LENGTH) array.rank = 1;
      if (role == LENGTH ? r->sequences == 1 : !array.dims[1]) continue;
      dvbf_status status = dv_archive_add(&f->base, &array, error);
      if (status) return status;
    }
  }
  return DVBF_OK;
}

dvbf_status dv_csv_open(dv_archive **out, const char *path, int descriptor, const dv_data_settings *how,
                        dvbf_error *error) {
  csv_file *f = (csv_file *)dv_archive_new(sizeof *f, path);
  if (!f) return dv_fail_memory(error, "reading data");
  f->base.table = true;
  f->base.read = csv_read;
  f->base.text = csv_text;
  f->base.named = csv_named;
  f->base.close = csv_close;
  *out = &f->base;
  lines in = {.path = path, .descriptor = descriptor};
  dvbf_status status = look(&f->columns, &in, error);
  if (!status) status = dv_csv_choose(&f->columns, path, how, error);
  if (!status) {
    in = (lines){.path = path, .descriptor = descriptor, .buffer = in.buffer, .room = in.room};
    status = read_rows(f, &in, error);
  }
  if (!status) status = add_arrays(f, error);
  dv_free(in.buffer);
  return status;
}
