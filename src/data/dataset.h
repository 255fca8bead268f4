/* Sequences of observations and controls: making, checking, cutting, splitting and describing them. */
#pragma once

#include "base/ranks.h"
#include "settings_tables.h"

/* Allocates the zeroed arrays of a dvbf_sequences whose five sizes are set; on failure it owns nothing. */
dvbf_status dv_sequences_allocate(dvbf_sequences *s, bool with_length, dvbf_error *error);

/* Numbers of a pixel; 1 if x is no image. */
static inline size_t dv_image_channels(const dvbf_data *data) {
  return data->image_channels > 1 ? data->image_channels : 1;
}

/* Steps of all sequences together. */
static inline size_t dv_sequences_frames(const dvbf_sequences *s) {
  size_t frames = 0;
  for (size_t i = 0; i < s->count; i++) frames += dvbf_sequence_length(s, i);
  return frames;
}

/* Reads frames of x; several threads may do so at once. What cannot be read becomes NaN, and the first
 * failure is kept. An implementation fills in the functions and stores its own data after this struct. */
struct dvbf_source {
  bool (*read)(dvbf_source *source, uint64_t first, size_t frames, float *out);
  void (*free)(dvbf_source *source);
  bool failed;
  char path[512]; /* for the message */
  float *limits;  /* [2][n_x] least and largest: what is not between them is missing; NULL: none */
  dv_ranks *team; /* ranks that look at its frames together at this time; NULL: each for itself */
};

/* x of steps first .. first + steps - 1 of a sequence: in memory, or read into `buffer` [steps][n_x]. */
const float *dv_sequence_x(const dvbf_sequences *s, size_t sequence, size_t first, size_t steps,
                           float *buffer);
/* Copies x of its first steps into out [steps][n_x], from memory or straight from its file. */
void dv_sequence_read(const dvbf_sequences *s, size_t sequence, size_t steps, float *out);
/* Memory for such a piece; NULL, without an error, if none is needed. */
dvbf_status dv_sequence_buffer(float **out, const dvbf_sequences *s, size_t steps, dvbf_error *error);
/* Whether all that was read from a source so far could be read. */
dvbf_status dv_sequences_intact(const dvbf_sequences *s, dvbf_error *error);

/* Data whose x has more numbers than this (tests make it smaller) are large: nobody reads them whole. All
 * callers measure, check and compare the same sample, a 64th of this many numbers in spread pieces. */
extern uint64_t dv_large;
/* One of this many pieces is read; 1: all of them. */
size_t dv_sequences_thinned(const dvbf_sequences *s);
/* *out = some sequences of large data, spread evenly, with about dv_large / divisor numbers of x; all of them
 * if x is not large. It owns `start` and `length` alone: free with dv_windows_free. */
dvbf_status dv_sequences_some(dvbf_sequences *out, const dvbf_sequences *s, uint64_t divisor,
                              dvbf_error *error);

/* Calls `each` with the rows [width] of all steps until one fails: those of `values` [frames][width] or, if
 * it is NULL, of x; of large x, the rows of some pieces. */
typedef dvbf_status dv_row_fn(void *user, size_t sequence, size_t step, const float *row, dvbf_error *error);
dvbf_status dv_visit_rows(const dvbf_sequences *s, const float *values, size_t width, dv_row_fn *each,
                          void *user, dvbf_error *error);

/* Findings from rows, made chunk by chunk and joined in order, whoever has read which chunk. Data of at most
 * dv_chunk numbers (tests make it smaller) are one chunk; large data have 64. */
extern uint64_t dv_chunk;
typedef struct dv_survey {
  void *user;
  void (*begin)(void *user); /* empties the part, which is what is found in one chunk */
  dv_row_fn *row;            /* adds a row to it */
  void (*end)(void *user);   /* no more rows come; NULL: nothing is to be done */
  void (*join)(void *user, const void *part, bool first); /* to those before it, if it is not the first */
  void *part;
  size_t bytes; /* of it; other ranks get them as they are */
} dv_survey;
/* If the source of x has ranks, each rank reads its share of the chunks and all get the whole result: all
 * must call this alike. A single chunk is read by everyone. */
dvbf_status dv_survey_rows(const dvbf_sequences *s, const float *values, size_t width,
                           const dv_survey *survey, dvbf_error *error);
/* Rows of a chunk; as many as there are, or more, if there is only one. */
uint64_t dv_rows_in_chunk(const dvbf_sequences *s, size_t width, bool of_x);

/* Sets the padding of each sequence to 0, so that it cannot reach a sum. */
void dv_sequences_clear_padding(dvbf_sequences *s);

/* Refuses sequences without an array that their width promises. */
dvbf_status dv_sequences_filled(const dvbf_sequences *s, const char *where, const char *prefix,
                                dvbf_error *error);

/* The same, and checks sizes and lengths. */
dvbf_status dv_sequences_check_sizes(const dvbf_sequences *s, const char *where, const char *prefix,
                                     dvbf_error *error);

/* Checks sizes, lengths and that every value is finite, or missing where gaps are allowed. A message begins
 * with `where` (a file, or "data") and names arrays by `prefix`: "train/" or "". */
dvbf_status dv_sequences_validate(const dvbf_sequences *s, const char *where, const char *prefix,
                                  dvbf_error *error);

