/* The range of the state that training has seen, by which it saturates (dvbf_saturate). */
#ifndef DV_TRAIN_RANGE_H
#define DV_TRAIN_RANGE_H

#include "exec/pass.h"

typedef struct dv_range {
  dvbf_sequences sequences; /* windows of the training data, spread evenly */
  dv_pass pass;
  dvbf_real *low, *high; /* [shards][n_z] */
} dv_range;

/* Windows of `window` steps. Does nothing for a model whose state has no limits. Call clear also after a
 * failure. */
dvbf_status dv_range_init(dv_range *range, const dvbf_model *model, dv_pool *pool,
                          const dvbf_sequences *train, size_t window, dvbf_error *error);
void dv_range_clear(dv_range *range);

/* Filters the training data and sets the limits of the model to `state-limit` times the range that z has
 * there: filtered states follow the data, where free runs may already explode. */
dvbf_status dv_range_measure(dv_range *range, dvbf_model *model, dvbf_error *error);
/* Widens the limits for the updates until the next measurement: training may need more room than it has used
 * so far. */
void dv_range_widen(dvbf_model *model);

#endif
