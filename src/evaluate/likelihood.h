/* Bounds on the likelihood that are closer than that of training. */
#ifndef DV_LIKELIHOOD_H
#define DV_LIKELIHOOD_H

#include "exec/pool.h"
#include "model/model.h"

/* Estimates of ln p(x) of each sequence, all too low on average and closer the more paths; given one v ~ q(v)
 * for each sequence, so that KL(q(v) || p(v)) / N is still to be taken off. */
typedef struct dv_likelihoods {
  double *importance; /* [count] from whole paths; NULL where they are not asked for */
  double *particle;   /* [count] from a particle filter; NULL for a model that cannot filter */
} dv_likelihoods;

/* `paths`: also from whole paths. Free with dv_likelihoods_free, also after a failure. */
dvbf_status dv_likelihoods_of(dv_likelihoods *out, const dvbf_model *model, const dvbf_sequences *s,
                              size_t particles, bool paths, uint64_t seed, dv_pool *pool, dvbf_error *error);
void dv_likelihoods_free(dv_likelihoods *likelihoods);

#endif
