/* Values so far from all others of their column that those would vanish beside them, once the column is
 * standardised: a fault of a sensor or of a file. */
#ifndef DV_OUTLIERS_H
#define DV_OUTLIERS_H

#include "data/dataset.h"

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

/* Finds those of x, or of u, that are at least `times` deviations of the others away. They are few, at most 3
 * and one in a thousand; what is more frequent belongs to the data. The other values vary; a column that is
 * constant but for a few events has no outliers. Values between 0 and 1, as those of pictures, have none
 * either. `statistics` are those of the array. Free the list with dv_free. */
dvbf_status dv_outliers_find(dv_outliers *out, const dvbf_sequences *s, bool of_u, double times,
                             const dv_statistics *statistics, dvbf_error *error);

/* Makes those of x missing, in memory or whenever they are read; those of u get the value before them. */
dvbf_status dv_outliers_remove(const dv_outliers *outliers, dvbf_sequences *s, bool of_u, dvbf_error *error);

/* How often a value may be missing, or an outlier, among n of a column, and count as rare. */
static inline uint64_t dv_rare(uint64_t n) {
  return 3 + n / 1000;
}

#endif
