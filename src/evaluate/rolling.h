/* Errors of prediction over many origins: one step ahead, and free runs under the recorded controls. */
#ifndef DV_ROLLING_H
#define DV_ROLLING_H

#include "base/settings.h"
#include "model/model.h"

#include <dvbf/dvbf.h>

/* What columns are measured by, of the training data. */
typedef struct dv_yardstick {
  double *mean; /* [n_x] */
  double *unit; /* [n_x] standard deviation; 0: the column does not vary and is not scored */
} dv_yardstick;

enum { DV_ROLLING_BLOCKS = 16 };

/* Squared errors in units of the yardstick, of consecutive parts of all that is scored: they tell the spread
 * of a comparison. */
typedef struct dv_blocks {
  double square[DVBF_WAYS][DV_ROLLING_BLOCKS];
} dv_blocks;

/* Errors of one use of a model, one step ahead or a free run. */
typedef struct dv_rolling {
  dvbf_sequences views;          /* the parts of the data that are predicted; they share its arrays */
  size_t first;                  /* step of a view that is the first one to be scored */
  dvbf_estimates *by[DVBF_WAYS]; /* of the linear and the learned model; NULL where there are none */
  double *square[DVBF_WAYS];     /* [n_x] sums of squared errors */
  double *count;                 /* [n_x] values that were scored */
  dv_blocks blocks;
  bool ranks;                  /* samples of x have a density, so that ranks among them say something */
  double inside_50, inside_90; /* values inside the central 50 % and 90 % of the samples */
  double ranked;               /* of so many */
  size_t n_ranks;
  double *rank; /* [n_x][n_ranks] values with so many samples below them; NULL: too large */
} dv_rolling;

/* What is predicted. */
typedef struct dv_rolling_plan {
  bool free_run;  /* else one step ahead */
  size_t origins; /* of free runs, at most; 0: the usual number */
  size_t horizon; /* steps of each free run; 0: to the end of its sequence */
} dv_rolling_plan;

/* Fills them, with settings of the table "evaluate"; free with dv_rolling_clear, also after a failure. No
 * origin is left where sequences are too short, or where the model cannot do it. */
dvbf_status dv_rolling_run(dv_rolling *r, const dvbf_model *model, const dvbf_sequences *s,
                           dv_rolling_plan plan, const dv_yardstick *yardstick, const dvbf_settings *settings,
                           dvbf_error *error);
void dv_rolling_clear(dv_rolling *r);

/* The yardstick for a model: mean and deviation of the training data, or of `sequences` where `data` has
 * none; those of the model where it keeps them. Free with dv_yardstick_clear, also after a failure. */
dvbf_status dv_yardstick_of(dv_yardstick *out, const dvbf_model *model, const dvbf_data *data,
                            const dvbf_sequences *sequences, dvbf_error *error);
void dv_yardstick_clear(dv_yardstick *yardstick);

/* How much of a value with `below` of n samples below it is inside the central share of them. A value like
 * the samples has each rank equally often, so that the shares come out exact on average. */
double dv_rank_inside(double below, double n, double share);

/* Adds the errors up; false when there is no memory. */
bool dv_rolling_scores(dvbf_rolling *out, const dv_rolling *r, const dv_yardstick *yardstick);

/* The autocorrelations of the errors of the learned model one step ahead. */
dvbf_status dv_whiteness_of(dvbf_whiteness *out, const dv_rolling *r, dvbf_error *error);

#endif
