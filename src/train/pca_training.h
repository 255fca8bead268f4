/* Training on principal components of x instead of x, and from coarse to fine data. */
#pragma once

#include "identify/pca.h"
#include "model/density.h"

/* ---- Projection ---- */

/* Let the rows of P be orthonormal and x = c P + r, with r small. A network that reads x reads x W = c (P W),
 * up to r W, and an emission h V + b with one sigma for all of x has
 *
 *   ln N(x; h V + b, sigma^2) = ln N(c; (h V + b) P^T, sigma^2) - (n_x - n_c) (ln sigma + ln(2 pi) / 2)
 *                               - |r - (what h V + b predicts outside of P)|^2 / (2 sigma^2)
 *
 * so a small model with weights W_c = P W and V_c = V P^T is the same model, exactly up to r. Outside of P
 * there is nothing to predict; only the mean square of r is needed, for sigma. After training, W = P^T W_c
 * and V = V_c P are the weights of an ordinary model of x. */

/* All zeros: nothing is projected. */
typedef struct dv_projection {
  dv_density density; /* of the components: that of x, and what the dropped dimensions add to ln p */
  dvbf_model *whole;  /* the model of x itself, into which weights are folded */
  dv_components components;
  dvbf_data data; /* projected; valid may be empty */
} dv_projection;

/* Projects the data for the model `whole`, which it then owns, also after a failure. Refuses models for which
 * the equations do not hold. Call clear also after a failure. */
dvbf_status dv_projection_init(dv_projection *out, dvbf_model *whole, const dvbf_data *data,
                               dvbf_error *error);
void dv_projection_clear(dv_projection *projection);

/* The scaling term of ln p of a frame; x is scaled before it is projected. */
double dv_projection_log_jacobian(const dv_projection *projection);

/* A model of the components with initial values from the seed, for sequences of that many steps. */
dvbf_status dv_projection_model(dvbf_model **out, const dv_projection *projection, size_t steps,
                                uint64_t seed, dvbf_error *error);
/* The model of x: `model` if nothing is projected, else the whole model, into which the parameters of
 * `model`, one of the components, are folded. */
dvbf_model *dv_projection_fold(dv_projection *projection, dvbf_model *model);

/* ---- Coarse to fine ---- */

/* Images of a small object in distant places do not overlap, so no gradient points from one to the other.
 * Blurred ones do. Blurring scales the components of such images by powers of their variance: let v_1 >= v_2
 * >= ... be the variances along the principal axes. Training sees
 *
 *   component j times (v_j / v_1)^p times g       with g such that the total variance stays the same
 *
 * and p falls to 0. For an object as round as a Gaussian of r pixels on an even background, p is a blur of r
 * sqrt(2 p) pixels; but nothing here requires x to be an image. */

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
/* Changes a model from data of one level to those of another: what networks read stays the same function of
 * the image, so the state does not change; the emission scales the components it had learned, and sigma grows
 * by those it had not. */
dvbf_status dv_coarse_refocus(const dv_coarse *coarse, dvbf_model *model, unsigned from, unsigned to,
                              dvbf_error *error);
/* Makes the data those of a level; 0: as they are. */
dvbf_status dv_coarse_set(dv_coarse *coarse, unsigned level, dvbf_error *error);
