/* The ways to estimate states; each fills estimates that have been allocated. */
#ifndef DV_ESTIMATE_H
#define DV_ESTIMATE_H

#include "infer/request.h"

/* Samples of the recognition model where x is seen and of the prior where not. */
dvbf_status dv_estimate_samples(dvbf_estimates *out, const dv_request *request, dv_pool *pool,
                                dvbf_error *error);
/* Weighted samples: of a particle filter and smoother, or of whole paths where the model cannot filter. */
dvbf_status dv_estimate_particles(dvbf_estimates *out, const dv_request *request, dv_pool *pool,
                                  dvbf_error *error);

#endif
