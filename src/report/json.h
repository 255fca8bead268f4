/* Results as JSON, by jansson. */
#pragma once

#include <dvbf/dvbf.h>
#include <jansson.h>

/* A number, or null if it is not finite, which JSON cannot express; and an array of them. NULL when memory is
 * short. */
json_t *dv_json_number(double value);
json_t *dv_json_numbers(const double *values, size_t count);

/* The object of dvbf_evaluation_json; NULL when memory is short or a name is not UTF-8. */
json_t *dv_json_evaluation(const dvbf_evaluation *evaluation, const dvbf_model *model, double seconds,
                           unsigned threads);

/* Writes `json` as indented text without a final newline, and releases it. Fails if `json` is NULL. Free the
 * text with dvbf_text_free. */
dvbf_status dv_json_text(char **out, json_t *json, dvbf_error *error);

/* Writes such a text as a file. */
dvbf_status dv_json_write(const char *path, const char *text, dvbf_error *error);
