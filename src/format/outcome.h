/* Estimates together with the data that they are of: what the formats of files share. */
#ifndef DV_OUTCOME_H
#define DV_OUTCOME_H

#include "data/dataset.h"

typedef struct dv_outcome {
  const dvbf_estimates *e;
  const dvbf_data *data;           /* NULL: nothing is known about them */
  const dvbf_sequences *sequences; /* the same */
  bool samples;                    /* of one path each, whose x is in x_samples */
  bool states;                     /* z is what was asked for */
  float *buffer;                   /* [steps][n_x] for the truth where x is read from a file */
} dv_outcome;

/* Where entry 0 of estimate i was in the data. */
dvbf_origin dv_outcome_origin(const dv_outcome *o, size_t i);
/* Steps of estimate i that are valid. */
size_t dv_outcome_steps(const dv_outcome *o, size_t i);
/* Seconds at entry t of estimate i. NaN: unknown. */
double dv_outcome_time(const dv_outcome *o, size_t i, size_t t);
/* "train", "valid", "test", "all", or "" where there are no data. */
const char *dv_outcome_split(const dv_outcome *o);
/* Writes x of the data at the steps of estimate i into out [steps][n_x], NaN where it is not known. */
void dv_outcome_truth(const dv_outcome *o, size_t i, float *out);
/* Name of column k of "x" or "u". */
void dv_outcome_name(const dv_outcome *o, char array, size_t k, char out[32]);
/* Its unit, "" where it is not known. */
const char *dv_outcome_unit(const dv_outcome *o, char array, size_t k);

dvbf_status dv_outcome_write_csv(const dv_outcome *o, const char *path, dvbf_error *error);

#endif
