/* Text tables (CSV, with commas, semicolons, tabs or blanks): dv_format_csv reads the rows of the columns in
 * use in one pass, in train, valid and test if a column gives the split; dv_csv_table_append joins several
 * files. Rows with irregular times are put on a grid of equal steps, with a new sequence after a long gap.
 * Parts of the reader: csv_lexer.c, csv_dates.c, csv_detect.c, csv_columns.c. */
#include "io/csv.h"
#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Appending rows ---- */

static dvbf_status begin_sequence(dv_csv_rows *r, const char *name, double time, dvbf_error *error) {
  size_t *lengths = dv_grow(r->lengths, r->sequences, sizeof *lengths);
  if (lengths) r->lengths = lengths;
  dvbf_origin *origins = dv_grow(r->origins, r->sequences, sizeof *origins);
  if (origins) r->origins = origins;
  if (!lengths || !origins) return dv_fail_memory(error, "reading data");
  r->lengths[r->sequences] = 0;
  r->origins[r->sequences] = (dvbf_origin){.sequence = r->sequences, .time = time};
  snprintf(r->origins[r->sequences].name, sizeof r->origins->name, "%s", name);
  r->sequences++;
  return DVBF_OK;
}

/* One more row of the last sequence; the caller fills it. */
static dvbf_status new_row(dv_csv_rows *r, float **values, double time, dvbf_error *error) {
  float *larger = dv_grow(r->values, r->count, r->width * sizeof *larger);
  if (larger) r->values = larger;
  double *times = r->timed ? dv_grow(r->times, r->count, sizeof *times) : NULL;
  if (times) r->times = times;
  if (!larger || (r->timed && !times)) return dv_fail_memory(error, "reading data");
  if (r->timed) r->times[r->count] = time;
  *values = r->values + r->count++ * r->width;
  r->lengths[r->sequences - 1]++;
  return DVBF_OK;
}

static void free_rows(dv_csv_rows *r) {
  DV_FREE(r->values, r->times, r->lengths, r->origins);
  *r = (dv_csv_rows){0};
}

/* Columns first .. first + count - 1 keep their value until the next one. Returns the number of filled
 * values. */
static size_t hold_values(dv_csv_rows *r, size_t first, size_t count) {
  size_t filled = 0, row = 0;
  for (size_t s = 0; s < r->sequences; row += r->lengths[s++])
    for (size_t k = first; k < first + count; k++) {
      size_t length = r->lengths[s], known = length;
      float *column = r->values + row * r->width + k;
      for (size_t i = 0; i < length; i++) {
        float *value = column + i * r->width;
        if (!isnan(*value)) {
          for (size_t j = 0; known == length && j < i; j++, filled++) column[j * r->width] = *value;
          known = i;
        } else if (known < length) {
          *value = column[known * r->width];
          filled++;
        }
      }
    }
  return filled;
}

/* ---- Sample time ---- */

typedef struct timing {
  double step;    /* seconds from row to row: the median, or the mean of steps that are like it; 0: unknown */
  bool coarse;    /* most rows have the time of the row before: the clock is too coarse to tell them apart */
  bool regular;   /* all steps are like it, up to jitter */
  bool multiples; /* or whole multiples of it: some rows are missing */
} timing;

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The steps from row to row within the sequences of all splits; NULL: memory is short. */
static double *steps_of(const dv_csv_rows *splits, size_t rows, size_t *count) {
  double *steps = dv_calloc(rows, sizeof *steps);
  *count = 0;
  for (const dv_csv_rows *r = splits; steps && r < splits + DV_CSV_SPLITS; r++)
    for (size_t s = 0, row = 0; r->timed && s < r->sequences; row += r->lengths[s++])
      for (size_t i = row + 1; i < row + r->lengths[s]; i++)
        steps[(*count)++] = r->times[i] - r->times[i - 1];
  return steps;
}

