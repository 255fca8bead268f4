/* Processes that do the work of one command together. */
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include "command.h"

/* Where --ranks asks for processes that are not there yet, mpirun takes the place of this one and starts them
 * with the same arguments. Returns only where nothing is to be started, or where that fails. */
dvbf_status cli_ranks_start(const cli_options *options, int argc, char **argv, dvbf_error *error);

/* Joins the others; `shared`: they have work. */
dvbf_status cli_ranks_join(bool shared, dvbf_error *error);
/* NULL: this process works alone. */
dvbf_ranks *cli_ranks(void);
/* Of all processes that the launcher has started, also where they do not work together. */
int cli_rank(void);

#endif
