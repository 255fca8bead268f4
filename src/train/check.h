/* What training cannot do with the data at hand, told before it begins. */
#ifndef DV_CHECK_H
#define DV_CHECK_H

#include "data/dataset.h"
#include "model/model.h"

/* Refuses data no column of which varies; `x` are the statistics of what trains. */
dvbf_status dv_check_varies(const dv_statistics *x, size_t n_x, dvbf_error *error);

/* Refuses sequences of at most `steps` steps that are shorter than a model of that class and settings needs.
 * `which` are "training" or "validation". */
dvbf_status dv_check_length(const dvbf_model_class *type, const dvbf_settings *settings, size_t steps,
                            const char *which, dvbf_error *error);

#endif
