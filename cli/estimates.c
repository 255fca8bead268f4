#include "estimates.h"

#include "files.h"
#include "progress.h"
#include "ranks.h"

#include <stdio.h>

static dvbf_status write(const dvbf_estimates *e, const cli_inputs *in, const cli_options *options,
                         const char *path, dvbf_error *error) {
  dvbf_status status = dvbf_estimates_write(e, options->command->name, in->data, in->sequences, path, error);
  if (status || cli_option(options, "quiet")) return status;
  fprintf(stderr, "%s: %zu sequence%s of %zu steps\n", path, e->count, e->count == 1 ? "" : "s", e->steps);
  return DVBF_OK;
}

static dvbf_status estimate(const cli_inputs *in, dvbf_estimates **out, bool quiet, dvbf_error *error) {
  cli_share share = cli_share_new();
  dvbf_status status = dvbf_estimate_with(out, in->model, in->sequences, in->settings,
                                          quiet ? NULL : cli_share_show, &share, error);
  cli_share_end(&share);
  return status;
}

dvbf_status cli_estimate(cli_inputs *in, dvbf_estimates **out, const cli_options *options, bool needed,
                         dvbf_error *error) {
  const char *path = cli_option(options, "output");
  *in = (cli_inputs){0};
  dvbf_status status = needed ? cli_option_needed(&path, options, "output", error) : DVBF_OK;
  if (!status && path) status = dvbf_estimates_check_path(path, error);
  if (!status && path) status = cli_refuse_existing(path, cli_option(options, "force"), error);
  if (!status) status = cli_inputs_read(in, options, error);
  if (!status) dvbf_settings_ranks(in->settings, cli_ranks());
  if (!status) status = estimate(in, out, cli_rank() || cli_option(options, "quiet"), error);
  if (!status && path && !cli_rank()) status = write(*out, in, options, path, error);
  return status;
}

dvbf_status cli_estimate_only(const cli_options *options, dvbf_error *error) {
  cli_inputs in;
  dvbf_estimates *estimates = NULL;
  dvbf_status status = cli_estimate(&in, &estimates, options, true, error);
  dvbf_estimates_free(estimates);
  cli_inputs_free(&in);
  return status;
}
