/* dvbf filter: where the state is, as the frames come in. */
#include "estimates.h"

static const char *const tables[] = {"filter", "data", NULL};
static const char *const arguments[] = {"RUN", "DATA", NULL};
static const cli_flag flags[] = {CLI_FLAG_ARRAYS, CLI_FLAG_FORCE, CLI_FLAG_QUIET, {0}};

static const cli_example examples[] = {
    {"dvbf filter run own.npz -o latent.npz", "states of the test sequences, for NumPy"},
    {"dvbf filter run own.h5 -o latent.h5 --split all --samples 50", "of all sequences, with more samples"},
    {0},
};

const cli_command cli_filter = {
    .name = "filter",
    .synopsis = "RUN DATA -o FILE [--SETTING VALUE ...]",
    .help = "estimate the state at each step from the frames up to it",
    .details =
        "\nRUN is a run folder or a model file, DATA an HDF5 file. A step knows the frames up to its own, "
        "but\n"
        "that the first state is made from the first frames at once, as many as the initial network takes\n"
        "(initial-frames of the model, or predict-from where that is 0). A dkf cannot filter; see smooth.\n\n"
        "FILE holds, for N sequences, S samples and T steps\n" CLI_HELP_STATES
        "  length   [N]            steps of each sequence, where they differ",
    .examples = examples,
    .arguments = arguments,
    .flags = flags,
    .tables = tables,
    .run = cli_estimate_only,
};
