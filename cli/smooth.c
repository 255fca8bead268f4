/* dvbf smooth: where the state was, given all frames. */
#include "estimates.h"

const cli_command cli_smooth = {
    .name = "smooth",
    .synopsis = "RUN DATA ... -o FILE [--SETTING VALUE ...]",
    .help = "estimate the state at each step from all frames of its sequence",
    .details = CLI_HELP_RUN_DATA
    "Paths are drawn from a particle filter that moves its particles by the recognition\n"
    "model, backwards from the last step where the transition's density is known. A model that\n"
    "cannot filter draws them from its q, weighted by how well they explain the data.\n\n" CLI_HELP_FILE
    "  length   [N]            steps of each sequence, where they differ\n" CLI_HELP_ORIGIN,
    .examples = {{"dvbf smooth run pendulum.h5 -o states.h5",
                  "states of the test sequences, given all their frames"},
                 {"dvbf smooth run pendulum.h5 -o states.npz --particles 200 --samples 20",
                  "faster and less exact"}},
    .arguments = {"RUN", "DATA"},
    .many = true,
    .flags = {CLI_FLAG_ARRAYS, CLI_FLAG_FORCE, CLI_FLAG_RANKS, CLI_FLAG_QUIET},
    .tables = {"smooth", "data"},
    .shared = true,
    .run = cli_estimate_only,
};
