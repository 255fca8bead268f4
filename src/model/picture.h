/* Frames in and out of the networks of a model, also where these are convolutions (network = conv). */
#ifndef DV_PICTURE_H
#define DV_PICTURE_H

#include "model/model.h"

bool dv_convolves(const dvbf_model *m);

/* What networks see of x of `steps` steps from `first` on: x itself, or what convolutions make of it. */
typedef struct dv_sight {
  const char *name; /* of weights */
  dvbf_value value; /* [steps][rows][...] */
  double spread;    /* its mean squared length, which sets first weights */
} dv_sight;
dv_sight dv_sight_of(dvbf_program *p, const dvbf_model *m, int first, int steps);

/* head[t] of each frame alone, from the step `first` on, by the network "recognition"; with `path`, also by a
 * linear path where the settings ask for these. */
void dv_recognise_frames(dvbf_program *p, const dvbf_model *m, dvbf_value head, int first, bool path);

/* p->output from the emission's hidden units by transposed convolutions. */
void dv_record_picture(dvbf_program *p, const dvbf_model *m, dvbf_value hidden, dvbf_activation activation);

#endif
