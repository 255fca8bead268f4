/* Progress of training on standard error: one line redrawn on a terminal, a line for each validation
 * elsewhere. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <dvbf/dvbf.h>

typedef struct cli_progress {
  bool terminal, drawn, validated;
  double valid_bound, valid_prediction; /* the last ones, once validated */
  unsigned start;
  uint64_t from_update, last_update; /* the rate counts from here; the last report */
  double from_seconds, last_seconds;
} cli_progress;

cli_progress cli_progress_new(void);
void cli_progress_show(cli_progress *progress, const dvbf_progress *report);
/* Leaves the redrawn line on the terminal. */
void cli_progress_end(cli_progress *progress);

#endif
