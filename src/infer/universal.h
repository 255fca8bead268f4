/* The universal parameters of a trained model, outside of any program. */
#ifndef DV_INFER_UNIVERSAL_H
#define DV_INFER_UNIVERSAL_H

#include "model/model.h"

/* KL(q(v) || p(v)) / N, the share of one sequence; 0 for point estimates. */
double dv_universal_kl(const dvbf_model *model);

/* v [n_v] ~ q(v), a draw of its own for each seed and step; the means where v is a point. */
void dv_universal_draw(const dvbf_model *model, uint64_t seed, uint32_t step, dvbf_real *v, size_t n_v);
/* The means of v [n_v]. */
void dv_universal_mean(const dvbf_model *model, dvbf_real *v, size_t n_v);

#endif
