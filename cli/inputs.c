#include "inputs.h"

#include "files.h"
#include "training.h"

#include <string.h>

static dvbf_status load_model(dvbf_model **out, const char *run, dvbf_error *error) {
  cli_path path;
  if (!cli_is_folder(run)) return dvbf_model_load(out, run, error);
  cli_join(path, run, CLI_MODEL);
  if (!cli_exists(path))
    return cli_fail(error, DVBF_IO,
                    "%.300s: holds no %s; RUN is a folder that `dvbf train -o` wrote, or a model file", run,
                    CLI_MODEL);
  return dvbf_model_load(out, path, error);
}

static void choose_split(cli_inputs *in) {
  char split[16] = "";
  dvbf_settings_get(in->settings, "split", split, sizeof split, NULL);
  bool train = !strcmp(split, "train"), valid = !strcmp(split, "valid");
  in->split = train ? "train" : valid ? "valid" : "test";
  in->sequences = train ? &in->data->train : valid ? &in->data->valid : &in->data->test;
}

dvbf_status cli_inputs_read(cli_inputs *in, const cli_options *options, dvbf_error *error) {
  *in = (cli_inputs){0};
  const char *path = options->command->arguments[1] ? options->arguments[1] : cli_option(options, "from");
  dvbf_status status = cli_options_settings(&in->settings, options, options->command->tables[0], error);
  if (!status) status = load_model(&in->model, options->arguments[0], error);
  if (status) return status;
  /* The seed of training splits a file without splits as it was split then: what was held out stays so. */
  in->info = dvbf_model_describe(in->model);
  if (!path) return DVBF_OK;
  status = dvbf_data_read(&in->data, path, in->info.seed, error);
  if (!status) choose_split(in);
  return status;
}

dvbf_status cli_inputs_evaluate(cli_inputs *in, dvbf_error *error) {
  return dvbf_evaluate(&in->evaluation, in->model, in->data, in->sequences, in->settings, error);
}

void cli_inputs_free(cli_inputs *in) {
  dvbf_evaluation_free(in->evaluation);
  dvbf_data_free(in->data);
  dvbf_model_free(in->model);
  dvbf_settings_free(in->settings);
}
