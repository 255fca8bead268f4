/* Frames of many values that few pictures make up, for tests of projection. */
#ifndef PICTURES_H
#define PICTURES_H

#include "files.h"

#include "math/random.h"

#include <dvbf/dvbf.h>
#include <math.h>

enum { PICTURE_COUNT = 24, PICTURE_STEPS = 7, PICTURE_N_X = 96, PICTURE_RANK = 10 };

/* ---- Data: PICTURE_RANK pictures that come and go ---- */

static inline dvbf_sequences make_pictures(size_t count, float remainder) {
  dvbf_sequences s = {.count = count, .steps = PICTURE_STEPS, .n_x = PICTURE_N_X, .n_u = 2};
  s.x = calloc(count * PICTURE_STEPS * PICTURE_N_X, sizeof *s.x);
  s.u = calloc(count * PICTURE_STEPS * 2, sizeof *s.u);
  dv_random random = dv_random_at(1, DV_STREAM_SIMULATION, 0, 0);
  for (size_t f = 0; f < count * PICTURE_STEPS; f++) {
    for (size_t i = 0; i < PICTURE_N_X; i++) {
      double x = (double)remainder * dv_random_normal(&random);
      for (size_t k = 0; k < PICTURE_RANK; k++)
        x += sin(0.3 * (double)((k + 1) * (f + 1))) * cos(0.11 * (double)((k + 1) * i)) / (double)(k + 1);
      s.x[f * PICTURE_N_X + i] = (float)x;
    }
    s.u[2 * f] = sinf((float)f);
    s.u[2 * f + 1] = cosf(3 * (float)f);
  }
  return s;
}

static inline dvbf_data make_picture_data(float remainder) {
  return (dvbf_data){.train = make_pictures(PICTURE_COUNT, remainder), .valid = make_pictures(6, remainder)};
}

static inline void free_data(dvbf_data *data) {
  dvbf_sequences_free(&data->train);
  dvbf_sequences_free(&data->valid);
}

static inline void lose_frame(dvbf_sequences *s, size_t frame, size_t values) {
  s->gaps = true;
  for (size_t i = 0; i < values; i++) s->x[frame * PICTURE_N_X + i] = NAN;
}

/* Settings from "name value ...". */
static inline dvbf_settings *picture_settings(const char *text) {
  char copy[1000], *rest = copy;
  dvbf_settings *s = NULL;
  dvbf_error error;
  snprintf(copy, sizeof copy,
           "hidden 9 latent 3 systems 4 initial-frames 3 projection 1e-7 seed 5 threads 1 %s", text);
  assert_int_equal(dvbf_settings_new(&s, "train", &error), DVBF_OK);
  for (char *name; (name = strtok_r(rest, " ", &rest));) {
    char *value = strtok_r(rest, " ", &rest);
    if (dvbf_settings_set(s, name, value, &error)) fail_msg("%s", error.message);
  }
  return s;
}

#endif
