/* A number that tells data from other data: a checksum of everything that training sees, not of samples. Each
 * value of x and u has a part in it that depends on its place, and so has the length of each sequence. It is
 * made of what is measured of the data anyway, so that a large file is not read again. */
#include "base/hash.h"
#include "data/dataset.h"

static uint64_t mix_columns(uint64_t hash, const dv_statistics *s, size_t width) {
  for (size_t k = 0; k < width; k++) hash = dv_hash_number(dv_hash_number(hash, s->checksum[k]), s->seen[k]);
  return hash;
}

static dvbf_status mix_sequences(uint64_t *hash, const dvbf_sequences *s, dvbf_error *error) {
  const uint64_t sizes[] = {s->count, s->steps, s->n_x, s->n_u, s->gaps};
  dv_measured measured;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) *hash = dv_hash_number(*hash, sizes[i]);
  for (size_t i = 0; i < s->count; i++) *hash = dv_hash_number(*hash, dvbf_sequence_length(s, i));
  if (!s->count) return DVBF_OK;
  dvbf_status status = dv_measured_of(&measured, s, error);
  if (status) return status;
  *hash = mix_columns(mix_columns(*hash, &measured.x, s->n_x), &measured.u, s->n_u);
  dv_measured_free(&measured);
  return DVBF_OK;
}

dvbf_status dv_sequences_fingerprint(uint64_t *out, const dvbf_sequences *s, dvbf_error *error) {
  *out = dv_hash_start;
  return mix_sequences(out, s, error);
}

dvbf_status dv_data_fingerprint(uint64_t *out, const dvbf_data *data, dvbf_error *error) {
  uint64_t hash = dv_hash_start;
  dvbf_status status = mix_sequences(&hash, &data->train, error);
  if (!status) status = mix_sequences(&hash, &data->valid, error);
  if (!status) *out = hash;
  return status;
}
