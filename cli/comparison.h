/* The numbers that `dvbf reproduce` sets beside the paper's. */
#ifndef CLI_COMPARISON_H
#define CLI_COMPARISON_H

#include <dvbf/dvbf.h>
#include <jansson.h>

enum {
  CLI_SIN_LIKELIHOOD,
  CLI_SIN_R2,
  CLI_COS_LIKELIHOOD,
  CLI_COS_R2,
  CLI_VELOCITY_LIKELIHOOD,
  CLI_VELOCITY_R2,
  CLI_BOUND,
  CLI_RECONSTRUCTION,
  CLI_KL,
  CLI_ERROR_SHORT,
  CLI_ERROR_LONG,
  CLI_SECONDS,
  CLI_STARTS,
  CLI_COLUMNS
};

/* What one seed gave. */
typedef struct cli_trial {
  uint64_t seed;
  double values[CLI_COLUMNS];
  json_t *test, *lengthy; /* both evaluations in full */
} cli_trial;

/* Column of the state whose name begins with `prefix`; -1 when there is none. */
int cli_state_column(const dvbf_data *data, const char *prefix);

/* Fills the columns that come from the evaluations: on the test set, and on sequences three times as long. */
void cli_compare(cli_trial *trial, const dvbf_data *data, const dvbf_evaluation *test,
                 const dvbf_evaluation *lengthy);

void cli_print_comparison(const cli_trial *trials, size_t count);
/* The same with everything the evaluations hold; NULL when memory is short. */
json_t *cli_comparison_json(const cli_trial *trials, size_t count);

#endif
