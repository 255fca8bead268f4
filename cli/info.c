/* dvbf info: what is in a file. */
#include "info.h"

#include "files.h"
#include "training.h"

#include <fcntl.h>
#include <unistd.h>

/* A safetensors file begins with the length of its header, eight bytes of which the last are 0, and a brace.
 */
static bool looks_like_model(const char *path) {
  unsigned char first[9] = {0};
  int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe would wait for a writer */
  if (file < 0) return false;
  ssize_t count = pread(file, first, sizeof first, 0);
  close(file);
  return count == sizeof first && !first[4] && !first[5] && !first[6] && !first[7] && first[8] == '{';
}

/* A folder without a run may be one of data. */
static bool holds_data(const char *folder) {
  static const char *const names[] = {CLI_MODEL, DVBF_RUN_CHECKPOINT, CLI_SETTINGS, CLI_METRICS};
  cli_path path;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    cli_join(path, folder, names[i]);
    if (cli_exists(path)) return false;
  }
  return true;
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  const char *path = options->arguments[0];
  bool model = looks_like_model(path) || (cli_is_folder(path) && (!options->n_more && !holds_data(path)));
  return model ? cli_info_model(path, options, error) : cli_info_data(path, options, error);
}

const cli_command cli_info = {
    .name = "info",
    .synopsis = "FILE ... [--json] [--SETTING VALUE ...]",
    .help = "tell what is in a file with data, a model file or a run folder",
    .details =
        "\nSeveral files of data, a folder of them or a pattern in quotes are one data set.\n\n"
        "Of data: for each split sequences, steps, columns, their range, mean and deviation, and what is\n"
        "missing or constant, then the settings that `dvbf train` would choose. A file without splits is\n"
        "shown as `dvbf train` would split it. NaN counts as missing, unless --missing refuse is given.\n\n"
        "Of a model: sizes, parameters, scaling, settings, those that are not at their default first, "
        "and\n"
        "the validations of its run.",
    .examples = {{"dvbf info own.h5", "look at data before training"},
                 {"dvbf info run", "sizes, settings and learning curve of a trained model"},
                 {"dvbf info run/model.safetensors --json", "the same of a model alone, for scripts"}},
    .arguments = {"FILE"},
    .many = true,
    .flags = {CLI_FLAG_JSON},
    .tables = {"data"},
    .run = run,
};
