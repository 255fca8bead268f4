/* Sequences in memory: making, checking, splitting and describing them. */
#ifndef DV_DATASET_H
#define DV_DATASET_H

#include <dvbf/dvbf.h>

/* Allocates the zeroed arrays of a dvbf_sequences whose five sizes are set; on failure it owns nothing. */
dvbf_status dv_sequences_allocate(dvbf_sequences *s, bool with_length, dvbf_error *error);
void dv_sequences_free(dvbf_sequences *s);

/* Valid steps of one sequence. */
static inline size_t dv_sequence_length(const dvbf_sequences *s, size_t sequence) {
  return s->length ? s->length[sequence] : s->steps;
}

/* The first step of one sequence in x, u and state, which are [steps of all][...]. */
static inline size_t dv_sequence_start(const dvbf_sequences *s, size_t sequence) {
  return sequence * s->steps;
}

/* Valid steps of all sequences together. */
static inline size_t dv_sequences_frames(const dvbf_sequences *s) {
  size_t frames = 0;
  for (size_t i = 0; i < s->count; i++) frames += dv_sequence_length(s, i);
  return frames;
}

/* Sets what stands behind the end of each sequence to 0, so that no padding can reach a sum. */
void dv_sequences_clear_padding(dvbf_sequences *s);

/* Checks sizes, lengths and that every value is finite. A message begins with `where` (a file, or "data") and
 * names arrays by `prefix`: "train/" or "". */
dvbf_status dv_sequences_validate(const dvbf_sequences *s, const char *where, const char *prefix,
                                  dvbf_error *error);

/* The same for all splits, and that they fit each other. valid and test may be empty, train may not. */
dvbf_status dv_data_validate(const dvbf_data *data, const char *where, dvbf_error *error);

/* Fills train, valid and test with copies of 80, 10 and 10 per cent of `all`, drawn by `seed`. */
dvbf_status dv_data_split(dvbf_data *data, const dvbf_sequences *all, uint64_t seed, const char *where,
                          dvbf_error *error);

/* Mean and variance of each column over all valid steps. */
void dv_sequences_statistics(const dvbf_sequences *s, double *mean /* [n_x] */, double *variance /* [n_x] */);
void dv_controls_statistics(const dvbf_sequences *s, double *mean /* [n_u] */, double *variance /* [n_u] */);

#endif
