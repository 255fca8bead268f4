/* First values of a model from the best linear system of the data, so that at update 0 it is a Kalman filter.
 */
#ifndef DV_START_H
#define DV_START_H

#include "model/model.h"

/* Sets the parameters of a new model (start = linear). Refuses a model that a linear system cannot be part
 * of. `interrupt`, NULL or a flag, ends it with DVBF_STOPPED. */
dvbf_status dv_start_linear(dvbf_model *m, const dvbf_data *data, const volatile int *interrupt,
                            dvbf_error *error);

#endif
