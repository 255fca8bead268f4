/* First values of a model: from an identified linear system (start = linear), from moments of images (start =
 * places), or with the state equal to x (start = state). */
#pragma once

#include "train/pca_training.h"

#include <dvbf/dvbf.h>

/* ---- Linear start ---- */

/* Sets the parameters of a new model to the best linear system of the data (start = linear), so that at
 * update 0 it is a Kalman filter. Refuses a model that a linear system cannot be part of. `interrupt`, NULL
 * or a flag, ends it with DVBF_STOPPED. */
dvbf_status dv_start_linear(dvbf_model *m, const dvbf_data *data, const volatile int *interrupt,
                            dvbf_error *error);

/* ---- Start from moments of images ---- */

/* The image of a small thing has nothing in common with the same thing elsewhere, so no gradient says where
 * it went. The moments of an image, sums of its pixels times powers of their coordinates, change steadily
 * with the position and are linear in x. Moments and their last two changes are a state that is known in
 * every frame: a network learns its motion by free runs from known states (start = state). The model of
 * images takes that transition, an initial network and a gain that read moments, y = x G, by their linear
 * paths; only its emission has to be learned. */

/* Moments of orders 1 to 3. A state has them, their change since the frame before, and the change before
 * that: after a wall the last change alone does not tell the velocity. */
enum { DV_PLACES_HIGHEST = 3, DV_PLACES_MOMENTS = 9, DV_PLACES_BLOCKS = 3 };

/* All zeros: none. */
typedef struct dv_image_moments {
  int order;           /* largest power of the coordinates */
  dv_components ramps; /* axes [count][n_x], what each pixel counts in each moment, and nothing else */
  dvbf_data data;      /* the moments of the scaled frames; valid may be empty */
  dvbf_real *inside;   /* [count][components] the moments of the axes of the components */
  int components;
  double left_out;                 /* mean square of the part of a picture that is outside of these */
  double *mean, *deviation, *pace; /* [count] of the moments; root mean square of their changes */
} dv_image_moments;

/* Moments of all orders from 1 to this one, and dimensions of the state that is made of them. */
static inline int dv_image_moments_moments(int order) {
  return order * (order + 3) / 2;
}
static inline int dv_image_moments_state(int order) {
  return DV_PLACES_BLOCKS * dv_image_moments_moments(order);
}
/* 1 if first moments tell frames apart nearly as well as all their pixels do and are positions, since all
 * frames have the same light; else the highest order. 0 if moments do not tell frames apart, and if one thing
 * turns about a point: its velocity is not linear in moments and their changes. */
dvbf_status dv_image_moments_order(int *out, const dvbf_sequences *s, size_t height, size_t width,
                                   dvbf_error *error);

/* The weight of each pixel in the moments that `whole`, a model of the images of `data`, begins with; of the
 * highest order if that is left to the data. */
dvbf_status dv_image_moments_ramps(dv_components *out, const dvbf_model *whole, const dvbf_data *data,
                                   dvbf_error *error);

/* Finds the moments of the training and the validation data, before their projection. `order` 0: that of
 * dv_image_moments_order. Call clear also after a failure. */
dvbf_status dv_image_moments_init(dv_image_moments *out, const dv_projection *of, const dvbf_data *data,
                                  int order, dvbf_error *error);
void dv_image_moments_clear(dv_image_moments *places);

/* Learns the motion of moments and sets the parameters of `m`, a new model of the components with training
 * data `train`. Callbacks of `options`, which may be NULL, follow this training too; a stop ends it with
 * DVBF_STOPPED. */
dvbf_status dv_start_moments(dvbf_model *m, const dv_image_moments *places, const dvbf_sequences *train,
                             uint64_t seed, const volatile int *interrupt, const dvbf_train_options *options,
                             dvbf_error *error);

/* ---- Start with known states ---- */

/* The state of the model is x (start = state): z_1 = x_1, x = z, and the linear paths of the transition are
 * those of least squares. Only its motion is trained, so z stays what it is. */

/* Sets the parameters of a new model. Refuses one that cannot have such a state. Dimensions of z beyond those
 * of x begin at 0. */
dvbf_status dv_start_state(dvbf_model *m, const dvbf_sequences *train, dvbf_error *error);

/* The parameters whose names begin with one of these, which end with NULL. */
dvbf_status dv_part_named(dv_part *out, const dvbf_model *m, const char *const *beginnings,
                          dvbf_error *error);

/* Sets a parameter to 0 and returns its values; NULL: there is none of the name. */
dvbf_real *dv_state_clear(const dvbf_model *m, const char *name);
/* z_1 = w_1, with mean 0 unless initial.output is set, and that deviation. */
void dv_state_plain_start(const dvbf_model *m, double deviation);
