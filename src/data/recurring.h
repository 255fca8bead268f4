/* Frames of 0 and 1 that come again and again. */
#ifndef DV_RECURRING_H
#define DV_RECURRING_H

#include "data/dataset.h"

typedef struct dv_recurring {
  size_t n, count;  /* columns, and different frames */
  unsigned char *x; /* [count][n], those that come most often first */
  uint32_t *times;  /* [count] that they come */
  size_t frames;    /* of the data, without those of which a value is missing */
} dv_recurring;

/* Of frames that differ, the first DV_MOST_DIFFERENT count. Free with dv_recurring_free, also after a
 * failure. */
enum { DV_MOST_DIFFERENT = 1 << 13 };
dvbf_status dv_recurring_of(dv_recurring *out, const dvbf_sequences *s, dvbf_error *error);
void dv_recurring_free(dv_recurring *r);

/* How many come often: at least DV_OFTEN times; and how many of the data these are, as a share. */
enum { DV_OFTEN = 5 };
size_t dv_recurring_often(const dv_recurring *r, double *share);

#endif
