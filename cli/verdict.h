/* The verdict on a model, for `train`, `evaluate` and `predict`. */
#ifndef CLI_VERDICT_H
#define CLI_VERDICT_H

#include <dvbf/dvbf.h>
#include <jansson.h>

/* Prints the table of errors, calibration and the sentence to standard output. */
void cli_print_verdict(const dvbf_verdict *verdict);

/* Adds it to an object. */
dvbf_status cli_add_verdict(json_t *json, const dvbf_verdict *verdict, dvbf_error *error);

/* Judges a model with the threads of other settings. `sequences` as in dvbf_judge. */
dvbf_status cli_judge(dvbf_verdict **out, const dvbf_model *model, const dvbf_data *data,
                      const dvbf_sequences *sequences, const dvbf_settings *like, dvbf_error *error);

#endif
