/* Weights of fewer bits: a model whose weights are what the exported file can hold. */
#ifndef DV_ROUNDING_H
#define DV_ROUNDING_H

#include "base/settings.h"
#include "model/model.h"

/* A copy of the model and its members with rounded weights, which shares all else with the model and so must
 * not outlive it. Free with dv_rounded_free. */
dvbf_status dv_rounded_new(dvbf_model **out, const dvbf_model *model, int format, dvbf_error *error);
void dv_rounded_free(dvbf_model *rounded);

/* Root mean square error of forecasts one step ahead, in units of the standard deviation of each column. */
dvbf_status dv_rounding_error(double *out, const dvbf_model *model, const dvbf_sequences *sequences,
                              dvbf_error *error);

#endif
