/* Reading text tables: names, columns, lines and fields, numbers, times, and rows. */
#pragma once

#include "base/text.h"
#include "io/archive.h"

#include <dvbf/dvbf.h>

#include <sys/types.h>

/* ---- Names of columns ---- */

typedef enum dv_name_kind {
  DV_NAME_OTHER,
  DV_NAME_X,        /* x, x0, y_2 */
  DV_NAME_U,        /* u, u1, action_0, valve_cmd */
  DV_NAME_STATE,    /* state, state_angle */
  DV_NAME_TIME,     /* time, timestamp, t_ms */
  DV_NAME_STEP,     /* ts, dt: perhaps the time between two rows */
  DV_NAME_COUNTER,  /* index, step, frame */
  DV_NAME_SEQUENCE, /* episode, traj_id, run */
  DV_NAME_SPLIT
} dv_name_kind;

enum { DV_UNIT = 16 };

/* Copies text as UTF-8 of fewer than `size` bytes. Bytes that are not UTF-8 are taken as Latin-1; control
 * characters become '?'. */
void dv_name_copy(dv_cursor text, char *out, size_t size);

/* ---- Choice of columns ---- */

#define DV_CSV_NONE SIZE_MAX
enum { DV_CSV_WHOLE = 3, DV_CSV_SPLITS = 4 }; /* train, valid, test, or all in one */

/* Contents of the first rows of a column. */
typedef struct dv_csv_column {
  char *name;  /* as the file has it, "" if there is no name */
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
  size_t count;
  dv_csv_column *column;        /* [count] */
  size_t *choice[3], chosen[3]; /* columns of x, u and state, and how many */
  size_t sequence, split;       /* columns, or DV_CSV_NONE */
  size_t time, clock;           /* that of the time, and that of the time of day where `time` is a date */
  double time_unit;             /* seconds, where the time is a number; 0: it is a date */
  bool dates;                   /* the time counts from 1970 */
  double sample_time;           /* given by a column; 0: by none */
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
/* The use of a column, as the end of a sentence. */
const char *dv_csv_use(const dv_csv_columns *c, size_t column, const dv_data_settings *how);

/* Its name, or its number from 1. */
enum { DV_COLUMN = 41 };
const char *dv_csv_column_name(const dv_csv_columns *c, size_t column, char out[DV_COLUMN]);

/* ---- Lines and fields ---- */

typedef struct dv_lines {
  const char *path;
  int descriptor;
  off_t offset; /* in the file, behind what is in the buffer */
  char *buffer; /* [room], of which begin .. end is not yet used */
  size_t room, begin, end;
  size_t number;    /* of the last line, from 1 */
  dv_cursor remark; /* the last comment before the line that was read, without its #; at = NULL: none */
  bool ended;
  enum { DV_BYTES, DV_UTF16_LITTLE, DV_UTF16_BIG } code;
} dv_lines;

/* Reads more into the buffer. UTF-16 becomes UTF-8. */
dvbf_status dv_lines_fill(dv_lines *in, dvbf_error *error);
/* The next line that holds anything but blanks or a comment, without its end; at = NULL behind the last. */
dvbf_status dv_lines_next(dv_lines *in, dv_cursor *line, dvbf_error *error);

typedef struct dv_fields {
  dv_cursor line;
  char separator; /* ' ' stands for any run of blanks and tabs */
  bool more;      /* a field is left */
  bool open;      /* a quote was not closed */
  bool quoted;    /* the last field was in quotes */
} dv_fields;

dv_fields dv_fields_of(dv_cursor line, char separator);
/* The next field, without blanks and quotes around it; false behind the last. In quotes, "" stands for a
 * quote and stays two characters. */
bool dv_fields_next(dv_fields *f, dv_cursor *out);
/* Number of fields, without an empty one after a separator at the end. */
size_t dv_fields_count(dv_cursor line, char separator);

/* ---- Detection of the format ---- */

/* Fills in all of *c but the choice of columns, by the first thousand lines. */
dvbf_status dv_csv_look(dv_csv_columns *c, dv_lines *in, dvbf_error *error);
dvbf_status dv_csv_bad_quotes(const char *path, size_t line, dvbf_error *error);

/* ---- Decimal numbers ---- */

/* *out = the float nearest to the number; false if the text is not a number. If `comma` is true, a decimal
 * comma is allowed. Empty text, NaN, NA, null or a dash means that the value is missing and gives NaN. */
bool dv_decimal(dv_cursor text, bool comma, float *out);

/* A number whose digits are grouped in threes: 1,234.5 or, with a decimal comma, 1.234,5; blanks and
 * apostrophes may group them too. `decimal` is '.' or ','. */
bool dv_decimal_grouped(dv_cursor text, char decimal, float *out);
/* Marks of a number, added up: it has a comma or a dot, which can be nothing but the decimal mark. */
enum { DV_COMMA = 1, DV_DOT = 2, DV_DECIMAL_COMMA = 4, DV_DECIMAL_DOT = 8 };
unsigned dv_decimal_marks(dv_cursor text);

/* ---- Times ---- */

/* A date such as 2024-01-31, 2024/01/31 or 31.01.2024, with an optional time of day after a blank or a T and
 * an optional Z or +01:00: seconds since 1970-01-01 00:00, in UTC by default. */
bool dv_read_date(dv_cursor text, double *seconds);
/* A time of day, as 12:00 or 12:00:00.25: seconds since midnight. */
bool dv_read_clock(dv_cursor text, double *seconds);
/* A number with all digits of a double; false: it is none. `comma`: a decimal comma will do. */
bool dv_read_double(dv_cursor text, bool comma, double *out);

/* Seconds of one unit, as "ms" or "min"; 0: it is no unit of time. */
double dv_seconds_of(const char *unit);
/* Seconds per unit of a number that counts from 1970, by its size; 0: it does not. */
double dv_epoch_unit(double value);

/* ---- Rows ---- */

/* Rows of one split, sequence by sequence. */
typedef struct dv_csv_rows {
  float *values; /* [count][width] */
  double *times; /* [count] seconds, where `timed` */
  size_t count, width;
  bool timed;
  size_t *lengths;      /* [sequences] rows of each */
  dvbf_origin *origins; /* [sequences] */
  size_t sequences;
} dv_csv_rows;

/* ---- Tables ---- */

/* A CSV file: its columns, which know their roles, and its rows. */
typedef struct dv_csv_table {
  dv_csv_columns columns;
  dv_csv_rows splits[DV_CSV_SPLITS];
  double sample_time; /* seconds, 0: unknown */
  bool gaps;          /* NaN in x is a value that is missing, without a setting that says so */
} dv_csv_table;

void dv_csv_table_free(dv_csv_table *t);
/* x, u or state of a split, [rows][columns of that role]; NULL: memory is short. */
float *dv_csv_table_values(const dv_csv_table *t, int split, dv_role role);
/* Moves the rows of another file behind those of `to`, which is empty or begins with the file `first`. Its
 * columns must be the same, and so must its sample time. */
dvbf_status dv_csv_table_append(dv_csv_table *to, const char *first, dv_archive *from, dvbf_error *error);
