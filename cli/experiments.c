/* dvbf simulate: sequences of a simulated system with its true states, as an HDF5 file. dvbf reproduce: the
 * paper's experiments from data to report, with its tables next to ours. */
#include "options.h"
#include "progress.h"

#include <dvbf/report.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Simulate ---- */

static void print_size(const dvbf_data *data, const char *path) {
  fprintf(stderr, "%s: %zu + %zu + %zu sequences (train, valid, test) of %zu frames with %zu numbers\n", path,
          data->train.count, data->valid.count, data->test.count, data->train.steps, data->train.n_x);
}

static dvbf_status run_simulate(const cli_options *options, dvbf_error *error) {
  const char *system = options->arguments[0], *path = NULL;
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  dvbf_status status = cli_check_system(options, error);
  if (!status) status = cli_option_needed(&path, options, "output", error);
  if (!status) status = cli_options_settings(&settings, options, system, error);
  if (!status) status = dv_refuse_existing(path, cli_option(options, "force"), error);
  if (!status) status = dvbf_simulate(&data, settings, error);
  if (!status) status = dvbf_data_write(data, path, error);
  if (!status && !cli_option(options, "quiet")) print_size(data, path);
  dvbf_data_free(data);
  dvbf_settings_free(settings);
  return status;
}

const cli_command cli_simulate = {
    .name = "simulate",
    .synopsis = "SYSTEM -o FILE [--SETTING VALUE ...]",
    .help = "simulate a system: sequences with ground truth, as HDF5",
    .examples = {{"dvbf simulate pendulum -o pendulum.h5", "the data of the paper's first experiment"},
                 {"dvbf simulate ball -o ball.h5 --train 5000 --steps 30", "more and longer sequences"},
                 {"dvbf simulate cart-pole -o cart.h5 --size 64 --channels 3", "larger images, in colour"}},
    .arguments = {"SYSTEM"},
    .systems = CLI_SYSTEMS,
    .flags = {{'o', "output", "FILE", "HDF5 file to write"},
              CLI_FLAG_PRESET,
              CLI_FLAG_CONFIG,
              CLI_FLAG_FORCE,
              CLI_FLAG_QUIET},
    .presets = true,
    .run = run_simulate,
};

/* ---- Reproduce ---- */

static const char *const experiments[] = {"pendulum", "ball", "two-balls", "all", "zoo", NULL};

static void print_table(const dvbf_table *t) {
  int width = t->columns > 8 ? 8 : 14;
  printf("%s\n", t->caption);
  for (size_t r = 0; r < t->rows; r++) {
    printf("  %-22s", t->cells[r * t->columns]);
    for (size_t c = 1; c < t->columns; c++) printf(" %*s", width - 1, t->cells[r * t->columns + c]);
    printf("\n");
  }
  printf("\n");
}

static void print_results(const dvbf_reproduction *r) {
  for (size_t i = 0; i < r->n_experiments; i++) {
    const dvbf_experiment_results *e = &r->experiments[i];
    printf("== %s\n%s\n\n", e->title, e->remark);
    for (size_t k = 0; k < e->n_tables; k++) print_table(&e->tables[k]);
  }
}

static bool on_stage(const dvbf_stage *stage, void *user_data) {
  static const char *const names[] = {[DVBF_SIMULATING] = "simulating",
                                      [DVBF_TRAINING] = "training ",
                                      [DVBF_EVALUATING] = "evaluating ",
                                      [DVBF_DRAWING] = "drawing"};
  cli_training *training = user_data;
  if (stage->kind == DVBF_TRAINED)
    cli_training_end(training, stage->folder);
  else if (!training->quiet)
    fprintf(stderr, "%s, seed %llu: %s%s\n", stage->system, (unsigned long long)stage->seed,
            names[stage->kind], stage->model ? stage->model : "");
  if (stage->kind == DVBF_TRAINING) cli_training_begin(training, training->quiet);
  return !cli_stop_signal();
}

