/* One training run, with its progress and the signals that end it. */
#ifndef CLI_TRAINING_H
#define CLI_TRAINING_H

#include <dvbf/dvbf.h>

#define CLI_MODEL DVBF_RUN_MODEL
#define CLI_METRICS DVBF_RUN_METRICS
#define CLI_SETTINGS DVBF_RUN_SETTINGS

typedef struct cli_run {
  const char *folder; /* must exist */
  bool resume, force; /* go on with the run that is there, or replace it */
  bool quiet;
} cli_run;

/* How training went. */
typedef struct cli_summary {
  uint64_t update; /* the last one */
  unsigned starts; /* how often it began */
  double seconds;
  double bound, prediction; /* of the last validation: nats per frame, error over variance (NaN: none) */
} cli_summary;

/* Trains and keeps the run folder. SIGINT and SIGTERM end training early, with a checkpoint. */
dvbf_status cli_training(dvbf_model **out, cli_summary *summary, const cli_run *run,
                         const dvbf_settings *settings, const dvbf_data *data, dvbf_error *error);

/* The signal that ended training, 0 when none did. */
int cli_stop_signal(void);

#endif
