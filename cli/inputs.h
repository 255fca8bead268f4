/* The inputs of most commands: a trained model, data, and goals of controllers. */
#pragma once

#include "options.h"

#include <dvbf/control.h>

/* ---- Inputs ---- */

typedef struct cli_inputs {
  dvbf_settings *settings; /* of the command's table */
  dvbf_model *model;
  dvbf_model_info info;
  dvbf_data *data;                 /* NULL if the command was given no data; then `sequences` is NULL too */
  const dvbf_sequences *sequences; /* the split that the settings name */
} cli_inputs;

/* Reads RUN (a run folder or a model file) and DATA, the command's arguments or the value of --from or
 * --data. Free with cli_inputs_free, also after a failure. */
dvbf_status cli_inputs_read(cli_inputs *out, const cli_options *options, dvbf_error *error);
void cli_inputs_free(cli_inputs *inputs);

/* Reads `path` and the further data files of the command line. */
dvbf_status cli_data_read(dvbf_data **out, const char *path, const cli_options *options,
                          const dvbf_settings *how, dvbf_error *error);

/* Loads the model of a run folder or of a model file. */
dvbf_status cli_load_model(dvbf_model **out, const char *run, dvbf_error *error);

/* ---- Goals ---- */

typedef struct cli_goal {
  dvbf_goal goal;
  float *arrays[5]; /* of the goal, to be freed: x, z, state, map, weights */
} cli_goal;

/* `text` is a file, or a list of numbers. `settings` is of the table "control"; with goal-space = state the
 * map from z to the state is fitted to the sequences, or read from the file if they are NULL. Free with
 * cli_goal_free, also after a failure. */
dvbf_status cli_goal_read(cli_goal *out, const char *text, const dvbf_model *model,
                          const dvbf_settings *settings, const dvbf_sequences *sequences, dvbf_error *error);
void cli_goal_free(cli_goal *goal);

#define CLI_FLAG_GOAL                                                                                        \
  { 0, "goal", "GOAL", "file with the goal, or a list of numbers separated by commas" }
