/* First values of a model of pictures from how places move.
 *
 * The picture of a small thing has nothing in common with that of the same thing elsewhere, so that no
 * gradient says where it went. The moments of a picture, sums of its pixels times powers of their
 * coordinates, change steadily with the place instead, and they are linear in x. Moments, and how they
 * changed in the two steps before, are a state that is known in every frame: a network learns how it moves,
 * by free runs from known states (start = state). The model of pictures takes that transition, an initial
 * network and a gain that read moments, y = x G, by their linear paths; only its emission has to be learned.
 */
#ifndef DV_PLACES_H
#define DV_PLACES_H

#include "identify/components.h"

#include <dvbf/dvbf.h>

/* Moments of all orders from 1 to 3. A state has them, how they changed since the frame before, and how they
 * had changed then: after a wall the last change alone does not tell the velocity. */
enum { DV_PLACES_HIGHEST = 3, DV_PLACES_MOMENTS = 9, DV_PLACES_BLOCKS = 3 };

/* All zeros: none. */
typedef struct dv_places {
  int order;           /* largest power of the coordinates */
  dv_components ramps; /* axes [count][n_x], what each pixel counts in each moment, and nothing else */
  dvbf_data data;      /* the moments of the scaled frames; valid may be empty */
  dvbf_real *inside;   /* [count][components] the moments of the axes of the components */
  int components;
  double left_out;                 /* mean square of the part of a picture that is outside of these */
  double *mean, *deviation, *pace; /* [count] of the moments; root mean square of their changes */
} dv_places;

/* What is known of the pictures: the data, the model that scales them, their components. */
typedef struct dv_pictures {
  const dvbf_data *data;
  const dvbf_model *whole;
  const dv_components *components;
} dv_pictures;

/* Moments of all orders from 1 to this one, and dimensions of the state that is made of them. */
int dv_places_moments(int order);
int dv_places_state(int order);
/* 1 where first moments tell frames apart nearly as well as all their pixels do, and are places, since all
 * frames have the same light. Else the highest order. 0 where its moments do not tell frames apart, and where
 * one thing turns about a point: its velocity is not linear in moments and their changes. */
dvbf_status dv_places_order(int *out, const dvbf_sequences *s, size_t height, size_t width,
                            dvbf_error *error);

/* What each pixel counts in the moments that `whole`, a model of the images of `data`, is to begin with; of
 * the highest order where that is left to the data. */
dvbf_status dv_places_ramps(dv_components *out, const dvbf_model *whole, const dvbf_data *data,
                            dvbf_error *error);

/* Finds the moments of the training and the validation data. `order` 0: that of dv_places_order. Call clear
 * also after a failure. */
dvbf_status dv_places_init(dv_places *out, const dv_pictures *from, int order, dvbf_error *error);
void dv_places_clear(dv_places *places);

/* Learns how moments move, and sets the parameters of `m`, a new model of the components, on which `train` is
 * what it trains. Whoever follows the training by `options`, which may be NULL, follows this one too; a stop
 * ends it with DVBF_STOPPED. */
dvbf_status dv_start_places(dvbf_model *m, const dv_places *places, const dvbf_sequences *train,
                            uint64_t seed, const volatile int *interrupt, const dvbf_train_options *options,
                            dvbf_error *error);

#endif