/* Reads all values of x and u once more, also from a file: they may have changed. */
dvbf_status dv_sequences_recheck(const dvbf_sequences *s, const char *where, dvbf_error *error);

/* The same for all splits, and that they fit each other. valid and test may be empty, train may not. */
dvbf_status dv_data_validate(const dvbf_data *data, const char *where, dvbf_error *error);

/* Removes values of x and u of `s`, the split that `prefix` names ("" or "train/"), at least `times`
 * deviations away (0: none); notes report all outliers. `parts` are all its parts, or `s` itself. */
dvbf_status dv_data_without_outliers(dvbf_data *data, dvbf_sequences *s, dvbf_sequences *const *parts,
                                     size_t n_parts, const char *prefix, double times, dvbf_error *error);

/* Splits `all` into train, valid and test; data owns its arrays afterwards, the caller after a failure. */
dvbf_status dv_data_split(dvbf_data *data, const dvbf_sequences *all, const dv_data_settings *how,
                          const char *where, dvbf_error *error);

/* *out = windows onto `s` of `window` steps, `stride` apart and the last one at the very end of each
 * sequence; shorter sequences stay whole. It owns `start` and `length` alone: free with dv_windows_free. */
dvbf_status dv_windows_cut(dvbf_sequences *out, const dvbf_sequences *s, size_t window, size_t stride,
                           dvbf_error *error);
void dv_windows_free(dvbf_sequences *windows);

/* ---- Facts ---- */

/* Facts that take long to find are kept with the arrays of sequences, for them and for all parts that share
 * these. A key tells sequences and values apart, so a fact is found anew where values have changed; x in a
 * file counts as unchanged until dv_facts_forget. */

/* Sequences whose arrays they own keep facts from now on. */
dvbf_status dv_facts_begin(dvbf_sequences *s, dvbf_error *error);
void dv_facts_free(dvbf_facts *facts);
/* Nobody may hold a fact meanwhile. */
void dv_facts_forget(dvbf_facts *facts);
/* Of some sequences, x and u. False: they keep no facts. */
bool dv_facts_key(uint64_t *out, const dvbf_sequences *s);
/* The fact of that kind and key, which stays as long as the facts; NULL: it is not known. */
const void *dv_facts_find(const dvbf_sequences *s, const void *kind, uint64_t key);
/* Hands over a fact, or frees it if there are too many. */
void dv_facts_keep(const dvbf_sequences *s, const void *kind, uint64_t key, void *fact, void (*free)(void *));

/* ---- Statistics ---- */

/* Mean and variance of each column over its observed values. */
typedef struct dv_statistics {
  double *mean, *variance; /* [width] */
  double *least, *most;    /* [width] smallest and largest value of each column that has any */
  uint64_t *seen;          /* [width] values */
  uint64_t *checksum;      /* [width] equal for two columns with the same values */
  uint64_t rows, frames;   /* steps; those with a value in any column */
  double low, high;        /* smallest and largest value */
  bool whole;              /* steps are seen whole or not at all */
  bool binary;             /* every value is 0 or 1 */
  bool counts;             /* every value is a whole number, none is negative */
} dv_statistics;

/* Found once for the same sequences, and the same values, if they keep facts. */
typedef dvbf_status dv_measure_fn(dv_statistics *out, const dvbf_sequences *s, dvbf_error *error);
dv_measure_fn dv_statistics_of_x, dv_statistics_of_u, dv_statistics_of_state;
void dv_statistics_free(dv_statistics *statistics);
/* The first, by ranks together if x is in a file: each reads its share. */
dvbf_status dv_statistics_together(dv_statistics *out, const dvbf_sequences *s, dv_ranks *team,
                                   dvbf_error *error);
/* Adds statistics of other sequences with as many columns. */
void dv_statistics_join(dv_statistics *to, const dv_statistics *from, size_t width);
/* Whether every value is finite, or missing if that is allowed. */
bool dv_statistics_complete(const dv_statistics *statistics, size_t width, bool gaps);

/* Both, of the same sequences. */
typedef struct dv_measured {
  dv_statistics x, u;
} dv_measured;
dvbf_status dv_measured_of(dv_measured *out, const dvbf_sequences *s, dvbf_error *error);
void dv_measured_free(dv_measured *measured);

/* Whether a column varies by more than the rounding of 32-bit numbers around its mean, whatever its unit. */
bool dv_varies(double mean, double variance);
bool dv_statistics_vary(const dv_statistics *statistics, size_t column);

/* Units of errors: mean and deviation of each column. */
typedef struct dv_baseline {
  double *mean; /* [n_x] */
  double *unit; /* [n_x] standard deviation; 0: the column does not vary and is not scored */
} dv_baseline;

/* Those of x. Free with dv_baseline_clear, also after a failure. */
dvbf_status dv_baseline_of_x(dv_baseline *out, const dvbf_sequences *s, dvbf_error *error);
void dv_baseline_clear(dv_baseline *baseline);

/* A checksum of sizes, x and u of the training and validation data, wherever x is read from. */
dvbf_status dv_data_fingerprint(uint64_t *out, const dvbf_data *data, dvbf_error *error);
/* The same of some sequences. */
dvbf_status dv_sequences_fingerprint(uint64_t *out, const dvbf_sequences *s, dvbf_error *error);
