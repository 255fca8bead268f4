/* First values of a model of pictures from how places move.
 *
 * The picture of a small thing has nothing in common with that of the same thing elsewhere, so that no
 * gradient says where it went. The moments of a picture, sums of its pixels times powers of their
 * coordinates, change steadily with the place instead, and they are linear in x. So a model of few moments
 * learns the dynamics first. Its networks that read moments, y = x G, read x by the weights G W, and are
 * those of an ordinary model; only its emission has to be learned anew. */
#ifndef DV_PLACES_H
#define DV_PLACES_H

#include "train/components.h"

#include <dvbf/dvbf.h>

/* All zeros: none. */
typedef struct dv_places {
  int order;           /* largest power of the coordinates */
  dv_components ramps; /* axes [count][n_x], what each pixel counts in each moment, and nothing else */
  dvbf_data data;      /* the moments of the scaled frames; valid may be empty */
  dvbf_real *inside;   /* [count][components] the moments of the axes of the components */
  int components;
} dv_places;

/* What is known of the pictures: the data, the model that scales them, their components and their coordinates
 * in these. */
typedef struct dv_pictures {
  const dvbf_data *data;
  const dvbf_model *whole;
  const dv_components *components;
  const dvbf_sequences *projected;
} dv_pictures;

/* Finds the moments of the training and the validation data. `order` 0: the lowest by whose moments frames
 * are told apart nearly as well as by all their pixels. Call clear also after a failure. */
dvbf_status dv_places_init(dv_places *out, const dv_pictures *from, int order, dvbf_error *error);
void dv_places_clear(dv_places *places);

/* Trains a model of the moments with the settings of `m`, a new model of the components. Whoever follows the
 * training by `options`, which may be NULL, follows this one too; a stop ends it with DVBF_STOPPED. */
dvbf_status dv_places_train(dvbf_model **out, const dv_places *places, const dvbf_model *m, uint64_t seed,
                            const volatile int *interrupt, const dvbf_train_options *options,
                            dvbf_error *error);
/* Sets all parameters of m but those of its emission. */
dvbf_status dv_places_take(dvbf_model *m, const dvbf_model *small, const dv_places *places,
                           dvbf_error *error);
/* The parameters of the emission, which are trained alone at first. */
dvbf_status dv_emission_part(dv_part *out, const dvbf_model *m, dvbf_error *error);

#endif
