/* Training images moved by whole pixels (setting `shift`): dv_shift_draw chooses by how much a row is moved
 * in an update, keyed by seed, update and place, and dv_shifted moves an image, repeating the edge. */
#include "model/shift.h"

#include "base/error.h"
#include "base/memory.h"
#include "math/random.h"

#include <string.h>

dvbf_status dv_shift_init(dv_shift *shift, const dvbf_model *model, int rows, dvbf_error *error) {
  const dv_train_settings *s = model->settings;
  int64_t pixels = s->image_height * s->image_width;
  *shift = (dv_shift){.height = (int)s->image_height, .width = (int)s->image_width, .most = (int)s->shift};
  if (!pixels || model->n_x % pixels)
    return dv_fail(error, DVBF_ARGUMENT,
                   "shift = %d moves images, but x has %d columns and image-height x image-width = %d x %d; "
                   "set shift = 0",
                   shift->most, model->n_x, shift->height, shift->width);
  if (shift->most >= shift->height || shift->most >= shift->width)
    return dv_fail(error, DVBF_ARGUMENT, "shift = %d: must be below the size of the images, %d x %d",
                   shift->most, shift->height, shift->width);
  shift->channels = (int)(model->n_x / pixels);
  shift->by = dv_calloc((size_t)rows, 2 * sizeof *shift->by);
  shift->image = dv_calloc((size_t)model->n_x, sizeof *shift->image);
  return shift->by && shift->image ? DVBF_OK : dv_fail_memory(error, "preparing to move images");
}

void dv_shift_clear(dv_shift *shift) {
  dv_free(shift->by);
  dv_free(shift->image);
  *shift = (dv_shift){0};
}

/* A whole number from -most to most. */
static int draw(uint32_t word, int most) {
  return (int)((uint64_t)word * (uint64_t)(2 * most + 1) >> 32) - most;
}

void dv_shift_draw(dv_shift *shift, int row, uint64_t seed, uint64_t update, uint32_t place) {
  dv_block b = dv_random_block(seed, DV_STREAM_SHIFT, (uint32_t)update, (uint32_t)(update >> 32), place);
  for (int i = 0; i < 2; i++) shift->by[2 * row + i] = draw(b.word[i], shift->most);
}

/* A line of `width` pixels moved to the right by `by`, or to the left if that is negative. */
static void shift_line(float *to, const float *from, int width, int by, size_t channels) {
  size_t far = (size_t)(by < 0 ? -by : by), rest = (size_t)width - far, bytes = channels * sizeof *to;
  const float *edge = by < 0 ? from + (size_t)(width - 1) * channels : from;
  float *gap = by < 0 ? to + rest * channels : to;
  memcpy(by < 0 ? to : to + far * channels, by < 0 ? from + far * channels : from, rest * bytes);
  for (size_t i = 0; i < far; i++) memcpy(gap + i * channels, edge, bytes);
}

const float *dv_shifted(const dv_shift *shift, int row, const float *image) {
  const int *by = shift->by + 2 * (size_t)row;
  size_t channels = (size_t)shift->channels, line = (size_t)shift->width * channels;
  for (int y = 0; y < shift->height; y++) {
    int from = y - by[0];
    from = from < 0 ? 0 : from < shift->height ? from : shift->height - 1;
    shift_line(shift->image + (size_t)y * line, image + (size_t)from * line, shift->width, by[1], channels);
  }
  return shift->image;
}
