/* Shared by the programs of the benchmark: data, a model in training, time, figures. */
#ifndef DV_BENCH_H
#define DV_BENCH_H

#include "base/memory.h"
#include "data/dataset.h"
#include "math/random.h"
#include "train/updater.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double clock_seconds(clockid_t which) {
  struct timespec t;
  clock_gettime(which, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double now(void) {
  return clock_seconds(CLOCK_MONOTONIC);
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

/* DVBF-LL; `initial` is "birnn", which sees all frames, or "mlp", which sees 5. `more` lists further settings
 * as name, value, .., NULL, and may be NULL. */
static inline dvbf_model *bench_model(const dvbf_sequences *data, const char *initial, int batch,
                                      const char *const *more) {
  dvbf_error error;
  dvbf_settings *s = NULL;
  dvbf_model *model = NULL;
  char text[64];
  snprintf(text, sizeof text, "%d", batch);
  must(dvbf_settings_new(&s, "train", &error), &error);
  must(dvbf_settings_set(s, "initial", initial, &error), &error);
  must(dvbf_settings_set(s, "initial-frames", strcmp(initial, "mlp") ? "0" : "5", &error), &error);
  must(dvbf_settings_set(s, "batch-size", text, &error), &error);
  for (; more && *more; more += 2) must(dvbf_settings_set(s, more[0], more[1], &error), &error);
  must(dv_model_new(&model, s, NULL, data, 1, &error), &error);
  dvbf_settings_free(s);
  return model;
}

/* ---- A model in training, to be timed ---- */

typedef struct contender {
  dvbf_model *model;
  dv_threads *pool;
  dv_updater *updater;
  double usual; /* seconds per update when it was made */
} contender;

/* Seconds per update. */
static inline double contender_time(contender *c, int updates) {
  double began = now();
  dv_updater_run(c->updater, (uint64_t)updates);
  return (now() - began) / updates;
}

static inline contender contender_new(const dvbf_sequences *data, const char *initial, int batch, int threads,
                                      const char *const *more) {
  dvbf_error error;
  contender c = {.model = bench_model(data, initial, batch, more)};
  must(dv_threads_new(&c.pool, (unsigned)threads, &error), &error);
  must(dv_updater_new(&c.updater, c.model, c.pool, data, false, &error), &error);
  dv_updater_run(c.updater, 2);
  c.usual = contender_time(&c, 2);
  return c;
}

static inline void contender_free(contender *c) {
  dv_updater_free(c->updater);
  dv_threads_free(c->pool);
  dvbf_model_free(c->model);
}

/* As many updates of a usual time as fill a slice of so many seconds: two at least. */
static inline int updates_in(double slice, double usual) {
  double n = slice / usual;
  return n > 2 ? (int)fmin(n, 10000) : 2;
}

/* VmHWM of this process, in MiB. */
static inline double peak_mib(void) {
  char line[256];
  double kilobytes = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, "VmHWM:", 6)) kilobytes = strtod(line + 6, NULL);
  if (f) fclose(f);
  return kilobytes / 1024;
}

/* ---- Figures ---- */

typedef struct sample {
  double *value; /* [n] */
  size_t n, room;
} sample;

/* What could not be measured is NaN and is left out. */
static inline void put(sample *s, double value) {
  if (isnan(value)) return;
  if (s->n == s->room) {
    size_t room = s->room ? 2 * s->room : 16;
    double *grown = dv_realloc(s->value, room, sizeof *grown);
    if (!grown) return;
    s->value = grown;
    s->room = room;
  }
  s->value[s->n++] = value;
}

static inline int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* NaN of an empty sample. */
static inline double quantile(const sample *s, double q) {
  double *sorted = s->n ? dv_calloc(s->n, sizeof *sorted) : NULL;
  if (!sorted) return (double)NAN;
  memcpy(sorted, s->value, s->n * sizeof *sorted);
  qsort(sorted, s->n, sizeof *sorted, by_value);
  double value = sorted[(size_t)(q * (double)(s->n - 1) + 0.5)];
  dv_free(sorted);
  return value;
}

static inline double median(const sample *s) {
  return quantile(s, 0.5);
}

/* a / b round by round, so that a machine that is slow for a while is so for both. Free with sample_free. */
static inline sample ratios(const sample *a, const sample *b) {
  sample r = {0};
  for (size_t i = 0; i < a->n && i < b->n; i++) put(&r, a->value[i] / b->value[i]);
  return r;
}

static inline void sample_free(sample *s) {
  dv_free(s->value);
  *s = (sample){0};
}

#endif
