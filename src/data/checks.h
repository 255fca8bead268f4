/* Checks of data before training: outliers, frames that recur, and columns of x that look like inputs. Each
 * finds something and leaves the decision to its caller. */
#pragma once

#include "base/settings.h"
#include "data/dataset.h"

/* One more of the notes that dvbf_data_warnings reports. */
dvbf_status dv_data_note(dvbf_data *data, const char *sentence, dvbf_error *error);

/* ---- Outliers ---- */

/* Values so far from all others of their column that standardising would flatten those: faults. */

/* The outliers of one column, which are not within [low, high]. */
typedef struct dv_outlier {
  size_t column, count;
  size_t sequence, step; /* where the first one is */
  double value;          /* the first one */
  double times;          /* deviations of the other values between their mean and the nearest outlier */
  double low, high;
} dv_outlier;

typedef struct dv_outliers {
  dv_outlier *list;
  size_t count;
} dv_outliers;

/* Finds values of x, or of u, at least `times` deviations of the others away. They are at most 3 and one in a
 * thousand; more frequent ones belong to the data. The other values vary; a column that is constant but for a
 * few events has no outliers. Values between 0 and 1, as those of images, have none either. `statistics` are
 * those of the array. Free the list with dv_free. */
dvbf_status dv_outliers_find(dv_outliers *out, const dvbf_sequences *s, bool of_u, double times,
                             const dv_statistics *statistics, dvbf_error *error);

/* Marks outliers of x as missing, in memory or whenever they are read; u gets the value before them. */
dvbf_status dv_outliers_remove(const dv_outliers *outliers, dvbf_sequences *s, bool of_u, dvbf_error *error);

/* How often a value may be missing, or an outlier, among n of a column, and count as rare. */
static inline uint64_t dv_rare(uint64_t n) {
  return 3 + n / 1000;
}

/* ---- Recurring frames ---- */

typedef struct dv_recurring {
  size_t n, count;  /* columns, and different frames */
  unsigned char *x; /* [count][n], those that come most often first */
  uint32_t *times;  /* [count] that they come */
  size_t frames;    /* of the data, without those of which a value is missing */
} dv_recurring;

/* Of frames that differ, the first DV_MOST_DIFFERENT count. Free them also after a failure. */
enum { DV_MOST_DIFFERENT = 1 << 13 };
dvbf_status dv_recurring_of(dv_recurring *out, const dvbf_sequences *s, dvbf_error *error);
void dv_recurring_free(dv_recurring *r);

/* How many occur at least DV_OFTEN times, and their share of the data. */
enum { DV_OFTEN = 5 };
size_t dv_recurring_often(const dv_recurring *r, double *share);

/* ---- Columns that look like inputs ---- */

/* Marks the columns whose next value the past of the others does not help to predict, while their past helps
 * much to predict the others (Granger); none if there are too few steps, or too many columns. */
dvbf_status dv_exogenous(bool *out /* [n_x] */, const dvbf_sequences *s, dvbf_error *error);
