/* How likely data of 0 and 1, categories or counts are: by a model, by each column for itself, and by a
 * Markov chain for each column. */
#ifndef DV_NATS_H
#define DV_NATS_H

#include "base/settings.h"
#include "evaluate/rolling.h"

/* ln p of consecutive parts of all that is scored: they tell the spread of a comparison. NaN where a way is
 * not known. */
typedef struct dv_nats {
  dvbf_nats per_frame;
  double mean[DV_ROLLING_BLOCKS], last[DV_ROLLING_BLOCKS], learned[DV_ROLLING_BLOCKS];
} dv_nats;

/* All is NaN where the model's density is not one of these. `train` tells the columns' means and moves;
 * `settings` are of the table "evaluate". */
dvbf_status dv_nats_of(dv_nats *out, const dvbf_model *model, const dvbf_sequences *train,
                       const dvbf_sequences *s, const dvbf_settings *settings, dvbf_error *error);

#endif
