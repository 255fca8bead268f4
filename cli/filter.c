/* dvbf filter: where the state is, as the frames come in. */
#include "estimates.h"

const cli_command cli_filter = {
    .name = "filter",
    .synopsis = "RUN DATA -o FILE [--SETTING VALUE ...]",
    .help = "estimate the state at each step from the frames up to it",
    .details = CLI_HELP_RUN_DATA
    "A step knows the frames up to its own, but that the first state is made from the first\n"
    "frames at once, as many as the initial network takes (initial-frames of the model, or\n"
    "predict-from where that is 0). A model that needs later frames, as\n"
    "the Deep Kalman Filter does, cannot filter; see smooth.\n"
    "With --particles the samples of each step are drawn anew and make no paths.\n"
    "With --forecast x is what the frames before its step let expect, z likewise, and the steps\n"
    "begin behind the first frames.\n\n"
    "FILE holds, for N sequences, S samples and T steps\n" CLI_HELP_STATES
    "  x_samples [N, S, T, ...] with --x-samples\n"
    "  length   [N]            steps of each sequence, where they differ",
    .examples = {{"dvbf filter run pendulum.h5 -o states.h5", "states of the test sequences"},
                 {"dvbf filter run bench.csv --forecast on -o ahead.npz",
                  "x of each step as expected one step before"}},
    .arguments = {"RUN", "DATA"},
    .flags = {CLI_FLAG_ARRAYS, CLI_FLAG_FORCE, CLI_FLAG_QUIET},
    .tables = {"filter", "data"},
    .run = cli_estimate_only,
};
