/* A small model on small random data, to train and to infer with. Include it before cmocka.h. */
#ifndef SMALL_MODEL_H
#define SMALL_MODEL_H

#include "data/dataset.h"
#include "evaluate/evaluate.h"
#include "math/random.h"
#include "model/model.h"
#include "train/updater.h"

#include <dvbf/dvbf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_X = 6, N_U = 2, STEPS = 8, COUNT = 120 };

static const char common[] = "latent=3 systems=4 hidden=9 initial-frames=3 batch-size=20 shard-size=6 "
                             "decay=none sigma-floor-until=0 filter-dropout=0.3 mixing-hidden=5";

typedef struct fixture {
  dvbf_sequences sequences;
  dvbf_model *model;
} fixture;

static inline dvbf_settings *make_settings(const char *text) {
  dvbf_settings *settings = NULL;
  dvbf_error error;
  char line[512], *rest = line;
  assert_int_equal(dvbf_settings_new(&settings, "train", &error), DVBF_OK);
  snprintf(line, sizeof line, "%s %s", common, text);
  for (char *word; (word = strsep(&rest, " "));) {
    char *value = strchr(word, '=');
    if (!value) continue;
    *value++ = 0;
    if (dv_settings_give(settings, word, value, &error)) fail_msg("%s", error.message);
  }
  return settings;
}

static inline void begin(fixture *f, const char *text) {
  dvbf_error error;
  dvbf_settings *settings = make_settings(text);
  dv_random random = dv_random_at(2, DV_STREAM_SIMULATION, 0, 0);
  *f = (fixture){.sequences = {.count = COUNT, .steps = STEPS, .n_x = N_X, .n_u = N_U}};
  assert_int_equal(dv_sequences_allocate(&f->sequences, true, &error), DVBF_OK);
  for (size_t i = 0; i < COUNT * STEPS * N_X; i++) f->sequences.x[i] = (float)dv_random_uniform(&random);
  for (size_t i = 0; i < COUNT * STEPS * N_U; i++) f->sequences.u[i] = (float)dv_random_normal(&random);
  for (size_t i = 0; i < COUNT; i++) f->sequences.length[i] = STEPS - (uint32_t)(i % 3);
  if (dv_model_new(&f->model, settings, NULL, &f->sequences, 6, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
}

static inline void end(fixture *f) {
  dvbf_model_free(f->model);
  dvbf_sequences_free(&f->sequences);
}

static inline dv_threads *new_pool(unsigned threads) {
  dv_threads *pool = NULL;
  assert_int_equal(dv_threads_new(&pool, threads, NULL), DVBF_OK);
  return pool;
}

/* The parameters of the model after some updates, on that many threads. The caller frees. */
static inline dvbf_real *trained(fixture *f, unsigned threads, uint64_t updates) {
  dv_threads *pool = new_pool(threads);
  dv_updater *updater = NULL;
  assert_int_equal(dv_updater_new(&updater, f->model, pool, &f->sequences, false, NULL), DVBF_OK);
  assert_int_equal(dv_updater_run(updater, updates), updates);
  size_t bytes = f->model->parameters.size * sizeof(dvbf_real);
  dvbf_real *copy = malloc(bytes);
  assert_non_null(copy);
  memcpy(copy, f->model->parameters.values, bytes);
  dv_updater_free(updater);
  dv_threads_free(pool);
  return copy;
}

static inline dv_paths *infer(const dvbf_model *m, const dvbf_sequences *s, unsigned threads,
                              size_t observe) {
  dv_paths *paths = NULL;
  dvbf_error error;
  dv_path_options options = {.observe = observe, .seed = 5, .threads = threads};
  if (dv_paths_of(&paths, m, s, &options, &error)) fail_msg("%s", error.message);
  return paths;
}

static inline void expect_same_paths(dv_paths *a, dv_paths *b) {
  size_t frames = a->count * a->steps;
  assert_memory_equal(a->z, b->z, frames * a->n_z * sizeof *a->z);
  assert_memory_equal(a->x, b->x, frames * a->n_x * sizeof *a->x);
  assert_memory_equal(a->log_likelihood, b->log_likelihood, frames * sizeof *a->log_likelihood);
  assert_memory_equal(a->kl, b->kl, frames * sizeof *a->kl);
  dv_paths_free(b);
}

#endif
