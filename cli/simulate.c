/* dvbf simulate: sequences of a simulated system, with its true states, as an HDF5 file. A system's name is
 * also that of its table of settings. */
#include "options.h"

#include <stdio.h>

static const char *const systems[] = {"pendulum", "ball", "two-balls",    "cart-pole", "arm",
                                      "planar",   "dot",  "textured-dot", "camera",    NULL};

static void tell(const dvbf_data *data, const char *path) {
  fprintf(stderr, "%s: %zu + %zu + %zu sequences (train, valid, test) of %zu frames with %zu numbers\n", path,
          data->train.count, data->valid.count, data->test.count, data->train.steps, data->train.n_x);
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  const char *system = options->arguments[0], *path = NULL;
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  dvbf_status status = cli_check_system(system, systems, error);
  if (!status) status = cli_option_needed(&path, options, "output", error);
  if (!status) status = cli_options_settings(&settings, options, system, error);
  if (!status) status = cli_refuse_existing(path, cli_option(options, "force"), error);
  if (!status) status = dvbf_simulate(&data, settings, error);
  if (!status) status = dvbf_data_write(data, path, error);
  if (!status && !cli_option(options, "quiet")) tell(data, path);
  dvbf_data_free(data);
  dvbf_settings_free(settings);
  return status;
}

const cli_command cli_simulate = {
    .name = "simulate",
    .synopsis = "SYSTEM -o FILE [--SETTING VALUE ...]",
    .help = "write sequences of a simulated system, with ground truth, as HDF5",
    .examples = {{"dvbf simulate pendulum -o pendulum.h5", "the data of the paper's first experiment"},
                 {"dvbf simulate ball -o ball.h5 --train 5000 --steps 30", "more and longer sequences"},
                 {"dvbf simulate cart-pole -o cart.h5 --size 64 --channels 3", "larger images, in colour"}},
    .details = "\nSettings of the zoo are those of cart-pole, arm, planar, dot, textured-dot and camera.\n",
    .arguments = {"SYSTEM"},
    .choices = systems,
    .flags = {{'o', "output", "FILE", "HDF5 file to write"},
              CLI_FLAG_PRESET,
              CLI_FLAG_CONFIG,
              CLI_FLAG_FORCE,
              CLI_FLAG_QUIET},
    .tables = {"pendulum", "ball", "two-balls", "zoo"},
    .presets = true,
    .run = run,
};
