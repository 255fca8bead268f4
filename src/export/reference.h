/* What the library's own filters say, step by step: the expected results of exported code. Standard
 * deviations by linearisation, which the library does not have, come from running the parts in double. */
#ifndef DV_REFERENCE_H
#define DV_REFERENCE_H

#include "export/part.h"

/* As PREFIX_step tells it. */
typedef struct dv_answer {
  double rounding;   /* how far rounding has carried z, as the largest share of 1 + size */
  int ready;         /* 0: nothing, 1: z, 2: x too */
  double *z, *z_std; /* [n_z] */
  double *x, *x_std; /* [n_x] */
} dv_answer;

/* Room for an answer; false when memory is short. Free with dv_answer_clear. */
bool dv_answer_init(dv_answer *answer, int n_z, int n_x);
void dv_answer_clear(dv_answer *answer);

typedef struct dv_reference dv_reference;

/* samples = 0: no sampled filter. The model must outlive it. */
dvbf_status dv_reference_new(dv_reference **out, const dvbf_model *model, size_t samples, uint64_t seed,
                             dvbf_error *error);
void dv_reference_free(dv_reference *reference);

/* The next step is a first one. */
void dv_reference_reset(dv_reference *reference);
/* Takes in x [n_x], NaN where missing, and u [n_u] as the model takes it. */
dvbf_status dv_reference_step(dv_reference *reference, const float *x, const float *u, dv_answer *quiet,
                              dv_answer *sampled, dvbf_error *error);
/* Goes on without observations, under u [n][n_u], and tells x and x_std [n][n_x] of both filters. Nothing can
 * follow it. */
dvbf_status dv_reference_predict(dv_reference *reference, const float *u, int n, dv_answer *quiet,
                                 dv_answer *sampled, dvbf_error *error);

#endif
