/* Sequences as identification sees them: in double precision, each column in units of its own deviation. */
#ifndef DV_RECORDINGS_H
#define DV_RECORDINGS_H

#include "kalman/system.h"

/* A run of frames of one sequence. */
typedef struct dv_piece {
  size_t first, steps; /* in the arrays */
  size_t before;       /* frames of the same sequence that stand before it */
  int fold;
} dv_piece;

typedef struct dv_recordings {
  int n_x, n_u;
  size_t frames;
  double *x;                    /* [frames][n_x], NaN where missing */
  double *filled;               /* the same with short gaps filled; NULL where most frames have none */
  double *u;                    /* [frames][n_u] */
  double *x_mean, *x_deviation; /* [n_x] that were taken out; a column that is constant has deviation 1 */
  double *u_mean, *u_deviation; /* [n_u] */
  bool *varies;                 /* [n_x] */
  size_t count;
  dv_piece *whole; /* [count] the sequences */
  size_t blocks;
  dv_piece *block; /* [blocks] the same cut for cross-validation, with the number of its fold */
} dv_recordings;

enum { DV_FOLDS = 4 };

/* Least variance of noise in the units of recordings: columns that are constant, or the same as others, would
 * have none, and no likelihood. */
#define DV_NOISE_FLOOR 1e-8

/* Of the training and the validation sequences together: cross-validation needs no part of its own. */
dvbf_status dv_recordings_new(dv_recordings *out, const dvbf_data *data, dvbf_error *error);
void dv_recordings_clear(dv_recordings *recordings);
/* x of a frame as identification takes it, in which NaN stands for what is missing and not filled. */
static inline const double *dv_frame(const dv_recordings *r, size_t frame) {
  return (r->filled ? r->filled : r->x) + frame * (size_t)r->n_x;
}
bool dv_frame_complete(const dv_recordings *recordings, size_t frame);
/* Fills the short gaps anew, by what the smoother of this system says instead of straight lines. */
dvbf_status dv_recordings_refill(dv_recordings *recordings, const dv_system *system, dvbf_error *error);

#endif
