/* Tables in text: CSV, and its relatives with semicolons, tabs or blanks. The columns that are used become
 * the arrays x, u, state and length, in train/, valid/ and test/ where a column says so. */
#include "base/memory.h"
#include "base/status.h"
#include "format/csv_columns.h"
#include "format/decimal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* The next line that holds anything but blanks or a comment, without its end; at = NULL behind the last. */
static dvbf_status next_line(lines *in, const char **at, const char **end, dvbf_error *error) {
  size_t searched = 0;
  for (*at = NULL;;) {
    const char *from = in->buffer + in->begin;
    const char *stop =
        in->end > in->begin + searched ? memchr(from + searched, '\n', in->end - in->begin - searched) : NULL;
    if (!stop && !in->ended) {
      searched = in->end - in->begin;
      dvbf_status status = fill(in, error);
      if (status) return status;
      continue;
    }
    if (!stop && in->begin == in->end) return DVBF_OK;
    if (!stop) stop = in->buffer + in->end;
    in->number++;
    in->begin = (size_t)(stop - in->buffer) + (stop < in->buffer + in->end);
    searched = 0;
    if (memchr(from, 0, (size_t)(stop - from)))
      return dv_fail(error, DVBF_FORMAT,
                     "%.200s, line %zu: holds a zero byte, so this is not a table in text", in->path,
                     in->number);
    if (in->number == 1 && stop - from >= 3 && !memcmp(from, "\xef\xbb\xbf", 3))
      from += 3; /* a mark of UTF-8 */
    while (stop > from && (stop[-1] == '\r' || stop[-1] == ' ')) stop--;
    const char *first = from;
    while (first < stop && (*first == ' ' || *first == '\t')) first++;
    if (first == stop || *first == '#') continue;
    *at = from;
    *end = stop;
    return DVBF_OK;
  }
}

/* ---- Fields ---- */

typedef struct fields {
  const char *at, *end;
  char separator;  /* ' ' stands for any run of blanks and tabs */
  bool more, open; /* a field is left; a quote was not closed */
} fields;

static bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

static fields fields_of(const char *at, const char *end, char separator) {
  if (separator == ' ')
    while (at < end && is_blank(*at)) at++;
  return (fields){at, end, separator, true, false};
}

/* Passes the separator behind a field. */
static void pass_separator(fields *f) {
  if (f->separator == ' ') {
    while (f->at < f->end && is_blank(*f->at)) f->at++;
    f->more = f->at < f->end;
  } else {
    f->more = f->at < f->end;
    f->at += f->more;
  }
}

/* A field in quotes; two quotes inside stand for one and stay two. */
static void quoted_field(fields *f, const char **begin, const char **end) {
  *begin = ++f->at;
  for (;;) {
    const char *quote = f->at < f->end ? memchr(f->at, '"', (size_t)(f->end - f->at)) : NULL;
    *end = quote ? quote : f->end;
    f->open = !quote;
    f->at = quote ? quote + 1 : f->end;
    if (!quote || f->at == f->end || *f->at != '"') break;
    f->at++;
  }
  while (f->at < f->end && *f->at == ' ' && f->separator != ' ') f->at++;
  if (f->at < f->end && *f->at != f->separator && !(f->separator == ' ' && is_blank(*f->at))) f->open = true;
}

/* The next field, without blanks and quotes around it; false behind the last. */
static bool next_field(fields *f, const char **begin, const char **end) {
  if (!f->more) return false;
  const char separator = f->separator;
  while (separator != ' ' && f->at < f->end && is_blank(*f->at) && *f->at != separator) f->at++;
  if (f->at < f->end && *f->at == '"') {
    quoted_field(f, begin, end);
  } else {
    *begin = f->at;
    if (separator == ' ')
      while (f->at < f->end && !is_blank(*f->at)) f->at++;
    else
      while (f->at < f->end && *f->at != separator) f->at++;
    *end = f->at;
    while (*end > *begin && is_blank((*end)[-1])) --*end;
  }
  pass_separator(f);
  return true;
}

/* ---- A first look ---- */

static size_t count_separators(const char *at, const char *end, char separator) {
  size_t count = 0;
  for (bool quoted = false; at < end; at++) {
    quoted ^= *at == '"';
    count += !quoted && *at == separator;
  }
  return count;
}

/* The separator that both of the first two lines have. */
static char find_separator(const char *at, const char *end, const char *next, const char *next_end) {
  static const char known[] = {';', '\t', ','};
  for (size_t i = 0; i < sizeof known; i++)
    if (count_separators(at, end, known[i]) && (!next || count_separators(next, next_end, known[i])))
      return known[i];
  return ' ';
}

static dvbf_status bad_quotes(const char *path, size_t line, dvbf_error *error) {
  return dv_fail(error, DVBF_FORMAT, "%.200s, line %zu: a quote is not closed where its field ends; mend it",
                 path, line);
}

