/* Errors of prediction by the number of steps ahead, over many origins, beside simpler ways to predict. */
#ifndef DV_AHEAD_H
#define DV_AHEAD_H

#include <dvbf/dvbf.h>

enum { DV_AHEAD_COLUMNS = 64 }; /* that have curves of their own */

typedef struct dv_ahead {
  size_t origins, horizon; /* 0: nothing can be predicted */
  size_t columns;          /* n_x, or 0 where there are too many */
  /* [1 + columns][horizon] root mean square errors: of all columns that vary in units of their deviation in
   * training, then of each column in its own unit. NaN where no value is known; NULL where a way cannot
   * predict. */
  double *rmse[DVBF_WAYS];
} dv_ahead;

/* `settings` is of the table "evaluate". Free with dv_ahead_clear, also after a failure. */
dvbf_status dv_ahead_of(dv_ahead *out, const dvbf_model *model, const dvbf_data *data,
                        const dvbf_sequences *sequences, const dvbf_settings *settings, dvbf_error *error);
void dv_ahead_clear(dv_ahead *ahead);

#endif
