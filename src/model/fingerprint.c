#include "base/hash.h"
#include "model/model.h"

uint64_t dv_model_fingerprint(const dvbf_model *m) {
  uint64_t hash = dv_hash_start;
  for (int k = 0; k < dv_model_members(m); k++) {
    const dvbf_model *one = dv_model_member(m, k);
    for (size_t i = 0; i < one->parameters.count; i++) {
      const dv_parameter *p = &one->parameters.list[i];
      hash = dv_hash(hash, one->parameters.values + p->offset,
                     (size_t)p->rows * (size_t)p->cols * sizeof *one->parameters.values);
    }
    hash = dv_hash(hash, one->x.shift, (size_t)one->n_x * sizeof *one->x.shift);
    hash = dv_hash(hash, one->x.scale, (size_t)one->n_x * sizeof *one->x.scale);
  }
  return hash;
}
