/* Measured and predicted signals of a few sequences, for figures and pages. */
#pragma once

#include <dvbf/dvbf.h>

enum { DV_SIGNAL_COLUMNS = 64, DV_SIGNAL_INPUTS = 16 }; /* of x and u, at most */

/* Predictions of one kind: a free run, or one step ahead. */
typedef struct dv_signal_use {
  const char *name, *mark;        /* in lists; what is before the first prediction */
  size_t first, steps;            /* the first step that is predicted, and how many are */
  const float *mean, *low, *high; /* [count][steps][n_x]; the quantiles 0.05 and 0.95 */
  double *rmse, *fit;             /* [count][n_x] NaN if unknown */
  dvbf_estimates *estimates;      /* has the memory of the first three */
} dv_signal_use;

typedef struct dv_signals {
  dvbf_sequences shown; /* copies of the first sequences, or of their beginnings */
  bool cut;             /* some go on behind what is shown */
  size_t n_uses;
  dv_signal_use use[2];
} dv_signals;

/* Predicts the first sequences with a model: free runs from `observed` steps (0: none) and one step ahead,
 * each if the model can do it. `settings` is of the table "evaluate". Free with dv_signals_clear, also after
 * a failure. */
dvbf_status dv_signals_of(dv_signals *out, const dvbf_model *model, const dvbf_data *data,
                          const dvbf_sequences *sequences, size_t observed, const dvbf_settings *settings,
                          dvbf_error *error);
void dv_signals_clear(dv_signals *signals);

/* Steps that a use predicts of one sequence. */
size_t dv_signal_steps(const dv_signals *signals, const dv_signal_use *use, size_t sequence);

/* The name of column k of x or, with `input`, of u: out has its unit too, as "level (V)". */
void dv_signal_label(char out[64], const dvbf_data *data, bool input, size_t k);
const char *dv_signal_name(char room[32], const dvbf_data *data, bool input, size_t k);
const char *dv_signal_unit(const dvbf_data *data, bool input, size_t k);
/* Label of a sequence in lists. */
void dv_signal_sequence(char out[96], const dvbf_sequences *sequences, size_t i);
/* Its beginning: in seconds, or in steps without a sample time. */
double dv_signal_start(const dvbf_data *data, const dvbf_sequences *sequences, size_t i);
