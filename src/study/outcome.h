/* Our numbers beside the paper's, as tables and as JSON. */
#ifndef DV_OUTCOME_H
#define DV_OUTCOME_H

#include "report/json.h"
#include "study/experiment.h"

#include <dvbf/page.h>

/* What one seed gave one model. */
typedef struct dv_result {
  uint64_t seed;
  double values[DV_QUANTITIES];
  dvbf_evaluation *test, *far; /* on the test set, and on sequences three times as long */
  json_t *test_json, *far_json;
} dv_result;

void dv_result_clear(dv_result *result);
/* Fills the quantities that come from the two evaluations. */
void dv_result_compare(dv_result *result, const dv_experiment *experiment);

/* What all seeds gave one model. */
typedef struct dv_outcome {
  const dv_experiment *experiment;
  int contender;      /* which column of the paper's numbers */
  const char *preset; /* that was used */
  dv_result *results;
  size_t count; /* seeds that are done */
} dv_outcome;

/* Tables of all models of one experiment, under each other. Free with dv_outcome_tables_free. */
dvbf_status dv_outcome_tables(dvbf_table **out, size_t *n_tables, const dv_outcome *outcomes, size_t count,
                              dvbf_error *error);
void dv_outcome_tables_free(dvbf_table *tables, size_t count);

json_t *dv_outcome_json(const dv_outcome *outcome);

#endif
