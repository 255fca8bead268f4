/* Training of one model. */
#ifndef DV_TRAIN_H
#define DV_TRAIN_H

#include "model/model.h"

#include <dvbf/dvbf.h>

/* Trains as dvbf_train does without a search. Ends at update `pause`, as if it had been stopped there, with
 * the best model so far; 0, or an update past the last: at the end. `own` may be NULL. */
dvbf_status dv_train(dvbf_model **out, const dv_own *own, const dvbf_settings *settings,
                     const dvbf_data *data, const dvbf_train_options *options, uint64_t pause,
                     dvbf_error *error);

#endif
