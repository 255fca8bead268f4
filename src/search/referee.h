/* How good a model is, as the search sees it. */
#ifndef DV_REFEREE_H
#define DV_REFEREE_H

#include "evaluate/rolling.h"

/* Errors over the whole training recording, the part that validates included: root mean squares over the
 * columns, each in units of its own deviation, over those of the best linear model. Without one, in units of
 * the deviation. */
typedef struct dv_score {
  double free_run, one_step;
  double total; /* what decides: smaller is better, and that of the linear model is 0 */
} dv_score;

/* What models are measured by. */
typedef struct dv_referee {
  const dvbf_data *data;
  dv_yardstick yardstick;
  dvbf_settings *how;        /* to evaluate, on one thread */
  double free_run, one_step; /* errors of the linear model in these units; 1 where there is none */
} dv_referee;

/* `linear` may be NULL. Free with dv_referee_clear, also after a failure. */
dvbf_status dv_referee_init(dv_referee *r, const dvbf_data *data, const dvbf_model *linear,
                            dvbf_error *error);
void dv_referee_clear(dv_referee *r);

/* A model that predicts numbers that are not finite has infinite errors. Runs on one thread. */
dvbf_status dv_referee_score(dv_score *out, const dv_referee *r, const dvbf_model *model, dvbf_error *error);

#endif
