/* dvbf sample: sequences that the model makes up. */
#include "estimates.h"

const cli_command cli_sample = {
    .name = "sample",
    .synopsis = "RUN -o FILE [--from DATA] [--SETTING VALUE ...]",
    .help = "make up sequences",
    .details =
        "\nRUN is a run folder or a model file. With --from, sample i continues sequence i of DATA (counted\n"
        "round) after its first frames, under its controls as far as they go.\n\n"
        "A .csv file has one row for each step: sequence, name, split, step, time, x, u and z. Other files "
        "hold,\n"
        "for N samples of T steps\n"
        "  z        [N, T, n_z]    the states\n"
        "  x        [N, T, ...]    the observations, images as images where RUN is a run folder or with "
        "--from\n"
        "  u        [N, T, n_u]    the inputs that acted, where the model has any\n"
        "  x_names, x_units, u_names, u_units, where they are known; with --from also which sequence of "
        "DATA\n"
        "  a sample continues (sequence, name, split), from which step on (step), and the time of each step",
    .examples = {{"dvbf sample run -o made-up.h5", "sequences that begin with the prior"},
                 {"dvbf sample run -o made-up.h5 --from pendulum.h5",
                  "sequences that go on from given ones"}},
    .arguments = {"RUN"},
    .flags = {CLI_FLAG_ARRAYS,
              {0, "from", "DATA", "continue sequences of this file instead of starting from the prior"},
              CLI_FLAG_FORCE,
              CLI_FLAG_RANKS,
              CLI_FLAG_QUIET},
    .tables = {"sample", "data"},
    .shared = true,
    .run = cli_estimate_only,
};
