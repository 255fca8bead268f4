/* Progress on standard error: on a terminal one line that is redrawn; otherwise one line per validation of a
 * training, and one for each tenth of other work that takes long. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <dvbf/dvbf.h>

typedef struct cli_progress {
  bool terminal, drawn, validated;
  double valid_bound, valid_prediction; /* of the last validation */
  unsigned start;
  uint64_t from_update, last_update; /* updates per second are counted from here; update of the last report */
  double from_seconds, last_seconds;
} cli_progress;

cli_progress cli_progress_new(void);
void cli_progress_show(cli_progress *progress, const dvbf_progress *report);
/* Ends the redrawn line, so that it stays on the terminal. */
void cli_progress_end(cli_progress *progress);

/* Of work that tells which share of it is done. */
typedef struct cli_share {
  bool terminal, drawn;
  double began, told; /* seconds on the clock; the share that was told last */
} cli_share;

cli_share cli_share_new(void);
/* A dvbf_share_fn; `share` is a cli_share. */
void cli_share_show(double done, void *share);
void cli_share_end(cli_share *share);

#endif
