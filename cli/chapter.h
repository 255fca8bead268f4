/* A chapter of a report: one model on one data set. */
#ifndef CLI_CHAPTER_H
#define CLI_CHAPTER_H

#include "files.h"
#include "points.h"

#include <dvbf/page.h>

typedef struct cli_chapter {
  const char *name; /* the heading */
  const char *key;  /* what the names of its figures begin with; NULL: nothing */
  const dvbf_model *model;
  const dvbf_data *data;
  const dvbf_sequences *sequences; /* the split of `data` that was evaluated */
  const char *split;               /* its name */
  const dvbf_evaluation *evaluation;
  /* Longer sequences for prediction and film, and their evaluation; NULL: those above. */
  const dvbf_data *long_data;
  const dvbf_sequences *long_sequences;
  const dvbf_evaluation *long_evaluation;
  const char *run;     /* folder with metrics.csv and settings.txt, NULL: none */
  const char *figures; /* folder that receives the figures and exists */
  unsigned threads;
  bool quiet; /* what is left out is said on the page alone, else also on standard error */
} cli_chapter;

/* Refuses figures that exist, unless `force`. Only name, key and figures are read. */
dvbf_status cli_chapter_refuse(const cli_chapter *chapter, bool force, dvbf_error *error);

/* Adds heading, tables, figures, latent space, film and settings. */
dvbf_status cli_chapter_add(dvbf_page *page, const cli_chapter *chapter, dvbf_error *error);

#endif
