/* Training on principal components of x in place of x.
 *
 * Let the rows of P be orthonormal and x = c P + r, with r small. A network that reads x reads x W = c (P W),
 * up to r W, and an emission h V + b with one sigma for all of x has
 *
 *   ln N(x; h V + b, sigma^2) = ln N(c; (h V + b) P^T, sigma^2) - (n_x - n_c) (ln sigma + ln(2 pi) / 2)
 *                               - |r - (what h V + b predicts outside of P)|^2 / (2 sigma^2)
 *
 * so that weights W_c = P W and V_c = V P^T of a few components do all the work, exactly up to r: outside of
 * P there is nothing to predict, and of r only its mean square is needed, for sigma. Afterwards W = P^T W_c
 * and V = V_c P are plain weights of a plain model. */
#ifndef DV_PROJECTION_H
#define DV_PROJECTION_H

#include "train/components.h"

typedef struct dv_projection {
  dvbf_model *whole; /* the model of x itself, into which weights are folded */
  dv_components components;
  dvbf_data data; /* train and valid, projected; valid may be empty */
} dv_projection;

/* Projects data for the model `whole`, which it owns from now on, also when it fails. Refuses models for
 * which the equations above do not hold. Clear also after a failure. */
dvbf_status dv_projection_init(dv_projection *out, dvbf_model *whole, const dvbf_data *data,
                               dvbf_error *error);
void dv_projection_clear(dv_projection *projection);

/* A model of the components with first values of that seed, for sequences of so many steps. */
dvbf_status dv_projection_model(dvbf_model **out, const dv_projection *projection, size_t steps,
                                uint64_t seed, dvbf_error *error);
/* Folds its parameters into those of the whole model. */
void dv_projection_fold(dv_projection *projection, const dvbf_model *model);

#endif
