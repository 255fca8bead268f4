/* Progress on standard error, signals that end a training, and streams that print no control characters. */
#pragma once

#include <dvbf/dvbf.h>

#include <signal.h>
#include <stdio.h>

/* ---- Progress ---- */

/* Progress on standard error: on a terminal one line that is redrawn; otherwise a line every ten seconds and
 * one at the end of training. */

typedef struct cli_progress {
  bool terminal, drawn, validated, due; /* due: a validation has not been printed yet */
  double shown_at;                      /* seconds of the report in the last line */
  char numbers[256];                    /* of the last report */
  double valid_bound, valid_prediction; /* of the last validation */
  unsigned start;
  uint64_t from_update, last_update; /* origin of the rate; update of the last report */
  double from_seconds, last_seconds;
} cli_progress;

cli_progress cli_progress_new(void);
void cli_progress_show(cli_progress *progress, const dvbf_progress *report);
/* Ends the redrawn line, so that it stays on the terminal, or writes the last line of a log. */
void cli_progress_end(cli_progress *progress);

/* Progress of work that reports the fraction done. */
typedef struct cli_share {
  bool terminal, drawn;
  double began, shown_at; /* clock at the beginning; seconds from there to the last line */
} cli_share;

/* A clock that is never set back. */
double cli_seconds(void);

cli_share cli_share_new(void);
/* A dvbf_fraction_fn; `share` is a cli_share. */
void cli_share_show(double done, void *share);
void cli_share_end(cli_share *share);

/* ---- Training ---- */

typedef struct cli_training {
  bool quiet, running;
  cli_progress progress;
  dvbf_progress last; /* before the first report 0; scores are NaN before the first validation */
  struct sigaction before[2];
} cli_training;

/* From now on SIGINT and SIGTERM end training early, with a checkpoint. */
void cli_training_begin(cli_training *training, bool quiet);
/* A dvbf_progress_fn, with the training as user_data. */
bool cli_training_progress(const dvbf_progress *progress, void *training);
/* Prints where the model is saved; folder = NULL: training failed. A second call does nothing. */
void cli_training_end(cli_training *training, const char *folder);

/* The signal that ended training, 0 when none did. */
int cli_stop_signal(void);
/* The same as a flag for dvbf_settings_interrupt. */
const volatile int *cli_stop_flag(void);
/* Shares a signal that any rank has received. All must call it. */
void cli_share_signal(void);

/* Makes the exit status report that the model is no better than the mean. */
void cli_exit_useless(void);
bool cli_is_useless(void);

/* ---- Terminal ---- */

/* Names and messages may come from files of unknown origin, whose control characters could move the cursor,
 * colour the screen or change its title. So only text reaches standard output and standard error. */

/* From now on control characters other than newline and tab are printed as '?' in stdout and stderr. If
 * memory is short nothing changes. */
void cli_terminal_protect(void);

/* Standard error for our own control characters: the line of progress. Nothing from files goes there. */
FILE *cli_terminal_own(void);
