/* Printing results as text or JSON, and the verdict on a model. */
#pragma once

#include <dvbf/dvbf.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- JSON and tables ---- */

/* Whether JSON was incomplete for lack of memory at any time since `watch`. */
void cli_json_watch(void);
bool cli_json_short(void);

/* Prints to standard output and releases it. */
void cli_print_json(json_t *json);

/* A number, or null if it is not finite, which JSON cannot express. */
json_t *cli_number(double value);
json_t *cli_numbers(const double *values, size_t count);

/* A number as text: "-" if it is NaN, "diverged" if it is infinite. Returns `out`; `format` takes one
 * double. */
enum { CLI_RESULT = 32 };
const char *cli_result(char out[CLI_RESULT], const char *format, double value);

/* Whether a table of steps 1 .. count shows this step: all up to 25; otherwise the first ten, 20, 30, 50,
 * 100, 200, ... and the last. JSON has all steps. */
bool cli_shown(size_t step, size_t count);

/* ---- Verdict ---- */

/* Prints the table of errors, calibration and the sentence to standard output. */
void cli_print_verdict(const dvbf_verdict *verdict);

/* Prints an object with the verdict, which may be NULL, in it, and releases the object. */
dvbf_status cli_print_results(json_t *json, const dvbf_verdict *verdict, dvbf_error *error);

/* Judges a model with the threads of other settings. `sequences` as in dvbf_verdict_new. */
dvbf_status cli_judge(dvbf_verdict **out, const dvbf_model *model, const dvbf_data *data,
                      const dvbf_sequences *sequences, const dvbf_settings *like, dvbf_error *error);
