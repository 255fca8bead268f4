/* Scores of a model on validation data: the bound, and the error of predicting what it has not seen. */
#ifndef DV_VALIDATE_H
#define DV_VALIDATE_H

#include "exec/pass.h"

typedef struct dv_scores {
  double bound, reconstruction, kl_w, kl_v; /* nats per frame; the bound that training raises, or near it */
  double prediction;                        /* squared error over pixel variance; NaN: nothing to predict */
  double
      one_step; /* the same of the noise-free filter one step ahead, column by column; NaN: not asked for */
} dv_scores;

typedef struct dv_validator {
  dv_pass filter, predict;
  dv_pass particles; /* where training resamples; else it has no workers */
  const dvbf_sequences *sequences;
  double *variance;               /* [n_x] of scaled values */
  double frames;                  /* with a value that is seen */
  double jacobian;                /* what scaling adds to the bound of all frames */
  bool one_step;                  /* is asked for */
  double (*terms)[DV_MOST_TERMS]; /* [shards] */
  double (*errors)[2];            /* [shards] squared error of what is predicted, and its variance */
} dv_validator;

/* The bound of a frame is reported with `log_jacobian` added, and with that of the scaling of the model. */
dvbf_status dv_validator_init(dv_validator *v, dvbf_model *model, dv_pool *pool,
                              const dvbf_sequences *sequences, double log_jacobian, dvbf_error *error);
void dv_validator_clear(dv_validator *v);
/* Scores with the floor of sigma that training has reached, shared by the ranks of the pool. Allocates
 * nothing.
 */
dvbf_status dv_validator_run(dv_scores *out, dv_validator *v, double log_sigma_floor, dvbf_error *error);

#endif
