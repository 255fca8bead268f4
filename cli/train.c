/* dvbf train: data in, run folder out. Warns about data, chooses settings that the user left open, trains or
 * resumes, and compares the model with the baselines. */
#include "inputs.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "ranks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_warning(const char *sentence, void *user) {
  char note[1024];
  cli_flags(note, sizeof note, sentence);
  fprintf(stderr, "note: %s\n", note);
}

static void print_choice(const char *name, const char *value, const char *was, const char *why, void *user) {
  bool *any = user;
  if (!*any) fprintf(stderr, "chosen for these data:\n");
  *any = true;
  fprintf(stderr, "  %s = %s (%s)\n", name, value, why);
}

/* Warns about the data; chooses and prints the values that the user left open. */
static dvbf_status choose_open_settings(dvbf_settings *settings, const dvbf_data *data, bool quiet,
                                        dvbf_error *error) {
  bool any = false;
  dvbf_status status = quiet ? DVBF_OK : dvbf_data_warnings(data, print_warning, NULL, error);
  return status ? status : dvbf_settings_choose(settings, data, quiet ? NULL : print_choice, &any, error);
}

/* `updates` are those of the model that was kept. */
static dvbf_status print_run(const dvbf_model *model, const dvbf_progress *last,
                             const dvbf_settings *settings, const dvbf_verdict *verdict, dvbf_error *error) {
  dvbf_model_info info = dvbf_model_describe(model);
  json_t *json =
      json_pack("{s:I, s:f, s:i, s:I, s:I, s:i, s:o, s:o}", "updates", (json_int_t)info.updates, "seconds",
                last->seconds, "starts", (int)last->begun, "parameters", (json_int_t)info.parameters, "seed",
                (json_int_t)info.seed, "threads", (int)dvbf_settings_threads(settings), "valid_bound",
                cli_number(last->valid_bound), "valid_prediction", cli_number(last->valid_prediction));
  return cli_print_results(json, verdict, error);
}

/* The last line. A useless model is reported even with --quiet. */
static void print_sentence(const dvbf_verdict *v, const char *folder, bool quiet) {
  if (v->useful && quiet) return;
  fprintf(stderr, "%s%s%s: %s\n", quiet ? "dvbf: " : "", quiet ? folder : "verdict",
          !strcmp(v->split, "train") ? " (on the training data, as there are no other data)" : "",
          v->sentence);
}

/* Adds the linear baseline to the model of a run without a search, for this verdict and later ones. */
static dvbf_status add_linear(dvbf_model *model, const dvbf_data *data, const char *folder,
                              dvbf_error *error) {
  dv_path path;
  bool added;
  dvbf_status status = dvbf_model_add_linear(&added, model, data, NULL, error);
  dv_join(path, folder, DVBF_RUN_MODEL);
  return status || !added || cli_rank() ? status : dvbf_model_save(model, path, error);
}

/* The verdict of an interrupted run comes when it has been resumed and is finished. */
static dvbf_status judge(dvbf_verdict **out, const cli_options *options, dvbf_model *model,
                         const dvbf_data *data, const char *folder, const dvbf_settings *settings,
                         dvbf_error *error) {
  if (cli_option(options, "no-verdict") || cli_stop_signal()) return DVBF_OK;
  dvbf_status status = add_linear(model, data, folder, error);
  return status ? status : cli_judge(out, model, data, NULL, settings, error);
}

/* Refuses an existing run before data are read. */
static dvbf_status refuse_former(const dvbf_train_options *run, dvbf_error *error) {
  static const char *const names[] = {DVBF_RUN_MODEL, DVBF_RUN_CHECKPOINT, DVBF_RUN_METRICS,
                                      DVBF_RUN_SETTINGS};
  dv_path path;
  if (run->resume && run->force)
    return dv_fail(error, DVBF_ARGUMENT, "--resume continues a run and --force replaces it: choose one");
  for (size_t i = 0; !run->resume && !run->force && i < sizeof names / sizeof *names; i++) {
    dv_join(path, run->folder, names[i]);
    if (dv_exists(path))
      return dv_fail(error, DVBF_IO,
                     "%.300s: already exists and was not changed; choose another folder, or add --resume to "
                     "continue or --force to start again",
                     path);
  }
  return DVBF_OK;
}

/* A resumed run keeps its settings; given ones may not change it. */
static dvbf_status read_training(dvbf_settings **out, const cli_options *options,
                                 const dvbf_train_options *run, dvbf_error *error) {
  dv_path path;
  dv_join(path, run->folder, DVBF_RUN_SETTINGS);
  bool own = run->resume && dv_exists(path);
  return cli_options_settings_over(out, options, "train", NULL, own ? path : NULL,
                                   cli_option(options, "preset"), error);
}

