#include "data/dataset.h"

#include <string.h>

enum { SAMPLES = 200000 }; /* of each array */

/* FNV-1a over the bytes of a word, lowest first. */
static uint64_t mix(uint64_t hash, uint64_t word) {
  for (int i = 0; i < 8; i++) hash = (hash ^ (word >> (8 * i) & 255)) * 0x100000001b3;
  return hash;
}

/* Words of 32 bits, at places that step by a fraction, so that no column is left out. */
static uint64_t mix_array(uint64_t hash, const void *words /* [count] of 4 bytes */, size_t count) {
  size_t samples = count < SAMPLES ? count : SAMPLES;
  const unsigned char *bytes = words;
  for (size_t i = 0; i < samples; i++) {
    size_t at = i * (count / samples) + i * (count % samples) / samples;
    uint32_t word;
    memcpy(&word, bytes + at * sizeof word, sizeof word);
    hash = mix(hash, word);
  }
  return hash;
}

static uint64_t mix_sequences(uint64_t hash, const dvbf_sequences *s) {
  const uint64_t sizes[] = {s->count, s->steps, s->n_x, s->n_u, s->length != NULL};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) hash = mix(hash, sizes[i]);
  hash = mix_array(hash, s->x, s->count * s->steps * s->n_x);
  hash = mix_array(hash, s->u, s->count * s->steps * s->n_u);
  return mix_array(hash, s->length, s->length ? s->count : 0);
}

uint64_t dv_data_fingerprint(const dvbf_data *data) {
  return mix_sequences(mix_sequences(0xcbf29ce484222325, &data->train), &data->valid);
}
