#include "inputs.h"

#include "files.h"
#include "ranks.h"
#include "training.h"

#include <stdlib.h>
#include <string.h>

dvbf_status cli_load_model(dvbf_model **out, const char *run, dvbf_error *error) {
  cli_path path;
  dvbf_error inner = {0};
  if (!cli_is_folder(run)) {
    dvbf_status status = dvbf_model_load(out, run, &inner);
    if (!status) return DVBF_OK;
    return cli_fail(error, status,
                    status == DVBF_FORMAT
                        ? "%.400s; RUN is a folder that `dvbf train -o` wrote, or a model file in it"
                        : "%s",
                    inner.message);
  }
  cli_join(path, run, CLI_MODEL);
  if (!cli_exists(path))
    return cli_fail(error, DVBF_IO,
                    "%.300s: holds no %s; RUN is a folder that `dvbf train -o` wrote, or a model file", run,
                    CLI_MODEL);
  return dvbf_model_load(out, path, error);
}

dvbf_status cli_data_read(dvbf_data **out, const char *path, const cli_options *options,
                          const dvbf_settings *how, dvbf_error *error) {
  const char **paths = calloc(options->n_more + 1, sizeof *paths);
  if (!paths) return cli_fail(error, DVBF_MEMORY, "out of memory while reading data");
  paths[0] = path;
  for (size_t i = 0; i < options->n_more; i++) paths[i + 1] = options->more[i];
  dvbf_status status = dvbf_data_read_files(out, paths, options->n_more + 1, how, error);
  free((void *)paths);
  return status;
}

/* Whether what follows the recordings is asked for. */
static bool from_end(const cli_inputs *in, const cli_options *options) {
  char from[16] = "";
  return !strcmp(options->command->name, "predict") &&
         !dvbf_settings_get(in->settings, "from", from, sizeof from, NULL) && !strcmp(from, "end");
}

/* A file without splits is read and split as in training, so that held-out data stay held out. A forecast of
 * what follows a recording takes the whole of it, and x is missing where only inputs are planned. */
static dvbf_status read_data(cli_inputs *in, const cli_options *options, const char *path,
                             dvbf_error *error) {
  dvbf_settings *how = NULL;
  dvbf_status status =
      cli_options_settings_upon(&how, options, "data", dvbf_model_settings(in->model), error);
  char split[16] = "";
  bool end = !status && from_end(in, options);
  if (end && !cli_option(options, "split")) status = dvbf_settings_set(in->settings, "split", "all", error);
  if (!status && end && !cli_option(options, "missing"))
    status = dvbf_settings_set(how, "missing", "nan", error);
  if (!status) status = dvbf_settings_get(in->settings, "split", split, sizeof split, error);
  if (!status && !strcmp(split, "all")) status = dvbf_settings_set(how, "split-by", "none", error);
  if (!status) dvbf_settings_ranks(how, cli_ranks());
  if (!status) status = cli_data_read(&in->data, path, options, how, error);
  if (!status && end && in->data->test.count && !cli_option(options, "split"))
    status = dvbf_settings_set(in->settings, "split", "test", error);
  dvbf_settings_free(how);
  return status;
}

static dvbf_status choose_split(cli_inputs *in, const char *path, dvbf_error *error) {
  dvbf_error inner = {0};
  dvbf_status status = dvbf_data_split(&in->sequences, in->data, in->settings, &inner);
  return status ? cli_fail(error, status, "%.300s: %s", path, inner.message) : DVBF_OK;
}

dvbf_status cli_inputs_read(cli_inputs *in, const cli_options *options, dvbf_error *error) {
  *in = (cli_inputs){0};
  const char *path = options->command->arguments[1] ? options->arguments[1] : cli_option(options, "from");
  if (!path) path = cli_option(options, "data");
  dvbf_status status = cli_options_settings(&in->settings, options, options->command->tables[0], error);
  if (!status) status = cli_load_model(&in->model, options->arguments[0], error);
  if (status) return status;
  in->info = dvbf_model_describe(in->model);
  /* Samples without data have the columns and images of training, if the run knows them. */
  if (!path && !strcmp(options->command->name, "sample") && cli_is_folder(options->arguments[0]))
    status = dvbf_run_data(&in->data, options->arguments[0], error);
  if (!status && in->data && in->data->train.n_x != in->info.n_x) {
    dvbf_data_free(in->data);
    in->data = NULL;
  }
  if (!path || status) return status;
  status = read_data(in, options, path, error);
  if (!status) status = choose_split(in, path, error);
  return status;
}

void cli_inputs_free(cli_inputs *in) {
  dvbf_data_free(in->data);
  dvbf_model_free(in->model);
  dvbf_settings_free(in->settings);
}
