#include "base/memory.h"
#include "data/dataset.h"

#include <math.h>
#include <string.h>

enum { PIECES = 1000, VALUES = 1000, LENGTHS = 100000 }; /* pieces of x, values of a piece, lengths */

/* FNV-1a over the bytes of a word, lowest first. */
static uint64_t mix(uint64_t hash, uint64_t word) {
  for (int i = 0; i < 8; i++) hash = (hash ^ (word >> (8 * i) & 255)) * 0x100000001b3;
  return hash;
}

/* Index of sample i of `samples` that are spread evenly over `count`. Steps are fractions, so no column is
 * left out. */
static size_t place(size_t i, size_t samples, size_t count) {
  return i * (count / samples) + i * (count % samples) / samples;
}

static uint64_t mix_values(uint64_t hash, const float *values, size_t count) {
  size_t samples = count < VALUES ? count : VALUES;
  for (size_t i = 0; i < samples; i++) {
    uint32_t word = 0x7fc00000; /* one NaN for all missing values, whatever their bits */
    float value = values[place(i, samples, count)];
    if (!isnan(value)) memcpy(&word, &value, sizeof word);
    hash = mix(hash, word);
  }
  return hash;
}

/* Mixes pieces of up to `most` steps, each of one sequence, that begin evenly spread over all frames. */
static uint64_t mix_frames(uint64_t hash, const dvbf_sequences *s, size_t most, float *buffer) {
  size_t frames = dv_sequences_frames(s), pieces = frames < PIECES ? frames : PIECES;
  size_t sequence = 0, before = 0; /* frames of the sequences before this one */
  for (size_t i = 0; i < pieces; i++) {
    size_t at = place(i, pieces, frames);
    for (; at - before >= dvbf_sequence_length(s, sequence); sequence++)
      before += dvbf_sequence_length(s, sequence);
    size_t first = at - before, left = dvbf_sequence_length(s, sequence) - first;
    size_t steps = left < most ? left : most;
    hash = mix_values(hash, dv_sequence_x(s, sequence, first, steps, buffer), steps * s->n_x);
    if (s->n_u)
      hash = mix_values(hash, s->u + (dvbf_sequence_start(s, sequence) + first) * s->n_u, steps * s->n_u);
  }
  return hash;
}

static dvbf_status mix_sequences(uint64_t *hash, const dvbf_sequences *s, dvbf_error *error) {
  const uint64_t sizes[] = {s->count, s->steps, s->n_x, s->n_u, s->gaps};
  size_t lengths = s->count < LENGTHS ? s->count : LENGTHS;
  size_t most = s->n_x < VALUES ? VALUES / (s->n_x ? s->n_x : 1) : 1;
  float *buffer = NULL;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) *hash = mix(*hash, sizes[i]);
  for (size_t i = 0; i < lengths; i++)
    *hash = mix(*hash, dvbf_sequence_length(s, place(i, lengths, s->count)));
  dvbf_status status = dv_sequence_buffer(&buffer, s, most, error);
  if (status) return status;
  *hash = mix_frames(*hash, s, most, buffer);
  dv_free(buffer);
  return dv_sequences_intact(s, error);
}

dvbf_status dv_data_fingerprint(uint64_t *out, const dvbf_data *data, dvbf_error *error) {
  uint64_t hash = 0xcbf29ce484222325;
  dvbf_status status = mix_sequences(&hash, &data->train, error);
  if (!status) status = mix_sequences(&hash, &data->valid, error);
  if (!status) *out = hash;
  return status;
}
