/* Importance weighting: whole paths from q, weighed by p(x, w) / q(w). Works for every model. */
#ifndef DV_IMPORTANCE_H
#define DV_IMPORTANCE_H

#include "exec/worker.h"

typedef struct dv_importance {
  const dvbf_model *model;
  size_t paths, most; /* paths, and steps of the longest sequence */
  dvbf_program program;
  dv_worker worker;
  dv_conditions conditions;
  uint32_t *index, *key; /* [rows] */
  double jacobian;       /* of a whole frame */
  double *log_weight;    /* [paths] */
  dvbf_real *z;          /* [paths][most][n_z], NULL where nobody asks */
} dv_importance;

/* For sequences like those of `s`. Free with dv_importance_clear, also after a failure. */
dvbf_status dv_importance_init(dv_importance *importance, const dvbf_model *model, const dvbf_sequences *s,
                               size_t paths, bool keep_z, dvbf_error *error);
void dv_importance_clear(dv_importance *importance);

/* Draws and weighs paths through sequence i and returns ln (1/N sum of the weights), an estimate of ln p(x)
 * that is too low on average, given one v ~ q(v). Allocates nothing. */
double dv_importance_run(dv_importance *importance, const dvbf_sequences *s, size_t i, uint64_t seed);

#endif
