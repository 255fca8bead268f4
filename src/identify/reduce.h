/* Linear models of many columns are found on their principal components: identification takes time with the
 * third power of the columns, and most of them say the same. With x' the scaled columns and orthonormal rows
 * P,
 *
 *   c = P x'     c_t = H z_t + D u_t + h + e_t, e ~ N(0, R)     is found, and
 *   x'_t = P'(H z_t + D u_t + h) + P' e_t + r_t,  r ~ N(0, s^2 (I - P'P))
 *
 * is the model of x', where s^2 is the variance that the components leave out of each direction outside of
 * them.
 */
#ifndef DV_REDUCE_H
#define DV_REDUCE_H

#include "identify/components.h"
#include "kalman/system.h"
#include "model/model.h"

/* All zeros: nothing is reduced. */
typedef struct dv_reduction {
  dv_components components;
  dvbf_data data; /* the coordinates c of the training and the validation data; valid may be empty */
} dv_reduction;

/* Whether there are so many columns that they are. */
bool dv_reduction_helps(size_t n_x);
/* Nothing is reduced where frames are seen in part. `scaling` is a model of x
 * that scales it. Call clear also after a failure. */
dvbf_status dv_reduction_init(dv_reduction *out, const dvbf_model *scaling, const dvbf_data *data,
                              dvbf_error *error);
void dv_reduction_clear(dv_reduction *reduction);

/* A system of the coordinates becomes one of x'. */
dvbf_status dv_reduction_lift(dv_system *system, const dv_reduction *reduction, dvbf_error *error);

/* What ln p of a frame of x' has beyond that of its coordinates, on average. */
double dv_reduction_log_p(const dv_reduction *reduction);

#endif