/* Trains together with the other ranks, if there are any. */
static dvbf_status train(dvbf_model **out, dvbf_settings *settings, const dvbf_data *data,
                         const dvbf_train_options *how, cli_training *training, bool quiet,
                         dvbf_error *error) {
  if (!cli_ranks())
    dvbf_settings_interrupt(settings, cli_stop_flag()); /* ranks agree on the end themselves */
  cli_training_begin(training, quiet);
  dvbf_status status = dvbf_train(out, settings, data, how, error);
  if (!status) cli_share_signal();
  cli_training_end(training, status || cli_rank() ? NULL : how->folder);
  return status;
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  cli_training training = {0};
  dvbf_train_options how = {.progress = cli_training_progress,
                            .user_data = &training,
                            .resume = cli_option(options, "resume"),
                            .force = cli_option(options, "force")};
  bool first = cli_rank() == 0, quiet = !first || cli_option(options, "quiet");
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  dvbf_model *model = NULL;
  dvbf_verdict *verdict = NULL;
  dvbf_status status = cli_option_needed(&how.folder, options, "output", error);
  if (!status) status = refuse_former(&how, error);
  if (!status) status = read_training(&settings, options, &how, error);
  if (!status) status = dvbf_settings_check(settings, error);
  if (!status) dvbf_settings_ranks(settings, cli_ranks());
  if (!status) status = cli_data_read(&data, options->arguments[0], options, settings, error);
  if (!status && *data->question)
    status = dv_fail(error, DVBF_FORMAT, "%.200s: %s", options->arguments[0], data->question);
  if (!status && first) status = dvbf_folder_make(how.folder, error);
  if (!status) status = choose_open_settings(settings, data, quiet, error);
  if (!status) status = train(&model, settings, data, &how, &training, quiet, error);
  if (!status) status = judge(&verdict, options, model, data, how.folder, settings, error);
  if (!status && first && cli_option(options, "json"))
    status = print_run(model, &training.last, settings, verdict, error);
  if (!status && verdict && first) print_sentence(verdict, how.folder, quiet);
  if (!status && verdict && !verdict->useful) cli_exit_useless();
  dvbf_verdict_free(verdict);
  dvbf_model_free(model);
  dvbf_data_free(data);
  dvbf_settings_free(settings);
  return status;
}

const cli_command cli_train = {
    .name = "train",
    .synopsis =
        "DATA ... -o FOLDER [--resume] [--preset NAME] [--config FILE] [--json] [--SETTING VALUE ...]",
    .help = "learn a model from files of sequences",
    .details =
        "\nDATA is a file ({read}), several, a folder of them or a pattern in quotes ('data/*.h5').\n"
        "\n"
        "SIGINT (Ctrl-C) and SIGTERM end training early: the best model so far and a checkpoint are saved, "
        "and\n"
        "the exit status is 128 plus the signal (130, 143). --resume continues any unfinished run from its "
        "last\n"
        "checkpoint; the result is identical to that of an uninterrupted run. Settings are read from "
        "FOLDER;\n"
        "given ones must be equal, except threads and checkpoint-every.\n"
        "\n"
        "--resume --updates MORE extends a finished run: the learning rate continues at that of a run with "
        "MORE\n"
        "updates, and the last phase (training of the gain) is repeated. A search cannot be extended.\n"
        "\n"
        "Runs are reproducible: the same seed gives an identical model for any number of threads.\n"
        "\n"
        "After training, the model is compared with three baselines on held-out data: the mean, the last "
        "value\n"
        "and the best linear model. The last line is the result. The exit status is 3 if the model is no "
        "better\n"
        "than the mean: it is saved, but scripts should not use it; the last line says what to try.",
    .examples = {{"dvbf train pendulum.h5 -o run", "train with settings chosen from the data"},
                 {"dvbf train ball.h5 -o run --preset ball --seed 2", "start from a preset"},
                 {"dvbf train own.npz -o run", "own data; the chosen settings are printed"},
                 {"dvbf train bench.csv -o run --outputs y --inputs u1,u2",
                  "select the columns of a CSV file"},
                 {"dvbf train own.npz -o run --resume", "continue after an interruption"},
                 {"dvbf train own.npz -o run --resume --updates 20000", "extend a finished run"},
                 {"mpirun -n 8 dvbf train own.h5 -o run",
                  "train on several machines, with an identical result"}},
    .arguments = {"DATA"},
    .many = true,
    .flags = {{'o', "output", "FOLDER", "run folder to write"},
              {0, "resume", NULL, "continue the run in FOLDER with its settings; start one if there is none"},
              {0, "no-verdict", NULL,
               "skip the comparison with the baselines; the exit status is then never 3"},
              CLI_FLAG_PRESET,
              CLI_FLAG_CONFIG,
              CLI_FLAG_JSON,
              CLI_FLAG_FORCE,
              CLI_FLAG_RANKS,
              CLI_FLAG_QUIET},
    .tables = {"train"},
    .presets = true,
    .shared = true,
    .run = run,
};
