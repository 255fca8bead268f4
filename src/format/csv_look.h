/* A first look at a table in text: how it is written, and what its columns hold. */
#ifndef DV_CSV_LOOK_H
#define DV_CSV_LOOK_H

#include "format/csv_columns.h"
#include "format/csv_lines.h"

/* Fills in all of *c but the choice of columns, by the first thousand lines. */
dvbf_status dv_csv_look(dv_csv_columns *c, dv_lines *in, dvbf_error *error);
dvbf_status dv_csv_bad_quotes(const char *path, size_t line, dvbf_error *error);

#endif
