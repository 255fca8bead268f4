/* Cross-validation: every candidate leaves out a part of the recording, and is judged by it. */
#ifndef DV_FOLDS_H
#define DV_FOLDS_H

#include <dvbf/core.h>

typedef struct dv_fold {
  dvbf_data data;      /* a view: train is all but the part, valid is all, the part twice */
  dvbf_sequences part; /* that training does not see */
} dv_fold;

/* A single block of one recording tells nearly nothing about the rest, so that the part that validates is
 * joined with what trains, and each fold leaves out another part: whole sequences where there are enough,
 * otherwise a block of each. Members of a committee that come from different folds have seen all of the data
 * together. Where the user has validation sequences apart from those of training, or where many validate,
 * there is one fold, with the data as they are. */
typedef struct dv_folds {
  dv_fold *list; /* [count + 1]: the last one leaves out nothing */
  size_t count;
  bool cut; /* the folds are views with arrays of their own */
} dv_folds;

/* Free with dv_folds_free, also after a failure. */
dvbf_status dv_folds_make(dv_folds *out, const dvbf_data *data, dvbf_error *error);
void dv_folds_free(dv_folds *folds);

#endif