/* The median is that of at most ENOUGH_STEPS steps, spread evenly. */
static dvbf_status pace_of(timing *out, const dv_csv_rows *splits, dvbf_error *error) {
  enum { ENOUGH_STEPS = 1 << 16 };
  const double jitter = 0.2;
  size_t rows = 0, count, some = 0, like = 0, odd = 0;
  double sum = 0;
  *out = (timing){0};
  for (int i = 0; i < DV_CSV_SPLITS; i++) rows += splits[i].count;
  double *steps = steps_of(splits, rows, &count), *sample = dv_calloc(ENOUGH_STEPS, sizeof *sample);
  for (size_t i = 0; steps && sample && i < count; i += rows / ENOUGH_STEPS + 1) sample[some++] = steps[i];
  if (some) qsort(sample, some, sizeof *sample, compare);
  double median = some ? sample[some / 2] : 0;
  for (size_t i = 0; i < some && median <= 0; i++) sum += sample[i];
  for (size_t i = 0; i < count && median > 0; i++) {
    double times = steps[i] / median, whole = round(times);
    bool alike = fabs(times - 1) <= jitter;
    if (alike) sum += steps[i];
    like += alike;
    odd += !alike && (whole < 1 || fabs(times - whole) > jitter);
  }
  out->coarse = median <= 0;
  out->step = out->coarse ? (some ? sum / (double)some : 0) : like ? sum / (double)like : median;
  out->regular = out->coarse || like == count;
  out->multiples = !out->coarse && !odd;
  bool short_of_memory = !steps || !sample;
  DV_FREE(steps, sample);
  return short_of_memory ? dv_fail_memory(error, "reading data") : DVBF_OK;
}

/* ---- Grid ---- */

enum { LONGEST_GAP = 100 };

/* Rows on steps of equal length: each step has the mean of its rows, and NaN if there are none. Behind a gap
 * of more than LONGEST_GAP steps a new sequence begins. */
typedef struct grid {
  dv_csv_rows to;
  unsigned *hits; /* [width] values in the sum of the last step */
  double step;
  bool multiples; /* times are counted from row to row, so that a slow drift of the clock does not matter */
  size_t empty;   /* steps without a row */
  size_t merged;  /* rows that share a step with another */
  size_t cut;     /* sequences that begin behind a long gap */
} grid;

/* Sums of the last step become means. */
static void close_step(grid *g) {
  if (!g->to.count) return;
  float *last = g->to.values + (g->to.count - 1) * g->to.width;
  for (size_t k = 0; k < g->to.width; k++) last[k] = g->hits[k] ? last[k] / (float)g->hits[k] : NAN;
  memset(g->hits, 0, g->to.width * sizeof *g->hits);
}

static dvbf_status open_step(grid *g, double time, dvbf_error *error) {
  float *values;
  close_step(g);
  dvbf_status status = new_row(&g->to, &values, time, error);
  for (size_t k = 0; k < g->to.width && !status; k++) values[k] = 0;
  return status;
}

static void add_values(grid *g, const float *from) {
  float *to = g->to.values + (g->to.count - 1) * g->to.width;
  for (size_t k = 0; k < g->to.width; k++)
    if (!isnan(from[k])) {
      to[k] += from[k];
      g->hits[k]++;
    }
}

/* One sequence; `row` is its first. */
static dvbf_status grid_sequence(grid *g, const dv_csv_rows *r, size_t sequence, size_t row,
                                 dvbf_error *error) {
  double begin = 0, at = 0; /* of this piece, and the step that is open */
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < r->lengths[sequence] && !status; i++) {
    const double *time = &r->times[row + i];
    double place = i == 0         ? 0
                   : g->multiples ? at + round((time[0] - time[-1]) / g->step)
                                  : round((*time - begin) / g->step);
    bool far = place - at > LONGEST_GAP + 1;
    if (!i || far) {
      begin = *time;
      place = at = 0;
      g->cut += far;
      status = begin_sequence(&g->to, r->origins[sequence].name, begin, error);
      if (!status) status = open_step(g, begin, error);
    } else {
      g->merged += place <= at;
      g->empty += place > at + 1 ? (size_t)(place - at) - 1 : 0;
    }
    for (; at < place && !status; at++) status = open_step(g, begin + (at + 1) * g->step, error);
    if (!status) add_values(g, r->values + (row + i) * r->width);
  }
  return status;
}

