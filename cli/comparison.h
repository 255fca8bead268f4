/* Our numbers beside the paper's: tables for the terminal and the report, JSON for scripts. */
#ifndef CLI_COMPARISON_H
#define CLI_COMPARISON_H

#include "experiment.h"

#include <dvbf/page.h>
#include <jansson.h>

/* What one seed gave one model. */
typedef struct cli_trial {
  uint64_t seed;
  double values[CLI_QUANTITIES];
  dvbf_evaluation *test, *far; /* on the test set, and on sequences three times as long */
  json_t *test_json, *far_json;
} cli_trial;

void cli_trial_clear(cli_trial *trial);

/* What all seeds gave one model. */
typedef struct cli_outcome {
  const cli_experiment *experiment;
  int contender;      /* which column of the paper's numbers */
  const char *preset; /* that was used */
  cli_trial *trials;
  size_t count; /* seeds that are done */
} cli_outcome;

/* Fills the quantities that come from the two evaluations. */
void cli_compare(cli_trial *trial, const cli_experiment *experiment);

/* Tables of all models of one experiment, under each other. */
void cli_print_outcomes(const cli_outcome *outcomes, size_t count);
dvbf_status cli_page_outcomes(dvbf_page *page, const cli_outcome *outcomes, size_t count, dvbf_error *error);
json_t *cli_outcome_json(const cli_outcome *outcome);

#endif
