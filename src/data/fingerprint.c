#include "base/memory.h"
#include "data/dataset.h"

#include <string.h>

enum { SAMPLES = 200000 }; /* numbers of each array, about */

/* FNV-1a over the bytes of a word, lowest first. */
static uint64_t mix(uint64_t hash, uint64_t word) {
  for (int i = 0; i < 8; i++) hash = (hash ^ (word >> (8 * i) & 255)) * 0x100000001b3;
  return hash;
}

static uint64_t mix_floats(uint64_t hash, const float *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t word;
    memcpy(&word, values + i, sizeof word);
    hash = mix(hash, word);
  }
  return hash;
}

/* Steps of x and u that are evenly spread over all; of x wherever it is. */
static dvbf_status mix_steps(uint64_t *hash, const dvbf_sequences *s, dvbf_error *error) {
  size_t all = dv_sequences_frames(s), width = s->n_x + s->n_u;
  size_t stride = all / (SAMPLES / (width < SAMPLES ? width : SAMPLES)) + 1, next = 0, before = 0;
  float *buffer = NULL;
  dvbf_status status = dv_sequence_buffer(&buffer, s, 1, error);
  for (size_t i = 0; i < s->count && !status; i++) {
    size_t length = dvbf_sequence_length(s, i), start = dvbf_sequence_start(s, i);
    for (; next < before + length; next += stride) {
      *hash = mix_floats(*hash, dv_sequence_x(s, i, next - before, 1, buffer), s->n_x);
      if (s->n_u) *hash = mix_floats(*hash, s->u + (start + next - before) * s->n_u, s->n_u);
    }
    before += length;
    *hash = mix(*hash, length);
  }
  dv_free(buffer);
  return status ? status : dv_sequences_intact(s, error);
}

dvbf_status dv_data_fingerprint(uint64_t *out, const dvbf_data *data, dvbf_error *error) {
  const dvbf_sequences *splits[] = {&data->train, &data->valid};
  uint64_t hash = 0xcbf29ce484222325;
  for (int k = 0; k < 2; k++) {
    const dvbf_sequences *s = splits[k];
    const uint64_t sizes[] = {s->count, s->steps, s->n_x, s->n_u};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) hash = mix(hash, sizes[i]);
    dvbf_status status = s->count ? mix_steps(&hash, s, error) : DVBF_OK;
    if (status) return status;
  }
  *out = hash;
  return DVBF_OK;
}
