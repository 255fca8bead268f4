/* Small data and settings that train in a moment, in memory. Include it before cmocka.h. */
#ifndef RUNS_H
#define RUNS_H

#include "given.h"

#include <math.h>
#include <stdlib.h>

enum { RUN_STEPS = 20, RUN_N_X = 3 };

#define BRIEF                                                                                                \
  "hidden=2 latent=2 systems=2 batch-size=4 shard-size=4 updates=8 validate-every=2 starts=1 "               \
  "initial-frames=2 threads=1 checkpoint-every=0 "

static inline void make_sequences(dvbf_sequences *s, size_t count, float phase) {
  *s = (dvbf_sequences){.count = count, .steps = RUN_STEPS, .n_x = RUN_N_X, .n_u = 1};
  s->x = calloc(count * RUN_STEPS * RUN_N_X, sizeof *s->x);
  s->u = calloc(count * RUN_STEPS, sizeof *s->u);
  for (size_t i = 0; i < count * RUN_STEPS * RUN_N_X; i++) s->x[i] = sinf(phase + 0.37f * (float)i);
  for (size_t i = 0; i < count * RUN_STEPS; i++) s->u[i] = cosf(phase + (float)i);
}

static inline dvbf_data make_data(void) {
  dvbf_data data = {0};
  make_sequences(&data.train, 12, 0);
  make_sequences(&data.valid, 4, 1);
  return data;
}

static inline void free_data(dvbf_data *data) {
  dvbf_sequences_free(&data->train);
  dvbf_sequences_free(&data->valid);
}

#endif
