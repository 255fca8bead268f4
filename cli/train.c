/* dvbf train: data in, run folder out. Warns about data, chooses settings that the user left open, trains or
 * resumes, and judges the model. The first SIGINT or SIGTERM ends training with a checkpoint
 * (cli_training_*). */
#include "train.h"

#include "flags.h"
#include "inputs.h"
#include "options.h"
#include "output.h"
#include "ranks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void tell_remark(const char *sentence, void *user) {
  (void)user;
  char note[1024];
  cli_flags(note, sizeof note, sentence);
  fprintf(stderr, "note: %s\n", note);
}

static void tell_choice(const char *name, const char *value, const char *was, const char *why, void *user) {
  (void)was;
  bool *any = user;
  if (!*any) fprintf(stderr, "chosen for these data:\n");
  *any = true;
  fprintf(stderr, "  %s = %s (%s)\n", name, value, why);
}

/* Reports warnings about the data, and chooses and reports values that the user left open. */
static dvbf_status suit(dvbf_settings *settings, const dvbf_data *data, bool quiet, dvbf_error *error) {
  bool any = false;
  dvbf_status status = quiet ? DVBF_OK : dvbf_data_warnings(data, tell_remark, NULL, error);
  return status ? status : dvbf_settings_choose(settings, data, quiet ? NULL : tell_choice, &any, error);
}

/* For scripts: the course of the run. `updates` are those of the model that was kept. */
static dvbf_status print_json(const dvbf_model *model, const dvbf_progress *last,
                              const dvbf_settings *settings, const dvbf_verdict *verdict, dvbf_error *error) {
  dvbf_model_info info = dvbf_model_describe(model);
  json_t *json =
      json_pack("{s:I, s:f, s:i, s:I, s:I, s:i, s:o, s:o}", "updates", (json_int_t)info.updates, "seconds",
                last->seconds, "starts", (int)last->begun, "parameters", (json_int_t)info.parameters, "seed",
                (json_int_t)info.seed, "threads", (int)dvbf_settings_threads(settings), "valid_bound",
                cli_number(last->valid_bound), "valid_prediction", cli_number(last->valid_prediction));
  dvbf_status status = verdict ? cli_add_verdict(json, verdict, error) : DVBF_OK;
  if (status)
    json_decref(json);
  else
    cli_print_json(json);
  return status;
}

/* The last line. A useless model is reported even without progress. */
static void tell_verdict(const dvbf_verdict *v, const char *folder, bool quiet) {
  if (v->useful && quiet) return;
  fprintf(stderr, "%s%s%s: %s\n", quiet ? "dvbf: " : "", quiet ? folder : "verdict",
          !strcmp(v->split, "train") ? " on the training data, as there are no others" : "", v->sentence);
}

/* The linear model of a run without a search, so that this verdict and later ones know it. */
static dvbf_status add_linear(dvbf_model *model, const dvbf_data *data, const char *folder,
                              dvbf_error *error) {
  cli_path path;
  bool added;
  dvbf_status status = dvbf_model_add_linear(&added, model, data, NULL, error);
  cli_join(path, folder, CLI_MODEL);
  return status || !added || cli_rank() ? status : dvbf_model_save(model, path, error);
}

/* A stopped run is judged when it is resumed to its end. */
static dvbf_status judge(dvbf_verdict **out, const cli_options *options, dvbf_model *model,
                         const dvbf_data *data, const char *folder, const dvbf_settings *settings,
                         dvbf_error *error) {
  if (cli_option(options, "no-verdict") || cli_stop_signal()) return DVBF_OK;
  dvbf_status status = add_linear(model, data, folder, error);
  return status ? status : cli_judge(out, model, data, NULL, settings, error);
}

/* Refuses an existing run before data are read. */
static dvbf_status refuse_former(const dvbf_train_options *run, dvbf_error *error) {
  static const char *const names[] = {CLI_MODEL, DVBF_RUN_CHECKPOINT, CLI_METRICS, CLI_SETTINGS};
  cli_path path;
  if (run->resume && run->force)
    return cli_fail(error, DVBF_ARGUMENT, "--resume goes on with a run and --force replaces it: choose one");
  for (size_t i = 0; !run->resume && !run->force && i < sizeof names / sizeof *names; i++) {
    cli_join(path, run->folder, names[i]);
    if (cli_exists(path))
      return cli_fail(
          error, DVBF_IO,
          "%.300s: exists already and is left as it is; choose another folder, or add --resume to "
          "go on or --force to begin anew",
          path);
  }
  return DVBF_OK;
}

/* A resumed run keeps its settings; given ones may not change it. */
static dvbf_status read_settings(dvbf_settings **out, const cli_options *options,
                                 const dvbf_train_options *run, dvbf_error *error) {
  cli_path path;
  cli_join(path, run->folder, CLI_SETTINGS);
  bool own = run->resume && cli_exists(path);
  return own ? cli_options_settings_over(out, options, "train", path, error)
             : cli_options_settings(out, options, "train", error);
}

