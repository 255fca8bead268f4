/* Training of a model that is not found by gradients. */
#ifndef DV_FITTED_H
#define DV_FITTED_H

#include "identify/fit.h"

#include <dvbf/dvbf.h>

/* As dvbf_train: the run folder gets settings, model and one row of metrics, and a checkpoint only where the
 * fit was stopped. */
dvbf_status dv_train_fitted(dvbf_model **out, dv_fit_fn *fit, const dvbf_settings *settings,
                            const dvbf_data *data, const dvbf_train_options *options, dvbf_error *error);

#endif
