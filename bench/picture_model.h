/* Models of images with convolutions (network = conv), to be timed. */
#ifndef DV_BENCH_PICTURE_MODEL_H
#define DV_BENCH_PICTURE_MODEL_H

#include "bench.h"

typedef struct picture_shape {
  int side, channels, frames;
} picture_shape;

/* As many sequences of noise as the twins have. */
static inline dvbf_sequences picture_data(const picture_shape *s) {
  return bench_data(100, (size_t)s->frames, (size_t)s->side * (size_t)s->side * (size_t)s->channels);
}

/* Settings as name, value, .., NULL. */
typedef struct picture_settings {
  char side[16];
  const char *list[7];
} picture_settings;

static inline void picture_set(picture_settings *s, const picture_shape *shape, const char *network) {
  snprintf(s->side, sizeof s->side, "%d", shape->side);
  memcpy(s->list, (const char *[]){"network", network, "image-height", s->side, "image-width", s->side, NULL},
         7 * sizeof *s->list);
}

static inline dvbf_model *picture_model(const dvbf_sequences *data, const picture_shape *shape,
                                        const char *initial, int batch) {
  picture_settings s;
  picture_set(&s, shape, "conv");
  return bench_model(data, initial, batch, s.list);
}

#endif