static dvbf_status put_on_grid(grid *g, dv_csv_rows *r, dvbf_error *error) {
  g->to = (dv_csv_rows){.width = r->width, .timed = true};
  g->hits = dv_calloc(r->width, sizeof *g->hits);
  dvbf_status status = g->hits ? DVBF_OK : dv_fail_memory(error, "reading data");
  for (size_t s = 0, row = 0; s < r->sequences && !status; row += r->lengths[s++])
    status = grid_sequence(g, r, s, row, error);
  if (!status) close_step(g);
  dv_free(g->hits);
  free_rows(status ? &g->to : r);
  if (!status) *r = g->to;
  return status;
}

/* ---- Fields ---- */

typedef struct table_reading {
  dv_csv_table *table;
  dv_lines *in;
  dvbf_error *error;
  float *row; /* [columns] numbers of this line */
  char sequence[256];
  int split;
  bool begun, change;  /* a row was read; this one is of another sequence than the row before */
  double stamp, clock; /* of this row */
  double time[2];      /* of the row before, and of the first row of the sequence */
  double days;         /* seconds that were added as a clock has passed midnight */
} table_reading;

/* train, valid, test: 0, 1, 2; else -1. */
static int split_named(dv_cursor field) {
  static const char *const names[] = {"train", "valid", "test", "val", "validation"};
  static const int splits[] = {0, 1, 2, 1, 1};
  for (int i = 0; i < 5; i++)
    if (dv_cursor_equals(field, names[i])) return splits[i];
  return -1;
}

static dvbf_status bad_field(const table_reading *t, size_t column, dv_cursor field, const char *remedy) {
  char text[41], name[DV_COLUMN];
  dv_name_copy(field, text, sizeof text);
  return dv_fail(t->error, DVBF_FORMAT, "%.200s, line %zu, column %s: \"%s\" %s", t->in->path, t->in->number,
                 dv_csv_column_name(&t->table->columns, column, name), text, remedy);
}

/* The message names the setting that can exclude the column. */
static dvbf_status not_a_number(const table_reading *t, size_t column, dv_cursor field) {
  const dv_csv_columns *c = &t->table->columns;
  char remedy[80];
  int role = 0;
  for (int i = 0; i < 3; i++)
    for (size_t k = 0; k < c->chosen[i]; k++)
      if (c->choice[i][k] == column) role = i;
  snprintf(remedy, sizeof remedy, "is not a number; correct it, or select columns with --%s",
           dv_role_setting(role));
  return bad_field(t, column, field, remedy);
}

static dvbf_status take_time(table_reading *t, size_t column, dv_cursor field) {
  const dv_csv_columns *c = &t->table->columns;
  bool good;
  double *to = column == c->time ? &t->stamp : &t->clock;
  if (column == c->clock || (!c->time_unit && !c->dates))
    good = dv_read_clock(field, to);
  else if (!c->time_unit)
    good = dv_read_date(field, to);
  else if ((good = dv_read_double(field, c->separator != ',', to)))
    *to *= c->time_unit;
  return good ? DVBF_OK
              : bad_field(t, column, field,
                          "is not a time like the earlier ones; correct it, or ignore the times with "
                          "--time-column none");
}

