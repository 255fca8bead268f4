/* Shared by what runs a trained model. */
#ifndef DV_INFER_H
#define DV_INFER_H

#include "train/pass.h"

/* Refuses sequences of another shape than the model's, or with values that are not finite. */
dvbf_status dv_infer_check(const dvbf_model *model, const dvbf_sequences *sequences, dvbf_error *error);

#endif
