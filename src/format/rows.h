/* Rows of a table as they are read, and their times. */
#ifndef DV_ROWS_H
#define DV_ROWS_H

#include <dvbf/dvbf.h>

/* Rows of one split, sequence by sequence. */
typedef struct dv_rows {
  float *values; /* [count][width] */
  double *times; /* [count] seconds, where `timed` */
  size_t count, room, width;
  bool timed;
  double *lengths;      /* [sequences] rows of each */
  dvbf_origin *origins; /* [sequences] */
  size_t sequences, sequences_room;
} dv_rows;

/* Begins a sequence, which has no rows yet. */
dvbf_status dv_rows_begin(dv_rows *r, const char *name, double time, dvbf_error *error);
/* One more row of the last sequence; the caller fills it. */
dvbf_status dv_rows_add(dv_rows *r, float **values, double time, dvbf_error *error);
void dv_rows_free(dv_rows *r);

/* What the times of all splits say. */
typedef struct dv_pace {
  double step;    /* seconds from row to row: the median, or the mean of steps that are like it; 0: unknown */
  bool coarse;    /* most rows have the time of the row before: the clock is too coarse to tell them apart */
  bool regular;   /* all steps are like it, up to jitter */
  bool multiples; /* or whole multiples of it: some rows are missing */
} dv_pace;
dvbf_status dv_pace_of(dv_pace *out, const dv_rows *splits, size_t count, dvbf_error *error);

/* What putting rows on a grid has done. */
typedef struct dv_gridded {
  size_t empty;  /* steps without a row */
  size_t merged; /* rows that share a step with another */
  size_t cut;    /* sequences that begin behind a long gap */
} dv_gridded;

enum { DV_LONGEST_GAP = 100 };

/* Puts the rows on steps of `step` seconds: each step has the mean of its rows, and NaN where there are none.
 * Behind a gap of more than DV_LONGEST_GAP steps a new sequence begins. `multiples`: times are counted from
 * row to row, so that a slow drift of the clock does not matter. */
dvbf_status dv_rows_grid(dv_rows *r, double step, bool multiples, dv_gridded *out, dvbf_error *error);
/* Columns first .. first + count - 1 keep their value until the next one is there. Returns how many values
 * were filled. */
size_t dv_rows_hold(dv_rows *r, size_t first, size_t count);

#endif