/* One field into the row, or its time, sequence or split. */
static dvbf_status take_field(table_reading *t, size_t column, dv_cursor field) {
  const dv_csv_columns *c = &t->table->columns;
  bool used = c->column[column].used;
  if (used && !dv_csv_number(c, field, &t->row[column])) return not_a_number(t, column, field);
  if (used && isinf(t->row[column]))
    return bad_field(t, column, field,
                     "is beyond 3.4e38, the range of 32-bit numbers; correct it, or scale that column");
  if (column == c->sequence) {
    t->change = t->change || !dv_cursor_equals(field, t->sequence);
    if (!dv_cursor_copy(field, t->sequence, sizeof t->sequence))
      return bad_field(t, column, field, "is too long");
  }
  if (column == c->split) {
    int split = split_named(field);
    if (split < 0) return bad_field(t, column, field, "must be train, valid or test");
    t->change = t->change || split != t->split;
    t->split = split;
  }
  return column == c->time || column == c->clock ? take_time(t, column, field) : DVBF_OK;
}

/* ---- Rows ---- */

/* A time that restarts begins a new sequence, unless a column tells sequences apart. A clock may pass
 * midnight. */
static dvbf_status check_time(table_reading *t, double *time) {
  const dv_csv_columns *c = &t->table->columns;
  const double half_a_day = 43200;
  bool clock = !c->dates && !c->time_unit;
  char name[DV_COLUMN];
  *time = t->stamp + t->clock + t->days;
  if (t->change || !t->begun || *time >= t->time[0]) return DVBF_OK;
  if (clock && t->time[0] - *time > half_a_day) {
    t->days += 2 * half_a_day;
    *time += 2 * half_a_day;
    return DVBF_OK;
  }
  t->change = c->sequence == DV_CSV_NONE && *time <= t->time[1];
  if (t->change) return DVBF_OK;
  return dv_fail(t->error, DVBF_FORMAT,
                 "%.200s, line %zu, column %s: the time goes back; sort the rows, name the column that "
                 "identifies sequences with --sequence-column, or ignore the times with --time-column none",
                 t->in->path, t->in->number, dv_csv_column_name(c, c->time, name));
}

static dvbf_status add_row(table_reading *t) {
  const dv_csv_columns *c = &t->table->columns;
  dv_csv_rows *r = &t->table->splits[c->split == DV_CSV_NONE ? DV_CSV_WHOLE : t->split];
  double time = 0;
  float *to;
  dvbf_status status = c->time == DV_CSV_NONE ? DVBF_OK : check_time(t, &time);
  if (!status && (t->change || !t->begun)) {
    char name[32];
    dv_name_copy(dv_cursor_of(t->sequence), name, sizeof name);
    status = begin_sequence(r, name, time, t->error);
    t->time[1] = time;
  }
  if (!status) status = new_row(r, &to, time, t->error);
  if (status) return status;
  for (int role = 0; role < 3; role++)
    for (size_t k = 0; k < c->chosen[role]; k++) *to++ = t->row[c->choice[role][k]];
  t->time[0] = time;
  t->begun = true;
  return DVBF_OK;
}

static dvbf_status read_row(table_reading *t, dv_cursor line) {
  const dv_csv_columns *c = &t->table->columns;
  dv_fields f = dv_fields_of(line, c->separator);
  dv_cursor field;
  size_t n = 0;
  t->change = false;
  for (; dv_fields_next(&f, &field); n++) {
    if (f.open) return dv_csv_bad_quotes(t->in->path, t->in->number, t->error);
    if (n == c->count && !dv_cursor_left(&field) && !f.more) break; /* a separator at the end of the line */
    dvbf_status status = n < c->count ? take_field(t, n, field) : DVBF_OK;
    if (status) return status;
  }
  if (n == c->count) return add_row(t);
  return dv_fail(t->error, DVBF_FORMAT,
                 "%.200s, line %zu: has %zu fields, but the first line has %zu; correct it", t->in->path,
                 t->in->number, n, c->count);
}

