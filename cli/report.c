/* dvbf report: all about a trained model in one HTML file. */
#include "chapter.h"
#include "inputs.h"
#include "results.h"

#include <stdio.h>
#include <string.h>

static const char *const tables[] = {"evaluate", "data", NULL};
static const char *const arguments[] = {"RUN", "DATA", NULL};
static const cli_flag flags[] = {
    {'o', "output", "FILE", "HTML file to write; its figures also go into the folder figures beside it"},
    CLI_FLAG_FORCE,
    CLI_FLAG_QUIET,
    {0},
};

static const cli_example examples[] = {
    {"dvbf report run pendulum.h5 -o run/report.html", "a page to open in a browser"},
    {0},
};

/* The folder of a file. */
static void folder_of(cli_path out, const char *path) {
  snprintf(out, sizeof(cli_path), "%s", path);
  char *slash = strrchr(out, '/');
  if (!slash)
    snprintf(out, sizeof(cli_path), ".");
  else
    slash[slash == out] = 0;
}

/* The last part of a path, without the slashes after it. */
static void last_part(char *out, size_t size, const char *path) {
  size_t end = strlen(path), begin;
  while (end > 1 && path[end - 1] == '/') end--;
  for (begin = end; begin && path[begin - 1] != '/';) begin--;
  snprintf(out, size, "%.*s", (int)(end - begin), path + begin);
}

/* Refuses what cannot become the report, without touching anything. */
static dvbf_status check_output(const cli_chapter *chapter, const char *path, bool force, dvbf_error *error) {
  if (cli_is_folder(path))
    return cli_fail(error, DVBF_IO, "%.300s: is a folder; --output needs the name of a file", path);
  dvbf_status status = cli_refuse_existing(path, force, error);
  return status ? status : cli_chapter_refuse(chapter, force, error);
}

/* Makes both folders and proves that they can be written, before the work begins. */
static dvbf_status make_folders(const cli_chapter *chapter, const char *folder, dvbf_error *error) {
  dvbf_status status = cli_make_folder(folder, error);
  return status ? status : cli_make_folder(chapter->figures, error);
}

static dvbf_status write_page(const cli_chapter *chapter, const char *title, const char *path,
                              dvbf_error *error) {
  dvbf_page *page = NULL;
  dvbf_status status = dvbf_page_new(&page, title, error);
  if (!status) status = cli_chapter_add(page, chapter, error);
  if (!status) status = dvbf_page_write(page, path, error);
  dvbf_page_free(page);
  return status;
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  const char *path = NULL, *given = options->arguments[0];
  cli_path folder, figures;
  char name[128], title[192];
  cli_inputs in = {0};
  bool quiet = cli_option(options, "quiet"), force = cli_option(options, "force");
  cli_chapter chapter = {.name = name, .figures = figures, .quiet = quiet};
  dvbf_status status = cli_option_needed(&path, options, "output", error);
  if (status) return status;
  folder_of(folder, path);
  cli_join(figures, folder, "figures");
  last_part(name, sizeof name, given);
  last_part(title, sizeof title, options->arguments[1]);
  snprintf(title + strlen(title), sizeof title - strlen(title), ": report on %.100s", name);
  chapter.run = cli_is_folder(given) ? given : NULL;
  status = check_output(&chapter, path, force, error);
  if (!status) status = cli_inputs_read(&in, options, error);
  if (!status) status = make_folders(&chapter, folder, error);
  if (!status) status = cli_inputs_evaluate(&in, error);
  chapter.model = in.model;
  chapter.data = in.data;
  chapter.sequences = in.sequences;
  chapter.split = in.split;
  chapter.evaluation = in.evaluation;
  chapter.threads = status ? 1 : cli_threads(in.settings);
  if (!status) status = write_page(&chapter, title, path, error);
  if (!status && !quiet) fprintf(stderr, "%s: written, with its figures in %s\n", path, figures);
  cli_inputs_free(&in);
  return status;
}

const cli_command cli_report = {
    .name = "report",
    .synopsis = "RUN DATA -o FILE [--force] [--SETTING VALUE ...]",
    .help = "write all about a trained model into one HTML file: tables, figures, latent space, film",
    .details = CLI_HELP_RUN_DATA "FILE opens in any browser without a network.",
    .examples = examples,
    .arguments = arguments,
    .flags = flags,
    .tables = tables,
    .run = run,
};