static void on_note(const char *name, const char *text, void *user_data) {
  const cli_training *training = user_data;
  if (!training->quiet) fprintf(stderr, "%s: %s\n", name, text);
}

static dvbf_status read_seeds(size_t *out, const cli_options *options, dvbf_error *error) {
  char *end;
  const char *text = cli_option(options, "seeds");
  *out = text ? strtoul(text, &end, 10) : 1;
  if (text && (end == text || *end || *out < 1 || *out > 1000))
    return dv_fail(error, DVBF_ARGUMENT,
                   "--seeds %.60s: must be a whole number in [1, 1000]; the default is 1", text);
  return DVBF_OK;
}

static dvbf_status run_reproduce(const cli_options *options, dvbf_error *error) {
  const char *folder = NULL;
  bool quiet = cli_option(options, "quiet");
  cli_training training = {.quiet = quiet};
  dvbf_settings *settings = NULL;
  dvbf_reproduction *results = NULL;
  dvbf_reproduce_options how = {.preset = cli_option(options, "preset"),
                                .models = cli_option(options, "models"),
                                .force = cli_option(options, "force"),
                                .progress = cli_training_progress,
                                .stage = on_stage,
                                .note = on_note,
                                .user_data = &training};
  dvbf_status status = cli_check_system(options, error);
  if (!status) status = cli_option_needed(&folder, options, "output", error);
  if (!status) status = cli_options_settings_over(&settings, options, "train", NULL, NULL, NULL, error);
  if (!status) status = read_seeds(&how.seeds, options, error);
  how.settings = settings;
  if (!status) status = dvbf_reproduce(&results, options->arguments[0], folder, &how, error);
  cli_training_end(&training, NULL);
  if (!status && !results->stopped) {
    if (cli_option(options, "json"))
      puts(results->json);
    else
      print_results(results);
    if (!quiet) fprintf(stderr, "%s: data, runs, results.json, report.html and figures\n", folder);
  }
  dvbf_reproduction_free(results);
  dvbf_settings_free(settings);
  return status;
}

const cli_command cli_reproduce = {
    .name = "reproduce",
    .synopsis =
        "pendulum|ball|two-balls|all|zoo -o FOLDER [--seeds COUNT] [--seed FIRST] [--SETTING VALUE ...]",
    .help = "reproduce the paper: simulate, train, evaluate; tables of our results and the paper's",
    .details =
        "\nFOLDER receives report.html, results.json and figures/; for each experiment data.h5, long.h5 "
        "(test\n"
        "sequences of 45 frames) and run/, and for the pendulum a second run of the rival model. `all` has "
        "a\n"
        "folder for each experiment, several seeds have a folder seed-N each; figures are of the first "
        "seed.\n"
        "Without --preset every model is trained with our presets. Settings override those of the preset.\n"
        "`zoo` learns all simulated systems as video of 32 x 32 pixels, with settings chosen from the data.\n"
        "With --models all, every model named in the paper is compared on pendulum and ball, with tighter\n"
        "bounds and regressions by a network; each has a run folder run-MODEL.",
    .examples = {{"dvbf reproduce pendulum -o demo", "the paper's first experiment"},
                 {"dvbf reproduce all -o paper --seeds 3", "all experiments, with three seeds each"},
                 {"dvbf reproduce pendulum -o rivals --models all", "every model named in the paper"}},
    .arguments = {"SYSTEM"},
    .choices = experiments,
    .flags = {{'o', "output", "FOLDER", "folder to write"},
              {0, "models", "NAMES",
               "paper (those in its tables, the default), all, or names separated by commas"},
              {0, "seeds", "COUNT", "number of seeds, starting at --seed; 1 to 1000, default 1"},
              CLI_FLAG_PRESET,
              CLI_FLAG_CONFIG,
              CLI_FLAG_JSON,
              CLI_FLAG_FORCE,
              CLI_FLAG_QUIET},
    .tables = {"train"},
    .presets = true,
    .run = run_reproduce,
};