static dvbf_status read_rows(dv_csv_table *table, dv_lines *in, dvbf_error *error) {
  const dv_csv_columns *c = &table->columns;
  table_reading t = {.table = table, .in = in, .error = error, .split = -1};
  dv_cursor line = {NULL, NULL};
  for (int i = 0; i < DV_CSV_SPLITS; i++) {
    table->splits[i].width = c->chosen[0] + c->chosen[1] + c->chosen[2];
    table->splits[i].timed = c->time != DV_CSV_NONE;
  }
  in->begin = in->end = in->number = 0; /* from the first line on */
  in->offset = 0;
  in->ended = false;
  t.row = dv_calloc(c->count, sizeof *t.row);
  dvbf_status status = t.row ? DVBF_OK : dv_fail_memory(error, "reading data");
  for (size_t i = 0; i <= c->before && !status; i++) status = dv_lines_next(in, &line, error);
  while (!status && line.at) {
    status = read_row(&t, line);
    if (!status) status = dv_lines_next(in, &line, error);
  }
  dv_free(t.row);
  if (!status && !t.begun) status = dv_fail_file(error, in->path, "has column names but no rows");
  return status;
}

/* ---- Time ---- */

static void tell_grid(dv_archive *a, const grid *g, bool given) {
  char merged[64] = "", cut[96] = "";
  if (g->merged) snprintf(merged, sizeof merged, ", %zu rows share a step with another", g->merged);
  if (g->cut)
    snprintf(cut, sizeof cut, ", and a new sequence begins after each gap of more than %d steps (%zu times)",
             LONGEST_GAP, g->cut);
  dv_archive_note(a, "%s: rows are put on a grid of %.6g s%s; %zu steps are missing%s%s",
                  given          ? "sample-time is given"
                  : g->multiples ? "some rows are missing"
                                 : "the times of the rows are irregular",
                  g->step, given ? "" : " (--sample-time chooses another)", g->empty, merged, cut);
}

/* Puts the rows on a grid, if their times require one. */
static dvbf_status keep_pace(dv_archive *a, const dv_data_settings *how, dvbf_error *error) {
  timing pace;
  dvbf_status status = pace_of(&pace, a->table->splits, error);
  if (status) return status;
  bool given = how->sample_time > 0 && fabs(how->sample_time - pace.step) > 0.01 * pace.step;
  double step = how->sample_time > 0 ? how->sample_time : pace.step;
  a->table->sample_time = step;
  if (pace.coarse)
    dv_archive_note(
        a, "most rows have the same time as the row before: all steps are assumed to be %.6g s long", step);
  if (pace.coarse || step <= 0 || (pace.regular && !given)) return DVBF_OK;
  grid g = {.step = step, .multiples = pace.multiples && !given};
  for (int i = 0; i < DV_CSV_SPLITS && !status; i++)
    if (a->table->splits[i].count) status = put_on_grid(&g, &a->table->splits[i], error);
  if (!status) tell_grid(a, &g, given);
  return status;
}

/* With times, sensors may have different rates: empty fields of x are missing, and inputs keep their
 * value. */
static void fill_gaps(dv_archive *a) {
  const dv_csv_columns *c = &a->table->columns;
  size_t missing = 0, held = 0;
  for (int i = 0; i < DV_CSV_SPLITS; i++) {
    dv_csv_rows *r = &a->table->splits[i];
    for (size_t row = 0; row < r->count; row++)
      for (size_t k = 0; k < c->chosen[0]; k++) missing += isnan(r->values[row * r->width + k]) != 0;
    if (c->chosen[1]) held += hold_values(r, c->chosen[0], c->chosen[1]);
  }
  a->table->gaps = missing;
  if (missing)
    dv_archive_note(a, "%zu values of the outputs are missing%s", missing,
                    held ? "; inputs keep their last value where they are missing" : "");
  else if (held)
    dv_archive_note(a, "inputs keep their last value in %zu steps where they are missing", held);
}

/* ---- Notes ---- */

