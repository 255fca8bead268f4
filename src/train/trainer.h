/* Training of one model: by gradients or by a fit, checks of data, recovery, validation scores, and the state
 * range. */
#pragma once

#include "data/dataset.h"
#include "engine/threads.h"
#include "identify/linear_fit.h"
#include "model/batches.h"
#include "model/model.h"

#include <dvbf/dvbf.h>

/* Trains as dvbf_train does without a search. Ends at update `pause`, as if it had been stopped there, with
 * the best model so far; 0, or an update past the last: at the end. `own` may be NULL. */
dvbf_status dv_train(dvbf_model **out, const dv_own *own, const dvbf_settings *settings,
                     const dvbf_data *data, const dvbf_train_options *options, uint64_t pause,
                     dvbf_error *error);

/* Seconds on a clock that never goes back. */
double dv_clock(void);

/* ---- Fitted models ---- */

/* As dvbf_train: the run folder gets settings, model and one row of metrics, and a checkpoint only where the
 * fit was stopped. */
dvbf_status dv_train_fitted(dvbf_model **out, dv_fit_fn *fit, const dvbf_settings *settings,
                            const dvbf_data *data, const dvbf_train_options *options, dvbf_error *error);

/* ---- Checks ---- */

/* Refuses data no column of which varies; `x` are the statistics of the training data. */
dvbf_status dv_check_varies(const dv_statistics *x, size_t n_x, dvbf_error *error);

/* Refuses sequences of at most `steps` steps that are shorter than a model of that class and settings needs.
 * `which` are "training" or "validation". */
dvbf_status dv_check_length(const dvbf_model_class *type, const dvbf_settings *settings, size_t steps,
                            const char *which, dvbf_error *error);

/* ---- Recovery ---- */

/* Steps of shorter windows than those of `steps`: half of them, but a few more than the initial network sees.
 * The same if there are no shorter ones. */
size_t dv_recovery_window(const dvbf_model *model, size_t steps);

/* The settings that it changes, and NULL. */
extern const char *const dv_recovery_names[];
/* Settings for a start after `times` diverged ones, on top of `base`; values of the user stay: smaller first
 * systems, shorter gradients, contraction if the model is made of linear systems. 0: those of base. */
dvbf_status dv_recovery_settings(dvbf_model *model, const dvbf_settings *base, uint64_t times,
                                 dvbf_error *error);
/* They, and half the rate each time, as a sentence's part: "0.5 of the learning rate, contraction = 1". */
void dv_recovery_describe(const dvbf_model *model, const dvbf_settings *base, uint64_t times, char *out,
                          size_t size);
/* Factor on the learning rate. */
double dv_recovery_rate(uint64_t times);

/* ---- Validation ---- */

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
dvbf_status dv_validator_init(dv_validator *v, dvbf_model *model, dv_threads *pool,
                              const dvbf_sequences *sequences, double log_jacobian, dvbf_error *error);
void dv_validator_clear(dv_validator *v);
/* Scores with the floor of sigma that training has reached, shared by the ranks of the pool. Allocates
 * nothing.
 */
dvbf_status dv_validator_run(dv_scores *out, dv_validator *v, double log_sigma_floor, dvbf_error *error);

/* ---- State range ---- */

/* The range of the state, by which it saturates (dvbf_saturate). */
typedef struct dv_range {
  dvbf_sequences sequences; /* windows of the training data, spread evenly */
  dv_pass pass;
  dvbf_real *low, *high; /* [shards][n_z] */
} dv_range;

/* Windows of `window` steps. Does nothing for a model whose state has no limits. Call clear also after a
 * failure. */
dvbf_status dv_range_init(dv_range *range, const dvbf_model *model, dv_threads *pool,
                          const dvbf_sequences *train, size_t window, dvbf_error *error);
void dv_range_clear(dv_range *range);

/* Filters the training data and sets the limits to `state-limit` times the range of z there: filtered states
 * follow the data, while free runs may already explode. */
dvbf_status dv_range_measure(dv_range *range, dvbf_model *model, dvbf_error *error);
/* Widens the limits for the updates until the next measurement: training may need more room than it has used
 * so far. */
void dv_range_widen(dvbf_model *model);

/* ---- Innovations ---- */

/* e [n_x][n_x] = mean of e_t e_t', the innovation of the noise-free filter over the training data, in units
 * of the model, over frames that the initial network has not seen. The model's recognition must see it. */
dvbf_status dv_innovation_moments(double *e, const dvbf_model *model, dv_threads *pool,
                                  const dvbf_sequences *train, dvbf_error *error);
