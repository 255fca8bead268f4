/* Coarse to fine: training on components of x begins with the few that hold most of its variance, and the
 * others come in bit by bit.
 *
 * Pictures of a small object in distant places do not overlap, so that no gradient says where it went.
 * Blurred ones do. Blurring scales the components of such pictures by powers of their variance: let v_1 >=
 * v_2 >= ... be the variances along the principal axes. Training sees
 *
 *   component j times (v_j / v_1)^p times g       with g such that the variance of all stays what it is
 *
 * and p falls to 0. With an object as round as a Gaussian of r pixels on an even background, p is that of a
 * blur of r sqrt(2 p) pixels; but nothing here asks whether x is a picture. */
#ifndef DV_COARSE_H
#define DV_COARSE_H

#include "train/projection.h"

/* All zeros: x is always seen as it is. */
typedef struct dv_coarse {
  dv_projection *projection; /* whose data are changed in place */
  float *fine[2];            /* train and valid as they are */
  double power;              /* p at first */
  unsigned level;            /* of the data now: p is that share of `power`, in parts of DV_COARSE_LEVELS */
} dv_coarse;
enum { DV_COARSE_LEVELS = 8 };

/* `directions`: how many the first data shall have, (sum v)^2 / sum v^2 over their variances v. Data that
 * have no more than that stay as they are. */
dvbf_status dv_coarse_init(dv_coarse *out, dv_projection *projection, double directions, dvbf_error *error);
void dv_coarse_clear(dv_coarse *coarse);

/* The level of update i; it changes only where validation is due, so that scores belong to one of them. */
unsigned dv_coarse_level(const dv_train_settings *s, uint64_t i);
/* Lets a model of data of one level read and emit those of another: what networks read of a picture stays the
 * same function of it, so that the state does not change; of the emission those components are scaled that it
 * had learned, and sigma grows by what it had not. */
dvbf_status dv_coarse_refocus(const dv_coarse *coarse, dvbf_model *model, unsigned from, unsigned to,
                              dvbf_error *error);
/* Makes the data those of a level; 0: as they are. */
dvbf_status dv_coarse_set(dv_coarse *coarse, unsigned level, dvbf_error *error);

#endif