/* A column named like a time that holds something else. */
static void tell_times(dv_archive *a) {
  const dv_csv_columns *c = &a->table->columns;
  for (size_t i = 0; c->header && i < c->count && c->time == DV_CSV_NONE; i++) {
    const dv_csv_column *column = &c->column[i];
    if (column->says != DV_NAME_TIME || !column->others || column->used) continue;
    dv_archive_note(a,
                    "column %.31s holds no times in a known format, for example \"%s\"; to use them, write "
                    "them as 2024-01-31 13:00:00",
                    column->label, column->text);
    return;
  }
}

static void tell_columns(dv_archive *a, const dv_data_settings *how) {
  const dv_csv_columns *c = &a->table->columns;
  char name[DV_COLUMN], list[128] = "";
  for (size_t i = 0; i < c->count; i++) {
    const dv_csv_column *column = &c->column[i];
    dv_csv_column_name(c, i, name);
    if (i < 256) dv_archive_use(a, name, dv_csv_use(c, i, how));
    if (!column->used && column->others && 2 * column->others < column->numbers &&
        column->says == DV_NAME_OTHER)
      dv_archive_note(a,
                      "column %s is not used, as %zu of its first rows hold text; correct them, or find them "
                      "with --outputs %s",
                      name, column->others, name);
  }
  tell_times(a);
  for (size_t k = 0; c->by_name && k < c->chosen[1] && strlen(list) + 34 < sizeof list; k++)
    dv_append(list, sizeof list, "%s%.31s", k ? "," : "", c->column[c->choice[1][k]].label);
  if (c->by_name)
    dv_archive_note(a, "inputs recognised by name: %s (--inputs chooses others; --inputs none uses none)",
                    list);
  if (c->sequence != DV_CSV_NONE && !*how->sequence_column &&
      strcasecmp(c->column[c->sequence].label, "sequence"))
    dv_archive_note(a, "column %s identifies sequences (--sequence-column none ignores it)",
                    dv_csv_column_name(c, c->sequence, name));
  if (c->decimal)
    dv_archive_note(a, "%s group digits, as in %s", c->decimal == ',' ? "dots" : "commas",
                    c->decimal == ',' ? "1.234,5" : "1,234.5");
}

/* ---- Opening ---- */

void dv_csv_table_free(dv_csv_table *t) {
  for (int i = 0; i < DV_CSV_SPLITS; i++) free_rows(&t->splits[i]);
  dv_csv_columns_free(&t->columns);
  dv_free(t);
}

/* A column that tells sequences apart must not do so in every row. */
static dvbf_status check_sequences(const dv_archive *a, dvbf_error *error) {
  const dv_csv_columns *c = &a->table->columns;
  for (size_t i = 0; i < DV_CSV_SPLITS; i++) {
    const dv_csv_rows *r = &a->table->splits[i];
    char column[DV_COLUMN] = "sequence";
    if (r->count < 2 || r->sequences < r->count) continue;
    if (c->sequence != DV_CSV_NONE) dv_csv_column_name(c, c->sequence, column);
    return dv_fail_file(error, a->path,
                        "the column %s has a different value in every row; a sequence needs at least 2 rows",
                        column);
  }
  return DVBF_OK;
}

static dvbf_status csv_open(dv_archive *a, int descriptor, const dv_data_settings *how, dvbf_error *error) {
  dv_csv_table *t = a->table = dv_calloc(1, sizeof *t);
  dv_lines in = {.path = a->path, .descriptor = descriptor};
  if (!t) return dv_fail_memory(error, "reading data");
  dvbf_status status = dv_csv_look(&t->columns, &in, error);
  if (!status) status = dv_csv_choose(&t->columns, a->path, how, error);
  if (!status) status = read_rows(t, &in, error);
  t->sample_time = how->sample_time > 0 ? how->sample_time : t->columns.sample_time;
  bool timed = !status && t->columns.time != DV_CSV_NONE;
  if (timed) status = keep_pace(a, how, error);
  if (timed && !status) fill_gaps(a);
  if (!status) tell_columns(a, how);
  if (!status) status = check_sequences(a, error);
  dv_free(in.buffer);
  return status;
}

