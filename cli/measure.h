/* Quantities of an experiment that an evaluation does not hold. */
#ifndef CLI_MEASURE_H
#define CLI_MEASURE_H

#include "experiment.h"

/* Where the numbers come from. */
typedef struct cli_source {
  const dvbf_model *model;
  const dvbf_data *data, *lengthy; /* test sets: as in training, and of 45 frames */
  const char *preset;              /* that both were simulated with */
  size_t observed;                 /* frames seen before prediction starts */
  uint64_t seed;
  unsigned threads;
} cli_source;

/* Fills those entries of values [CLI_QUANTITIES]: regressions away from bounces, distances of walks, and
 * shares of images that are whole, which are those of the long sequences. */
dvbf_status cli_measure(double *values, const cli_experiment *experiment, const cli_source *source,
                        dvbf_error *error);

#endif
