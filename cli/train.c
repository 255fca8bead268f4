/* dvbf train: data in, run folder out. */
#include "files.h"
#include "options.h"
#include "results.h"
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const tables[] = {"train", NULL};
static const char *const arguments[] = {"DATA", NULL};
static const cli_flag flags[] = {
    {'o', "output", "FOLDER", "run folder to write: " CLI_MODEL ", " CLI_METRICS ", " CLI_SETTINGS},
    CLI_FLAG_PRESET,
    CLI_FLAG_CONFIG,
    CLI_FLAG_JSON,
    CLI_FLAG_FORCE,
    CLI_FLAG_QUIET,
    {0},
};

/* For scripts: how the run went. `updates` are those of the model that was kept. */
static void print_json(const dvbf_model *model, const cli_summary *s, const dvbf_settings *settings) {
  dvbf_model_info info = dvbf_model_describe(model);
  json_t *json = json_pack("{s:I, s:f, s:i, s:I, s:I, s:i}", "updates", (json_int_t)info.updates, "seconds",
                           s->seconds, "starts", (int)s->starts, "parameters", (json_int_t)info.parameters,
                           "seed", (json_int_t)info.seed, "threads", (int)cli_threads(settings));
  json_object_set_new(json, "valid_bound", isfinite(s->bound) ? json_real(s->bound) : json_null());
  json_object_set_new(json, "valid_prediction",
                      isfinite(s->prediction) ? json_real(s->prediction) : json_null());
  cli_print_json(json);
  json_decref(json);
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  const char *folder = NULL;
  cli_path model_path;
  cli_summary summary;
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  dvbf_model *model = NULL;
  dvbf_status status = cli_option_needed(&folder, options, "output", error);
  if (!status) {
    cli_join(model_path, folder, CLI_MODEL);
    status = cli_options_settings(&settings, options, "train", error);
  }
  if (!status) status = cli_refuse_existing(model_path, cli_option(options, "force"), error);
  if (!status) status = dvbf_data_read(&data, options->arguments[0], settings, error);
  if (!status) status = cli_make_folder(folder, error);
  if (!status)
    status = cli_training(&model, &summary, folder, settings, data, cli_option(options, "quiet"), error);
  if (!status && cli_option(options, "json")) print_json(model, &summary, settings);
  dvbf_model_free(model);
  dvbf_data_free(data);
  dvbf_settings_free(settings);
  return status;
}

const cli_command cli_train = {
    .name = "train",
    .synopsis = "DATA -o FOLDER [--preset NAME] [--config FILE] [--json] [--SETTING VALUE ...]",
    .help = "learn a model from the sequences of a file: HDF5, NPZ, NPY or CSV",
    .details =
        "\nSIGINT (Ctrl-C) and SIGTERM end training early: the best model so far is saved, and the exit\n"
        "status is 128 plus the signal (130, 143). The same seed gives the same model, bit for bit,\n"
        "with any number of threads.",
    .arguments = arguments,
    .flags = flags,
    .tables = tables,
    .presets = true,
    .run = run,
};
