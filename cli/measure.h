/* Quantities of an experiment that an evaluation does not hold. */
#ifndef CLI_MEASURE_H
#define CLI_MEASURE_H

#include "experiment.h"

/* Fills those entries of values [CLI_QUANTITIES]: regressions away from bounces, distances of walks, and
 * shares of images that are whole, which are those of the long sequences. */
dvbf_status cli_measure(double *values, const cli_experiment *experiment, const dvbf_model *model,
                        const dvbf_data *data, const dvbf_data *lengthy, uint64_t seed, unsigned threads,
                        dvbf_error *error);

#endif
