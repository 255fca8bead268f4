/* Training on principal components of x instead of x.
 *
 * Let the rows of P be orthonormal and x = c P + r, with r small. A network that reads x reads x W = c (P W),
 * up to r W, and an emission h V + b with one sigma for all of x has
 *
 *   ln N(x; h V + b, sigma^2) = ln N(c; (h V + b) P^T, sigma^2) - (n_x - n_c) (ln sigma + ln(2 pi) / 2)
 *                               - |r - (what h V + b predicts outside of P)|^2 / (2 sigma^2)
 *
 * so a small model with weights W_c = P W and V_c = V P^T is the same model, exactly up to r. Outside of P
 * there is nothing to predict; only the mean square of r is needed, for sigma. After training, W = P^T W_c
 * and V = V_c P are the weights of an ordinary model of x. */
#ifndef DV_PROJECTION_H
#define DV_PROJECTION_H

#include "identify/components.h"
#include "model/density.h"

/* All zeros: nothing is projected. */
typedef struct dv_projection {
  dv_density density; /* of the components: that of x, and what the dropped dimensions add to ln p */
  dvbf_model *whole;  /* the model of x itself, into which weights are folded */
  dv_components components;
  dvbf_data data; /* projected; valid may be empty */
} dv_projection;

/* Projects the data for the model `whole`, and owns the model from now on, also after a failure. Refuses
 * models for which the equations above do not hold. Call clear also after a failure. */
dvbf_status dv_projection_init(dv_projection *out, dvbf_model *whole, const dvbf_data *data,
                               dvbf_error *error);
void dv_projection_clear(dv_projection *projection);

/* What the scaling of x, which was done before x was projected, adds to ln p of a frame. */
double dv_projection_log_jacobian(const dv_projection *projection);

/* A model of the components with initial values from the seed, for sequences of that many steps. */
dvbf_status dv_projection_model(dvbf_model **out, const dv_projection *projection, size_t steps,
                                uint64_t seed, dvbf_error *error);
/* The model of x itself: `model` where nothing is projected, else the whole model, into which the parameters
 * of `model`, one of the components, are folded. */
dvbf_model *dv_projection_fold(dv_projection *projection, dvbf_model *model);

#endif
