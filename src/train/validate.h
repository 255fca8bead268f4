/* Scores of a model on validation data: the bound, and the error of predicting what it has not seen. */
#ifndef DV_VALIDATE_H
#define DV_VALIDATE_H

#include "train/pass.h"

typedef struct dv_scores {
  double bound, reconstruction, kl_w, kl_v; /* nats per frame */
  double prediction;                        /* squared error over pixel variance; NaN: nothing to predict */
} dv_scores;

typedef struct dv_validator {
  dv_pass filter, predict;
  const dvbf_sequences *sequences;
  double variance;           /* of a frame, summed over its entries */
  double (*terms)[DV_TERMS]; /* [shards] */
  double (*errors)[2];       /* [shards] squared error and number of predicted frames */
} dv_validator;

dvbf_status dv_validator_init(dv_validator *v, dvbf_model *model, dv_pool *pool,
                              const dvbf_sequences *sequences, dvbf_error *error);
void dv_validator_clear(dv_validator *v);
/* Scores with the floor of sigma that training has reached. Allocates nothing. */
dv_scores dv_validator_run(dv_validator *v, double log_sigma_floor);

#endif
