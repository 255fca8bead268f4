/* Figures of an experiment that set its models side by side. */
#ifndef CLI_EXHIBITS_H
#define CLI_EXHIBITS_H

#include "measure.h"

#include <dvbf/page.h>

typedef struct cli_exhibits {
  const cli_experiment *experiment;
  const char *folder; /* that receives the figures and exists */
  size_t models;
  const char *name[CLI_MODELS];
  cli_source source[CLI_MODELS];
  bool quiet; /* as in a chapter */
} cli_exhibits;

/* Draws them and adds them to the page; what cannot be drawn is left out, and the page says why. */
dvbf_status cli_exhibits_add(dvbf_page *page, const cli_exhibits *exhibits, dvbf_error *error);

#endif
