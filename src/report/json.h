/* Results as JSON, by jansson. */
#ifndef DV_JSON_H
#define DV_JSON_H

#include <dvbf/dvbf.h>
#include <jansson.h>

/* A number, or null where it is not finite: JSON knows no other way to say so. */
json_t *dv_json_number(double value);

/* The object of dvbf_evaluation_json; NULL when memory is short or a name is not UTF-8. */
json_t *dv_json_evaluation(const dvbf_evaluation *evaluation, const dvbf_model *model, double seconds,
                           unsigned threads);

/* Indented text without a line's end, as all commands print it, and releases `json`. Fails where that is
 * NULL. Free with dvbf_text_free. */
dvbf_status dv_json_text(char **out, json_t *json, dvbf_error *error);

#endif
