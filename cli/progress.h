/* Progress on standard error, and streams that print no control characters. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <dvbf/dvbf.h>

#include <stdio.h>

/* ---- Progress ---- */

/* Progress on standard error: on a terminal one line that is redrawn; otherwise a line every ten seconds, and
 * where a training ends. */

typedef struct cli_progress {
  bool terminal, drawn, validated, due; /* due: there is something that no line has said yet */
  double told;                          /* seconds of the report that the last line is from */
  char numbers[256];                    /* of the last report */
  double valid_bound, valid_prediction; /* of the last validation */
  unsigned start;
  uint64_t from_update, last_update; /* updates per second are counted from here; update of the last report */
  double from_seconds, last_seconds;
} cli_progress;

cli_progress cli_progress_new(void);
void cli_progress_show(cli_progress *progress, const dvbf_progress *report);
/* Ends the redrawn line, so that it stays on the terminal, or writes the last line of a log. */
void cli_progress_end(cli_progress *progress);

/* Progress of work that reports the finished share. */
typedef struct cli_share {
  bool terminal, drawn;
  double began, told; /* when it began on the clock, and seconds from there to the last line */
} cli_share;

cli_share cli_share_new(void);
/* A dvbf_fraction_fn; `share` is a cli_share. */
void cli_share_show(double done, void *share);
void cli_share_end(cli_share *share);

/* ---- Terminal ---- */

/* Names and messages may come from files of unknown origin, whose control characters could move the cursor,
 * colour the screen or change its title. So only text reaches standard output and standard error. */

/* From now on control characters other than newline and tab are printed as '?' in stdout and stderr. If
 * memory is short nothing changes. */
void cli_terminal_protect(void);

/* Standard error for our own control characters: the line of progress. Nothing from files goes there. */
FILE *cli_terminal_own(void);

#endif
