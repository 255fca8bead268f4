/* The ways to estimate states; each fills estimates that have been allocated. What members of a committee
 * estimate is pooled. */
#ifndef DV_ESTIMATE_H
#define DV_ESTIMATE_H

#include "infer/request.h"

/* Where the pool has a team, each rank fills those of its sequences: blocks of them, of 1 where nothing else
 * is said, are shared out as by dv_team_first. */

/* Samples of the recognition model where x is seen and of the prior where not. */
dvbf_status dv_estimate_samples(dvbf_estimates *out, const dv_request *request, dv_pool *pool,
                                dvbf_error *error);
size_t dv_estimate_samples_block(const dv_request *request);
/* x of each step as expected from the steps before it. */
dvbf_status dv_estimate_forecasts(dvbf_estimates *out, const dv_request *request, dv_pool *pool,
                                  dvbf_error *error);
/* Weighted samples: of a particle filter and smoother, or of whole paths where the model cannot filter. */
dvbf_status dv_estimate_particles(dvbf_estimates *out, const dv_request *request, dv_pool *pool,
                                  dvbf_error *error);
/* Exact means, deviations and quantiles, for a model that has them; samples are drawn from the same
 * distributions. */
dvbf_status dv_estimate_exact(dvbf_estimates *out, const dv_request *request, dv_pool *pool,
                              dvbf_error *error);

/* What members of a committee estimate [n] becomes what all of them say, in `out`, which may be one of them:
 * means, deviations and quantiles of x over the samples of all, which have x_samples where there are
 * quantiles. `asked` is of any member. z stays as it is. */
dvbf_status dv_estimates_pool(dvbf_estimates *out, dvbf_estimates *const *members, size_t n,
                              const dv_request *asked, dvbf_error *error);

#endif
