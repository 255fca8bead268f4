/* Which columns of a table are x, u and state. */
#ifndef DV_CSV_COLUMNS_H
#define DV_CSV_COLUMNS_H

#include "base/cursor.h"
#include "format/archive.h"

#define DV_CSV_NONE SIZE_MAX
enum { DV_CSV_WHOLE = 3, DV_CSV_SPLITS = 4 }; /* train, valid, test, or all in one */

typedef struct dv_csv_columns {
  char separator;
  bool header;  /* the first line names the columns */
  size_t count; /* columns */
  size_t room;
  char **names;                 /* [count], "" where there is no name */
  bool *number;                 /* [count] has a number */
  bool *other;                  /* [count] has something else */
  bool *used;                   /* [count] it is one of x, u and state */
  size_t *choice[3], chosen[3]; /* columns of x, u and state, and how many */
  size_t sequence, split;       /* columns of these names, or DV_CSV_NONE */
} dv_csv_columns;

/* Adds a column of that name. */
dvbf_status dv_csv_add_column(dv_csv_columns *c, dv_cursor name, dvbf_error *error);
void dv_csv_drop_last(dv_csv_columns *c);
void dv_csv_columns_free(dv_csv_columns *c);

/* Chooses columns by the settings, or else by their names, or else all columns of numbers except times. */
dvbf_status dv_csv_choose(dv_csv_columns *c, const char *path, const dv_data_settings *how,
                          dvbf_error *error);

/* How many numbers of a row are used. */
static inline size_t dv_csv_width(const dv_csv_columns *c) {
  return c->chosen[0] + c->chosen[1] + c->chosen[2];
}

/* Its name, or its number from 1. */
const char *dv_csv_column_name(const dv_csv_columns *c, size_t column, char *out, size_t size);

#endif
