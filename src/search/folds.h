/* Cross-validation: every candidate leaves out a part of the recording, and is judged by it. */
#ifndef DV_FOLDS_H
#define DV_FOLDS_H

#include <dvbf/core.h>

typedef struct dv_fold {
  dvbf_data data;      /* a view: train is all but `part`; valid is all, with `part` twice */
  dvbf_sequences part; /* what training does not see */
} dv_fold;

/* The error on a single block of a recording says almost nothing about the rest. So training and validation
 * sequences are put together, and each fold leaves out another part: whole sequences where there are enough,
 * otherwise a block of each. Members of a committee that come from different folds have together seen all of
 * the data. Where the validation sequences are from another file, or are many, there is one fold, with the
 * data as they are. */
typedef struct dv_folds {
  dv_fold *list; /* [count + 1]: the last one leaves out nothing */
  size_t count;
  bool cut; /* the folds are views with arrays of their own */
} dv_folds;

/* Free with dv_folds_free, also after a failure. */
dvbf_status dv_folds_make(dv_folds *out, const dvbf_data *data, dvbf_error *error);
void dv_folds_free(dv_folds *folds);

#endif