/* Trains together with the other ranks, if there are any. */
static dvbf_status train(dvbf_model **out, dvbf_settings *settings, const dvbf_data *data,
                         const dvbf_train_options *how, cli_training *training, bool quiet,
                         dvbf_error *error) {
  if (!cli_ranks()) dvbf_settings_interrupt(settings, cli_stop_flag()); /* ranks agree on an end themselves */
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
  if (!status) status = read_settings(&settings, options, &how, error);
  if (!status) status = dvbf_settings_check(settings, error);
  if (!status) dvbf_settings_ranks(settings, cli_ranks());
  if (!status) status = cli_data_read(&data, options->arguments[0], options, settings, error);
  if (!status && *data->question)
    status = cli_fail(error, DVBF_FORMAT, "%.200s: %s", options->arguments[0], data->question);
  if (!status && first) status = dvbf_folder_make(how.folder, error);
  if (!status) status = suit(settings, data, quiet, error);
  if (!status) status = train(&model, settings, data, &how, &training, quiet, error);
  if (!status) status = judge(&verdict, options, model, data, how.folder, settings, error);
  if (!status && first && cli_option(options, "json"))
    status = print_json(model, &training.last, settings, verdict, error);
  if (!status && verdict && first) tell_verdict(verdict, how.folder, quiet);
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
    .help = "learn a model from the sequences of a file: HDF5, NPZ, NPY or CSV",
    .details =
        "\nDATA is a file, several files, a folder of them or a pattern in quotes ('data/*.h5').\n\n"
        "SIGINT (Ctrl-C) and SIGTERM end training early: the best model so far and a checkpoint are "
        "saved,\n"
        "and the exit status is 128 plus the signal (130, 143). Whatever ended a run, --resume goes on from "
        "its\n"
        "last checkpoint and comes to the same bytes as if it had never ended. It takes the settings from\n"
        "FOLDER; given ones must be the same, but for threads, segments and checkpoint-every. The same seed\n"
        "gives the same model, bit for bit, with any number of threads.\n\n"
        "--resume --updates MORE extends a run that is finished. From there on, the learning rate is that "
        "of\n"
        "a run with MORE updates, so it rises again and then falls; the last phase (filter-updates) is done\n"
        "anew. A search is not extended: train again with more updates.\n\n"
        "At the end the model is set beside the mean of the training data, the last value and the best "
        "linear\n"
        "model, on data that it was not trained on (test, else valid). The last line says what that shows.\n"
        "The exit status is 3 where the model is not better than the mean: it is saved, but a script should\n"
        "not use it and should try what the line names.",
    .examples = {{"dvbf train pendulum.h5 -o run", "learn, with settings that suit the data"},
                 {"dvbf train ball.h5 -o run --preset ball --seed 2", "start from a preset"},
                 {"dvbf train own.npz -o run", "data of your own: what is chosen for them is printed"},
                 {"dvbf train bench.csv -o run --outputs y --inputs u1,u2", "columns of a CSV file"},
                 {"dvbf train own.npz -o run --resume", "go on after a stop"},
                 {"dvbf train own.npz -o run --resume --updates 20000", "extend a finished run"},
                 {"mpirun -n 8 dvbf train own.h5 -o run", "on several machines, to the same bytes"}},
    .arguments = {"DATA"},
    .many = true,
    .flags = {{'o', "output", "FOLDER",
               "run folder: " CLI_MODEL ", " CLI_METRICS ", " CLI_SETTINGS ", " DVBF_RUN_CHECKPOINT},
              {0, "resume", NULL, "go on with the run in FOLDER, with its settings; begin if it has none"},
              {0, "no-verdict", NULL,
               "do not judge the model at the end, and let the exit status be 0 however bad it is"},
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

/* ---- Training ---- */

static volatile sig_atomic_t stop_signal;

static void on_signal(int number) {
  stop_signal = number;
}

int cli_stop_signal(void) {
  return stop_signal;
}

const volatile int *cli_stop_flag(void) {
  return &stop_signal;
}

void cli_share_signal(void) {
  stop_signal = dvbf_ranks_largest(cli_ranks(), stop_signal);
}

static bool useless;

void cli_exit_useless(void) {
  useless = true;
}

bool cli_is_useless(void) {
  return useless;
}

/* The first signal ends training with a checkpoint; a second one has its usual effect. */
void cli_training_begin(cli_training *t, bool quiet) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
  *t = (cli_training){.quiet = quiet,
                      .running = true,
                      .progress = cli_progress_new(),
                      .last = {.valid_bound = NAN, .valid_prediction = NAN}};
  dvbf_ranks_set_interrupt(cli_ranks(), &stop_signal);
  sigaction(SIGINT, &action, &t->before[0]);
  sigaction(SIGTERM, &action, &t->before[1]);
}

bool cli_training_progress(const dvbf_progress *progress, void *training) {
  cli_training *t = training;
  t->last = *progress;
  if (!t->quiet) cli_progress_show(&t->progress, progress);
  return !stop_signal;
}

/* An early end is reported even without progress. */
void cli_training_end(cli_training *t, const char *folder) {
  unsigned long long update = t->last.update;
  if (!t->running) return;
  t->running = false;
  sigaction(SIGINT, &t->before[0], NULL);
  sigaction(SIGTERM, &t->before[1], NULL);
  cli_progress_end(&t->progress);
  if (!folder) return;
  if (stop_signal)
    fprintf(stderr,
            "dvbf: stopped by %s after %llu updates; the best model so far is saved in %s; "
            "`dvbf train DATA -o %s --resume` goes on\n",
            stop_signal == SIGINT ? "SIGINT" : "SIGTERM", update, folder, folder);
  else if (!t->quiet)
    fprintf(stderr, "%llu updates in %.1f s; the best model is saved in %s\n", update, t->last.seconds,
            folder);
}
