/* Which columns of a table are x, u and state, and which tell the time, the sequence and the split. */
#ifndef DV_CSV_COLUMNS_H
#define DV_CSV_COLUMNS_H

#include "base/cursor.h"
#include "format/archive.h"
#include "format/csv_names.h"

#define DV_CSV_NONE SIZE_MAX
enum { DV_CSV_WHOLE = 3, DV_CSV_SPLITS = 4 }; /* train, valid, test, or all in one */

/* What the first rows of a column hold. */
typedef struct dv_csv_column {
  char *name;  /* as the file has it, "" where there is no name */
  char *label; /* without its unit */
  char unit[DV_UNIT];
  dv_name_kind says;                            /* by its label */
  bool used;                                    /* it is one of x, u and state */
  size_t numbers, dates, clocks, empty, others; /* fields of each kind */
  size_t changes, falls; /* how often the value changes, and how often a number falls */
  double last;
  char text[32]; /* the last one that was seen */
} dv_csv_column;

typedef struct dv_csv_columns {
  char separator;
  char decimal;  /* '.' or ',' where the other one groups digits; 0: numbers have no groups */
  bool header;   /* a line names the columns */
  bool units;    /* the line below it holds their units */
  size_t before; /* lines in front of the first one */
  size_t count, room;
  dv_csv_column *column;        /* [count] */
  size_t *choice[3], chosen[3]; /* columns of x, u and state, and how many */
  size_t sequence, split;       /* columns, or DV_CSV_NONE */
  size_t time, clock;           /* that of the time, and that of the time of day where `time` is a date */
  double time_unit;             /* seconds, where the time is a number; 0: it is a date */
  bool dates;                   /* the time counts from 1970 */
  double sample_time;           /* that a column says; 0: none does */
  bool by_name;                 /* u was chosen by names like action_0 */
  bool rest;                    /* x is all that was left, and nobody has said which columns are inputs */
} dv_csv_columns;

/* Adds a column of that name; `quoted`: two quotes in it stand for one. */
dvbf_status dv_csv_add_column(dv_csv_columns *c, dv_cursor name, bool quoted, dvbf_error *error);
void dv_csv_drop_last(dv_csv_columns *c);
void dv_csv_columns_free(dv_csv_columns *c);
/* After the last one: cuts units off the names, unless two would have the same name then. */
void dv_csv_label(dv_csv_columns *c);

/* Reads a number as this table writes them. */
bool dv_csv_number(const dv_csv_columns *c, dv_cursor field, float *out);

/* Chooses columns by the settings, or else by their names, or else all columns of numbers except times. */
dvbf_status dv_csv_choose(dv_csv_columns *c, const char *path, const dv_data_settings *how,
                          dvbf_error *error);
/* What a column was taken for, as the end of a sentence. */
const char *dv_csv_use(const dv_csv_columns *c, size_t column, const dv_data_settings *how);

/* How many numbers of a row are used. */
static inline size_t dv_csv_width(const dv_csv_columns *c) {
  return c->chosen[0] + c->chosen[1] + c->chosen[2];
}

/* Its name, or its number from 1. */
const char *dv_csv_column_name(const dv_csv_columns *c, size_t column, char *out, size_t size);

#endif
