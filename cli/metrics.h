/* The learning curves that a run left in metrics.csv. */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include <dvbf/figures.h>

/* One run for each start, in the file's order. */
typedef struct cli_metrics {
  size_t n_runs;
  dvbf_learning_run *runs;
  double *values;    /* what the runs point into */
  char (*names)[24]; /* [n_runs] "start 1" */
} cli_metrics;

/* Free with cli_metrics_free, also after a failure. */
dvbf_status cli_metrics_read(cli_metrics *out, const char *path, dvbf_error *error);
void cli_metrics_free(cli_metrics *metrics);

#endif
