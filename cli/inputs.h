/* The inputs of most commands: a trained model and data. */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

#include "options.h"

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

/* Reads `path`, and the further files of the command where it is its last argument. */
dvbf_status cli_data_read(dvbf_data **out, const char *path, const cli_options *options,
                          const dvbf_settings *how, dvbf_error *error);

/* Loads the model of a run folder or of a model file. */
dvbf_status cli_load_model(dvbf_model **out, const char *run, dvbf_error *error);

#endif
