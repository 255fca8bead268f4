/* Figures of an experiment that set its models side by side. */
#ifndef CLI_EXHIBITS_H
#define CLI_EXHIBITS_H

#include "experiment.h"

#include <dvbf/page.h>

typedef struct cli_exhibits {
  const cli_experiment *experiment;
  const char *folder; /* that receives the figures and exists */
  size_t models;
  const char *name[CLI_MODELS];
  const dvbf_model *model[CLI_MODELS];
  const dvbf_data *data;
  uint64_t seed;
  unsigned threads;
} cli_exhibits;

/* Draws them and adds them to the page. */
dvbf_status cli_exhibits_add(dvbf_page *page, const cli_exhibits *exhibits, dvbf_error *error);

#endif
