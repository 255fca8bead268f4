/* How good a model is, as the search sees it. */
#ifndef DV_REFEREE_H
#define DV_REFEREE_H

#include "evaluate/rolling.h"
#include "search/folds.h"

/* Errors over the whole recording, of which a fold has left out a part: root mean squares over the columns,
 * each in units of its own deviation, over those of the best linear model that does not know the part either.
 * Without a linear model, in units of the deviation. */
typedef struct dv_score {
  double free_run, one_step;
  double total; /* what decides: smaller is better, and that of the linear model is 0 */
} dv_score;

/* What models are measured by. */
typedef struct dv_referee {
  dv_folds folds;
  size_t n_x;
  dv_yardstick yardstick;
  dvbf_settings *how; /* to evaluate, on one thread */
  struct {
    double free_run, one_step;
    double unseen; /* of the free run over the part that the fold leaves out */
  } * linear;      /* [folds + 1] errors of the linear models in these units; 1 where there is none */
} dv_referee;

/* Fits a linear model to each fold, with the scaling of these settings. Free with dv_referee_clear, also
 * after a failure. */
dvbf_status dv_referee_init(dv_referee *r, const dvbf_settings *settings, const dvbf_data *data,
                            dvbf_error *error);
void dv_referee_clear(dv_referee *r);

/* What errors over those of the linear model come to. */
double dv_referee_total(double free_run, double one_step);

/* Judges a model that was trained on a fold. One that predicts numbers that are not finite has infinite
 * errors. Runs on one thread. */
dvbf_status dv_referee_score(dv_score *out, const dv_referee *r, size_t fold, const dvbf_model *model,
                             dvbf_error *error);

/* The error of its free runs over the part alone that the fold leaves out, in units of the deviation; 0 for
 * the fold that leaves out nothing. A model that knows its part of a short recording by heart has a good
 * score and no good prediction. */
dvbf_status dv_referee_unseen(double *out, const dv_referee *r, size_t fold, const dvbf_model *model,
                              dvbf_error *error);

/* A learned filter may lose its way in states that the data never reached; a linear one does not. So learned
 * filters forecast one step ahead only where the best of them has less than this part of the linear model's
 * error. More frames leave fewer such states, and the part rises towards 1. */
double dv_referee_clearly(uint64_t frames);

#endif
