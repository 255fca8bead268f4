/* One experiment of the paper, run for all its seeds: simulate, train, evaluate, and show the first seed. */
#ifndef CLI_STUDY_H
#define CLI_STUDY_H

#include "comparison.h"
#include "files.h"

/* One experiment of the paper with the models that are to be trained on it. */
typedef struct cli_study {
  const cli_experiment *experiment;
  cli_path folder;
  const char *preset; /* the user's, which decides on data as well; NULL: ours */
  size_t n_models;
  dvbf_settings *settings[CLI_MODELS]; /* of training; every trial sets its own seed */
  cli_outcome outcome[CLI_MODELS];
} cli_study;

/* All that was asked for. */
typedef struct cli_work {
  const char *folder;
  size_t n_studies, n_seeds;
  cli_study studies[CLI_EXPERIMENTS];
  uint64_t first_seed;
  bool force, quiet;
  dvbf_page *page;
  cli_path figures;
} cli_work;

/* The folder of one seed: the study's own when there is but one. */
void cli_study_folder(cli_path out, const cli_work *work, const cli_study *study, uint64_t seed);

/* Fills the outcomes, and adds tables, figures and chapters to the page. A signal during training ends it
 * without either. */
dvbf_status cli_study_run(cli_study *study, const cli_work *work, dvbf_error *error);
void cli_study_free(cli_study *study);

#endif
