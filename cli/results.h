/* Printing results as text or as JSON. */
#ifndef CLI_RESULTS_H
#define CLI_RESULTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* From `watch` on, whether memory was short for JSON at any time: what jansson has no memory for it leaves
 * out. */
void cli_json_watch(void);
bool cli_json_short(void);

/* Prints to standard output and releases it. */
void cli_print_json(json_t *json);

/* A number, or null where it is not finite: JSON knows no other way to say so. */
json_t *cli_number(double value);
json_t *cli_numbers(const double *values, size_t count);

/* Whether a table of steps 1 .. count shows this step. A short table shows all; a long one shows the first
 * ten, then 20, 30, 50, 100, 200, ..., and the last. JSON has all steps. */
bool cli_shown(size_t step, size_t count);

#endif
