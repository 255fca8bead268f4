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

/* Help on what the files of several commands hold. */
#define CLI_HELP_FILE                                                                                        \
  "A .csv file has one row for each step: sequence, name, split, step, time, then for each column of x\n"    \
  "its mean (NAME), NAME_std, quantiles (NAME_q05, ...) and the value in the data (NAME_true), the\n"        \
  "inputs, and after filter and smooth the states (z0, z0_std, ...). Other files hold, for N sequences,\n"   \
  "S samples and T steps\n"                                                                                  \
  "  z        [N, S, T, n_z] samples of the state\n"                                                         \
  "  z_mean   [N, T, n_z]    their mean, and z_std their standard deviation\n"                               \
  "  x        [N, T, ...]    mean of the observation given the samples, images as images, and x_std\n"
#define CLI_HELP_ORIGIN                                                                                      \
  "  x_true   [N, T, ...]    x of the data, NaN where it is not known\n"                                     \
  "  u        [N, T, n_u]    the inputs, where the model has any\n"                                          \
  "  sequence [N], name [N]  number (from 0) and name of each sequence in DATA, and their split\n"           \
  "  step     [N]            the step (from 0) of the sequence that comes first here\n"                      \
  "  time     [N, T]         where DATA tell times: seconds, or seconds since 1970 (time_unit)\n"            \
  "  x_names, x_units, u_names, u_units, sample_time, where they are known"

#endif
