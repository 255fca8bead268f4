/* Counter-based random numbers (Philox 4x32-10 of Random123). A number depends only on its key and counter,
 * not on earlier draws, so results do not depend on threads, shards or order. */
#pragma once

#include "math/portable.h"

#include <Random123/philox.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* The purpose of a number; part of the counter, so that no two uses share numbers. */
typedef enum dv_stream {
  DV_STREAM_INITIALISE = 1, /* parameters */
  DV_STREAM_ORDER,          /* order of the sequences in training, splits */
  DV_STREAM_NOISE,          /* noise of ops in training */
  DV_STREAM_INFERENCE,      /* noise of ops in inference and validation */
  DV_STREAM_SIMULATION,     /* environments */
  DV_STREAM_CONTROLS,       /* random controls, where the data have none */
  DV_STREAM_EMISSION,       /* noise of x */
  DV_STREAM_PARTICLES,      /* seeds of sequences, resampling, v */
  DV_STREAM_GAPS,           /* frames that simulators mark as missing */
  DV_STREAM_PIXELS,         /* noise of images, and of simulated controls */
  DV_STREAM_PLANS,          /* plans that are tried */
  DV_STREAM_FUTURES,        /* noise that they are tried with */
  DV_STREAM_SHIFT           /* pixels that images are moved by in training */
} dv_stream;

typedef struct dv_random_words {
  uint32_t word[4];
} dv_random_words;

static inline dv_random_words dv_random_block(uint64_t seed, uint32_t stream, uint32_t a, uint32_t b,
                                              uint32_t c) {
  philox4x32_ctr_t counter = {{stream, a, b, c}};
  philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
  philox4x32_ctr_t r = philox4x32(counter, key);
  return (dv_random_words){{r.v[0], r.v[1], r.v[2], r.v[3]}};
}

/* Uniform in (0, 1), never 0 or 1. */
static inline double dv_uniform_of(uint32_t word) {
  return (word + 0.5) * (1.0 / 4294967296.0);
}

/* Draws numbers one after the other, for code where speed does not matter: simulators, orders. */
typedef struct dv_random {
  uint64_t seed;
  dv_stream stream;
  uint32_t a, b, next;
  dv_random_words block;
} dv_random;

static inline dv_random dv_random_at(uint64_t seed, dv_stream stream, uint32_t a, uint32_t b) {
  return (dv_random){.seed = seed, .stream = stream, .a = a, .b = b};
}

static inline uint32_t dv_random_word(dv_random *r) {
  if (r->next % 4 == 0) r->block = dv_random_block(r->seed, r->stream, r->a, r->b, r->next / 4);
  return r->block.word[r->next++ % 4];
}

static inline double dv_random_uniform(dv_random *r) {
  return dv_uniform_of(dv_random_word(r));
}

static inline double dv_random_normal(dv_random *r) {
  double radius = sqrt(-2.0 * dv_log(dv_random_uniform(r)));
  return radius * dv_cos(6.283185307179586477 * dv_random_uniform(r));
}

/* A random order of the values (Fisher-Yates). */
static inline void dv_random_shuffle(dv_random *r, uint32_t *values, size_t count) {
  for (size_t i = count; i > 1; i--) {
    size_t j = (size_t)(((uint64_t)dv_random_word(r) * i) >> 32);
    uint32_t swap = values[i - 1];
    values[i - 1] = values[j];
    values[j] = swap;
  }
}

/* A random permutation of 0..count-1. */
static inline void dv_random_permutation(dv_random *r, uint32_t *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = (uint32_t)i;
  dv_random_shuffle(r, out, count);
}