const dv_format dv_format_csv = {
    .name = "CSV", .endings = ".csv .tsv", .archive = sizeof(dv_archive), .open = csv_open};

/* ---- Use of tables ---- */

float *dv_csv_table_values(const dv_csv_table *t, int split, dv_role role) {
  const dv_csv_rows *r = &t->splits[split];
  size_t n = t->columns.chosen[role], first = 0, size;
  float *out = dv_multiply(r->count, n, &size) ? dv_calloc(size, sizeof *out) : NULL;
  for (int k = 0; k < (int)role; k++) first += t->columns.chosen[k];
  for (size_t i = 0; out && i < r->count; i++)
    memcpy(out + i * n, r->values + i * r->width + first, n * sizeof *out);
  return out;
}

/* Files of one data set have the same columns, in the same order. */
static dvbf_status compare_columns(const dv_csv_columns *a, const char *first, const dv_csv_columns *b,
                                   const char *path, dvbf_error *error) {
  if ((a->split == DV_CSV_NONE) != (b->split == DV_CSV_NONE))
    return dv_fail_file(error, path, "%s a column split, unlike %.200s; give all files the same columns",
                        b->split == DV_CSV_NONE ? "lacks" : "has", first);
  for (int role = 0; role < 3; role++) {
    if (a->chosen[role] != b->chosen[role])
      return dv_fail_file(error, path, "has %zu %s, and %.200s has %zu; give all files the same columns",
                          b->chosen[role], dv_role_setting(role), first, a->chosen[role]);
    for (size_t k = 0; a->header && b->header && k < a->chosen[role]; k++) {
      const char *one = a->column[a->choice[role][k]].label, *other = b->column[b->choice[role][k]].label;
      if (strcmp(one, other) != 0)
        return dv_fail(error, DVBF_FORMAT,
                       "%.150s: has the column %.31s where %.150s has %.31s; give all files the same columns "
                       "in the same order",
                       path, other, first, one);
    }
  }
  return DVBF_OK;
}

/* Sequences without a name get that of their file. */
static dvbf_status append_rows(dv_csv_rows *to, dv_csv_rows *from, const char *name, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  to->width = from->width;
  for (size_t i = 0, row = 0; i < from->sequences && !status; i++) {
    const dvbf_origin *origin = &from->origins[i];
    status = begin_sequence(to, *origin->name ? origin->name : name, origin->time, error);
    for (size_t k = 0; k < from->lengths[i] && !status; k++, row++) {
      float *values;
      status = new_row(to, &values, 0, error);
      if (!status) memcpy(values, from->values + row * from->width, from->width * sizeof *values);
    }
  }
  free_rows(from);
  return status;
}

dvbf_status dv_csv_table_append(dv_csv_table *to, const char *first, dv_archive *from, dvbf_error *error) {
  dv_csv_table *t = from->table;
  const char *slash = strrchr(from->path, '/');
  double one = to->sample_time, other = t->sample_time;
  dvbf_status status = DVBF_OK;
  if (!to->columns.count) {
    to->columns = t->columns;
    to->sample_time = t->sample_time;
    t->columns = (dv_csv_columns){0};
  } else if (fabs(one - other) > 0.01 * fmax(one, other)) {
    status =
        dv_fail_file(error, from->path,
                     "a step takes %g s, but %g s in %.200s; sample-time = SECONDS puts both on one grid",
                     other, one, first);
  } else {
    status = compare_columns(&to->columns, first, &t->columns, from->path, error);
  }
  to->gaps = to->gaps || t->gaps;
  to->columns.rest = to->columns.rest || t->columns.rest;
  for (int i = 0; i < DV_CSV_SPLITS && !status; i++)
    status = append_rows(&to->splits[i], &t->splits[i], slash ? slash + 1 : from->path, error);
  return status;
}
