/* The innovation of the noise-free filter over the training data. */
#ifndef DV_INNOVATIONS_H
#define DV_INNOVATIONS_H

#include "exec/pool.h"
#include "model/model.h"

/* e [n_x][n_x] = mean of e_t e_t', in units of the model, over frames that the initial network has not seen.
 * The model's recognition must see the innovation. */
dvbf_status dv_innovation_moments(double *e, const dvbf_model *model, dv_pool *pool,
                                  const dvbf_sequences *train, dvbf_error *error);

#endif
