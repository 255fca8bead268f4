#include "search/recording.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

/* So many sequences are enough to validate. */
enum { ENOUGH = 8 };

static void add(dvbf_sequences *to, const dvbf_sequences *from) {
  for (size_t i = 0; i < from->count; i++) {
    to->start[to->count] = dvbf_sequence_start(from, i);
    to->length[to->count++] = (uint32_t)dvbf_sequence_length(from, i);
  }
}

dvbf_status dv_recording_make(dvbf_data *out, const dvbf_data *data, dvbf_error *error) {
  const dvbf_sequences *train = &data->train, *valid = &data->valid;
  *out = *data;
  bool shared = train->x == valid->x && train->u == valid->u && train->source == valid->source;
  if (!valid->count || valid->count >= ENOUGH || !shared) return DVBF_OK;
  size_t count = train->count + 2 * valid->count;
  dvbf_sequences all = *train;
  all.start = dv_calloc(count, sizeof *all.start);
  all.length = dv_calloc(count, sizeof *all.length);
  out->valid = all;
  if (!all.start || !all.length) return dv_fail_memory(error, "looking at the whole recording");
  all.count = 0;
  if (valid->steps > all.steps) all.steps = valid->steps;
  add(&all, train);
  add(&all, valid);
  add(&all, valid);
  out->valid = all;
  return DVBF_OK;
}

void dv_recording_clear(dvbf_data *out, const dvbf_data *data) {
  if (out->valid.start != data->valid.start) dv_free(out->valid.start);
  if (out->valid.length != data->valid.length) dv_free(out->valid.length);
}
