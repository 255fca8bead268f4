/* An evaluation as tables for people and as JSON for scripts. */
#ifndef CLI_RESULTS_H
#define CLI_RESULTS_H

#include <dvbf/dvbf.h>
#include <jansson.h>
#include <stdbool.h>

/* Worker threads that the setting `threads` of these settings stands for. */
unsigned cli_threads(const dvbf_settings *settings);

/* Prints to standard output. */
void cli_print_json(const json_t *json);

void cli_print_evaluation(const dvbf_evaluation *evaluation, const dvbf_model_info *model);

/* {"regression", "bound", "prediction", "updates", "seconds", "parameters", "seed", "threads"}; NULL when
 * memory is short or a name is not UTF-8. The caller releases it with json_decref. */
json_t *cli_evaluation_json(const dvbf_evaluation *evaluation, const dvbf_model_info *model, double seconds,
                            unsigned threads);

/* Whether a table by steps 1 .. count shows this one: all of a short table; of a long one the first ten, then
 * 20, 30, 50, 100, 200, ..., and the last. JSON has them all. */
bool cli_shown(size_t step, size_t count);

/* A number, or null where it is not finite: JSON knows no other way to say so. */
json_t *cli_number(double value);
json_t *cli_numbers(const double *values, size_t count);

/* Seconds of a clock that only runs forward. */
double cli_clock(void);

#endif
