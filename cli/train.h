/* One training run, with its progress and the signals that end it. */
#ifndef CLI_TRAINING_H
#define CLI_TRAINING_H

#include "progress.h"

#include <signal.h>

#define CLI_MODEL DVBF_RUN_MODEL
#define CLI_METRICS DVBF_RUN_METRICS
#define CLI_SETTINGS DVBF_RUN_SETTINGS

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

#endif
