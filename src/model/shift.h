/* Images of sequences moved by whole pixels, for training (setting `shift`). */
#ifndef DV_MODEL_SHIFT_H
#define DV_MODEL_SHIFT_H

#include "model/model.h"

typedef struct dv_shift {
  int height, width, channels;
  int most;     /* pixels, in each direction */
  int *by;      /* [rows][2] lines and pixels of a line that each row is moved by, down and to the right */
  float *image; /* [n_x] room for one */
} dv_shift;

/* As the settings of the model say, for programs of this many rows; refuses x that is not made of images.
 * Clear it also after a failure. */
dvbf_status dv_shift_init(dv_shift *shift, const dvbf_model *model, int rows, dvbf_error *error);
void dv_shift_clear(dv_shift *shift);

/* Draws by how much a row is moved in an update. `place` is that of its sequence in the minibatch. */
void dv_shift_draw(dv_shift *shift, int row, uint64_t seed, uint64_t update, uint32_t place);

/* An image of x [n_x] moved like those of the row; pixels from outside repeat the edge. Valid until the next
 * call. */
const float *dv_shifted(const dv_shift *shift, int row, const float *image);

#endif
