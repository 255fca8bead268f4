/* Estimates together with their data, for writing them in any format. */
#ifndef DV_IO_WRITE_ESTIMATES_H
#define DV_IO_WRITE_ESTIMATES_H

#include "data/dataset.h"

typedef struct dv_estimate_file {
  const dvbf_estimates *e;
  const dvbf_data *data;           /* NULL: nothing is known about them */
  const dvbf_sequences *sequences; /* the same */
  bool samples;                    /* of one path each, whose x is in x_samples */
  bool states;                     /* z is what was asked for */
  float *buffer;                   /* [steps][n_x] for the truth if x is read from a file */
} dv_estimate_file;

/* Origin of entry 0 of estimate i in the data. */
dvbf_origin dv_estimate_file_origin(const dv_estimate_file *o, size_t i);
/* Steps of estimate i that are valid. */
size_t dv_estimate_file_steps(const dv_estimate_file *o, size_t i);
/* Seconds at entry t of estimate i. NaN: unknown. */
double dv_estimate_file_time(const dv_estimate_file *o, size_t i, size_t t);
/* "train", "valid", "test", "all", or "" without data. */
const char *dv_estimate_file_split(const dv_estimate_file *o);
/* Writes x of the data at the steps of estimate i into out [steps][n_x], NaN if it is not known. */
void dv_estimate_file_truth(const dv_estimate_file *o, size_t i, float *out);
/* Name of column k of "x" or "u". */
void dv_estimate_file_name(const dv_estimate_file *o, char array, size_t k, char out[32]);
/* Its unit, "" if it is not known. */
const char *dv_estimate_file_unit(const dv_estimate_file *o, char array, size_t k);

dvbf_status dv_estimate_file_write_csv(const dv_estimate_file *o, const char *path, dvbf_error *error);

#endif
