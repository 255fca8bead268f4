/* dvbf filter: where the state is, as the frames come in. */
#include "estimates.h"
#include "follow.h"
#include "ranks.h"

/* One line after the other is no work for several ranks. */
static dvbf_status run(const cli_options *options, dvbf_error *error) {
  if (!cli_option(options, "follow")) return cli_estimate_only(options, error);
  return cli_rank() ? DVBF_OK : cli_follow(options, error);
}

const cli_command cli_filter = {
    .name = "filter",
    .synopsis =
        "RUN DATA ... -o FILE [--SETTING VALUE ...] | RUN --follow [--ahead STEPS] [--SETTING VALUE ...]",
    .help = "estimate the state at each step from the frames up to it",
    .details = CLI_HELP_RUN_DATA
    "A step knows the frames up to its own, but that the first state is made from the first\n"
    "frames at once, as many as the initial network takes (initial-frames of the model, or\n"
    "predict-from where that is 0). A model that needs later frames, as\n"
    "the Deep Kalman Filter does, cannot filter; see smooth.\n"
    "With --particles the samples of each step are drawn anew and make no paths.\n"
    "With --forecast x is what the frames before its step let expect, z likewise, and the steps\n"
    "begin behind the first frames.\n\n" CLI_HELP_FILE "  x_samples [N, S, T, ...] with --x-samples\n"
    "  length   [N]            steps of each sequence, where they differ\n" CLI_HELP_ORIGIN "\n\n"
    "With --follow each line of standard input is a step, with the observation and the control that acts\n"
    "from then on: fields of CSV, x first, or those that the header names as in training; or JSON as\n"
    "{\"x\": [0.5, null], \"u\": [1], \"future\": [[1], [0]]}. An empty field, nan or null is a missing "
    "value;\n"
    "a control that is missing goes on as it was. After each line the belief about z and the forecast of x\n"
    "are written and flushed, in the same format. Controls that `future` does not announce are held.",
    .examples = {{"dvbf filter run bench.csv -o states.csv",
                  "states of the held-out part of a recording, as a table"},
                 {"dvbf filter run bench.csv --forecast on -o ahead.npz",
                  "x of each step as expected one step before"},
                 {"sensor | dvbf filter run --follow --ahead 10",
                  "beliefs and forecasts while the data come in"}},
    .arguments = {"RUN", "DATA"},
    .many = true,
    .instead = "follow",
    .flags = {CLI_FLAG_ARRAYS,
              {0, "follow", NULL,
               "read observations from standard input, line by line, in the place of DATA"},
              {0, "ahead", "STEPS", "with --follow: steps to forecast after each line; default: 1"},
              {0, "quantiles", "LIST", "with --follow: of the forecast, or none; default: 0.05,0.5,0.95"},
              {0, "json", NULL, "with --follow: write lines of JSON, also where CSV is read"},
              CLI_FLAG_FORCE,
              CLI_FLAG_RANKS,
              CLI_FLAG_QUIET},
    .tables = {"filter", "data"},
    .shared = true,
    .run = run,
};
