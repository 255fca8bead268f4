/* Shared by the benchmarks: data, a model, time, figures. */
#ifndef DV_BENCH_H
#define DV_BENCH_H

#include "base/memory.h"
#include "base/random.h"
#include "data/dataset.h"
#include "train/updater.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void must(dvbf_status status, const dvbf_error *error) {
  if (!status) return;
  fprintf(stderr, "bench: %s\n", error->message);
  exit(1);
}

/* Noise of the pendulum's size: speed does not depend on what the images show. */
static inline dvbf_sequences bench_data(size_t count, size_t steps, size_t pixels) {
  dvbf_error error;
  dvbf_sequences s = {.count = count, .steps = steps, .n_x = pixels, .n_u = 1};
  must(dv_sequences_allocate(&s, false, &error), &error);
  dv_random r = dv_random_at(1, DV_STREAM_SIMULATION, 0, 0);
  for (size_t i = 0; i < s.count * s.steps * s.n_x; i++) s.x[i] = (float)(0.15 * dv_random_normal(&r));
  for (size_t i = 0; i < s.count * s.steps * s.n_u; i++) s.u[i] = (float)dv_random_normal(&r);
  return s;
}

/* DVBF-LL with a bidirectional initial network over all frames; `more` lists further settings as name, value,
 * .., NULL. */
static inline dvbf_model *bench_model(const dvbf_sequences *data, int batch, const char *const *more) {
  dvbf_error error;
  dvbf_settings *s = NULL;
  dvbf_model *model = NULL;
  char text[64];
  snprintf(text, sizeof text, "%d", batch);
  must(dvbf_settings_new(&s, "train", &error), &error);
  must(dvbf_settings_set(s, "initial", "birnn", &error), &error);
  must(dvbf_settings_set(s, "initial-frames", "0", &error), &error);
  must(dvbf_settings_set(s, "batch-size", text, &error), &error);
  for (; more && *more; more += 2) must(dvbf_settings_set(s, more[0], more[1], &error), &error);
  must(dv_model_new(&model, s, NULL, data, 1, &error), &error);
  dvbf_settings_free(s);
  return model;
}

/* ---- A model in training, to be timed ---- */

typedef struct contender {
  dvbf_model *model;
  dv_pool *pool;
  dv_updater *updater;
} contender;

static inline contender contender_new(const dvbf_sequences *data, int batch, int threads,
                                      const char *const *more) {
  dvbf_error error;
  contender c = {.model = bench_model(data, batch, more)};
  must(dv_pool_new(&c.pool, (unsigned)threads, &error), &error);
  must(dv_updater_new(&c.updater, c.model, c.pool, data, &error), &error);
  dv_updater_run(c.updater, 2);
  return c;
}

/* Seconds per update. */
static inline double contender_time(contender *c, int updates) {
  double began = now();
  dv_updater_run(c->updater, (uint64_t)updates);
  return (now() - began) / updates;
}

/* ---- Figures ---- */

enum { MOST_ROUNDS = 100 };

typedef struct sample {
  double value[MOST_ROUNDS];
  int n;
} sample;

static inline void put(sample *s, double value) {
  if (isfinite(value)) s->value[s->n++] = value;
}

static inline int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static inline double quantile(const sample *s, double q) {
  double sorted[MOST_ROUNDS];
  if (!s->n) return NAN;
  memcpy(sorted, s->value, (size_t)s->n * sizeof *sorted);
  qsort(sorted, (size_t)s->n, sizeof *sorted, by_value);
  return sorted[(int)(q * (s->n - 1) + 0.5)];
}

#endif
