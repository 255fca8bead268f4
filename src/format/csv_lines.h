/* The lines of a text file, and the fields of a line. */
#ifndef DV_CSV_LINES_H
#define DV_CSV_LINES_H

#include "base/cursor.h"

#include <dvbf/dvbf.h>
#include <sys/types.h>

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

/* Begins again at the first line; the buffer stays. */
void dv_lines_rewind(dv_lines *in);
/* Reads more behind what is there. UTF-16 becomes UTF-8. */
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
/* How many there are, without an empty one behind a separator at the end. */
size_t dv_fields_count(dv_cursor line, char separator);

#endif
