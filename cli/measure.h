/* Quantities of an experiment that an evaluation does not hold. */
#ifndef CLI_MEASURE_H
#define CLI_MEASURE_H

#include "experiment.h"

/* Fills the entries of values [CLI_QUANTITIES] that are regressions away from bounces or distances of walks.
 */
dvbf_status cli_measure(double *values, const cli_experiment *experiment, const dvbf_model *model,
                        const dvbf_data *data, uint64_t seed, unsigned threads, dvbf_error *error);

#endif
