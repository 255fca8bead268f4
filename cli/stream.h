/* Observations that come in line by line, as CSV or as JSON. */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include <dvbf/dvbf.h>
#include <stdio.h>

typedef struct cli_stream {
  FILE *from;
  size_t n_x, n_u;
  const char *outputs,
      *inputs; /* names of the columns of x and u in a CSV file, with commas; "": by position */
  size_t line; /* number of the line that was read last */
  bool begun, json;
  size_t fields;     /* of a line of CSV */
  size_t *column;    /* [n_x + n_u] field of each value, x first */
  char (*names)[32]; /* [n_x] of the columns of x */
  char *text;        /* the line */
  size_t room;
  float *x, *u;  /* [n_x], [n_u] what the line says, NaN where it says nothing */
  float *future; /* [n_future][n_u] controls of the steps after it, where the line has them */
  size_t n_future;
} cli_stream;

/* Free with cli_stream_close, also after a failure. The texts must outlive it. */
dvbf_status cli_stream_open(cli_stream *out, FILE *from, size_t n_x, size_t n_u, const char *outputs,
                            const char *inputs, dvbf_error *error);
void cli_stream_close(cli_stream *s);

/* Reads the next observation; *more is false at the end. Blank lines are passed. */
dvbf_status cli_stream_next(cli_stream *s, bool *more, dvbf_error *error);

#endif