/* Names of the columns by the first line, which may instead hold numbers already. */
static dvbf_status read_first_line(dv_csv_columns *c, const char *path, const char *at, const char *end,
                                   size_t line, dvbf_error *error) {
  fields f = fields_of(at, end, c->separator);
  const char *from, *to;
  float value;
  while (next_field(&f, &from, &to)) {
    bool number = dv_decimal(from, to, c->separator != ',', &value);
    dvbf_status status = f.open ? bad_quotes(path, line, error) : dv_csv_add_column(c, from, to, error);
    if (status) return status;
    c->header = c->header || !number;
  }
  bool trailing = c->count > 1 && !*c->names[c->count - 1];
  if (trailing) dv_csv_drop_last(c);
  return DVBF_OK;
}

/* Which columns hold numbers in the first lines. */
static void look_at_line(dv_csv_columns *c, const char *at, const char *end) {
  fields f = fields_of(at, end, c->separator);
  const char *from, *to;
  float value;
  for (size_t i = 0; i < c->count && next_field(&f, &from, &to); i++) {
    if (!dv_decimal(from, to, c->separator != ',', &value))
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
  const char *at, *end, *next = NULL, *next_end = NULL;
  dvbf_status status = fill(in, error);
  if (status) return status;
  if (!is_text(in->buffer, in->end < BYTES ? in->end : BYTES)) return not_a_table(in->path, error);
  status = next_line(in, &at, &end, error);
  if (status) return status;
  if (!at) return dv_fail(error, DVBF_FORMAT, "%.200s: has no lines but blank ones and comments", in->path);
  /* The next line may move the buffer: the first is kept. */
  char *first = dv_calloc((size_t)(end - at) + 1, 1);
  if (!first) return dv_fail_memory(error, "reading data");
  size_t length = (size_t)(end - at), line = in->number;
  memcpy(first, at, length);
  status = next_line(in, &next, &next_end, error);
  c->separator = find_separator(first, first + length, next, next_end);
  if (!status) status = read_first_line(c, in->path, first, first + length, line, error);
  if (!status && !c->header) look_at_line(c, first, first + length);
  dv_free(first);
  for (int i = 0; i < LINES && next && !status; i++) {
    look_at_line(c, next, next_end);
    status = next_line(in, &next, &next_end, error);
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
static int split_named(const char *from, const char *to) {
  static const char *const names[] = {"train", "valid", "test", "val", "validation"};
  static const int splits[] = {0, 1, 2, 1, 1};
  for (int i = 0; i < 5; i++)
    if (strlen(names[i]) == (size_t)(to - from) && !memcmp(names[i], from, (size_t)(to - from)))
      return splits[i];
  return -1;
}

static dvbf_status bad_field(const lines *in, const dv_csv_columns *c, size_t column, const char *from,
                             const char *to, const char *remedy, dvbf_error *error) {
  char text[41], name[64];
  snprintf(text, sizeof text, "%.*s", (int)(to - from > 40 ? 40 : to - from), from);
  for (char *at = text; *at; at++)
    if ((unsigned char)*at < ' ' || *at == 127) *at = '?';
  return dv_fail(error, DVBF_FORMAT, "%.200s, line %zu, column %s: \"%s\" %s", in->path, in->number,
                 dv_csv_column_name(c, column, name, sizeof name), text, remedy);
}

/* One field into the row, or what it says about the row. */
static dvbf_status take_field(table_reading *t, const lines *in, size_t column, const char *from,
                              const char *to, bool *change, dvbf_error *error) {
  const dv_csv_columns *c = &t->file->columns;
  if (c->used[column] && !dv_decimal(from, to, c->separator != ',', &t->row[column]))
    return bad_field(in, c, column, from, to, "is not a number; mend it, or choose the columns by --outputs",
                     error);
  if (column == c->sequence) {
    size_t length = (size_t)(to - from);
    if (length >= sizeof t->sequence) return bad_field(in, c, column, from, to, "is too long", error);
    if (strlen(t->sequence) != length || memcmp(t->sequence, from, length)) *change = true;
    memcpy(t->sequence, from, length);
    t->sequence[length] = 0;
  }
  if (column == c->split) {
    int split = split_named(from, to);
    if (split < 0) return bad_field(in, c, column, from, to, "must be train, valid or test", error);
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

static dvbf_status read_row(table_reading *t, const lines *in, const char *at, const char *end,
                            dvbf_error *error) {
  const dv_csv_columns *c = &t->file->columns;
  fields f = fields_of(at, end, c->separator);
  const char *from, *to;
  size_t n = 0;
  bool change = false;
  while (next_field(&f, &from, &to)) {
    if (f.open) return bad_quotes(in->path, in->number, error);
    if (n == c->count && from == to && !f.more) break; /* a separator at the end of the line */
    dvbf_status status = n < c->count ? take_field(t, in, n, from, to, &change, error) : DVBF_OK;
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
  const char *at, *end;
  t.row = dv_calloc(f->columns.count, sizeof *t.row);
  dvbf_status status = t.row ? next_line(in, &at, &end, error) : dv_fail_memory(error, "reading data");
  if (!status && f->columns.header) status = next_line(in, &at, &end, error);
  while (!status && at) {
    status = read_row(&t, in, at, end, error);
    if (!status) status = next_line(in, &at, &end, error);
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
