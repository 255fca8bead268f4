/* What a candidate is validated on. */
#ifndef DV_RECORDING_H
#define DV_RECORDING_H

#include <dvbf/core.h>

/* A view of the data whose validation sequences are all of training and, twice, those that validate: a short
 * part of one recording tells nearly nothing about the rest. Where many sequences validate, they stay as they
 * are. Free with dv_recording_clear. */
dvbf_status dv_recording_make(dvbf_data *out, const dvbf_data *data, dvbf_error *error);
void dv_recording_clear(dvbf_data *out, const dvbf_data *data);

#endif
