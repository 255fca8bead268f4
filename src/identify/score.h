/* How well a system predicts a piece: one step ahead, and in a free run that sees no x after its beginning.
 */
#ifndef DV_SCORE_H
#define DV_SCORE_H

#include "identify/recordings.h"
#include "kalman/filter.h"
#include "kalman/gains.h"

typedef struct dv_fit_score {
  int n_x;
  double *one_step, *free_run;  /* [n_x] sums of squared errors */
  double *one_mean, *free_mean; /* [n_x] the same of the mean */
} dv_fit_score;

dvbf_status dv_fit_score_new(dv_fit_score *out, int n_x, dvbf_error *error);
void dv_fit_score_clear(dv_fit_score *score);
/* Adds the piece, or the beginning of a long one. The free run begins at the beginning of the sequence, or
 * some frames before the piece, so that it does not profit from a state that was just seen. The
 * first frames, in which the filter finds the state, do not count. The gains are those of the system, for as
 * many steps as dv_fit_score_steps says of the pieces. memory is [dv_fit_score_memory]. */
void dv_fit_score_add(dv_fit_score *score, const dv_gains *gains, const dv_recordings *r,
                      const dv_piece *piece, double *memory);
size_t dv_fit_score_memory(const dv_system *s);
/* Steps of the piece, and before it, that are filtered. */
size_t dv_fit_score_steps(const dv_recordings *r, const dv_piece *piece);

/* Root mean square errors over that of the mean, averaged over the columns that vary: each column counts in
 * its own units. */
typedef struct dv_fit_errors {
  double one_step, free_run;
} dv_fit_errors;
dv_fit_errors dv_fit_score_errors(const dv_fit_score *score, const dv_recordings *r);
/* One number to compare by: a tenth less of either error counts the same. Errors below a thousandth no longer
 * count. */
double dv_fit_judge(dv_fit_errors errors);

#endif
