/* Processes that share the work of one command. */
#pragma once

#include "command.h"

/* If --ranks asks for processes that do not exist yet, mpirun replaces this one and starts them with the same
 * arguments. Returns only if nothing is to be started, or if that fails. */
dvbf_status cli_ranks_start(const cli_options *options, int argc, char **argv, dvbf_error *error);

/* Joins the others; `shared`: they have work. */
dvbf_status cli_ranks_join(bool shared, dvbf_error *error);
/* NULL: this process works alone. */
dvbf_ranks *cli_ranks(void);
/* Rank among all processes of the launcher, also if they do not work together. */
int cli_rank(void);
