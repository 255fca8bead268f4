/* dvbf report: a trained model in one HTML file, with its figures in a folder next to it. Parts that are left
 * out are reported on standard error. */
#include "inputs.h"
#include "options.h"

#include <dvbf/report.h>
#include <stdio.h>
#include <string.h>

/* The last part of a path, without the slashes after it. */
static void last_part(char *out, size_t size, const char *path) {
  size_t end = strlen(path), begin;
  while (end > 1 && path[end - 1] == '/') end--;
  for (begin = end; begin && path[begin - 1] != '/';) begin--;
  snprintf(out, size, "%.*s", (int)(end - begin), path + begin);
}

static void print_left_out(const char *name, const char *text, void *user_data) {
  fprintf(stderr, "%s: %s\n", name, text);
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  const char *path = NULL, *given = options->arguments[0];
  char name[128], title[192];
  cli_inputs in = {0};
  bool quiet = cli_option(options, "quiet");
  dvbf_report_options how = {.title = title,
                             .name = name,
                             .run = cli_is_folder(given) ? given : NULL,
                             .force = cli_option(options, "force"),
                             .note = quiet ? NULL : print_left_out};
  last_part(name, sizeof name, given);
  last_part(title, sizeof title, options->arguments[1]);
  snprintf(title + strlen(title), sizeof title - strlen(title), ": report on %.100s", name);
  dvbf_status status = cli_option_needed(&path, options, "output", error);
  if (!status && !cli_is_folder(path)) status = dv_refuse_existing(path, how.force, error);
  if (!status) status = cli_inputs_read(&in, options, error);
  if (!status) status = dvbf_report_write(path, in.model, in.data, in.settings, &how, error);
  if (!status && !quiet) {
    const char *slash = strrchr(path, '/');
    fprintf(stderr, "%s: written, with its figures in %.*sfigures\n", path,
            slash ? (int)(slash + 1 - path) : 0, path);
  }
  cli_inputs_free(&in);
  return status;
}

const cli_command cli_report = {
    .name = "report",
    .synopsis = "RUN DATA ... -o FILE [--force] [--SETTING VALUE ...]",
    .help = "describe a trained model in one HTML file: tables, figures, latent space, video",
    .details = CLI_HELP_RUN_DATA "FILE opens in any browser, without a network.",
    .examples = {{"dvbf report run pendulum.h5 -o run/report.html", "a page to open in a browser"}},
    .arguments = {"RUN", "DATA"},
    .many = true,
    .flags = {{'o', "output", "FILE",
               "HTML file to write; figures are also written to the folder figures next to it"},
              CLI_FLAG_FORCE,
              CLI_FLAG_QUIET},
    .tables = {"evaluate", "data"},
    .run = run,
};
