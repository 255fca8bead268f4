/* The error of prediction by horizon: how far what the model predicts for h steps ahead is from the data. */
#ifndef DV_HORIZON_H
#define DV_HORIZON_H

#include "base/settings.h"
#include "exec/pass.h"

#include <dvbf/dvbf.h>

/* Fills observed, horizon and the squared errors of *out; horizon stays 0 where nothing is left to predict. x
 * of the predictions is not kept, so that data may be larger than memory. */
dvbf_status dv_horizon_errors(dvbf_evaluation *out, const dvbf_model *model, const dvbf_sequences *sequences,
                              const dvbf_data *data, const dv_evaluate_settings *settings, dv_pool *pool,
                              dvbf_error *error);

#endif
