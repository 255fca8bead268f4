/* dvbf learn-control: from random controls to a controller for a simulated system, in one command; prints the
 * results of its closed loops. */
#include "inputs.h"
#include "options.h"
#include "output.h"
#include "progress.h"

#include <dvbf/report.h>
#include <stdio.h>
#include <string.h>

static void on_sentence(const char *sentence, void *user_data) {
  const cli_training *training = user_data;
  if (!training->quiet) fprintf(stderr, "%s\n", sentence);
}

static void print(const dvbf_loop_result *o, const char *folder) {
  if (o->sequences)
    printf("trained on %zu sequences of %zu frames, in %.0f s\n", o->sequences, o->frames, o->seconds);
  printf("%zu closed loops of %zu steps\n", o->episodes, o->steps);
  char text[2][CLI_RESULT];
  printf("  steps in the goal region  %s\n", cli_result(text[0], "%.1f %%", 100 * o->share));
  printf("  reached the goal          %zu\n", o->reached);
  printf("  stayed, second half       %zu\n", o->held);
  printf("  stayed, last quarter      %zu\n", o->recovered);
  printf("  mean return               %s\n", cli_result(text[0], "%.1f", o->value));
  printf("  controller step           %s us median, %s us 99 %%\n", cli_result(text[0], "%.0f", o->median),
         cli_result(text[1], "%.0f", o->late));
  if (folder) printf("report with videos: %s/control.html\n", folder);
}

/* The settings of the four tables. A preset for another system has no values for the data of this one. */
static dvbf_status read_settings(dvbf_settings *out[4], const cli_options *options, dvbf_error *error) {
  const char *system = options->arguments[0], *preset = cli_option(options, "preset");
  if (!preset && !cli_option(options, "config") && dvbf_preset_system(system)) preset = system;
  const char *made_for = preset ? dvbf_preset_system(preset) : NULL;
  bool data = made_for && !strcmp(made_for, system);
  const char *tables[4][2] = {{system, data ? preset : NULL}, {"train", preset}, {"control"}, {"loop"}};
  dvbf_status status = DVBF_OK;
  for (int i = 0; !status && i < 4; i++)
    status = cli_options_settings_over(&out[i], options, tables[i][0], NULL, NULL, tables[i][1], error);
  return status;
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  dvbf_settings *settings[4] = {NULL};
  dvbf_model *model = NULL;
  dvbf_loop_result *outcome = NULL;
  const char *folder = NULL, *given = cli_option(options, "model-of");
  cli_training training = {0};
  dvbf_status status = cli_check_system(options, error);
  if (!status) status = cli_option_needed(&folder, options, "output", error);
  if (!status) status = read_settings(settings, options, error);
  if (!status && given) status = cli_load_model(&model, given, error);
  if (!status) dvbf_settings_interrupt(settings[1], cli_stop_flag());
  cli_training_begin(&training, cli_option(options, "quiet"));
  dvbf_loop asked = {.system = settings[0],
                     .train = settings[1],
                     .control = settings[2],
                     .loop = settings[3],
                     .model = model,
                     .folder = folder,
                     .force = cli_option(options, "force"),
                     .progress = cli_training_progress,
                     .tell = on_sentence,
                     .user_data = &training};
  if (!status) status = dvbf_learn_control(&outcome, &asked, error);
  cli_training_end(&training, NULL);
  if (!status) print(outcome, folder);
  dvbf_loop_result_free(outcome);
  dvbf_model_free(model);
  for (int i = 0; i < 4; i++) dvbf_settings_free(settings[i]);
  return status;
}

const cli_command cli_learn_control = {
    .name = "learn-control",
    .synopsis = "SYSTEM -o FOLDER [--trainings N] [--SETTING VALUE ...]",
    .help = "learn to control a simulated system from images: collect, train, control, evaluate",
    .details =
        "\nSequences with random controls are simulated and a model is trained on them. The controller of\n"
        "`dvbf control` then runs closed loops with the image of the system at its goal (upright and at "
        "rest),\n"
        "starting at --first-angle, or anywhere (arm, planar). With several trainings, each but the first "
        "adds\n"
        "closed loops of the previous model to its data; one more follows, up to --max-trainings, if the\n"
        "controls that the model plans hardly hold it at the goal. FOLDER receives the run of the last\n"
        "training, control.json, control.html with videos and the latent space, a strip of images and a "
        "video.\n"
        "The return is -sum(distance^2 + 0.1 velocity^2 + 0.001 u^2); for an angle, of the angle.",
    .examples =
        {{"dvbf learn-control pendulum --torque 5 --horizon 200 -o swing",
          "a pendulum that needs several swings"},
         {"dvbf learn-control pendulum --torque 5 --model-of swing --dropout 0.2 -o lost",
          "the same model, with a fifth of the frames dropped"},
         {"dvbf learn-control cart-pole --first-angle 0.15 --first-range 0.05 --plan 15 --discount 0.9 "
          "--control-weight 1 -o held",
          "balance a pole on a cart, starting near upright"}},
    .arguments = {"SYSTEM"},
    .systems = CLI_GOAL_SYSTEMS,
    .flags = {{'o', "output", "FOLDER", "folder to write"},
              {0, "model-of", "RUN", "use the model of this run instead of training"},
              CLI_FLAG_PRESET,
              CLI_FLAG_CONFIG,
              CLI_FLAG_FORCE,
              CLI_FLAG_QUIET},
    .tables = {"loop", "control", "train"},
    .presets = true,
    .run = run,
};
