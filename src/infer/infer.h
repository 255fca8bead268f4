/* Shared by what runs a trained model. */
#ifndef DV_INFER_H
#define DV_INFER_H

#include "exec/pass.h"

/* Refuses sequences of another shape than the model's, or with values that are not finite. */
dvbf_status dv_infer_check(const dvbf_model *model, const dvbf_sequences *sequences, dvbf_error *error);

/* What scaling adds to ln p of frame t of row r; 0 where it is not seen. `whole` is that of a whole frame. */
double dv_frame_jacobian(const dvbf_model *model, double whole, const dv_program *program,
                         const dvbf_run *run, int t, int r);

#endif
