/* What `filter`, `smooth`, `predict` and `sample` share: from settings to arrays in a file. */
#ifndef CLI_ESTIMATES_H
#define CLI_ESTIMATES_H

#include "inputs.h"

/* Reads the inputs, estimates, and writes the arrays if --output is given; `needed`: it must be given. Free
 * with cli_inputs_free and dvbf_estimates_free, also after a failure. */
dvbf_status cli_estimate(cli_inputs *in, dvbf_estimates **out, const cli_options *options, bool needed,
                         dvbf_error *error);

/* The whole work of a command that prints no results. */
dvbf_status cli_estimate_only(const cli_options *options, dvbf_error *error);

/* Help on the arrays that several commands write. */
#define CLI_HELP_STATES                                                                                      \
  "  z        [N, S, T, n_z] samples of the state\n"                                                         \
  "  z_mean   [N, T, n_z]    their mean, and z_std their standard deviation\n"                               \
  "  x        [N, T, ...]    mean of the observation given the samples, images as images, and x_std\n"

#endif
