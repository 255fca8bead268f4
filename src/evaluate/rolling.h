/* Errors over rolling origins with their baselines, likelihoods of discrete data, and the verdict that they
 * support. */
#pragma once

#include "data/dataset.h"
#include "infer/estimate.h"
#include "model/model.h"

#include <dvbf/dvbf.h>

/* ---- Rolling origins ---- */

enum { DV_ROLLING_BLOCKS = 16 };

/* Squared errors in units of the baseline, of consecutive parts of all scored values: their spread is that of
 * a comparison. */
typedef struct dv_blocks {
  double square[DVBF_WAYS][DV_ROLLING_BLOCKS];
} dv_blocks;

/* Errors of one use of a model, one step ahead or a free run. */
typedef struct dv_rolling {
  dvbf_sequences views;          /* the parts of the data that are predicted; they share its arrays */
  size_t first;                  /* step of a view that is the first one to be scored */
  dvbf_estimates *by[DVBF_WAYS]; /* of the linear and the learned model; NULL if there are none */
  double *square[DVBF_WAYS];     /* [n_x] sums of squared errors */
  double *count;                 /* [n_x] values that were scored */
  dv_blocks blocks;
  bool ranks;                  /* samples of x have a density, so that ranks among them say something */
  double inside_50, inside_90; /* values inside the central 50 % and 90 % of the samples */
  double ranked;               /* of so many */
  size_t n_ranks;
  double *rank; /* [n_x][n_ranks] values with so many samples below them; NULL: too large */
} dv_rolling;

/* Evenly spread sequences longer than `first`, each from its start (unless only `later` origins are wanted)
 * and, if there are few, from later origins too, to its end or, if not 0, over `horizon` steps; `budget`
 * steps in all. Free with dv_windows_free, also after a failure. */
dvbf_status dv_views_choose(dvbf_sequences *out, const dvbf_sequences *s, size_t first, size_t origins,
                            size_t horizon, size_t budget, bool later, dvbf_error *error);

/* Predicts one step ahead or in free runs, from up to ten origins; free with dv_rolling_clear, also after a
 * failure. Of `ask`, here and below, seed, threads, interrupt and ranks count, and the steps to observe
 * before a free run, at least; the model may need more. No origin is left if sequences are too short or the
 * model cannot predict them. */
dvbf_status dv_rolling_run(dv_rolling *r, const dvbf_model *model, const dvbf_sequences *s, bool free_run,
                           const dv_baseline *baseline, const dv_estimate_request *ask, dvbf_error *error);
void dv_rolling_clear(dv_rolling *r);

/* The baseline of a model: mean and deviation of the training data, or of `sequences` if `data` has none;
 * those of the model if it keeps them. Free with dv_baseline_clear, also after a failure. */
dvbf_status dv_baseline_of(dv_baseline *out, const dvbf_model *model, const dvbf_data *data,
                           const dvbf_sequences *sequences, dvbf_error *error);

/* How much of a value with `below` of n samples below it is inside the central share of them. A value like
 * the samples has each rank equally often, so that the shares come out exact on average. */
double dv_rank_inside(double below, double n, double share);

/* Adds the errors up; false when there is no memory. */
bool dv_rolling_scores(dvbf_rolling *out, const dv_rolling *r, const dv_baseline *baseline);

/* The autocorrelations of the errors of the learned model one step ahead. */
dvbf_status dv_whiteness_of(dvbf_whiteness *out, const dv_rolling *r, dvbf_error *error);

/* ---- Discrete data ---- */

/* ln p of consecutive parts of all scored values: their spread is that of a comparison. NaN for unknown
 * methods. */
typedef struct dv_discrete_likelihood {
  dvbf_discrete_likelihood per_frame;
  double mean[DV_ROLLING_BLOCKS], last[DV_ROLLING_BLOCKS], learned[DV_ROLLING_BLOCKS];
} dv_discrete_likelihood;

/* All is NaN if the model's density is not one of these. `train` gives the columns' means and transitions. */
dvbf_status dv_discrete_likelihood_of(dv_discrete_likelihood *out, const dvbf_model *model,
                                      const dvbf_sequences *train, const dvbf_sequences *s,
                                      const dv_estimate_request *ask, dvbf_error *error);

/* ---- Verdict ---- */

typedef struct dv_evidence {
  dv_blocks one_step, free_run;
  dv_discrete_likelihood nats;
  size_t n_u, frames, updates; /* columns of u, steps of the training data, updates of the model */
  const char *model;           /* name of its class */
  bool timeless;
} dv_evidence;

/* Fills `useful` and `sentence` from the scores. */
void dv_verdict_decide(dvbf_verdict *verdict, const dv_evidence *evidence);
