/* A stream of observations, and the online filter that follows it. */
#pragma once

#include "options.h"

#include <dvbf/dvbf.h>

#include <jansson.h>
#include <stdio.h>

/* ---- Stream ---- */

/* Observations line by line, as CSV or JSON. */
typedef struct cli_stream {
  FILE *from;
  size_t n_x, n_u;
  /* Names of the columns of x and u in a CSV file, with commas; "": by position. */
  char outputs[512], inputs[512];
  size_t line; /* number of the last line read */
  bool begun, json;
  size_t fields;     /* of a line of CSV */
  float *values;     /* [fields] of the line */
  size_t *column;    /* [n_x + n_u] field of each value, x first */
  char (*names)[32]; /* [n_x] of the columns of x */
  char *text;        /* the line */
  size_t room;
  float *x, *u;  /* [n_x], [n_u] values of the line, NaN if missing */
  float *future; /* [n_future][n_u] announced controls of later steps */
  size_t n_future;
} cli_stream;

/* Standard input with observations of this model and n_u controls per line. Free with cli_stream_close, also
 * after a failure. */
dvbf_status cli_stream_open(cli_stream *out, const dvbf_model *model, size_t n_u, dvbf_error *error);
void cli_stream_close(cli_stream *s);

/* Reads the next observation, skipping blank lines; *more is false at the end. */
dvbf_status cli_stream_next(cli_stream *s, bool *more, dvbf_error *error);

/* Prints CSV fields, each after a comma; empty if `values` is NULL or a value is not finite. */
void cli_put_numbers(const float *values, size_t count);

/* A list of `columns` numbers, and a table of `rows` such lists. */
json_t *cli_list(const float *values, size_t columns);
json_t *cli_table(const float *values, size_t rows, size_t columns);
json_t *cli_belief(const dvbf_belief *belief, size_t n_z);

/* Prints a line of JSON and releases it. */
void cli_put_line(json_t *line);

/* Flushes standard output. */
dvbf_status cli_answer(dvbf_error *error);

/* ---- Following ---- */

/* dvbf filter --follow. */
dvbf_status cli_follow(const cli_options *options, dvbf_error *error);
