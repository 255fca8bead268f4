/* Weights of samples: how much likelier a path is under the model than under q, which drew it. */
#ifndef DV_WEIGHTS_H
#define DV_WEIGHTS_H

#include "exec/worker.h"

/* ln p - ln q of what row r draws at the first step: w_1, or z_1 where there is no w. */
double dv_log_ratio_first(const dv_worker *worker, int r);
/* The same of the step from t: w_t, or z_{t+1} given z_t. 0 where it comes from the prior. */
double dv_log_ratio(const dv_worker *worker, int t, int r);

/* What scaling adds to ln p of frame t of row r; 0 where it is not seen. `whole` is that of a whole frame. */
double dv_frame_jacobian(const dv_worker *worker, double whole, int t, int r);

/* ln sum exp x [n], without overflow; NaN counts as -inf. */
double dv_log_sum_exp(const double *x, size_t n);
/* weight [n] = exp(x - ln sum exp x); all alike where every x is -inf. Returns ln sum exp x. */
double dv_normalise(const double *x, double *weight, size_t n);

/* Systematic resampling: index [m] of entries of weight [n], each drawn as often as m * weight, rounded down
 * or up; `uniform` in (0, 1). */
void dv_resample(const double *weight, size_t n, double uniform, uint32_t *index, size_t m);

#endif
