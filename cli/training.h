/* One training run and its folder: model.safetensors, metrics.csv, settings.txt. */
#ifndef CLI_TRAINING_H
#define CLI_TRAINING_H

#include <dvbf/dvbf.h>

#define CLI_MODEL "model.safetensors"
#define CLI_METRICS "metrics.csv"
#define CLI_SETTINGS "settings.txt"

/* How training went. */
typedef struct cli_summary {
  uint64_t update; /* the last one */
  unsigned starts; /* how often it began */
  double seconds;
  double bound, prediction; /* of the last validation: nats per frame, error over variance (NaN: none) */
} cli_summary;

/* Trains and writes the run folder, which must exist. What a former run left there stays until the new model
 * is complete. SIGINT and SIGTERM end training early; the best model so far is then written as usual. */
dvbf_status cli_training(dvbf_model **out, cli_summary *summary, const char *folder,
                         const dvbf_settings *settings, const dvbf_data *data, bool quiet, dvbf_error *error);

/* The signal that ended training, 0 when none did. */
int cli_stop_signal(void);

#endif
